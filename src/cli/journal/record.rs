//! Recording of a run from its beginning, or from the end of an earlier start.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Result, anyhow};
use bstr::BString;

use super::journal_file::JournalFile;
use super::moment::since_1970;
use super::start;
use crate::cli::messages::print_message;
use ftsh_journal::{
    Beginning, Journal, Recorder, ReplayResult, ReplayedWorld, Started, Writer, elapsed,
};
use ftsh_machine::driver::{self, Durable};
use ftsh_machine::effect::Environment;
use ftsh_machine::record::LogRecord;
use ftsh_machine::{Config, Deadline, Machine, Outcome};
use ftsh_process::LivenessLocks;
use ftsh_syntax::Script;
use ftsh_syntax::slug::Slug;
use ftsh_sys::os_error::plain;

/// A run that is about to begin or to resume, with its file.
pub(crate) struct Recording {
    pub journal_file: JournalFile,
    pub origin: RunOrigin,
}

/// Origin of a run.
pub(crate) enum RunOrigin {
    /// A new run.
    New { run: u64, beginning: Box<Beginning>, machine: Box<Machine> },
    /// A run that earlier starts recorded.
    Resumed { journal: Box<Journal>, replayed: Box<ReplayResult> },
}

/// Remaining work once the journal is writable.
enum ReadyRun {
    New(Box<Machine>),
    Resumed(Box<Machine>, Box<ReplayedWorld>),
}

/// A run whose journal is writable.
pub(crate) struct Recorded {
    ready: ReadyRun,
    /// Time since the beginning of the run.
    pub elapsed: Duration,
    /// Moment of this start, since 1970.
    pub at: Duration,
    pub journal: SharedJournal,
}

/// A journal that is being written. Clones share the writer.
#[derive(Clone)]
pub(crate) struct SharedJournal {
    path: Rc<PathBuf>,
    writer: Rc<RefCell<Writer<File>>>,
    /// Held until the run is over.
    _liveness_locks: Option<Rc<LivenessLocks>>,
}

impl Recording {
    /// Creates the recording of a new run.
    pub(crate) fn of(
        journal_file: JournalFile,
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
        Self { journal_file, origin: RunOrigin::New { run, beginning, machine } }
    }

    /// True if the run is new.
    pub(crate) fn begins(&self) -> bool {
        matches!(self.origin, RunOrigin::New { .. })
    }

    /// Returns the name of the script.
    pub(crate) fn name(&self) -> &str {
        match &self.origin {
            RunOrigin::New { beginning, .. } => &beginning.name,
            RunOrigin::Resumed { journal, .. } => &journal.beginning.name,
        }
    }

    /// Returns the machine in its present state.
    pub(crate) fn machine(&self) -> &Machine {
        match &self.origin {
            RunOrigin::New { machine, .. } => machine,
            RunOrigin::Resumed { replayed, .. } => &replayed.machine,
        }
    }

    /// Opens the journal for writing.
    pub(crate) fn open(self) -> Result<Recorded> {
        let JournalFile { path, file, liveness_locks, .. } = self.journal_file;
        let cannot = |error: io::Error| cannot_write(&path, &error);
        // A start that cannot be described is refused before the first write.
        start::this(Duration::ZERO, 0, "")?;
        let (writer, ready, elapsed) = match self.origin {
            RunOrigin::New { run, mut beginning, machine } => {
                beginning.at = since_1970();
                let writer = Writer::begin(file, run, *beginning).map_err(cannot)?;
                (writer, ReadyRun::New(machine), Duration::ZERO)
            }
            RunOrigin::Resumed { journal, replayed } => {
                let writer = Writer::resume(file, &journal, &replayed).map_err(cannot)?;
                let (latest, clocks, last) =
                    (replayed.now, start::clocks()?, journal.starts.last());
                let total = last.map_or(latest.elapsed(), |last| elapsed(last, latest, &clocks));
                let (machine, world) = replayed.go_on();
                let is_certain = last.is_some_and(|last| clocks.are_those_of(last));
                let world = if is_certain { world } else { world.with_uncertain_clock() };
                (writer, ReadyRun::Resumed(Box::new(machine), Box::new(world)), total)
            }
        };
        let journal = SharedJournal {
            path: Rc::new(path),
            writer: Rc::new(RefCell::new(writer)),
            _liveness_locks: liveness_locks,
        };
        Ok(Recorded { ready, elapsed, at: since_1970(), journal })
    }
}

/// Writes the end of a run that an earlier start could not write.
pub(super) fn write_end(
    file: File,
    path: &Path,
    journal: &Journal,
    replayed: &ReplayResult,
    outcome: &Outcome,
) -> Result<()> {
    let written = Writer::resume(file, journal, replayed).and_then(|mut it| it.end(outcome));
    written.map_err(|error| cannot_write(path, &error))
}

fn cannot_write(path: &Path, error: &io::Error) -> anyhow::Error {
    anyhow!("can't write the journal `{}`: {}", path.display(), plain(error))
}

impl SharedJournal {
    /// Records an entry of the driver's log.
    pub(crate) fn note(&self, record: &LogRecord) {
        self.writer.borrow_mut().note(record);
    }
}

impl Recorded {
    /// Runs the machine until its end or suspension. Commands of this shell carry the tag `mark`.
    /// `limit` is the time of this start.
    pub(crate) fn run(
        self,
        driver: &mut impl Durable,
        pid: u32,
        mark: &str,
        deadline: Deadline,
    ) -> Result<Outcome> {
        let Self { ready, elapsed, at, journal } = self;
        let SharedJournal { path, writer, _liveness_locks } = journal;
        writer.borrow_mut().start(Started { at, ..start::this(elapsed, pid, mark)? });
        let deadline = deadline + elapsed;
        let cannot = |error: io::Error| cannot_write(&path, &error);
        let (outcome, ended) = match ready {
            ReadyRun::New(mut machine) => {
                let mut recorder = Recorder::new(driver, writer, deadline).map_err(cannot)?;
                let outcome = driver::run(&mut machine, &mut recorder);
                let ended = recorder.end(&outcome);
                (outcome, ended)
            }
            ReadyRun::Resumed(mut machine, world) => {
                let recorder = Recorder::resume(driver, writer, *world, deadline);
                let mut recorder = recorder.map_err(|error| {
                    anyhow!("can't resume the run in `{}`: {}", path.display(), plain(&error))
                })?;
                recorder.record_resumption().map_err(cannot)?;
                let outcome = driver::resume(&mut machine, &mut recorder);
                let ended = recorder.end(&outcome);
                (outcome, ended)
            }
        };
        if let Err(error) = ended {
            let error = cannot_write(&path, &error);
            let message = format!("{error}; the run ends, and the next start resumes it");
            print_message(Slug::JournalFile, message);
        }
        Ok(outcome)
    }
}
