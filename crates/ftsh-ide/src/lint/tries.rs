//! Lint of contradictory limits.

use std::fmt::Write;
use std::time::Duration;

use super::schedule::literal_policy;
use super::{Warning, walk};
use ftsh_syntax::Script;
use ftsh_syntax::ast::{self, Block, Command, CommandKind, Expr, Try};
use ftsh_syntax::backoff::Policy;
use ftsh_syntax::duration::Exact;
use ftsh_syntax::hint::hint;
use ftsh_syntax::parse::literal;
use ftsh_syntax::slug::Slug;
use ftsh_syntax::span::{Source, Span};

pub(super) fn check(script: &Script, policy: &Policy) -> Vec<Warning> {
    let mut check = LimitCheck {
        source: &script.source,
        policy,
        deferring: deferring(script),
        around: Vec::new(),
        warnings: Vec::new(),
    };
    check.block(&script.body);
    check.warnings
}

struct LimitCheck<'a> {
    source: &'a Source,
    policy: &'a Policy,
    /// `defer`, and the functions that may call `defer`.
    deferring: Vec<&'a str>,
    /// Enclosing tries, the outermost first.
    around: Vec<EnclosingTry<'a>>,
    warnings: Vec<Warning>,
}

struct EnclosingTry<'a> {
    span: Span,
    limits: &'a Try,
}

/// Maximum number of attempts of a `try`.
enum MaxAttempts {
    Exactly(u64),
    Computed(String),
    /// Unbounded within the time limit.
    Unbounded,
}

/// Time limit with its span.
struct TimeLimit {
    span: Span,
    length: Duration,
}

impl<'a> LimitCheck<'a> {
    fn block(&mut self, block: &'a Block) {
        for command in &block.commands {
            match &command.kind {
                CommandKind::Try(details) => self.try_block(command, details),
                CommandKind::Function { body, .. } => {
                    // The calls of a function may be in other tries.
                    let around = std::mem::take(&mut self.around);
                    self.block(body);
                    self.around = around;
                }
                CommandKind::Comment { .. }
                | CommandKind::Pipeline(_)
                | CommandKind::Assign { .. }
                | CommandKind::If { .. }
                | CommandKind::Case(_)
                | CommandKind::While { .. }
                | CommandKind::In { .. }
                | CommandKind::With { .. }
                | CommandKind::For(_)
                | CommandKind::Return(_)
                | CommandKind::Shift(_)
                | CommandKind::List { .. }
                | CommandKind::Jump(_)
                | CommandKind::Channel(_)
                | CommandKind::Use(_)
                | CommandKind::Args(_) => {
                    for block in walk::blocks(command) {
                        self.block(block);
                    }
                }
            }
        }
    }

    fn try_block(&mut self, command: &'a Command, details: &'a Try) {
        let span = command.span;
        self.no_limit(command, details);
        self.multiplied(span, details);
        self.longer(details);
        self.too_short(details);
        self.beside_a_policy(details);
        self.around.push(EnclosingTry { span, limits: details });
        self.deferred(details);
        self.block(&details.body);
        self.around.pop();
        for (_, after) in details.catch.iter().chain(&details.finally) {
            self.block(after);
        }
    }

    /// Warns of a deferral without a time limit, because deferred attempts do not count as
    /// attempts.
    fn deferred(&mut self, details: &Try) {
        // `defer` inside a `limit` concerns the `try` around the `limit`.
        let has_time = |limits: &Try| !limits.is_limit && limits.clauses.time.is_some();
        if details.is_limit || self.around.iter().any(|around| has_time(around.limits)) {
            return;
        }
        if let Some(span) = says(&details.body, &self.deferring) {
            let message = "a `try` without a time limit may be deferred forever";
            self.warnings.push(
                Warning::new(Slug::UnlimitedDeferral, span, message)
                    .hint(hint!("add a time limit, like `try for 1 hour`")),
            );
        }
    }

