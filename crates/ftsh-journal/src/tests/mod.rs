mod crash;
mod disk_full;
mod suspend;
mod torn;

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use proptest::prelude::*;

use crate::entry::{Delivered, FrameHead, JournalEntry};
use crate::{BEHAVIOR, Beginning, Over, Store, Unreadable, Writer, frame, read};
use ftsh_machine::effect::ProcessId;
use ftsh_machine::event::CommandStatus;
use ftsh_machine::{Config, Event, Outcome, Time};
use ftsh_syntax::parse;

pub(crate) const RUN: u64 = 0x1234_5678_9abc_def0;

/// Disk that logs all writes.
#[derive(Clone, Default)]
struct Disk(Rc<RefCell<Log>>);

#[derive(Default)]
struct Log {
    bytes: Vec<u8>,
    /// Content before each write, position, and bytes written.
    writes: Vec<(Vec<u8>, usize, Vec<u8>)>,
    synced: usize,
}

impl Store for Disk {
    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let mut log = self.0.borrow_mut();
        // Most of the preallocated room would only take time.
        let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let bytes = &bytes[..bytes.len().min(used + 200)];
        assert_eq!(log.synced, log.writes.len(), "what was written before is on the disk");
        let before = log.bytes.clone();
        let at = at as usize;
        log.writes.push((before, at, bytes.to_vec()));
        let end = log.bytes.len().max(at + bytes.len());
        log.bytes.resize(end, 0);
        log.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut log = self.0.borrow_mut();
        log.synced = log.writes.len();
        Ok(())
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.0.borrow_mut().bytes.truncate(length as usize);
        Ok(())
    }
}

pub(crate) fn beginning() -> Beginning {
    let script = parse("script", "true\n").expect("valid");
    Beginning::new(&script, &["a".into()], &[], &Config::default(), 7, Duration::from_secs(9))
}

pub(crate) fn exited(process: u64) -> Event {
    let (process, status) = (ProcessId(process), CommandStatus::Exited(0));
    Event::Exited { process, status, line: None, reader_gone: false }
}

/// Returns a journal with `commits` commits of `events` events each.
fn journal(commits: usize, events: u64) -> Disk {
    let disk = Disk::default();
    let mut writer = Writer::begin(disk.clone(), RUN, beginning()).expect("a journal");
    writer.commit().expect("a commit");
    let mut now = Time::START;
    for commit in 0..commits {
        for event in 0..events {
            now = now + Duration::from_millis(3);
            writer
                .record_delivery(now, Some(&exited(commit as u64 * events + event)))
                .expect("a record");
        }
        writer.commit().expect("a commit");
    }
    disk
}

fn entries(bytes: &[u8]) -> Result<Vec<JournalEntry>, Unreadable> {
    read(bytes).map(|journal| journal.entries().map(|it| it.expect("memory")).collect())
}

#[test]
fn what_is_written_is_read() {
    let disk = journal(3, 2);
    let bytes = disk.0.borrow().bytes.clone();
    let journal = read(&bytes).expect("a journal");
    assert_eq!((journal.run, &journal.beginning, journal.over), (RUN, &beginning(), None));
    let delivered = journal.entries().map(|entry| match entry.expect("memory") {
        JournalEntry::Delivered { later, delivered } => (later, delivered),
        other => panic!("{other:?}"),
    });
    let expected = (0..6).map(|process| (3_000_000, Delivered::Event(exited(process))));
    assert!(delivered.eq(expected));
}

#[test]
fn the_end_is_known_and_room_that_was_made_is_given_back() {
    let disk = Disk::default();
    let mut writer = Writer::begin(disk.clone(), RUN, beginning()).expect("a journal");
    writer.commit().expect("a commit");
    let with_room = disk.0.borrow().bytes.len();
    writer.end(&Outcome::Exited(3)).expect("an end");
    let bytes = disk.0.borrow().bytes.clone();
    assert!(bytes.len() < with_room, "{} bytes", bytes.len());
    assert_eq!(read(&bytes).expect("a journal").over, Some(Over::Exited(3)));
}

