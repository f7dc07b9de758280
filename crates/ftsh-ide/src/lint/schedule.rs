//! Bounds on the duration of the tries of a script.

use std::time::Duration;

use super::walk;
use ftsh_syntax::ast::{
    self, BackoffClause, Block, Command, CommandKind, Expr, ExprKind, Try, UnaryOperator,
};
use ftsh_syntax::backoff::Policy;
use ftsh_syntax::clauses::TryClauses;
use ftsh_syntax::parse::literal;
use ftsh_syntax::{Script, Span, parse};

/// Bounds of a `try`.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// Span of the head.
    pub span: Span,
    /// Line of the head.
    pub line: u32,
    /// Head as written.
    pub head: String,
    /// True for a `limit`.
    pub is_limit: bool,
    /// Number of enclosing tries.
    pub depth: usize,
    /// Shortest known limit of the enclosing tries, which also ends this `try`.
    pub around: Option<Duration>,
    /// Maximum number of attempts, if limited and known.
    pub times: Option<u64>,
    /// Time limit, if known.
    pub time: Option<Duration>,
    /// Value of `every`, if known.
    pub every: Option<Duration>,
    /// Value of `each`, if known.
    pub each: Option<Duration>,
    /// Policy of the delays, if known.
    pub policy: Option<Policy>,
    /// Minimum time until the `try` fails, if every attempt fails; `None` if known only at run
    /// time.
    pub least: Option<Duration>,
    /// Maximum time of the `try`, without the time that commands take to end after SIGTERM.
    ///
    /// `None` if there is no such limit, or if the limit is known only at run time.
    pub most: Option<Duration>,
}

impl Schedule {
    /// Returns the bounds of a `try` with this head and an unknown body.
    pub fn of_head(head: &str, policy: &Policy) -> Option<Self> {
        let script = parse("", &format!("{head}\nsuccess\nend")).ok()?;
        schedules(&script, policy).into_iter().next()
    }
}

/// Returns all tries of a script, in the order of the text. Tries without a policy use `policy`.
pub fn schedules(script: &Script, policy: &Policy) -> Vec<Schedule> {
    let mut builder =
        ScheduleBuilder { script, policy, depth: 0, around: None, schedules: Vec::new() };
    builder.block(&script.body);
    builder.schedules
}

/// Returns the policy of a `backoff` clause, if the script holds the policy literally.
pub(super) fn literal_policy(clause: &BackoffClause) -> Option<Policy> {
    let number =
        |(): &mut (), expr| literal::expr(expr).and_then(|it| literal::number(&it)).ok_or(Computed);
    let clauses = clause.clauses.try_map(&mut (), literal_length, number).ok()?;
    Policy::with(clause.kind, &clauses.jitter_from_percent()).ok()
}

fn literal_length((): &mut (), duration: &ast::Duration) -> Result<Duration, Computed> {
    duration.literal().ok_or(Computed)
}

/// Value known only at run time.
struct Computed;

struct ScheduleBuilder<'a> {
    script: &'a Script,
    policy: &'a Policy,
    depth: usize,
    around: Option<Duration>,
    schedules: Vec<Schedule>,
}

