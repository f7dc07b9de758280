//! The batch system Slurm: a job for each branch, by `srun`, which keeps the streams of what runs there.

use bstr::{BStr, BString, ByteSlice};
use nix::unistd::geteuid;

use super::{BatchQueue, Diagnosis, Engine, FailedSubmission, NO_PROGRAM, QueueEntry, Submission};
use ftsh_machine::event::Blame;

/// The engine.
#[derive(Debug)]
pub(crate) struct Slurm;

/// What every branch needs. Its streams are those of the command, and its standard input is one task's.
const NEEDED: [&str; 9] = [
    "--ntasks=1",
    "--nodes=1",
    "--chdir=/",
    "--unbuffered",
    "--quit-on-interrupt",
    "--kill-on-bad-exit=0",
    "--input=all",
    "--output=all",
    "--error=all",
];
/// The variable that has each line of what is printed begin with a number.
const LABEL: &str = "SLURM_LABELIO";
/// What says that the machines that are left can't have it.
const NO_NODES: [&str; 3] = [
    "Requested node configuration is not available",
    "nodes are invalid",
    // Those that the script names are excluded.
    "Invalid node name specified",
];
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
/// What passes, whatever else is said: who vouches for users has too much to do.
const PASSING: [&str; 3] = ["Munge encode failed", "authentication", "Unspecified error"];
/// What the machine is to blame for.
const OF_THE_NODE: [&str; 4] =
    ["slurmstepd", "execve()", "Unable to create TMPDIR", "Task launch for"];
/// What `srun` says of a job that has to wait.
const QUEUED: &str = " queued and waiting for resources";
/// How options begin by which a job is another cluster's or another user's.
const ELSEWHERE: [&str; 3] = ["-M", "--clus", "--ui"];
/// How variables begin that keep jobs out of the list.
const FILTERS: &str = "SQUEUE_";
/// What stands around the name of a machine: how a task ended, what its keeper says, and what became of it.
const NAMES_A_NODE: [(&str, &str); 4] = [
    ("srun: error: ", ": task "),
    ("slurmstepd-", ": "),
    ("Node failure on ", ""),
    (" failed on node ", ": "),
];
/// A line with one of these says how a task ended, or where help is, but not why.
const SAYS_NOTHING: [&str; 2] = [": task 0: ", "for more information"];

impl Engine for Slurm {
    fn program(&self) -> &'static str {
        "srun"
    }

    /// Returns a command for one task, which the engine itself never begins again, in a directory that exists
    /// everywhere. The node's shell enters the right directory. The needed options come last, since the last
    /// word of an option counts.
    fn submit(&self, submission: &Submission) -> Vec<BString> {
        let words: Vec<_> = submission.words().collect();
        let exclude = exclude(&words, submission.avoid);
        let mut command = vec![self.program().into()];
        command.extend(words);
        command.extend(NEEDED.map(BString::from));
        // The list shows this name.
        command.push(format!("--job-name={}", submission.name).into());
        command.extend(exclude);
        command.extend_from_slice(submission.command);
        command
    }

    fn queue(&self) -> Option<&dyn BatchQueue> {
        Some(self)
    }

    fn classify(&self, failure: &FailedSubmission) -> Diagnosis {
        let messages = failure.messages;
        Diagnosis {
            blame: blame(messages),
            node: node(messages).map(ToOwned::to_owned),
            advice: has_no_program(messages).then_some(NO_PROGRAM),
        }
    }

    fn is_reason(&self, line: &str) -> bool {
        !SAYS_NOTHING.iter().any(|text| line.contains(text))
    }

    fn environment_prefixes(&self) -> &'static [&'static str] {
        &["SLURM_", "SLURMD_", "SRUN_"]
    }

    /// The machine may have another name for itself.
    fn node_variable(&self) -> Option<&'static str> {
        Some("SLURMD_NODENAME")
    }

    fn misleads(&self, variable: &[u8]) -> bool {
        variable == LABEL.as_bytes()
    }
}

