//! Tests of the head's side of a conversation.

use std::time::Duration;

use super::{identity, line, nonce, record};
use crate::head::MIN_BYTES_PER_SECOND;
use crate::{
    Branch, BranchRecord, ERRORS_MARK, Frames, Head, HeadOutput, Hello, NodeLine, Nonce, Stream,
    ToHead, ToNode, TransferProgress, frame,
};
use ftsh_machine::Time;
use ftsh_machine::event::{Blame, Returned};
use ftsh_machine::packed::{BranchEnd, BranchFiles};

const LEASE: Duration = Duration::from_secs(60);
const GRACE: Duration = Duration::from_secs(30);
/// Nonce of the node's start.
const START: Nonce = Nonce([3; 16]);
/// Lease and kill timeout, a fifth of both, and a second.
const GONE: Duration = Duration::from_secs(109);

fn at(seconds: u64) -> Time {
    Time::after(Duration::from_secs(seconds))
}

fn branch() -> Branch {
    let mut branch = super::conversation::branch();
    branch.packed.config.kill_timeout = GRACE;
    branch
}

fn head() -> Head {
    Head::new(branch(), nonce(), LEASE, at(0))
}

fn says(message: &ToHead) -> Vec<u8> {
    frame(message).expect("short")
}

fn hello() -> Vec<u8> {
    says(&ToHead::Hello(Hello { identity: branch().identity, node: "n1".into() }))
}

/// Creates a head whose branch has begun ten seconds after packing.
fn begun() -> Head {
    let mut head = head();
    head.on_stdout(at(9), &hello());
    head.on_stdout(at(10), &says(&ToHead::Ready(START)));
    outputs(&mut head);
    assert!(head.has_begun());
    head
}

fn outputs(head: &mut Head) -> Vec<HeadOutput> {
    std::iter::from_fn(|| head.poll_output()).collect()
}

fn written(output: &HeadOutput) -> ToNode {
    let HeadOutput::Write(bytes) = output else { panic!("{output:?}") };
    let mut frames = Frames::default();
    frames.push(bytes);
    frames.message().expect("whole").expect("all of it")
}

fn not_begun(head: &mut Head) -> (Option<String>, String, Blame) {
    match outputs(head).pop() {
        Some(HeadOutput::Returned(Returned::NotBegun { node, why, blame })) => (node, why, blame),
        other => panic!("{other:?}"),
    }
}

fn request(seconds: u64) -> Vec<u8> {
    NodeLine::Request(Duration::from_secs(seconds)).encode(&nonce()).into_bytes()
}

#[test]
fn a_branch_begins_runs_and_ends() {
    let mut head = head();
    assert_eq!(head.next_timeout(), Time::NEVER);
    head.on_stdout(at(9), &[b"Welcome!\n", &hello()[..]].concat());
    let [offer] = &outputs(&mut head)[..] else { panic!("not one message") };
    assert_eq!(written(offer), ToNode::Branch(Box::new(branch())));
    head.on_stdout(at(10), &[&says(&ToHead::Ready(START))[..], b"first\n"].concat());
    let [placed, go, first] = &outputs(&mut head)[..] else { panic!("not three things") };
    assert_eq!(placed, &HeadOutput::Placed("n1".into()));
    let ToNode::Go(go) = written(go) else { panic!("{go:?}") };
    assert_eq!((go.nonce, go.start), (nonce(), START));
    assert_eq!((go.waited, go.lease), (Duration::from_secs(10), LEASE));
    assert_eq!(first, &HeadOutput::Printed(Stream::Output, b"first\n".into()));
    assert_eq!(head.next_timeout(), at(10) + GONE);
    // The answer repeats the time of the request, and the request is not printed.
    head.on_stderr(at(30), &[b"err", &request(7)[..], b"or\n"].concat());
    let [one, grant, other] = &outputs(&mut head)[..] else { panic!("not three things") };
    assert_eq!(written(grant), ToNode::Lease(Duration::from_secs(7)));
    let printed = [b"err", &b"or\n"[..]].map(|it| HeadOutput::Printed(Stream::Errors, it.into()));
    assert_eq!([one, other], [&printed[0], &printed[1]]);
    assert_eq!(head.next_timeout(), at(30) + GONE);
    // Output on the other stream may follow the record.
    let line = line(record("end"));
    head.on_stderr(at(40), &[line.as_bytes(), b"srun: done\n", &request(9)].concat());
    assert_eq!(outputs(&mut head), [HeadOutput::Recorded]);
    let end = NodeLine::OutputEnded.encode(&nonce());
    head.on_stdout(at(41), &[b"last\n", end.as_bytes(), b"of another"].concat());
    head.closed("", Blame::Engine);
    let [last, HeadOutput::Returned(Returned::Ended { ended, .. })] = &outputs(&mut head)[..]
    else {
        panic!("it hasn't ended")
    };
    assert_eq!(last, &HeadOutput::Printed(Stream::Output, b"last\n".into()));
    assert_eq!(**ended, record("end").ended);
    assert!(head.is_over() && head.next_timeout() == Time::NEVER);
}

