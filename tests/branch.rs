//! Branches that another process runs, as `ftsh --branch`: what it is told and says, and what is left.

use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ftsh_machine::FailureKind;
use ftsh_machine::outcome::Retry;
use ftsh_machine::packed::BranchEnd;
use ftsh_remote::{
    Branch, ERRORS_MARK, Frames, Hello, Identity, Listener, NodeLine, OPENING, Piece, StoreId,
    ToHead, ToNode, frame,
};
use ftsh_syntax::Source;
use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::branches::{
    self, LEASE, NONCE, NodeOutput, go, identity, node_output, offer, packed, ready,
};
use crate::support::run::{Running, command};
use crate::support::slurm::wait;
use crate::support::{FTSH, Ftsh, WAYS};

/// A node that is told to run the first branch of a script.
fn node(script: &str) -> Ftsh {
    waited(script, Duration::ZERO, LEASE)
}

/// A node as [`node`], with a branch that has waited.
fn waited(script: &str, waited: Duration, lease: Duration) -> Ftsh {
    let node = Ftsh::new();
    let packed = packed(script, node.directory.path()).swap_remove(0);
    branches::node(node, packed, waited, lease)
}

fn run(script: &str) -> NodeOutput {
    let finished = node(script).run();
    finished.nothing_left();
    node_output(&finished)
}

#[test]
fn a_branch_has_its_effect_and_its_record() {
    let script = "function hello\n echo hello $1 $v\nend\nok -> written\nv=5\nexport v\n\
                  forall x in one two\n hello $x\n echo $written $TMPDIR ${SLURM_X:-none} > out\n\
                  cat -< written >> out\n sh -c 'echo $v >&2'\n x=changed\nend";
    let node = node(script).env("SLURM_X", "7");
    let finished = node.run();
    finished.nothing_left().expect_code(0);
    let heard = node_output(&finished);
    let [ToHead::Hello(Hello { identity: theirs, node }), ToHead::Ready(_)] = &heard.said[..]
    else {
        panic!("{:?}", heard.said)
    };
    assert_eq!((theirs, heard.printed.as_str()), (&identity(), "hello one 5\n"));
    assert_eq!(heard.errors, "5\n");
    let directory = finished.directory.path().display();
    assert_eq!(finished.read("out"), format!("written {directory} 7\nwritten\n"));
    let record = heard.record.as_ref().expect("a record");
    assert_eq!((&record.ended.end, &record.node), (&BranchEnd::Succeeded, node));
    assert!(record.began > Duration::from_secs(1_700_000_000));
}

#[test]
fn a_record_says_how_a_branch_failed() {
    let text = "forall x in a\n try 2 times every 0 seconds\n sh -c 'exit 4'\n end\nend";
    let heard = run(text);
    let record = heard.record.as_ref().expect("a record");
    let BranchEnd::Failed { failure, again: Retry::AsUsual } = heard.end() else {
        panic!("{:?}", heard.end())
    };
    let texts = packed(text, Path::new("/")).swap_remove(0).texts;
    let source = &texts[failure[0].text].source;
    let failure = &failure[0].failure;
    assert_eq!((&**source.name(), failure.line), ("script", 3));
    assert_eq!(failure.reason(), (FailureKind::Exit, 4));
    assert_eq!((failure.tries[0].attempts, record.ended.attempts), (2, 2));
    assert!(failure.summary().starts_with("`sh -c 'exit 4'` exited with 4, 2 attempts"));
    assert!(matches!(
        run("forall x in a; giveup; end").end(),
        BranchEnd::Failed { again: Retry::Never, .. }
    ));
}

/// `exit`, `return` and `exec` end a branch, and only that.
#[test]
fn a_branch_is_none_of_a_script() {
    assert_eq!(*run("forall x in a; exit 3; end\necho after").end(), BranchEnd::Exited(3));
    let heard = run("forall x in a; return; end\necho after");
    assert_eq!((heard.end(), heard.printed.as_str()), (&BranchEnd::Succeeded, ""));
    let heard = run("forall x in a\n exec sh -c 'echo x; exit 5'\n echo more\nend\necho after");
    assert_eq!((heard.end(), heard.printed.as_str()), (&BranchEnd::Exited(5), "x\n"));
}

