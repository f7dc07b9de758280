//! How long the tries of a script can take.

use std::time::Duration;

use super::walk;
use ftsh_syntax::ast::{
    self, BackoffClause, Block, Command, CommandKind, Expr, ExprKind, Try, UnaryOperator,
};
use ftsh_syntax::backoff::Policy;
use ftsh_syntax::clauses::TryClauses;
use ftsh_syntax::parse::literal;
use ftsh_syntax::{Script, Span, parse};

/// A `try`, and how long it can take.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// Where its head stands.
    pub span: Span,
    /// The line it stands in.
    pub line: u32,
    /// Its head, as written.
    pub head: String,
    /// How many tries are around it.
    pub depth: usize,
    /// The shortest limit of those, as far as they are known: it ends this one as well.
    pub around: Option<Duration>,
    /// The most attempts it makes, if that is limited and known.
    pub times: Option<u64>,
    /// Its limit of time, if it has one that is known.
    pub time: Option<Duration>,
    /// What `every` says, if that is known.
    pub every: Option<Duration>,
    /// What `each` says, if that is known.
    pub each: Option<Duration>,
    /// The delays, if they are known.
    pub policy: Option<Policy>,
    /// The least that it takes until it gives up, which it does if every attempt fails and is worth
    /// another; nothing if only running the script can tell.
    pub least: Option<Duration>,
    /// The most that it takes, whatever its commands do, but for the time that they take to end
    /// when they are told to; nothing if there is no such limit, or only running the script can
    /// tell.
    pub most: Option<Duration>,
}

impl Schedule {
    /// What the script says of itself is unknown, but for this head of a `try`.
    pub fn of_head(head: &str, policy: &Policy) -> Option<Self> {
        let script = parse("", &format!("{head}\nsuccess\nend")).ok()?;
        schedules(&script, policy).into_iter().next()
    }
}

/// All tries of a script, in the order of the text. Those that name no policy use `policy`.
pub fn schedules(script: &Script, policy: &Policy) -> Vec<Schedule> {
    let mut walk = Walk { script, policy, depth: 0, around: None, schedules: Vec::new() };
    walk.block(&script.body);
    walk.schedules
}

/// The policy of a `backoff` clause, if the script says it literally.
pub(super) fn literal_policy(clause: &BackoffClause) -> Option<Policy> {
    let number =
        |(): &mut (), expr| literal::expr(expr).and_then(|it| literal::number(&it)).ok_or(Computed);
    let clauses = clause.clauses.try_map(&mut (), literal_length, number).ok()?;
    Policy::with(clause.kind, &clauses.of_percent()).ok()
}

fn literal_length((): &mut (), duration: &ast::Duration) -> Result<Duration, Computed> {
    duration.literal().ok_or(Computed)
}

/// Only running the script can tell.
struct Computed;

struct Walk<'a> {
    script: &'a Script,
    policy: &'a Policy,
    depth: usize,
    around: Option<Duration>,
    schedules: Vec<Schedule>,
}

