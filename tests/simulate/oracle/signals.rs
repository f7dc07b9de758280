//! `signal NAME`: what is canceled in an attempt receives this signal first, and SIGTERM at most once
//! after it.

use std::collections::{BTreeMap, BTreeSet};

use ftsh_machine::effect::{Action, ScopeId, Signal, TaskId};
use ftsh_machine::record::LogEvent;
use ftsh_machine::{Effect, Event, Time};

use super::{Judged, Oracle, Verdict};
use crate::program::Promises;

pub(super) struct Signals {
    promises: Promises,
    /// Signal of the attempt that a task began last, as long as its next command is in this attempt.
    begun: BTreeMap<TaskId, Signal>,
    /// Signals of the scopes in which attempts with the clause run commands.
    wanted: BTreeMap<ScopeId, Signal>,
    parents: BTreeMap<ScopeId, ScopeId>,
    /// Signals that the machine has set.
    set: BTreeMap<ScopeId, Signal>,
    /// Scopes terminated with another signal than SIGTERM inside, until SIGTERM follows.
    gentle: BTreeSet<ScopeId>,
    /// Scopes to which SIGTERM was sent after another signal.
    escalated: BTreeSet<ScopeId>,
    /// Scopes that are empty, which the machine may learn late.
    over: BTreeSet<ScopeId>,
    judged: Judged,
}

impl Signals {
    pub(super) fn new(promises: &Promises) -> Self {
        Self {
            promises: promises.clone(),
            begun: BTreeMap::new(),
            wanted: BTreeMap::new(),
            parents: BTreeMap::new(),
            set: BTreeMap::new(),
            gentle: BTreeSet::new(),
            escalated: BTreeSet::new(),
            over: BTreeSet::new(),
            judged: Judged::default(),
        }
    }

    fn is_within(&self, scope: ScopeId, outer: ScopeId) -> bool {
        let up = |scope: &ScopeId| self.parents.get(scope).copied();
        outer == ScopeId::SCRIPT || std::iter::successors(Some(scope), up).any(|it| it == outer)
    }

    /// Checks that each attempt in a scope has its signal.
    fn terminated(&mut self, scope: ScopeId) -> Verdict {
        for (inner, wanted) in &self.wanted {
            if !self.is_within(*inner, scope) {
                continue;
            }
            let set = self.set.get(inner).copied().unwrap_or_default();
            if set != *wanted {
                return Err(format!("{inner:?} gets {} instead of {}", set.name(), wanted.name()));
            }
            if *wanted != Signal::Term {
                self.judged.count("signals of attempts");
            }
        }
        let is_gentle = |(inner, signal): (&ScopeId, &Signal)| {
            !matches!(signal, Signal::Term | Signal::Kill) && self.is_within(*inner, scope)
        };
        if self.set.iter().any(is_gentle) {
            self.gentle.insert(scope);
        }
        Ok(())
    }

    /// Counts a scope whose processes received SIGTERM between another signal and SIGKILL. A world
    /// whose timers are late, or no time between the signals, leaves out SIGTERM.
    fn killed(&mut self, scope: ScopeId) {
        if self.escalated.remove(&scope) {
            self.judged.count("SIGTERM after another signal");
        }
    }

    /// Forgets a scope and the scopes inside, and returns them.
    fn ended(&mut self, scope: ScopeId) -> Vec<ScopeId> {
        let inside: Vec<ScopeId> = self
            .parents
            .keys()
            .copied()
            .filter(|inner| self.is_within(*inner, scope))
            .chain([scope])
            .collect();
        for inner in &inside {
            self.wanted.remove(inner);
            self.set.remove(inner);
            self.gentle.remove(inner);
            self.escalated.remove(inner);
            self.parents.remove(inner);
        }
        inside
    }
}

impl Oracle for Signals {
    fn name(&self) -> &'static str {
        "signals"
    }

    fn effect(&mut self, _: Time, effect: &Effect) -> Verdict {
        match effect {
            Effect::Log(record) => {
                let Some(task) = record.task else { return Ok(()) };
                match &record.event {
                    LogEvent::CommandStarted(_) => {}
                    // The condition of `while` may follow, also on the failure of a stage.
                    event if event.failure().is_some() => self.begun.clear(),
                    LogEvent::Attempt { .. } => {
                        let place = (record.file.to_string(), record.line);
                        let limits = self.promises.tries.get(&place);
                        match limits.and_then(|limits| limits.signal) {
                            Some(signal) => _ = self.begun.insert(task, signal),
                            None => _ = self.begun.remove(&task),
                        }
                    }
                    _ => _ = self.begun.remove(&task),
                }
            }
            Effect::OpenScope { scope, parent, .. } => _ = self.parents.insert(*scope, *parent),
            // The shell writes held output itself.
            Effect::Run(run) if matches!(run.action, Action::Copy) => {}
            Effect::Run(run) => {
                let begun = self.begun.get(&run.task);
                self.wanted.extend(begun.map(|signal| (run.scope, *signal)));
            }
            Effect::SetSignal(scope, signal) => {
                let before = self.set.insert(*scope, *signal);
                return before.map_or(Ok(()), |_| Err(format!("{scope:?} gets a signal twice")));
            }
            Effect::Terminate(scope) => {
                self.begun.clear();
                self.over.remove(scope);
                return self.terminated(*scope);
            }
            Effect::Escalate(scope) => {
                if !self.gentle.remove(scope) {
                    if self.over.contains(scope) {
                        return Ok(());
                    }
                    return Err(format!("{scope:?} got SIGTERM before"));
                }
                self.escalated.insert(*scope);
                let inside = |inner: &ScopeId| {
                    let up = |scope: &ScopeId| self.parents.get(scope).copied();
                    std::iter::successors(Some(*inner), up).any(|it| it == *scope)
                };
                let over: Vec<ScopeId> =
                    self.set.keys().copied().filter(|inner| inside(inner)).collect();
                // Another cancellation around the scope sends SIGTERM again.
                for inner in over {
                    self.set.insert(inner, Signal::Term);
                    self.wanted.remove(&inner);
                }
            }
            Effect::Kill { scope, .. } => self.killed(*scope),
            Effect::HandOver { scope, .. } => drop(self.ended(*scope)),
            _ => {}
        }
        Ok(())
    }

    fn event(&mut self, _: Time, event: &Event) -> Verdict {
        if let Event::Emptied { scope } = event {
            let over = self.ended(*scope);
            self.over.extend(over);
        }
        Ok(())
    }

    fn judged(&self) -> &Judged {
        &self.judged
    }
}
