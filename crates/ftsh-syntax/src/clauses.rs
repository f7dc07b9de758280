//! The clauses of structures: their rows, and their values on the way from tree to code to frame.
//!
//! In the tree a clause holds what was written; lowering pushes its values in the order of the fields
//! and keeps how each is to be read; the structure that begins reads them in that order. The fields
//! are the same all along, only what they hold changes. So a clause more is a field here, and each
//! step takes it along.

use std::convert::Infallible;

use super::engine::EngineId;

/// Form of the value after a clause's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// No value.
    Nothing,
    /// A number.
    Number,
    /// A length of time.
    Time,
    /// An expression.
    Expression,
    /// A number, and optionally `times`.
    Times,
    /// Optionally `in order`.
    Order,
    /// A form of its own, which has a rule of its own in the grammar.
    Special,
}

/// Text of a clause: its words, its place and its description. The grammar's rules of clauses are generated
/// from the rows by `just generate`, as are tables and word lists; completion and hover read the rows.
#[derive(Debug)]
pub struct ClauseRow {
    /// Keyword of the structure or declaration that takes the clause.
    pub head: &'static str,
    /// Words that begin the clause.
    pub words: &'static [&'static str],
    /// Words further on in the clause.
    pub further: &'static [&'static str],
    /// Form of the value after the words.
    pub value: Value,
    /// Clause as the documentation shows it, such as `at most N`.
    pub usage: &'static str,
    /// Description, without a full stop.
    pub help: &'static str,
}

/// Rows of all clauses but `on`, whose engines have rows of their own.
#[rustfmt::skip]
pub const ROWS: &[ClauseRow] = &[
    ClauseRow::new("try", &["for"], Value::Special, "for D", "new attempts are made as long as this time; when it is over, whatever runs is ended"),
    ClauseRow::new("try", &["or"], Value::Special, "or LIMIT", "the second limit, a time or a number of times; whichever is reached first ends the `try`"),
    ClauseRow::new("try", &["every"], Value::Time, "every D", "attempts start at least that far apart, with no other delay between them"),
    ClauseRow::new("try", &["each"], Value::Time, "each D", "the limit of every single attempt; one that takes longer is ended and has failed"),
    ClauseRow::new("try", &["while"], Value::Expression, "while EXPR", "another attempt is made only while this is `true`; it may ask `$error_code` and its kin"),
    ClauseRow::new("try", &["atomic"], Value::Nothing, "atomic", "an attempt is all or nothing. What it prints and writes takes place when it has succeeded"),
    ClauseRow::new("try", &["backoff"], Value::Special, "backoff POLICY", "the delays between attempts"),
    ClauseRow::new("try", &["through"], Value::Special, "through CHANNEL", "attempts obey what the channel says, together with those of all your other shells"),
    ClauseRow::new("try", &["from"], Value::Special, "from D", "the first delay, or what it is made of"),
    ClauseRow::new("try", &["to"], Value::Special, "to D", "the longest delay"),
    ClauseRow::new("try", &["by"], Value::Special, "by F", "what delays are multiplied by after each failure"),
    ClauseRow::new("try", &["jitter"], Value::Special, "jitter P%", "how much of a delay is random"),
    ClauseRow::new("forany", &["in", "order"], Value::Nothing, "in order", "begins with the first word, not with a random one"),
    ClauseRow::new("forany", &["hedge", "after"], Value::Time, "hedge after D", "the next word begins beside one that takes longer; the first to succeed wins"),
    ClauseRow::new("forall", &["at", "most"], Value::Number, "at most N", "so many branches run at once"),
    ClauseRow::new("forany", &["at", "most"], Value::Number, "at most N", "so many are tried at once; with `hedge after`"),
    ClauseRow::new("forall", &["at", "least"], Value::Number, "at least N", "so many have to succeed; then the others are ended"),
    ClauseRow::new("forall", &["keep", "going"], Value::Nothing, "keep going", "one that fails doesn't end the others; `$failed` and `$succeeded` say which"),
    ClauseRow::new("forall", &["output", "grouped"], Value::Order, "output grouped", "what a branch prints comes out in one piece, when it has ended"),
    ClauseRow::new("forall", &["output", "tagged"], Value::Nothing, "output tagged", "what branches print comes out line by line, each behind its word and a tab"),
    ClauseRow::new("forall", &["retry", "lost"], Value::Times, "retry lost N times", "a branch whose machine is lost runs again elsewhere, so often"),
    ClauseRow::new("channel", &["at", "most"], Value::Special, "at most N", "so many attempts are inside at once; the others wait in the order of their coming"),
    ClauseRow::new("channel", &["rate"], Value::Special, "rate N per D", "so many attempts may begin in that time").further(&["per"]),
    ClauseRow::new("channel", &["budget"], Value::Special, "budget P%", "a second or later attempt needs what first attempts have earned"),
    ClauseRow::new("channel", &["breaker"], Value::Special, "breaker N failures D", "after so many failures in a row attempts fail for so long without being made").further(&["failures", "failure"]),
];

