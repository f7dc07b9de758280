//! Tests of encoding and decoding in arbitrary pieces.

mod conversation;
mod head;

use std::time::Duration;

use proptest::prelude::*;

use super::{
    BranchRecord, Frames, Go, Hello, Identity, Listener, Nonce, Piece, ToNode, frame, merge,
};
use ftsh_machine::FailureKind;
use ftsh_machine::packed::{
    BranchEnd, EndedBranch, PackedFailure, PackedRetry, PackedValue, PackedVariable, Text,
};

fn nonce() -> Nonce {
    Nonce(std::array::from_fn(|at| at as u8 * 17))
}

fn record(message: &str) -> BranchRecord {
    let failure = PackedFailure {
        kind: FailureKind::Exit,
        code: 4,
        message: message.into(),
        command: "wget x".into(),
        elapsed: Some(Duration::from_millis(20)),
        text: 1,
        line: 3,
        tries: Vec::new(),
        branches: None,
        output: Some("last\x1e words\n".into()),
        slug: "exit".into(),
        errno: Some("ENOSPC".into()),
    };
    BranchRecord {
        ended: EndedBranch {
            end: BranchEnd::Failed { failure: vec![failure], again: PackedRetry::Never },
            attempts: 7,
            texts: vec![Text {
                name: "lib".into(),
                text: "a\nb\nfail\n".into(),
                length: None,
                calls_read: false,
            }],
        },
        node: "n1".into(),
        began: Duration::from_secs(1_700_000_000),
        elapsed: Duration::from_secs(2),
    }
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
                Piece::Record(record) => records.push(*record),
                other @ (Piece::Request(_) | Piece::TooLate) => panic!("{other:?}"),
            }
        }
        rest = later;
    }
    printed.extend(listener.end());
    (printed, records)
}

#[test]
fn a_line_with_another_letter_is_none() {
    let line = record("torn").to_line(&nonce());
    let at = line.rfind(':').expect("a prefix") + 1;
    for letter in (b'a'..=b'z').filter(|letter| *letter != line.as_bytes()[at]) {
        let mut torn = line.clone().into_bytes();
        torn[at] = letter;
        assert_eq!(decoded(&torn, &[90]), (Vec::new(), Vec::new()), "{}", char::from(letter));
    }
}

/// Generates bytes, many of which resemble the beginning of a record.
fn garbage() -> impl Strategy<Value = Vec<u8>> {
    let line = record("another").to_line(&Nonce([7; 16])).into_bytes();
    let begun = record("x").to_line(&nonce()).into_bytes();
    // Incomplete prefix, as only the node knows the nonce.
    let longest = "\x1eftsh:".len() + 32;
    let part = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..40),
        (0..longest).prop_map(move |length| begun[..length].to_vec()),
        (0..line.len()).prop_map(move |length| line[..length].to_vec()),
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
        let bytes = [&before[..], record.to_line(&nonce()).as_bytes(), &after].concat();
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
        let line = record("torn").to_line(&nonce()).into_bytes();
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
        let go = ToNode::Go(Go { nonce: nonce(), waited, lease });
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
fn a_record_tells_where_things_failed() {
    let record = record("exited");
    let came_with =
        [Text { name: "script".into(), text: String::new(), length: Some(1), calls_read: false }];
    let failure = record.failure(&came_with).expect("a failure");
    assert_eq!(failure.to_string(), "lib:3: exited");
    assert_eq!(failure.source.line_text(3), "fail");
}

#[test]
fn a_failure_with_endless_output_still_comes_back() {
    let mut long = record("long");
    let BranchEnd::Failed { failure, .. } = &mut long.ended.end else { panic!("it failed") };
    failure[0].output = Some(vec![b'x'; 1 << 23].into());
    let (_, records) = decoded(long.to_line(&nonce()).as_bytes(), &[1 << 20]);
    let BranchEnd::Failed { failure, .. } = &records[0].ended.end else { panic!("it failed") };
    assert_eq!((failure[0].message.as_str(), &failure[0].output), ("long", &None));
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
