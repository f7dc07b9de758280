//! Views of directories: each is used by one attempt only, nothing runs inside during its commit, inner
//! ones end before its commit, and all end.

use std::collections::{BTreeMap, BTreeSet};

use ftsh_machine::effect::{Action, Directory, OperationId, ProcessId, ScopeId, ViewId};
use ftsh_machine::event::Reply;
use ftsh_machine::{Effect, Event, Time};

use super::{Judged, Oracle, Verdict};

/// Stage in the life of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Beginning,
    Open,
    Committing,
    Committed,
    Failed,
}

#[derive(Default)]
pub(super) struct Views {
    stages: BTreeMap<ViewId, Stage>,
    /// Views whose answer is awaited.
    asked: BTreeMap<OperationId, ViewId>,
    parents: BTreeMap<ScopeId, ScopeId>,
    /// Outer view of each inner one.
    outer: BTreeMap<ViewId, ViewId>,
    /// Programs in views, with their scopes.
    inside: BTreeMap<ProcessId, (ViewId, ScopeId)>,
    dropped: BTreeSet<ViewId>,
    judged: Judged,
}

impl Views {
    fn used(&self, directory: &Directory) -> Verdict {
        match directory.view.map(|view| (view, self.stages.get(&view))) {
            None | Some((_, Some(Stage::Open))) => Ok(()),
            Some((view, stage)) => Err(format!("{view:?} is used, but is {stage:?}")),
        }
    }

    fn nothing_inside(&self, view: ViewId) -> Verdict {
        let process = self.inside.iter().find(|(_, (of, _))| *of == view);
        process.map_or(Ok(()), |(process, _)| Err(format!("{process:?} still runs in {view:?}")))
    }

    fn is_within(&self, scope: ScopeId, outer: ScopeId) -> bool {
        let up = |scope: &ScopeId| self.parents.get(scope).copied();
        std::iter::successors(Some(scope), up).any(|it| it == outer)
    }
}

impl Oracle for Views {
    fn name(&self) -> &'static str {
        "views"
    }

    fn effect(&mut self, _: Time, effect: &Effect) -> Verdict {
        match effect {
            Effect::BeginView(begin) => {
                self.asked.insert(begin.operation, begin.view);
                self.used(&begin.directory)?;
                if let Some(outer) = begin.directory.view {
                    self.judged.count("views in views");
                    self.outer.insert(begin.view, outer);
                }
                match self.stages.insert(begin.view, Stage::Beginning) {
                    None => Ok(()),
                    Some(stage) => Err(format!("{:?} begins twice, {stage:?}", begin.view)),
                }
            }
            Effect::Run(run) => {
                // The shell itself writes held output, and needs no path for it.
                if let (Some(view), Action::Program { .. }) = (run.directory.view, &run.action) {
                    self.judged.count("commands in views");
                    self.inside.insert(run.process, (view, run.scope));
                }
                self.used(&run.directory)
            }
            Effect::Open { directory, .. } | Effect::Query { directory, .. } => {
                self.used(directory)
            }
            Effect::OpenScope { scope, parent, .. } => {
                self.parents.insert(*scope, *parent);
                Ok(())
            }
            Effect::CommitView { operation, view, .. } => {
                self.asked.insert(*operation, *view);
                self.judged.count("commits of views");
                self.nothing_inside(*view)?;
                let mut inner = self.outer.iter().filter(|(_, outer)| *outer == view);
                if let Some((inner, _)) = inner.find(|(inner, _)| !self.dropped.contains(inner)) {
                    return Err(format!("{inner:?} is still in {view:?}"));
                }
                match self.stages.insert(*view, Stage::Committing) {
                    Some(Stage::Open) => Ok(()),
                    stage => Err(format!("{view:?} is committed, but was {stage:?}")),
                }
            }
            Effect::DropView(view) => {
                let is_open = self.stages.get(view) == Some(&Stage::Open);
                self.judged.count(if is_open { "lost views" } else { "ended views" });
                if !self.dropped.insert(*view) {
                    return Err(format!("{view:?} is dropped twice"));
                }
                self.nothing_inside(*view)
            }
            _ => Ok(()),
        }
    }

    fn event(&mut self, _: Time, event: &Event) -> Verdict {
        match event {
            Event::Done { operation, result } => {
                if let Some(view) = self.asked.remove(operation) {
                    let stage = match (self.stages.get(&view), result) {
                        (Some(Stage::Beginning), Ok(_)) => Stage::Open,
                        (Some(Stage::Committing), Ok(Reply::Truth(true))) => Stage::Committed,
                        (_, Ok(Reply::Conflict(_))) => {
                            self.judged.count("conflicts");
                            Stage::Failed
                        }
                        _ => Stage::Failed,
                    };
                    self.stages.insert(view, stage);
                }
            }
            Event::Exited { process, .. } | Event::SpawnFailed { process, .. } => {
                self.inside.remove(process);
            }
            Event::Emptied { scope } => {
                let gone = self.inside.iter().filter(|(_, (_, it))| self.is_within(*it, *scope));
                let gone: Vec<_> = gone.map(|(process, _)| *process).collect();
                for process in gone {
                    self.inside.remove(&process);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self) -> Verdict {
        match self.stages.keys().find(|view| !self.dropped.contains(view)) {
            Some(view) => Err(format!("{view:?} is left")),
            None => Ok(()),
        }
    }

    fn judged(&self) -> &Judged {
        &self.judged
    }
}
