//! Sessions: scripts executed one after another in the same shell, as at a prompt.
//!
//! The first script is that of the machine, and usually empty. Each later script, a *statement*,
//! inherits variables, functions, arguments and directory, and runs in its own scope. Processes of
//! a failed or canceled statement end before the next statement. Processes left by a successful
//! statement belong to the session.

use std::sync::Arc;

use bstr::BString;

use super::Machine;
use crate::MAIN;
use crate::effect::{ProcessId, ScopeId};
use crate::elsewhere::Packed;
use crate::lower::lower;
use crate::outcome::Outcome;
use crate::packed::EndedBranch;
use crate::secrets::Secrets;
use crate::status::{InProgress, Status, in_progress, take_snapshot};
use crate::tasks::TaskState;
use crate::time::{Deadline, Time};
use ftsh_syntax::Script;
use ftsh_syntax::ast::Name;

/// Maximum length of values returned to a prompt.
const MAX_PROMPT_VALUE_LEN: usize = 4096;

impl Machine {
    /// Starts another script after the end of the last one. `$error` and related variables report
    /// the last failed script.
    pub fn run_next(&mut self, script: &Script) {
        let program = Arc::new(lower(script));
        self.definitions.add(&program);
        let last = self.outcome.take();
        let scope = self.core.new_scope(Some(ScopeId::SCRIPT));
        self.exit_requested = false;
        self.core.parts().scheduler.renew();
        let Some(main) = self.core.parts().tasks.get_mut(MAIN) else { return };
        main.program = program;
        main.stack.clear();
        main.frames.clear();
        main.state = TaskState::Ready;
        main.cancellations.clear();
        main.scope = scope;
        main.jump(0);
        if let Some(Outcome::Failed(failure)) = last {
            Arc::make_mut(&mut main.inherited).failure = Some(Arc::new(*failure));
        }
        self.core.parts().scheduler.clear();
        self.core.queue(MAIN);
    }

    /// Returns the secrets of the run.
    pub fn secrets(&self) -> &Secrets {
        &self.core.config().secrets
    }

    /// Returns true if the last script called `exit`, which ends the session.
    pub fn exit_requested(&self) -> bool {
        self.exit_requested
    }

    /// Returns the deadline of the session, if any.
    pub fn deadline(&self) -> Deadline {
        self.core.config().deadline
    }

    /// Returns the directory of the session, unless it is the shell's own.
    pub fn working_directory(&self) -> Option<&BString> {
        self.core.tasks().get(MAIN)?.directory.path.as_deref()
    }

    /// Returns the names of defined functions.
    pub fn functions(&self) -> impl Iterator<Item = &Name> {
        self.definitions.functions().map(|(name, _)| name)
    }

    /// Returns the variables with their values. The value of a long text, or of a command's output,
    /// which must be fetched first, is `None`.
    pub fn variables(&self) -> Vec<(Name, Option<BString>)> {
        let Some(main) = self.core.tasks().get(MAIN) else { return Vec::new() };
        main.variables.all(MAX_PROMPT_VALUE_LEN)
    }

    /// Returns the names of channels declared up to now.
    pub fn channels(&self) -> impl Iterator<Item = &Name> {
        self.definitions.channels().map(|(name, _)| name)
    }

    /// Returns true if the result of a command is awaited.
    pub fn awaits(&self, process: ProcessId) -> bool {
        self.core.requests().awaits_process(process).is_some()
    }

    /// Makes the machine pack each branch of a `forall` when the branch begins locally. Call the
    /// method before the run begins.
    pub fn pack_branches(&mut self) {
        self.core.parts().remote.pack_branches();
    }

    /// Takes the branches packed since the last call.
    pub fn take_packed(&mut self) -> Packed {
        self.core.parts().remote.take_packed()
    }

    /// Returns true if a random choice has been made.
    pub fn has_drawn(&self) -> bool {
        self.random.has_drawn()
    }

    /// Returns the end of the remote branch for which the machine was created; `None` if the run is
    /// not over.
    pub fn branch_ended_with(&self) -> Option<EndedBranch> {
        Some(self.core.remote().root()?.ended_with(self.outcome.as_ref()?))
    }

    /// Returns the amount of work in progress.
    pub fn in_progress(&self) -> InProgress {
        in_progress(&self.core)
    }

    /// Returns a snapshot of the run: the first `most` tasks, outer ones first, and counts of the
    /// others. `now` is the time of the snapshot.
    pub fn status(&self, most: usize, now: Time) -> Status {
        let main = self.core.tasks().main().filter(|_| self.outcome.is_none());
        take_snapshot(&self.core, main, most, now)
    }
}
