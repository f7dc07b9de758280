//! Batch system Slurm: `srun` submits a job for each branch and connects the standard streams.

use bstr::{BStr, BString, ByteSlice};
use nix::unistd::geteuid;

use super::{
    BatchQueue, Diagnosis, Engine, FailedSubmission, JobList, NO_PROGRAM, QueueEntry, Submission,
};
use ftsh_machine::event::Blame;
use ftsh_syntax::engine::EngineId;

/// Slurm engine.
#[derive(Debug)]
pub(crate) struct Slurm;

/// Command that submits a job.
const SRUN: &str = "srun";
/// Options that every branch needs: one task, whose standard streams are those of `srun`.
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
/// Variable that makes `srun` print a number before each line of output.
const LABEL_VARIABLE: &str = "SLURM_LABELIO";
/// Messages that say that the remaining nodes cannot run the job.
const NO_NODES: [&str; 3] = [
    "Requested node configuration is not available",
    "nodes are invalid",
    // The script names only excluded nodes.
    "Invalid node name specified",
];
/// Messages of an error that another submission cannot correct.
const REQUEST_ERRORS: [&str; 9] = [
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
/// Messages of a transient error, even beside a message of `REQUEST_ERRORS`. The authentication
/// service is overloaded.
const TRANSIENT_ERRORS: [&str; 3] = ["Munge encode failed", "authentication", "Unspecified error"];
/// Messages of an error of the node.
const NODE_ERRORS: [&str; 4] =
    ["slurmstepd", "execve()", "Unable to create TMPDIR", "Task launch for"];
/// End of the message of `srun` about a job that waits in the queue.
const QUEUED_SUFFIX: &str = " queued and waiting for resources";
/// Prefixes of options that submit the job to another cluster or for another user.
const FOREIGN_JOB_OPTIONS: [&str; 3] = ["-M", "--clus", "--ui"];
/// Prefix of variables that hide jobs from the list.
const FILTER_PREFIX: &str = "SQUEUE_";
/// Text before and after the name of a node: in messages about the end of a task, of `slurmstepd`,
/// and about failures of nodes.
const NODE_NAME_CONTEXTS: [(&str, &str); 4] = [
    ("srun: error: ", ": task "),
    ("slurmstepd-", ": "),
    ("Node failure on ", ""),
    (" failed on node ", ": "),
];
/// Parts of lines that give no reason: the end of a task, and the place of the help.
const NO_REASON: [&str; 2] = [": task 0: ", "for more information"];

impl Engine for Slurm {
    fn program(&self, _engine: EngineId) -> String {
        SRUN.into()
    }

    /// Returns a command for one task, which the engine never restarts. The directory `/` exists on
    /// each node, and the node's shell enters the right directory. The needed options come last,
    /// since the last value of an option counts.
    fn submit(&self, submission: &Submission) -> Vec<BString> {
        let words: Vec<_> = submission.words().collect();
        let exclude = exclude(&words, submission.avoid);
        let mut command = vec![SRUN.into()];
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
        !NO_REASON.iter().any(|text| line.contains(text))
    }

    fn environment_prefixes(&self) -> &'static [&'static str] {
        &["SLURM_", "SLURMD_", "SRUN_"]
    }

    /// Returns Slurm's name of the node, which may differ from the host name.
    fn node_variable(&self) -> Option<&'static str> {
        Some("SLURMD_NODENAME")
    }

    fn misleads(&self, variable: &[u8]) -> bool {
        variable == LABEL_VARIABLE.as_bytes()
    }
}

impl BatchQueue for Slurm {
    /// False for a job of another cluster or another user.
    fn shows(&self, options: &BStr) -> bool {
        let is_elsewhere = |word: &[u8]| {
            FOREIGN_JOB_OPTIONS.iter().any(|option| word.starts_with(option.as_bytes()))
        };
        !options.split(u8::is_ascii_whitespace).any(is_elsewhere)
    }

    fn list(&self, _wanted: &JobList) -> (Vec<BString>, Vec<(BString, BString)>) {
        let user = format!("--user={}", geteuid());
        let format = "--format=%i|%t|%N|%j";
        let words = ["squeue", "--noheader", "--states=PENDING,RUNNING", format, &user];
        (words.map(BString::from).into(), Vec::new())
    }

    fn is_filter(&self, variable: &[u8]) -> bool {
        variable.starts_with(FILTER_PREFIX.as_bytes())
    }

