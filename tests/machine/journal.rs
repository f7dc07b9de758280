//! Recorded and repeated runs, in virtual time.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use ftsh_journal::{Beginning, Journal, Over, Recorder, Store, Unrepeatable, Writer, read, replay};
use ftsh_machine::driver::{self, BufferPart, Driver, Durable};
use ftsh_machine::effect::{BufferId, IoId, OperationId};
use ftsh_machine::event::{CommandStatus, Reply};
use ftsh_machine::record::{Level, LogRecord};
use ftsh_machine::{Config, Deadline, Effect, Event, Machine, Outcome, Time};
use ftsh_sim::{Model, Simulated};
use ftsh_syntax::parse;

/// Disk in memory, with an optional limit on the number of writes.
#[derive(Clone, Default)]
struct Disk(Rc<RefCell<State>>);

#[derive(Default)]
struct State {
    bytes: Vec<u8>,
    writes: usize,
    syncs: usize,
    most: Option<usize>,
}

impl Store for Disk {
    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        if state.most == Some(state.writes) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        state.writes += 1;
        state.bytes.truncate(at as usize);
        state.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.borrow_mut().syncs += 1;
        Ok(())
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.0.borrow_mut().bytes.truncate(length as usize);
        Ok(())
    }
}

impl Disk {
    fn journal(&self) -> Journal {
        read(&self.0.borrow().bytes).expect("a journal")
    }
}

fn world() -> Simulated {
    Simulated::new(1)
        .command("ok", |_, _| Model::succeeds())
        .command("slow", |_, _| Model::succeeds().takes(Duration::from_secs(60)))
        .command("fail", |_, _| Model::fails(1))
}

/// Returns a machine, and its journal on a disk.
fn begin(disk: &Disk, script: &str) -> (Machine, Rc<RefCell<Writer<Disk>>>) {
    let script = parse("script", script).expect("valid");
    let (arguments, environment) = (vec!["script".into()], vec![("A".into(), "1".into())]);
    let config = Config::default();
    let beginning =
        Beginning::new(&script, &arguments, &environment, &config, 7, Duration::from_secs(1));
    let machine = Machine::new(&script, arguments, environment, config, 7);
    let writer = Writer::begin(disk.clone(), 3, beginning).expect("a journal");
    (machine, Rc::new(RefCell::new(writer)))
}

/// Records a run on a disk, and returns the outcome and the world afterwards.
fn record(disk: &Disk, script: &str) -> (Outcome, Simulated) {
    let ((mut machine, writer), mut world) = (begin(disk, script), world());
    let mut recorder = Recorder::new(&mut world, writer, Deadline::NONE).expect("its beginning");
    let outcome = driver::run(&mut machine, &mut recorder);
    let is_full = disk.0.borrow().most.is_some();
    assert_eq!(recorder.end(&outcome).is_err(), is_full);
    (outcome, world)
}

#[test]
fn recorded_runs_replay() {
    let disk = Disk::default();
    let script = "try 3 times\n fail\ncatch\n x=$error_kind\nend\n\
                  forall i in 1 2 3\n try for 1 hour\n ok $i -> y\n if $y .ne. 2\n slow\n end\n end\nend\nok ${time(\"%F %T\")} ${trim(.output. (ok x))}\nfail";
    let (outcome, _) = record(&disk, script);
    let journal = disk.journal();
    assert_eq!(journal.over, Some(Over::Exited(1)));
    let mut lines = Vec::new();
    for level in [Level::NOTHING, Level::STRUCTURES, Level::PROCESSES] {
        let replayed = replay(&journal, level, |record: &LogRecord| lines.push(record.clone()))
            .expect("again");
        assert_eq!(replayed.outcome.as_ref(), Some(&outcome), "at level {}", level.0);
    }
    let attempts = lines.iter().filter(|record| record.event.level() == Level::STRUCTURES).count();
    assert!(attempts > 10 && lines.is_sorted_by_key(|record| record.level.min(Level::NOTHING)));
}

#[test]
fn reasons_of_the_system_are_recorded() {
    let disk = Disk::default();
    let caught = "catch\nif $error_errno .ne. ENOENT; exit 3; end\nend\n";
    let script =
        format!("try 1 time\ncat < /none\n{caught}try 1 time\nsource /none\n{caught}exit 5");
    let (outcome, _) = record(&disk, &script);
    assert_eq!(outcome, Outcome::Exited(5));
    let replayed = replay(&disk.journal(), Level::NOTHING, |_: &LogRecord| {}).expect("again");
    assert_eq!(replayed.outcome, Some(outcome));
}

/// World that suspends the run during the only command, and then records a further event.
#[derive(Default)]
struct Ending(VecDeque<Event>);

