//! What a task executes: a flat list of instructions, so that a task can stop and go on
//! anywhere, also inside an expression, and nesting costs no native stack.

use std::sync::Arc;

use crate::values::value::Value;
use ftsh_syntax::Source;
use ftsh_syntax::ast::{BinaryOperator, FileTest, Name, Redirect, Simple, Unit, Word};
use ftsh_syntax::backoff::{Clauses, Kind};
use ftsh_syntax::clauses::{ChannelClauses, ForAllClauses, ForAnyClauses, TryClauses};

/// A place in a [`Program`].
pub type Address = usize;

/// A script, ready to run.
#[derive(Debug)]
pub struct Program {
    /// The text it was made from.
    pub source: Arc<Source>,
    /// What to do.
    pub code: Vec<Instruction>,
    /// The line of each instruction.
    pub lines: Vec<u32>,
    /// Where each function begins.
    pub functions: Vec<(Name, Address)>,
    /// The channels that it declares.
    pub channels: Vec<Name>,
}

/// One step. "Pops" and "pushes" are about the task's stack of values.
#[derive(Clone, Debug)]
pub enum Instruction {
    /// Pushes a value.
    Push(Value),
    /// Pushes the value of a word, unsplit.
    Operand(Word),
    /// Pushes the one word that a word splits into, or fails.
    SingleWord(Word),
    /// Pushes all words that a word expands to.
    Words(Word),
    /// Pops a boolean, pushes its opposite.
    Not,
    /// Pops a file name, pushes whether it passes.
    Test(FileTest),
    /// Pops two, pushes one.
    Binary(BinaryOperator),
    /// Pops the step if there is one, and two ends; pushes the range.
    Range {
        /// Whether there is a step.
        step: bool,
    },
    /// Looks at the boolean on top: if it is the given one, jumps; else pops it.
    Decided(bool, Address),
    /// Checks that the top is a boolean.
    Boolean,
    /// Pops arguments, calls a function, which pushes what it returns.
    Call {
        /// The function.
        name: Name,
        /// How many arguments there are.
        arguments: usize,
    },
    /// What follows up to `Answer` is a question: succeeding pushes `true`, an exit code other than
    /// 0 pushes `false` and jumps.
    Question(Address),
    /// The question's command succeeded.
    Answer,
    /// Runs a command: a program, a function or a builtin.
    Command(Arc<Simple>),
    /// Runs stages, each at its address, side by side; then jumps.
    Pipeline {
        /// Where each stage begins, and whether its standard error goes into the pipe too.
        stages: Arc<[(Address, bool)]>,
        /// What comes after.
        end: Address,
    },
    /// Opens redirections for what follows up to `EndRedirect`.
    Redirect(Arc<[Redirect]>),
    /// Ends `Redirect`.
    EndRedirect,
    /// Has a variable be what it was, when the call ends.
    Local(Name),
    /// Pops a value into a variable.
    Assign(Name),
    /// Unsets a variable.
    Unset(Name),
    /// Pops the rules' values, and declares a channel.
    Channel(Arc<ChannelCode>),
    /// Pops how far to shift.
    Shift,
    /// Returns from a function or a sourced file, or ends the script; pops the value if there
    /// is one.
    Return {
        /// Whether there is a value.
        value: bool,
    },
    /// Goes on elsewhere.
    Jump(Address),
    /// `break`, `continue`: leaves structures, and goes on elsewhere.
    JumpOut {
        /// How many frames.
        frames: usize,
        /// Where.
        to: Address,
    },
    /// Pops a condition; jumps if it is false.
    Unless(Address),
    /// Pops this many items and begins `for`.
    For(Arc<Loop>),
    /// Takes the next item, or jumps.
    NextFor(Arc<Loop>),
    /// Pops the clauses' values and this many items; begins `forany`.
    ForAny {
        /// The loop.
        code: Arc<Loop>,
        /// Its clauses.
        clauses: ForAnyClauses<Scale, ()>,
    },
    /// A `forany` body succeeded.
    EndForAny,
    /// Sends the branch that the task is to another machine, and ends as it does there.
    Dispatch,
    /// Pops the clauses' values and the items; runs branches side by side.
    ForAll {
        /// The loop.
        code: Arc<Loop>,
        /// Its clauses.
        clauses: Box<ForAllClauses<(), ()>>,
        /// Where a branch is sent off that runs elsewhere.
        dispatch: Address,
    },
    /// Ends a branch or a stage that succeeded.
    EndTask,
    /// What follows up to `Try` are the clauses' values: failing there fails the `try`.
    TryHead(Arc<TryCode>),
    /// A `try` begins that has a `finally` group.
    Guard(Arc<FinallyCode>),
    /// That `try` is over.
    EndGuard,
    /// The `finally` group succeeded.
    EndFinally,
    /// Pops the clauses' values and begins a `try`.
    Try(Arc<TryCode>),
    /// The condition of `while` is on top: decides whether to try again.
    TryAgain,
    /// The body of a `try` succeeded.
    EndTry,
    /// Finds out where the output of an atomic `try` is to go, up to `EndRedirect`.
    Targets(Arc<[Redirect]>),
    /// An attempt of an atomic `try` begins, or its `catch`.
    Atomic {
        /// Whether it is an attempt.
        attempt: bool,
    },
    /// An attempt begins whose standard error is kept.
    Tee,
    /// It succeeded.
    EndAtomic,
    /// The `catch` block succeeded.
    EndCatch,
}