#[test]
fn what_was_caught_travels() {
    let script = "try 2 times every 5 seconds\n failure first\ncatch\n\
                  forall x in a; echo \"$error_kind: $error\"; end\nend";
    let heard = run(script);
    assert_eq!(heard.printed, "failure: first, 2 attempts in 5 s\n", "{:?}", heard.said);
}

/// A limit around the `forall` goes on where it stood, also while the branch has waited.
#[test]
fn a_limit_travels_as_time_left() {
    let script = "try for 100 seconds\n sleep 40\n forall x in a\n echo $remaining\n end\nend";
    let waited = |seconds| node_output(&waited(script, Duration::from_secs(seconds), LEASE).run());
    let left = |heard: &NodeOutput| heard.printed.trim().parse::<u64>().expect("seconds");
    assert!((50..=60).contains(&left(&waited(0))), "{}", waited(0).printed);
    assert!((40..=50).contains(&left(&waited(10))), "{}", waited(10).printed);
    let late = waited(61);
    assert!(matches!(late.end(), BranchEnd::OutOfTime(_)), "{:?}", late.record);
    assert_eq!(late.printed, "");
}

#[test]
fn a_try_inside_keeps_its_limit() {
    let heard = run("forall x in a; try for 300 ms; sleep 60; end; end");
    let BranchEnd::Failed { failure, .. } = heard.end() else { panic!("{:?}", heard.end()) };
    assert_eq!(failure[0].failure.kind, FailureKind::Timeout);
}

/// Checks that processes left by a branch are killed, since no scope contains them.
#[test]
fn nothing_stays_on_a_node() {
    for way in WAYS {
        let script = "forall x in a; sh -c '(setsid sleep 600 &) ; echo done'; end";
        let finished = node(script).in_way(way).run();
        finished.nothing_left();
        let heard = node_output(&finished);
        assert_eq!((heard.end(), heard.printed.as_str()), (&BranchEnd::Succeeded, "done\n"));
    }
}

const LONG: &str = "forall x in a\n try\n echo begun > begun\n sh -c '(setsid sleep 600 &); sleep 600'\n\
                    finally\n echo cleaned\n end\nend";

/// A branch that has begun.
fn begun(node: Ftsh) -> Running {
    let running = node.start();
    running.until_lines("begun", 1);
    running
}

#[test]
fn a_signal_ends_a_branch_and_the_record_says_so() {
    let running = begun(node(LONG));
    running.signal(Signal::SIGTERM);
    let finished = running.wait();
    // Not by that signal: an engine would hear of it, and not wait for the record.
    finished.nothing_left().expect_code(0);
    let heard = node_output(&finished);
    assert_eq!(heard.end(), &BranchEnd::Canceled(Signal::SIGTERM as i32));
    assert_eq!(heard.printed, "cleaned\n");
}

#[test]
fn a_killed_node_leaves_neither_a_record_nor_processes() {
    let running = begun(node(LONG));
    running.signal(Signal::SIGKILL);
    running.until_gone("nothing left");
    assert!(node_output(&running.wait()).record.is_none());
    // The process that interprets the script alone.
    let running = begun(node(LONG));
    let parent = running.pid().as_raw();
    let stat = |pid: i32| std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let is_child = |pid: i32| {
        let stat = stat(pid);
        let mut fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        fields.nth(1) == Some(parent.to_string().as_str())
    };
    let shells = running.processes().into_iter().filter(|it| it.pid != parent && is_child(it.pid));
    for shell in shells.filter(|it| {
        std::fs::read(format!("/proc/{}/cmdline", it.pid))
            .is_ok_and(|line| line.ends_with(b"--branch\0"))
    }) {
        kill(Pid::from_raw(shell.pid), Signal::SIGKILL).expect("it is there");
    }
    let finished = running.wait();
    finished.nothing_left();
    assert!(node_output(&finished).record.is_none());
}

