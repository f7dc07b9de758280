//! What an engine is asked, in words of a command, and what its answers mean. Nothing is run here.

use bstr::BString;

use super::submission::Submission;
use super::{slurm, ssh};
use crate::machine::event::Blame;
use crate::syntax::clauses::Engine;

/// The command that has an engine run something on a node, with its standard streams.
pub fn submit(engine: Engine, submission: &Submission) -> Vec<BString> {
    match engine {
        Engine::Slurm => slurm::submit(submission),
        Engine::Ssh => ssh::submit(submission),
    }
}

/// Who is to blame that nothing came to run, by what was said and the exit code; and the line of it that
/// says why.
pub fn blame(engine: Engine, said: &str, code: Option<i32>, others: bool) -> (Blame, String) {
    let blame = match engine {
        Engine::Slurm => slurm::blame(said),
        Engine::Ssh => ssh::blame(others),
    };
    let program = match engine {
        Engine::Slurm => slurm::PROGRAM,
        Engine::Ssh => ssh::PROGRAM,
    };
    let line = said.lines().map(str::trim).rfind(|line| !line.is_empty());
    let why = match (line, code) {
        (Some(line), _) => line.to_owned(),
        (None, Some(code)) => format!("`{program}` exited with {code} and said nothing"),
        (None, None) => format!("`{program}` ended and said nothing"),
    };
    (blame, why)
}
