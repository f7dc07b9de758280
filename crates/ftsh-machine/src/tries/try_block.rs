//! The `try` statement: attempts, the delays between them, and the end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bstr::BString;

use super::{
    TryRunner,
    verdict::{Occasion, StopReason, Verdict},
};
use crate::amounts::{byte_size, length, not_zero, number, plain};
use crate::atomic::Committer;
use crate::attempts::{FutileFailures, TryFrame, TryPhase, UsualLimit, give_up};
use crate::core::{ChannelPass, Flow, ScopeWatch, Step};
use crate::durations::execution::LimitedExecution;
use crate::effect::Effect;
use crate::endings::{Continuation, LastAttempt, Retry, Thrown};
use crate::frames::FrameKind;
use crate::items::Items;
use crate::outcome::{Failure, TrySummary};
use crate::program::{BackoffCode, DurationScale, TryCode};
use crate::record::spans::SpanEvent;
use crate::record::{LONG_DELAY, Level, LogEvent, LogRecord};
use crate::scheduler::Timer;
use crate::tasks::{Task, TaskState};
use crate::time::{Deadline, Time};
use crate::unwind::Unwinder;
use crate::values::Suspend;
use ftsh_syntax::backoff::{Backoff, Policy, deferral, last_attempt};
use ftsh_syntax::signal::Signal;
use ftsh_syntax::slug::Slug;
use ftsh_syntax::{Source, signal};

/// Violated invariant: a continued `try` has a failure.
const NO_FAILURE: &str = "a `try` is to go on without a failure";