impl ScheduleBuilder<'_> {
    fn block(&mut self, block: &Block) {
        for command in &block.commands {
            let details = match &command.kind {
                CommandKind::Try(details) => Some(details).filter(|it| it.around.is_none()),
                _ => None,
            };
            let Some(details) = details else {
                let around = (self.depth, self.around);
                if matches!(command.kind, CommandKind::Function { .. }) {
                    // The calls of a function may be in other tries.
                    (self.depth, self.around) = (0, None);
                }
                for block in walk::blocks(command) {
                    self.block(block);
                }
                (self.depth, self.around) = around;
                continue;
            };
            self.schedules.push(self.schedule(command, details));
            let around = self.around;
            let limits = [&details.clauses.time, &details.clauses.each];
            let limits = limits.into_iter().flatten().filter_map(ast::Duration::literal);
            self.around = limits.chain(around).min();
            self.depth += 1;
            self.block(&details.body);
            (self.depth, self.around) = (self.depth - 1, around);
            for (_, after) in details.catch.iter().chain(&details.finally) {
                self.block(after);
            }
        }
    }

    fn schedule(&self, command: &Command, details: &Try) -> Schedule {
        let limits = self.limits(details);
        let source = &self.script.source;
        Schedule {
            span: command.span,
            line: source.line(command.span.start),
            head: source.text()[std::ops::Range::from(command.span)].trim().to_owned(),
            is_limit: details.is_limit,
            depth: self.depth,
            around: self.around,
            times: limits.as_ref().and_then(|it| it.times),
            time: limits.as_ref().and_then(|it| it.time),
            every: limits.as_ref().and_then(|it| it.every),
            each: limits.as_ref().and_then(|it| it.each),
            policy: limits.as_ref().map(|it| it.policy.clone()),
            least: self.least(details),
            most: self.most(details),
        }
    }

    /// Returns the limits of a `try`, if all of them are literal.
    fn limits(&self, details: &Try) -> Option<Limits> {
        let times = |(): &mut (), times| {
            literal::expr(times).and_then(|times| times.parse().ok()).ok_or(Computed)
        };
        // The memory of an attempt does not change the schedule.
        let size = |(): &mut (), _| Ok(());
        let policy = |(): &mut (), clause| literal_policy(clause).ok_or(Computed);
        let signal = |(): &mut (), _| Ok(());
        let clauses =
            details.clauses.try_map(&mut (), literal_length, times, size, policy, signal).ok()?;
        let TryClauses {
            time,
            times: _,
            every,
            each,
            stalled: _,
            memory: _,
            backoff,
            signal: _,
            atomic: _,
            same_input: _,
            no_leftovers: _,
        } = &clauses;
        Some(Limits {
            time: *time,
            times: clauses.attempts(),
            every: every.filter(|every| !every.is_zero()),
            each: *each,
            policy: backoff.as_ref().unwrap_or(self.policy).clone(),
        })
    }

    /// Returns the minimum time of a failing attempt.
    ///
    /// Programs can fail at once, and commands after the first one may not be reached.
    fn least_attempt(&self, body: &Block) -> Duration {
        let mut commands = body.commands.iter();
        let first = commands.find(|it| !matches!(it.kind, CommandKind::Comment { .. }));
        let Some(CommandKind::Try(details)) = first.map(|it| &it.kind) else {
            return Duration::ZERO;
        };
        if details.catch.is_some() {
            return Duration::ZERO;
        }
        self.least(details).unwrap_or_default()
    }

    /// Returns the minimum time until the `try` fails. The budget of a channel may end the `try` at
    /// the first failure.
    fn least(&self, details: &Try) -> Option<Duration> {
        let limits = self.limits(details).filter(|_| details.through.is_none())?;
        limits.least(self.least_attempt(&details.body))
    }

    fn most(&self, details: &Try) -> Option<Duration> {
        let limits = self.limits(details);
        let own = match limits {
            Some(limits) if details.through.is_none() => {
                limits.most(self.most_of_block(&details.body))?
            }
            // The time limit suffices, and is the only bound on the wait for a channel.
            _ => details.clauses.time.as_ref()?.literal()?,
        };
        let mut after = details.catch.iter().chain(&details.finally);
        after.try_fold(own, |sum, (_, block)| Some(sum.saturating_add(self.most_of_block(block)?)))
    }

    /// Returns the maximum time of commands, if bounded.
    fn most_of_block(&self, block: &Block) -> Option<Duration> {
        block.commands.iter().try_fold(Duration::ZERO, |sum, command| {
            let most = match &command.kind {
                CommandKind::Comment { .. } | CommandKind::Jump(_) => Duration::ZERO,
                CommandKind::Assign { .. }
                | CommandKind::Return(_)
                | CommandKind::Shift(_)
                | CommandKind::List { .. }
                | CommandKind::Channel(_)
                | CommandKind::Use(_)
                | CommandKind::Args(_)
                    if computes_at_once(command) =>
                {
                    Duration::ZERO
                }
                CommandKind::Case(case) if computes_at_once(command) => {
                    let most: Option<Vec<_>> =
                        case.blocks().map(|body| self.most_of_block(body)).collect();
                    most?.into_iter().max().unwrap_or_default()
                }
                CommandKind::If { arms, otherwise } if computes_at_once(command) => {
                    let blocks = arms.iter().map(|(_, body)| body).chain(otherwise);
                    let most: Option<Vec<_>> =
                        blocks.map(|body| self.most_of_block(body)).collect();
                    most?.into_iter().max().unwrap_or_default()
                }
                CommandKind::Try(details) => self.most(details)?,
                CommandKind::Pipeline(pipeline) => {
                    // These commands end at once.
                    let name = walk::single(pipeline).and_then(walk::name)?;
                    let simple = walk::single(pipeline)?;
                    let ends =
                        matches!(&*name, "failure" | "giveup" | "defer" | "success" | "exit");
                    if ends && simple.redirects.is_empty() { Duration::ZERO } else { return None }
                }
                CommandKind::Assign { .. }
                | CommandKind::Return(_)
                | CommandKind::Shift(_)
                | CommandKind::List { .. }
                | CommandKind::Channel(_)
                | CommandKind::Use(_)
                | CommandKind::Args(_)
                | CommandKind::If { .. }
                | CommandKind::Case(_)
                | CommandKind::While { .. }
                | CommandKind::In { .. }
                | CommandKind::With { .. }
                | CommandKind::For(_)
                | CommandKind::Function { .. } => return None,
            };
            Some(sum.saturating_add(most))
        })
    }
}

