//! Effects that a suspended start never began are begun by the next start.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use super::crash::{Disk, started};
use crate::{Beginning, Recorder, Writer, read, replay};
use bstr::BString;
use ftsh_machine::driver::{self, BufferPart, Driver, Durable};
use ftsh_machine::effect::{BufferId, IoId, ViewId};
use ftsh_machine::record::{Level, LogRecord};
use ftsh_machine::{Config, Deadline, Effect, Event, Machine, Time};
use ftsh_sim::Simulated;
use ftsh_syntax::parse;

/// Script with a branch that is dispatched as soon as its descriptors are open.
const SCRIPT: &str = "forall x in a output tagged on ssh nowhere\n step 1\nend";
/// Number of tables opened for the branch.
const OPENINGS: usize = 2;

/// World in which a signal precedes the answer to an opening.
struct Untimely {
    world: Simulated,
    /// Number of openings before the signal.
    after: usize,
    signal: Option<i32>,
}

impl Driver for Untimely {
    fn now(&self) -> Time {
        self.world.now()
    }

    fn perform(&mut self, effect: Effect) {
        if matches!(effect, Effect::Open { .. }) {
            self.after = self.after.wrapping_sub(1);
            self.signal = (self.after == 0).then_some(libc::SIGTERM);
        }
        self.world.perform(effect);
    }

    fn wait(&mut self, until: Time) -> Option<Event> {
        self.signal.take().map(Event::Interrupted).or_else(|| self.world.wait(until))
    }
}

impl Durable for Untimely {
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

fn world(after: usize) -> Untimely {
    Untimely { world: Simulated::new(1), after, signal: None }
}

#[test]
fn a_branch_that_was_never_sent_is_sent() {
    for after in 1..=OPENINGS {
        let disk = Disk::of(&[]);
        let script = parse("script", SCRIPT).expect("valid");
        let config = Config::default();
        let beginning = Beginning::new(&script, &[], &[], &config, 7, Duration::ZERO);
        let mut machine = Machine::new(&script, Vec::new(), Vec::new(), config, 7);
        let mut writer = Writer::begin(disk.clone(), 5, beginning).expect("a journal");
        writer.start(started());
        let mut first = world(after);
        let writer = Rc::new(RefCell::new(writer));
        let mut recorder =
            Recorder::new(&mut first, writer, Deadline::NONE).expect("its beginning");
        let outcome = driver::run(&mut machine, &mut recorder);
        assert!(!recorder.end(&outcome).expect("no end"), "suspended at opening {after}");

        let journal = read(&disk.durable()).expect("a journal");
        let replayed = replay(&journal, Level::NOTHING, |_: &LogRecord| ()).expect("the same");
        let mut writer = Writer::resume(disk.clone(), &journal, &replayed).expect("a journal");
        writer.start(started());
        let mut next = world(usize::MAX);
        let writer = Rc::new(RefCell::new(writer));
        let (mut machine, again) = replayed.go_on();
        let mut recorder =
            Recorder::resume(&mut next, writer, again, Deadline::NONE).expect("a journal");
        let outcome = driver::resume(&mut machine, &mut recorder);
        assert!(recorder.end(&outcome).expect("an end"));
    }
}
