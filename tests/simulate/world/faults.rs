//! Faults and their rates.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::dice::Dice;

/// Probability of each fault at each occasion.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    /// A command cannot be started.
    pub spawn: f64,
    /// A redirection cannot be opened.
    pub open: f64,
    /// Files cannot be committed, or only some of them.
    pub settle: f64,
    /// A query cannot be answered.
    pub query: f64,
    /// A channel cannot be used.
    pub channel: f64,
    /// A file system never answers.
    pub hang: f64,
    /// The processes of a scope cannot be read.
    pub unwatched: f64,
    /// An event is late.
    pub late: f64,
    /// Time jumps while the machine waits.
    pub jump: f64,
    /// The machine is woken without a reason.
    pub spurious: f64,
    /// SIGKILL takes long.
    pub unkillable: f64,
    /// The end of a terminated command is not reported.
    pub unreported_end: f64,
    /// A branch on another machine fails, or the machine itself.
    pub elsewhere: f64,
    /// Waits at which the shell dies, and another one resumes the run.
    pub restarts: Vec<Duration>,
    /// Signals to the shell, with their times.
    pub signals: Vec<(Duration, i32)>,
    /// Counts of the faults.
    pub happened: BTreeMap<&'static str, usize>,
}

impl Faults {
    /// Returns the faults of a world; every fourth world is calm.
    pub(crate) fn random(dice: &mut Dice) -> Self {
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
            &mut faults.unwatched,
            &mut faults.late,
            &mut faults.jump,
            &mut faults.spurious,
            &mut faults.unkillable,
            &mut faults.unreported_end,
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
    pub(crate) fn happens(
        &mut self,
        dice: &mut Dice,
        name: &'static str,
        probability: f64,
    ) -> bool {
        let happens = dice.chance(probability);
        if happens {
            *self.happened.entry(name).or_default() += 1;
        }
        happens
    }
}
