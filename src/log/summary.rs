//! Summary of a run: attempts, time of work and of waits, machines and failures.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use super::machines::Machines;
use super::text::signal_name;
use ftsh_machine::effect::TaskId;
use ftsh_machine::outcome::{Human, Outcome};
use ftsh_machine::record::{Level, LogEvent, LogRecord};
use ftsh_machine::time::Time;
use ftsh_machine::trace::place;
use ftsh_syntax::diagnostic::{excerpt, printable};

/// Limit on listed kinds of failure. The most frequent kinds come first.
const MAX_KINDS: usize = 10;

/// Kind of failure: file, line, calls down to the line, failure kind and code.
type FailureGroup = (Arc<str>, u32, String, &'static str, i32);

/// Adds up the records of a run, up to [`Level::STRUCTURES`].
#[derive(Debug, Default)]
pub struct Summary {
    tries: u64,
    pub(crate) attempts: u64,
    gave_up: u64,
    delays: u64,
    working: Duration,
    waiting: Duration,
    machines: Machines,
    /// Number of failures of each kind.
    pub(crate) kinds: BTreeMap<&'static str, u64>,
    failures: BTreeMap<FailureGroup, Occurrences>,
    open: HashMap<TaskId, Activity>,
    /// Tasks, with their numbers of structures, whose next first attempt repeats a deferred one.
    deferred: HashSet<(TaskId, usize)>,
}

/// Occurrences of a kind of failure.
#[derive(Debug, Default)]
struct Occurrences {
    count: u64,
    /// Latest message.
    message: String,
    /// True if earlier messages differ, as those of commands with the words of a loop.
    has_others: bool,
}

/// Current activity of a task, with its start.
#[derive(Debug)]
enum Activity {
    Working(Time),
    /// A delay of at most the given duration.
    Waiting(Time, Duration),
}

impl Summary {
    /// Level of the needed records.
    pub const LEVEL: Level = Level::STRUCTURES;

    /// Takes a record into account.
    pub fn add(&mut self, record: &LogRecord) {
        if let Some(task) = record.task {
            // Each record ends the previous command or delay of its task.
            self.close(task, record.at);
            match &record.event {
                LogEvent::CommandStarted(_) => {
                    self.open.insert(task, Activity::Working(record.at));
                }
                LogEvent::Delay { delay, .. } | LogEvent::Deferred { delay, .. }
                    if !delay.is_zero() =>
                {
                    self.delays += 1;
                    self.open.insert(task, Activity::Waiting(record.at, *delay));
                }
                _ => {}
            }
        }
        self.machines.add(&record.event);
        match &record.event {
            LogEvent::Attempt { number, .. } => {
                self.attempts += 1;
                let place = record.task.map(|task| (task, record.around.depth));
                let is_repeated = place.is_some_and(|place| self.deferred.remove(&place));
                self.tries += u64::from(*number == 1 && !is_repeated);
            }
            LogEvent::Deferred { attempt: 1, .. } => {
                self.deferred.extend(record.task.map(|task| (task, record.around.depth)));
            }
            LogEvent::TryFailed { .. } => self.gave_up += 1,
            LogEvent::CommandFailed(failure) | LogEvent::Failed(failure)
                if record.level <= Level::FAILURES
                    && !failure.branches.as_ref().is_some_and(|it| it.sums_up) =>
            {
                let kind = failure.kind.name();
                *self.kinds.entry(kind).or_default() += 1;
                let file = Arc::clone(failure.file());
                let mut calls = String::new();
                for step in failure.trace.steps().iter().filter(|step| step.is_call()) {
                    // Writing to a string can't fail.
                    let _ = write!(calls, ", {}", step.brief(&file));
                }
                let group = (file, failure.line, calls, kind, failure.code);
                let known = self.failures.entry(group).or_default();
                known.has_others |= known.count > 0 && known.message != failure.message;
                known.count += 1;
                known.message.clone_from(&failure.message);
            }
            _ => {}
        }
    }

    fn close(&mut self, task: TaskId, now: Time) {
        match self.open.remove(&task) {
            Some(Activity::Working(since)) => self.working += now - since,
            Some(Activity::Waiting(since, delay)) => self.waiting += delay.min(now - since),
            None => {}
        }
    }

    /// Renders the summary of a run of `script` until `now`. Each line ends in a newline.
    pub fn render(mut self, script: &str, outcome: &Outcome, now: Time) -> String {
        for task in self.open.keys().copied().collect::<Vec<_>>() {
            self.close(task, now);
        }
        let ended = match outcome {
            Outcome::Succeeded => "succeeded".to_owned(),
            Outcome::Exited(code) => format!("exit {code}"),
            Outcome::Failed(_) => "failed".to_owned(),
            Outcome::Interrupted(signal) => format!("ended by {}", signal_name(*signal)),
        };
        let (script, elapsed) = (printable(script), now.elapsed());
        // Writing to a string can't fail.
        let mut text = format!("ftsh: summary of {script}: {ended} after {}\n", Human(elapsed));
        let row = |text: &mut String, name: &str, value: &str| {
            let _ = writeln!(text, "  {name:<10}{value}");
        };
        let plural = |count: u64, one: &str, many: &str| {
            format!("{count} {}", if count == 1 { one } else { many })
        };
        // Branches side by side work and wait more than time passes.
        let sum = if self.working + self.waiting > elapsed { ", all branches" } else { "" };
        if self.attempts > 0 {
            let tries = plural(self.tries, "try", "tries");
            let gave_up = match self.gave_up {
                0 => String::new(),
                count => format!(", {count} gave up"),
            };
            row(&mut text, "attempts", &format!("{} in {tries}{gave_up}", self.attempts));
        }
        row(&mut text, "working", &format!("{}{sum}", Human(self.working)));
        if self.delays > 0 {
            let delays = plural(self.delays, "delay", "delays");
            row(&mut text, "waiting", &format!("{} in {delays}{sum}", Human(self.waiting)));
        }
        if let Some((sum, lines)) = self.machines.render() {
            row(&mut text, "machines", &sum);
            text += &lines;
        }
        if self.kinds.is_empty() {
            row(&mut text, "failures", "none");
            return text;
        }
        let kinds: Vec<_> =
            self.kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        row(&mut text, "failures", &kinds.join(", "));
        let mut failures: Vec<_> = self.failures.iter().collect();
        failures.sort_by_key(|(_, known)| Reverse(known.count));
        for ((file, line, calls, ..), known) in failures.iter().take(MAX_KINDS) {
            let (count, place) = (known.count, place(file, *line, &script));
            let message = excerpt(&printable(&known.message));
            let others = if known.has_others { ", and others" } else { "" };
            let _ = writeln!(text, "    {count} at {place}{calls}: {message}{others}");
        }
        if let Some(more) = failures.len().checked_sub(MAX_KINDS + 1) {
            let kinds = plural(more as u64 + 1, "other kind", "other kinds");
            let _ = writeln!(text, "    and {kinds} of failure");
        }
        text
    }
}
