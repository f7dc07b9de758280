//! Resumption of a run that an earlier start began, or the report of one that is over.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf, absolute};
use std::time::Duration;

use anyhow::{Result, anyhow, bail};

use super::journal_file::{EarlierRun, JournalFile};
use super::moment::moment;
use super::record::{Recording, RunOrigin, write_end};
use super::sourced::SourcedFiles;
use super::start;
use crate::cli::messages::{print_note, usage};
use crate::cli::plan::source::ScriptSource;
use crate::telemetry::Spans;
use ftsh_journal::{Journal, Over, replay};
use ftsh_machine::record::{Level, LogRecord};
use ftsh_machine::secrets::Secrets;
use ftsh_machine::{Outcome, Time};
use ftsh_process as process;
use ftsh_syntax::Script;
use ftsh_syntax::slug::Slug;
use ftsh_sys::os_error::plain;

/// State of a run that an earlier start began.
pub(crate) enum Resumption {
    /// The run is not over.
    Unfinished(Recording),
    /// The run is over, and its end must be reported.
    Over(EndedRun),
    /// Processes of the run cannot be killed. Contains a line for people.
    Busy(String),
}

/// A run that is over.
pub(crate) struct EndedRun {
    pub journal_file: JournalFile,
    /// Name of the script.
    pub name: String,
    pub outcome: Outcome,
    /// Duration of the run.
    pub elapsed: Time,
    pub secrets: Secrets,
}

impl EarlierRun {
    /// Returns the id of the run.
    pub(crate) fn run(&self) -> u64 {
        self.journal.run
    }

    /// Returns the name of the script.
    pub(crate) fn name(&self) -> &str {
        &self.journal.beginning.name
    }

    /// Returns the builder of the run's spans.
    pub(crate) fn spans(&self) -> Spans {
        spans(&self.journal)
    }

    /// Compares the run with the script of this start, which is given if it is readable.
    /// Returns a note for the user.
    ///
    /// # Errors
    ///
    /// Fails if the run belongs to another script.
    pub(crate) fn compared(
        &self,
        program: &ScriptSource,
        script: Option<&Script>,
    ) -> Result<Option<String>> {
        let (path, began) = (self.journal_file.path.display(), moment(self.journal.beginning.at));
        let (then, now) = (self.name(), program.name());
        match program {
            ScriptSource::File(file) if !self.is_of(file, script) => {
                let then = self.script();
                let message = format!(
                    "`{path}` holds a run of `{}` that began at {began}and must be resumed first: start \
                     that script, also if it has moved; or remove the file, or name \
                     another journal for `{now}`",
                    then.display()
                );
                return Err(usage(Slug::JournalFile, message));
            }
            ScriptSource::File(_) => {}
            // Only name and text distinguish such scripts.
            _ if now == then
                && script.is_some_and(|script| self.journal.beginning.is_of(script)) => {}
            _ => {
                let message = format!(
                    "`{path}` holds a run of {} that began at {began}and must be resumed first: start that \
                 script, remove the file, or name another journal for this one",
                    if now == then {
                        format!("another script with the name `{then}`")
                    } else {
                        format!("`{then}`")
                    }
                );
                return Err(usage(Slug::JournalFile, message));
            }
        }
        if self.journal.over.is_some() {
            return Ok(Some(format!(
                "the run in `{path}` that began at {began} is over, but its end was not reported; this is the report, \
                 and the next start begins a new one"
            )));
        }
        let continues =
            format!("the run in `{path}` that began at {began} continues with its original text");
        Ok(match script {
            None => Some(format!("the script can't be read; {continues}")),
            Some(script) if !self.journal.beginning.is_of(script) => {
                Some(format!("the script has changed; {continues}"))
            }
            Some(_) => None,
        })
    }

    /// Returns the path of the script at the beginning of the run.
    fn script(&self) -> PathBuf {
        let directory = self.journal.starts.first().map(|start| &start.directory[..]);
        Path::new(OsStr::from_bytes(directory.unwrap_or_default())).join(self.name())
    }

