//! Lease of a branch on a node: the branch lives while its head extends the lease, whatever the
//! branch and its shell do.

use std::io::{PipeReader, Read, Write, pipe};
use std::thread;
use std::time::{Duration, Instant};

use ftsh_machine::packed::BranchEnd;
use ftsh_remote::{Listener, NodeLine, Piece, ToNode, frame};
use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::branches::{self, LEASE, NONCE, node_output, packed_with_kill_timeout};
use crate::support::run::Running;
use crate::support::{Ftsh, WAYS};

/// Length of a lease that ends.
const SHORT: Duration = Duration::from_secs(1);
/// Length of a lease that a head on a busy machine can extend in time.
const KEPT: Duration = Duration::from_secs(5);
/// Short kill timeout for processes that ignore SIGTERM.
const GRACE: Duration = Duration::from_millis(400);

const TERM: BranchEnd = BranchEnd::Canceled(Signal::SIGTERM as i32);

/// Command that leaves an untagged daemon which ignores SIGTERM.
const STUBBORN: &str = "forall x in a\n sh -c \"trap '' TERM; (setsid sleep 600 &); \
                        (setsid sh -c 'sleep 600 & sleep 600' &); echo begun > begun; \
                        while :; do sleep 600; done\"\nend";

/// Creates a node whose head grants a lease of this length.
fn node(script: &str, lease: Duration, grace: Duration) -> Ftsh {
    let node = Ftsh::new();
    let packed = packed_with_kill_timeout(script, node.directory.path(), grace).swap_remove(0);
    branches::node(node, packed, Duration::ZERO, lease)
}

fn begun(node: Ftsh) -> Running {
    let running = node.start();
    running.until_lines("begun", 1);
    running
}

fn end(signal: Signal) -> Vec<u8> {
    frame(&ToNode::End(signal as i32)).expect("short")
}

/// Answers the requests in the output from here on. Returns their number.
fn answer(pieces: Vec<Piece>, mut grant: impl FnMut(&[u8])) -> usize {
    let requests = pieces.into_iter().filter_map(|piece| match piece {
        Piece::Line(NodeLine::Request(asked)) => Some(frame(&ToNode::Lease(asked)).expect("short")),
        _ => None,
    });
    requests.map(|granted| grant(&granted)).count()
}

#[test]
fn a_branch_lives_as_long_as_its_head_answers() {
    thread::scope(|scope| {
        for way in WAYS {
            scope.spawn(move || is_kept_alive(way));
        }
    });
}

fn is_kept_alive(way: &str) {
    let script = "forall x in a; echo begun > begun; read y < fifo; echo $y; end";
    let node = node(script, KEPT, GRACE).in_way(way);
    let fifo = node.directory.path().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).expect("a FIFO");
    let mut running = begun(node);
    let (mut listener, mut seen, mut answered) = (Listener::new(&NONCE), 0, 0);
    // A lease has three requests.
    while answered < 4 {
        running.until("a request", |running| running.errors().len() > seen);
        let errors = running.errors();
        let pieces = listener.push(&errors.as_bytes()[seen..]);
        seen = errors.len();
        answered += answer(pieces, |granted| running.write(granted));
    }
    std::fs::write(fifo, "done\n").expect("it reads");
    let finished = running.wait();
    finished.nothing_left();
    finished.expect_code(0);
    let heard = node_output(&finished);
    assert_eq!((heard.end(), heard.printed.as_str()), (&BranchEnd::Succeeded, "done\n"));
}

/// A branch without its head ends like a canceled branch, and reports to no process.
#[test]
fn a_branch_without_answers_ends_with_its_lease() {
    for way in WAYS {
        let script = "forall x in a\n try\n echo begun > begun\n sleep 600\n finally\n \
                      echo cleaned\n end\nend";
        let running = begun(node(script, SHORT, LEASE).in_way(way));
        let finished = running.wait();
        finished.nothing_left();
        let heard = node_output(&finished);
        assert_eq!((heard.end(), heard.printed.as_str()), (&TERM, "cleaned\n"));
        let elapsed = heard.record.as_ref().expect("a record").elapsed;
        assert!(elapsed > SHORT / 2, "{elapsed:?}");
    }
}