impl ClauseRow {
    const fn new(
        head: &'static str,
        words: &'static [&'static str],
        value: Value,
        usage: &'static str,
        help: &'static str,
    ) -> Self {
        Self { head, words, further: &[], value, usage, help }
    }

    const fn further(self, further: &'static [&'static str]) -> Self {
        Self { further, ..self }
    }
}

/// Returns the rows of a structure or declaration.
pub fn rows(head: &str) -> impl Iterator<Item = &'static ClauseRow> + Clone {
    ROWS.iter().filter(move |row| row.head == head)
}

/// Returns all words that belong to clauses of a structure or declaration.
pub fn words(head: &str) -> impl Iterator<Item = &'static str> + Clone {
    rows(head).flat_map(|row| row.words.iter().chain(row.further)).copied()
}

/// The clauses of a `try`: lengths of time `L`, numbers `N`, policies `P`.
#[derive(Clone, Debug)]
pub struct TryClauses<L, N, P> {
    /// The time limit.
    pub time: Option<L>,
    /// `N times`
    pub times: Option<N>,
    /// `every D`: the least time between the starts of attempts.
    pub every: Option<L>,
    /// `each D`: the limit of each attempt.
    pub each: Option<L>,
    /// `backoff NAME …`
    pub backoff: Option<P>,
    /// `atomic`: an attempt is all or nothing.
    pub atomic: bool,
}

impl<L, N, P> TryClauses<L, N, P> {
    /// No clause at all.
    pub const NONE: Self =
        Self { time: None, times: None, every: None, each: None, backoff: None, atomic: false };

