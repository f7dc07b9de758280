//! Sessions: one script after the other in the same shell, as at a prompt.
//!
//! The script that the machine was made with is the first; usually it is empty. Each later one, a
//! *statement*, takes over variables, functions, arguments and directory, and runs in a scope of its
//! own: what a failed or cancelled one has started is gone before the next one, what a good one has
//! left running belongs to the session.

use std::sync::Arc;

use bstr::BString;

use crate::effect::ScopeId;
use crate::outcome::Outcome;
use crate::program::lower::lower;
use crate::secrets::Secrets;
use crate::tasks::task::{State, Task};
use crate::time::Time;
use crate::{MAIN, Machine, SLICE};
use ftsh_syntax::Script;
use ftsh_syntax::ast::Name;

/// The signals by which the user of a terminal cancels what runs: SIGINT and SIGQUIT.
const CANCELLING: [i32; 2] = [2, 3];

/// Longer values are of no use to a prompt.
const LONGEST: usize = 4096;

impl Machine {
    /// Goes on with another script, once the last one is over. `$error` and its kin tell of the
    /// last script that failed.
    pub fn go_on(&mut self, script: &Script) {
        let program = Arc::new(lower(script));
        self.define(&program);
        let last = self.outcome.take();
        let scope = self.new_scope(Some(ScopeId::SCRIPT));
        self.left = false;
        self.budget = SLICE;
        let Some(main) = self.tasks.get_mut(&MAIN) else { return };
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
        self.ready.clear();
        self.ready.push_back(MAIN);
    }

    /// Whether a signal cancels only what runs, if there is a session to come back to.
    pub(crate) fn is_cancelling(outcome: &Outcome) -> bool {
        matches!(outcome, Outcome::Interrupted(signal) if CANCELLING.contains(signal))
    }

    /// What isn't to be said.
    pub fn secrets(&self) -> &Secrets {
        &self.config.secrets
    }

    /// Whether the last script said `exit`, so that the session is over.
    pub fn has_left(&self) -> bool {
        self.left
    }

    /// When the whole session must end, if it must.
    pub fn deadline(&self) -> Option<Time> {
        self.config.deadline
    }

    /// What has to end for a run to end early: the statement that the user of a session cancels,
    /// or all there is.
    pub(crate) fn scope_to_end(main: &mut Task, outcome: &Outcome) -> ScopeId {
        if !Self::is_cancelling(outcome) {
            return ScopeId::SCRIPT;
        }
        // If it is ending already, or all is, then no less.
        let finishing = main.finishing().map(|(scope, _)| scope);
        finishing.unwrap_or_else(|| main.base_scope())
    }

    /// The directory of the session, if it isn't the one the shell was started in.
    pub fn working_directory(&self) -> Option<&BString> {
        self.tasks.get(&MAIN)?.directory.as_deref()
    }

    /// The functions that are defined.
    pub fn functions(&self) -> impl Iterator<Item = &Name> {
        self.functions.keys()
    }

    /// The variables that are set, with their values; none for a long one, or for what a command has
    /// written, which must be fetched first.
    pub fn variables(&self) -> Vec<(Name, Option<BString>)> {
        let Some(main) = self.tasks.get(&MAIN) else { return Vec::new() };
        main.variables.all(LONGEST)
    }
}
