//! Tests of encoding and decoding in arbitrary pieces.

mod conversation;
mod head;

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::{
    BranchRecord, Frames, Go, Hello, Identity, Listener, NodeLine, Nonce, Piece, ToNode, frame,
    merge,
};
use ftsh_machine::outcome::Retry;
use ftsh_machine::packed::{BranchEnd, EndedBranch, PackedFailure, PackedValue, PackedVariable};
use ftsh_machine::record::spans::RemoteSpans;
use ftsh_machine::{Failure, FailureKind, Machine};
use ftsh_syntax::Source;

fn nonce() -> Nonce {
    Nonce(std::array::from_fn(|at| at as u8 * 17))
}

fn record(message: &str) -> BranchRecord {
    let failure = Failure {
        elapsed: Some(Duration::from_millis(20)),
        line: 3,
        output: Some(Arc::new("last\x1e words\n".into())),
        errno: Some("ENOSPC".into()),
        ..Failure::new(FailureKind::Exit, 4, message.into(), "wget x".into())
    };
    let failure = PackedFailure { failure, text: 1 };
    BranchRecord {
        ended: EndedBranch {
            end: BranchEnd::Failed { failure: vec![failure], again: Retry::Never },
            attempts: 7,
            texts: vec![Arc::new(Source::new("lib", "a\nb\nfail\n"))],
            spans: RemoteSpans { finished: vec!["{}".into()], dropped: 1 },
        },
        node: "n1".into(),
        began: Duration::from_secs(1_700_000_000),
        elapsed: Duration::from_secs(2),
        no_gifts: None,
    }
}

/// Returns a record as a line.
fn line(record: BranchRecord) -> String {
    NodeLine::Record(Box::new(record)).encode(&nonce())
}

/// Returns the output and the records in bytes that arrive in pieces.
fn decoded(bytes: &[u8], pieces: &[usize]) -> (Vec<u8>, Vec<BranchRecord>) {
    let (mut printed, mut records) = (Vec::new(), Vec::new());
    let mut listener = Listener::new(&nonce());
    let mut rest = bytes;
    let mut lengths = pieces.iter().cycle();
    while !rest.is_empty() {
        let length = lengths.next().map_or(1, |length| (*length).max(1)).min(rest.len());
        let (now, later) = rest.split_at(length);
        for piece in listener.push(now) {
            match piece {
                Piece::Printed(bytes) => printed.extend(bytes),
                Piece::Line(NodeLine::Record(record)) => records.push(*record),
                Piece::Line(other) => panic!("{other:?}"),
            }
        }
        rest = later;
    }
    printed.extend(listener.end());
    (printed, records)
}

/// Generates bytes, many of which resemble the beginning of a record.
fn garbage() -> impl Strategy<Value = Vec<u8>> {
    let other = NodeLine::Record(Box::new(record("another"))).encode(&Nonce([7; 16])).into_bytes();
    let begun = line(record("x")).into_bytes();
    // Incomplete prefix, as only the node knows the nonce.
    let longest = "\x1eftsh:".len() + 32;
    let part = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..40),
        (0..longest).prop_map(move |length| begun[..length].to_vec()),
        (0..other.len()).prop_map(move |length| other[..length].to_vec()),
        Just(b"\x1e\x1eftsh:".to_vec()),
        Just(b"text\n".to_vec()),
    ];
    proptest::collection::vec(part, 0..6).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn a_record_is_found_among_whatever_is_printed(
        before in garbage(),
        after in garbage(),
        message in ".*",
        pieces in proptest::collection::vec(1_usize..90, 1..9),
    ) {
        let record = record(&message);
        let bytes = [&before[..], line(record.clone()).as_bytes(), &after].concat();
        let (printed, records) = decoded(&bytes, &pieces);
        prop_assert_eq!(records, [record]);
        prop_assert_eq!(printed, [before, after].concat());
    }

    #[test]
    fn what_is_no_record_is_passed_on(
        bytes in garbage(),
        pieces in proptest::collection::vec(1_usize..90, 1..9),
    ) {
        prop_assert_eq!(decoded(&bytes, &pieces), (bytes, Vec::new()));
    }

    #[test]
    fn a_record_that_is_not_whole_is_none(
        before in garbage(),
        place in any::<prop::sample::Index>(),
        instead in proptest::option::of(any::<u8>()),
        pieces in proptest::collection::vec(1_usize..90, 1..9),
    ) {
        let line = line(record("torn")).into_bytes();
        let mut torn = line.clone();
        // The line break stays, as the break only ends the line.
        let at = place.index(line.len() - 1);
        match instead {
            Some(byte) => torn[at] = byte,
            None => torn.truncate(at),
        }
        prop_assume!(torn.to_ascii_lowercase() != line);
        let (_, records) = decoded(&[before, torn].concat(), &pieces);
        prop_assert_eq!(records, Vec::new());
    }

    #[test]
    fn nothing_is_held_back_that_is_no_beginning(text in "[ -~\n]{0,60}") {
        let printed = Listener::new(&nonce()).push(text.as_bytes());
        let all = (!text.is_empty()).then(|| Piece::Printed(text.clone().into_bytes()));
        prop_assert_eq!(printed, Vec::from_iter(all));
    }

    #[test]
    fn messages_come_in_any_pieces_after_any_noise(
        noise in proptest::collection::vec(any::<u8>(), 0..50),
        waited in any::<u32>(),
        pieces in proptest::collection::vec(1_usize..30, 1..9),
    ) {
        let (waited, lease) = (Duration::from_nanos(waited.into()), Duration::from_secs(60));
        let go = ToNode::Go(Go { nonce: nonce(), start: nonce(), waited, lease });
        let sent = frame(&go).expect("short");
        let bytes = [&noise[..], &sent, &sent].concat();
        let mut frames = Frames::<ToNode>::default();
        let (mut came, mut rest) = (Vec::new(), &bytes[..]);
        let mut lengths = pieces.iter().cycle();
        while !rest.is_empty() {
            let length = lengths.next().map_or(1, |length| *length).min(rest.len());
            frames.push(&rest[..length]);
            rest = &rest[length..];
            while let Some(message) = frames.message().expect("whole") {
                came.push(message);
            }
        }
        prop_assert_eq!(came, [go.clone(), go]);
    }
}