    /// The next form of each clause, in the order of the fields; the first error ends it. All three
    /// functions are given `context`.
    pub fn try_map<'c, C, L2, N2, P2, E>(
        &'c self,
        context: &mut C,
        length: impl Fn(&mut C, &'c L) -> Result<L2, E>,
        number: impl Fn(&mut C, &'c N) -> Result<N2, E>,
        policy: impl Fn(&mut C, &'c P) -> Result<P2, E>,
    ) -> Result<TryClauses<L2, N2, P2>, E> {
        Ok(TryClauses {
            time: self.time.as_ref().map(|it| length(context, it)).transpose()?,
            times: self.times.as_ref().map(|it| number(context, it)).transpose()?,
            every: self.every.as_ref().map(|it| length(context, it)).transpose()?,
            each: self.each.as_ref().map(|it| length(context, it)).transpose()?,
            backoff: self.backoff.as_ref().map(|it| policy(context, it)).transpose()?,
            atomic: self.atomic,
        })
    }

    /// As [`Self::try_map`], of what can't fail.
    pub fn map<'c, C, L2, N2, P2>(
        &'c self,
        context: &mut C,
        length: impl Fn(&mut C, &'c L) -> L2,
        number: impl Fn(&mut C, &'c N) -> N2,
        policy: impl Fn(&mut C, &'c P) -> P2,
    ) -> TryClauses<L2, N2, P2> {
        let Ok(clauses) = self.try_map(
            context,
            |context, it| Ok::<_, Infallible>(length(context, it)),
            |context, it| Ok(number(context, it)),
            |context, it| Ok(policy(context, it)),
        );
        clauses
    }
}

impl<L, N, P> TryClauses<L, N, P> {
    /// Returns true if a clause changes a `try` that makes one attempt.
    pub fn changes_one_attempt(&self) -> bool {
        let Self { time: _, times: _, every: _, each, backoff: _, atomic } = self;
        each.is_some() || *atomic
    }
}

impl<L, P> TryClauses<L, u64, P> {
    /// How many attempts may be made, unless as many as fit into the time: one, if nothing is said.
    pub fn attempts(&self) -> Option<u64> {
        self.times.or_else(|| self.time.is_none().then_some(1))
    }
}

/// The rules of a channel: lengths of time `L`, numbers `N`.
#[derive(Clone, Debug)]
pub struct ChannelClauses<L, N> {
    /// `at most N`
    pub at_most: Option<N>,
    /// `rate N per D`
    pub rate: Option<(N, L)>,
    /// `budget P%`
    pub budget: Option<N>,
    /// `breaker N failures D`
    pub breaker: Option<(N, L)>,
}

impl<L, N> ChannelClauses<L, N> {
    /// No rule at all.
    pub const NONE: Self = Self { at_most: None, rate: None, budget: None, breaker: None };

    /// The next form of each rule, in the order of the fields; the first error ends it. Both functions
    /// are given `context`.
    pub fn try_map<'c, C, L2, N2, E>(
        &'c self,
        context: &mut C,
        length: impl Fn(&mut C, &'c L) -> Result<L2, E>,
        number: impl Fn(&mut C, &'c N) -> Result<N2, E>,
    ) -> Result<ChannelClauses<L2, N2>, E> {
        let pair = |context: &mut C, (count, time): &'c (N, L)| {
            Ok((number(context, count)?, length(context, time)?))
        };
        Ok(ChannelClauses {
            at_most: self.at_most.as_ref().map(|it| number(context, it)).transpose()?,
            rate: self.rate.as_ref().map(|it| pair(context, it)).transpose()?,
            budget: self.budget.as_ref().map(|it| number(context, it)).transpose()?,
            breaker: self.breaker.as_ref().map(|it| pair(context, it)).transpose()?,
        })
    }

    /// As [`Self::try_map`], of what can't fail.
    pub fn map<'c, C, L2, N2>(
        &'c self,
        context: &mut C,
        length: impl Fn(&mut C, &'c L) -> L2,
        number: impl Fn(&mut C, &'c N) -> N2,
    ) -> ChannelClauses<L2, N2> {
        let Ok(clauses) = self.try_map(
            context,
            |context, it| Ok::<_, Infallible>(length(context, it)),
            |context, it| Ok(number(context, it)),
        );
        clauses
    }
}

/// Which loop it is, with its clauses: lengths of time `L`, numbers `N`.
#[derive(Clone, Debug)]
pub enum ForKind<L, N> {
    /// `for`
    Each,
    /// `forany`
    Any(ForAnyClauses<L, N>),
    /// `forall`
    All(Box<ForAllClauses<N, N>>),
}

impl<L, N> ForKind<L, N> {
    /// The next form of each clause, in the order of the fields.
    pub fn map<'c, C, L2, N2>(
        &'c self,
        context: &mut C,
        length: impl Fn(&mut C, &'c L) -> L2,
        number: impl Fn(&mut C, &'c N) -> N2,
    ) -> ForKind<L2, N2> {
        match self {
            Self::Each => ForKind::Each,
            Self::Any(clauses) => ForKind::Any(clauses.map(context, length, number)),
            Self::All(clauses) => ForKind::All(Box::new(clauses.map(context, &number, &number))),
        }
    }

    /// Whether its words run as branches: tasks of their own, without an input.
    pub fn has_branches(&self) -> bool {
        match self {
            Self::Each => false,
            Self::Any(clauses) => clauses.hedge_after.is_some(),
            Self::All(_) => true,
        }
    }
}

/// The clauses of a `forany`: lengths of time `L`, numbers `N`.
#[derive(Clone, Debug)]
pub struct ForAnyClauses<L, N> {
    /// `in order`: it starts at the first word, not at a random one.
    pub in_order: bool,
    /// `hedge after D`: how long a word runs alone before the next one is begun beside it.
    pub hedge_after: Option<L>,
    /// `at most N` of them at once.
    pub at_most: Option<N>,
}

impl<L, N> ForAnyClauses<L, N> {
    /// No clause at all.
    pub const NONE: Self = Self { in_order: false, hedge_after: None, at_most: None };

    /// The next form of each clause, in the order of the fields; the first error ends it. Both functions
    /// are given `context`.
    pub fn try_map<'c, C, L2, N2, E>(
        &'c self,
        context: &mut C,
        length: impl Fn(&mut C, &'c L) -> Result<L2, E>,
        number: impl Fn(&mut C, &'c N) -> Result<N2, E>,
    ) -> Result<ForAnyClauses<L2, N2>, E> {
        Ok(ForAnyClauses {
            in_order: self.in_order,
            hedge_after: self.hedge_after.as_ref().map(|it| length(context, it)).transpose()?,
            at_most: self.at_most.as_ref().map(|it| number(context, it)).transpose()?,
        })
    }

    /// As [`Self::try_map`], of what can't fail.
    pub fn map<'c, C, L2, N2>(
        &'c self,
        context: &mut C,
        length: impl Fn(&mut C, &'c L) -> L2,
        number: impl Fn(&mut C, &'c N) -> N2,
    ) -> ForAnyClauses<L2, N2> {
        let Ok(clauses) = self.try_map(
            context,
            |context, it| Ok::<_, Infallible>(length(context, it)),
            |context, it| Ok(number(context, it)),
        );
        clauses
    }
}

/// When what the branches of a `forall` print comes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// `output grouped`: whole, when the branch has ended.
    Grouped {
        /// `in order`: in the order of the words.
        in_order: bool,
    },
    /// `output tagged`: each whole line as it comes, with the word before it.
    Tagged,
}

/// Where branches run: `on slurm "--mem=4G"`, with texts `T`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct On<T> {
    /// Engine that runs the branches.
    pub engine: EngineId,
    /// A word for it: options, or the list of hosts.
    pub options: Option<T>,
}

impl<T> On<T> {
    /// It with its word in the next form.
    pub fn try_map<'c, T2, E>(
        &'c self,
        text: impl FnOnce(&'c T) -> Result<T2, E>,
    ) -> Result<On<T2>, E> {
        let options = self.options.as_ref().map(text).transpose()?;
        Ok(On { engine: self.engine, options })
    }
}

/// The clauses of a `forall`: numbers `N`, texts `T`.
#[derive(Clone, Debug)]
pub struct ForAllClauses<N, T> {
    /// `at most N` branches at once.
    pub at_most: Option<N>,
    /// `at least N`: it succeeds once so many branches have.
    pub at_least: Option<N>,
    /// `output …`: when what branches print comes out.
    pub output: Option<Output>,
    /// `keep going`: a failed branch doesn't end the others.
    pub keep_going: bool,
    /// `on …`: where branches run, if not here.
    pub on: Option<On<T>>,
    /// `retry lost N times`: how often a branch begins anew of which nobody knows what came of it.
    pub retry_lost: Option<N>,
}

impl<N, T> ForAllClauses<N, T> {
    /// No clause at all.
    pub const NONE: Self = Self {
        at_most: None,
        at_least: None,
        output: None,
        keep_going: false,
        on: None,
        retry_lost: None,
    };

    /// Returns true if the failure of the `forall` counts those of its branches.
    pub fn is_counted(&self) -> bool {
        self.keep_going || self.at_least.is_some()
    }

    /// The next form of each clause, in the order of the fields; the first error ends it. Both functions
    /// are given `context`.
    pub fn try_map<'c, C, N2, T2, E>(
        &'c self,
        context: &mut C,
        number: impl Fn(&mut C, &'c N) -> Result<N2, E>,
        text: impl Fn(&mut C, &'c T) -> Result<T2, E>,
    ) -> Result<ForAllClauses<N2, T2>, E> {
        Ok(ForAllClauses {
            at_most: self.at_most.as_ref().map(|it| number(context, it)).transpose()?,
            at_least: self.at_least.as_ref().map(|it| number(context, it)).transpose()?,
            output: self.output,
            keep_going: self.keep_going,
            on: self.on.as_ref().map(|it| it.try_map(|it| text(context, it))).transpose()?,
            retry_lost: self.retry_lost.as_ref().map(|it| number(context, it)).transpose()?,
        })
    }

    /// As [`Self::try_map`], of what can't fail.
    pub fn map<'c, C, N2, T2>(
        &'c self,
        context: &mut C,
        number: impl Fn(&mut C, &'c N) -> N2,
        text: impl Fn(&mut C, &'c T) -> T2,
    ) -> ForAllClauses<N2, T2> {
        let Ok(clauses) = self.try_map(
            context,
            |context, it| Ok::<_, Infallible>(number(context, it)),
            |context, it| Ok(text(context, it)),
        );
        clauses
    }
}
