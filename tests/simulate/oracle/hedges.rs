//! The first successful word of a hedged `forany` wins, and nothing of the others is left. The
//! `forany` fails only if no word succeeds.

use std::collections::BTreeSet;

use ftsh_machine::effect::{Action, OperationId, ProcessId, Query, TaskId};
use ftsh_machine::event::{CommandStatus, Reply};
use ftsh_machine::outcome::FailureKind;
use ftsh_machine::{Effect, Event, Time};

use super::branches::{Branches, said};
use super::{Judged, Look, Oracle, Verdict};
use crate::program::Promises;

/// Kinds of failure that no further word can change.
const ENDS_ALL: [FailureKind; 2] = [FailureKind::Giveup, FailureKind::Deferred];

pub(super) struct Hedges {
    branches: Branches,
    /// Reported results with their places, and the winner if there is one.
    reported: Vec<(TaskId, String, Option<String>)>,
    /// Places where a word may have given up.
    given_up: BTreeSet<(TaskId, String)>,
    open: BTreeSet<(TaskId, String)>,
    /// Commits in progress. A half committed one fails permanently.
    settling: BTreeSet<OperationId>,
    filling: BTreeSet<OperationId>,
    copying: BTreeSet<ProcessId>,
    judged: Judged,
}

impl Hedges {
    pub(super) fn new(promises: &Promises) -> Self {
        Self {
            branches: Branches::new(&promises.sites),
            reported: Vec::new(),
            given_up: BTreeSet::new(),
            open: BTreeSet::new(),
            settling: BTreeSet::new(),
            filling: BTreeSet::new(),
            copying: BTreeSet::new(),
            judged: Judged::default(),
        }
    }

    /// Requests during a commit.
    fn commit(&mut self, effect: &Effect) {
        match effect {
            Effect::Commit { operation, .. } => _ = self.settling.insert(*operation),
            Effect::Query { operation, query: Query::Filled(_), .. } => {
                self.filling.insert(*operation);
            }
            Effect::Run(run) if matches!(run.action, Action::Copy) => {
                self.copying.insert(run.process);
            }
            _ => {}
        }
    }

    /// True if the event leaves a half committed transaction.
    fn is_half(&mut self, event: &Event) -> bool {
        match event {
            Event::Done { operation, result } => {
                let is_settled = self.settling.remove(operation);
                let is_known = self.filling.remove(operation);
                is_settled && matches!(result, Ok(Reply::Incomplete(_)))
                    || is_known && result.is_err()
            }
            Event::Exited { process, status, .. } => {
                self.copying.remove(process) && *status != CommandStatus::Exited(0)
            }
            Event::SpawnFailed { process, .. } => self.copying.remove(process),
            _ => false,
        }
    }

    fn judge(&mut self, look: &Look, place: &(TaskId, String), winner: Option<&str>) -> Verdict {
        let Some((site, all)) = self.branches.of(place.0, &place.1) else { return Ok(()) };
        let begun = all.len();
        if begun == 0 {
            // The site has not even begun.
            return Ok(());
        }
        let best = all.iter().filter(|(_, it)| it.end.is_some()).min_by_key(|(_, it)| it.end);
        let best = best.map(|(task, branch)| (*task, branch.word.as_str()));
        for (task, branch) in &all {
            if best.map(|it| it.0) != Some(*task) {
                branch.left(*task, look)?;
            }
        }
        let refused = self.branches.refused.contains(&place.0);
        if best.map(|it| it.1) != winner && !refused {
            return Err(format!("{winner:?} has won it, not {best:?}"));
        }
        if winner.is_none()
            && !refused
            && begun < site.words.len()
            && !self.given_up.contains(place)
        {
            return Err(format!("it is lost after {begun} words of {}", site.words.len()));
        }
        self.judged.count(match (winner, begun) {
            (Some(_), 1) => "hedge is won by the first alone",
            (Some(_), _) => "hedge is won",
            (None, _) if begun < site.words.len() => "hedge is given up",
            (None, _) => "hedge is lost",
        });
        Ok(())
    }
}

impl Oracle for Hedges {
    fn name(&self) -> &'static str {
        "hedges"
    }

    fn effect(&mut self, _: Time, effect: &Effect) -> Verdict {
        self.branches.effect(effect);
        if let Effect::Log(record) = effect
            && record.event.failure().is_some_and(|it| ENDS_ALL.contains(&it.kind))
        {
            self.given_up.extend(self.open.iter().cloned());
        }
        self.commit(effect);
        let Some((run, words)) = said(effect) else { return Ok(()) };
        let place = || (run.task, words[1].clone());
        if words[0] == "start" {
            self.given_up.remove(&place());
            self.open.insert(place());
        } else if self.branches.is_over(run.task, &words) {
            self.open.remove(&place());
            match words[0].as_str() {
                "won" => self.reported.push((run.task, words[1].clone(), words.get(2).cloned())),
                "lost" => self.reported.push((run.task, words[1].clone(), None)),
                _ => {}
            }
        }
        Ok(())
    }

    fn event(&mut self, _: Time, event: &Event) -> Verdict {
        self.branches.event(event);
        if self.is_half(event) {
            self.given_up.extend(self.open.iter().cloned());
        }
        Ok(())
    }

    fn look(&mut self, look: &Look) -> Verdict {
        self.branches.look(look);
        for (parent, variable, winner) in std::mem::take(&mut self.reported) {
            let place = (parent, variable);
            let verdict = self.judge(look, &place, winner.as_deref());
            verdict.map_err(|what| format!("{}: {what}", place.1))?;
        }
        Ok(())
    }

    fn judged(&self) -> &Judged {
        &self.judged
    }
}
