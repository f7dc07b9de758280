//! What a task does: its tries and its commands.

use std::sync::Arc;
use std::time::Duration;

use super::rows::Rows;
use super::{Bar, End, Gap, Kind};
use ftsh_machine::Time;
use ftsh_machine::effect::TaskId;
use ftsh_machine::outcome::{Failure, FailureKind, Human};
use ftsh_machine::record::{LogEvent, LogRecord};

/// What is said of one bar is no longer than this, about.
const LONGEST_TEXT: usize = 400;

/// A task that has a row: the script, a branch or a stage.
#[derive(Debug)]
pub struct Course {
    row: usize,
    from: Duration,
    file: Arc<str>,
    /// When it was last heard of, and what had come of its last command: no log tells the end of a stage.
    last: (Duration, End),
    /// Those it is in, outermost first.
    tries: Vec<Try>,
    /// Those it is in: all but the last are functions.
    commands: Vec<Command>,
    /// The tasks it has waited for, that nobody has told the end of.
    pub children: Vec<TaskId>,
    failure: String,
    /// The machines that it has begun on, if it was sent to some.
    nodes: Vec<String>,
}

/// A `try` that goes on.
#[derive(Debug)]
struct Try {
    file: Arc<str>,
    line: u32,
    /// None if there are too many.
    row: Option<usize>,
    /// When it must end, if it must.
    until: Option<Duration>,
    /// The attempt that goes on.
    attempt: Option<Attempt>,
    /// What it waits for: since when, how long at most, and what is to be said of it.
    delay: Option<(Duration, Duration, String)>,
}

#[derive(Debug)]
struct Attempt {
    from: Duration,
    number: u64,
    /// When it must end, if it must.
    until: Option<Duration>,
}

/// A command or a function that goes on.
#[derive(Debug)]
struct Command {
    from: Duration,
    line: u32,
    text: String,
    /// In how many tries it is, and whether something began in it.
    depth: usize,
    is_call: bool,
}

/// Where all that happens is to be seen.
pub struct Scene<'a> {
    pub rows: &'a mut Rows,
    /// When no shell ran, the last time.
    pub gap: Option<&'a Gap>,
}

impl Course {
    pub fn new(row: usize, from: Duration, file: &Arc<str>) -> Self {
        Self {
            row,
            from,
            file: Arc::clone(file),
            last: (from, End::Succeeded),
            tries: Vec::new(),
            commands: Vec::new(),
            children: Vec::new(),
            failure: String::new(),
            nodes: Vec::new(),
        }
    }

    /// The row that what it begins now is in; none if there are too many.
    pub fn innermost(&self) -> Option<usize> {
        self.tries.last().map_or(Some(self.row), |last| last.row)
    }

    /// When it was last heard of, and what had come of it then.
    pub fn last(&self) -> (Duration, End) {
        self.last
    }

    /// Something begins that it waits for, so that a pause before it is over.
    pub fn waits(&mut self, scene: &mut Scene, at: Duration) {
        self.end_pause(scene, at);
        if let Some(call) = self.commands.last_mut() {
            call.is_call = true;
        }
    }

