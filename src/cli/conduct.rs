//! A run from its first command to its end, in the process that does nothing else.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use bstr::BString;

use super::journal::{Ended, Kept, Place, Recording};
use super::telling::Telling;
use crate::repl::{self, Story};
use ftsh_cluster as cluster;
use ftsh_machine::driver::{self, Driver, Interactive};
use ftsh_machine::event::Status;
use ftsh_machine::record::Level;
use ftsh_machine::secrets::Secrets;
use ftsh_machine::{Machine, Outcome, Time};
use ftsh_process as process;
use ftsh_process::non_blocking_writer;
use ftsh_process::{AtEnd, ProcessDriver, Supervision};
use ftsh_sys::os_error::plain;

/// What carries out what a machine asks for.
type Real = cluster::ClusterDriver;

/// What there is to do.
pub enum Work {
    /// A script.
    Run(Box<Machine>),
    /// One whose run is recorded.
    Record(Recording),
    /// Saying how a run ended.
    Tell(Ended),
}

impl Work {
    /// Where it is recorded, and whether it begins there.
    pub fn place(&self) -> Option<(&Place, bool)> {
        match self {
            Self::Run(_) => None,
            Self::Record(recording) => Some((&recording.place, recording.begins())),
            Self::Tell(ended) => Some((&ended.place, false)),
        }
    }

    /// What its script was called when it began.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Run(_) => None,
            Self::Record(recording) => Some(recording.name()),
            Self::Tell(ended) => Some(&ended.name),
        }
    }

    /// Whether it takes more than this process.
    pub fn may_run_programs(&self) -> bool {
        match self {
            Self::Run(machine) => machine.may_run_programs(),
            Self::Record(recording) => recording.machine().may_run_programs(),
            Self::Tell(_) => false,
        }
    }
}

/// What it takes to do it.
pub struct Means {
    /// What the script is called.
    pub file: Arc<str>,
    pub telling: Rc<RefCell<Telling>>,
    /// Variables for every command.
    pub told: Vec<(&'static str, BString)>,
    pub patience: process::Patience,
    pub channels: Option<PathBuf>,
    /// How long branches on other machines go on without hearing of this shell.
    pub lease: Duration,
    /// Whether they are sent this program.
    pub ship: bool,
    /// How long a recorded run may go on in this process.
    pub limit: Option<Duration>,
    pub talks: bool,
    pub is_cron: bool,
    /// For a process without a supervisor.
    pub at_end: Option<AtEnd>,
}

impl Means {
    /// Does it.
    pub fn perform(mut self, work: Work, supervision: Option<Supervision>) -> Result<Outcome> {
        if self.is_cron && supervision.is_none() {
            bail!("can't keep what is printed: there is no second process to be had");
        }
        let at_end = self.at_end.take().filter(|_| supervision.is_none());
        let outcome = self.run(work, supervision)?;
        if let Some(at_end) = at_end {
            non_blocking_writer::wait(None);
            at_end(match outcome {
                Outcome::Interrupted(signal) => Status::Signaled(signal),
                ref outcome => Status::Exited(outcome.exit_code().into()),
            });
        }
        Ok(outcome)
    }

    fn run(self, work: Work, supervision: Option<Supervision>) -> Result<Outcome> {
        let (file, telling) = (Arc::clone(&self.file), Rc::clone(&self.telling));
        let (limit, talks) = (self.limit, self.talks);
        let pid = supervision.as_ref().map_or_else(std::process::id, Supervision::shell_pid);
        let finish = |outcome: &Outcome, now: Time, secrets: &Secrets| {
            telling.borrow_mut().finish(&file, outcome, now, secrets);
        };
        match work {
            Work::Tell(ended) => {
                finish(&ended.outcome, ended.elapsed, &ended.secrets);
                Ok(ended.outcome)
            }
            Work::Run(mut machine) => {
                let secrets = machine.secrets().clone();
                let story = talks.then(Rc::default);
                let mut driver = self.driver(supervision, &secrets, None, story.clone())?;
                if let Some(story) = story {
                    return Ok(repl::run(*machine, driver, story));
                }
                let outcome = driver::run(&mut machine, &mut driver);
                finish(&outcome, driver.now(), &secrets);
                Ok(driver.flush_on_exit(outcome))
            }
            Work::Record(recording) => {
                let secrets = recording.machine().secrets().clone();
                let recorded = recording.open()?;
                let kept = Some((recorded.journal.clone(), recorded.elapsed));
                let mut driver = self.driver(supervision, &secrets, kept, None)?;
                let mark = driver.mark().to_owned();
                let outcome = recorded.run(&mut driver, pid, &mark, limit)?;
                finish(&outcome, driver.now(), &secrets);
                Ok(driver.flush_on_exit(outcome))
            }
        }
    }

    fn driver(
        self,
        supervision: Option<Supervision>,
        secrets: &Secrets,
        journal: Option<(Kept, Duration)>,
        story: Option<Rc<RefCell<Story>>>,
    ) -> Result<Real> {
        let Self { file, telling, told, patience, channels, talks, lease, ship, .. } = self;
        let elsewhere = cluster::Settings { lease, told: told.clone(), ship };
        let (level, is_wordy) = (telling.borrow().level(), telling.borrow().is_wordy());
        let level = story.as_ref().map_or(level, |_| level.max(Story::LEVEL));
        let (notes, elapsed) = journal.unzip();
        let hidden = secrets.clone();
        let (beside, told_beside) = (Rc::clone(&telling), Rc::clone(&telling));
        let driver = ProcessDriver::new(process::Settings {
            file,
            // What only the driver knows isn't to be had again.
            log_level: if notes.is_some() { level.max(Level::PROCESSES) } else { level },
            log: Box::new(move |record| {
                if let Some(journal) = &notes {
                    journal.note(record);
                }
                let record = record.hide(&hidden);
                if let Some(story) = &story {
                    story.borrow_mut().add(&record);
                }
                telling.borrow_mut().tell(&record);
            }),
            told,
            patience,
            status_line: talks || is_wordy,
            line_shows: Box::new(move |shown| told_beside.borrow_mut().log().line_shows(shown)),
            supervision,
            restore: if talks { repl::restore() } else { None },
            channels,
            elapsed: elapsed.unwrap_or_default(),
            oversight: None,
        })
        .map_err(|error| {
            let hint = match error.raw_os_error() {
                Some(libc::EMFILE) => "; 32 do for most scripts",
                _ => "",
            };
            anyhow!("can't get ready to start commands: {}{hint}", plain(&error))
        })?;
        if driver.shows_line() {
            beside.borrow_mut().log().stands_beside_line();
        }
        let driver = cluster::ClusterDriver::new(driver, elsewhere);
        Ok(driver)
    }
}
