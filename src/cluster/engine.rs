//! What an engine is asked, in words of a command, and what its answers mean. Nothing is run here.

use std::sync::Arc;

use bstr::{BStr, BString};

use super::submission::Submission;
use super::{ship, slurm, ssh};
use crate::machine::effect::Environment;
use crate::machine::event::Blame;
use crate::syntax::clauses::Engine;

/// The command that has an engine run something on a node, with its standard streams.
pub fn submit(engine: Engine, submission: &Submission) -> Vec<BString> {
    match engine {
        Engine::Slurm => slurm::submit(submission),
        Engine::Ssh => ssh::submit(submission),
    }
}

/// Whether the engine's list has what was submitted with these options, if that has to wait.
pub fn is_listed(engine: Engine, options: &BStr) -> bool {
    match engine {
        Engine::Slurm => slurm::is_listed(options),
        Engine::Ssh => false,
    }
}

/// The job that waits in the engine's queue, by what the command has said that brought it there.
pub fn waits_as(engine: Engine, said: &str) -> Option<&str> {
    match engine {
        Engine::Slurm => slurm::waits_as(said),
        Engine::Ssh => None,
    }
}

/// The command that lists the jobs that wait, one a line.
pub fn list(engine: Engine) -> Vec<BString> {
    match engine {
        Engine::Slurm => slurm::list(),
        Engine::Ssh => Vec::new(),
    }
}

/// The environment of that.
pub fn asking(engine: Engine, environment: &Environment) -> Arc<Environment> {
    let is_wanted = |name: &BString| match engine {
        Engine::Slurm => !name.starts_with(slurm::FILTERS.as_bytes()),
        Engine::Ssh => true,
    };
    let wanted = environment.iter().filter(|(name, _)| is_wanted(name));
    Arc::new(wanted.map(|(name, value)| (name.clone(), value.clone())).collect())
}

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
pub fn reason(engine: Engine, said: &str, code: Option<i32>, others: bool) -> Reason {
    let (program, blame, node) = match engine {
        Engine::Slurm => (slurm::PROGRAM, slurm::blame(said), slurm::node(said)),
        Engine::Ssh => (ssh::PROGRAM, ssh::blame(others), None),
    };
    // The engine has done its part.
    let blame = if said.contains(ship::COMPLAINT) { Blame::Node } else { blame };
    let lines = || said.lines().map(str::trim).filter(|line| !line.is_empty());
    let telling = lines().rfind(|line| !line.contains(slurm::SAYS_NOTHING));
    let why = match (telling.or_else(|| lines().next_back()), code) {
        (Some(line), _) => line.to_owned(),
        (None, Some(code)) => format!("`{program}` exited with {code} and said nothing"),
        (None, None) => format!("`{program}` ended and said nothing"),
    };
    Reason { blame, node: node.map(ToOwned::to_owned), why }
}
