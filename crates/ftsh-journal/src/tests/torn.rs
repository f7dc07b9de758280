//! A torn frame may contain anything: large data, other journals, its own journal.

use std::cell::RefCell;
use std::io::{self, Read, Seek, SeekFrom};
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::{RUN, beginning, exited};
use crate::entry::JournalEntry;
use crate::{Journal, LastFrame, Over, Store, Unreadable, Writer, frame, last, read, report};
use ftsh_machine::effect::ProcessId;
use ftsh_machine::event::CommandStatus;
use ftsh_machine::{Event, Outcome, Time};

/// File in memory.
#[derive(Clone, Default)]
struct Memory(Rc<RefCell<Vec<u8>>>);

impl Store for Memory {
    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let mut all = self.0.borrow_mut();
        let at = at as usize;
        let end = all.len().max(at + bytes.len());
        all.resize(end, 0);
        all[at..at + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.0.borrow_mut().truncate(length as usize);
        Ok(())
    }
}

/// Journal that grows by one commit at a time.
struct Growing {
    memory: Memory,
    writer: Writer<Memory>,
    now: Time,
}

impl Growing {
    fn new() -> Self {
        let memory = Memory::default();
        let mut writer = Writer::begin(memory.clone(), RUN, beginning()).expect("a journal");
        writer.commit().expect("a commit");
        Self { memory, writer, now: Time::START }
    }

    /// Records the exits of `count` commands, each in a commit of its own.
    fn commands(&mut self, count: u64) {
        for process in 0..count {
            self.now = self.now + Duration::from_millis(3);
            self.writer.record_delivery(self.now, Some(&exited(process))).expect("a record");
            self.writer.commit().expect("a commit");
        }
    }

    /// Records the exit of a command that printed `line` for `read`.
    fn printed(&mut self, line: Vec<u8>) {
        let (process, status) = (ProcessId(77), CommandStatus::Exited(0));
        let event = Event::Exited { process, status, line: Some(line.into()), reader_gone: false };
        self.writer.record_delivery(self.now, Some(&event)).expect("a record");
        self.writer.commit().expect("a commit");
    }

    /// Returns the written bytes without the room after the last frame.
    fn bytes(&self) -> Vec<u8> {
        let bytes = self.memory.0.borrow();
        let end = frame::FrameIter::of(&bytes, RUN).last().expect("frames").end;
        bytes[..end].to_vec()
    }
}

fn entries(bytes: &[u8]) -> Result<Vec<JournalEntry>, Unreadable> {
    read(bytes).map(|journal| journal.entries().map(|it| it.expect("memory")).collect())
}

#[test]
#[ignore = "slow: `.ci/run` includes it"]
fn large_data_that_was_being_written_is_soon_passed_over() {
    let text = "what was printed, in two bytes a letter\r\n".encode_utf16().cycle();
    let text: Vec<u8> = text.take(2_000_000).flat_map(u16::to_le_bytes).collect();
    let numbers: Vec<u8> = (0..1_000_000_u32).flat_map(u32::to_le_bytes).collect();
    for (what, data) in [("text", text), ("numbers", numbers), ("ones", vec![1; 4_000_000])] {
        let mut journal = Growing::new();
        journal.commands(3);
        let before = journal.bytes();
        journal.printed(data);
        let bytes = journal.bytes();
        let start = Instant::now();
        let found = entries(&bytes[..bytes.len() - 100]);
        // Checksums of all possible frames would take minutes.
        assert!(start.elapsed() < Duration::from_secs(10), "{what}: {:?}", start.elapsed());
        assert!(found == entries(&before), "{what}");
    }
}

#[test]
fn a_copy_of_the_journal_in_what_was_being_written_is_no_damage() {
    let mut journal = Growing::new();
    journal.commands(20);
    let before = journal.bytes();
    journal.printed(before.clone());
    let bytes = journal.bytes();
    for lost in [1, 10, 100] {
        assert!(entries(&bytes[..bytes.len() - lost]) == entries(&before), "{lost}");
    }
    // A whole frame with the same content is valid.
    journal.commands(3);
    let Journal { frames, .. } = read(&journal.bytes()).expect("a journal");
    assert_eq!(frames, 25);
}

