//! What an engine is asked, in words of a command, and what its answers mean. Nothing is run here.

use std::sync::Arc;

use bstr::{BStr, BString};

use super::listed::Listed;
use super::submission::Submission;
use super::{ship, slurm, ssh};
use ftsh_machine::effect::Environment;
use ftsh_machine::event::Blame;
use ftsh_syntax::engine::EngineId;

/// The command that has an engine run something on a node, with its standard streams.
pub fn submit(engine: EngineId, submission: &Submission) -> Vec<BString> {
    match engine {
        EngineId::Slurm => slurm::submit(submission),
        EngineId::Ssh => ssh::submit(submission),
    }
}

/// Whether the engine's list has what was submitted with these options, if that has to wait.
pub fn is_listed(engine: EngineId, options: &BStr) -> bool {
    match engine {
        EngineId::Slurm => slurm::is_listed(options),
        EngineId::Ssh => false,
    }
}

/// The job that waits in the engine's queue, by what the command has said that brought it there.
pub fn waits_as(engine: EngineId, said: &str) -> Option<&str> {
    match engine {
        EngineId::Slurm => slurm::waits_as(said),
        EngineId::Ssh => None,
    }
}

/// What a line of the list says.
pub fn listed(engine: EngineId, line: &str) -> Option<Listed<'_>> {
    match engine {
        EngineId::Slurm => slurm::listed(line),
        EngineId::Ssh => None,
    }
}

/// The command that lists the jobs that wait or run, one a line.
pub fn list(engine: EngineId) -> Vec<BString> {
    match engine {
        EngineId::Slurm => slurm::list(),
        EngineId::Ssh => Vec::new(),
    }
}

/// The environment of that.
pub fn asking(engine: EngineId, environment: &Environment) -> Arc<Environment> {
    let is_wanted = |name: &BString| match engine {
        EngineId::Slurm => !name.starts_with(slurm::FILTERS.as_bytes()),
        EngineId::Ssh => true,
    };
    let wanted = environment.iter().filter(|(name, _)| is_wanted(name));
    Arc::new(wanted.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// Whether a variable would have an engine's command do something else than it is asked.
pub fn is_misleading(variable: &[u8]) -> bool {
    variable == slurm::LABEL.as_bytes()
}

/// What helps where the program isn't.
const NO_PROGRAM: &str = "ftsh must be there at the same path, or be sent along by `--ship`";

/// Why nothing came to run.
#[derive(Debug)]
pub struct Reason {
    /// Who is to blame.
    pub blame: Blame,
    /// The machine, if one is named that nobody answered from.
    pub node: Option<String>,
    /// The line of what was said that says why.
    pub why: String,
}

/// Why nothing came to run, by what was said and the exit code.
pub fn reason(engine: EngineId, said: &str, code: Option<i32>, others: bool) -> Reason {
    let (program, blame, node) = match engine {
        EngineId::Slurm => (slurm::PROGRAM, slurm::blame(said), slurm::node(said)),
        EngineId::Ssh => (ssh::PROGRAM, ssh::blame(others), None),
    };
    let is_sent = ship::complains(said);
    // The engine has done its part.
    let blame = if is_sent { Blame::Node } else { blame };
    let says_why = |line: &str| match engine {
        EngineId::Slurm => slurm::says_why(line),
        EngineId::Ssh => true,
    };
    let lines = || said.lines().map(str::trim).filter(|line| !line.is_empty());
    let telling = lines().rfind(|line| says_why(line));
    let why = match (telling.or_else(|| lines().next_back()), code) {
        (Some(line), _) => line.to_owned(),
        (None, Some(code)) => format!("`{program}` exited with {code} and said nothing"),
        (None, None) => format!("`{program}` ended and said nothing"),
    };
    let advice = match engine {
        _ if is_sent => None,
        // What says that there is no such program.
        EngineId::Ssh if code == Some(127) => Some(NO_PROGRAM),
        EngineId::Slurm if slurm::has_no_program(said) => Some(NO_PROGRAM),
        EngineId::Ssh => ssh::advice(said),
        EngineId::Slurm => None,
    };
    let why = advice.map_or_else(|| why.clone(), |advice| format!("{why}; {advice}"));
    Reason { blame, node: node.map(ToOwned::to_owned), why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_comes_with_what_helps() {
        for (engine, said, code, why) in [
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
            assert_eq!(reason(engine, said, code, true).why, why);
        }
    }
}
