//! Engines: the commands that start branches on other machines, and the meaning of their messages.
//!
//! Each engine is a file; all carriers are one engine. Nothing runs here.

mod carrier;
mod queue;
mod slurm;
mod ssh;
mod submission;

use std::ffi::OsString;
use std::fmt::Debug;

use bstr::BString;

pub(crate) use self::carrier::Notice;
pub(crate) use self::queue::{BatchQueue, JobList, QueueEntry};
pub(crate) use self::submission::Submission;
use super::ship;
use ftsh_machine::event::Blame;
use ftsh_syntax::engine::EngineId;

/// Engine that starts branches on other machines.
pub(crate) trait Engine: Debug {
    /// Returns the name of the command that [`submit`](Self::submit) runs.
    fn program(&self, engine: EngineId) -> String;

    /// Returns the command that runs `submission.command` on a node and connects the standard
    /// streams of both. An engine that chooses the node leaves out the nodes to avoid.
    fn submit(&self, submission: &Submission) -> Vec<BString>;

    /// Returns variables for the command, beside those of this shell.
    fn variables(&self, _submission: &Submission) -> Vec<(BString, BString)> {
        Vec::new()
    }

    /// True for a carrier, which reports on descriptor 3, and whose jobs end by its `cancel` only.
    fn is_carrier(&self) -> bool {
        false
    }

    /// Returns the queue that branches wait in, if the engine has a queue.
    fn queue(&self) -> Option<&dyn BatchQueue> {
        None
    }

    /// Classifies the failure of a branch that did not begin.
    fn classify(&self, failure: &FailedSubmission) -> Diagnosis;

    /// True if a line of the messages of a failed submission gives the reason.
    fn is_reason(&self, _line: &str) -> bool {
        true
    }

    /// Returns the prefixes of variables that the engine sets on a node. The run's variables with
    /// such a prefix are not sent to other machines.
    fn environment_prefixes(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns the variable in which a node finds the name that the engine has for the node.
    fn node_variable(&self) -> Option<&'static str> {
        None
    }

    /// True for a variable here that would change the effect of [`submit`](Self::submit).
    fn misleads(&self, _variable: &[u8]) -> bool {
        false
    }
}

/// End of a submission whose branch did not begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FailedSubmission<'a> {
    /// Messages on both standard streams.
    pub messages: &'a str,
    /// Exit code of the engine's command, unless a signal killed the command.
    pub code: Option<i32>,
    /// True if the shell has other hosts to choose from.
    pub has_other_hosts: bool,
}

/// Meaning of a [`FailedSubmission`].
#[derive(Debug)]
pub(crate) struct Diagnosis {
    /// Cause of the failure, which decides when and where the branch is submitted again.
    pub blame: Blame,
    /// Node that the messages name.
    pub node: Option<String>,
    /// Advice for people.
    pub advice: Option<&'static str>,
}

/// Advice if the program of a branch is not on the node.
const NO_PROGRAM: &str = "ftsh must be there at the same path, or be sent along by `--ship`";

/// Returns the implementation of an engine.
pub(crate) fn of(engine: EngineId) -> &'static dyn Engine {
    match engine {
        EngineId::Slurm => &slurm::Slurm,
        EngineId::Ssh => &ssh::Ssh,
        EngineId::Carrier(_) => &carrier::Carrier,
    }
}

fn all() -> impl Iterator<Item = &'static dyn Engine> {
    EngineId::BUILT_IN.into_iter().map(of).chain([&carrier::Carrier as &dyn Engine])
}

/// True for a variable that would change the effect of an engine's command.
pub(crate) fn is_misleading(variable: &[u8]) -> bool {
    all().any(|engine| engine.misleads(variable))
}

/// True for a variable that is for a carrier only, and not for the branch.
pub fn is_for_carrier(variable: &[u8]) -> bool {
    carrier::Carrier.misleads(variable)
}

/// Returns the prefixes of variables that engines set on nodes.
pub fn environment_prefixes() -> impl Iterator<Item = &'static str> {
    all().flat_map(Engine::environment_prefixes).copied()
}

/// Returns the name that an engine has for this machine, if an engine started this shell.
pub fn node_name() -> Option<OsString> {
    all().filter_map(Engine::node_variable).find_map(std::env::var_os)
}

/// Reason why a branch did not begin.
#[derive(Debug)]
pub(crate) struct StartRefusal {
    /// Cause of the failure.
    pub blame: Blame,
    /// Node that the engine named, if the node did not answer itself.
    pub node: Option<String>,
    /// Line of the messages that gives the reason, with advice.
    pub why: String,
}

/// Returns the reason of a failure.
pub(crate) fn reason(
    id: EngineId,
    engine: &dyn Engine,
    failure: &FailedSubmission,
) -> StartRefusal {
    let FailedSubmission { messages, code, .. } = *failure;
    let Diagnosis { mut blame, node, mut advice } = engine.classify(failure);
    if ship::is_transfer_error(messages) {
        // The engine has started the command on the node.
        (blame, advice) = (Blame::Node, None);
    }
    let lines = || messages.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines().rfind(|line| engine.is_reason(line)).or_else(|| lines().next_back());
    let program = engine.program(id);
    let why = match (line, code) {
        (Some(line), _) => line.to_owned(),
        (None, Some(code)) => format!("`{program}` exited with {code} and said nothing"),
        (None, None) => format!("`{program}` ended and said nothing"),
    };
    let why = advice.map_or_else(|| why.clone(), |advice| format!("{why}; {advice}"));
    StartRefusal { blame, node, why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_come_with_advice() {
        for (engine, messages, code, why) in [
            (
                EngineId::Ssh,
                "sh: 1: exec: /x/ftsh: not found\n",
                Some(127),
                "sh: 1: exec: /x/ftsh: not found; ftsh must be there at the same path, or be sent along by `--ship`",
            ),
            (
                EngineId::Slurm,
                "slurmstepd: error: execve(): /x/ftsh: No such file or directory\nsrun: error: n1: task 0: Exited with exit code 2\n",
                Some(2),
                "slurmstepd: error: execve(): /x/ftsh: No such file or directory; ftsh must be there at the same path, or be sent along by `--ship`",
            ),
            (
                EngineId::Slurm,
                "srun: unrecognized option '--nope'\nTry \"srun --help\" for more information\n",
                Some(255),
                "srun: unrecognized option '--nope'",
            ),
            (
                EngineId::Ssh,
                "Warning: Permanently added 'h'\nme@h: Permission denied (publickey).\r\n",
                Some(255),
                "me@h: Permission denied (publickey).; it is asked without a terminal, and so needs a key that no one has to unlock",
            ),
            (
                EngineId::Ssh,
                "ftsh was sent and cannot be executed in /tmp on this Linux x86_64\n",
                Some(127),
                "ftsh was sent and cannot be executed in /tmp on this Linux x86_64",
            ),
            (EngineId::Ssh, "", None, "`ssh` ended and said nothing"),
        ] {
            let failure = FailedSubmission { messages, code, has_other_hosts: true };
            assert_eq!(reason(engine, of(engine), &failure).why, why);
        }
    }
}
