//! Clauses of structures: the rows that describe them, and their values from the tree to the frame.
//!
//! In the tree a clause holds expressions. Lowering turns each expression into instructions that
//! push a value, in the order of the fields. The structure reads the values in the same order when
//! it begins. The fields stay the same in every form, and only their types change. A new clause is
//! a new field here, and the compiler then lists the steps that handle the field.

use std::convert::Infallible;

use super::engine::EngineId;
use super::size::Size;

/// Form of the value after a clause's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueForm {
    /// No value.
    Nothing,
    /// A number.
    Number,
    /// A length of time.
    Time,
    /// A length of time, or `usual or` and a length of time.
    UsualTime,
    /// An expression.
    Expression,
    /// A size in bytes.
    Size,
    /// A number, and optionally `times`.
    Times,
    /// Optionally `in order`.
    Order,
    /// Name of a signal.
    Signal,
    /// Words of a list, up to the next clause.
    Words,
    /// A form of its own, which has a rule of its own in the grammar.
    Special,
}

/// Text of a clause: words, head and description.
///
/// `just generate` writes the grammar's rules of clauses, tables and word lists from the rows.
/// Completion and hover read the rows.
#[derive(Debug)]
pub struct ClauseRow {
    /// Keyword of the structure or declaration that takes the clause.
    pub head: &'static str,
    /// Words that begin the clause.
    pub words: &'static [&'static str],
    /// Words further on in the clause.
    pub further: &'static [&'static str],
    /// Form of the value after the words.
    pub value: ValueForm,
    /// Clause as the documentation shows it, such as `at most N`.
    pub usage: &'static str,
    /// Description, without a full stop.
    pub help: &'static str,
}

