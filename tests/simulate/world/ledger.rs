//! Unanswered requests of a shell, which the next shell must handle.

use std::collections::{BTreeMap, BTreeSet};

use ftsh_machine::effect::{OperationId, ProcessId, ScopeId};
use ftsh_machine::{Effect, Event};

#[derive(Default)]
pub(super) struct Ledger {
    scopes: BTreeMap<ScopeId, ScopeId>,
    /// Commands in progress with their scopes.
    commands: BTreeMap<ProcessId, ScopeId>,
    /// Commands that are branches elsewhere.
    away: BTreeSet<ProcessId>,
    /// Other requests in order.
    open: Vec<Effect>,
}

impl Ledger {
    pub(super) fn asked(&mut self, effect: &Effect) {
        match effect {
            Effect::Run(run) | Effect::Exec(run) => {
                self.commands.insert(run.process, run.scope);
            }
            Effect::Dispatch(branch) => {
                self.commands.insert(branch.process, branch.scope);
                self.away.insert(branch.process);
            }
            Effect::OpenScope { scope, parent, .. } => {
                self.scopes.insert(*scope, *parent);
            }
            Effect::HandOver { scope, into } => {
                let inside = self.commands.values_mut().chain(self.scopes.values_mut());
                inside.filter(|it| *it == scope).for_each(|it| *it = *into);
            }
            Effect::Abandon(operation) => self.answered(*operation),
            Effect::Terminate(_) => self.open.push(effect.clone()),
            effect if operation(effect).is_some() => self.open.push(effect.clone()),
            _ => {}
        }
    }

    pub(super) fn on_event(&mut self, event: &Event) {
        match event {
            Event::Exited { process, .. }
            | Event::SpawnFailed { process, .. }
            | Event::Returned { process, .. } => {
                self.commands.remove(process);
            }
            Event::Done { operation, .. } => self.answered(*operation),
            Event::Emptied { scope } => {
                self.open.retain(|it| !matches!(it, Effect::Terminate(ended) if ended == scope));
                let scopes = &self.scopes;
                self.commands.retain(|_, inner| !is_within(scopes, *inner, *scope));
            }
            Event::Resumed { lost, .. } => {
                self.commands.retain(|process, _| !lost.contains(process));
            }
            _ => {}
        }
    }

    pub(super) fn commands(&self) -> impl Iterator<Item = ProcessId> {
        self.commands.keys().copied()
    }

    /// Returns the scopes of branches that may be elsewhere.
    pub(super) fn scopes_away(&self) -> Vec<ScopeId> {
        let away = self.commands.iter().filter(|(process, _)| self.away.contains(process));
        away.map(|(_, scope)| *scope).collect()
    }

    pub(super) fn open(&self) -> &[Effect] {
        &self.open
    }

    fn answered(&mut self, answered: OperationId) {
        self.open.retain(|effect| operation(effect) != Some(answered));
    }
}

/// Returns the request that an event answers.
fn operation(effect: &Effect) -> Option<OperationId> {
    match effect {
        Effect::Open { operation, .. }
        | Effect::Query { operation, .. }
        | Effect::Commit { operation, .. }
        | Effect::CommitView { operation, .. }
        | Effect::FinishRelay(operation) => Some(*operation),
        Effect::Enter(entry) => Some(entry.operation),
        Effect::BeginView(begin) => Some(begin.operation),
        _ => None,
    }
}

fn is_within(scopes: &BTreeMap<ScopeId, ScopeId>, scope: ScopeId, outer: ScopeId) -> bool {
    let up = |scope: &ScopeId| scopes.get(scope).copied();
    outer == ScopeId::SCRIPT || std::iter::successors(Some(scope), up).any(|it| it == outer)
}