impl Driver for Ending {
    fn now(&self) -> Time {
        Time::START
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Run(run) => {
                let (process, status) = (run.process, CommandStatus::Exited(0));
                let result = Ok(Reply::Truth(true));
                self.0.extend([
                    Event::Interrupted(15),
                    Event::Exited { process, status, line: None, reader_gone: false },
                    Event::Done { operation: OperationId(99), result },
                ]);
            }
            Effect::Terminate(scope) => self.0.push_back(Event::Emptied { scope }),
            _ => {}
        }
    }

    fn wait(&mut self, _: Time) -> Option<Event> {
        self.0.pop_front()
    }
}

impl Durable for Ending {
    fn position(&self, _: IoId, _: u8) -> Option<u64> {
        None
    }

    fn written(&mut self, _: BufferId, _: u64) -> io::Result<Option<BufferPart>> {
        Ok(None)
    }
}

#[test]
fn more_may_be_recorded_than_the_end_of_a_run_that_is_suspended() {
    let disk = Disk::default();
    let (mut machine, writer) = begin(&disk, "ok");
    let mut world = Ending::default();
    let mut recorder = Recorder::new(&mut world, writer, Deadline::NONE).expect("its beginning");
    let outcome = driver::run(&mut machine, &mut recorder);
    assert_eq!(outcome, Outcome::Interrupted(15));
    assert!(!recorder.end(&outcome).expect("it is written"), "it is left to the next start");
    let replayed = replay(&disk.journal(), Level::NOTHING, |_: &LogRecord| ()).expect("all of it");
    assert_eq!(replayed.outcome, Some(Outcome::Succeeded));
}

#[test]
fn any_prefix_of_a_run_replays() {
    let disk = Disk::default();
    record(&disk, "for i in 1 2 3 4 5\n try 2 times\n ok $i\n fail\n catch\n ok\n end\nend");
    let bytes = disk.0.borrow().bytes.clone();
    let mut furthest = Vec::new();
    for cut in 0..bytes.len() {
        if let Ok(journal) = read(&bytes[..cut]) {
            let replayed =
                replay(&journal, Level::NOTHING, |_: &LogRecord| ()).expect("a beginning");
            assert!(replayed.outcome.is_none() || journal.over.is_some() || cut + 20 > bytes.len());
            furthest.push(replayed.now);
        }
    }
    assert!(furthest.is_sorted() && furthest.first() < furthest.last());
}

/// A sync for each command of a sequence, and one sync for all parallel commands.
#[test]
fn parallel_effects_share_a_commit() {
    let syncs = |script: &str| {
        let disk = Disk::default();
        record(&disk, script);
        disk.0.borrow().syncs
    };
    let none = syncs("x=1");
    assert_eq!(syncs(&"ok\n".repeat(50)), none + 49);
    let branches = syncs("forall i in 1 .to. 50\n slow\nend");
    assert!(branches <= none + 3, "{branches} instead of {none}");
}

#[test]
fn a_loop_that_only_computes_takes_little_room() {
    let disk = Disk::default();
    record(&disk, "i=0\nwhile $i .lt. 20000\n i=$i .add. 1\nend");
    let length = disk.0.borrow().bytes.len();
    assert!(length < 2000, "{length} bytes");
    assert!(replay(&disk.journal(), Level::NOTHING, |_: &LogRecord| ()).is_ok());
}

/// An effect happens only if it is recorded.
#[test]
fn a_full_disk_ends_the_run() {
    for most in 2..12 {
        let disk = Disk::default();
        disk.0.borrow_mut().most = Some(most);
        let (outcome, world) = record(&disk, &"try 2 times\n ok\nend\n".repeat(20));
        assert_eq!(outcome, Outcome::Interrupted(15), "{most} writes");
        // The header, the entries before the first command, and the entries before each further
        // command.
        assert_eq!(world.starts().len(), most - 1, "{most} writes");
        let replayed =
            replay(&disk.journal(), Level::NOTHING, |_: &LogRecord| ()).expect("a beginning");
        assert_eq!(replayed.outcome, None);
    }
}

#[test]
fn different_behavior_is_detected() {
    let disk = Disk::default();
    record(&disk, "ok one\nok two\nok three");
    let mut journal = disk.journal();
    journal.beginning.text = "ok one\nok TWO\nok three".into();
    let different = |journal: &Journal| match replay(journal, Level::NOTHING, |_: &LogRecord| ()) {
        Err(error) => error,
        Ok(_) => panic!("it is something else"),
    };
    assert!(matches!(different(&journal), Unrepeatable::Different { .. }));
    journal.beginning.text = "ok one".into();
    assert!(matches!(different(&journal), Unrepeatable::Different { .. }));
    journal.beginning.behavior += 1;
    assert!(matches!(different(&journal), Unrepeatable::OtherBehavior { .. }));
}
