//! Driver with two engines that exist only in these tests.
//!
//! A driver owns the signals and children of its process, so the test runs in a separate process.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use bstr::{BStr, BString};

use super::engines::{
    BatchQueue, Diagnosis, Engine, FailedSubmission, JobList, QueueEntry, Submission,
};
use super::{ClusterConfig, ClusterDriver, engines};
use ftsh_machine::event::Blame;
use ftsh_machine::{Config, Machine, Outcome, driver};
use ftsh_process::{Attachments, ProcessConfig, ProcessDriver};
use ftsh_syntax::engine::EngineId;

/// Set in the process that runs the body of a test; names a directory.
const DIRECTORY: &str = "FTSH_TEST_DIRECTORY";

/// Batch system whose queue is a file.
#[derive(Debug)]
struct Batch(&'static str);

/// Waits in the queue until both engines have been polled often enough, then refuses the job.
const SUBMIT: &str = r#"cd "$FTSH_TEST_DIRECTORY"
trap 'echo "$1" >> returned_early; exit' TERM
echo "$1$$|x" >> "queue.$1"
echo "$1" >> submitted
echo "queued $1$$" >&2
until [ "$(sort polls | uniq -c | awk '{ n += $1 > 3 } END { print n + 0 }')" = 2 ] || [ -e returned_early ]; do
    sleep 0.01
done
echo refused >&2
exit 1"#;
const LIST: &str = r#"cd "$FTSH_TEST_DIRECTORY"; cat "queue.$1"; echo "$1" >> polls"#;

impl Batch {
    fn shell(&self, script: &str) -> Vec<BString> {
        ["sh", "-c", script, "sh", self.0].map(BString::from).into()
    }
}

impl Engine for Batch {
    fn program(&self, _engine: EngineId) -> String {
        "sh".into()
    }

    fn submit(&self, _submission: &Submission) -> Vec<BString> {
        self.shell(SUBMIT)
    }

    fn queue(&self) -> Option<&dyn BatchQueue> {
        Some(self)
    }

    fn classify(&self, failure: &FailedSubmission) -> Diagnosis {
        let is_refused = failure.messages.contains("refused");
        let blame = if is_refused { Blame::Request } else { Blame::Engine };
        Diagnosis { blame, node: None, advice: None }
    }
}

impl BatchQueue for Batch {
    fn shows(&self, _options: &BStr) -> bool {
        true
    }

    fn list(&self, _wanted: &JobList) -> (Vec<BString>, Vec<(BString, BString)>) {
        (self.shell(LIST), Vec::new())
    }

    fn parse<'a>(&self, line: &'a str) -> Option<QueueEntry<'a>> {
        let (job, name) = line.split_once('|')?;
        Some(QueueEntry { job, name, node: None, is_pending: true })
    }

    fn pending_job<'a>(&self, messages: &'a str) -> Option<&'a str> {
        messages.lines().next_back()?.strip_prefix("queued ")
    }
}

fn implementation(engine: EngineId) -> &'static dyn Engine {
    match engine {
        EngineId::Slurm => &Batch("a"),
        EngineId::Ssh | EngineId::Carrier(_) => &Batch("b"),
    }
}

/// Runs the body in another process, with a directory for the engines.
fn alone(path: &str, body: fn(&Path)) {
    let name = path.split_once("::").map_or(path, |(_crate, rest)| rest);
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        ftsh_sys::ignore_only(&[]);
        return body(Path::new(&directory));
    }
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("polls"), "").expect("a file");
    let programs = std::env::var("PATH").expect("a path");
    let output = Command::new(std::env::current_exe().expect("a test has a program"))
        .args(["--exact", name, "--nocapture"])
        .env(DIRECTORY, directory.path())
        .env("PATH", format!("{}:{programs}", directory.path().display()))
        .stdin(Stdio::null())
        .output()
        .expect("a test can start itself");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}{errors}");
}

/// Runs a script with polls in quick succession.
fn run(script: &str, implementation: fn(EngineId) -> &'static dyn Engine) -> Outcome {
    let script = ftsh_syntax::parse("script", script).expect("a script");
    let mut machine = Machine::new(&script, Vec::new(), Vec::new(), Config::default(), 1);
    let inner =
        ProcessDriver::new(ProcessConfig::default(), Attachments::default()).expect("a driver");
    let lease = Duration::from_secs(60);
    let mut cluster = ClusterDriver::new(inner, ClusterConfig { lease, ship: false });
    cluster.implementation = implementation;
    cluster.first_poll = Duration::from_millis(20);
    let outcome = driver::run(&mut machine, &mut cluster);
    cluster.wait_for_engines();
    outcome
}

/// A list of one engine says nothing about the jobs of another engine.
#[test]
fn each_engine_has_its_own_queue() {
    alone(concat!(module_path!(), "::each_engine_has_its_own_queue"), |directory| {
        let script = "forall engine in a b keep going\n\
                      if $engine .eq. a\nforall x in one on slurm\ntrue\nend\n\
                      else\nforall x in one on ssh host\ntrue\nend\nend\nend";
        let outcome = run(script, implementation);
        let read = |name: &str| fs::read_to_string(directory.join(name)).unwrap_or_default();
        assert_eq!(read("returned_early"), "", "these engines are said to have forgotten a job");
        let mut submitted: Vec<_> = read("submitted").lines().map(ToOwned::to_owned).collect();
        submitted.sort();
        assert_eq!(submitted, ["a", "b"], "{outcome:?}");
    });
}

/// Carrier with three clauses: the list of one always shows the job, that of the next shows it
/// once, fails, and then shows nothing, and that of the last always fails. Jobs wait until one is
/// canceled.
const CARRIER: &str = r#"#!/bin/sh
cd "$FTSH_TEST_DIRECTORY"
call=$1
shift
case $call in
run)
    echo queued >&3
    until [ -e canceled ]; do sleep 0.01; done
    echo "refused request one was canceled" >&3 ;;
list)
    echo "$FTSH_CARRY_WORDS" >> lists
    case $FTSH_CARRY_WORDS$(grep -c forgets lists) in
    busy*|forgets1) echo "$1 waiting" ;;
    fails*|forgets2) exit 1 ;;
    esac ;;
cancel) echo "$FTSH_CARRY_WORDS" >> canceled ;;
esac
"#;

/// The clauses take turns. A list that fails is called again only if it has answered before.
#[test]
fn each_clause_of_a_carrier_has_its_own_list() {
    alone(concat!(module_path!(), "::each_clause_of_a_carrier_has_its_own_list"), |directory| {
        let carrier = directory.join("ftsh-carry-clauses");
        fs::write(&carrier, CARRIER).expect("a file");
        fs::set_permissions(&carrier, Permissions::from_mode(0o700)).expect("a program");
        let script = "try for 20 seconds or 1 time\nforall x in busy forgets fails keep going\n\
                      forall y in one on clauses $x\ntrue\nend\nend\nend";
        let outcome = run(script, engines::of);
        let read = |name: &str| fs::read_to_string(directory.join(name)).expect("a file");
        let (canceled, lists) = (read("canceled"), read("lists"));
        assert_eq!(canceled.lines().next(), Some("forgets"), "{lists}{outcome:?}");
        assert_eq!(lists.lines().filter(|words| *words == "fails").count(), 1, "{lists}");
    });
}