#[test]
fn the_end_of_a_head_ends_its_branch() {
    for way in WAYS {
        let node = node(STUBBORN, LEASE, GRACE).in_way(way);
        let mut running = begun(node);
        running.close_input();
        let finished = running.wait();
        finished.nothing_left();
        assert_eq!(node_output(&finished).end(), &TERM);
        assert!(finished.elapsed < LEASE / 2, "{}", finished.story());
    }
}

#[test]
fn a_branch_that_ignores_sigterm_is_killed_after_the_lease() {
    for way in WAYS {
        let running = begun(node(STUBBORN, SHORT, GRACE).in_way(way));
        running.wait().nothing_left();
    }
}

/// Groups that clean up get no more time than the head waits.
#[test]
fn cleanup_is_limited_too() {
    let script = "forall x in a\n try\n echo begun > begun\n sleep 600\n finally\n sleep 600\n \
                  end\nend";
    let finished = begun(node(script, SHORT, GRACE)).wait();
    finished.nothing_left();
    assert!(finished.elapsed < LEASE / 2, "{}", finished.story());
}

#[test]
fn a_head_can_end_a_branch() {
    let mut running = begun(node(STUBBORN, LEASE, GRACE));
    running.write(&end(Signal::SIGINT));
    let finished = running.wait();
    finished.nothing_left();
    assert_eq!(node_output(&finished).end(), &BranchEnd::Canceled(Signal::SIGINT as i32));
}

#[test]
fn a_second_end_message_kills_the_branch() {
    let script = "forall x in a\n sh -c \"trap 'echo asked > asked' TERM; echo begun > begun; \
                  while :; do sleep 0.05; done\"\nend";
    let mut running = begun(node(script, LEASE, LEASE));
    running.write(&end(Signal::SIGTERM));
    running.until_lines("asked", 1);
    running.write(&end(Signal::SIGTERM));
    let finished = running.wait();
    finished.nothing_left();
    assert_eq!(node_output(&finished).end(), &TERM);
    assert!(finished.elapsed < LEASE / 2, "{}", finished.story());
}

/// After the go, the head sends invalid messages.
#[test]
fn invalid_messages_of_the_head_end_the_branch() {
    let mut running = begun(node(STUBBORN, LEASE, GRACE));
    let mut damaged = end(Signal::SIGINT);
    *damaged.last_mut().expect("it holds something") ^= 1;
    running.write(&damaged);
    let finished = running.wait();
    finished.nothing_left();
    assert_eq!(node_output(&finished).end(), &TERM);
}

/// Returns a pipe that no process reads.
fn full() -> (PipeReader, std::io::PipeWriter) {
    let (reader, mut writer) = pipe().expect("a pipe");
    let size = fcntl(&writer, FcntlArg::F_GETPIPE_SZ).expect("its size") as usize;
    writer.write_all(&vec![b'.'; size]).expect("as much as it holds");
    (reader, writer)
}

#[test]
fn a_branch_with_unread_output_ends_with_its_lease() {
    for way in WAYS {
        let script = "forall x in a\n echo begun > begun\n sh -c 'trap \"\" TERM; yes >&2'\nend";
        let (reader, writer) = full();
        let node = node(script, SHORT, GRACE).in_way(way).errors_to(writer);
        let finished = begun(node).wait();
        finished.nothing_left();
        assert!(finished.elapsed < LEASE / 2, "{}", finished.story());
        drop(reader);
    }
}

