//! Tries and commands of a task.

use std::sync::Arc;
use std::time::Duration;

use super::rows::Rows;
use super::{Bar, BarKind, Gap, SpanEnd};
use ftsh_machine::Time;
use ftsh_machine::effect::TaskId;
use ftsh_machine::outcome::{Failure, FailureKind, Human};
use ftsh_machine::record::{LogEvent, LogRecord};

/// Approximate maximum length of the text of a bar.
const MAX_TEXT: usize = 400;

/// A task with a row: the script, a branch or a stage.
#[derive(Debug)]
pub(super) struct TaskTimeline {
    row: usize,
    from: Duration,
    file: Arc<str>,
    /// Time of the latest record and result of the last command. No record marks the end of a
    /// stage.
    last: (Duration, SpanEnd),
    /// Tries in progress, outermost first.
    tries: Vec<TrySpan>,
    /// Commands in progress; all but the last are functions.
    commands: Vec<CommandSpan>,
    /// Tasks that this task waited for, without a record of their end.
    pub children: Vec<TaskId>,
    failure: String,
    /// Machines that the task was sent to.
    nodes: Vec<String>,
}

/// A `try` in progress.
#[derive(Debug)]
struct TrySpan {
    file: Arc<str>,
    line: u32,
    /// Row of the `try`; none if the drawing is full.
    row: Option<usize>,
    /// Deadline.
    until: Option<Duration>,
    /// Attempt in progress.
    attempt: Option<AttemptSpan>,
    /// Delay in progress: its start, its maximum duration and its text.
    delay: Option<(Duration, Duration, String)>,
}

#[derive(Debug)]
struct AttemptSpan {
    from: Duration,
    number: u64,
    /// Deadline.
    until: Option<Duration>,
}

/// A command or a function in progress.
#[derive(Debug)]
struct CommandSpan {
    from: Duration,
    line: u32,
    text: String,
    /// Number of enclosing tries, and true if a command has started inside.
    depth: usize,
    is_call: bool,
}

/// Destination of all bars.
pub(super) struct Scene<'a> {
    pub rows: &'a mut Rows,
    /// Last time without a shell.
    pub gap: Option<&'a Gap>,
}

impl TaskTimeline {
    pub(super) fn new(row: usize, from: Duration, file: &Arc<str>) -> Self {
        Self {
            row,
            from,
            file: Arc::clone(file),
            last: (from, SpanEnd::Succeeded),
            tries: Vec::new(),
            commands: Vec::new(),
            children: Vec::new(),
            failure: String::new(),
            nodes: Vec::new(),
        }
    }

    /// Returns the row of what begins now; none if the drawing is full.
    pub(super) fn innermost(&self) -> Option<usize> {
        self.tries.last().map_or(Some(self.row), |last| last.row)
    }

    /// Returns the time of the latest record and the result at that time.
    pub(super) fn last(&self) -> (Duration, SpanEnd) {
        self.last
    }

    /// Marks the start of a task that this task waits for, which ends a pause.
    pub(super) fn waits(&mut self, scene: &mut Scene, at: Duration) {
        self.end_pause(scene, at);
        if let Some(call) = self.commands.last_mut() {
            call.is_call = true;
        }
    }