    /// True if `file` is the script of the run: it has the same path, resolves to the same file, or
    /// was moved without a change.
    fn is_of(&self, file: &Path, script: Option<&Script>) -> bool {
        let (then, now) = (self.script(), absolute(file).unwrap_or_else(|_| file.into()));
        // Names are recorded as text.
        let is_named_so = then == Path::new(&*now.to_string_lossy());
        let is_same = || Some(then.canonicalize().ok()? == now.canonicalize().ok()?);
        let is_moved = then.file_name() == now.file_name()
            && script.is_some_and(|script| self.journal.beginning.is_of(script));
        is_named_so || is_moved || is_same() == Some(true)
    }

    /// Replays the recorded part of the run and passes its log at this level to `log`. Processes of
    /// earlier starts have `grace` to end.
    pub(crate) fn replay(
        self,
        level: Level,
        grace: Duration,
        log: impl FnMut(&LogRecord),
    ) -> Result<Resumption> {
        let Self { journal_file, journal } = self;
        let cannot = |reason: anyhow::Error| {
            let path = journal_file.path.display();
            usage(Slug::JournalFile, format_args!("can't resume the run in `{path}`: {reason}"))
        };
        let over = journal.over;
        let mut sourced = SourcedFiles::new(log);
        let replayed = match (replay(&journal, level, &mut sourced), over) {
            (Ok(replayed), _) => replayed,
            // Another version of the shell may replay differently.
            (Err(_), Some(over)) => {
                let outcome = match over {
                    Over::Interrupted(signal) => Outcome::Interrupted(signal),
                    Over::Exited(code) => Outcome::Exited(code),
                    Over::Replaced => Outcome::Succeeded,
                };
                let (elapsed, secrets) = (Time::START, journal.beginning.secrets());
                let name = journal.beginning.name;
                return Ok(Resumption::Over(EndedRun {
                    journal_file,
                    name,
                    outcome,
                    elapsed,
                    secrets,
                }));
            }
            (Err(error), None) => return Err(cannot(error.into())),
        };
        if let Some(outcome) = replayed.outcome.clone() {
            if over.is_none() {
                let file = journal_file.file.try_clone()?;
                write_end(file, &journal_file.path, &journal, &replayed, &outcome)?;
            }
            for (view, directories) in replayed.views() {
                process::remove_commit_record(journal.run, view, directories);
            }
            let (elapsed, secrets) = (replayed.now, replayed.machine.secrets().clone());
            let name = journal.beginning.name;
            return Ok(Resumption::Over(EndedRun {
                journal_file,
                name,
                outcome,
                elapsed,
                secrets,
            }));
        }
        prepare(&journal).map_err(cannot)?;
        for path in sourced.changed() {
            let (name, path) = (&journal.beginning.name, path.display());
            print_note(&format!(
                "{name}: `{path}` has changed since it was sourced; the run continues with the original text"
            ));
        }
        let left = kill_leftovers(&journal, grace).map_err(cannot)?;
        if !left.is_empty() {
            let left = left.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            return Ok(Resumption::Busy(format!(
                "processes of an earlier start of the run in `{}` can't be killed: {left}",
                journal_file.path.display()
            )));
        }
        let (journal, replayed) = (Box::new(journal), Box::new(replayed));
        Ok(Resumption::Unfinished(Recording {
            journal_file,
            origin: RunOrigin::Resumed { journal, replayed },
        }))
    }
}

/// Returns the builder of the spans of a recorded run.
pub(super) fn spans(journal: &Journal) -> Spans {
    let (run, beginning) = (journal.run, &journal.beginning);
    let mut spans = Spans::new(beginning.trace(run), &beginning.name, beginning.pid());
    for start in &journal.starts {
        spans.start(start.elapsed, start.at);
    }
    spans
}

/// Restores the environment of the first start.
fn prepare(journal: &Journal) -> Result<()> {
    let Some(first) = journal.starts.first() else {
        bail!(
            "ftsh {} wrote the journal, without the properties of its start",
            journal.beginning.version
        );
    };
    start::check(first)?;
    start::assume(first)
}

/// Kills processes that carry the tag of an earlier start. Both processes of that start may have
/// been killed.
fn kill_leftovers(journal: &Journal, grace: Duration) -> Result<Vec<i32>> {
    let boot = start::clocks()?.boot;
    let marks = journal.starts.iter().filter(|start| start.boot == boot);
    let marks: Vec<String> = marks.map(|start| start.mark.clone()).collect();
    process::kill_stale_runs(&marks, grace)
        .map_err(|error| anyhow!("can't find processes of an earlier start: {}", plain(&error)))
}
