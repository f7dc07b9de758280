//! The attempts that a statement's tries have made, as its records tell of them.
//!
//! However long a statement goes on, only so much of it is kept.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use ftsh_machine::effect::TaskId;
use ftsh_machine::outcome::{TrySummary, shorten};
use ftsh_machine::record::{Level, LogEvent, LogRecord};
use ftsh_machine::time::Time;

/// Of one `try` so many attempts are kept, the first ones and the last.
const FIRST: usize = 3;
const LAST: usize = 7;
/// So many tries that have failed are kept, the first ones and the last.
const MOST_FAILED: usize = 20;
/// Tries inside each other, and tasks with tries, side by side.
const DEEPEST: usize = 16;
const MOST_TASKS: usize = 100;

/// What became of the tries of a statement.
#[derive(Debug, Default)]
pub struct Story {
    /// Those that aren't over, outermost first.
    open: BTreeMap<TaskId, Vec<Try>>,
    /// Those that failed, or were cut off.
    failed: Vec<Try>,
    /// The words of the branches that run.
    words: BTreeMap<TaskId, String>,
}

/// A `try` and its attempts.
#[derive(Clone, Debug)]
pub struct Try {
    /// The script it stands in.
    pub file: Arc<str>,
    /// Its line.
    pub line: u32,
    /// `name=word` of the branch it is in.
    pub word: Option<String>,
    /// The first attempts.
    pub first: Vec<Attempt>,
    /// The latest ones.
    pub last: VecDeque<Attempt>,
    /// How many there were.
    pub count: u64,
    /// How long it took, if it gave up.
    pub elapsed: Option<Duration>,
}

/// An attempt.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// From 1.
    pub number: u64,
    /// When it began.
    pub at: Time,
    /// What failed in it last.
    pub failure: Option<String>,
    /// How long the `try` waited after it.
    pub delay: Option<Duration>,
}

impl Try {
    fn begin(&mut self, number: u64, at: Time) {
        self.count = number;
        let attempt = Attempt { number, at, failure: None, delay: None };
        if self.first.len() < FIRST {
            return self.first.push(attempt);
        }
        if self.last.len() == LAST {
            self.last.pop_front();
        }
        self.last.push_back(attempt);
    }

    fn latest(&mut self) -> Option<&mut Attempt> {
        self.last.back_mut().or(self.first.last_mut())
    }

    fn is_at(&self, file: &str, line: u32) -> bool {
        *self.file == *file && self.line == line
    }
}

impl Story {
    /// The level of the records that are needed.
    pub const LEVEL: Level = Level::STRUCTURES;

    /// Takes a record into account.
    pub fn add(&mut self, record: &LogRecord) {
        let Some(task) = record.task else { return };
        match &record.event {
            LogEvent::Iteration { kind: "forall", name, value }
                if self.words.len() < MOST_TASKS =>
            {
                self.words.insert(task, shorten(&format!("{name}={value}")));
            }
            LogEvent::Attempt { number, .. } => self.begin(task, *number, record),
            LogEvent::Delay { delay, .. } | LogEvent::Deferred { delay, .. } => {
                self.cut(task, record);
                let latest = self.top(task).and_then(Try::latest);
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
        } else if self.open.contains_key(&task) || self.open.len() < MOST_TASKS {
            let word = self.words.get(&task).cloned();
            let tries = self.open.entry(task).or_default();
            if tries.len() == DEEPEST {
                tries.remove(0);
            }
            let (file, line) = (Arc::clone(&record.file), record.line);
            let (first, last) = (Vec::new(), VecDeque::new());
            tries.push(Try { file, line, word, first, last, count: 0, elapsed: None });
        }
        if let Some(it) = self.top(task).filter(|it| it.is_at(&record.file, record.line)) {
            it.begin(number, record.at);
        }
    }

    fn top(&mut self, task: TaskId) -> Option<&mut Try> {
        self.open.get_mut(&task)?.last_mut()
    }

    fn pop(&mut self, task: TaskId) -> Option<Try> {
        let tries = self.open.get_mut(&task)?;
        let it = tries.pop();
        if tries.is_empty() {
            self.open.remove(&task);
        }
        it
    }

    /// A record tells of a `try`: those inside it are over.
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

    fn keep(&mut self, it: Try) {
        if self.failed.len() == MOST_FAILED {
            self.failed.remove(FIRST);
        }
        self.failed.push(it);
    }

    /// Something failed in a task, and so in the attempt it is part of.
    fn note(&mut self, task: TaskId, parent: Option<TaskId>, message: &str) {
        let place =
            [Some(task), parent].into_iter().flatten().find(|it| self.open.contains_key(it));
        if let Some(latest) = place.and_then(|task| self.top(task)).and_then(Try::latest) {
            latest.failure = Some(shorten(message));
        }
    }

    /// The `try` that a failure tells of.
    pub fn find(&self, tried: &TrySummary) -> Option<&Try> {
        let is_it = |it: &&Try| it.is_at(&tried.file, tried.line) && it.count == tried.attempts;
        let exact = |it: &&Try| is_it(it) && it.elapsed == Some(tried.elapsed);
        let cut = |it: &&Try| is_it(it) && it.elapsed.is_none();
        let open = || self.open.values().flatten();
        self.failed
            .iter()
            .rfind(exact)
            .or_else(|| open().find(is_it))
            .or_else(|| self.failed.iter().rfind(cut))
    }

    /// The tries that failed, or were cut off, in their order.
    pub fn failed(&self) -> &[Try] {
        &self.failed
    }

    /// The tries that aren't over.
    pub fn open(&self) -> impl Iterator<Item = &Try> {
        self.open.values().flatten()
    }
}