#[test]
fn what_was_written_later_is_found_wherever_it_is() {
    let mut journal = Growing::new();
    journal.commands(3);
    let before = journal.bytes().len();
    journal.printed(b"binary\0data\xff\x01".repeat(100_000));
    let behind = journal.bytes().len();
    journal.commands(2);
    let bytes = journal.bytes();
    for at in [before, before + 4, before + 9, before + 700_000, behind - 1] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 4;
        assert_eq!(entries(&damaged), Err(Unreadable::Damaged(before)), "byte {at}");
        // The last frame is found as well.
        damaged[behind + 4] ^= 4;
        assert_eq!(entries(&damaged), Err(Unreadable::Damaged(before)), "byte {at}");
    }
}

/// A copy made piece by piece during recording is the run up to a gap.
#[test]
fn a_copy_that_was_made_meanwhile_is_the_run_up_to_a_gap() {
    let mut journal = Growing::new();
    let mut states = Vec::new();
    for _ in 0..40 {
        journal.commands(13);
        states.push((journal.bytes().len(), journal.memory.0.borrow().clone()));
    }
    let all = entries(&journal.bytes()).expect("a journal");
    let mut gaps = 0;
    for piece in [512, 1024, 4096] {
        for pause in 1..40 {
            // Each piece has the content at the time of its copy.
            let (mut copy, mut ends) = (Vec::new(), Vec::new());
            for ((used, state), at) in states.iter().step_by(pause).zip((0..).step_by(piece)) {
                let Some(rest) = state.get(at..) else { break };
                copy.extend(&rest[..rest.len().min(piece)]);
                ends.push((*used, at + piece));
            }
            // A hole of less than eight bytes is not detected.
            if ends.iter().any(|(used, end)| (1..8).contains(&end.saturating_sub(*used))) {
                continue;
            }
            let found = match read(&copy) {
                Err(Unreadable::Gap(at)) => {
                    gaps += 1;
                    entries(&copy[..at])
                }
                journal => journal.map(|journal| journal.entries().flatten().collect()),
            };
            let found = found.expect("a part of the run");
            assert!(all.starts_with(&found), "{pause} for {piece}");
            // The part has everything that existed when the first hole was copied.
            let (used, _) = ends.iter().find(|(used, end)| used < end).unwrap_or(&ends[0]);
            let whole = entries(&states.last().expect("a state").1[..*used]).expect("a journal");
            assert!(found.len() >= whole.len() - 1, "{pause} for {piece}");
        }
    }
    assert!(gaps > 20, "{gaps}");
}

/// File that counts the bytes read.
struct Counted(io::Cursor<Vec<u8>>, u64);

impl Read for Counted {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.0.read(bytes)?;
        self.1 += count as u64;
        Ok(count)
    }
}

impl Seek for Counted {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

fn last_of(bytes: &[u8]) -> Option<LastFrame> {
    last(io::Cursor::new(bytes.to_vec())).expect("it is read")
}

#[test]
fn the_end_of_a_run_is_found_without_reading_all_of_it() {
    let mut journal = Growing::new();
    journal.commands(3);
    journal.printed(vec![7; 8_000_000]);
    assert_eq!(last_of(&journal.bytes()).expect("a frame").over, None);
    journal.writer.end(&Outcome::Exited(3)).expect("an end");
    let mut bytes = journal.bytes();
    let mut file = Counted(io::Cursor::new(bytes.clone()), 0);
    let end = last(&mut file).expect("it is read").expect("a frame");
    assert_eq!(end.over, Some(Over::Exited(3)));
    assert!(file.1 < 1_000_000, "{} bytes are read", file.1);
    // Room after the end, and a torn mark, are ignored.
    bytes.resize(bytes.len() + 3, 0);
    assert_eq!(last_of(&bytes).as_ref(), Some(&end));
    bytes.resize(bytes.len() + 100_000, 0);
    assert_eq!(last_of(&bytes).as_ref(), Some(&end));
    report(journal.memory.clone(), &end).expect("a mark");
    let marked = journal.bytes();
    assert!(read(&marked).expect("a journal").reported);
    let torn = [&marked[..marked.len() - 3], &[0; 3]].concat();
    assert_eq!(last_of(&torn), Some(end));
    assert_eq!(last_of(&marked).expect("a frame").over, None);
}

#[test]
fn what_is_no_journal_has_no_end() {
    for bytes in [&frame::header(RUN)[..], &[7; 100]] {
        assert_eq!(last_of(bytes), None);
    }
    assert!(last(io::Cursor::new(b"short")).is_err());
}