impl BatchQueue for Slurm {
    /// Jobs of another cluster or another user are not in the list.
    fn shows(&self, options: &BStr) -> bool {
        let is_elsewhere =
            |word: &[u8]| ELSEWHERE.iter().any(|option| word.starts_with(option.as_bytes()));
        !options.split(u8::is_ascii_whitespace).any(is_elsewhere)
    }

    fn list(&self) -> Vec<BString> {
        let user = format!("--user={}", geteuid());
        let format = "--format=%i|%t|%N|%j";
        ["squeue", "--noheader", "--states=PENDING,RUNNING", format, &user]
            .map(BString::from)
            .into()
    }

    fn is_filter(&self, variable: &[u8]) -> bool {
        variable.starts_with(FILTERS.as_bytes())
    }

    fn parse<'a>(&self, line: &'a str) -> Option<QueueEntry<'a>> {
        let mut parts = line.splitn(4, '|');
        let (job, state, node, name) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        match state {
            "PD" => Some(QueueEntry { job, name, node: None }),
            "R" => Some(QueueEntry { job, name, node: Some(node) }),
            _ => None,
        }
    }

    /// The last message about a job counts.
    fn pending_job<'a>(&self, messages: &'a str) -> Option<&'a str> {
        let last = messages.lines().rev().find_map(|it| it.trim().strip_prefix("srun: job "))?;
        last.strip_suffix(QUEUED)
    }
}

/// What has machines avoided, those that the script's words exclude among them. If these are in a file, ours are
/// not.
fn exclude(words: &[BString], avoid: &[String]) -> Option<BString> {
    let next = |at: usize| words.get(at + 1).map(|word| word.as_bstr());
    let theirs = words.iter().enumerate().rev().find_map(|(at, word)| {
        let value =
            ["--exclude=", "-x"].iter().find_map(|option| word.strip_prefix(option.as_bytes()));
        match value {
            Some(b"") => next(at),
            None if *word == "--exclude" => next(at),
            value => value.map(BStr::new),
        }
    });
    let is_file = theirs.is_some_and(|theirs| theirs.contains(&b'/'));
    (!avoid.is_empty() && !is_file).then(|| {
        let theirs = theirs.map(|theirs| format!("{theirs},")).unwrap_or_default();
        format!("--exclude={theirs}{}", avoid.join(",")).into()
    })
}

/// Who is to blame that nothing came to run. Most of what it says is of a controller that isn't there, is
/// restarting or has too much to do.
fn blame(said: &str) -> Blame {
    let says = |texts: &[&str]| texts.iter().any(|text| said.contains(text));
    if says(&NO_NODES) {
        Blame::Exclusion
    } else if says(&OF_THE_NODE) || node(said).is_some() {
        Blame::Node
    } else if says(&MISTAKES) && !says(&PASSING) {
        Blame::Request
    } else {
        Blame::Engine
    }
}

/// Whether the machine didn't find what it was to run.
fn has_no_program(said: &str) -> bool {
    said.contains("execve()") && said.contains("No such file")
}