    /// Warns of a `try` with one attempt whose clauses need more attempts, or that has no effect.
    fn no_limit(&mut self, command: &Command, details: &Try) {
        let clauses = &details.clauses;
        if let (Some(condition), Some(times)) = (&details.condition, &clauses.times)
            && literal::expr(times).is_some_and(|times| times == "1")
        {
            let message = "a `try` with one attempt asks for no other one: `while` has no effect";
            self.warnings.push(
                Warning::new(Slug::SingleAttempt, condition.span, message)
                    .hint(hint!("allow more attempts, like `try 3 times`")),
            );
        }
        if clauses.time.is_some() || clauses.times.is_some() {
            return;
        }
        let idle = if clauses.every.is_some() {
            "`every`"
        } else if clauses.backoff.is_some() {
            "`backoff`"
        } else if details.condition.is_some() {
            "`while`"
        } else {
            let adds = details.catch.is_some()
                || details.finally.is_some()
                || clauses.changes_one_attempt()
                || details.through.is_some()
                || !command.redirects.is_empty()
                || says(&details.body, &["giveup", "defer"]).is_some();
            if !adds && let Some(outer) = self.around.last() {
                let message = "without a limit this `try` makes one attempt, which changes nothing";
                self.warnings.push(
                    Warning::new(Slug::SingleAttempt, command.span, message)
                        .related(outer.span, "this `try` makes all attempts")
                        .hint(hint!("add a limit, like `try 3 times`")),
                );
            }
            return;
        };
        let message = format!("without a limit this `try` makes one attempt: {idle} has no effect");
        self.warnings.push(
            Warning::new(Slug::SingleAttempt, command.span, message)
                .hint(hint!("add a limit, like `try for 1 hour`")),
        );
    }

    /// Warns of nested tries whose numbers of attempts multiply.
    fn multiplied(&mut self, span: Span, details: &Try) {
        let Some(inner) = self.attempts(details) else { return };
        // The outer `try` makes another attempt only if the `catch` passes the failure on.
        if details.catch.as_ref().is_some_and(|(_, catch)| !passes_on(catch)) {
            return;
        }
        let repeated: Vec<_> = self
            .around
            .iter()
            .filter_map(|around| Some((around, self.attempts(around.limits)?)))
            .collect();
        let Some((outer, attempts)) = repeated.last() else { return };
        // With time limits at every level, the time bounds the attempts.
        if details.clauses.time.is_some()
            && repeated.iter().all(|(it, _)| it.limits.clauses.time.is_some())
        {
            return;
        }
        let label = format!("{} …", amount(details, &inner));
        let (outer, note) =
            (outer.span, format!("… in each of {}", amount(outer.limits, attempts)));
        let factors: Vec<_> = repeated.into_iter().map(|(_, it)| it).chain([inner]).collect();
        self.warnings.push(
            Warning::new(Slug::MultipliedAttempts, span, multiply(&factors))
                .label(label)
                .related(outer, note)
                .hint(hint!("repeat in one of the two only, or add a time limit to both")),
        );
    }

    /// Returns the number of attempts, unless there is just one.
    fn attempts(&self, details: &Try) -> Option<MaxAttempts> {
        let Some(times) = &details.clauses.times else {
            return details.clauses.time.is_some().then_some(MaxAttempts::Unbounded);
        };
        match literal::expr(times).map(|text| text.parse()) {
            Some(Ok(1)) => None,
            Some(Ok(times)) => Some(MaxAttempts::Exactly(times)),
            _ => Some(MaxAttempts::Computed(self.text(times))),
        }
    }

    /// Warns of a limit longer than an outer limit.
    fn longer(&mut self, details: &Try) {
        let time = self.limit(details.clauses.time.as_ref());
        let each = self.limit(details.clauses.each.as_ref());
        let mut around: Vec<(TimeLimit, &str)> = Vec::new();
        for outer in &self.around {
            let limits = [
                (&outer.limits.clauses.time, "but this `try` ends after"),
                (&outer.limits.clauses.each, "but each attempt of this `try` ends after"),
            ];
            for (duration, note) in limits {
                around.extend(self.limit(duration.as_ref()).map(|limit| (limit, note)));
            }
        }
        let own = time.as_ref().map(|time| TimeLimit { ..*time });
        let around_each = own.map(|own| (own, "but the whole `try` ends after"));
        let mut found = Vec::new();
        for (inner, outer) in
            [(time, shortest(around.iter())), (each, shortest(around.iter().chain(&around_each)))]
        {
            let (Some(inner), Some((outer, note))) = (inner, outer) else { continue };
            if inner.length > outer.length {
                let message = "this limit is longer than an outer limit";
                let note = format!("{note} {}", Exact(outer.length));
                found.push(
                    Warning::new(Slug::LongerLimit, inner.span, message)
                        .label(format!("up to {}", Exact(inner.length)))
                        .related(outer.span, note)
                        .hint(hint!("the shorter limit ends both")),
                );
            }
        }
        self.warnings.extend(found);
    }