    /// Adds a record of the task.
    pub(super) fn add(&mut self, scene: &mut Scene, record: &LogRecord, at: Duration) {
        if self.last.1 != SpanEnd::Canceled {
            self.last.0 = at;
        }
        match &record.event {
            LogEvent::CommandFailed(failure) => {
                self.failed(failure);
                let end =
                    if failure.kind == FailureKind::Lost { SpanEnd::Lost } else { SpanEnd::Failed };
                self.end_command(scene, at, end, Some(&failure.command));
                return;
            }
            LogEvent::Canceled => {
                self.close_tries(scene, 0, at, SpanEnd::Canceled);
                self.last = (at, SpanEnd::Canceled);
                return;
            }
            LogEvent::CommandSucceeded { command, .. } => {
                self.last.1 = SpanEnd::Succeeded;
                return self.end_command(scene, at, SpanEnd::Succeeded, Some(command));
            }
            LogEvent::Failed(failure)
                if matches!(failure.kind, FailureKind::Timeout | FailureKind::Canceled) =>
            {
                self.end_commands(scene, self.tries.len(), at, SpanEnd::Canceled);
            }
            _ => self.end_pause(scene, at),
        }
        match &record.event {
            LogEvent::Attempt { number, until, each } => {
                self.attempt(scene, record, *number, at);
                if let Some(last) = self.tries.last_mut() {
                    last.until = until.map(Time::elapsed);
                    let until = each.map(Time::elapsed);
                    last.attempt = Some(AttemptSpan { from: at, number: *number, until });
                }
            }
            LogEvent::Delay { delay, .. } => {
                let text = format!("delay of {}", Human(*delay));
                self.wait(scene, at, (*delay, text), SpanEnd::Failed);
            }
            LogEvent::Deferred { delay, .. } => {
                let text = format!("deferred by {}", Human(*delay));
                self.wait(scene, at, (*delay, text), SpanEnd::Canceled);
            }
            LogEvent::Queued { channel, attempt, .. } => {
                self.attempt(scene, record, *attempt, at);
                let text = format!("waits for the channel {channel}");
                self.wait(scene, at, (Duration::MAX, text), SpanEnd::Failed);
            }
            LogEvent::TrySucceeded(_) => self.end_try(scene, record, at, SpanEnd::Succeeded),
            LogEvent::TryFailed { failure, .. } => {
                self.failed(failure);
                self.end_try(scene, record, at, SpanEnd::Failed);
            }
            LogEvent::CommandStarted(text) => {
                if let Some(call) = self.commands.last_mut() {
                    call.is_call = true;
                }
                let (text, depth) = (text.clone(), self.tries.len());
                let command =
                    CommandSpan { from: at, line: record.line, text, depth, is_call: false };
                self.commands.push(command);
            }
            LogEvent::Failed(failure) => self.failed(failure),
            LogEvent::Placed { node } => self.nodes.push(node.clone()),
            _ => {}
        }
    }

    /// Ends the task.
    pub(super) fn end(mut self, scene: &mut Scene, at: Duration, end: SpanEnd) {
        self.end_commands(scene, 0, at, end);
        self.close_tries(scene, 0, at, inner_end(end));
        let mut text = format!("{}\n", scene.rows.label(self.row));
        if !self.nodes.is_empty() {
            text += &format!("on {}\n", self.nodes.join(", then "));
        }
        text += &taken(self.from, at).to_string();
        if end == SpanEnd::Failed {
            self.add_failure(&mut text);
        }
        let (kind, from) = (BarKind::Task, self.from);
        scene.rows.push(self.row, Bar { kind, from, to: at, end, text });
        scene.rows.end(self.row);
    }

    fn failed(&mut self, failure: &Failure) {
        self.last.1 = SpanEnd::Failed;
        self.failure = format!("line {}: {}", failure.line, failure.message);
    }

    fn add_failure(&self, text: &mut String) {
        if !self.failure.is_empty() {
            *text += "\n";
            text.extend(self.failure.chars().take(MAX_TEXT));
        }
    }

    /// Returns the index of the innermost `try` that a record belongs to.
    fn place(&self, record: &LogRecord) -> Option<usize> {
        self.tries.iter().rposition(|it| it.line == record.line && it.file == record.file)
    }

    /// Begins an attempt, or its wait.
    fn attempt(&mut self, scene: &mut Scene, record: &LogRecord, number: u64, at: Duration) {
        let place = self.place(record);
        let is_waiting = |it: &TrySpan| it.delay.is_some() || it.attempt.is_none();
        if let Some(place) = place.filter(|place| number > 1 || is_waiting(&self.tries[*place])) {
            self.close_tries(scene, place + 1, at, SpanEnd::Canceled);
            self.end_attempt(scene, at, SpanEnd::Failed);
        } else {
            // A `try` can end without a record, for example by `break`.
            if let Some(place) = place {
                self.close_tries(scene, place, at, SpanEnd::Canceled);
            }
            let label = if record.file == self.file {
                format!("try, line {}", record.line)
            } else {
                format!("try, {}:{}", record.file, record.line)
            };
            let row = self.innermost().and_then(|parent| scene.rows.begin(Some(parent), label));
            let (file, line) = (Arc::clone(&record.file), record.line);
            self.tries.push(TrySpan { file, line, row, until: None, attempt: None, delay: None });
        }
        self.end_delay(scene, at);
    }

    /// Begins a delay of the innermost `try`.
    fn wait(&mut self, scene: &mut Scene, at: Duration, delay: (Duration, String), end: SpanEnd) {
        self.end_commands(scene, self.tries.len(), at, end);
        self.end_attempt(scene, at, end);
        if let Some(last) = self.tries.last_mut() {
            last.delay = Some((at, delay.0, delay.1));
        }
    }

    fn end_try(&mut self, scene: &mut Scene, record: &LogRecord, at: Duration, end: SpanEnd) {
        if let Some(place) = self.place(record) {
            self.close_tries(scene, place + 1, at, SpanEnd::Canceled);
            self.close_tries(scene, place, at, end);
        }
    }