#[test]
fn streams_have_to_arrive_apart() {
    let mark = ERRORS_MARK.as_bytes();
    let checked = || {
        let mut head = head();
        head.check_streams(Duration::from_secs(1));
        head
    };
    // In either order, and in pieces.
    let mut head = checked();
    head.on_stdout(at(1), &hello());
    assert!(outputs(&mut head).is_empty());
    head.on_stderr(at(1), &mark[..3]);
    head.on_stderr(at(1), &mark[3..]);
    assert_eq!(outputs(&mut head).len(), 1);
    let mut head = checked();
    head.on_stderr(at(1), mark);
    head.on_stdout(at(1), &hello());
    assert_eq!(outputs(&mut head).len(), 1);
    let joined: [fn(&mut Head); 2] = [
        |head| head.on_stdout(at(1), &[ERRORS_MARK.as_bytes(), &hello()].concat()),
        |head| head.on_stderr(at(1), &[ERRORS_MARK.as_bytes(), &hello()].concat()),
    ];
    for join in joined {
        let mut head = checked();
        join(&mut head);
        let (_, why, blame) = not_begun(&mut head);
        assert!(why.starts_with("it joins") && blame == Blame::Request, "{why}");
    }
    for (arrives, stream) in
        [(Stream::Output, "standard error"), (Stream::Errors, "standard output")]
    {
        let mut head = checked();
        match arrives {
            Stream::Output => head.on_stdout(at(1), &hello()),
            Stream::Errors => head.on_stderr(at(1), mark),
        }
        assert_eq!(head.next_timeout(), at(2));
        head.handle_timeout(at(2));
        let (_, why, blame) = not_begun(&mut head);
        assert!(why.starts_with(stream) && blame == Blame::Engine, "{why}");
    }
}

#[test]
fn a_connection_that_ends_too_early_says_why() {
    let closed = |output: &str, errors: &str, said: &str| {
        let mut head = head();
        head.on_stdout(at(1), output.as_bytes());
        head.on_stderr(at(1), errors.as_bytes());
        head.closed(said, Blame::Engine);
        let (node, why, blame) = not_begun(&mut head);
        assert_eq!((node, blame), (None, Blame::Engine));
        why
    };
    assert_eq!(closed("", "", ""), "the connection ended before a shell there said anything");
    assert_eq!(closed("", "", "srun exited with 1"), "srun exited with 1");
    let missing = "bash: line 1: ftsh: command not found";
    assert_eq!(closed("", missing, ""), missing);
    assert_eq!(
        closed("Welcome!\nThis account is not available\n", "", "ssh exited with 1"),
        "ssh exited with 1: This account is not available"
    );
    let mut head = head();
    head.on_stdout(at(1), &hello());
    head.closed("srun exited with 9", Blame::Engine);
    let why = "the connection to it ended before the branch began: srun exited with 9";
    assert_eq!(not_begun(&mut head), (Some("n1".into()), why.into(), Blame::Node));
}