/// A loop over items.
#[derive(Debug)]
pub struct Loop {
    /// The loop variable.
    pub variable: Name,
    /// How many values its list has on the stack.
    pub items: usize,
    /// Where its body begins.
    pub body: Address,
    /// What comes after.
    pub end: Address,
}

/// A `try`.
#[derive(Debug)]
pub struct TryCode {
    /// The line of the `try`.
    pub line: u32,
    /// How to read its clauses' values, which were pushed in this order.
    pub clauses: TryClauses<Scale, (), BackoffCode>,
    /// Where the `while` condition begins.
    pub condition: Option<Address>,
    /// `through NAME`
    pub through: Option<Name>,
    /// Where the body begins.
    pub body: Address,
    /// Where the `catch` block begins, and its line.
    pub catch: Option<(Address, u32)>,
    /// What comes after.
    pub end: Address,
}

/// A channel's declaration.
#[derive(Debug)]
pub struct ChannelCode {
    /// The channel.
    pub name: Name,
    /// How to read its rules' values, which were pushed in this order; the budget is a percentage.
    pub rules: ChannelClauses<Scale, ()>,
}

/// A `finally` group.
#[derive(Debug)]
pub struct FinallyCode {
    /// Its line.
    pub line: u32,
    /// Where it begins.
    pub at: Address,
    /// What comes after.
    pub end: Address,
}

/// A `backoff` clause.
#[derive(Debug)]
pub struct BackoffCode {
    /// The policy.
    pub kind: Kind,
    /// How to read its values, which were pushed in this order; the jitter is a percentage.
    pub clauses: Clauses<Scale, ()>,
}

/// Returns the number of values on the stack for the clauses of a `forany`.
pub fn forany_values(clauses: &ForAnyClauses<Scale, ()>) -> usize {
    let mut count = 0;
    clauses.map(&mut count, |count, _| *count += 1, |count, ()| *count += 1);
    count
}

/// Returns the number of values on the stack for the clauses of a `forall`.
pub fn forall_values(clauses: &ForAllClauses<(), ()>) -> usize {
    let mut count = 0;
    clauses.map(&mut count, |count, ()| *count += 1, |count, ()| *count += 1);
    count
}

impl ChannelCode {
    /// How many values its rules have on the stack.
    pub fn values(&self) -> usize {
        let mut count = 0;
        self.rules.map(&mut count, |count, _| *count += 1, |count, ()| *count += 1);
        count
    }
}

impl TryCode {
    /// How many values its clauses have on the stack.
    pub fn values(&self) -> usize {
        let mut count = 0;
        self.clauses.map(
            &mut count,
            |count, _| *count += 1,
            |count, ()| *count += 1,
            |count, backoff| {
                backoff.clauses.map(count, |count, _| *count += 1, |count, ()| *count += 1);
            },
        );
        count
    }
}

/// How a duration's value on the stack is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// As a number of these.
    Of(Unit),
    /// As `1h30m`.
    Joined,
}
