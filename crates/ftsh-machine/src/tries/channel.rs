//! Channels: admission of attempts, and return of their passes.
//!
//! An admitted attempt has a pass, which belongs to the attempt's scope. The pass is returned once,
//! when the scope ends: nothing of the attempt is left, or all of it has succeeded.

use std::sync::Arc;
use std::time::Duration;

use super::TryRunner;
use crate::amounts::{length, not_zero, number};
use crate::attempts::{Entering, TryFrame, TryPhase};
use crate::channels::{Admission, Breaker, Claim, Passed, Rate, Rules};
use crate::core::{ChannelPass, Flow};
use crate::effect::{Effect, Entry, PassId};
use crate::endings::{Logged, Retry, Thrown};
use crate::event::{Refusal, Reply};
use crate::outcome::{Failure, FailureKind, Human};
use crate::program::ChannelCode;
use crate::record::{Level, LogEvent};
use crate::tasks::{Task, TaskState, Tasks};
use crate::time::Time;
use crate::values::{Suspend, Value};
use ftsh_syntax::clauses::ChannelClauses;
use ftsh_syntax::slug::Slug;

/// Exit status of a temporary failure, from sysexits.h.
const EX_TEMPFAIL: i32 = 75;

impl TryRunner<'_> {
    fn log_entering(&mut self, task: &mut Task, event: impl FnOnce(&TryFrame, Time) -> LogEvent) {
        let now = self.core.now();
        let Some(frame) = task.top_try() else { return };
        let (line, event) = (frame.code.line, event(frame, now));
        let level = event.level();
        self.core.log_at(task, line, || event, level);
    }

    /// Executes `channel`: reads the values of the rules from the stack.
    pub(crate) fn declare(&mut self, task: &mut Task, code: &ChannelCode) -> Result<(), Suspend> {
        task.reverse_top(code.values());
        let length = |task: &mut Task, scale: &_| length(task, *scale);
        let rules = code.rules.try_map(task, length, |task, ()| task.pop())?;
        let ChannelClauses { at_most, rate, budget, breaker } = rules;
        let rate = rate.map(|(many, per)| {
            not_zero(per)?;
            Ok::<_, Suspend>(Rate { count: count(&many, "a rate of")?, per })
        });
        let breaker = breaker.map(|(many, open)| {
            not_zero(open)?;
            Ok::<_, Suspend>(Breaker { failures: count(&many, "a breaker of")?, open })
        });
        let rules = Rules {
            places: at_most.map(|many| count(&many, "at most")).transpose()?,
            rate: rate.transpose()?,
            budget: budget.as_ref().map(percentage).transpose()?,
            breaker: breaker.transpose()?,
        };
        self.definitions.add_channel(Arc::clone(&code.name), Some(Arc::new(rules)));
        Ok(())
    }

    /// Begins the next attempt. The attempt first enters the channel of its `try`, unless an
    /// enclosing attempt already occupies the channel.
    pub(crate) fn begin_attempt(&mut self, task: &mut Task) -> Flow {
        let Some(frame) = task.top_try() else { return Flow::broken(task, TryFrame::MISSING) };
        let (line, deferred, attempt) = (frame.code.line, frame.deferred, frame.attempt + 1);
        let Some(channel) = frame.code.through.clone() else {
            return self.make_attempt(task, None);
        };
        // The attempt around returns its pass only after this one: a wait could last forever.
        if self.core.tasks().is_inside(task, |frame| {
            self.core.scopes().pass(frame.scope).is_some_and(|pass| pass.channel == channel)
        }) || self.core.remote().is_inside(&channel)
        {
            return self.make_attempt(task, None);
        }
        let Ok(rules) = self.definitions.rules(&channel).map(Arc::clone) else {
            return Flow::broken(task, "a channel that is declared no more");
        };
        let is_retried = |frame: &TryFrame| frame.phase == TryPhase::Attempt && frame.attempt > 1;
        let claim = match attempt {
            // A deferred attempt has already been counted.
            _ if deferred => Claim::Inner,
            2.. => Claim::Retry,
            // Repeated by a retry around, this attempt is no new request that earns budget.
            _ if self.core.tasks().is_inside(task, is_retried)
                || self.core.remote().is_retried() =>
            {
                Claim::Inner
            }
            _ => Claim::First,
        };
        let operation = self.core.new_operation(task);
        let pass = PassId(self.core.next_id());
        let entry = Entry { operation, pass, channel: Arc::clone(&channel), rules, claim, line };
        self.core.request(Effect::Enter(Box::new(entry)));
        let Some(frame) = task.top_try() else { return Flow::broken(task, TryFrame::MISSING) };
        frame.phase = TryPhase::Entering;
        task.scope = frame.outer_scope;
        task.since = self.core.now();
        Flow::Wait(TaskState::Entering(Entering { operation, pass, channel, is_queued: false }))
    }

    /// Handles the decision of a channel about an attempt.
    pub(crate) fn entered(&mut self, task: &mut Task, result: Result<Reply, Refusal>) -> Flow {
        let TaskState::Entering(entering) = std::mem::replace(&mut task.state, TaskState::Ready)
        else {
            return Flow::broken(task, "an admission that nothing waits for");
        };
        let Entering { pass, channel, is_queued, .. } = entering;
        match result {
            Ok(Reply::Admission(Admission::Admitted)) => {
                if is_queued {
                    let (since, channel) = (task.since, Arc::clone(&channel));
                    self.log_entering(task, |frame, now| LogEvent::Entered {
                        channel,
                        attempt: frame.next_attempt(),
                        waited: now - since,
                    });
                }
                self.make_attempt(
                    task,
                    Some(ChannelPass { id: pass, channel, passed: Passed::Neither }),
                )
            }
            Ok(Reply::Admission(Admission::NoBudget)) => {
                let message = format!("the channel `{channel}` has no budget for another attempt");
                let failure = refused(task, FailureKind::Refused, EX_TEMPFAIL, message);
                self.without_budget(task, failure)
            }
            Ok(Reply::Admission(Admission::Broken(time))) => {
                let until = match time {
                    Duration::ZERO => "until a probe succeeds".to_owned(),
                    time => format!("for another {}", Human(time)),
                };
                let message = format!(
                    "the channel `{channel}` refuses attempts {until}: too many have failed"
                );
                self.not_made(task, FailureKind::Refused, EX_TEMPFAIL, Refusal::new(message))
            }
            Err(refusal) => self.not_made(task, FailureKind::Builtin, 1, refusal),
            Ok(_) => Flow::broken(task, "no admission"),
        }
    }

    /// Fails an attempt that was refused.
    fn not_made(&mut self, task: &mut Task, kind: FailureKind, code: i32, why: Refusal) -> Flow {
        self.begin_counting(task);
        let mut failure = refused(task, kind, code, why.message);
        Arc::make_mut(&mut failure).errno = why.errno;
        self.core.log_failure(task, &failure, Level::FAILURES, false);
        let thrown =
            Thrown { failure, retry: Retry::AsUsual, logged: Logged::Failure, answers: true };
        self.attempt_failed(task, thrown)
    }

    /// Handles an attempt that has to wait in a channel.
    pub(crate) fn queued(&mut self, task: &mut Task) {
        if let TaskState::Entering(entering) = &mut task.state {
            entering.is_queued = true;
            let channel = Arc::clone(&entering.channel);
            self.log_entering(task, |frame, now| LogEvent::Queued {
                channel,
                attempt: frame.next_attempt(),
                time: frame.deadline.remaining(now),
            });
        }
    }
}