/// Rows of all clauses except `on`, whose engines have rows of their own.
#[rustfmt::skip]
pub const ROWS: &[ClauseRow] = &[
    ClauseRow::new("try", &["for"], ValueForm::Special, "for D", "the time limit of the `try`; a running attempt is killed at the limit"),
    ClauseRow::new("try", &["or"], ValueForm::Special, "or LIMIT", "a second limit, a time or a number of times; the first limit reached ends the `try`"),
    ClauseRow::new("try", &["every"], ValueForm::Time, "every D", "the minimum time between the starts of attempts, without other delays"),
    ClauseRow::new("try", &["each"], ValueForm::UsualTime, "each D", "the time limit of each attempt; an attempt that takes longer is killed and fails; `each usual or D` learns the limit from earlier attempts, and is at most `D`").further(&["usual"]),
    ClauseRow::new("try", &["stalled"], ValueForm::Time, "stalled D", "an attempt fails when its processes have made no progress for this time: no processor time, no input or output, no start or end of a process"),
    ClauseRow::new("try", &["memory"], ValueForm::Size, "memory N", "an attempt fails when its processes together use more memory than this, such as `4 GB`"),
    ClauseRow::new("try", &["while"], ValueForm::Expression, "while EXPR", "another attempt is made only while the expression is `true`; it may use `$error_code` and the other variables of a failure"),
    ClauseRow::new("try", &["atomic", "in"], ValueForm::Words, "atomic in DIR…", "as `atomic`; what the commands of an attempt change below the directories takes place only after success"),
    ClauseRow::new("try", &["atomic"], ValueForm::Nothing, "atomic", "an attempt is all or nothing: its output and the file of `end > f` appear only after success"),
    ClauseRow::new("try", &["same", "input"], ValueForm::Nothing, "same input", "each attempt reads the same standard input, from where the first attempt began; a terminal is read directly"),
    ClauseRow::new("try", &["signal"], ValueForm::Signal, "signal NAME", "the signal that cancels an attempt, such as INT; TERM follows after half of the kill timeout"),
    ClauseRow::new("try", &["backoff"], ValueForm::Special, "backoff POLICY", "the delays between attempts"),
    ClauseRow::new("try", &["through"], ValueForm::Special, "through CHANNEL", "attempts follow the rules of the channel, together with the attempts of all your other shells"),
    ClauseRow::new("try", &["from"], ValueForm::Special, "from D", "the first delay, or the base of the formula"),
    ClauseRow::new("try", &["to"], ValueForm::Special, "to D", "the longest delay"),
    ClauseRow::new("try", &["by"], ValueForm::Special, "by F", "the factor of the delay after each failure"),
    ClauseRow::new("try", &["jitter"], ValueForm::Special, "jitter P%", "the random part of a delay"),
    ClauseRow::new("limit", &["stalled"], ValueForm::Time, "stalled D", "the group fails when its processes have made no progress for this time: no processor time, no input or output, no start or end of a process"),
    ClauseRow::new("limit", &["memory"], ValueForm::Size, "memory N", "the group fails when its processes together use more memory than this, such as `4 GB`"),
    ClauseRow::new("limit", &["signal"], ValueForm::Signal, "signal NAME", "the signal that cancels the group, such as INT; TERM follows after half of the kill timeout"),
    ClauseRow::new("forany", &["in", "order"], ValueForm::Nothing, "in order", "begins with the first word instead of a random word"),
    ClauseRow::new("forany", &["hedge", "after"], ValueForm::UsualTime, "hedge after D", "the next word begins beside a word that takes longer; the first success wins; `hedge after usual or D` learns the time, and is at most `D`").further(&["usual", "or"]),
    ClauseRow::new("forany", &["atomic", "in"], ValueForm::Words, "atomic in DIR…", "each word is an atomic attempt: what its commands change below the directories takes place only after success"),
    ClauseRow::new("forall", &["at", "most"], ValueForm::Number, "at most N", "the maximum number of branches at once"),
    ClauseRow::new("forany", &["at", "most"], ValueForm::Number, "at most N", "the maximum number of words at once; with `hedge after`"),
    ClauseRow::new("forall", &["at", "least"], ValueForm::Number, "at least N", "the number of branches that must succeed; the other branches are then killed"),
    ClauseRow::new("forall", &["keep", "going"], ValueForm::Nothing, "keep going", "a failed branch doesn't end the others; `$failed` and `$succeeded` list the words"),
    ClauseRow::new("forall", &["finish", "running"], ValueForm::Nothing, "finish running", "after a failure no further branch begins, and the running branches finish"),
    ClauseRow::new("forall", &["output", "grouped"], ValueForm::Order, "output grouped", "the output of a branch appears as a whole, after the end of the branch"),
    ClauseRow::new("forall", &["output", "tagged"], ValueForm::Nothing, "output tagged", "the output of branches appears line by line, each line after its word and a tab"),
    ClauseRow::new("forall", &["retry", "lost"], ValueForm::Times, "retry lost N times", "the maximum number of restarts of a branch whose machine is lost"),
    ClauseRow::new("forall", &["once", "in"], ValueForm::Expression, "once in FILE", "words recorded in the file are skipped; the word of each branch that succeeds is recorded there"),
    ClauseRow::new("forall", &["atomic", "in"], ValueForm::Words, "atomic in DIR…", "each branch is an atomic attempt: what its commands change below the directories takes place only after success"),
    ClauseRow::new("forall", &["while", "free"], ValueForm::Size, "while free N", "a further branch begins only while at least this memory is available, such as `2 GB`"),
    ClauseRow::new("forall", &["while", "load"], ValueForm::Number, "while load N", "a further branch begins only while the load of the machine is at most this number"),
    ClauseRow::new("channel", &["at", "most"], ValueForm::Special, "at most N", "the maximum number of attempts at once; other attempts wait in the order of their arrival"),
    ClauseRow::new("channel", &["rate"], ValueForm::Special, "rate N per D", "the maximum number of attempts that begin in this time").further(&["per"]),
    ClauseRow::new("channel", &["budget"], ValueForm::Special, "budget P%", "the maximum number of retries, as a percentage of first attempts"),
    ClauseRow::new("channel", &["breaker"], ValueForm::Special, "breaker N failures D", "after this number of failures in a row, attempts fail for this time without being made").further(&["failures", "failure"]),
];

impl ClauseRow {
    const fn new(
        head: &'static str,
        words: &'static [&'static str],
        value: ValueForm,
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

/// Clauses of a `try`, with lengths of time `L`, numbers `N`, policies `P` and signals `S`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TryClauses<L, N, P, S> {
    /// Time limit.
    pub time: Option<L>,
    /// `N times`
    pub times: Option<N>,
    /// `every D`: the minimum time between the starts of attempts.
    pub every: Option<L>,
    /// `each D`: the time limit of each attempt.
    pub each: Option<L>,
    /// `stalled D`: the time without progress after which an attempt fails.
    pub stalled: Option<L>,
    /// `memory N`: the memory of the processes of an attempt.
    pub memory: Option<Size<N>>,
    /// `backoff NAME …`
    pub backoff: Option<P>,
    /// `signal NAME`: the signal that cancels an attempt.
    pub signal: Option<S>,
    /// `atomic`: the effects of an attempt appear as a whole or not at all.
    pub atomic: bool,
    /// `same input`: each attempt reads the same standard input.
    pub same_input: bool,
}

