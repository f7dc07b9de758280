//! Execution of a run from its first command to its end, in a process of its own.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};

use crate::cli::journal::{EndedRun, JournalFile, Recording, SharedJournal, since_1970};
use crate::cli::lock::HeldLock;
use crate::cli::messages::print_message;
use crate::cli::options::topics;
use crate::cli::run::reporters::Reporters;
use crate::cli::storm;
use crate::repl::{self, Story};
use ftsh_cluster::{ClusterConfig, ClusterDriver};
use ftsh_machine::driver::{self, Driver, Interactive};
use ftsh_machine::event::CommandStatus;
use ftsh_machine::record::Level;
use ftsh_machine::secrets::Secrets;
use ftsh_machine::time::Deadline;
use ftsh_machine::{Machine, Outcome, Time};
use ftsh_process::non_blocking_writer;
use ftsh_process::{AtEnd, Attachments, ProcessConfig, ProcessDriver, Supervision};
use ftsh_storm::RunSpec;
use ftsh_syntax::slug::Slug;
use ftsh_sys::os_error::plain;

/// Workload of a process.
pub(crate) enum Workload {
    /// Running a script.
    Run(Box<Machine>),
    /// Running a script, with a journal.
    Record(Recording),
    /// Reporting the end of a recorded run.
    Report(EndedRun),
}

impl Workload {
    /// Returns the file of the journal, and true if the run begins there.
    pub(crate) fn journal_file(&self) -> Option<(&JournalFile, bool)> {
        match self {
            Self::Run(_) => None,
            Self::Record(recording) => Some((&recording.journal_file, recording.begins())),
            Self::Report(ended) => Some((&ended.journal_file, false)),
        }
    }

    /// Returns the name of the script when the recorded run began.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Run(_) => None,
            Self::Record(recording) => Some(recording.name()),
            Self::Report(ended) => Some(&ended.name),
        }
    }

    /// Returns the secrets of the run.
    pub(crate) fn secrets(&self) -> &Secrets {
        match self {
            Self::Run(machine) => machine.secrets(),
            Self::Record(recording) => recording.machine().secrets(),
            Self::Report(ended) => &ended.secrets,
        }
    }

    /// True if the script may start programs, or use files whose file systems may hang.
    pub(crate) fn needs_supervisor(&self) -> bool {
        match self {
            Self::Run(machine) => machine.needs_supervisor(),
            Self::Record(recording) => recording.machine().needs_supervisor(),
            Self::Report(_) => false,
        }
    }
}

/// Context that a workload is executed in.
pub(crate) struct RunContext {
    /// Name of the script.
    pub file: Arc<str>,
    pub reporters: Rc<RefCell<Reporters>>,
    pub process: ProcessConfig,
    pub cluster: ClusterConfig,
    /// Deadline of this start of a recorded run.
    pub deadline: Deadline,
    /// Instructions of a storm, if the run belongs to one.
    pub storm: Option<RunSpec>,
    pub is_prompt: bool,
    pub is_cron: bool,
    /// Lock of the run.
    pub lock: Option<HeldLock>,
    /// Action at the end of a process without a supervisor.
    pub at_end: Option<AtEnd>,
}

impl RunContext {
    /// Executes a workload.
    ///
    /// # Errors
    ///
    /// Fails if the driver cannot be made, before anything was run.
    pub(crate) fn execute(
        mut self,
        workload: Workload,
        supervision: Option<Supervision>,
    ) -> Result<Outcome> {
        if self.is_cron && supervision.is_none() {
            bail!(
                "can't capture the output: no second process could be started; check `ulimit -u`"
            );
        }
        let at_end = self.at_end.take().filter(|_| supervision.is_none());
        let lock = self.lock.take();
        let outcome = self.run(workload, supervision)?;
        if let Some(warning) = lock.and_then(|lock| lock.warning()) {
            print_message(Slug::LockFile, warning);
        }
        if let Some(at_end) = at_end {
            non_blocking_writer::wait(None);
            at_end(match outcome {
                Outcome::Interrupted(signal) => CommandStatus::Signaled(signal),
                ref outcome => CommandStatus::Exited(outcome.exit_code().into()),
            });
        }
        Ok(outcome)
    }