/// Changes bytes of a content. The checksum does not notice a content that was never right.
fn changed(mut content: Vec<u8>, changes: &[(prop::sample::Index, u8)], cut: usize) -> Vec<u8> {
    for (place, byte) in changes {
        let at = place.index(content.len());
        content[at] = *byte;
    }
    content.truncate(content.len().saturating_sub(cut));
    content
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]
    #[test]
    fn wrong_content_is_an_error(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in 0_usize..20,
    ) {
        let branch = ToNode::Branch(Box::new(conversation::branch()));
        let content = postcard::to_allocvec(&branch).expect("short");
        if let Ok(ToNode::Branch(branch)) = postcard::from_bytes(&changed(content, &changes, cut)) {
            let at = branch.packed.at;
            let _ = Machine::of_branch(branch.packed, at);
        }
        let record = NodeLine::Record(Box::new(record("x")));
        let content = postcard::to_allocvec(&record).expect("short");
        let _ = postcard::from_bytes::<NodeLine>(&changed(content, &changes, cut));
    }
}

#[test]
fn a_damaged_message_is_found_out() {
    let sent = frame(&Hello { identity: identity(b"a"), node: "n".into() }).expect("short");
    for at in 8..sent.len() {
        let mut damaged = sent.clone();
        damaged[at] ^= 1;
        let mut frames = Frames::<Hello>::default();
        frames.push(&damaged);
        // A damaged length may leave the message incomplete.
        assert!(!matches!(frames.message(), Ok(Some(_))), "byte {at}");
    }
}

fn identity(file: &[u8]) -> Identity {
    Identity::of(file).expect("a file in memory")
}

#[test]
fn another_program_is_another_one() {
    assert_eq!(identity(b"one"), identity(b"one"));
    assert_ne!(identity(b"one"), identity(b"two"));
}

#[test]
fn a_failure_with_endless_output_still_comes_back() {
    let mut long = record("long");
    let BranchEnd::Failed { failure, .. } = &mut long.ended.end else { panic!("it failed") };
    failure[0].failure.output = Some(Arc::new(vec![b'x'; 1 << 23].into()));
    let (_, records) = decoded(line(long).as_bytes(), &[1 << 20]);
    let BranchEnd::Failed { failure, .. } = &records[0].ended.end else { panic!("it failed") };
    let failure = &failure[0].failure;
    assert_eq!((failure.message.as_str(), &failure.output), ("long", &None));
}

#[test]
fn a_node_has_its_own_say_on_what_it_is() {
    let variable = |name: &str, value: &str, inherited| PackedVariable {
        name: name.into(),
        value: PackedValue::Text(value.into()),
        exported: true,
        inherited,
    };
    let run = vec![
        variable("PATH", "run", true),
        variable("SLURM_JOB_ID", "of the head", true),
        variable("TMPDIR", "/head", true),
        variable("TMP", "/set", false),
        variable("HOSTNAME", "head", true),
        variable("mine", "1", false),
    ];
    let node = ["PATH", "TMPDIR", "TMP", "SLURM_PROCID", "HOSTNAME", "OTHER", "GONE"];
    let node = node.map(|name| (name.into(), format!("node {name}").into()));
    let mut merged: Vec<_> = merge(run, &["GONE".into()], &["SLURM_"], node)
        .into_iter()
        .map(|it| (it.name, it.value, it.inherited))
        .map(|(name, value, inherited)| match value {
            PackedValue::Text(text) => format!("{name}={text} {inherited}"),
            other => panic!("{other:?}"),
        })
        .collect();
    merged.sort();
    assert_eq!(
        merged,
        [
            "HOSTNAME=node HOSTNAME true",
            "OTHER=node OTHER true",
            "PATH=run true",
            "SLURM_PROCID=node SLURM_PROCID true",
            "TMP=/set false",
            "TMPDIR=node TMPDIR true",
            "mine=1 false",
        ]
    );
}