    /// Takes note of a record of it.
    pub fn tell(&mut self, scene: &mut Scene, record: &LogRecord, at: Duration) {
        if self.last.1 != End::Cancelled {
            self.last.0 = at;
        }
        match &record.event {
            LogEvent::CommandFailed(failure) => {
                self.failed(failure);
                let end = if failure.kind == FailureKind::Lost { End::Lost } else { End::Failed };
                self.end_command(scene, at, end, Some(&failure.command));
                return;
            }
            LogEvent::Cancelled => {
                self.close_tries(scene, 0, at, End::Cancelled);
                self.last = (at, End::Cancelled);
                return;
            }
            LogEvent::CommandSucceeded { command, .. } => {
                self.last.1 = End::Succeeded;
                return self.end_command(scene, at, End::Succeeded, Some(command));
            }
            LogEvent::Failed(failure)
                if matches!(failure.kind, FailureKind::Timeout | FailureKind::Cancelled) =>
            {
                self.end_commands(scene, self.tries.len(), at, End::Cancelled);
            }
            _ => self.end_pause(scene, at),
        }
        match &record.event {
            LogEvent::Attempt { number, until, each } => {
                self.attempt(scene, record, *number, at);
                if let Some(last) = self.tries.last_mut() {
                    last.until = until.map(Time::elapsed);
                    let until = each.map(Time::elapsed);
                    last.attempt = Some(Attempt { from: at, number: *number, until });
                }
            }
            LogEvent::Delay { delay, .. } => {
                let text = format!("delay of {}", Human(*delay));
                self.wait(scene, at, (*delay, text), End::Failed);
            }
            LogEvent::Deferred { delay, .. } => {
                let text = format!("deferred by {}", Human(*delay));
                self.wait(scene, at, (*delay, text), End::Cancelled);
            }
            LogEvent::Queued { channel, attempt, .. } => {
                self.attempt(scene, record, *attempt, at);
                let text = format!("waits for the channel {channel}");
                self.wait(scene, at, (Duration::MAX, text), End::Failed);
            }
            LogEvent::TrySucceeded(_) => self.end_try(scene, record, at, End::Succeeded),
            LogEvent::TryFailed { failure, .. } => {
                self.failed(failure);
                self.end_try(scene, record, at, End::Failed);
            }
            LogEvent::CommandStarted(text) => {
                if let Some(call) = self.commands.last_mut() {
                    call.is_call = true;
                }
                let (text, depth) = (text.clone(), self.tries.len());
                let command = Command { from: at, line: record.line, text, depth, is_call: false };
                self.commands.push(command);
            }
            LogEvent::Failed(failure) => self.failed(failure),
            LogEvent::Placed { node } => self.nodes.push(node.clone()),
            _ => {}
        }
    }

    /// It has ended.
    pub fn end(mut self, scene: &mut Scene, at: Duration, end: End) {
        self.end_commands(scene, 0, at, end);
        self.close_tries(scene, 0, at, cut(end));
        let mut text = format!("{}\n", scene.rows.label(self.row));
        if !self.nodes.is_empty() {
            text += &format!("on {}\n", self.nodes.join(", then "));
        }
        text += &taken(self.from, at).to_string();
        if end == End::Failed {
            self.add_failure(&mut text);
        }
        let (kind, from) = (Kind::Task, self.from);
        scene.rows.push(self.row, Bar { kind, from, to: at, end, text });
        scene.rows.end(self.row);
    }

    fn failed(&mut self, failure: &Failure) {
        self.last.1 = End::Failed;
        self.failure = format!("line {}: {}", failure.line, failure.message);
    }

    fn add_failure(&self, text: &mut String) {
        if !self.failure.is_empty() {
            *text += "\n";
            text.extend(self.failure.chars().take(LONGEST_TEXT));
        }
    }

    /// The place of the innermost `try` that a record is of.
    fn place(&self, record: &LogRecord) -> Option<usize> {
        self.tries.iter().rposition(|it| it.line == record.line && it.file == record.file)
    }

    /// An attempt begins, or waits to begin.
    fn attempt(&mut self, scene: &mut Scene, record: &LogRecord, number: u64, at: Duration) {
        let place = self.place(record);
        let is_waiting = |it: &Try| it.delay.is_some() || it.attempt.is_none();
        if let Some(place) = place.filter(|place| number > 1 || is_waiting(&self.tries[*place])) {
            self.close_tries(scene, place + 1, at, End::Cancelled);
            self.end_attempt(scene, at, End::Failed);
        } else {
            // A `try` that was left without a word, as by `break`.
            if let Some(place) = place {
                self.close_tries(scene, place, at, End::Cancelled);
            }
            let label = if record.file == self.file {
                format!("try, line {}", record.line)
            } else {
                format!("try, {}:{}", record.file, record.line)
            };
            let row = self.innermost().and_then(|parent| scene.rows.begin(Some(parent), label));
            let (file, line) = (Arc::clone(&record.file), record.line);
            self.tries.push(Try { file, line, row, until: None, attempt: None, delay: None });
        }
        self.end_delay(scene, at);
    }

    /// The innermost `try` waits.
    fn wait(&mut self, scene: &mut Scene, at: Duration, delay: (Duration, String), end: End) {
        self.end_commands(scene, self.tries.len(), at, end);
        self.end_attempt(scene, at, end);
        if let Some(last) = self.tries.last_mut() {
            last.delay = Some((at, delay.0, delay.1));
        }
    }

