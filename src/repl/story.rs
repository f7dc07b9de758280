//! Attempts of a statement's tries, collected from log records.
//!
//! The collection is bounded, however long a statement runs.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use ftsh_machine::effect::TaskId;
use ftsh_machine::outcome::{TrySummary, shorten};
use ftsh_machine::record::{Level, LogEvent, LogRecord};
use ftsh_machine::time::Time;

/// Numbers of first and latest attempts that are kept for each `try`.
const FIRST_KEPT: usize = 3;
const LAST_KEPT: usize = 7;
/// Maximum number of failed tries that are kept, the first ones and the latest.
const MAX_FAILED: usize = 20;
/// Maximum depth of nested tries, and maximum number of concurrent tasks with tries.
const MAX_DEPTH: usize = 16;
const MAX_TASKS: usize = 100;

/// Tries of a statement.
#[derive(Debug, Default)]
pub struct Story {
    /// Tries in progress, outermost first.
    open: BTreeMap<TaskId, Vec<TryStory>>,
    /// Tries that failed or were canceled.
    failed: Vec<TryStory>,
    /// Words of the branches in progress.
    words: BTreeMap<TaskId, String>,
}

/// A `try` and its attempts.
#[derive(Clone, Debug)]
pub struct TryStory {
    /// Script of the `try`.
    pub file: Arc<str>,
    /// Line of the `try`.
    pub line: u32,
    /// Branch of the `try`, as `name=word`.
    pub word: Option<String>,
    /// First attempts.
    pub first: Vec<AttemptStory>,
    /// Latest attempts.
    pub last: VecDeque<AttemptStory>,
    /// Number of attempts.
    pub count: u64,
    /// Duration of a `try` that has failed.
    pub elapsed: Option<Duration>,
}

/// An attempt of a `try`.
#[derive(Clone, Debug)]
pub struct AttemptStory {
    /// Number of the attempt, from 1.
    pub number: u64,
    /// Time of its beginning.
    pub at: Time,
    /// Last failure in the attempt.
    pub failure: Option<String>,
    /// Delay after the attempt.
    pub delay: Option<Duration>,
}

impl TryStory {
    fn begin(&mut self, number: u64, at: Time) {
        self.count = number;
        let attempt = AttemptStory { number, at, failure: None, delay: None };
        if self.first.len() < FIRST_KEPT {
            return self.first.push(attempt);
        }
        if self.last.len() == LAST_KEPT {
            self.last.pop_front();
        }
        self.last.push_back(attempt);
    }

    fn latest(&mut self) -> Option<&mut AttemptStory> {
        self.last.back_mut().or(self.first.last_mut())
    }

    fn is_at(&self, file: &str, line: u32) -> bool {
        *self.file == *file && self.line == line
    }
}

impl Story {
    /// Level of the records that a story needs.
    pub const LEVEL: Level = Level::STRUCTURES;

    /// Adds a record.
    pub fn add(&mut self, record: &LogRecord) {
        let Some(task) = record.task else { return };
        match &record.event {
            LogEvent::Iteration { kind: "forall", name, value } if self.words.len() < MAX_TASKS => {
                self.words.insert(task, shorten(&format!("{name}={value}")));
            }
            LogEvent::Attempt { number, .. } => self.begin(task, *number, record),
            LogEvent::Delay { delay, .. } | LogEvent::Deferred { delay, .. } => {
                self.cut(task, record);
                let latest = self.top(task).and_then(TryStory::latest);
                if let Some(latest) = latest {
                    latest.delay = Some(*delay);
                }
            }
            LogEvent::TrySucceeded(_) => {
                self.cut(task, record);
                self.pop(task);
            }
            LogEvent::TryFailed { failure, elapsed, .. } => {
                self.cut(task, record);
                if let Some(mut it) = self.pop(task) {
                    it.elapsed = Some(*elapsed);
                    if let Some(latest) = it.latest() {
                        latest.failure = Some(shorten(&failure.message));
                    }
                    self.keep(it);
                }
                self.note(task, record.parent, &failure.message);
            }
            LogEvent::CommandFailed(failure) | LogEvent::Failed(failure) => {
                self.note(task, record.parent, &failure.message);
            }
            LogEvent::BranchEnded { .. } => {
                self.words.remove(&task);
                for it in self.open.remove(&task).unwrap_or_default() {
                    self.keep(it);
                }
            }
            _ => {}
        }
    }

