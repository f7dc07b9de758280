//! Full disks: exactly the reported resumptions are on the disk.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use super::crash::{Disk, started};
use crate::entry::{Delivered, JournalEntry};
use crate::{Beginning, Journal, Recorder, Store, Writer, frame, read, replay};
use bstr::BString;
use ftsh_machine::driver::{self, BufferPart, Driver, Durable};
use ftsh_machine::effect::{BufferId, IoId, ViewId};
use ftsh_machine::record::{Level, LogEvent, LogRecord};
use ftsh_machine::{Config, Deadline, Effect, Event, Machine, Time};
use ftsh_sim::{Model, Simulated};
use ftsh_syntax::parse;

const SCRIPT: &str = "for i in 1 2 3\n try 2 times every 1 ms\n  step $i\n end\nend";

/// Disk with room for this many bytes.
#[derive(Clone)]
struct Small(Disk, usize);

impl Store for Small {
    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let room = self.1.saturating_sub(at as usize);
        self.0.write(at, &bytes[..bytes.len().min(room)])?;
        if bytes.len() > room { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync()
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.0.cut(length)
    }
}

/// World that counts the reported resumptions and the steps.
struct Witness {
    world: Simulated,
    resumed: usize,
    steps: usize,
}

impl Driver for Witness {
    fn now(&self) -> Time {
        self.world.now()
    }

    fn perform(&mut self, effect: Effect) {
        if let Effect::Log(record) = &effect {
            self.resumed += usize::from(matches!(record.event, LogEvent::Resumed { .. }));
        }
        self.steps += usize::from(matches!(effect, Effect::Run(_)));
        self.world.perform(effect);
    }

    fn wait(&mut self, until: Time) -> Option<Event> {
        self.world.wait(until)
    }
}

impl Durable for Witness {
    fn position(&self, io: IoId, descriptor: u8) -> Option<u64> {
        self.world.position(io, descriptor)
    }

    fn written(&mut self, buffer: BufferId, from: u64) -> io::Result<Option<BufferPart>> {
        self.world.written(buffer, from)
    }

    fn record_commits(&mut self, run: u64) {
        self.world.record_commits(run);
    }

    fn take_over_view(&mut self, view: ViewId, directories: &[BString]) -> io::Result<bool> {
        self.world.take_over_view(view, directories)
    }
}

fn world() -> Witness {
    let world = Simulated::new(1).command("step", |_, _| Model::succeeds());
    Witness { world, resumed: 0, steps: 0 }
}

/// Returns the journal of the whole run.
fn recorded() -> Vec<u8> {
    let disk = Disk::of(&[]);
    let script = parse("script", SCRIPT).expect("valid");
    let config = Config::default();
    let beginning = Beginning::new(&script, &[], &[], &config, 7, Duration::ZERO);
    let mut machine = Machine::new(&script, Vec::new(), Vec::new(), config, 7);
    let mut writer = Writer::begin(disk.clone(), 5, beginning).expect("a journal");
    writer.start(started());
    let mut world = world();
    let writer = Rc::new(RefCell::new(writer));
    let mut recorder = Recorder::new(&mut world, writer, Deadline::NONE).expect("its beginning");
    let outcome = driver::run(&mut machine, &mut recorder);
    assert!(recorder.end(&outcome).expect("an end"));
    disk.durable()
}

fn resumptions(journal: &Journal) -> usize {
    let is_one = |entry: &JournalEntry| {
        let resumed = |it: &Delivered| matches!(it, Delivered::Event(Event::Resumed { .. }));
        matches!(entry, JournalEntry::Delivered { delivered, .. } if resumed(delivered))
    };
    journal.entries().flatten().filter(is_one).count()
}

#[test]
fn resumption_is_reported_after_it_is_recorded() {
    let whole = recorded();
    let ends: Vec<usize> = frame::FrameIter::of(&whole, 5).map(|content| content.end).collect();
    let (mut refused, mut ended) = (0, 0);
    for end in ends {
        let journal = read(&whole[..end]).expect("a journal");
        for room in (0..900).step_by(7) {
            let replayed =
                replay(&journal, Level::PROCESSES, |_: &LogRecord| ()).expect("the same");
            if replayed.outcome.is_some() {
                continue;
            }
            let disk = Disk::of(&whole[..end]);
            let store = Small(disk.clone(), end + room);
            let mut writer = Writer::resume(store, &journal, &replayed).expect("a journal");
            writer.start(started());
            let mut world = world();
            let writer = Rc::new(RefCell::new(writer));
            let (mut machine, again) = replayed.go_on();
            let recorder = Recorder::resume(&mut world, writer, again, Deadline::NONE);
            let recorder = recorder.and_then(|mut it| it.record_resumption().map(|()| it));
            let came = recorder.ok().map(|mut recorder| {
                let outcome = driver::resume(&mut machine, &mut recorder);
                recorder.end(&outcome).is_ok()
            });
            let left = read(&disk.durable()).expect("a journal");
            assert_eq!(world.resumed, resumptions(&left), "{room} bytes after {end}");
            assert_eq!(world.resumed, usize::from(came.is_some()), "{room} bytes after {end}");
            assert!(came.is_some() || world.steps == 0, "{room} bytes after {end}");
            refused += usize::from(came.is_none());
            // The extra room after a frame is optional.
            ended += usize::from(came == Some(true));
        }
    }
    assert!(refused > 10 && ended > 10, "{refused} and {ended}");
}
