//! Spans of a run, made from the records of its log.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};

use super::otlp::{number, text, time};
use ftsh_machine::effect::TaskId;
use ftsh_machine::record::spans::{SpanEvent, TraceContext};
use ftsh_machine::record::{LogEvent, LogRecord};
use ftsh_machine::{FailureKind, Outcome, Time};
use ftsh_syntax::vocabulary::HEADS;

const SCRIPT: TaskId = TaskId(0);

/// Kind of a span inside of a program, and status of a span that has failed.
const INTERNAL: u8 = 1;
const ERROR: u8 = 2;

/// Limit on the delays of a `try`, as of the SDKs of OpenTelemetry.
const MAX_EVENTS: usize = 128;

/// Longest time for which an earlier start kept finished spans, rounded up.
const MAX_DELAY: Duration = Duration::from_secs(10);

/// `error.type` of work that the end of the shell has cut short.
const KILLED: &str = "killed";

/// Builder of spans. Each record is given to [`add`](Self::add).
#[derive(Debug)]
pub struct Spans {
    context: TraceContext,
    /// True for the spans of a branch on another machine, whose own span the head makes.
    is_branch: bool,
    /// Time since 1970 of moments of the run, in order: one for each start.
    clock: Vec<(Duration, Duration)>,
    tasks: BTreeMap<TaskId, TaskSpans>,
    /// Finished spans with their ends.
    finished: Vec<(Time, String)>,
    /// Time of the latest record.
    last: Time,
    /// True if the run takes the name of its first program.
    is_prefix: bool,
    /// Set from a suspension to the next start.
    is_suspended: bool,
    /// Number of spans of branches that did not fit.
    dropped: u64,
}

/// Spans of a task.
#[derive(Debug, Default)]
struct TaskSpans {
    parent: Option<TaskId>,
    /// Span around the task.
    around: Option<u64>,
    /// Spans in progress, outermost first.
    stack: Vec<OpenSpan>,
    /// Child tasks in progress.
    children: BTreeSet<TaskId>,
    /// Failure that is about to cut spans short.
    cut: Option<FailureKind>,
}

/// Kinds of spans, with the id of a `try`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SpanKind {
    #[default]
    Run,
    Branch,
    Try(u64),
    Attempt,
    Command,
    /// A command in the place of the shell.
    LastCommand,
}

#[derive(Debug, Default)]
struct OpenSpan {
    kind: SpanKind,
    id: u64,
    parent: Option<u64>,
    name: String,
    from: Time,
    attributes: Vec<Value>,
    /// Delays of a `try`.
    events: Vec<Value>,
    dropped_events: u64,
    /// Number of attempts so far.
    attempts: u64,
}

impl OpenSpan {
    fn set(&mut self, attribute: Value) {
        self.attributes.retain(|known| known["key"] != attribute["key"]);
        self.attributes.push(attribute);
    }
}

impl Spans {
    /// Creates the builder for a run with this name. The shell of its first start has the process id
    /// `pid`.
    pub fn new(context: TraceContext, name: &str, pid: u32) -> Self {
        let is_prefix = HEADS.contains(&name);
        let mut spans = Self { is_prefix, is_branch: false, ..Self::of_branch(context) };
        let attributes = vec![text("code.file.path", name), number("process.pid", pid)];
        let base = name.rsplit('/').next().unwrap_or_default();
        let name = format!("run {base}");
        spans.open(SCRIPT, SpanKind::Run, (0, 0), Time::START, name, attributes);
        spans
    }

    /// Creates the builder for a branch of another machine's run.
    pub fn of_branch(context: TraceContext) -> Self {
        let script = TaskSpans { around: context.parent, ..TaskSpans::default() };
        Self {
            context,
            is_branch: true,
            clock: Vec::new(),
            tasks: BTreeMap::from([(SCRIPT, script)]),
            finished: Vec::new(),
            last: Time::START,
            is_prefix: false,
            is_suspended: false,
            dropped: 0,
        }
    }

    /// Drops the oldest finished spans beyond a number. The latest ones are around the others.
    pub fn limit(&mut self, most: usize) {
        let beyond = self.finished.len().saturating_sub(most);
        self.finished.drain(..beyond);
        self.dropped += beyond as u64;
    }