impl TryRunner<'_> {
    /// Reads the values of the clauses from the stack, and begins the first attempt.
    pub(crate) fn begin_try(&mut self, task: &mut Task, code: &Arc<TryCode>) -> Step {
        task.reverse_top(code.values());
        let length = |task: &mut Task, scale: &DurationScale| length(task, *scale);
        let mut clauses = code.clauses.try_map(
            task,
            length,
            |task, ()| count(task),
            byte_size,
            backoff,
            |task, ()| signal(task),
        )?;
        for limit in [clauses.time, clauses.each, clauses.stalled] {
            limit.map_or(Ok(()), not_zero)?;
        }
        // `every` of zero means the usual delays.
        clauses.every = clauses.every.filter(|every| !every.is_zero());
        let directories = pop_directories(task, code.directories)?;
        let policy = clauses.backoff.as_ref().unwrap_or(&self.core.config().backoff).clone();
        let source = &task.program.source;
        let usual = code.usual.zip(clauses.each);
        let usual = usual.map(|(key, most)| {
            let samples = self.core.durations().samples(source, key);
            let execution = LimitedExecution::new(&samples, most);
            Box::new(UsualLimit { key, execution, resumed_attempt: None })
        });
        let enclosing = self.core.deadline_of(task);
        let own = Deadline::of_limit(self.core.now(), clauses.time);
        if let Some(channel) = &code.through {
            self.definitions.rules(channel)?;
        }
        // Last: a failure above is one of the head, which the `catch` of this `try` handles.
        task.frames.pop();
        let id = self.core.next_id();
        let cut = Timer::Deadline { task: task.id, id };
        // Without a timer of its own where the deadline around comes first and ends this `try` too.
        let deadline_timer = (own < enclosing).then(|| self.core.arm(own.timer_moment(), cut));
        let frame = TryFrame {
            id,
            code: Arc::clone(code),
            phase: TryPhase::Delay,
            started: self.core.now(),
            deadline: own.min(enclosing),
            deadline_timer,
            directories,
            clauses,
            usual,
            attempt: 0,
            attempt_started: self.core.now(),
            attempt_deadline: own.min(enclosing),
            attempt_timer: None,
            backoff: Backoff::new(policy),
            first_failed: None,
            last: false,
            deferred: false,
            delay_logged: false,
            futile: FutileFailures::default(),
            began_in: task.working_directory(),
            outer_scope: task.scope,
            scope: task.scope,
            failure: None,
            input: None,
            replay: None,
            dropped: BTreeMap::new(),
            held: None,
        };
        task.enter(FrameKind::Try(Box::new(frame)));
        Ok(self.begin_attempt(task))
    }

    /// Counts an attempt that begins.
    pub(crate) fn begin_counting(&mut self, task: &mut Task) {
        let now = self.core.now();
        let Some(frame) = task.top_try() else { return };
        frame.attempt = frame.next_attempt();
        frame.deferred = false;
        frame.held = None;
        frame.attempt_started = now;
        frame.set_usual_limit();
        let (number, line) = (frame.attempt, frame.code.line);
        let until = frame.deadline_timer.as_ref().and(frame.deadline.moment());
        let each = frame.clauses.each.map(|each| now + each);
        let (is_limit, limit) = (frame.code.is_limit, frame.clauses.time);
        let (id, started, policy) = (frame.id, frame.started, frame.policy());
        // Retries of nested tries do not count as retries of the task.
        if task.tries().filter(|frame| !frame.code.is_limit).count() == 1 {
            task.attempts = task.attempts.max(number);
        }
        if is_limit {
            // The attempt of a loop with `atomic in` has no limit.
            if let Some(time) = limit {
                self.core.log_at(task, line, || LogEvent::Limit(time), Level::STRUCTURES);
            }
            return;
        }
        let event = || LogEvent::Attempt { number, until, each };
        self.core.log_at(task, line, event, Level::STRUCTURES);
        self.core.log_at(
            task,
            line,
            || SpanEvent::Attempt { id, started, number, policy },
            Level::SPANS,
        );
    }

    /// Makes an attempt, in its own scope, which owns the attempt's pass through a channel.
    pub(crate) fn make_attempt(&mut self, task: &mut Task, pass: Option<ChannelPass>) -> Flow {
        self.begin_counting(task);
        let (id, now) = (task.id, self.core.now());
        let Some(frame) = task.top_try() else { return Flow::broken(task, TryFrame::MISSING) };
        let scope = self.core.new_scope(Some(frame.outer_scope));
        self.core.parts().scopes.set_pass(scope, pass);
        if let Some(signal) = frame.clauses.signal {
            self.core.parts().scopes.set_signal(scope, signal);
        }
        let (conditions, attempt) = (frame.conditions(), Some(frame.id));
        self.core.parts().scopes.set_watch(scope, ScopeWatch { conditions, owner: id, attempt });
        frame.phase = TryPhase::Attempt;
        frame.scope = scope;
        let limit = Deadline::of_limit(now, frame.clauses.each);
        frame.attempt_deadline = frame.deadline.min(limit);
        if limit < frame.deadline {
            let timer = Timer::EachAttempt { task: id, id: frame.id };
            frame.attempt_timer = Some(self.core.arm(limit.timer_moment(), timer));
        }
        let (body, began_in) = (frame.code.body, frame.began_in.clone());
        task.return_to(&began_in);
        task.scope = scope;
        task.jump(body);
        self.check_input(task)
    }

    /// Handles the success of the body.
    pub(crate) fn try_succeeded(&mut self, task: &mut Task) -> Flow {
        let Some(frame) = task.top_try() else { return Flow::broken(task, TryFrame::MISSING) };
        let (attempt, end, line) = (frame.attempt, frame.code.end, frame.code.line);
        if !frame.code.is_limit {
            self.core.log_at(task, line, || LogEvent::TrySucceeded(attempt), Level::STRUCTURES);
        }
        let source = Arc::clone(&task.program.source);
        if let Some(frame) = task.top_try() {
            self.core.learn(&source, frame, true);
        }
        Unwinder::new(self.core).leave(task);
        task.jump(end);
        Flow::Continue
    }

    /// Continues after a failed attempt or condition, once its scope is empty.
    pub(crate) fn attempt_failed(&mut self, task: &mut Task, thrown: Thrown) -> Flow {
        let now = self.core.now();
        let Some(frame) = task.top_try() else { return Flow::broken(task, TryFrame::MISSING) };
        if frame.code.is_limit && thrown.retry != Retry::BrokenPipe {
            return Unwinder::new(self.core).limit_failed(task, thrown);
        }
        frame.futile.record(&thrown.failure);
        let (verdict, line) = (frame.verdict(now, thrown.retry), frame.code.line);
        let (id, failure) = (frame.id, thrown.failure.kind);
        self.core.log_at(task, line, || SpanEvent::AttemptFailed { id, failure }, Level::SPANS);
        let Some(frame) = task.top_try() else { return Flow::broken(task, TryFrame::MISSING) };
        if verdict == Verdict::Leave {
            if let Some(buffer) = frame.held.take() {
                task.scope = frame.outer_scope;
                let then = Continuation::Throw(thrown);
                return Committer::new(self.core).write_held(task, buffer, then);
            }
            Unwinder::new(self.core).leave_cut(task);
            return Flow::Throw(thrown);
        }
        self.core.cancel(frame.attempt_timer.take());
        frame.failure = Some(thrown.failure);
        // The policy counts the time of failures from here, and a deferral is none.
        if !matches!(verdict, Verdict::Defer(_)) {
            frame.first_failed.get_or_insert(now);
        }
        self.apply_verdict(task, verdict)
    }

    /// Pops the condition of `while`.
    pub(crate) fn try_again(&mut self, task: &mut Task) -> Step {
        let again = task.pop()?.boolean().map_err(Suspend::from)?;
        self.core.log(task, || LogEvent::Condition(again), Level::STRUCTURES);
        let Some(frame) = task.top_try() else { return Ok(Flow::broken(task, TryFrame::MISSING)) };
        let verdict = frame.attempts(self.core.now()).verdict(Occasion::Condition(again));
        // Processes that the condition left running continue, as after a successful command.
        let (scope, outer) = (frame.scope, frame.outer_scope);
        self.core.hand_over(scope, outer);
        Ok(self.apply_verdict(task, verdict))
    }

    /// Applies a decision about the next attempt, after the failure in the frame.
    fn apply_verdict(&mut self, task: &mut Task, verdict: Verdict) -> Flow {
        let Some(frame) = task.top_try() else { return Flow::broken(task, TryFrame::MISSING) };
        let Some(mut failure) = frame.failure.clone() else {
            return Flow::broken(task, NO_FAILURE);
        };
        match (verdict, frame.code.condition) {
            (Verdict::Ask, Some(condition)) => {
                frame.phase = TryPhase::Condition;
                frame.scope = self.core.new_scope(Some(frame.outer_scope));
                let (scope, began_in) = (frame.scope, frame.began_in.clone());
                task.return_to(&began_in);
                task.scope = scope;
                task.jump(condition);
                Flow::Continue
            }
            (Verdict::Retry | Verdict::Ask, _) => self.delay(task),
            (Verdict::Defer(by), _) => self.defer(task, by),
            (Verdict::Stop(reason), _) => {
                if reason == StopReason::Futile {
                    give_up(&mut failure);
                }
                Unwinder::new(self.core).try_failed(task, failure)
            }
            (Verdict::Leave, _) => Unwinder::new(self.core).try_failed(task, failure),
        }
    }

    /// Continues without another attempt, because the channel has no budget.
    pub(crate) fn without_budget(&mut self, task: &mut Task, failure: Arc<Failure>) -> Flow {
        let now = self.core.now();
        let Some(frame) = task.top_try() else { return Flow::broken(task, TryFrame::MISSING) };
        let verdict = frame.attempts(now).verdict(Occasion::NoBudget);
        frame.failure = Some(failure);
        self.apply_verdict(task, verdict)
    }

    /// Waits before the next attempt, or fails if no attempt fits.
    fn delay(&mut self, task: &mut Task) -> Flow {
        let now = self.core.now();
        let Some(frame) = task.top_try() else { return Flow::broken(task, TryFrame::MISSING) };
        let next = match frame.clauses.every {
            Some(every) => {
                let next = now.max(frame.attempt_started + every);
                let verdict = frame.attempts(now).verdict(Occasion::Due(next - now));
                if verdict != Verdict::Retry {
                    return self.apply_verdict(task, verdict);
                }
                next
            }
            None => {
                let since = now - frame.first_failed.unwrap_or(now);
                let delay = frame.backoff.next_delay(since, self.random.rng());
                let last = last_attempt(
                    delay,
                    frame.deadline.remaining(now).unwrap_or(Duration::MAX),
                    self.random.rng(),
                );
                frame.last = last.is_some();
                now + last.unwrap_or(delay)
            }
        };
        let (line, last, attempt) = (frame.code.line, frame.last, frame.attempt + 1);
        let event = || LogEvent::Delay { delay: next - now, attempt, last };
        self.log_delay(task, line, next - now, event);
        self.wait_until(task, next)
    }

    /// Waits, and repeats the same attempt. A deferral counts neither as an attempt nor for the
    /// policy.
    fn defer(&mut self, task: &mut Task, by: Duration) -> Flow {
        let now = self.core.now();
        let Some(frame) = task.top_try() else { return Flow::broken(task, TryFrame::MISSING) };
        let delay =
            deferral(by, frame.deadline.remaining(now).unwrap_or(Duration::MAX), self.random.rng());
        (frame.last, frame.deferred) = (false, true);
        let (line, attempt) = (frame.code.line, frame.attempt);
        let event = || LogEvent::Deferred { delay, attempt };
        self.log_delay(task, line, delay, event);
        self.wait_until(task, now + delay)
    }

    /// Logs a delay. The first long delay is logged at the level of failures too, to show that an
    /// hour without activity is intended.
    fn log_delay(
        &mut self,
        task: &mut Task,
        line: u32,
        delay: Duration,
        event: impl FnOnce() -> LogEvent,
    ) {
        let is_news = |frame: &mut TryFrame| !std::mem::replace(&mut frame.delay_logged, true);
        let level = if delay > LONG_DELAY && task.top_try().is_some_and(is_news) {
            Level::FAILURES
        } else {
            Level::STRUCTURES
        };
        if self.core.logs(level) {
            let record = LogRecord { level, ..self.core.record(task, line, event()) };
            self.core.request(Effect::Log(record));
        }
    }

    /// Waits in the scope around the attempts.
    fn wait_until(&mut self, task: &mut Task, next: Time) -> Flow {
        let Some(frame) = task.top_try() else { return Flow::broken(task, TryFrame::MISSING) };
        frame.phase = TryPhase::Delay;
        task.scope = frame.outer_scope;
        if next <= self.core.now() {
            return self.begin_attempt(task);
        }
        task.since = self.core.now();
        Flow::Wait(TaskState::Sleeping(self.core.arm(next, Timer::Wake(task.id))))
    }
}