impl<L, N, P, S> TryClauses<L, N, P, S> {
    /// Clauses of a `try` without any clause.
    pub const NONE: Self = Self {
        time: None,
        times: None,
        every: None,
        each: None,
        stalled: None,
        memory: None,
        backoff: None,
        signal: None,
        atomic: false,
        same_input: false,
    };

    /// Converts each clause, in the order of the fields, and stops at the first error.
    ///
    /// `context` is passed to all four functions.
    pub fn try_map<'c, C, L2, N2, P2, S2, E>(
        &'c self,
        context: &mut C,
        length: impl Fn(&mut C, &'c L) -> Result<L2, E>,
        number: impl Fn(&mut C, &'c N) -> Result<N2, E>,
        size: impl Fn(&mut C, &'c Size<N>) -> Result<Size<N2>, E>,
        policy: impl Fn(&mut C, &'c P) -> Result<P2, E>,
        signal: impl Fn(&mut C, &'c S) -> Result<S2, E>,
    ) -> Result<TryClauses<L2, N2, P2, S2>, E> {
        Ok(TryClauses {
            time: self.time.as_ref().map(|it| length(context, it)).transpose()?,
            times: self.times.as_ref().map(|it| number(context, it)).transpose()?,
            every: self.every.as_ref().map(|it| length(context, it)).transpose()?,
            each: self.each.as_ref().map(|it| length(context, it)).transpose()?,
            stalled: self.stalled.as_ref().map(|it| length(context, it)).transpose()?,
            memory: self.memory.as_ref().map(|it| size(context, it)).transpose()?,
            backoff: self.backoff.as_ref().map(|it| policy(context, it)).transpose()?,
            signal: self.signal.as_ref().map(|it| signal(context, it)).transpose()?,
            atomic: self.atomic,
            same_input: self.same_input,
        })
    }

    /// Converts each clause like [`Self::try_map`], by functions without errors.
    pub fn map<'c, C, L2, N2, P2, S2>(
        &'c self,
        context: &mut C,
        length: impl Fn(&mut C, &'c L) -> L2,
        number: impl Fn(&mut C, &'c N) -> N2,
        policy: impl Fn(&mut C, &'c P) -> P2,
        signal: impl Fn(&mut C, &'c S) -> S2,
    ) -> TryClauses<L2, N2, P2, S2> {
        let Ok(clauses) = self.try_map(
            context,
            |context, it| Ok::<_, Infallible>(length(context, it)),
            |context, it| Ok(number(context, it)),
            |context, it| it.try_map(|amount| Ok(number(context, amount))),
            |context, it| Ok(policy(context, it)),
            |context, it| Ok(signal(context, it)),
        );
        clauses
    }
}

impl<L, N, P, S> TryClauses<L, N, P, S> {
    /// Returns true if a clause changes a `try` that makes one attempt.
    pub fn changes_one_attempt(&self) -> bool {
        let Self { each, stalled, memory, signal, atomic, .. } = self;
        let is_watched = stalled.is_some() || memory.is_some();
        each.is_some() || is_watched || signal.is_some() || *atomic
    }
}

impl<L, P, S> TryClauses<L, u64, P, S> {
    /// Returns the maximum number of attempts, or `None` if only time limits them. The default is
    /// 1.
    pub fn attempts(&self) -> Option<u64> {
        self.times.or_else(|| self.time.is_none().then_some(1))
    }
}

/// Rules of a channel, with lengths of time `L` and numbers `N`.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// Rules of a channel without any rule.
    pub const NONE: Self = Self { at_most: None, rate: None, budget: None, breaker: None };

    /// Converts each rule, in the order of the fields, and stops at the first error.
    ///
    /// `context` is passed to both functions.
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

    /// Converts each rule like [`Self::try_map`], by functions without errors.
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

/// Kind of loop with its clauses, for lengths of time `L` and numbers `N`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForKind<L, N> {
    /// `for`
    Each,
    /// `forany`
    Any(ForAnyClauses<L, N>),
    /// `forall`
    All(Box<ForAllClauses<N, N>>),
}

impl<L, N> ForKind<L, N> {
    /// Converts each clause, in the order of the fields.
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

    /// Returns true if the loop runs its words as branches, which are tasks without standard input.
    pub fn has_branches(&self) -> bool {
        match self {
            Self::Each => false,
            Self::Any(clauses) => clauses.hedge_after.is_some(),
            Self::All(_) => true,
        }
    }
}

/// Clauses of a `forany`, with lengths of time `L` and numbers `N`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForAnyClauses<L, N> {
    /// `in order`: the loop begins with the first word instead of a random word.
    pub in_order: bool,
    /// `hedge after D`: the time that an alternative runs before the next one begins as well.
    pub hedge_after: Option<L>,
    /// `at most N`: the maximum number of alternatives at once.
    pub at_most: Option<N>,
}

impl<L, N> ForAnyClauses<L, N> {
    /// Clauses of a `forany` without any clause.
    pub const NONE: Self = Self { in_order: false, hedge_after: None, at_most: None };

    /// Converts each clause, in the order of the fields, and stops at the first error.
    ///
    /// `context` is passed to both functions.
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

    /// Converts each clause like [`Self::try_map`], by functions without errors.
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

/// Treatment of the output of the branches of a `forall`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputMode {
    /// `output grouped`: a branch's output appears as a whole, when the branch has ended.
    Grouped {
        /// `in order`: outputs appear in the order of the words.
        in_order: bool,
    },
    /// `output tagged`: each whole line appears at once, after the word of its branch.
    Tagged,
}

/// Destination of branches: `on slurm "--mem=4G"`, with texts `T`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct On<T> {
    /// Engine that runs the branches.
    pub engine: EngineId,
    /// Argument of the engine: options, or the list of hosts.
    pub options: Option<T>,
}

impl<T> On<T> {
    /// Converts the argument of the engine.
    pub fn try_map<'c, T2, E>(
        &'c self,
        text: impl FnOnce(&'c T) -> Result<T2, E>,
    ) -> Result<On<T2>, E> {
        let options = self.options.as_ref().map(text).transpose()?;
        Ok(On { engine: self.engine, options })
    }
}

/// Clauses of a `forall`, with numbers `N` and texts `T`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForAllClauses<N, T> {
    /// `at most N`: the maximum number of branches at once.
    pub at_most: Option<N>,
    /// `at least N`: the number of successful branches at which the `forall` succeeds.
    pub at_least: Option<N>,
    /// `output …`: the treatment of the branches' output.
    pub output: Option<OutputMode>,
    /// `keep going`: a failed branch does not end the other branches.
    pub keep_going: bool,
    /// `finish running`: after a failure no further branch begins, and the others finish.
    pub finish_running: bool,
    /// `on …`: the destination of the branches, unless they run on this machine.
    pub on: Option<On<T>>,
    /// `retry lost N times`: the number of restarts of a lost branch.
    pub retry_lost: Option<N>,
    /// `while free N`: the available memory without which no further branch begins.
    pub while_free: Option<Size<T>>,
    /// `while load N`: the load above which no further branch begins.
    pub while_load: Option<T>,
    /// `once in FILE`: the file that records the words of successful branches.
    pub once_in: Option<T>,
}

impl<N, T> ForAllClauses<N, T> {
    /// Clauses of a `forall` without any clause.
    pub const NONE: Self = Self {
        at_most: None,
        at_least: None,
        output: None,
        keep_going: false,
        finish_running: false,
        on: None,
        retry_lost: None,
        while_free: None,
        while_load: None,
        once_in: None,
    };

    /// Returns true if the failure of the `forall` counts those of its branches.
    pub fn is_counted(&self) -> bool {
        self.keep_going || self.finish_running || self.at_least.is_some()
    }

    /// Converts each clause, in the order of the fields, and stops at the first error.
    ///
    /// `context` is passed to both functions.
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
            finish_running: self.finish_running,
            on: self.on.as_ref().map(|it| it.try_map(|it| text(context, it))).transpose()?,
            retry_lost: self.retry_lost.as_ref().map(|it| number(context, it)).transpose()?,
            while_free: self
                .while_free
                .as_ref()
                .map(|it| it.try_map(|it| text(context, it)))
                .transpose()?,
            while_load: self.while_load.as_ref().map(|it| text(context, it)).transpose()?,
            once_in: self.once_in.as_ref().map(|it| text(context, it)).transpose()?,
        })
    }

    /// Converts each clause like [`Self::try_map`], by functions without errors.
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
