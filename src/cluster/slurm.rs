//! The batch system Slurm: a job for each branch, by `srun`, which keeps the streams of what runs there.

use bstr::BString;

use super::submission::Submission;
use crate::machine::event::Blame;

/// The command.
pub const PROGRAM: &str = "srun";

/// What says that the machines that are left can't have it.
const NO_NODES: [&str; 2] = ["Requested node configuration is not available", "nodes are invalid"];
/// What asking once more doesn't help.
const MISTAKES: [&str; 9] = [
    "nrecognized option",
    "nvalid",
    "requires an argument",
    "is ambiguous",
    "not allowed",
    "denied",
    "No such file or directory: srun",
    "can't be found",
    "More processors requested",
];
/// What the machine is to blame for.
const OF_THE_NODE: [&str; 3] = ["execve()", "Unable to create TMPDIR", "Task launch for"];

/// What has it run something: one task, which is never begun anew by the engine itself, in a directory that
/// there is everywhere, as the right one is entered by the node's shell.
pub fn submit(submission: &Submission) -> Vec<BString> {
    let mut command: Vec<BString> = [
        PROGRAM,
        "--ntasks=1",
        "--nodes=1",
        "--chdir=/",
        "--unbuffered",
        "--quit-on-interrupt",
        "--kill-on-bad-exit=0",
    ]
    .map(BString::from)
    .into();
    command.push(format!("--job-name={}", submission.name).into());
    if !submission.avoid.is_empty() {
        command.push(format!("--exclude={}", submission.avoid.join(",")).into());
    }
    command.extend(submission.words());
    command.extend_from_slice(submission.command);
    command
}

/// Who is to blame that nothing came to run. Most of what it says is of a controller that isn't there, is
/// restarting or has too much to do.
pub fn blame(said: &str) -> Blame {
    let says = |texts: &[&str]| texts.iter().any(|text| said.contains(text));
    if says(&NO_NODES) {
        Blame::Exclusion
    } else if says(&OF_THE_NODE) {
        Blame::Node
    } else if says(&MISTAKES) {
        Blame::Request
    } else {
        Blame::Engine
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_of_the_script_come_last() {
        let submission = Submission {
            name: "ftsh-1",
            options: "--mem=4G  -p long".into(),
            avoid: &["n1".into(), "n2".into()],
            command: &["ftsh".into(), "--branch".into()],
            host: None,
        };
        let command = submit(&submission).join(&b' ');
        let end = "--job-name=ftsh-1 --exclude=n1,n2 --mem=4G -p long ftsh --branch";
        assert!(command.ends_with(end.as_bytes()), "{command:?}");
    }

    #[test]
    fn who_is_to_blame() {
        for (said, expected) in [
            (
                "srun: error: Unable to allocate resources: Unable to contact slurm controller (connect failure)",
                Blame::Engine,
            ),
            (
                "srun: error: Unable to allocate resources: Socket timed out on send/recv operation",
                Blame::Engine,
            ),
            ("", Blame::Engine),
            (
                "srun: error: Unable to allocate resources: Requested node configuration is not available",
                Blame::Exclusion,
            ),
            (
                "srun: error: invalid partition specified: nope\nsrun: error: Unable to allocate resources: Invalid partition name specified",
                Blame::Request,
            ),
            (
                "srun: unrecognized option '--nope'\nTry \"srun --help\" for more information",
                Blame::Request,
            ),
            (
                "slurmstepd: error: execve(): /x/ftsh: No such file or directory\nsrun: error: n1: task 0: Exited with exit code 2",
                Blame::Node,
            ),
        ] {
            assert_eq!(blame(said), expected, "{said}");
        }
    }
}