/// Returns true if the expressions of a command run no commands and test no files.
fn computes_at_once(command: &Command) -> bool {
    fn computes(expr: &Expr) -> bool {
        let asks = match &expr.kind {
            ExprKind::Asked { .. } | ExprKind::Call { .. } | ExprKind::Collected(_) => true,
            ExprKind::Unary { operator, .. } => match operator {
                UnaryOperator::Test(_) => true,
                UnaryOperator::Not => false,
            },
            ExprKind::Word(_)
            | ExprKind::Group(_)
            | ExprKind::Binary { .. }
            | ExprKind::Range { .. } => false,
        };
        !asks && walk::operands(expr).into_iter().all(computes)
    }
    command.redirects.is_empty() && walk::expressions(command).into_iter().all(computes)
}

/// Literal limits of a `try`.
struct Limits {
    time: Option<Duration>,
    times: Option<u64>,
    every: Option<Duration>,
    each: Option<Duration>,
    policy: Policy,
}

/// Number of delays computed individually.
///
/// After this number, all policies have reached their caps, or never will in practice.
const MAX_DELAYS: u64 = 4096;

impl Limits {
    /// Returns the minimum time until the `try` fails, for attempts of at least `attempt`.
    fn least(&self, attempt: Duration) -> Option<Duration> {
        let repeats = self.times.map(|times| times.saturating_sub(1));
        if let Some(every) = self.every {
            let step = every.max(attempt);
            let by_times = repeats.map(|repeats| multiply(step, repeats).saturating_add(attempt));
            // The last attempt begins before the limit.
            let by_time = self.time.map(|time| {
                let steps = time.as_nanos().saturating_sub(1) / step.as_nanos().max(1);
                multiply(step, steps as u64).saturating_add(attempt).min(time)
            });
            return [by_times, by_time].into_iter().flatten().min();
        }
        let mut by_times = None;
        let mut by_time = self.time;
        // Earliest and latest end of an attempt, if attempts take no longer.
        let (mut earliest, mut latest) = (attempt, attempt);
        for (count, bound) in (0..MAX_DELAYS).zip(self.policy.bounds()) {
            if repeats == Some(count) {
                by_times = Some(earliest);
                break;
            }
            if let Some(time) = self.time {
                // The next delay passes the limit, and the last attempt may begin at once.
                let from = earliest.max(time.saturating_sub(bound.most));
                if from <= latest {
                    by_time = by_time.min(Some(from.saturating_add(attempt)));
                }
                if earliest >= time {
                    break;
                }
            }
            let step =
                |moment: Duration, delay| moment.saturating_add(delay).saturating_add(attempt);
            (earliest, latest) = (step(earliest, bound.least), step(latest, bound.most));
            if count + 1 == MAX_DELAYS {
                let rest = repeats.map(|repeats| repeats.saturating_sub(MAX_DELAYS));
                let each = bound.least.saturating_add(attempt);
                by_times = rest.map(|rest| earliest.saturating_add(multiply(each, rest)));
                by_time = by_time.min(self.time.map(|time| time.saturating_sub(bound.most)));
            }
        }
        [by_times, by_time.map(|least| least.min(self.time.unwrap_or(least)))]
            .into_iter()
            .flatten()
            .min()
    }

    /// Returns the maximum time, for attempts of at most `attempt`.
    fn most(&self, attempt: Option<Duration>) -> Option<Duration> {
        let attempt = [self.each, attempt].into_iter().flatten().min();
        let by_times = self.times.zip(attempt).map(|(times, attempt)| {
            let repeats = times.saturating_sub(1);
            let delays = match self.every {
                Some(every) => multiply(every.saturating_sub(attempt), repeats),
                None => self.longest_delays(repeats),
            };
            multiply(attempt, times).saturating_add(delays)
        });
        [self.time, by_times].into_iter().flatten().min()
    }

    fn longest_delays(&self, count: u64) -> Duration {
        let mut sum = Duration::ZERO;
        let mut last = Duration::ZERO;
        for bound in self.policy.bounds().take(count.min(MAX_DELAYS) as usize) {
            last = bound.most;
            sum = sum.saturating_add(last);
        }
        sum.saturating_add(multiply(last, count.saturating_sub(MAX_DELAYS)))
    }
}