#[test]
fn a_node_that_cannot_run_it_is_not_used() {
    let mut other = head();
    let theirs = identity(b"another program");
    other.on_stdout(
        at(1),
        &says(&ToHead::Hello(Hello { identity: theirs.clone(), node: "n2".into() })),
    );
    let ours = branch().identity;
    let why = format!("there is ftsh {theirs}, and this is {ours}: `--ship` sends this one along");
    assert_eq!(not_begun(&mut other), (Some("n2".into()), why, Blame::Node));
    let mut refuses = head();
    let refusal = says(&ToHead::Refused("can't enter the directory `/x`".into()));
    refuses.on_stdout(at(1), &[hello(), refusal].concat());
    let why = "can't enter the directory `/x`";
    assert_eq!(not_begun(&mut refuses), (Some("n1".into()), why.into(), Blame::Node));
    let mut slow = head();
    slow.on_stdout(at(1), &hello());
    slow.handle_timeout(at(60));
    assert!(!slow.is_over());
    let due = slow.next_timeout();
    slow.handle_timeout(due);
    assert_eq!(not_begun(&mut slow).1, "the shell there doesn't answer");
    // Without a node, the head waits forever.
    let mut silent = head();
    silent.handle_timeout(at(10_000));
    silent.expect_hello(at(10_000), MIN_BYTES_PER_SECOND * 10);
    silent.expect_hello(at(10_050), 0);
    assert_eq!(silent.next_timeout(), at(10_070));
    silent.handle_timeout(at(10_069));
    assert!(!silent.is_over());
    silent.handle_timeout(at(10_070));
    let why = "no shell there says that it is there";
    assert_eq!(not_begun(&mut silent), (None, why.into(), Blame::Node));
}

#[test]
fn a_later_version_is_found_out_at_once() {
    let not_understood = "the shell there says what this one doesn't understand: it may be another \
                          version of ftsh";
    let sent = hello();
    let mut later = sent.clone();
    later[6] = b'3';
    let mut damaged = sent.clone();
    *damaged.last_mut().expect("it holds something") ^= 1;
    for bytes in [later, damaged, says(&ToHead::Ready(START))] {
        let mut head = head();
        for byte in bytes {
            head.on_stdout(at(1), &[byte]);
        }
        assert_eq!(not_begun(&mut head).1, not_understood);
    }
}

#[test]
fn a_branch_without_a_record_is_lost_when_it_is_gone() {
    let lost = |head: &mut Head| match outputs(head).pop() {
        Some(HeadOutput::Returned(Returned::Lost { node, why })) => (node, why),
        other => panic!("{other:?}"),
    };
    let why = "the connection to it ended without a word of its end";
    let torn = line(record("torn"));
    let begun_only = &torn[..torn.len() - 3];
    for errors in ["", begun_only, &format!("{begun_only}zz\n")] {
        let mut head = begun();
        head.on_stderr(at(20), errors.as_bytes());
        head.closed("srun exited with 0", Blame::Engine);
        head.handle_timeout(at(118));
        assert!(!head.is_over());
        head.handle_timeout(at(119));
        let why = format!("{why}: srun exited with 0");
        assert_eq!(lost(&mut head), (Some("n1".into()), why));
    }
    // A certain end needs no wait.
    let mut head = begun();
    head.gone();
    assert!(!head.is_over());
    head.closed("", Blame::Engine);
    assert_eq!(lost(&mut head).1, why);
    // Silence counts as an end after the lease.
    let mut head = begun();
    head.handle_timeout(at(119));
    assert_eq!(lost(&mut head).1, "it hasn't been heard of for 109 s");
}

#[test]
fn a_branch_started_too_late_has_not_begun() {
    let mut head = begun();
    head.on_stderr(at(20), NodeLine::TooLate.encode(&nonce()).as_bytes());
    let why =
        "the way there and back takes longer than the lease of 60 s: `--lease` makes that longer";
    assert_eq!(not_begun(&mut head), (Some("n1".into()), why.into(), Blame::Node));
    assert!(head.is_over());
    // A record with another nonce does not count.
    let mut head = begun();
    head.on_stderr(at(20), NodeLine::TooLate.encode(&Nonce([0; 16])).as_bytes());
    assert!(!head.is_over());
}

#[test]
fn repeated_lines_of_a_node_have_no_effect() {
    let mut head = begun();
    head.on_stderr(at(30), &request(7));
    assert_eq!(outputs(&mut head).len(), 1);
    let due = head.next_timeout();
    head.on_stderr(at(90), &[request(7), request(6)].concat());
    assert_eq!((outputs(&mut head), head.next_timeout()), (Vec::new(), due));
    let line = line(record("end"));
    head.on_stderr(at(91), line.as_bytes());
    assert_eq!(outputs(&mut head), [HeadOutput::Recorded]);
    let late = NodeLine::TooLate.encode(&nonce());
    head.on_stderr(at(92), [line.as_bytes(), late.as_bytes()].concat().as_slice());
    assert_eq!(outputs(&mut head), []);
}

