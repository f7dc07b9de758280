//! Clauses of structures: the rows that describe them, and their values from the tree to the frame.
//!
//! In the tree a clause holds expressions. Lowering turns each expression into instructions that
//! push a value, in the order of the fields. The structure reads the values in the same order when
//! it begins. The fields stay the same in every form, and only their types change. A new clause is
//! a new row and a new field here. The compiler then lists the steps that handle the row and the field.

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

/// Declares rows, and for each group of rows an enum with a variant for each row.
///
/// The parser matches the variants, so that a new row without a parser is an error of the compiler.
macro_rules! rows {
    ($($(#[$about:meta])* $group:ident { $($clause:ident: $row:expr;)+ })+) => {
        /// Rows of all clauses except `on`, whose engines have rows of their own.
        pub const ROWS: &[ClauseRow] = &[$($($row,)+)+];

        $(
            $(#[$about])*
            #[derive(Clone, Copy)]
            pub(crate) enum $group {
                $($clause,)+
            }

            impl $group {
                /// Returns the clause of the structure `head` whose words begin the text of a clause.
                pub(crate) fn of(head: &str, text: &str) -> Option<Self> {
                    const ROWS: &[(ClauseRow, $group)] = &[$(($row, $group::$clause),)+];
                    let is_it = |row: &ClauseRow| row.head == head && row.begins(text);
                    ROWS.iter().find(|(row, _)| is_it(row)).map(|(_, clause)| *clause)
                }
            }
        )+
    };
}

rows! {
    /// Clause of a `try` or a `limit`.
    TryRow {
        For: ClauseRow::new("try", &["for"], ValueForm::Special, "for D", "the time limit of the `try`; a running attempt is killed at the limit");
        Or: ClauseRow::new("try", &["or"], ValueForm::Special, "or LIMIT", "a second limit, a time or a number of times; the first limit reached ends the `try`");
        Every: ClauseRow::new("try", &["every"], ValueForm::Time, "every D", "the minimum time between the starts of attempts, without other delays");
        Each: ClauseRow::new("try", &["each"], ValueForm::UsualTime, "each D", "the time limit of each attempt; an attempt that takes longer is killed and fails; `each usual or D` learns the limit from earlier attempts, and is at most `D`").further(&["usual"]);
        Stalled: ClauseRow::new("try", &["stalled"], ValueForm::Time, "stalled D", "an attempt fails when its processes have made no progress for this time: no processor time, no input or output, no start or end of a process");
        Memory: ClauseRow::new("try", &["memory"], ValueForm::Size, "memory N", "an attempt fails when its processes together use more memory than this, such as `4 GB`");
        While: ClauseRow::new("try", &["while"], ValueForm::Expression, "while EXPR", "another attempt is made only while the expression is `true`; it may use `$error_code` and the other variables of a failure");
        AtomicIn: ClauseRow::new("try", &["atomic", "in"], ValueForm::Words, "atomic in DIR…", "as `atomic`; changes that the commands of an attempt make below the directories appear only after success");
        Atomic: ClauseRow::new("try", &["atomic"], ValueForm::Nothing, "atomic", "what an attempt prints and the file of `end > f` appear only after success; files that commands write stay");
        SameInput: ClauseRow::new("try", &["same", "input"], ValueForm::Nothing, "same input", "each attempt reads the same standard input, from where the first attempt began; a terminal is read directly");
        Signal: ClauseRow::new("try", &["signal"], ValueForm::Signal, "signal NAME", "the signal that cancels an attempt, such as INT; TERM follows after half of the kill timeout");
        Backoff: ClauseRow::new("try", &["backoff"], ValueForm::Special, "backoff POLICY", "the delays between attempts");
        NoLeftovers: ClauseRow::new("try", &["no", "leftovers"], ValueForm::Nothing, "no leftovers", "processes that a successful body leaves running are killed too, except those of `keep`");
        Through: ClauseRow::new("try", &["through"], ValueForm::Special, "through CHANNEL", "attempts follow the rules of the channel, together with the attempts of all your other shells");
        LimitStalled: ClauseRow::new("limit", &["stalled"], ValueForm::Time, "stalled D", "the group fails when its processes have made no progress for this time: no processor time, no input or output, no start or end of a process");
        LimitMemory: ClauseRow::new("limit", &["memory"], ValueForm::Size, "memory N", "the group fails when its processes together use more memory than this, such as `4 GB`");
        LimitSignal: ClauseRow::new("limit", &["signal"], ValueForm::Signal, "signal NAME", "the signal that cancels the group, such as INT; TERM follows after half of the kill timeout");
        LimitNoLeftovers: ClauseRow::new("limit", &["no", "leftovers"], ValueForm::Nothing, "no leftovers", "processes that a successful group leaves running are killed too, except those of `keep`");
    }

    /// Clause of `backoff`, after the policy.
    BackoffRow {
        From: ClauseRow::new("try", &["from"], ValueForm::Special, "from D", "the first delay, or the base of the formula");
        To: ClauseRow::new("try", &["to"], ValueForm::Special, "to D", "the longest delay");
        By: ClauseRow::new("try", &["by"], ValueForm::Special, "by F", "the factor of the delay after each failure");
        Jitter: ClauseRow::new("try", &["jitter"], ValueForm::Special, "jitter P%", "the random part of a delay");
    }

    /// Clause of a `forany` or a `forall`.
    LoopRow {
        InOrder: ClauseRow::new("forany", &["in", "order"], ValueForm::Nothing, "in order", "starts with the first item instead of a random item");
        HedgeAfter: ClauseRow::new("forany", &["hedge", "after"], ValueForm::UsualTime, "hedge after D", "the next item starts while a slower item still runs; the first success wins; `hedge after usual or D` learns the time, and is at most `D`").further(&["usual", "or"]);
        AnyAtomicIn: ClauseRow::new("forany", &["atomic", "in"], ValueForm::Words, "atomic in DIR…", "each item is an atomic attempt: changes that its commands make below the directories appear only after success");
        AllAtMost: ClauseRow::new("forall", &["at", "most"], ValueForm::Number, "at most N", "the maximum number of branches at once");
        AnyAtMost: ClauseRow::new("forany", &["at", "most"], ValueForm::Number, "at most N", "the maximum number of items at once; with `hedge after`");
        AtLeast: ClauseRow::new("forall", &["at", "least"], ValueForm::Number, "at least N", "the number of branches that must succeed; the other branches are then killed");
        KeepGoing: ClauseRow::new("forall", &["keep", "going"], ValueForm::Nothing, "keep going", "a failed branch does not cancel the others; `$failed` and `$succeeded` list the items");
        FinishRunning: ClauseRow::new("forall", &["finish", "running"], ValueForm::Nothing, "finish running", "after a failure no further branch starts, and the running branches finish");
        OutputGrouped: ClauseRow::new("forall", &["output", "grouped"], ValueForm::Order, "output grouped", "the output of a branch appears as a whole, after the end of the branch");
        OutputTagged: ClauseRow::new("forall", &["output", "tagged"], ValueForm::Nothing, "output tagged", "the output of branches appears line by line, each line with its item and a tab before it");
        RetryLost: ClauseRow::new("forall", &["retry", "lost"], ValueForm::Times, "retry lost N times", "the maximum number of restarts of a branch whose machine is lost");
        Takes: ClauseRow::new("forall", &["takes"], ValueForm::Words, "takes FILE…", "files and directories that a branch needs, copied to another machine; if one is missing, the branch fails before its body");
        Gives: ClauseRow::new("forall", &["gives"], ValueForm::Words, "gives FILE…", "files and directories that a branch makes, copied back after its success; if one is missing, the branch fails");
        OnceIn: ClauseRow::new("forall", &["once", "in"], ValueForm::Expression, "once in FILE", "items recorded in the file are skipped; the item of each branch that succeeds is recorded there");
        AllAtomicIn: ClauseRow::new("forall", &["atomic", "in"], ValueForm::Words, "atomic in DIR…", "each branch is an atomic attempt: changes that its commands make below the directories appear only after success");
        WhileFree: ClauseRow::new("forall", &["while", "free"], ValueForm::Size, "while free N", "a further branch starts only while at least this memory is available, such as `2 GB`");
        WhileLoad: ClauseRow::new("forall", &["while", "load"], ValueForm::Number, "while load N", "a further branch starts only while the load of the machine is at most this number");
    }

    /// Rule of a channel.
    ChannelRow {
        AtMost: ClauseRow::new("channel", &["at", "most"], ValueForm::Special, "at most N", "the maximum number of attempts at once; other attempts wait in the order of their arrival");
        Rate: ClauseRow::new("channel", &["rate"], ValueForm::Special, "rate N per D", "the maximum number of attempts that start in this time").further(&["per"]);
        Budget: ClauseRow::new("channel", &["budget"], ValueForm::Special, "budget P%", "the maximum number of retries, as a percentage of first attempts");
        Breaker: ClauseRow::new("channel", &["breaker"], ValueForm::Special, "breaker N failures D", "after this number of failures in a row, attempts fail for this time without running").further(&["failures", "failure"]);
    }
}

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
    /// Returns true if the words begin the text of a clause.
    fn begins(&self, text: &str) -> bool {
        let words = text.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| !word.is_empty());
        words.take(self.words.len()).eq(self.words.iter().copied())
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

/// Declares the clauses of a structure, with a type parameter for each kind of value.
///
/// The type parameters have their names after a conversion, and the names of the functions that
/// convert them. A field is a clause. After `=>` is the function for the value: `length` for one
/// value, `(number, length)` for a pair, `[text]` for a value inside. A field without a function is
/// copied.
macro_rules! clauses {
    (
        $(#[$about:meta])*
        $name:ident<$($type:ident $(= $default:ty)? => $new:ident: $function:ident),+> {
            $($(#[$doc:meta])* $field:ident: $value:ty $(=> $convert:tt)?,)+
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name<$($type $(= $default)?),+> {
            $($(#[$doc])* pub $field: $value,)+
        }

        impl<$($type),+> Default for $name<$($type),+> {
            /// Returns the clauses of a structure without any clause.
            fn default() -> Self {
                Self { $($field: Default::default(),)+ }
            }
        }

        impl<$($type),+> $name<$($type),+> {
            /// Converts each clause, in the order of the fields, and stops at the first error.
            ///
            /// `context` is passed to all functions.
            pub fn try_map<'c, C, $($new,)+ E>(
                &'c self,
                context: &mut C,
                $($function: impl Fn(&mut C, &'c $type) -> Result<$new, E>,)+
            ) -> Result<$name<$($new),+>, E> {
                Ok($name {
                    $($field: $crate::clauses::clauses!(@ context, self.$field $(, $convert)?),)+
                })
            }

            /// Converts each clause like [`Self::try_map`], by functions without errors.
            pub fn map<'c, C, $($new),+>(
                &'c self,
                context: &mut C,
                $($function: impl Fn(&mut C, &'c $type) -> $new,)+
            ) -> $name<$($new),+> {
                let Ok(clauses) = self.try_map(
                    context,
                    $(|context, it| Ok::<_, std::convert::Infallible>($function(context, it)),)+
                );
                clauses
            }
        }
    };
    (@ $context:ident, $value:expr) => {
        $value
    };
    (@ $context:ident, $value:expr, ($first:ident, $second:ident)) => {
        match &$value {
            Some((first, second)) => Some(($first($context, first)?, $second($context, second)?)),
            None => None,
        }
    };
    (@ $context:ident, $value:expr, [$inside:ident]) => {
        match &$value {
            Some(it) => Some(it.try_map(|it| $inside($context, it))?),
            None => None,
        }
    };
    (@ $context:ident, $value:expr, $convert:ident) => {
        match &$value {
            Some(it) => Some($convert($context, it)?),
            None => None,
        }
    };
}

pub(crate) use clauses;

clauses! {
    /// Clauses of a `try`, with lengths of time `L`, numbers `N`, sizes `Z`, policies `P` and
    /// signals `S`.
    TryClauses<L => L2: length, N => N2: number, Z => Z2: size, P => P2: policy, S => S2: signal> {
        /// Time limit.
        time: Option<L> => length,
        /// `N times`
        times: Option<N> => number,
        /// `every D`: the minimum time between the starts of attempts.
        every: Option<L> => length,
        /// `each D`: the time limit of each attempt.
        each: Option<L> => length,
        /// `stalled D`: the time without progress after which an attempt fails.
        stalled: Option<L> => length,
        /// `memory N`: the memory of the processes of an attempt.
        memory: Option<Z> => size,
        /// `backoff NAME …`
        backoff: Option<P> => policy,
        /// `signal NAME`: the signal that cancels an attempt.
        signal: Option<S> => signal,
        /// `atomic`: the effects of an attempt appear as a whole or not at all.
        atomic: bool,
        /// `same input`: each attempt reads the same standard input.
        same_input: bool,
        /// `no leftovers`: what a successful body leaves running is ended.
        no_leftovers: bool,
    }
}

impl<L, N, Z, P, S> TryClauses<L, N, Z, P, S> {
    /// Returns true if a clause changes a `try` that makes one attempt.
    pub fn changes_one_attempt(&self) -> bool {
        let Self {
            time: _,
            times: _,
            every: _,
            each,
            stalled,
            memory,
            backoff: _,
            signal,
            atomic,
            same_input: _,
            no_leftovers,
        } = self;
        let is_watched = stalled.is_some() || memory.is_some();
        each.is_some() || is_watched || signal.is_some() || *atomic || *no_leftovers
    }
}

impl<L, Z, P, S> TryClauses<L, u64, Z, P, S> {
    /// Returns the maximum number of attempts, or `None` if only time limits them. The default is
    /// 1.
    pub fn attempts(&self) -> Option<u64> {
        self.times.or_else(|| self.time.is_none().then_some(1))
    }
}

clauses! {
    /// Rules of a channel, with lengths of time `L` and numbers `N`.
    ChannelClauses<L => L2: length, N => N2: number> {
        /// `at most N`
        at_most: Option<N> => number,
        /// `rate N per D`
        rate: Option<(N, L)> => (number, length),
        /// `budget P%`
        budget: Option<N> => number,
        /// `breaker N failures D`
        breaker: Option<(N, L)> => (number, length),
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

clauses! {
    /// Clauses of a `forany`, with lengths of time `L` and numbers `N`.
    ForAnyClauses<L => L2: length, N => N2: number> {
        /// `in order`: the loop starts with the first item instead of a random item.
        in_order: bool,
        /// `hedge after D`: the time that an alternative runs before the next one begins as well.
        hedge_after: Option<L> => length,
        /// `at most N`: the maximum number of alternatives at once.
        at_most: Option<N> => number,
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
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct On<T> {
    /// Engine that runs the branches.
    pub engine: EngineId,
    /// Argument of the engine: options, or the list of hosts.
    pub options: Option<T>,
}

impl<T: AsRef<[u8]>> On<T> {
    /// Returns the hosts that the argument lists; see [`EngineId::hosts`].
    ///
    /// # Errors
    ///
    /// Returns the reason if the list is invalid.
    pub fn hosts(&self) -> Result<Option<Vec<(String, u64)>>, String> {
        let argument = self.options.as_ref().map(|it| String::from_utf8_lossy(it.as_ref()));
        self.engine.hosts(&argument.unwrap_or_default())
    }

    /// True if the shell and not the engine chooses a machine.
    pub fn lists_hosts(&self) -> bool {
        matches!(self.hosts(), Ok(Some(_)))
    }
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

clauses! {
    /// Clauses of a `forall`, with numbers `N` and texts `T`.
    ForAllClauses<N => N2: number, T => T2: text> {
        /// `at most N`: the maximum number of branches at once.
        at_most: Option<N> => number,
        /// `at least N`: the number of successful branches at which the `forall` succeeds.
        at_least: Option<N> => number,
        /// `output …`: the treatment of the branches' output.
        output: Option<OutputMode>,
        /// `keep going`: a failed branch does not end the other branches.
        keep_going: bool,
        /// `finish running`: after a failure no further branch begins, and the others finish.
        finish_running: bool,
        /// `on …`: the destination of the branches, unless they run on this machine.
        on: Option<On<T>> => [text],
        /// `retry lost N times`: the number of restarts of a lost branch.
        retry_lost: Option<N> => number,
        /// `while free N`: the available memory without which no further branch begins.
        while_free: Option<Size<T>> => [text],
        /// `while load N`: the load above which no further branch begins.
        while_load: Option<T> => text,
        /// `once in FILE`: the file that records the words of successful branches.
        once_in: Option<T> => text,
    }
}

impl<N, T> ForAllClauses<N, T> {
    /// Returns true if the failure of the `forall` counts those of its branches.
    pub fn is_counted(&self) -> bool {
        self.keep_going || self.finish_running || self.at_least.is_some()
    }
}
