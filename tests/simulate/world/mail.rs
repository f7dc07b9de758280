//! Events on their way to the machine, delivered in any legal order: events of a process in the
//! order of their occurrence, and the end of a scope after the ends of its commands.

use ftsh_machine::effect::ProcessId;
use ftsh_machine::{Event, Time};

use crate::dice::Dice;

#[derive(Default)]
pub(super) struct Mail {
    /// Events with the earliest moment of their arrival, in the order of occurrence.
    letters: Vec<(Time, Event)>,
}

impl Mail {
    pub(super) fn post(&mut self, at: Time, event: Event) {
        self.letters.push((at, event));
    }

    /// Returns one of the events that can arrive now.
    pub(super) fn take(&mut self, now: Time, dice: &mut Dice) -> Option<Event> {
        let arrived: Vec<usize> =
            self.free().filter(|&index| self.letters[index].0 <= now).collect();
        let first = *arrived.first()?;
        // Mostly in order.
        let index = if dice.chance(0.7) { first } else { *dice.pick(&arrived) };
        Some(self.letters.remove(index).1)
    }

    /// Returns the time of the next arrival.
    pub(super) fn next(&self) -> Option<Time> {
        self.free().map(|index| self.letters[index].0).min()
    }

    /// Returns the events that need not wait for another one.
    fn free(&self) -> impl Iterator<Item = usize> {
        (0..self.letters.len()).filter(|&index| {
            let (_, event) = &self.letters[index];
            !self.letters[..index].iter().any(|(_, earlier)| comes_before(earlier, event))
        })
    }

    /// Drops all events of commands.
    pub(super) fn lose_all(&mut self) {
        self.letters.retain(|(_, event)| of(event).is_none());
    }

    /// Drops all events except signals.
    pub(super) fn keep_signals(&mut self) {
        self.letters.retain(|(_, event)| matches!(event, Event::Interrupted(_)));
    }

    /// Drops pending signals.
    pub(super) fn forget_signals(&mut self) {
        self.letters.retain(|(_, event)| !matches!(event, Event::Interrupted(_)));
    }

    /// Drops the end of a command.
    pub(super) fn lose(&mut self, process: ProcessId) {
        self.letters.retain(|(_, event)| of(event) != Some(process));
    }
}

fn of(event: &Event) -> Option<ProcessId> {
    match event {
        Event::Spawned { process, .. }
        | Event::SpawnFailed { process, .. }
        | Event::Exited { process, .. }
        | Event::Placed { process, .. }
        | Event::Returned { process, .. } => Some(*process),
        _ => None,
    }
}

fn comes_before(earlier: &Event, later: &Event) -> bool {
    if let (Event::Queued { operation: queued }, Event::Done { operation, .. }) = (earlier, later)
        && queued == operation
    {
        return true;
    }
    match (of(earlier), later) {
        (Some(_), Event::Emptied { .. }) => true,
        (Some(process), later) => of(later) == Some(process),
        _ => false,
    }
}