    fn end_try(&mut self, scene: &mut Scene, record: &LogRecord, at: Duration, end: End) {
        if let Some(place) = self.place(record) {
            self.close_tries(scene, place + 1, at, End::Cancelled);
            self.close_tries(scene, place, at, end);
        }
    }

    /// Ends those from a place on.
    fn close_tries(&mut self, scene: &mut Scene, place: usize, at: Duration, end: End) {
        while self.tries.len() > place {
            self.end_commands(scene, self.tries.len(), at, end);
            self.end_attempt(scene, at, end);
            self.end_delay(scene, at);
            let Some(Try { row: Some(row), until, .. }) = self.tries.pop() else { continue };
            if let Some(until) = until.filter(|until| *until <= at) {
                scene.rows.limit(row, until);
            }
            scene.rows.end(row);
        }
        if place == 0 {
            self.end_commands(scene, 0, at, end);
        }
    }

    fn end_attempt(&mut self, scene: &mut Scene, to: Duration, end: End) {
        let Some(Attempt { from, number, until }) =
            self.tries.last_mut().and_then(|last| last.attempt.take())
        else {
            return;
        };
        let mut text = format!("attempt {number}, {}", taken(from, to));
        if end == End::Failed {
            self.add_failure(&mut text);
        }
        let Some(row) = self.innermost() else { return };
        if let Some(until) = until.filter(|until| *until <= to) {
            scene.rows.limit(row, until);
        }
        scene.rows.push(row, Bar { kind: Kind::Attempt, from, to, end, text });
    }

    fn end_delay(&mut self, scene: &mut Scene, now: Duration) {
        let Some(last) = self.tries.last_mut() else { return };
        let Some((from, delay, text)) = last.delay.take() else { return };
        let Some(row) = last.row else { return };
        let to = from.saturating_add(delay).min(now);
        let text = format!("{text}\n{}", taken(from, to));
        scene.rows.push(row, Bar { kind: Kind::Delay, from, to, end: End::Unknown, text });
    }

    /// Ends a `sleep`, whose end no log tells, as something else happens.
    fn end_pause(&mut self, scene: &mut Scene, at: Duration) {
        if self.commands.last().is_some_and(|last| !last.is_call && last.text.starts_with("sleep "))
        {
            self.end_last(scene, at, End::Succeeded);
        }
    }

    /// Ends the innermost command that is called so, or else the last one.
    fn end_command(&mut self, scene: &mut Scene, at: Duration, end: End, text: Option<&str>) {
        let place = self.commands.iter().rposition(|it| Some(it.text.as_str()) == text);
        let Some(place) = place.or(self.commands.len().checked_sub(1)) else { return };
        while self.commands.len() > place + 1 {
            self.end_last(scene, at, End::Cancelled);
        }
        self.end_last(scene, at, end);
    }

    /// Ends all commands in so many tries; functions end like what they are in.
    fn end_commands(&mut self, scene: &mut Scene, depth: usize, at: Duration, end: End) {
        while let Some(last) = self.commands.last().filter(|last| last.depth >= depth) {
            let end = if last.is_call { end } else { cut(end) };
            self.end_last(scene, at, end);
        }
    }

    fn end_last(&mut self, scene: &mut Scene, at: Duration, end: End) {
        let Some(Command { from, line, text, is_call, depth }) = self.commands.pop() else {
            return;
        };
        // What nobody knows the end of ended with the shell.
        let lost = scene.gap.filter(|gap| {
            gap.to == Some(at) && from <= gap.from && matches!(end, End::Lost | End::Cancelled)
        });
        let (to, end) = lost.map_or((at, end), |gap| (gap.from, End::Lost));
        let mut text: String = text.chars().take(LONGEST_TEXT).collect();
        text = format!("line {line}: {text}\n{}", taken(from, to));
        if matches!(end, End::Failed | End::Lost) {
            self.add_failure(&mut text);
        }
        let row = match depth.checked_sub(1).and_then(|place| self.tries.get(place)) {
            Some(around) => around.row,
            None => Some(self.row),
        };
        let kind = if is_call { Kind::Call } else { Kind::Command };
        if let Some(row) = row {
            scene.rows.push(row, Bar { kind, from, to, end, text });
        }
    }
}

/// How what is inside something ends that ends so.
fn cut(end: End) -> End {
    if end == End::Unknown { End::Unknown } else { End::Cancelled }
}

fn taken(from: Duration, to: Duration) -> Human {
    Human(to.saturating_sub(from))
}