    fn begin(&mut self, task: TaskId, number: u64, record: &LogRecord) {
        if number > 1 {
            self.cut(task, record);
        } else if self.open.contains_key(&task) || self.open.len() < MAX_TASKS {
            let word = self.words.get(&task).cloned();
            let tries = self.open.entry(task).or_default();
            if tries.len() == MAX_DEPTH {
                tries.remove(0);
            }
            let (file, line) = (Arc::clone(&record.file), record.line);
            let (first, last) = (Vec::new(), VecDeque::new());
            tries.push(TryStory { file, line, word, first, last, count: 0, elapsed: None });
        }
        if let Some(it) = self.top(task).filter(|it| it.is_at(&record.file, record.line)) {
            it.begin(number, record.at);
        }
    }

    fn top(&mut self, task: TaskId) -> Option<&mut TryStory> {
        self.open.get_mut(&task)?.last_mut()
    }

    fn pop(&mut self, task: TaskId) -> Option<TryStory> {
        let tries = self.open.get_mut(&task)?;
        let it = tries.pop();
        if tries.is_empty() {
            self.open.remove(&task);
        }
        it
    }

    /// Ends the tries inside the `try` that a record belongs to.
    fn cut(&mut self, task: TaskId, record: &LogRecord) {
        let Some(tries) = self.open.get_mut(&task) else { return };
        let Some(at) = tries.iter().rposition(|it| it.is_at(&record.file, record.line)) else {
            return;
        };
        let inner = tries.split_off(at + 1);
        let failure = inner.last().and_then(|it| it.last.back().or(it.first.last()));
        let failure = failure.and_then(|attempt| attempt.failure.clone());
        if let (Some(failure), Some(latest)) = (failure, tries[at].latest()) {
            latest.failure = Some(failure);
        }
        for it in inner {
            self.keep(it);
        }
    }

    fn keep(&mut self, it: TryStory) {
        if self.failed.len() == MAX_FAILED {
            self.failed.remove(FIRST_KEPT);
        }
        self.failed.push(it);
    }

    /// Assigns a failure in a task to the attempt around it.
    fn note(&mut self, task: TaskId, parent: Option<TaskId>, message: &str) {
        let place =
            [Some(task), parent].into_iter().flatten().find(|it| self.open.contains_key(it));
        if let Some(latest) = place.and_then(|task| self.top(task)).and_then(TryStory::latest) {
            latest.failure = Some(shorten(message));
        }
    }

    /// Returns the `try` that a failure mentions.
    pub fn find(&self, tried: &TrySummary) -> Option<&TryStory> {
        let is_it =
            |it: &&TryStory| it.is_at(&tried.file, tried.line) && it.count == tried.attempts;
        let exact = |it: &&TryStory| is_it(it) && it.elapsed == Some(tried.elapsed);
        let cut = |it: &&TryStory| is_it(it) && it.elapsed.is_none();
        let open = || self.open.values().flatten();
        self.failed
            .iter()
            .rfind(exact)
            .or_else(|| open().find(is_it))
            .or_else(|| self.failed.iter().rfind(cut))
    }

    /// Returns tries that failed or were canceled, in order.
    pub fn failed(&self) -> &[TryStory] {
        &self.failed
    }

    /// Returns the tries in progress.
    pub fn open(&self) -> impl Iterator<Item = &TryStory> {
        self.open.values().flatten()
    }
}
