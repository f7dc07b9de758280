//! Ends of the runs of a modelled command.

use std::time::Duration;

use ftsh_machine::Time;
use rand::{Rng, RngExt};

use crate::model::{CommandModel, Fails};

/// Random choices of a model, and the number of its runs.
pub struct ModelState<R> {
    random: R,
    /// Periods in which all runs fail, in order.
    down: Vec<(Time, Time)>,
    /// Number of runs begun.
    begun: u64,
}

/// Planned end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedRun {
    /// Duration; none for a run without an end.
    pub takes: Option<Duration>,
    /// True if the run fails.
    pub fails: bool,
}

impl<R: Rng> ModelState<R> {
    /// Draws the periods of a model without runs.
    pub fn new(model: &CommandModel, mut random: R) -> Self {
        let mut down = Vec::new();
        for outage in &model.down {
            let from = Time::after(outage.from.draw(&mut random));
            down.push((from, from + outage.lasts.draw(&mut random)));
        }
        down.sort_unstable();
        Self { random, down, begun: 0 }
    }

    /// Draws the end of a run that begins now.
    pub fn next_run(&mut self, model: &CommandModel, now: Time) -> PlannedRun {
        let [hangs, fails] = [(); 2].map(|()| self.random.random::<f64>());
        let takes = model.takes.map_or(Duration::ZERO, |takes| takes.draw(&mut self.random));
        let failing = model.failing.map(|takes| takes.draw(&mut self.random));
        self.begun += 1;
        if self.down.iter().any(|(from, until)| (*from..*until).contains(&now)) {
            return PlannedRun { takes: Some(failing.unwrap_or_default()), fails: true };
        }
        let fails = match model.fails {
            Fails::Never => false,
            Fails::Always => true,
            Fails::Chance(chance) => fails < chance,
            Fails::First(times) => self.begun <= times,
        };
        let takes = match failing {
            _ if hangs < model.hangs => None,
            Some(failing) if fails => Some(failing),
            _ => Some(takes),
        };
        // An outage also fails runs in progress.
        let end = takes.map_or(Time::NEVER, |takes| now + takes);
        match self.down.iter().find(|(from, until)| now < *from && *from < end && from < until) {
            Some((from, _)) => PlannedRun { takes: Some(*from - now), fails: true },
            None => PlannedRun { takes, fails },
        }
    }
}