/// While the output is read, there is room for a request in a flood of output.
#[test]
fn a_branch_with_endless_output_extends_its_lease() {
    let (mut reader, writer) = pipe().expect("a pipe");
    let script = "forall x in a\n echo begun > begun\n yes >&2\nend";
    let mut running = begun(node(script, KEPT, LEASE).errors_to(writer));
    let mut listener = Listener::new(&NONCE);
    let (mut bytes, mut answered) = (vec![0; 1 << 16], 0);
    while answered < 4 {
        // A flood at full speed would take all processors from the other tests.
        std::thread::sleep(Duration::from_millis(1));
        let read = reader.read(&mut bytes).expect("more");
        assert!(read > 0, "it ended after {answered} answers");
        answered += answer(listener.push(&bytes[..read]), |granted| running.write(granted));
    }
    running.write(&end(Signal::SIGTERM));
    let mut end = None;
    while let Ok(read @ 1..) = reader.read(&mut bytes) {
        for piece in listener.push(&bytes[..read]) {
            if let Piece::Line(NodeLine::Record(record)) = piece {
                end = Some(record.ended.end);
            }
        }
    }
    running.wait().nothing_left();
    assert_eq!(end, Some(TERM));
}

fn signal_all(running: &Running, signal: Signal) {
    for process in running.processes() {
        // Some processes have ended meanwhile.
        let _ = kill(Pid::from_raw(process.pid), signal);
    }
}

/// A stopped node cannot end anything. Continued after its lease, it does not continue the branch.
#[test]
fn a_node_that_slept_through_its_lease_ends_at_once() {
    for way in WAYS {
        let script = "forall x in a\n echo begun > begun\n for n in 1 .to. 1000\n sleep 0.05\n echo on >> on\n end\nend";
        let running = begun(node(script, SHORT, GRACE).in_way(way));
        signal_all(&running, Signal::SIGSTOP);
        let stopped = Instant::now();
        // Where other work delays the signal, the lease may have ended the branch before.
        running.eventually("its time has passed", |_| stopped.elapsed() > SHORT + GRACE);
        let lines = || std::fs::read(running.directory().join("on")).unwrap_or_default().len();
        let before = lines();
        signal_all(&running, Signal::SIGCONT);
        running.until_gone("nothing left");
        assert!(lines() <= before + 2 * "on\n".len(), "it went on");
        running.wait().nothing_left();
    }
}

/// One of the two processes of a node's shell is enough.
#[test]
fn a_partly_killed_node_leaves_nothing() {
    for way in WAYS {
        for whom in [Running::interpreter, |running: &Running| Some(running.pid())] {
            let running = begun(node(STUBBORN, LEASE, GRACE).in_way(way));
            kill(whom(&running).expect("it is there"), Signal::SIGKILL).expect("it is ours");
            running.until_gone("nothing left");
            assert!(node_output(&running.wait()).record.is_none());
        }
    }
}

/// The supervisor enforces the lease where the interpreter cannot.
#[test]
fn a_node_whose_interpreter_hangs_is_killed_with_its_lease() {
    for way in WAYS {
        let running = begun(node(STUBBORN, SHORT, GRACE).in_way(way));
        kill(running.interpreter().expect("it is there"), Signal::SIGSTOP).expect("it is ours");
        let finished = running.wait();
        finished.nothing_left();
        assert!(node_output(&finished).record.is_none());
    }
}

/// The go arrives after the end of the lease.
#[test]
fn no_branch_begins_after_its_lease() {
    let script = "forall x in a; echo begun > begun; end";
    let finished = node(script, Duration::ZERO, GRACE).run();
    finished.nothing_left();
    assert!(node_output(&finished).record.is_none());
    assert!(!finished.directory.path().join("begun").exists());
    let pieces = Listener::new(&NONCE).push(finished.errors().as_bytes());
    let is_reported = pieces.iter().any(|piece| matches!(piece, Piece::Line(NodeLine::TooLate)));
    assert!(is_reported, "{}", finished.story());
}