#[test]
fn a_record_without_the_end_of_the_output_is_no_success() {
    let mut head = begun();
    let end = NodeLine::OutputEnded.encode(&nonce());
    head.on_stdout(at(20), &[b"all of the output", &end.as_bytes()[..end.len() - 1]].concat());
    head.on_stderr(at(20), line(record("end")).as_bytes());
    head.closed("", Blame::Engine);
    assert!(!head.is_over());
    // A process of the engine may still hand on the rest.
    let mut other = begun();
    other.on_stderr(at(20), line(record("end")).as_bytes());
    other.closed("", Blame::Engine);
    other.on_stdout(at(21), end.as_bytes());
    let Some(HeadOutput::Returned(Returned::Ended { .. })) = outputs(&mut other).pop() else {
        panic!("it has ended")
    };
    head.handle_timeout(at(119));
    let Some(HeadOutput::Returned(Returned::Lost { .. })) = outputs(&mut head).pop() else {
        panic!("it is lost")
    };
}

#[test]
fn a_record_counts_although_the_connection_stays() {
    let mut head = begun();
    head.on_stderr(at(20), line(record("end")).as_bytes());
    head.on_stdout(at(20), NodeLine::OutputEnded.encode(&nonce()).as_bytes());
    head.handle_timeout(at(119));
    let Some(HeadOutput::Returned(Returned::Ended { .. })) = outputs(&mut head).pop() else {
        panic!("it has ended")
    };
}

#[test]
fn a_branch_ends_on_request_if_it_has_begun() {
    let mut running = begun();
    running.end(2);
    running.end(2);
    let said: Vec<_> = outputs(&mut running).iter().map(written).collect();
    assert_eq!(said, [ToNode::End(2), ToNode::End(2)]);
    let mut waiting = head();
    waiting.end(15);
    assert_eq!(not_begun(&mut waiting).1, "it isn't wanted any more");
    waiting.on_stdout(at(9), &hello());
    assert_eq!(outputs(&mut waiting), []);
}

/// Creates a head whose branch takes and gives a file.
fn with_files() -> Head {
    let mut branch = branch();
    branch.packed.files = BranchFiles { takes: vec!["in".into()], gives: vec!["out".into()] };
    Head::new(branch, nonce(), LEASE, at(0))
}

#[test]
fn taken_files_are_sent_before_the_branch_begins() {
    let mut head = with_files();
    head.on_stdout(at(1), &hello());
    let offer = outputs(&mut head);
    assert!(matches!(&offer[..], [HeadOutput::Offer(_)]), "{offer:?}");
    assert_eq!(head.next_timeout(), Time::NEVER);
    head.on_progress(at(2), TransferProgress::Listed(1 << 30));
    assert!(head.next_timeout() > at(8000) && head.next_timeout() < at(9000));
    head.on_stdout(at(3), &says(&ToHead::Wants(vec![0, 2])));
    assert_eq!(outputs(&mut head), [HeadOutput::Send(vec![0, 2])]);
    head.on_stdout(at(4), &says(&ToHead::Ready(START)));
    assert!(head.has_begun());

    // A slow link: the node has the time of an answer after each movement.
    let mut head = with_files();
    head.on_stdout(at(1), &hello());
    head.on_progress(at(2), TransferProgress::Moved);
    assert_eq!(head.next_timeout(), Time::NEVER);
    head.on_progress(at(2), TransferProgress::Listed(0));
    assert_eq!(head.next_timeout(), at(62));
    for seconds in [50, 100, 150] {
        head.on_progress(at(seconds), TransferProgress::Moved);
        head.handle_timeout(at(seconds));
        assert_eq!(head.next_timeout(), at(seconds + 60));
    }

    let mut head = with_files();
    head.on_stdout(at(1), &hello());
    outputs(&mut head);
    head.on_progress(at(2), TransferProgress::Failed("no `in`".into()));
    let (node, why) = (Some("n1".into()), "no `in`".into());
    assert_eq!(outputs(&mut head), [HeadOutput::Returned(Returned::Files { node, why })]);
}

