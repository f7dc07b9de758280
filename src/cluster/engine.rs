//! What an engine is asked, in words of a command, and what its answers mean. Nothing is run here.

use bstr::BString;

use super::submission::Submission;
use super::{ship, slurm, ssh};
use crate::machine::event::Blame;
use crate::syntax::clauses::Engine;

/// The command that has an engine run something on a node, with its standard streams.
pub fn submit(engine: Engine, submission: &Submission) -> Vec<BString> {
    match engine {
        Engine::Slurm => slurm::submit(submission),
        Engine::Ssh => ssh::submit(submission),
    }
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