    /// Ends all tries from an index on.
    fn close_tries(&mut self, scene: &mut Scene, place: usize, at: Duration, end: SpanEnd) {
        while self.tries.len() > place {
            self.end_commands(scene, self.tries.len(), at, end);
            self.end_attempt(scene, at, end);
            self.end_delay(scene, at);
            let Some(TrySpan { row: Some(row), until, .. }) = self.tries.pop() else { continue };
            if let Some(until) = until.filter(|until| *until <= at) {
                scene.rows.limit(row, until);
            }
            scene.rows.end(row);
        }
        if place == 0 {
            self.end_commands(scene, 0, at, end);
        }
    }

    fn end_attempt(&mut self, scene: &mut Scene, to: Duration, end: SpanEnd) {
        let Some(AttemptSpan { from, number, until }) =
            self.tries.last_mut().and_then(|last| last.attempt.take())
        else {
            return;
        };
        let mut text = format!("attempt {number}, {}", taken(from, to));
        if end == SpanEnd::Failed {
            self.add_failure(&mut text);
        }
        let Some(row) = self.innermost() else { return };
        if let Some(until) = until.filter(|until| *until <= to) {
            scene.rows.limit(row, until);
        }
        scene.rows.push(row, Bar { kind: BarKind::Attempt, from, to, end, text });
    }

    fn end_delay(&mut self, scene: &mut Scene, now: Duration) {
        let Some(last) = self.tries.last_mut() else { return };
        let Some((from, delay, text)) = last.delay.take() else { return };
        let Some(row) = last.row else { return };
        let to = from.saturating_add(delay).min(now);
        let text = format!("{text}\n{}", taken(from, to));
        scene.rows.push(row, Bar { kind: BarKind::Delay, from, to, end: SpanEnd::Unknown, text });
    }

    /// Ends a `sleep` at the next event, because no record marks the end of a `sleep`.
    fn end_pause(&mut self, scene: &mut Scene, at: Duration) {
        if self.commands.last().is_some_and(|last| !last.is_call && last.text.starts_with("sleep "))
        {
            self.end_last(scene, at, SpanEnd::Succeeded);
        }
    }

    /// Ends the innermost command with this text, or else the last one.
    fn end_command(&mut self, scene: &mut Scene, at: Duration, end: SpanEnd, text: Option<&str>) {
        let place = self.commands.iter().rposition(|it| Some(it.text.as_str()) == text);
        let Some(place) = place.or(self.commands.len().checked_sub(1)) else { return };
        while self.commands.len() > place + 1 {
            self.end_last(scene, at, SpanEnd::Canceled);
        }
        self.end_last(scene, at, end);
    }

    /// Ends all commands within at least `depth` tries; functions end like their surroundings.
    fn end_commands(&mut self, scene: &mut Scene, depth: usize, at: Duration, end: SpanEnd) {
        while let Some(last) = self.commands.last().filter(|last| last.depth >= depth) {
            let end = if last.is_call { end } else { inner_end(end) };
            self.end_last(scene, at, end);
        }
    }

    fn end_last(&mut self, scene: &mut Scene, at: Duration, end: SpanEnd) {
        let Some(CommandSpan { from, line, text, is_call, depth }) = self.commands.pop() else {
            return;
        };
        // A command without a record of its end ended with the shell.
        let lost = scene.gap.filter(|gap| {
            gap.to == Some(at)
                && from <= gap.from
                && matches!(end, SpanEnd::Lost | SpanEnd::Canceled)
        });
        let (to, end) = lost.map_or((at, end), |gap| (gap.from, SpanEnd::Lost));
        let mut text: String = text.chars().take(MAX_TEXT).collect();
        text = format!("line {line}: {text}\n{}", taken(from, to));
        if matches!(end, SpanEnd::Failed | SpanEnd::Lost) {
            self.add_failure(&mut text);
        }
        let row = match depth.checked_sub(1).and_then(|place| self.tries.get(place)) {
            Some(around) => around.row,
            None => Some(self.row),
        };
        let kind = if is_call { BarKind::Call } else { BarKind::Command };
        if let Some(row) = row {
            scene.rows.push(row, Bar { kind, from, to, end, text });
        }
    }
}

/// Returns the end of inner work when outer work ends with `end`.
fn inner_end(end: SpanEnd) -> SpanEnd {
    if end == SpanEnd::Unknown { SpanEnd::Unknown } else { SpanEnd::Canceled }
}

fn taken(from: Duration, to: Duration) -> Human {
    Human(to.saturating_sub(from))
}