#[test]
fn nothing_begins_before_go() {
    let script = "forall x in a; echo begun > begun; end";
    let node = Ftsh::new().arg("--branch");
    let packed = packed(script, node.directory.path()).swap_remove(0);
    let finished = node.stdin(offer(packed)).run();
    finished.nothing_left().expect_code(0);
    let heard = node_output(&finished);
    assert!(matches!(&heard.said[..], [ToHead::Hello(_), ToHead::Ready(_)]), "{:?}", heard.said);
    assert!(heard.record.is_none() && heard.errors.is_empty());
    assert!(!finished.directory.path().join("begun").exists());
}

/// An engine that starts a job twice may repeat the whole input for the second start.
#[test]
fn a_start_with_the_input_of_another_start_does_nothing() {
    let script = "forall x in a; echo begun >> begun; sleep 600; end";
    let mut first = begun(node(script));
    let packed = packed(script, first.directory()).swap_remove(0);
    let start = ready(&first.output()).expect("it has begun");
    let input = [offer(packed), go(start, Duration::ZERO, LEASE)].concat();
    let second = Ftsh::new().arg("--branch").stdin(input).stdin_stays_open().run();
    second.nothing_left().expect_code(0);
    assert_eq!(second.errors(), ERRORS_MARK);
    first.close_input();
    let first = first.wait();
    first.nothing_left();
    assert_eq!(first.read("begun"), "begun\n");
}

#[test]
fn a_word_that_comes_too_late_is_answered() {
    let script = "forall x in a; echo begun > begun; end";
    let finished = waited(script, Duration::ZERO, Duration::ZERO).run();
    finished.nothing_left().expect_code(0);
    let errors = finished.errors();
    assert_eq!(errors.trim_start_matches(ERRORS_MARK), NodeLine::TooLate.encode(&NONCE));
    assert!(!finished.directory.path().join("begun").exists());
}

#[test]
fn what_cannot_be_run_is_refused() {
    let refused = |change: fn(&mut Branch)| {
        let packed = packed("forall x in a; end", Path::new("/")).swap_remove(0);
        let store = StoreId::default();
        let mut branch = Branch { identity: identity(), packed, child_env: Vec::new(), store };
        change(&mut branch);
        let mut sent = frame(&ToNode::Branch(Box::new(branch))).expect("short");
        sent.insert(0, OPENING);
        let finished = Ftsh::new().arg("--branch").stdin(sent).run();
        finished.expect_code(2);
        match &node_output(&finished).said[..] {
            [ToHead::Hello(_), ToHead::Refused(reason)] => reason.clone(),
            other => panic!("{other:?}"),
        }
    };
    let other = Identity::of(&b"another program"[..]).expect("in memory");
    let reason = refused(|branch| {
        branch.identity = Identity::of(&b"another program"[..]).expect("in memory");
    });
    assert_eq!(reason, format!("the branch is for ftsh {other}, and this is {}", identity()));
    let reason = refused(|branch| branch.packed.directory = "/no/where".into());
    assert_eq!(reason, "can't enter the directory `/no/where`: no such file or directory");
    let reason = refused(|branch| {
        branch.packed.texts[0].source = Arc::new(Source::new("script", "success"));
    });
    assert_eq!(reason, "the branch was packed by another version of ftsh");
}