impl Walk<'_> {
    fn block(&mut self, block: &Block) {
        for command in &block.commands {
            let CommandKind::Try(details) = &command.kind else {
                let around = (self.depth, self.around);
                if matches!(command.kind, CommandKind::Function { .. }) {
                    // It is called from elsewhere.
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

    /// What a `try` says about itself, if all of it is literal.
    fn limits(&self, details: &Try) -> Option<Limits> {
        let times = |(): &mut (), times| {
            literal::expr(times).and_then(|times| times.parse().ok()).ok_or(Computed)
        };
        let policy = |(): &mut (), clause| literal_policy(clause).ok_or(Computed);
        let clauses = details.clauses.try_map(&mut (), literal_length, times, policy).ok()?;
        let TryClauses { time, every, each, backoff, .. } = &clauses;
        Some(Limits {
            time: *time,
            times: clauses.attempts(),
            every: every.filter(|every| !every.is_zero()),
            each: *each,
            policy: backoff.as_ref().unwrap_or(self.policy).clone(),
        })
    }

    /// The least that a failing attempt takes: programs can fail at once, and what isn't the first
    /// command may not be reached.
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

    /// A channel's budget may end it at its first failure.
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
            // The limit of time is enough to know, and all that bounds the wait for a channel.
            _ => details.clauses.time.as_ref()?.literal()?,
        };
        let mut after = details.catch.iter().chain(&details.finally);
        after.try_fold(own, |sum, (_, block)| Some(sum.saturating_add(self.most_of_block(block)?)))
    }

    /// The most that commands take, if anything limits them.
    fn most_of_block(&self, block: &Block) -> Option<Duration> {
        block.commands.iter().try_fold(Duration::ZERO, |sum, command| {
            let most = match &command.kind {
                CommandKind::Comment { .. } | CommandKind::Jump(_) => Duration::ZERO,
                CommandKind::Assign { .. }
                | CommandKind::Return(_)
                | CommandKind::Shift(_)
                | CommandKind::Channel(_)
                    if computes_at_once(command) =>
                {
                    Duration::ZERO
                }
                CommandKind::If { arms, otherwise } if computes_at_once(command) => {
                    let blocks = arms.iter().map(|(_, body)| body).chain(otherwise);
                    let most: Option<Vec<_>> =
                        blocks.map(|body| self.most_of_block(body)).collect();
                    most?.into_iter().max().unwrap_or_default()
                }
                CommandKind::Try(details) => self.most(details)?,
                CommandKind::Pipeline(pipeline) => {
                    // These end at once.
                    let name = walk::single(pipeline).and_then(walk::name)?;
                    let simple = walk::single(pipeline)?;
                    let ends =
                        matches!(&*name, "failure" | "giveup" | "defer" | "success" | "exit");
                    if ends && simple.redirects.is_empty() { Duration::ZERO } else { return None }
                }
                CommandKind::Assign { .. }
                | CommandKind::Return(_)
                | CommandKind::Shift(_)
                | CommandKind::Channel(_)
                | CommandKind::If { .. }
                | CommandKind::While { .. }
                | CommandKind::For(_)
                | CommandKind::Function { .. } => return None,
            };
            Some(sum.saturating_add(most))
        })
    }
}

/// Whether the expressions of a command ask neither commands nor files.
fn computes_at_once(command: &Command) -> bool {
    fn computes(expr: &Expr) -> bool {
        let asks = match &expr.kind {
            ExprKind::Succeeds(_) | ExprKind::Call { .. } => true,
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

/// What a `try` says about itself.
struct Limits {
    time: Option<Duration>,
    times: Option<u64>,
    every: Option<Duration>,
    each: Option<Duration>,
    policy: Policy,
}

/// So many delays are looked at one by one. After them all policies have reached their caps, or never
/// will in anybody's life.
const MOST_DELAYS: u64 = 4096;

impl Limits {
    /// The least until it gives up if every attempt takes at least `attempt`.
    fn least(&self, attempt: Duration) -> Option<Duration> {
        let repeats = self.times.map(|times| times.saturating_sub(1));
        if let Some(every) = self.every {
            let step = every.max(attempt);
            let by_times = repeats.map(|repeats| multiply(step, repeats).saturating_add(attempt));
            // The last attempt that begins before the limit.
            let by_time = self.time.map(|time| {
                let steps = time.as_nanos().saturating_sub(1) / step.as_nanos().max(1);
                multiply(step, steps as u64).saturating_add(attempt).min(time)
            });
            return [by_times, by_time].into_iter().flatten().min();
        }
        let mut by_times = None;
        let mut by_time = self.time;
        // When an attempt fails at the earliest, and at the latest if it takes no longer.
        let (mut earliest, mut latest) = (attempt, attempt);
        for (count, bound) in (0..MOST_DELAYS).zip(self.policy.bounds()) {
            if repeats == Some(count) {
                by_times = Some(earliest);
                break;
            }
            if let Some(time) = self.time {
                // The next delay passes the limit, and the last attempt may come at once.
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
            if count + 1 == MOST_DELAYS {
                let rest = repeats.map(|repeats| repeats.saturating_sub(MOST_DELAYS));
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

    /// The most, if an attempt takes at most `attempt`.
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
        for bound in self.policy.bounds().take(count.min(MOST_DELAYS) as usize) {
            last = bound.most;
            sum = sum.saturating_add(last);
        }
        sum.saturating_add(multiply(last, count.saturating_sub(MOST_DELAYS)))
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

    /// The least and the most of every try.
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
        // Three times a second of delay in the inner one, and 1 s and 2 s between.
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