fn multiply(length: Duration, times: u64) -> Duration {
    let nanos = length.as_nanos().saturating_mul(u128::from(times));
    let seconds = u64::try_from(nanos / 1_000_000_000);
    seconds.map_or(Duration::MAX, |seconds| Duration::new(seconds, (nanos % 1_000_000_000) as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the minimum and the maximum of every `try`.
    fn of(text: &str) -> Vec<(Option<f64>, Option<f64>)> {
        let script = parse("t", text).expect("a right script");
        let policy = "exponential from 1 s to 10 s".parse().expect("a policy");
        let seconds = |time: Option<Duration>| time.map(|it| it.as_secs_f64());
        schedules(&script, &policy).iter().map(|it| (seconds(it.least), seconds(it.most))).collect()
    }

    #[test]
    fn a_number_of_times_bounds_the_delays_but_not_the_commands() {
        assert_eq!(of("try 4 times\n  a\nend"), [(Some(7.0), None)]);
        assert_eq!(of("try 4 times each 10 seconds\n  a\nend"), [(Some(7.0), Some(47.0))]);
        assert_eq!(
            of("try 4 times every 20 seconds each 5 seconds\n  a\nend"),
            [(Some(60.0), Some(65.0))]
        );
    }

    #[test]
    fn a_limit_of_time_bounds_all() {
        // Attempts at 0, 1, 3, 7, 15, 25 s; the next delay would pass the limit.
        assert_eq!(of("try for 30 seconds\n  a\nend"), [(Some(25.0), Some(30.0))]);
        assert_eq!(of("try for 1 minute backoff full\n  a\nend"), [(Some(0.0), Some(60.0))]);
        assert_eq!(of("try for 1 minute every 25 seconds\n  a\nend"), [(Some(50.0), Some(60.0))]);
        assert_eq!(of("try for 1 hour or 2 times\n  a\nend"), [(Some(1.0), Some(3600.0))]);
    }

    #[test]
    fn tries_inside_tries_add_up() {
        let text = "try 3 times\n  try 2 times each 1 second\n    a\n  end\nend";
        // The inner `try` takes 1 s of delay three times, with 1 s and 2 s between.
        assert_eq!(of(text), [(Some(6.0), Some(12.0)), (Some(1.0), Some(3.0))]);
        let text = "try\n  try 2 times each 1 second\n    a\n  end\n  b\nend";
        assert_eq!(of(text)[0], (Some(1.0), None));
        let text = "try 2 times\n  try 2 times each 1 second\n    a\n  catch\n    b\n  end\nend";
        assert_eq!(of(text), [(Some(1.0), None), (Some(1.0), None)]);
    }

    #[test]
    fn limits_around_are_known() {
        let around = |text: &str| -> Vec<_> {
            let script = parse("t", text).expect("a right script");
            let around = schedules(&script, &Policy::default()).into_iter().map(|it| it.around);
            around.map(|it| it.map(|it| it.as_secs())).collect()
        };
        let inner = "try for 1 hour; a; end";
        assert_eq!(around(&format!("try for 1 minute; {inner}; end")), [None, Some(60)]);
        assert_eq!(
            around(&format!(
                "try for 1 minute each 5 s; forall x in a b; {inner}; end; catch; {inner}; end"
            )),
            [None, Some(5), None]
        );
        assert_eq!(
            around(&format!(
                "try for 9 s; try 3 times; {inner}; end; function f; {inner}; end; end"
            )),
            [None, Some(9), Some(9), None]
        );
        assert_eq!(around(&format!("try for $n s; {inner}; end")), [None, None]);
    }

    #[test]
    fn what_is_computed_is_not_guessed() {
        assert_eq!(of("try $n times\n  a\nend"), [(None, None)]);
        assert_eq!(of("try for 1 hour or $n times\n  a\nend"), [(None, Some(3600.0))]);
    }

    #[test]
    fn a_channel_makes_one_wait_and_may_end_it_early() {
        let of = |try_: &str| of(&format!("channel k budget 10%\n{try_} through k\n  a\nend"))[0];
        assert_eq!(of("try 3 times each 1 second"), (None, None));
        assert_eq!(of("try for 1 minute"), (None, Some(60.0)));
    }

    #[test]
    fn many_attempts_take_no_time_to_count() {
        let most = of("try 9000000000000000000 times each 1 second\n  a\nend")[0].1;
        assert_eq!(most, Some(Duration::MAX.as_secs_f64()));
        assert_eq!(of("try for 1 day backoff fixed from 1 ms\n  a\nend")[0].1, Some(86_400.0));
    }
}