    fn run(mut self, workload: Workload, supervision: Option<Supervision>) -> Result<Outcome> {
        let instructions = self.storm.take();
        let (file, reporters) = (Arc::clone(&self.file), Rc::clone(&self.reporters));
        let (deadline, is_prompt) = (self.deadline, self.is_prompt);
        let pid = supervision.as_ref().map_or_else(std::process::id, Supervision::shell_pid);
        let secrets = workload.secrets().clone();
        let finish = |outcome: &Outcome, now: Time| {
            reporters.borrow_mut().finish(&file, outcome, now, &secrets);
        };
        match workload {
            Workload::Report(ended) => {
                finish(&ended.outcome, ended.elapsed);
                Ok(ended.outcome)
            }
            Workload::Run(mut machine) => {
                let story = is_prompt.then(Rc::default);
                reporters.borrow_mut().start(Duration::ZERO, since_1970());
                let mut driver = self.driver(supervision, &secrets, None, story.clone())?;
                if let Some(story) = story {
                    return Ok(repl::run(*machine, driver, story, topics::all()));
                }
                let (outcome, now);
                (outcome, now, driver) = match instructions {
                    Some(spec) => storm::run_machine(driver, spec, &mut machine),
                    None => {
                        let outcome = driver::run(&mut machine, &mut driver);
                        (outcome, driver.now(), driver)
                    }
                };
                driver.await_cancelled();
                finish(&outcome, now);
                // The process is about to end, and takes the memory of a long script with it.
                std::mem::forget(machine);
                Ok(driver.flush_on_exit(outcome))
            }
            Workload::Record(recording) => {
                let recorded = recording.open()?;
                reporters.borrow_mut().start(recorded.elapsed, recorded.at);
                let kept = Some((recorded.journal.clone(), recorded.elapsed));
                let mut driver = self.driver(supervision, &secrets, kept, None)?;
                let (outcome, now);
                (outcome, now, driver) = match instructions {
                    Some(spec) => storm::run_recorded(driver, spec, recorded, pid)?,
                    None => {
                        let mark = driver.tag_name().to_owned();
                        let outcome = recorded.run(&mut driver, pid, &mark, deadline)?;
                        (outcome, driver.now(), driver)
                    }
                };
                driver.await_cancelled();
                finish(&outcome, now);
                Ok(driver.flush_on_exit(outcome))
            }
        }
    }

    fn driver(
        self,
        supervision: Option<Supervision>,
        secrets: &Secrets,
        journal: Option<(SharedJournal, Duration)>,
        story: Option<Rc<RefCell<Story>>>,
    ) -> Result<ClusterDriver> {
        let Self { file, reporters, process, cluster, is_prompt, .. } = self;
        let (level, is_wordy) = (reporters.borrow().level(), reporters.borrow().is_wordy());
        let is_brief = reporters.borrow().is_brief();
        let level = story.as_ref().map_or(level, |_| level.max(Story::LEVEL));
        let (notes, elapsed) = journal.unzip();
        let hidden = secrets.clone();
        let (beside, shown_beside) = (Rc::clone(&reporters), Rc::clone(&reporters));
        let attachments = Attachments {
            file,
            // A replay does not repeat the records of the driver.
            log_level: if notes.is_some() { level.max(Level::PROCESSES) } else { level },
            log: Box::new(move |record| {
                if let Some(journal) = &notes {
                    journal.note(record);
                }
                let record = record.hide(&hidden);
                if let Some(story) = &story {
                    story.borrow_mut().add(&record);
                }
                reporters.borrow_mut().report(&record);
            }),
            status_line: is_prompt || is_wordy,
            has_lines: !is_brief,
            line_shows: Box::new(move |shown| shown_beside.borrow_mut().log().line_shows(shown)),
            supervision,
            restore: if is_prompt { repl::restore() } else { None },
            elapsed: elapsed.unwrap_or_default(),
            control: None,
        };
        let driver = ProcessDriver::new(process, attachments).map_err(|error| {
            let hint = match error.raw_os_error() {
                Some(libc::EMFILE) => "; 32 do for most scripts",
                _ => "",
            };
            anyhow!("can't prepare to start commands: {}{hint}", plain(&error))
        })?;
        if driver.shows_line() {
            beside.borrow_mut().log().enable_status_line();
        }
        Ok(ClusterDriver::new(driver, cluster))
    }
}
