//! Environment variables that the shell sets for its commands.

use std::time::Duration;

use bstr::BString;

use super::config::ProcessConfig;
use super::processes::Processes;
use crate::clock::RunClock;
use crate::paths::TaskDirectory;
use crate::tag::{KillTimeout, LimitGrants, LimitTexts};
use ftsh_machine::effect::{Environment, ScopeId};
use ftsh_machine::time::Deadline;

/// Settings and time limits that commands inherit.
pub(super) struct CommandEnvironment {
    config: ProcessConfig,
    clock: RunClock,
    limit_texts: LimitTexts,
}

impl CommandEnvironment {
    /// Creates the environment for commands of a run.
    pub(super) fn new(config: ProcessConfig, clock: RunClock) -> Self {
        Self { config, clock, limit_texts: LimitTexts::default() }
    }

    /// Returns the variables in the environment of every command.
    pub(super) fn of_all(&self) -> &[(&'static str, BString)] {
        &self.config.child_env
    }

    /// Returns the kill timeout for shells inside a command.
    pub(super) fn kill_timeout(&self, grace: Option<Duration>) -> KillTimeout {
        grace.map_or(self.config.kill_timeout, |grace| KillTimeout::of(grace).inside())
    }

    /// Returns the variables for a command with a deadline in a directory, whose script exports
    /// these.
    pub(super) fn variables(
        &self,
        deadline: Deadline,
        kill_timeout: KillTimeout,
        directory: &TaskDirectory,
        exported: &Environment,
    ) -> Vec<(&'static str, BString)> {
        let mut child_env = self.config.child_env.clone();
        if kill_timeout != self.config.kill_timeout
            && let Some((_, time)) =
                child_env.iter_mut().find(|(name, _)| *name == KillTimeout::VARIABLE)
        {
            *time = kill_timeout.written().into();
        }
        if let Some(directory) = &directory.path
            && exported.iter().any(|(name, _)| name == "PWD")
        {
            child_env.push(("PWD", BString::clone(directory)));
        }
        if let Some(moment) = deadline.moment() {
            child_env.push((LimitGrants::VARIABLE, self.limit_texts.of(moment, &self.clock)));
        }
        child_env
    }

    /// Returns the tag notes about the time limit of a scope.
    pub(super) fn grants(
        &self,
        processes: &mut Processes,
        scope: ScopeId,
        deadline: Deadline,
    ) -> String {
        if deadline == Deadline::NONE {
            return String::new();
        }
        let text = |it: Deadline| {
            it.moment().map(|it| self.limit_texts.of(it, &self.clock)).unwrap_or_default()
        };
        processes.note_grants(scope, deadline, text)
    }
}