/// Pops the values of the directories of `atomic in`.
fn pop_directories(task: &mut Task, values: usize) -> Result<Vec<BString>, Suspend> {
    let mut items = Items::default();
    for value in task.stack.split_off(task.stack.len().saturating_sub(values)) {
        items.push(value);
    }
    let mut directories = Vec::new();
    while let Some(item) = items.next() {
        directories.push(item.text().unwrap_or_default().into_owned());
    }
    if values > 0 && directories.is_empty() {
        return Err(Suspend::expression(Slug::WordCount, "`atomic in` has no directory"));
    }
    Ok(directories)
}

impl TryFrame {
    /// Returns the last attempt for the `catch` and the `finally`.
    pub(crate) fn last_attempt(&self) -> Option<LastAttempt> {
        let is_limit = self.code.is_limit;
        let last = LastAttempt { number: self.attempt, started: self.started, is_limit };
        (self.attempt > 0).then_some(last)
    }

    /// Returns the name of the policy of the delays.
    fn policy(&self) -> &'static str {
        if self.clauses.every.is_some() { "every" } else { self.backoff.kind().name() }
    }

    /// Returns the number of attempts and the duration up to now, for a failure that ends the
    /// `try`.
    pub(crate) fn tried(&self, source: &Source, now: Time) -> TrySummary {
        let file = Arc::clone(source.name());
        let elapsed = now - self.started;
        TrySummary { file, line: self.code.line, attempts: self.attempt, elapsed }
    }
}

/// Pops a number of attempts.
fn count(task: &mut Task) -> Result<u64, Suspend> {
    let times = task.pop()?.integer().map_err(Suspend::from)?;
    match u64::try_from(times) {
        Ok(times @ 1..) => Ok(times),
        _ => {
            Err(Suspend::expression(Slug::OutOfRange, format!("a try can't make {times} attempts")))
        }
    }
}

/// Pops the name of a signal.
fn signal(task: &mut Task) -> Result<Signal, Suspend> {
    let name = plain(&task.pop()?)?;
    Signal::named(&name)
        .ok_or_else(|| Suspend::expression(Slug::UnknownSignal, signal::unknown(&name)))
}

/// Pops the parameters of a `backoff` clause.
fn backoff(task: &mut Task, code: &BackoffCode) -> Result<Policy, Suspend> {
    let length = |task: &mut Task, scale: &DurationScale| {
        let length = length(task, *scale)?;
        not_zero(length).map(|()| length)
    };
    let clauses =
        code.clauses.try_map(task, length, |task, ()| number(&task.pop()?))?.jitter_from_percent();
    Policy::with(code.kind, &clauses)
        .map_err(|error| Suspend::expression(Slug::OutOfRange, error.one_line()))
}
