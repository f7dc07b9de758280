//! Recorder of durations: a thread that appends to records, since a file system may hang.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bstr::{BString, ByteSlice};

use super::DurationsConfig;
use super::store::{DurationStore, ScriptIdentity};
use crate::paths::TaskDirectory;
use ftsh_machine::effect::DurationsOf;
use ftsh_machine::event::RecordedDurations;
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
    /// Set after a read without an answer in time. Later reads would only wait as well.
    is_stuck: Arc<AtomicBool>,
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
        Self { config, thread: None, notes: Notes::default(), is_stuck: Arc::default() }
    }

    /// Returns a job that reads the durations of a file, as the answer to a query.
    pub(crate) fn reader(
        &self,
        of: DurationsOf,
        directory: TaskDirectory,
    ) -> impl FnOnce() -> RecordedDurations + Send + 'static {
        let DurationsConfig { store, missing, script } = self.config.clone();
        let (notes, is_stuck) = (Arc::clone(&self.notes), Arc::clone(&self.is_stuck));
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
                add_note(&notes, Level::STRUCTURES, note);
            }
            let name = script.and_then(|script| DurationStore::name_of(&script));
            match store.zip(name) {
                Some((store, name)) => {
                    let (folder, own_notes) = (store.folder().to_owned(), Arc::clone(&notes));
                    let read = move || answer(&store, &name, &own_notes);
                    answer_in_time(READ_TIMEOUT, &folder, read, &is_stuck, &notes)
                }
                None => RecordedDurations::default(),
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
                    add_note(&notes, Level::STRUCTURES, note);
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

/// Returns the result of a read, or nothing if the file system takes too long or did so before.
fn answer_in_time(
    limit: Duration,
    folder: &Path,
    read: impl FnOnce() -> RecordedDurations + Send + 'static,
    is_stuck: &AtomicBool,
    notes: &Notes,
) -> RecordedDurations {
    if is_stuck.load(Ordering::Relaxed) {
        return RecordedDurations::default();
    }
    within(limit, read).unwrap_or_else(|reason| {
        let note = match reason {
            Unanswered::NoThread => "no thread can read the durations".to_owned(),
            // Another read may have waited at the same time.
            Unanswered::Slow if is_stuck.swap(true, Ordering::Relaxed) => {
                return RecordedDurations::default();
            }
            Unanswered::Slow => {
                format!("no answer from `{}` for {} s", folder.display(), limit.as_secs())
            }
        };
        add_note(notes, Level::FAILURES, format!("{note}; `usual` uses its bound"));
        RecordedDurations::default()
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
fn answer(store: &DurationStore, name: &str, notes: &Notes) -> RecordedDurations {
    match store.read(name) {
        Ok(record) => {
            if let Some(aside) = record.set_aside {
                let note = format!("a damaged record of durations is now `{}`", aside.display());
                add_note(notes, Level::FAILURES, note);
            }
            let history = record.history.text().into();
            RecordedDurations { record: Some(name.into()), history }
        }
        Err(error) => {
            let folder = store.folder().display();
            let note = format!("can't read durations in `{folder}`: {}", plain(&error));
            add_note(notes, Level::COMMANDS, note);
            RecordedDurations::default()
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
    fn after_a_read_without_an_answer_no_other_read_waits() {
        let (is_stuck, notes) = (AtomicBool::new(false), Notes::default());
        let (go_on, waits) = mpsc::channel::<()>();
        let named = |name: &str| RecordedDurations {
            record: Some(name.into()),
            ..RecordedDurations::default()
        };
        let hang = move || {
            let _ = waits.recv();
            named("late")
        };
        let answer = |limit, read: Box<dyn FnOnce() -> RecordedDurations + Send>| {
            answer_in_time(Duration::from_secs(limit), Path::new("/far"), read, &is_stuck, &notes)
        };
        let taken = || std::mem::take(&mut *notes.lock().expect("notes"));
        assert_eq!(answer(600, Box::new(move || named("text"))), named("text"));
        assert_eq!(answer(0, Box::new(hang)), RecordedDurations::default());
        let note = "no answer from `/far` for 0 s; `usual` uses its bound".to_owned();
        assert_eq!(taken(), [(Level::FAILURES, note)]);
        assert_eq!(answer(600, Box::new(|| panic!("a read"))), RecordedDurations::default());
        assert_eq!(taken(), []);
        drop(go_on);
    }

    #[test]
    fn work_that_hangs_is_left_alone() {
        let (go_on, waits) = mpsc::channel::<()>();
        let hang = move || waits.recv().is_ok();
        assert_eq!(within(Duration::from_millis(1), hang), Err(Unanswered::Slow));
        drop(go_on);
        assert_eq!(within(Duration::from_secs(600), || 7), Ok(7));
    }
}