impl Tasks {
    /// Returns true if a predicate holds for a `try` around the innermost one, in the task or its
    /// parents.
    fn is_inside(&self, task: &Task, so: impl Fn(&TryFrame) -> bool) -> bool {
        let is = |task: &Task, skip| task.tries().skip(skip).any(&so);
        let up = |task: &&Task| self.get(task.parent?.0);
        is(task, 1) || std::iter::successors(up(&task), up).any(|task| is(task, 0))
    }
}

/// Creates the failure of a refused `try` or attempt.
pub(crate) fn refused(
    task: &mut Task,
    kind: FailureKind,
    code: i32,
    message: String,
) -> Arc<Failure> {
    let mut failure = task.thrown(kind, code, message, "").failure;
    if let Some(frame) = task.top_try() {
        let refused = Arc::make_mut(&mut failure);
        refused.line = frame.code.line;
        // A previous refusal explains nothing; its own cause does.
        let cause = frame.failure.as_ref().and_then(|last| match last.kind {
            FailureKind::Refused => last.earlier.as_ref(),
            _ => Some(last),
        });
        if let Some(cause) = cause {
            refused.earlier = Some(Arc::clone(cause));
        }
    }
    failure
}

fn count(value: &Value, what: &str) -> Result<u64, Suspend> {
    let count = value.integer().map_err(Suspend::from)?;
    match u64::try_from(count) {
        Ok(count @ 1..) => Ok(count),
        _ => Err(Suspend::expression(
            Slug::OutOfRange,
            format!("`{what} {count}` is too small: the minimum is 1"),
        )),
    }
}

fn percentage(value: &Value) -> Result<f64, Suspend> {
    let number = number(value)?;
    if number > 0.0 && number <= 100.0 {
        return Ok(number);
    }
    Err(Suspend::expression(
        Slug::OutOfRange,
        format!("a budget is more than 0% and at most 100%, not {number}%"),
    ))
}