    fn parse<'a>(&self, line: &'a str) -> Option<QueueEntry<'a>> {
        let mut parts = line.splitn(4, '|');
        let (job, state, node, name) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        match state {
            "PD" => Some(QueueEntry { job, name, node: None, is_pending: true }),
            "R" => Some(QueueEntry { job, name, node: Some(node), is_pending: false }),
            _ => None,
        }
    }

    /// Returns the job if the last message about a job says that the job waits.
    fn pending_job<'a>(&self, messages: &'a str) -> Option<&'a str> {
        let last = messages.lines().rev().find_map(|it| it.trim().strip_prefix("srun: job "))?;
        last.strip_suffix(QUEUED_SUFFIX)
    }
}

/// Returns the option that excludes the nodes to avoid and the nodes that the script excludes.
/// Returns none if the script lists excluded nodes in a file.
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

/// Returns the cause of a failed submission. Most messages concern a controller that is absent,
/// restarting or overloaded.
fn blame(messages: &str) -> Blame {
    let says = |texts: &[&str]| texts.iter().any(|text| messages.contains(text));
    if says(&NO_NODES) {
        Blame::Exclusion
    } else if says(&NODE_ERRORS) || node(messages).is_some() {
        Blame::Node
    } else if says(&REQUEST_ERRORS) && !says(&TRANSIENT_ERRORS) {
        Blame::Request
    } else {
        Blame::Engine
    }
}

/// True if the node did not find the program.
fn has_no_program(messages: &str) -> bool {
    messages.contains("execve()") && messages.contains("No such file")
}

/// Returns the node that the messages name as the place of the failure.
fn node(messages: &str) -> Option<&str> {
    let is_name = |name: &&str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    messages
        .lines()
        .flat_map(|line| NODE_NAME_CONTEXTS.map(|around| (line.trim_end(), around)))
        .find_map(|(line, (before, after))| {
            let (_, rest) = line.split_once(before)?;
            let name = if after.is_empty() { rest } else { rest.split_once(after)?.0 };
            Some(name).filter(is_name)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn submitted(options: &str, avoid: &[&str]) -> String {
        let avoid: Vec<_> = avoid.iter().map(ToString::to_string).collect();
        let submission = Submission {
            engine: EngineId::Slurm,
            name: "ftsh-1",
            options: options.into(),
            avoid: &avoid,
            command: &["ftsh".into(), "--branch".into()],
            host: None,
        };
        bstr::join(" ", Slurm.submit(&submission)).as_bstr().to_string()
    }

    #[test]
    fn needed_options_follow_the_options_of_the_script() {
        let needed = NEEDED.join(" ");
        assert_eq!(
            submitted("--mem=4G  -p long", &["n1", "n2"]),
            format!(
                "srun --mem=4G -p long {needed} --job-name=ftsh-1 --exclude=n1,n2 ftsh --branch"
            )
        );
    }

    #[test]
    fn nodes_excluded_by_the_script_stay_excluded() {
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
    fn the_last_message_names_the_waiting_job() {
        let queued = "srun: Partition in DOWN state\nsrun: job 12 queued and waiting for resources";
        assert_eq!(Slurm.pending_job(queued), Some("12"));
        assert_eq!(
            Slurm.pending_job(&format!("{queued}\nsrun: job 12 has been allocated resources")),
            None
        );
        assert_eq!(Slurm.pending_job("srun: error: Unable to allocate resources"), None);
    }

    #[test]
    fn lines_of_the_list_are_parsed() {
        let running =
            QueueEntry { job: "12", name: "ftsh-x-1", node: Some("n1"), is_pending: false };
        assert_eq!(Slurm.parse("12|R|n1|ftsh-x-1"), Some(running));
        let waiting = QueueEntry { job: "13_2", name: "a|b", node: None, is_pending: true };
        assert_eq!(Slurm.parse("13_2|PD||a|b"), Some(waiting));
        assert_eq!(Slurm.parse("14|CF|n2|ftsh-x-2"), None);
        assert_eq!(Slurm.parse("slurm_load_jobs error"), None);
    }

    #[test]
    fn foreign_jobs_are_not_listed() {
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
    fn messages_are_classified() {
        for (messages, expected) in [
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
            assert_eq!(blame(messages), expected, "{messages}");
        }
    }

    #[test]
    fn nodes_are_found_in_messages() {
        for (messages, expected) in [
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
            assert_eq!(node(messages), expected, "{messages}");
            assert_eq!(blame(messages) == Blame::Node, expected.is_some(), "{messages}");
        }
    }
}