/// Through pipes, as an engine has it: output comes as it is printed, and input stays open.
#[test]
fn a_node_talks_through_pipes() {
    let directory = tempfile::TempDir::new().expect("a directory");
    let script = "forall x in a; echo first; read y < fifo; echo $y; end";
    let fifo = directory.path().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).expect("a FIFO");
    let mut node = command(FTSH)
        .arg("--branch")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a node");
    let (mut to, mut from) =
        (node.stdin.take().expect("a pipe"), node.stdout.take().expect("a pipe"));
    let mut frames = Frames::<ToHead>::default();
    let mut bytes = [0; 4096];
    let mut next = |from: &mut std::process::ChildStdout| loop {
        if let Some(message) = frames.message().expect("whole") {
            return message;
        }
        let read = from.read(&mut bytes).expect("more");
        assert!(read > 0, "it ended");
        frames.push(&bytes[..read]);
    };
    let branch = offer(packed(script, directory.path()).swap_remove(0));
    // The node says nothing before the first byte.
    let (opening, branch) = branch.split_at(1);
    to.write_all(opening).expect("it reads");
    assert!(matches!(next(&mut from), ToHead::Hello(_)));
    to.write_all(branch).expect("it reads");
    let ToHead::Ready(start) = next(&mut from) else { panic!("it is not ready") };
    to.write_all(&go(start, Duration::ZERO, LEASE)).expect("it reads");
    let mut first = [0; 6];
    from.read_exact(&mut first).expect("what is printed");
    assert_eq!(&first, b"first\n");
    std::fs::write(fifo, "second\n").expect("it reads");
    let (mut rest, mut errors) = (String::new(), Vec::new());
    from.read_to_string(&mut rest).expect("the end");
    node.stderr.take().expect("a pipe").read_to_end(&mut errors).expect("the end");
    assert!(node.wait().expect("it ends").success());
    assert_eq!(rest, format!("second\n{}", NodeLine::OutputEnded.encode(&NONCE)));
    let errors = errors.strip_prefix(ERRORS_MARK.as_bytes()).expect("the mark");
    let pieces = Listener::new(&NONCE).push(errors);
    let [Piece::Line(NodeLine::Record(record))] = &pieces[..] else { panic!("{pieces:?}") };
    assert_eq!(record.ended.end, BranchEnd::Succeeded);
    drop(to);
}

/// The record waits for a head that doesn't read; who is impatient isn't kept waiting.
#[test]
fn a_record_that_nobody_reads_does_not_outlast_a_signal() {
    let directory = tempfile::TempDir::new().expect("a directory");
    let (_reader, mut full) = std::io::pipe().expect("a pipe");
    let size = fcntl(&full, FcntlArg::F_GETPIPE_SZ).expect("its size") as usize;
    full.write_all(&vec![b'.'; size]).expect("as much as it holds");
    let mut node = command(FTSH)
        .arg("--branch")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(full)
        .spawn()
        .expect("a node");
    let script = "forall x in a; echo done > done; end";
    let (mut to, mut from) =
        (node.stdin.take().expect("a pipe"), node.stdout.take().expect("a pipe"));
    let offer = offer(packed(script, directory.path()).swap_remove(0));
    to.write_all(&offer).expect("it reads");
    let (mut said, mut byte) = (Vec::new(), [0]);
    let start = loop {
        from.read_exact(&mut byte).expect("more");
        said.extend(byte);
        if let Some(start) = ready(&said) {
            break start;
        }
    };
    to.write_all(&go(start, Duration::ZERO, LEASE)).expect("it reads");
    wait("the branch isn't done", || directory.path().join("done").exists());
    let pid = Pid::from_raw(node.id() as i32);
    // The first ones may come before the record is written.
    wait("it still waits", || {
        kill(pid, Signal::SIGTERM).expect("it isn't waited for");
        node.try_wait().expect("a child").is_some()
    });
    let status = node.wait().expect("a child");
    assert_eq!(status.signal(), Some(Signal::SIGTERM as i32), "{status}");
    drop(to);
}

/// Fifty beside processors that are busy.
#[test]
#[ignore = "slow: `.ci/run` includes it"]
fn many_nodes_run_at_once() {
    let busy: Vec<_> = (0..4).map(|_| Ftsh::command("while true; end").start()).collect();
    let script = "forall x in 1 .to. 50; sh -c \"echo $x; exit $x\"; end";
    let nodes: Vec<_> = packed(script, Path::new("/"))
        .into_iter()
        .map(|packed| {
            let node = branches::node(Ftsh::new(), packed, Duration::ZERO, LEASE);
            thread::spawn(|| node.start().wait())
        })
        .collect();
    assert_eq!(nodes.len(), 50);
    for (index, node) in nodes.into_iter().enumerate() {
        let finished = node.join().expect("a run");
        finished.nothing_left();
        let heard = node_output(&finished);
        assert_eq!(heard.printed, format!("{}\n", index + 1), "{}", finished.story());
        let BranchEnd::Failed { failure, .. } = heard.end() else { panic!("{:?}", heard.end()) };
        assert_eq!(failure[0].failure.code, index as i32 + 1);
    }
    for busy in busy {
        busy.signal(Signal::SIGTERM);
        busy.wait().nothing_left();
    }
}
