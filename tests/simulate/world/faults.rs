//! What goes wrong, and how often.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::dice::Dice;

/// How likely each fault is at each occasion.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// A command can't be started.
    pub spawn: f64,
    /// A redirection can't be opened.
    pub open: f64,
    /// Files can't take their places, or only some of them.
    pub settle: f64,
    /// A question can't be answered.
    pub query: f64,
    /// A channel can't be used.
    pub channel: f64,
    /// A file system never answers.
    pub hang: f64,
    /// An event comes late.
    pub late: f64,
    /// Time jumps while the machine waits.
    pub jump: f64,
    /// The machine is woken for nothing.
    pub spurious: f64,
    /// SIGKILL takes long to work.
    pub unkillable: f64,
    /// The end of a command that was told to end isn't reported.
    pub untold: f64,
    /// Something goes wrong with a branch on another machine, or with the machine.
    pub elsewhere: f64,
    /// Moments at which the shell ends, and another one goes on.
    pub restarts: Vec<Duration>,
    /// Signals to the shell, when and which.
    pub signals: Vec<(Duration, i32)>,
    /// What happened.
    pub happened: BTreeMap<&'static str, usize>,
}

impl Faults {
    /// A world's faults; every fourth world is a calm one.
    pub fn random(dice: &mut Dice) -> Self {
        let mut faults = Self::default();
        if dice.chance(0.25) {
            return faults;
        }
        for fault in [
            &mut faults.spawn,
            &mut faults.open,
            &mut faults.query,
            &mut faults.channel,
            &mut faults.hang,
            &mut faults.late,
            &mut faults.jump,
            &mut faults.spurious,
            &mut faults.unkillable,
            &mut faults.untold,
        ] {
            *fault = *dice.pick(&[0.0, 0.0, 0.01, 0.05, 0.3]);
        }
        faults.elsewhere = *dice.pick(&[0.0, 0.3, 0.6]);
        faults.settle = *dice.pick(&[0.0, 0.1, 0.5]);
        while dice.chance(0.2) {
            faults.restarts.push(dice.time(Duration::from_secs(60)));
        }
        faults.restarts.sort();
        while dice.chance(0.3) {
            let at = dice.time(Duration::from_secs(60));
            faults.signals.push((at, *dice.pick(&[1, 2, 3, 15])));
        }
        faults
    }

    /// Counts a fault if it happens.
    pub fn happens(&mut self, dice: &mut Dice, name: &'static str, probability: f64) -> bool {
        let happens = dice.chance(probability);
        if happens {
            *self.happened.entry(name).or_default() += 1;
        }
        happens
    }
}
