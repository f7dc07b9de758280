//! Recording a run, from its beginning or from where it was left.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Result, anyhow};
use bstr::BString;

use super::super::messages::complain;
use super::moment::since_1970;
use super::place::Place;
use super::start;
use ftsh_journal::{Beginning, Journal, Recorder, Replayed, World, Writer, elapsed};
use ftsh_machine::driver::{self, Durable};
use ftsh_machine::effect::Environment;
use ftsh_machine::record::LogRecord;
use ftsh_machine::{Config, Machine, Outcome, Time};
use ftsh_process::Lifelines;
use ftsh_syntax::Script;
use ftsh_sys::os_error::plain;

/// A run that is about to begin or to go on, and a file for it.
pub struct Recording {
    pub place: Place,
    pub course: Course,
}

/// How a run comes about.
pub enum Course {
    /// It begins.
    Begins { run: u64, beginning: Box<Beginning>, machine: Box<Machine> },
    /// It goes on.
    GoesOn { journal: Box<Journal>, replayed: Box<Replayed> },
}

/// What is left to be done when a journal can be written.
enum Ready {
    Begins(Box<Machine>),
    GoesOn(Box<Machine>, Box<World>),
}

/// A run whose journal can be written.
pub struct Recorded {
    ready: Ready,
    /// How long it has been going on.
    pub elapsed: Duration,
    pub journal: Kept,
}

/// A journal that is written; clones are the same.
#[derive(Clone)]
pub struct Kept {
    path: Rc<PathBuf>,
    writer: Rc<RefCell<Writer<File>>>,
    /// Until the run is over.
    _lifelines: Option<Rc<Lifelines>>,
}

impl Recording {
    /// One of a run that begins.
    pub fn of(
        place: Place,
        run: u64,
        script: &Script,
        arguments: Vec<BString>,
        environment: Environment,
        config: Config,
        seed: u64,
    ) -> Self {
        let now = since_1970();
        let beginning = Beginning::new(script, &arguments, &environment, &config, seed, now);
        let machine = Machine::new(script, arguments, environment, config, seed);
        let (beginning, machine) = (Box::new(beginning), Box::new(machine));
        Self { place, course: Course::Begins { run, beginning, machine } }
    }

    /// Whether the run begins.
    pub fn begins(&self) -> bool {
        matches!(self.course, Course::Begins { .. })
    }

    /// What its script is called.
    pub fn name(&self) -> &str {
        match &self.course {
            Course::Begins { beginning, .. } => &beginning.name,
            Course::GoesOn { journal, .. } => &journal.beginning.name,
        }
    }

    /// The machine as it is by now.
    pub fn machine(&self) -> &Machine {
        match &self.course {
            Course::Begins { machine, .. } => machine,
            Course::GoesOn { replayed, .. } => &replayed.machine,
        }
    }

    /// Makes the file ready.
    pub fn open(self) -> Result<Recorded> {
        let Place { path, file, lifelines, .. } = self.place;
        let cannot = |error: io::Error| cannot_write(&path, &error);
        // A start that cannot be described is refused before anything is written.
        start::this(Duration::ZERO, 0, "")?;
        let (writer, ready, elapsed) = match self.course {
            Course::Begins { run, mut beginning, machine } => {
                beginning.at = since_1970();
                let writer = Writer::begin(file, run, *beginning).map_err(cannot)?;
                (writer, Ready::Begins(machine), Duration::ZERO)
            }
            Course::GoesOn { journal, replayed } => {
                let writer = Writer::resume(file, &journal, &replayed).map_err(cannot)?;
                let (latest, clocks, last) =
                    (replayed.now, start::clocks()?, journal.starts.last());
                let by_now = last.map_or(latest.elapsed(), |last| elapsed(last, latest, &clocks));
                let (machine, world) = replayed.go_on();
                let is_certain = last.is_some_and(|last| clocks.are_those_of(last));
                let world = if is_certain { world } else { world.with_uncertain_clock() };
                (writer, Ready::GoesOn(Box::new(machine), Box::new(world)), by_now)
            }
        };
        let journal = Kept {
            path: Rc::new(path),
            writer: Rc::new(RefCell::new(writer)),
            _lifelines: lifelines,
        };
        Ok(Recorded { ready, elapsed, journal })
    }
}

/// Writes how a run ended that an earlier start couldn't write.
pub fn write_end(
    file: File,
    path: &Path,
    journal: &Journal,
    replayed: &Replayed,
    outcome: &Outcome,
) -> Result<()> {
    let written = Writer::resume(file, journal, replayed).and_then(|mut it| it.end(outcome));
    written.map_err(|error| cannot_write(path, &error))
}

fn cannot_write(path: &Path, error: &io::Error) -> anyhow::Error {
    anyhow!("can't write the journal `{}`: {}", path.display(), plain(error))
}

impl Kept {
    /// Keeps what a driver logs.
    pub fn note(&self, record: &LogRecord) {
        self.writer.borrow_mut().note(record);
    }
}

impl Recorded {
    /// Runs it to its end, or until it is suspended: by this shell, whose commands carry this mark, and
    /// which has so much time.
    pub fn run(
        self,
        driver: &mut impl Durable,
        pid: u32,
        mark: &str,
        limit: Option<Duration>,
    ) -> Result<Outcome> {
        let Self { ready, elapsed, journal: Kept { path, writer, _lifelines } } = self;
        writer.borrow_mut().start(start::this(elapsed, pid, mark)?);
        let deadline = limit.map(|limit| Time::after(elapsed.saturating_add(limit)));
        let cannot = |error: io::Error| cannot_write(&path, &error);
        let (outcome, ended) = match ready {
            Ready::Begins(mut machine) => {
                let mut recorder = Recorder::new(driver, writer, deadline).map_err(cannot)?;
                let outcome = driver::run(&mut machine, &mut recorder);
                let ended = recorder.end(&outcome);
                (outcome, ended)
            }
            Ready::GoesOn(mut machine, world) => {
                let recorder = Recorder::resume(driver, writer, *world, deadline);
                let mut recorder = recorder.map_err(cannot)?;
                recorder.record_resumption().map_err(cannot)?;
                let outcome = driver::resume(&mut machine, &mut recorder);
                let ended = recorder.end(&outcome);
                (outcome, ended)
            }
        };
        if let Err(error) = ended {
            let error = cannot_write(&path, &error);
            complain(&format!("{error}; the run ends, and the next start goes on with it"));
        }
        Ok(outcome)
    }
}
