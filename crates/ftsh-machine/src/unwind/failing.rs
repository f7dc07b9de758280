//! A `try` left by its failure.

use std::sync::Arc;

use super::{Unwinder, finally::note_last_attempt};
use crate::atomic::Committer;
use crate::attempts::TryFrame;
use crate::core::Flow;
use crate::effect::Effect;
use crate::endings::{Continuation, EndedTry, LastAttempt, Logged, Retry, Thrown};
use crate::frames::{Frame, FrameKind};
use crate::outcome::{Failure, FailureKind};
use crate::program::TryCode;
use crate::record::spans::SpanEvent;
use crate::record::{Level, LogEvent, LogRecord};
use crate::tasks::Task;

impl Unwinder<'_> {
    /// Ends a `try` without further attempts: catches the failure, or fails.
    pub(crate) fn try_failed(&mut self, task: &mut Task, failure: Arc<Failure>) -> Flow {
        let (retry, logged) = (Retry::AsUsual, Logged::Failure);
        self.try_ended(task, Thrown { failure, retry, logged, answers: true })
    }

    /// Ends a `limit` by a failure of its group. Without `catch`, `giveup` and `defer` concern the
    /// `try` around it.
    pub(crate) fn limit_failed(&mut self, task: &mut Task, thrown: Thrown) -> Flow {
        let retry = match thrown.failure.kind {
            // The end of the time concerns no `try` around it.
            FailureKind::Timeout => Retry::AsUsual,
            _ => thrown.retry,
        };
        self.try_ended(task, Thrown { retry, logged: Logged::Failure, answers: true, ..thrown })
    }

    fn try_ended(&mut self, task: &mut Task, mut thrown: Thrown) -> Flow {
        let Some(Frame { height, kind: FrameKind::Try(mut frame) }) = task.frames.pop() else {
            return Flow::broken(task, TryFrame::MISSING);
        };
        task.stack.truncate(height);
        self.core.learn(&task.program.source, &mut frame, false);
        self.core.cancel(frame.deadline_timer.take());
        self.core.cancel(frame.attempt_timer.take());
        note_last_attempt(task, &frame);
        task.scope = frame.outer_scope;
        task.return_to(&frame.began_in);
        Committer::new(self.core).end_replay(frame.replay.take());
        let tried = frame.tried(&task.program.source, self.core.now());
        let (line, attempts, elapsed) = (tried.line, tried.attempts, tried.elapsed);
        // A `limit` makes no attempts that a report could count.
        if !frame.code.is_limit {
            let mut failure = Arc::unwrap_or_clone(thrown.failure);
            failure.tries.push(tried);
            thrown.failure = Arc::new(failure);
        }
        let uncaught = self.core.config().log_level > Level::NOTHING
            && frame.code.catch.is_none()
            && self.core.tasks().is_uncaught(task, &thrown);
        thrown.logged = Logged::from_uncaught(uncaught);
        let level = Level::of_failure(uncaught);
        // A contained failure of a `limit` is logged where it happens.
        let is_news = uncaught || !frame.code.is_limit;
        let record = (is_news && self.core.logs(level)).then(|| {
            let failure = Box::new(Failure::clone(&thrown.failure));
            let event = if frame.code.is_limit {
                LogEvent::EndedBy(failure)
            } else {
                LogEvent::TryFailed { failure, attempts, elapsed }
            };
            LogRecord { level, uncaught, ..self.core.record(task, line, event) }
        });
        let kind = thrown.failure.kind;
        let ended = || SpanEvent::TryEnded { id: frame.id, failure: Some(kind) };
        self.core.log_at(task, line, ended, Level::SPANS);
        let held = frame.held.take();
        let last = frame.last_attempt();
        let ended = EndedTry { code: frame.code, last, record, thrown };
        match held {
            Some(buffer) => {
                let then = Continuation::EndTry(Box::new(ended));
                Committer::new(self.core).write_held(task, buffer, then)
            }
            None => self.catch(task, ended),
        }
    }

    /// Fails a `try` whose clauses have no value, before the first attempt.
    pub(crate) fn head_failed(
        &mut self,
        task: &mut Task,
        code: &Arc<TryCode>,
        thrown: Thrown,
    ) -> Flow {
        match thrown.retry {
            Retry::BrokenPipe => Flow::Throw(thrown),
            Retry::AsUsual | Retry::Deferred(_) | Retry::Never => {
                let thrown = Thrown { retry: Retry::AsUsual, ..thrown };
                let (started, is_limit) = (self.core.now(), code.is_limit);
                let last = Some(LastAttempt { number: 0, started, is_limit });
                if let Some(Frame { kind: FrameKind::Guard(guard), .. }) = task.frames.last_mut() {
                    guard.last = last;
                }
                self.catch(task, EndedTry { code: Arc::clone(code), last, record: None, thrown })
            }
        }
    }

    /// Ends a `try` by a failure, once the output of its last attempt is written.
    pub(crate) fn catch(&mut self, task: &mut Task, ended: EndedTry) -> Flow {
        let EndedTry { code, last, record, thrown } = ended;
        if let Some(record) = record {
            let at = self.core.now();
            self.core.request(Effect::Log(LogRecord { at, ..record }));
        }
        match code.catch {
            Some((address, line)) => {
                self.core.log_at(task, line, || LogEvent::Catch, Level::STRUCTURES);
                task.note_caught(&thrown.failure);
                self.core.forget_output(task);
                task.enter(FrameKind::Catch(thrown.failure, last));
                task.jump(address);
                Flow::Continue
            }
            None => Flow::Throw(thrown),
        }
    }
}
