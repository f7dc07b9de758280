//! Recorder of durations: a thread that appends to records, since a file system may hang.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bstr::{BString, ByteSlice};

use super::DurationsConfig;
use super::store::{DurationStore, ScriptIdentity};
use crate::fds::path::TaskDirectory;
use ftsh_machine::effect::DurationsOf;
use ftsh_machine::record::Level;
use ftsh_sys::has_room;
use ftsh_sys::os_error::plain;

/// Longest wait for the records at the end of the shell.
const END_TIMEOUT: Duration = Duration::from_secs(4);

/// Longest wait for a record that a script reads.
const READ_TIMEOUT: Duration = Duration::from_secs(2);

/// Size of the stack of the thread.
const STACK_SIZE: usize = 128 * 1024;

/// Memory that a thread needs besides its stack, rounded up.
const HEADROOM: usize = 1024 * 1024;

/// Messages for the log, from threads.
type Notes = Arc<Mutex<Vec<(Level, String)>>>;

/// Reader and recorder of durations.
pub(crate) struct DurationRecorder {
    config: DurationsConfig,
    thread: Option<RecordingThread>,
    notes: Notes,
}

/// Thread that appends to records.
struct RecordingThread {
    /// Names of records with lines.
    lines: Sender<(BString, BString)>,
    /// End of the thread, as the end of the channel.
    ended: Receiver<()>,
}

impl DurationRecorder {
    /// Creates a recorder without a thread.
    pub(crate) fn new(config: DurationsConfig) -> Self {
        Self { config, thread: None, notes: Notes::default() }
    }

    /// Returns a job that reads the durations of a file, as the answer to a query.
    pub(crate) fn reader(
        &self,
        of: DurationsOf,
        directory: TaskDirectory,
    ) -> impl FnOnce() -> BString + Send + 'static {
        let DurationsConfig { store, missing, script } = self.config.clone();
        let notes = Arc::clone(&self.notes);
        move || {
            let script = match of {
                DurationsOf::Script => script,
                DurationsOf::Used(path) => {
                    Some(ScriptIdentity::File(TaskDirectory::default().join(&path)))
                }
                DurationsOf::Sourced(path) => Some(ScriptIdentity::File(directory.join(&path))),
            };
            if let Some(reason) = missing {
                let note = format!("no durations are kept: {reason}; `usual` uses its bound");
                add_note(&notes, Level::COMMANDS, note);
            }
            let name = script.and_then(|script| DurationStore::name_of(&script));
            match store.zip(name) {
                Some((store, name)) => answer_in_time(store, name, &notes),
                None => BString::default(),
            }
        }
    }

    /// Appends lines to a record, on the thread.
    pub(crate) fn record(&mut self, name: BString, lines: BString) {
        if self.thread.is_none() {
            self.thread = self.start();
        }
        if let Some(thread) = &self.thread {
            let _ = thread.lines.send((name, lines));
        }
    }

    /// Waits until everything is recorded, within a limit.
    pub(crate) fn finish(&mut self) {
        if let Some(RecordingThread { lines, ended }) = self.thread.take() {
            drop(lines);
            let _ = ended.recv_timeout(END_TIMEOUT);
        }
    }

    /// Takes the messages for the log, each with its level.
    pub(crate) fn take_notes(&self) -> Vec<(Level, String)> {
        std::mem::take(&mut self.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn start(&self) -> Option<RecordingThread> {
        let store = self.config.store.clone()?;
        let notes = Arc::clone(&self.notes);
        let (lines, received) = mpsc::channel::<(BString, BString)>();
        let (ends, ended) = mpsc::channel::<()>();
        let work = move || {
            let mut has_failed = false;
            let mut next = received.recv().ok();
            while let Some((name, mut lines)) = next {
                // Lines that came meanwhile are written together.
                next = received.try_recv().ok();
                while let Some((_, more)) = next.take_if(|(other, _)| *other == name) {
                    lines.extend_from_slice(&more);
                    next = received.try_recv().ok();
                }
                let name = name.to_str_lossy();
                if let Err(error) = store.append(&name, &lines)
                    && !std::mem::replace(&mut has_failed, true)
                {
                    let folder = store.folder().display();
                    let note = format!("can't record durations in `{folder}`: {}", plain(&error));
                    add_note(&notes, Level::COMMANDS, note);
                }
                next = next.or_else(|| received.recv().ok());
            }
            drop(ends);
        };
        spawn(work).then_some(RecordingThread { lines, ended })
    }
}

/// Starts a thread. Returns false if resources are missing.
fn spawn(work: impl FnOnce() + Send + 'static) -> bool {
    // The process aborts if a new thread finds no memory at its start.
    let thread = std::thread::Builder::new().name("durations".into()).stack_size(STACK_SIZE);
    has_room(STACK_SIZE + HEADROOM) && thread.spawn(work).is_ok()
}

/// Returns the name and the text of a record, or nothing if the file system takes too long.
fn answer_in_time(store: DurationStore, name: String, notes: &Notes) -> BString {
    let (folder, own_notes) = (store.folder().display().to_string(), Arc::clone(notes));
    let work = move || answer(&store, &name, &own_notes);
    within(READ_TIMEOUT, work).unwrap_or_else(|reason| {
        let note = match reason {
            Unanswered::NoThread => "no thread can read the durations".to_owned(),
            Unanswered::Slow => {
                format!("no answer from `{folder}` for {} s", READ_TIMEOUT.as_secs())
            }
        };
        add_note(notes, Level::FAILURES, format!("{note}; `usual` uses its bound"));
        BString::default()
    })
}

/// Reason why work on a thread has no result.
#[derive(Debug, PartialEq)]
enum Unanswered {
    /// Resources are missing.
    NoThread,
    /// The work takes too long, and goes on.
    Slow,
}

/// Returns the result of work that may hang, done on a thread.
fn within<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Unanswered> {
    let (found, answered) = mpsc::channel();
    if !spawn(move || _ = found.send(work())) {
        return Err(Unanswered::NoThread);
    }
    answered.recv_timeout(limit).map_err(|_| Unanswered::Slow)
}

/// Returns the name and the text of a record. A record that can't be read is not written either.
fn answer(store: &DurationStore, name: &str, notes: &Notes) -> BString {
    match store.read(name) {
        Ok(record) => {
            if let Some(aside) = record.set_aside {
                let note = format!("a damaged record of durations is now `{}`", aside.display());
                add_note(notes, Level::FAILURES, note);
            }
            format!("{name}\n{}", record.history.text()).into()
        }
        Err(error) => {
            let folder = store.folder().display();
            let note = format!("can't read durations in `{folder}`: {}", plain(&error));
            add_note(notes, Level::COMMANDS, note);
            BString::default()
        }
    }
}

fn add_note(notes: &Notes, level: Level, note: String) {
    notes.lock().unwrap_or_else(PoisonError::into_inner).push((level, note));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_hangs_is_left_alone() {
        let (go_on, waits) = mpsc::channel::<()>();
        let hang = move || waits.recv().is_ok();
        assert_eq!(within(Duration::from_millis(1), hang), Err(Unanswered::Slow));
        drop(go_on);
        assert_eq!(within(Duration::from_secs(600), || 7), Ok(7));
    }
}