#[test]
fn a_success_needs_its_files_in_their_places() {
    let succeeded = || {
        let mut record = record("");
        record.ended.end = BranchEnd::Succeeded;
        record
    };
    // The branch has reported the record and all of its output, and the first bytes of the files.
    let ended = |record: BranchRecord| {
        let mut head = with_files();
        head.on_stdout(at(1), &hello());
        head.on_stdout(at(2), &says(&ToHead::Ready(START)));
        outputs(&mut head);
        let mut output = b"printed".to_vec();
        output.extend(NodeLine::OutputEnded.encode(&nonce()).into_bytes());
        output.extend(b"\x1eftsh:");
        head.on_stdout(at(3), &output);
        let printed = HeadOutput::Printed(Stream::Output, b"printed".to_vec());
        let receive = HeadOutput::Receive(b"\x1eftsh:".to_vec());
        assert_eq!(outputs(&mut head), [printed, receive]);
        head.on_stderr(at(3), line(record).as_bytes());
        head.closed("", Blame::Engine);
        let mut outputs = outputs(&mut head);
        assert_eq!(outputs.remove(0), HeadOutput::Recorded);
        (head, outputs)
    };
    let (mut head, waits) = ended(succeeded());
    assert_eq!(waits, []);
    head.on_progress(at(4), TransferProgress::Arrived);
    assert_eq!(outputs(&mut head), [HeadOutput::Place]);
    head.on_progress(at(4), TransferProgress::Placed);
    let returned = outputs(&mut head);
    assert!(
        matches!(&returned[..], [HeadOutput::Returned(Returned::Ended { .. })]),
        "{returned:?}"
    );

    let failed = |why: &str| {
        let (node, why) = (Some("n1".into()), why.into());
        [HeadOutput::Returned(Returned::Files { node, why })]
    };
    let (mut head, _) = ended(succeeded());
    head.on_progress(at(4), TransferProgress::Failed("no space".into()));
    assert_eq!(outputs(&mut head), failed("no space"));
    let (_, returned) = ended(BranchRecord { no_gifts: Some("no `out`".into()), ..succeeded() });
    assert_eq!(returned, failed("no `out`"));
    // A failed branch gives nothing.
    let (_, returned) = ended(record("fails"));
    assert!(
        matches!(&returned[..], [HeadOutput::Returned(Returned::Ended { .. })]),
        "{returned:?}"
    );

    // The connection stays open, and the lease ends: the files that are whole still take their places.
    let mut head = with_files();
    head.on_stdout(at(1), &hello());
    head.on_stdout(at(2), &says(&ToHead::Ready(START)));
    head.on_stdout(at(3), NodeLine::OutputEnded.encode(&nonce()).as_bytes());
    head.on_stderr(at(3), line(succeeded()).as_bytes());
    head.on_progress(at(4), TransferProgress::Arrived);
    outputs(&mut head);
    let late = head.next_timeout();
    head.handle_timeout(late);
    assert_eq!(outputs(&mut head), [HeadOutput::Place]);
    assert!(head.next_timeout() > late);
    head.on_progress(late, TransferProgress::Placed);
    let returned = outputs(&mut head);
    assert!(
        matches!(&returned[..], [HeadOutput::Returned(Returned::Ended { .. })]),
        "{returned:?}"
    );

    // A slow disk: files that move keep the branch.
    let (mut head, _) = ended(succeeded());
    for state in [None, Some(TransferProgress::Arrived)] {
        if let Some(state) = state {
            head.on_progress(at(4), state);
        }
        for _ in 0..5 {
            let soon = head.next_timeout();
            head.on_progress(soon, TransferProgress::Moved);
            head.handle_timeout(soon);
            assert_eq!(head.next_timeout(), soon + GONE);
        }
    }
    head.on_progress(head.next_timeout(), TransferProgress::Placed);
    assert!(matches!(outputs(&mut head).pop(), Some(HeadOutput::Returned(Returned::Ended { .. }))));

    for progress in [Some(TransferProgress::Cut), Some(TransferProgress::Arrived), None] {
        let (mut head, _) = ended(succeeded());
        let is_cut = progress == Some(TransferProgress::Cut);
        if let Some(progress) = progress {
            head.on_progress(at(4), progress);
        }
        assert!(!outputs(&mut head).iter().any(|it| matches!(it, HeadOutput::Returned(_))));
        if is_cut {
            head.gone();
        } else {
            head.handle_timeout(head.next_timeout());
        }
        let (node, why) = (Some("n1".into()), "its files did not arrive whole".into());
        assert_eq!(outputs(&mut head), [HeadOutput::Returned(Returned::Lost { node, why })]);
        assert_eq!(head.next_timeout(), Time::NEVER);
    }
}
