//! Sessions: one script after the other in the same shell, as at a prompt.
//!
//! The script that the machine was made with is the first; usually it is empty. Each later one, a
//! *statement*, takes over variables, functions, arguments and directory, and runs in a scope of its
//! own: what a failed or cancelled one has started is gone before the next one, what a good one has
//! left running belongs to the session.

use std::sync::Arc;

use bstr::BString;

use crate::effect::{ProcessId, ScopeId};
use crate::outcome::Outcome;
use crate::program::lower::lower;
use crate::remote::packed::EndedBranch;
use crate::remote::state::Packed;
use crate::secrets::Secrets;
use crate::status::snapshot::{InProgress, Status};
use crate::tasks::task::State;
use crate::time::Time;
use crate::{MAIN, Machine};
use ftsh_syntax::Script;
use ftsh_syntax::ast::Name;

/// Longer values are of no use to a prompt.
const LONGEST: usize = 4096;

impl Machine {
    /// Goes on with another script, once the last one is over. `$error` and its kin tell of the
    /// last script that failed.
    pub fn go_on(&mut self, script: &Script) {
        let program = Arc::new(lower(script));
        self.definitions.add(&program);
        let last = self.outcome.take();
        let scope = self.core.new_scope(Some(ScopeId::SCRIPT));
        self.exit_requested = false;
        self.core.scheduler.renew();
        let Some(main) = self.core.tasks.get_mut(MAIN) else { return };
        main.program = program;
        main.stack.clear();
        main.frames.clear();
        main.state = State::Ready;
        main.cleaning.clear();
        main.scope = scope;
        main.jump(0);
        if let Some(Outcome::Failed(failure)) = last {
            Arc::make_mut(&mut main.inherited).failure = Some(Arc::new(*failure));
        }
        self.core.scheduler.clear();
        self.core.scheduler.queue(MAIN);
    }

    /// What isn't to be said.
    pub fn secrets(&self) -> &Secrets {
        &self.core.config.secrets
    }

    /// Whether the last script said `exit`, so that the session is over.
    pub fn has_left(&self) -> bool {
        self.exit_requested
    }

    /// When the whole session must end, if it must.
    pub fn deadline(&self) -> Option<Time> {
        self.core.config.deadline
    }

    /// The directory of the session, if it isn't the one the shell was started in.
    pub fn working_directory(&self) -> Option<&BString> {
        self.core.tasks.get(MAIN)?.directory.as_deref()
    }

    /// The functions that are defined.
    pub fn functions(&self) -> impl Iterator<Item = &Name> {
        self.definitions.functions().map(|(name, _)| name)
    }

    /// The variables that are set, with their values; none for a long one, or for what a command has
    /// written, which must be fetched first.
    pub fn variables(&self) -> Vec<(Name, Option<BString>)> {
        let Some(main) = self.core.tasks.get(MAIN) else { return Vec::new() };
        main.variables.all(LONGEST)
    }

    /// The channels that anything run so far says something about.
    pub fn channels(&self) -> impl Iterator<Item = &Name> {
        self.definitions.channels().map(|(name, _)| name)
    }

    /// Whether what comes of a command is waited for.
    pub fn awaits(&self, process: ProcessId) -> bool {
        self.core.requests.awaits_process(process).is_some()
    }

    /// From now on, packs each branch of a `forall` as it begins, beside beginning it.
    /// To be called before the run begins.
    pub fn pack_branches(&mut self) {
        self.core.remote.pack_branches();
    }

    /// The branches that have begun since this was asked last.
    pub fn take_packed(&mut self) -> Packed {
        self.core.remote.take_packed()
    }

    /// Whether it has made a random choice.
    pub fn has_drawn(&self) -> bool {
        self.random.has_drawn()
    }

    /// How the branch ended that the machine was made for; none if the run isn't over.
    pub fn branch_ended_with(&self) -> Option<EndedBranch> {
        Some(self.core.remote.root()?.ended_with(self.outcome.as_ref()?))
    }

    /// How much is in progress.
    pub fn in_progress(&self) -> InProgress {
        self.core.in_progress()
    }

    /// What the run is doing: the first `most` tasks, outer ones first, and counts of the others.
    /// `now` is the time of the snapshot.
    pub fn status(&self, most: usize, now: Time) -> Status {
        let main = self.core.tasks.main().filter(|_| self.outcome.is_none());
        self.core.status(main, most, now)
    }
}