    /// Warns of a time limit without time for a second attempt at the usual delay.
    fn too_short(&mut self, details: &Try) {
        let Some(time) = self.limit(details.clauses.time.as_ref()) else { return };
        if details.clauses.times.is_some() {
            return;
        }
        let Some(delay) = self.first_delay(details) else { return };
        if delay < time.length {
            return;
        }
        let consequence = if details.clauses.every.is_some() {
            "there is never a second attempt"
        } else {
            "a second attempt comes at a random moment, or never"
        };
        let message = format!("no delay fits into this limit: {consequence}");
        let first = Exact(delay);
        let shorter = Duration::from_millis(time.length.as_millis() as u64 / 10);
        let hint = if details.clauses.every.is_some() || shorter.is_zero() {
            hint!("for a single attempt add `or 1 time`; the first delay is {first} or longer")
        } else {
            hint!(
                "for a single attempt add `or 1 time`; the first delay is {first} or longer, \
                 `backoff full from {}` has shorter delays",
                Exact(shorter)
            )
        };
        let label = format!("{} and no other limit", Exact(time.length));
        self.warnings
            .push(Warning::new(Slug::ShortLimit, time.span, message).label(label).hint(hint));
    }

    /// Warns of a length of time right after a policy, which looks like a delay and is a limit.
    fn beside_a_policy(&mut self, details: &Try) {
        let clauses = &details.clauses;
        let (Some(policy), Some(limit)) = (&clauses.backoff, self.limit(clauses.time.as_ref()))
        else {
            return;
        };
        let between = policy.span.end..limit.span.start;
        if self.source.text().get(between).is_none_or(|between| !between.trim().is_empty()) {
            return;
        }
        let text = &self.source.text()[std::ops::Range::from(limit.span)];
        let policy = policy.kind.name();
        self.warnings.push(
            Warning::new(Slug::LimitAfterPolicy, limit.span, "this is a limit of the whole `try`, not a delay").hint(hint!(
                "delays begin with `from`, like `backoff {policy} from {text}`; a limit comes before the policy"
            )),
        );
    }

    /// Returns the minimum of the first delay, if the script holds the delay literally.
    fn first_delay(&self, details: &Try) -> Option<Duration> {
        if let Some(every) = &details.clauses.every {
            return every.literal();
        }
        let Some(clause) = &details.clauses.backoff else {
            return Some(self.policy.least_first_delay());
        };
        Some(literal_policy(clause)?.least_first_delay())
    }

    /// Returns a limit with its span, if the length is known.
    fn limit(&self, duration: Option<&ast::Duration>) -> Option<TimeLimit> {
        let duration = duration?;
        let length = duration.literal()?;
        let mut span = duration.span();
        if let ast::Duration::Amount { .. } = duration {
            let after = &self.source.text()[span.end..];
            let unit = after.trim_start_matches([' ', '\t']);
            let length = unit.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(unit.len());
            span.end += after.len() - unit.len() + length;
        }
        Some(TimeLimit { span, length })
    }

    fn text(&self, expr: &Expr) -> String {
        self.source.text()[std::ops::Range::from(expr.span)].to_owned()
    }
}

/// Describes the number of attempts.
fn amount(details: &Try, attempts: &MaxAttempts) -> String {
    match attempts {
        MaxAttempts::Exactly(times) => format!("up to {times} attempts"),
        MaxAttempts::Computed(times) => format!("up to {times} attempts"),
        MaxAttempts::Unbounded => {
            match details.clauses.time.as_ref().and_then(ast::Duration::literal) {
                Some(time) => format!("as many attempts as fit into {}", Exact(time)),
                None => "as many attempts as fit into the time limit".to_owned(),
            }
        }
    }
}