/// Any part of the last write on the disk leaves all earlier entries readable. The entries of the
/// last write are read as a whole or ignored.
#[test]
fn a_crash_in_any_write_loses_nothing_before_it() {
    let disk = journal(4, 3);
    let log = disk.0.borrow();
    let mut torn_differently = 0;
    for (number, (before, at, written)) in log.writes.iter().enumerate() {
        let end = at + written.len();
        let mut whole = before.clone();
        whole.resize(end.max(before.len()), 0);
        whole[*at..end].copy_from_slice(written);
        let (old, new) = (entries(before), entries(&whole));
        // The mask selects the pieces on the disk.
        for (mask, piece) in (0..64_u32).flat_map(|mask| [8, 64, 512].map(|piece| (mask, piece))) {
            let mut torn = before.clone();
            torn.resize(whole.len(), 0);
            for byte in *at..end {
                if mask >> ((byte / piece) % 6) & 1 == 1 {
                    torn[byte] = whole[byte];
                }
            }
            let found = entries(&torn);
            torn_differently += usize::from(torn != whole && torn != *before);
            let expected = if torn == whole { &new } else { &old };
            assert!(found == *expected || found == new, "write {number}, {mask:b} of {piece}");
        }
    }
    assert!(torn_differently > 100, "{torn_differently}");
}

proptest! {
    /// A file that ends anywhere contains a prefix of the entries, or none.
    #[test]
    fn a_cut_file_holds_what_was_committed_before(commits in 0..6_usize, events in 1..4_u64, cut in 0.0..1.0) {
        let bytes = journal(commits, events).0.borrow().bytes.clone();
        let all = entries(&bytes).expect("a journal");
        // Cuts in the room at the end show nothing.
        let used = bytes.iter().rposition(|byte| *byte != 0).expect("something") + 2;
        let cut = (used as f64 * cut) as usize;
        match entries(&bytes[..cut]) {
            Ok(some) => prop_assert!(all.starts_with(&some) && (some.len() as u64).is_multiple_of(events)),
            Err(error) => prop_assert_eq!(error, Unreadable::Empty),
        }
    }

    /// A flipped bit is detected, except in the last frame.
    #[test]
    fn a_flipped_bit_is_damage(commits in 1..6_usize, events in 1..4_u64, place in 0.0..1.0, bit in 0..8) {
        let mut bytes = journal(commits, events).0.borrow().bytes.clone();
        let all = entries(&bytes).expect("a journal");
        let frames: Vec<_> = frame::FrameIter::of(&bytes, RUN).collect();
        let last = frames[frames.len() - 2].end;
        let used = frames[frames.len() - 1].end;
        let at = (used as f64 * place) as usize;
        bytes[at] ^= 1_u8 << bit;
        match entries(&bytes) {
            Ok(some) => {
                prop_assert!(at >= last, "byte {} of {}", at, last);
                prop_assert_eq!(&all[..all.len() - events as usize], &some[..]);
            }
            Err(Unreadable::Damaged(found)) => prop_assert!(found <= at && at < last),
            Err(_) => prop_assert!(at < frame::HEADER),
        }
    }

    /// Arbitrary bytes are read or refused without a panic.
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300), begins: bool) {
        let mut file = if begins { frame::header(RUN).to_vec() } else { Vec::new() };
        file.extend(bytes);
        prop_assert!(read(&file).is_err());
    }

    /// A whole frame with invalid content is damage, or of another version.
    #[test]
    fn any_content_is_read_or_refused(content in prop::collection::vec(any::<u8>(), 1..100)) {
        let mut file = frame::header(RUN).to_vec();
        frame::append(&mut file, RUN, &content);
        let wrong = read(&file).expect_err("no journal");
        prop_assert!(!matches!(wrong, Unreadable::NoJournal), "{}", wrong);
    }
}

#[test]
fn what_is_no_journal_is_told_from_what_has_not_begun() {
    for empty in [&b""[..], &[0; 100], b"ftsh jour", b"ftsh journal 02\n", &frame::header(RUN)] {
        assert_eq!(entries(empty), Err(Unreadable::Empty), "{empty:?}");
    }
    assert_eq!(entries(b"#!/bin/sh\n"), Err(Unreadable::NoJournal));
    assert_eq!(entries(&[b"ftsh lock\n", &[0; 90][..]].concat()), Err(Unreadable::NoJournal));
    let other = [b"ftsh journal 01\n", &[7; 90][..]].concat();
    assert_eq!(entries(&other), Err(Unreadable::OtherFormat));
}

