//! Modelled progress and memory of commands, and the scopes that are watched for them.
//!
//! A watch is checked whenever a command of its scope starts or ends, and at the moment at which a
//! condition may be met without such a change.

use std::collections::BTreeMap;
use std::time::Duration;

use super::model::Model;
use ftsh_machine::effect::{ScopeId, Watch};
use ftsh_machine::event::MemoryUse;
use ftsh_machine::{Event, Time};

/// Watched scopes of a shell.
#[derive(Default)]
pub(crate) struct Watches {
    scopes: BTreeMap<ScopeId, Watched>,
}

struct Watched {
    watch: Watch,
    /// Last start or end of a command in the scope, or the beginning of the watch.
    changed: Time,
}

/// Running command as a watch sees it.
pub(crate) struct ModelledActivity {
    /// Name of the command.
    pub name: String,
    /// Time of the start.
    pub started: Time,
    /// End of progress; `None` if progress never ends.
    pub progress: Option<Duration>,
    /// Memory, and the time after the start at which the command has it.
    pub memory: (Duration, u64),
}

impl ModelledActivity {
    /// Describes a command by its model.
    pub(crate) fn new(name: &str, started: Time, model: &Model) -> Self {
        let Model { progress, memory, .. } = model;
        Self { name: name.to_owned(), started, progress: *progress, memory: *memory }
    }

    fn progress_until(&self) -> Option<Time> {
        self.progress.map(|progress| self.started + progress)
    }

    fn memory_at(&self, now: Time) -> u64 {
        if self.started + self.memory.0 <= now { self.memory.1 } else { 0 }
    }
}

impl Watches {
    /// Begins to watch a scope.
    pub(crate) fn begin(&mut self, scope: ScopeId, watch: Watch, now: Time) {
        self.scopes.insert(scope, Watched { watch, changed: now });
    }

    /// Stops watching a scope.
    pub(crate) fn end(&mut self, scope: ScopeId) {
        self.scopes.remove(&scope);
    }

    /// Stops watching all scopes.
    pub(crate) fn end_all(&mut self) {
        self.scopes.clear();
    }

    /// Returns the watched scopes.
    pub(crate) fn scopes(&self) -> Vec<ScopeId> {
        self.scopes.keys().copied().collect()
    }

    /// Records a start or an end of a command in a scope.
    pub(crate) fn changed(&mut self, scope: ScopeId, now: Time) {
        if let Some(watched) = self.scopes.get_mut(&scope) {
            watched.changed = now;
        }
    }

    /// Returns the events of a scope at `now`, and the times of the next checks.
    pub(crate) fn check(
        &mut self,
        scope: ScopeId,
        commands: &[ModelledActivity],
        now: Time,
    ) -> (Vec<Event>, Vec<Time>) {
        let (mut events, mut checks) = (Vec::new(), Vec::new());
        let Some(watched) = self.scopes.get_mut(&scope) else { return (events, checks) };
        if let Some(time) = watched.watch.stalled
            && !commands.is_empty()
        {
            let ends: Option<Vec<Time>> =
                commands.iter().map(ModelledActivity::progress_until).collect();
            // A command with endless progress keeps the scope from stalling.
            let at = ends.map(|ends| ends.into_iter().fold(watched.changed, Time::max) + time);
            if at.is_some_and(|at| at <= now) {
                watched.watch.stalled = None;
                events.push(Event::Stalled { scope });
            } else {
                checks.extend(at);
            }
        }
        if let Some(limit) = watched.watch.memory {
            let used: u64 = commands.iter().map(|command| command.memory_at(now)).sum();
            let largest = commands.iter().max_by_key(|command| command.memory_at(now));
            match largest {
                Some(largest) if used > limit => {
                    watched.watch.memory = None;
                    let size = largest.memory_at(now);
                    let memory = MemoryUse { used, largest: largest.name.clone(), size };
                    events.push(Event::OverMemory { scope, memory });
                }
                _ => {
                    let grown = commands.iter().map(|command| command.started + command.memory.0);
                    checks.extend(grown.filter(|at| *at > now));
                }
            }
        }
        (events, checks)
    }
}