/// The machine on which it went wrong, if that is said.
fn node(said: &str) -> Option<&str> {
    let is_name = |name: &&str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    said.lines().flat_map(|line| NAMES_A_NODE.map(|around| (line.trim_end(), around))).find_map(
        |(line, (before, after))| {
            let (_, rest) = line.split_once(before)?;
            let name = if after.is_empty() { rest } else { rest.split_once(after)?.0 };
            Some(name).filter(is_name)
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn submitted(options: &str, avoid: &[&str]) -> String {
        let avoid: Vec<_> = avoid.iter().map(ToString::to_string).collect();
        let submission = Submission {
            name: "ftsh-1",
            options: options.into(),
            avoid: &avoid,
            command: &["ftsh".into(), "--branch".into()],
            host: None,
        };
        bstr::join(" ", Slurm.submit(&submission)).as_bstr().to_string()
    }

    #[test]
    fn what_a_branch_needs_comes_after_the_options_of_the_script() {
        let needed = NEEDED.join(" ");
        assert_eq!(
            submitted("--mem=4G  -p long", &["n1", "n2"]),
            format!(
                "srun --mem=4G -p long {needed} --job-name=ftsh-1 --exclude=n1,n2 ftsh --branch"
            )
        );
    }

    #[test]
    fn machines_that_the_script_excludes_stay_so() {
        for (options, expected) in [
            ("--exclude=a,b", Some("a,b,n1")),
            ("-x a --mem=4G", Some("a,n1")),
            ("-xa", Some("a,n1")),
            ("--exclude a -x b", Some("b,n1")),
            ("--exclusive", Some("n1")),
            ("--exclude=/etc/bad", None),
        ] {
            let command = submitted(options, &["n1"]);
            let ours = command.split(' ').skip_while(|word| *word != "--job-name=ftsh-1").nth(1);
            let ours = ours.and_then(|word| word.strip_prefix("--exclude="));
            assert_eq!(ours, expected, "{command}");
            assert!(submitted(options, &[]).ends_with("--job-name=ftsh-1 ftsh --branch"));
        }
    }

    #[test]
    fn what_waits_is_told_by_the_last_word() {
        let queued = "srun: Partition in DOWN state\nsrun: job 12 queued and waiting for resources";
        assert_eq!(Slurm.pending_job(queued), Some("12"));
        assert_eq!(
            Slurm.pending_job(&format!("{queued}\nsrun: job 12 has been allocated resources")),
            None
        );
        assert_eq!(Slurm.pending_job("srun: error: Unable to allocate resources"), None);
    }

    #[test]
    fn what_the_list_says() {
        let running = QueueEntry { job: "12", name: "ftsh-x-1", node: Some("n1") };
        assert_eq!(Slurm.parse("12|R|n1|ftsh-x-1"), Some(running));
        let waiting = QueueEntry { job: "13_2", name: "a|b", node: None };
        assert_eq!(Slurm.parse("13_2|PD||a|b"), Some(waiting));
        assert_eq!(Slurm.parse("14|CF|n2|ftsh-x-2"), None);
        assert_eq!(Slurm.parse("slurm_load_jobs error"), None);
    }

    #[test]
    fn what_is_not_in_the_list() {
        for (options, expected) in [
            ("", true),
            ("--mem=4G -p long", true),
            ("-M other", false),
            ("-p x --clusters=b", false),
        ] {
            assert_eq!(Slurm.shows(options.into()), expected, "{options}");
        }
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
            (
                "srun: error: slurm_buffers_pack_msg: auth_g_create: REQUEST_RESOURCE_ALLOCATION has authentication error: Invalid authentication credential\nsrun: error: Unable to allocate resources: Unspecified error",
                Blame::Engine,
            ),
            ("", Blame::Engine),
            (
                "srun: error: Unable to allocate resources: Requested node configuration is not available",
                Blame::Exclusion,
            ),
            (
                "srun: error: Unable to allocate resources: Invalid node name specified",
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

    #[test]
    fn machines_that_are_named() {
        for (said, expected) in [
            ("srun: error: n-1: task 0: Exited with exit code 1", Some("n-1")),
            ("srun: Force Terminated StepId=24.0\nsrun: error: n1: task 0: Killed", Some("n1")),
            (
                "slurmstepd-n2: error: run_command: slurm task_prolog can not be executed (/x) Permission denied\n\
                 srun: error: n2: task 0: Exited with exit code 1",
                Some("n2"),
            ),
            ("srun: error: Node failure on n3", Some("n3")),
            (
                "srun: error: Task launch for StepId=2.0 failed on node n4: Communication connection failure",
                Some("n4"),
            ),
            ("srun: error: Unable to allocate resources: Invalid partition name specified", None),
            ("srun: job 4 queued and waiting for resources", None),
        ] {
            assert_eq!(node(said), expected, "{said}");
            assert_eq!(blame(said) == Blame::Node, expected.is_some(), "{said}");
        }
    }
}