#[test]
fn entries_of_another_version_are_no_damage() {
    let head = FrameHead { number: 0, effects: 0, digest: 0 };
    let began = |behavior: u32| {
        let mut file = frame::header(RUN).to_vec();
        let content = postcard::to_allocvec(&(head, 0_u32, behavior)).expect("bytes");
        frame::append(&mut file, RUN, &content);
        entries(&file)
    };
    assert_eq!(began(BEHAVIOR), Err(Unreadable::Damaged(frame::HEADER + frame::HEAD)));
    assert_eq!(began(BEHAVIOR + 1), Err(Unreadable::OtherFormat));
}

#[test]
fn what_is_left_of_another_run_means_nothing() {
    let (mut bytes, mut other) = (Vec::new(), frame::header(!RUN).to_vec());
    frame::append(&mut bytes, RUN, b"content");
    other.extend(bytes);
    assert_eq!(entries(&other), Err(Unreadable::Empty));
}

#[test]
fn what_is_there_twice_is_damage() {
    let bytes = journal(2, 2).0.borrow().bytes.clone();
    let last = frame::FrameIter::of(&bytes, RUN).last().expect("a frame");
    let mut twice = bytes[..last.end].to_vec();
    frame::append(&mut twice, RUN, &bytes[last.clone()]);
    assert!(matches!(entries(&twice), Err(Unreadable::Damaged(at)) if at >= last.end));
}

/// Disk that is full after this many writes.
struct Full(usize);

impl Store for Full {
    fn write(&mut self, _: u64, _: &[u8]) -> io::Result<()> {
        self.0 = self.0.checked_sub(1).ok_or(io::ErrorKind::StorageFull)?;
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn cut(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }
}

/// Disk on which one sync fails, and the next would succeed.
#[derive(Clone, Default)]
struct Forgetful {
    disk: Disk,
    syncs: Rc<RefCell<usize>>,
    bad: usize,
}

impl Store for Forgetful {
    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.disk.write(at, bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        *self.syncs.borrow_mut() += 1;
        if *self.syncs.borrow() == self.bad {
            return Err(io::ErrorKind::Other.into());
        }
        self.disk.sync()
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.disk.cut(length)
    }
}

#[test]
fn a_failed_sync_is_never_retried_and_what_it_was_for_is_not_gone_on_from() {
    for bad in 3..6 {
        let store = Forgetful { bad, ..Forgetful::default() };
        let mut writer = Writer::begin(store.clone(), RUN, beginning()).expect("a journal");
        writer.commit().expect("a commit");
        for process in 3.. {
            writer.record_delivery(Time::START, Some(&exited(process))).expect("a record");
            if writer.commit().is_err() {
                break;
            }
        }
        for process in 10..13 {
            writer.record_delivery(Time::START, Some(&exited(process))).expect("a record");
            assert!(writer.commit().is_err());
        }
        assert!(writer.end(&Outcome::Succeeded).is_err());
        assert_eq!(*store.syncs.borrow(), bad);
        let there = entries(&store.disk.0.borrow().bytes).expect("a journal");
        assert_eq!(there.len(), bad - 3, "what the disk had taken before");
    }
}

#[test]
fn a_run_is_over_wherever_its_file_ends() {
    struct NoCut(Disk);
    impl Store for NoCut {
        fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
            self.0.write(at, bytes)
        }

        fn sync(&mut self) -> io::Result<()> {
            self.0.sync()
        }

        fn cut(&mut self, _: u64) -> io::Result<()> {
            Err(io::ErrorKind::Other.into())
        }
    }
    let disk = Disk::default();
    let mut writer = Writer::begin(NoCut(disk.clone()), RUN, beginning()).expect("a journal");
    writer.end(&Outcome::Succeeded).expect("an end");
    assert_eq!(read(&disk.0.borrow().bytes).expect("a journal").over, Some(Over::Exited(0)));
}

#[test]
fn after_a_failure_nothing_is_written() {
    assert!(Writer::begin(Full(0), RUN, beginning()).is_err());
    let mut writer = Writer::begin(Full(1), RUN, beginning()).expect("a journal");
    for _ in 0..2 {
        writer.record_delivery(Time::START, Some(&exited(1))).expect("a record");
        assert!(writer.commit().is_err());
    }
    assert!(writer.end(&Outcome::Succeeded).is_err());
}