    /// Takes the number of spans that did not fit.
    pub fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }

    /// Notes a start of the shell at a moment of the run, which is `at` this time since 1970.
    pub fn start(&mut self, elapsed: Duration, at: Duration) {
        self.clock.push((elapsed, at));
    }

    /// Takes the spans finished since the last call, each as a JSON object.
    pub fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.finished).into_iter().map(|(_, span)| span).collect()
    }

    /// Adds a record of an earlier start. The spans that may have waited for export when that start
    /// ended are finished again.
    pub fn recall(&mut self, record: &LogRecord) {
        self.add(record);
        let unsent = |(at, _): &&(Time, String)| record.at - *at > MAX_DELAY;
        let sent = self.finished.iter().take_while(unsent).count();
        self.finished.drain(..sent);
    }

    /// Adds a record. Needs the records up to [`Level::SPANS`](ftsh_machine::record::Level::SPANS).
    pub fn add(&mut self, record: &LogRecord) {
        match &record.event {
            LogEvent::Suspended(_) => self.is_suspended = true,
            LogEvent::Resumed { .. } => self.is_suspended = false,
            LogEvent::Span(event) => {
                if let SpanEvent::Elsewhere(spans) = &**event {
                    let finished = spans.finished.iter().map(|span| (record.at, span.clone()));
                    self.finished.extend(finished);
                    self.dropped += spans.dropped;
                }
            }
            _ => {}
        }
        self.last = self.last.max(record.at);
        let Some(task) = record.task.filter(|_| !self.is_suspended) else { return };
        self.end_command(task, record);
        match &record.event {
            LogEvent::Span(event) => return self.add_event(task, record, event),
            LogEvent::Delay { delay, .. } | LogEvent::Deferred { delay, .. } => {
                self.delay(task, record.at, *delay);
            }
            LogEvent::Placed { node } => {
                if let Some(branch) = self.stack(task).first_mut() {
                    branch.set(text("host.name", node));
                }
            }
            _ => {}
        }
        let Some(spans) = self.tasks.get_mut(&task) else { return };
        spans.cut = match &record.event {
            LogEvent::Canceled => Some(FailureKind::Canceled),
            LogEvent::RetriesEnded(_) => spans.cut,
            event => event.failure().map(|failure| failure.kind),
        };
    }

    fn add_event(&mut self, task: TaskId, record: &LogRecord, event: &SpanEvent) {
        let at = record.at;
        match event {
            SpanEvent::TaskBegan { is_branch } => {
                let parent = record.parent.unwrap_or(SCRIPT);
                let around = self.innermost(parent);
                if let Some(spans) = self.tasks.get_mut(&parent) {
                    spans.children.insert(task);
                }
                let spans = TaskSpans { parent: Some(parent), around, ..TaskSpans::default() };
                self.tasks.insert(task, spans);
                if *is_branch && !(self.is_branch && parent == SCRIPT) {
                    let place = place(record);
                    self.open(task, SpanKind::Branch, (task.0, 0), at, "branch".into(), place);
                }
            }
            // The outcome of the script follows.
            SpanEvent::TaskEnded(_) if task == SCRIPT => {}
            SpanEvent::TaskEnded(failure) => self.end_task(task, at, failure.map(error)),
            SpanEvent::Attempt { id, started, number: nth, policy } => {
                let depth = self.depth_of_try(task, *id).unwrap_or_else(|| {
                    let mut attributes = place(record);
                    attributes.push(text("ftsh.policy", policy));
                    self.open(
                        task,
                        SpanKind::Try(*id),
                        (*id, 0),
                        *started,
                        "try".into(),
                        attributes,
                    );
                    self.stack(task).len() - 1
                });
                self.close(task, depth + 1, at, Some(FailureKind::Canceled.name()));
                let around = &mut self.stack(task)[depth];
                around.attempts += 1;
                let id = (*id, around.attempts);
                let attributes = vec![number("ftsh.attempt", *nth)];
                self.open(task, SpanKind::Attempt, id, at, "attempt".into(), attributes);
            }
            SpanEvent::AttemptFailed { id, failure } => {
                if let Some(depth) = self.depth_of_try(task, *id) {
                    self.close(task, depth + 1, at, Some(error(*failure)));
                }
            }
            SpanEvent::TryEnded { id, failure } => {
                let is_replaced = |open: &mut OpenSpan| open.kind == SpanKind::LastCommand;
                if self.command(task).is_some_and(is_replaced) {
                    return;
                }
                if let Some(depth) = self.depth_of_try(task, *id) {
                    let cut = self.tasks.get(&task).and_then(|spans| spans.cut);
                    let failure = failure.map(|kind| match kind {
                        FailureKind::Canceled => error(cut.unwrap_or(kind)),
                        _ => error(kind),
                    });
                    self.close(task, depth, at, failure);
                }
            }
            SpanEvent::ProgramStarted { process, name, is_last } => {
                let kind = if *is_last { SpanKind::LastCommand } else { SpanKind::Command };
                if std::mem::take(&mut self.is_prefix)
                    && let Some(run) = self.stack(SCRIPT).first_mut()
                {
                    run.name = format!("run {name}");
                }
                let mut attributes = place(record);
                attributes.push(text("process.executable.name", name));
                self.open(task, kind, (process.0, 0), at, name.clone(), attributes);
            }
            SpanEvent::ProgramRunning(pid) => {
                if let Some(command) = self.command(task) {
                    command.set(number("process.pid", *pid));
                }
            }
            SpanEvent::Answered(_) | SpanEvent::Elsewhere(_) => {}
        }
    }

    /// Ends the spans of a run at the latest record. Without an outcome, the shell was killed before
    /// the end.
    pub fn finish(&mut self, outcome: Option<&Outcome>) {
        if self.is_suspended {
            return;
        }
        let code = outcome.map(Outcome::exit_code);
        let error = match outcome {
            None => Some(KILLED),
            Some(Outcome::Succeeded | Outcome::Exited(0)) => None,
            Some(Outcome::Exited(_)) => Some(FailureKind::Exit.name()),
            Some(Outcome::Failed(failure)) => Some(self::error(failure.kind)),
            Some(Outcome::Interrupted(_)) => Some(FailureKind::Signal.name()),
        };
        let now = self.last;
        let last = self.command(SCRIPT).filter(|open| open.kind == SpanKind::LastCommand);
        let inner = match error {
            Some(KILLED) | None => error,
            Some(_) if last.is_some() => error,
            Some(_) => Some(FailureKind::Canceled.name()),
        };
        let exit_code = code.map(|code| number("process.exit.code", code));
        if let (Some(command), Some(code)) = (last, &exit_code) {
            command.set(code.clone());
        }
        self.close(SCRIPT, usize::from(!self.is_branch), now, inner);
        if let (Some(run), Some(code)) = (self.stack(SCRIPT).last_mut(), exit_code) {
            run.set(code);
        }
        self.close(SCRIPT, 0, now, error);
    }

    fn stack(&mut self, task: TaskId) -> &mut Vec<OpenSpan> {
        &mut self.tasks.entry(task).or_default().stack
    }

    fn innermost(&self, task: TaskId) -> Option<u64> {
        let spans = self.tasks.get(&task)?;
        spans.stack.last().map(|open| open.id).or(spans.around)
    }

    /// Returns the program that a task runs.
    fn command(&mut self, task: TaskId) -> Option<&mut OpenSpan> {
        let is_command = |kind| matches!(kind, SpanKind::Command | SpanKind::LastCommand);
        self.tasks.get_mut(&task)?.stack.last_mut().filter(|open| is_command(open.kind))
    }

    fn depth_of_try(&self, task: TaskId, id: u64) -> Option<usize> {
        self.tasks.get(&task)?.stack.iter().rposition(|open| open.kind == SpanKind::Try(id))
    }

    fn open(
        &mut self,
        task: TaskId,
        kind: SpanKind,
        (id, part): (u64, u64),
        from: Time,
        name: String,
        attributes: Vec<Value>,
    ) {
        let (id, parent) = (self.context.span(id, part), self.innermost(task));
        let open = OpenSpan { kind, id, parent, name, from, attributes, ..OpenSpan::default() };
        self.stack(task).push(open);
    }

    /// Ends the program that a task runs. A task that waits for a program has no other records.
    fn end_command(&mut self, task: TaskId, record: &LogRecord) {
        let Some(command) = self.command(task) else { return };
        let (code, failure) = match &record.event {
            LogEvent::Span(event) => match &**event {
                SpanEvent::ProgramRunning(_) => return,
                SpanEvent::Answered(code) => (Some(*code), None),
                _ if command.kind == SpanKind::LastCommand => return,
                _ => (None, Some(FailureKind::Canceled)),
            },
            LogEvent::CommandSucceeded { status, .. } => (Some(*status), None),
            event => match event.failure() {
                Some(failure) if failure.kind == FailureKind::Exit => {
                    (Some(failure.code), Some(failure.kind))
                }
                Some(failure) => (None, Some(failure.kind)),
                // A program in the place of the shell continues outside of all structures.
                None if command.kind == SpanKind::LastCommand => return,
                None => (None, Some(FailureKind::Canceled)),
            },
        };
        if let Some(code) = code {
            command.set(number("process.exit.code", code));
        }
        let depth = self.stack(task).len() - 1;
        self.close(task, depth, record.at, failure.map(error));
    }

    /// Notes a delay of the innermost `try`.
    fn delay(&mut self, task: TaskId, at: Time, delay: Duration) {
        let at = self.since_1970(at);
        let is_try = |open: &&mut OpenSpan| matches!(open.kind, SpanKind::Try(_));
        let around = self.stack(task).iter_mut().rev().find(is_try);
        let Some(around) = around.filter(|_| !delay.is_zero()) else { return };
        if around.events.len() == MAX_EVENTS {
            around.dropped_events += 1;
            return;
        }
        let value = json!({"doubleValue": delay.as_secs_f64()});
        let length = json!({"key": "ftsh.delay", "value": value});
        let event = json!({"name": "delay", "timeUnixNano": time(at), "attributes": [length]});
        around.events.push(event);
    }

    /// Ends the spans of a task from a depth on, and all spans inside.
    fn close(&mut self, task: TaskId, depth: usize, at: Time, error: Option<&'static str>) {
        let Some(spans) = self.tasks.get_mut(&task) else { return };
        // A stage without spans has children with spans.
        if spans.stack.len() <= depth && depth > 0 {
            return;
        }
        let inner = error.unwrap_or(FailureKind::Canceled.name());
        for child in std::mem::take(&mut spans.children) {
            self.end_task(child, at, Some(inner));
        }
        let to = self.since_1970(at);
        let stack = self.stack(task);
        for open in stack.split_off(depth).into_iter().rev() {
            self.finished.push((at, self.finished(open, to, error)));
        }
    }

    /// Returns a finished span as JSON.
    fn finished(&self, mut open: OpenSpan, to: Duration, error: Option<&str>) -> String {
        let from = self.since_1970(open.from);
        open.attributes.extend(error.map(|error| text("error.type", error)));
        let mut span = json!({
            "traceId": format!("{:032x}", self.context.trace),
            "spanId": format!("{:016x}", open.id),
            "name": open.name,
            "kind": INTERNAL,
            "startTimeUnixNano": time(from),
            "endTimeUnixNano": time(to.max(from)),
            "attributes": open.attributes,
        });
        if let Some(parent) = open.parent {
            span["parentSpanId"] = json!(format!("{parent:016x}"));
        }
        if !open.events.is_empty() {
            span["events"] = open.events.into();
            span["droppedEventsCount"] = open.dropped_events.into();
        }
        if error.is_some() {
            span["status"] = json!({"code": ERROR});
        }
        span.to_string()
    }

    fn end_task(&mut self, task: TaskId, at: Time, error: Option<&'static str>) {
        let Some(spans) = self.tasks.get(&task) else { return };
        let parent = spans.parent;
        let inner = error.unwrap_or(FailureKind::Canceled.name());
        let is_branch = spans.stack.first().is_some_and(|open| open.kind == SpanKind::Branch);
        self.close(task, usize::from(is_branch), at, Some(inner));
        self.close(task, 0, at, error);
        self.tasks.remove(&task);
        if let Some(parent) = parent.and_then(|parent| self.tasks.get_mut(&parent)) {
            parent.children.remove(&task);
        }
    }

    /// Returns the time of a moment of the run, by the clock of the latest start before.
    fn since_1970(&self, at: Time) -> Duration {
        let at = at.elapsed();
        let start = self.clock.iter().rev().find(|(elapsed, _)| *elapsed <= at);
        start.map_or(at, |(elapsed, since)| *since + at.saturating_sub(*elapsed))
    }
}

/// Returns the attributes with the place of a record.
fn place(record: &LogRecord) -> Vec<Value> {
    vec![text("code.file.path", &record.file), number("code.line.number", record.line)]
}

/// Returns the `error.type` of a failure.
fn error(kind: FailureKind) -> &'static str {
    if kind == FailureKind::Lost { KILLED } else { kind.name() }
}
