//! Going on with a run that an earlier start began, or telling of one that is over.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf, absolute};
use std::time::Duration;

use anyhow::{Result, anyhow, bail};

use super::super::messages::remark;
use super::super::source::Program;
use super::moment::moment;
use super::place::{Earlier, Place};
use super::record::{Course, Recording, write_end};
use super::sourced::SourcedFiles;
use super::start;
use ftsh_journal::{Journal, Over, replay};
use ftsh_machine::record::{Level, LogRecord};
use ftsh_machine::secrets::Secrets;
use ftsh_machine::{Outcome, Time};
use ftsh_process as process;
use ftsh_sys::os_error::plain;

/// What became of a run that an earlier start began.
pub enum Found {
    /// It isn't over.
    Unfinished(Recording),
    /// It is over, and whoever started it is to be told.
    Over(Ended),
    /// Something of it still runs: a line for people.
    Busy(String),
}

/// A run that is over.
pub struct Ended {
    pub place: Place,
    /// What its script is called.
    pub name: String,
    pub outcome: Outcome,
    /// How long it went on.
    pub elapsed: Time,
    pub secrets: Secrets,
}

impl Earlier {
    /// Tells the run from others.
    pub fn run(&self) -> u64 {
        self.journal.run
    }

    /// What its script is called.
    pub fn name(&self) -> &str {
        &self.journal.beginning.name
    }

    /// What to say of it to whoever asked for this script, whose text this is if it is there; an error if the run
    /// is one of another script.
    pub fn compared(&self, program: &Program, text: Option<&str>) -> Result<Option<String>> {
        let (path, began) = (self.place.path.display(), moment(self.journal.beginning.at));
        let (then, now) = (self.name(), program.name());
        match program {
            Program::File(file) if !self.is_of(file, text) => {
                let then = self.script();
                bail!(
                    "`{path}` holds a run of `{}` that began at {began}, and has to be gone on with first: start \
                     that one, under this name also if it is somewhere else by now; or remove the file, or name \
                     another one for `{now}`",
                    then.display()
                );
            }
            Program::File(_) => {}
            // That is all that tells such scripts from each other.
            _ if now == then && text == Some(&self.journal.beginning.text) => {}
            _ => bail!(
                "`{path}` holds a run of {} that began at {began}, and has to be gone on with first: start that \
                 one, remove the file, or name another one for this",
                if now == then {
                    format!("another script that was called `{then}` as well")
                } else {
                    format!("`{then}`")
                }
            ),
        }
        if self.journal.over.is_some() {
            return Ok(Some(format!(
                "the run in `{path}` that began at {began} is over, but nobody was told; this is how it ended, \
                 and the next start begins a new one"
            )));
        }
        let goes_on =
            format!("the run in `{path}` goes on with the text that it began with at {began}");
        Ok(match text {
            None => Some(format!("it can't be read any more; {goes_on}")),
            Some(text) if text != self.journal.beginning.text => {
                Some(format!("it has changed; {goes_on}"))
            }
            Some(_) => None,
        })
    }

    /// The file of its script, where it began.
    fn script(&self) -> PathBuf {
        let directory = self.journal.starts.first().map(|start| &start.directory[..]);
        Path::new(OsStr::from_bytes(directory.unwrap_or_default())).join(self.name())
    }

    /// Whether this is the file of its script: by its name, whatever that leads to by now, or the same file by
    /// another one, or what was moved.
    fn is_of(&self, file: &Path, text: Option<&str>) -> bool {
        let (then, now) = (self.script(), absolute(file).unwrap_or_else(|_| file.into()));
        // As names are recorded.
        let is_named_so = then == Path::new(&*now.to_string_lossy());
        let is_same = || Some(then.canonicalize().ok()? == now.canonicalize().ok()?);
        let is_moved =
            then.file_name() == now.file_name() && text == Some(&self.journal.beginning.text);
        is_named_so || is_moved || is_same() == Some(true)
    }

    /// Repeats it as far as it is recorded, and has told what it logged at this level. What is left of it
    /// has so long to end.
    pub fn repeat(
        self,
        level: Level,
        grace: Duration,
        tell: impl FnMut(&LogRecord),
    ) -> Result<Found> {
        let Self { place, journal } = self;
        let cannot = |reason: anyhow::Error| {
            anyhow!("can't go on with the run in `{}`: {reason}", place.path.display())
        };
        let over = journal.over;
        let mut sourced = SourcedFiles::new(tell);
        let replayed = match (replay(&journal, level, &mut sourced), over) {
            (Ok(replayed), _) => replayed,
            // Another version may say as much.
            (Err(_), Some(over)) => {
                let outcome = match over {
                    Over::Interrupted(signal) => Outcome::Interrupted(signal),
                    Over::Exited(code) => Outcome::Exited(code),
                    Over::Replaced => Outcome::Succeeded,
                };
                let (elapsed, secrets) = (Time::START, journal.beginning.secrets());
                let name = journal.beginning.name;
                return Ok(Found::Over(Ended { place, name, outcome, elapsed, secrets }));
            }
            (Err(error), None) => return Err(cannot(error.into())),
        };
        if let Some(outcome) = replayed.outcome.clone() {
            if over.is_none() {
                let file = place.file.try_clone()?;
                write_end(file, &place.path, &journal, &replayed, &outcome)?;
            }
            let (elapsed, secrets) = (replayed.now, replayed.machine.secrets().clone());
            let name = journal.beginning.name;
            return Ok(Found::Over(Ended { place, name, outcome, elapsed, secrets }));
        }
        prepare(&journal).map_err(cannot)?;
        for path in sourced.changed() {
            let (name, path) = (&journal.beginning.name, path.display());
            remark(&format!(
                "{name}: `{path}` has changed since it was sourced; the run goes on with the text of then"
            ));
        }
        let left = end_what_is_left(&journal, grace).map_err(cannot)?;
        if !left.is_empty() {
            let left = left.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            return Ok(Found::Busy(format!(
                "what an earlier start of the run in `{}` left behind can't be ended: process {left}",
                place.path.display()
            )));
        }
        let (journal, replayed) = (Box::new(journal), Box::new(replayed));
        Ok(Found::Unfinished(Recording { place, course: Course::GoesOn { journal, replayed } }))
    }
}

/// Has this process be as the first one was.
fn prepare(journal: &Journal) -> Result<()> {
    let Some(first) = journal.starts.first() else {
        bail!("ftsh {} wrote it, which didn't say what that takes", journal.beginning.version);
    };
    start::check(first)?;
    start::assume(first)
}

/// Ends what still carries the mark of an earlier start: both of its processes may have been killed.
fn end_what_is_left(journal: &Journal, grace: Duration) -> Result<Vec<i32>> {
    let boot = start::clocks()?.boot;
    let marks = journal.starts.iter().filter(|start| start.boot == boot);
    let marks: Vec<String> = marks.map(|start| start.mark.clone()).collect();
    process::end_marked(&marks, grace).map_err(|error| {
        anyhow!("can't find what an earlier start of the run left behind: {}", plain(&error))
    })
}