fn shortest<'l>(
    limits: impl Iterator<Item = &'l (TimeLimit, &'l str)>,
) -> Option<&'l (TimeLimit, &'l str)> {
    limits.min_by_key(|(limit, _)| limit.length)
}

/// Formats `attempts multiply: up to 5 × 100 = 500`.
fn multiply(factors: &[MaxAttempts]) -> String {
    let mut product = Some(1_u64);
    let mut shown = Vec::new();
    for factor in factors {
        match factor {
            MaxAttempts::Exactly(times) => {
                product = product.and_then(|product| product.checked_mul(*times));
                shown.push(times.to_string());
            }
            MaxAttempts::Computed(times) => {
                product = None;
                shown.push(times.clone());
            }
            MaxAttempts::Unbounded => return "attempts multiply without bound".to_owned(),
        }
    }
    let mut text = format!("attempts multiply: up to {}", shown.join(" × "));
    if let Some(product) = product {
        let _ = write!(text, " = {product}");
    }
    text
}

/// Returns `defer` and the names of the functions that may defer the `try` of their callers.
fn deferring(script: &Script) -> Vec<&str> {
    let mut functions = Vec::new();
    for file in script.all_files() {
        collect_functions(&file.body, &mut functions);
    }
    let mut names = vec!["defer"];
    while let Some(at) = functions.iter().position(|(_, body)| says(body, &names).is_some()) {
        names.push(functions.swap_remove(at).0);
    }
    names
}

fn collect_functions<'a>(block: &'a Block, functions: &mut Vec<(&'a str, &'a Block)>) {
    for command in &block.commands {
        if let CommandKind::Function { name, body, .. } = &command.kind {
            functions.push((name, body));
        }
        for inner in walk::blocks(command) {
            collect_functions(inner, functions);
        }
    }
}

/// Returns the span of a command with one of these names that acts on the `try` of the block.
fn says(block: &Block, names: &[&str]) -> Option<Span> {
    block.commands.iter().find_map(|command| match &command.kind {
        CommandKind::Pipeline(pipeline) => {
            let name = walk::single(pipeline).and_then(walk::name);
            let is_it = name.is_some_and(|name| names.contains(&&*name));
            let mut stages = walk::blocks(command).into_iter();
            is_it.then_some(command.span).or_else(|| stages.find_map(|it| says(it, names)))
        }
        CommandKind::Function { .. } => None,
        CommandKind::Try(details) => {
            // `giveup` and `defer` leave a `limit` without `catch`.
            let body = (details.is_limit && details.catch.is_none()).then_some(&details.body);
            let after = details.catch.iter().chain(&details.finally).map(|(_, block)| block);
            body.into_iter().chain(after).find_map(|block| says(block, names))
        }
        CommandKind::Comment { .. }
        | CommandKind::Assign { .. }
        | CommandKind::If { .. }
        | CommandKind::Case(_)
        | CommandKind::While { .. }
        | CommandKind::In { .. }
        | CommandKind::With { .. }
        | CommandKind::For(_)
        | CommandKind::Return(_)
        | CommandKind::Shift(_)
        | CommandKind::List { .. }
        | CommandKind::Jump(_)
        | CommandKind::Channel(_)
        | CommandKind::Use(_)
        | CommandKind::Args(_) => {
            walk::blocks(command).into_iter().find_map(|inner| says(inner, names))
        }
    })
}

/// Returns true if a `catch` always ends in a failure for the enclosing `try`.
fn passes_on(catch: &Block) -> bool {
    let mut commands = catch.commands.iter().rev();
    let last = commands.find(|command| !matches!(command.kind, CommandKind::Comment { .. }));
    last.is_some_and(|command| match &command.kind {
        CommandKind::Pipeline(pipeline) => {
            walk::single(pipeline).and_then(walk::name).is_some_and(|name| name == "failure")
        }
        _ => false,
    })
}
