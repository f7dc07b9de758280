//! Instructions of a lowered script. The flat list lets a task stop and continue anywhere, also
//! inside an expression. Nesting uses no native stack.

use std::sync::Arc;

use crate::durations::learned::{LearnedLimit, LimitKey};
use crate::effect::DurationsOf;
use crate::values::Value;
use ftsh_syntax::Source;
use ftsh_syntax::ast::{
    AcceptedStatuses, ArgumentsDeclaration, BinaryOperator, FileTest, Name, Question, Redirect,
    Simple, Unit, Word,
};
use ftsh_syntax::backoff::{Clauses, PolicyKind};
use ftsh_syntax::clauses::{ChannelClauses, ForAllClauses, ForAnyClauses, TryClauses};
use ftsh_syntax::size::Size;

/// Index of an instruction in a [`Program`].
pub(crate) type Address = usize;

/// Lowered script.
#[derive(Debug)]
pub(crate) struct Program {
    /// Source text of the script.
    pub source: Arc<Source>,
    /// Instructions.
    pub code: Vec<Instruction>,
    /// Line of each instruction.
    pub lines: Vec<u32>,
    /// Address of each function.
    pub functions: Vec<(Name, Address)>,
    /// Channels declared by the script.
    pub channels: Vec<Name>,
    /// Addresses of the calls in words, sorted by their offsets in the source.
    pub calls: Vec<(usize, Address)>,
    /// Learned limits.
    pub learned: Vec<LearnedLimit>,
    /// True if functions may read `$error_output`, also those of files that the script uses.
    pub calls_read: bool,
}

impl Program {
    /// Iterates over the programs of the files that the script uses itself.
    pub(crate) fn used(&self) -> impl Iterator<Item = &Arc<Self>> {
        self.code.iter().filter_map(|instruction| match instruction {
            Instruction::Use(file) => file.as_ref(),
            _ => None,
        })
    }
}

/// One step of a program. "Pops" and "pushes" refer to the task's stack of values.
#[derive(Clone, Debug)]
pub(crate) enum Instruction {
    /// Pushes a value.
    Push(Value),
    /// Pushes the value of a word, unsplit.
    Operand(Word),
    /// Pushes the value of an argument: a list, or the value of a word, unsplit.
    Argument(Word),
    /// Pushes all words of an expansion.
    Words(Word),
    /// Pops a boolean and pushes its negation.
    Not,
    /// Pops a file name and pushes the result of the test.
    Test(FileTest),
    /// Pops two values and pushes the result.
    Binary {
        /// Operator.
        operator: BinaryOperator,
        /// True if written as a symbol.
        is_symbol: bool,
    },
    /// Pops the step, if there is one, and two bounds. Pushes the range.
    Range {
        /// True if there is a step.
        step: bool,
    },
    /// Jumps if the boolean on top of the stack equals the given one. Pops the boolean otherwise.
    ShortCircuit(bool, Address),
    /// Checks that the value on top of the stack is a boolean.
    Boolean,
    /// Pops arguments and calls a function, which pushes its result.
    Call {
        /// Name of the function.
        name: Name,
        /// Number of arguments.
        arguments: usize,
    },
    /// Pops the value of a call in a word, and returns to the instruction with the word.
    EndCall,
    /// Begins a command used as a condition, up to `EndProbe`. Success pushes `true`; an exit code
    /// that answers the question pushes `false` and jumps.
    BeginProbe(Question, Address),
    /// Ends a successful command used as a condition.
    EndProbe,
    /// Pushes a buffer for the standard output of the instructions up to `EndRedirect`.
    BeginOutput,
    /// Replaces the buffer on top of the stack by its text.
    OutputText,
    /// Runs a program, a function or a builtin.
    Command(Arc<Simple>),
    /// Begins a command that succeeds also with these statuses, up to `EndAccept` before the
    /// address.
    Accept(AcceptedStatuses, Address),
    /// Ends a successful command begun by `Accept`.
    EndAccept,
    /// Begins a command whose leftover processes belong to the script, up to `EndKeep`.
    Keep,
    /// Ends a successful command begun by `Keep`.
    EndKeep,
    /// Runs stages in parallel, then jumps. A single stage is the group of a `$(…)`, whose changes of variables stay inside.
    Pipeline {
        /// Address of each stage; true if its standard error goes into the pipe too.
        stages: Arc<[(Address, bool)]>,
        /// Address after the pipeline.
        end: Address,
    },
    /// Opens redirections for the instructions up to `EndRedirect`.
    Redirect(Arc<[Redirect]>),
    /// Ends `Redirect`.
    EndRedirect,
    /// Pops a directory and enters it, up to `EndIn`.
    In,
    /// Returns to the directory before `In`.
    EndIn,
    /// Begins a `with`, whose command of this name follows.
    With {
        /// Text of the command.
        name: Value,
        /// Number of stages of the command.
        stages: usize,
        /// Address of the group.
        body: Address,
        /// Address after the structure.
        end: Address,
    },
    /// Restores a variable at the end of the call.
    Local(Name),
    /// Pops a value into a variable.
    Assign(Name),
    /// Passes a variable to commands.
    Export(Name),
    /// Pops the values of words and makes a list of the words, or adds them to a list.
    List {
        /// Name of the variable.
        name: Name,
        /// Number of values.
        values: usize,
        /// True if the words are added.
        adds: bool,
    },
    /// Unsets a variable.
    Unset(Name),
    /// Pops the values of the rules and declares a channel.
    Channel(Arc<ChannelCode>),
    /// Runs a used file, to declare its channels. `None` if the file was used before.
    Use(Option<Arc<Program>>),
    /// Sets the variables of the script's arguments, which become the operands.
    Args(Arc<ArgumentsDeclaration>),
    /// Pops the number of arguments to shift.
    Shift,
    /// Returns from a function or a sourced file, or ends the script. Pops the value if there is
    /// one.
    Return {
        /// True if there is a value.
        value: bool,
    },
    /// Jumps to an address.
    Jump(Address),
    /// Leaves structures and jumps, for `break` and `continue`.
    JumpOut {
        /// Number of frames to leave.
        frames: usize,
        /// Target address.
        to: Address,
    },
    /// Pops a condition and jumps if the condition is false.
    Unless(Address),
    /// Pops the value on top of the stack if a pattern matches the value, and jumps otherwise.
    When {
        /// Patterns of the arm.
        patterns: Arc<[Word]>,
        /// Address after the arm.
        otherwise: Address,
    },
    /// Pops the value of a `case` that no pattern matches.
    Unmatched,
    /// Pops the items of the list and begins a `for`.
    For(Arc<Loop>),
    /// Takes the next item, or jumps after the last item.
    NextFor(Arc<Loop>),
    /// Pops the values of the clauses and the items; begins a `forany`.
    ForAny {
        /// Code of the loop.
        code: Arc<Loop>,
        /// Clauses of the loop.
        clauses: ForAnyClauses<DurationScale, ()>,
    },
    /// Ends a successful body of a `forany`.
    EndForAny,
    /// Checks the files of the task's branch, whose values are on the stack in this order. Then the
    /// body begins, or the branch is dispatched.
    Files {
        /// Number of values for `takes`.
        takes: usize,
        /// Number of values for `gives`.
        gives: usize,
    },
    /// Dispatches the task's branch to another machine, and ends as the branch ends there.
    Dispatch,
    /// Pops the values of the clauses and the items; runs branches in parallel.
    ForAll {
        /// Code of the loop.
        code: Arc<Loop>,
        /// Clauses of the loop.
        clauses: Box<ForAllClauses<(), ()>>,
        /// Address of `Dispatch`, for remote branches.
        dispatch: Address,
    },
    /// Ends a successful branch or stage.
    EndTask,
    /// Begins the values of the clauses, up to `Try`. A failure here fails the `try`.
    TryHead(Arc<TryCode>),
    /// Begins a `try` with a `finally` group.
    BeginFinally(Arc<FinallyCode>),
    /// Ends a `try` with a `finally` group, before the group.
    RunFinally,
    /// Ends a successful `finally` group.
    EndFinally,
    /// Pops the values of the clauses and begins a `try`.
    Try(Arc<TryCode>),
    /// Decides about another attempt by the condition of `while`, on top of the stack.
    TryAgain,
    /// Ends a successful body of a `try`.
    EndTry,
    /// Resolves the targets of the output of an atomic `try`, up to `EndRedirect`.
    Targets(Arc<[Redirect]>),
    /// Begins an attempt of an atomic `try`, or its `catch`.
    Atomic {
        /// True for an attempt.
        attempt: bool,
    },
    /// Begins an attempt whose standard error is kept.
    Tee,
    /// An attempt begins that reads the same standard input as the first one.
    SameInput,
    /// Cuts the output of the failed attempts before this one.
    TakeBack,
    /// Begins an attempt whose standard output is written when no other attempt follows.
    Hold,
    /// Begins a body of which nothing is left after its success.
    NoLeftovers,
    /// Ends a successful attempt or `catch` begun by one of the instructions from `Atomic` on.
    EndAtomic,
    /// Ends a successful `catch` block.
    EndCatch,
    /// Reads the durations of earlier attempts in a file that begins to run.
    Durations(DurationsOf),
}

/// Loop over a list of items.
#[derive(Debug)]
pub(crate) struct Loop {
    /// Variable of the loop.
    pub variable: Name,
    /// Number of the list's values on the stack.
    pub items: usize,
    /// True if its words come from standard input. The value on the stack is the text that ends each
    /// word, if there is one.
    pub is_input: bool,
    /// True if the body may end the loop before the last word, by `break` or `return`.
    pub ends_early: bool,
    /// Key of the delay by `hedge after usual`.
    pub usual: Option<LimitKey>,
    /// Address where a branch begins: at the values of `takes` and `gives`, or at the body.
    pub begin: Address,
    /// Address of the body.
    pub body: Address,
    /// Address after the loop.
    pub end: Address,
}

/// A `try`.
#[derive(Debug)]
pub(crate) struct TryCode {
    /// The line of the `try`.
    pub line: u32,
    /// True for `limit D`: a failure goes on as if there were no `try`.
    pub is_limit: bool,
    /// Scales of the clauses' values, pushed in this order.
    pub clauses: TryClauses<DurationScale, (), Size<()>, BackoffCode, ()>,
    /// Address of the `while` condition.
    pub condition: Option<Address>,
    /// Number of the values on the stack for the directories of `atomic in`, below those of the
    /// clauses.
    pub directories: usize,
    /// Channel of `through NAME`.
    pub through: Option<Name>,
    /// Key of the limit by `each usual`.
    pub usual: Option<LimitKey>,
    /// Address of the body.
    pub body: Address,
    /// Address and line of the `catch` block.
    pub catch: Option<(Address, u32)>,
    /// Address after the `try`.
    pub end: Address,
}

/// Declaration of a channel.
#[derive(Debug)]
pub(crate) struct ChannelCode {
    /// Name of the channel.
    pub name: Name,
    /// Scales of the rules' values, pushed in this order. The budget is a percentage.
    pub rules: ChannelClauses<DurationScale, ()>,
}

/// A `finally` group.
#[derive(Debug)]
pub(crate) struct FinallyCode {
    /// Line of the group.
    pub line: u32,
    /// Address of the group.
    pub at: Address,
    /// Address after the group.
    pub end: Address,
}

/// A `backoff` clause.
#[derive(Debug)]
pub(crate) struct BackoffCode {
    /// Kind of the policy.
    pub kind: PolicyKind,
    /// Scales of the values, pushed in this order. The jitter is a percentage.
    pub clauses: Clauses<DurationScale, ()>,
}

impl Loop {
    /// Returns the number of values on the stack for the clauses of a `forany`.
    pub(crate) fn forany_values(clauses: &ForAnyClauses<DurationScale, ()>) -> usize {
        let mut count = 0;
        clauses.map(&mut count, |count, _| *count += 1, |count, ()| *count += 1);
        count
    }

    /// Returns the number of values on the stack for the clauses of a `forall`.
    pub(crate) fn forall_values(clauses: &ForAllClauses<(), ()>) -> usize {
        let mut count = 0;
        clauses.map(&mut count, |count, ()| *count += 1, |count, ()| *count += 1);
        count
    }
}

impl ChannelCode {
    /// Returns the number of values on the stack for the rules.
    pub(crate) fn values(&self) -> usize {
        let mut count = 0;
        self.rules.map(&mut count, |count, _| *count += 1, |count, ()| *count += 1);
        count
    }
}

impl TryCode {
    /// Returns the number of values on the stack for the clauses.
    pub(crate) fn values(&self) -> usize {
        let mut count = 0;
        self.clauses.map(
            &mut count,
            |count, _| *count += 1,
            |count, ()| *count += 1,
            |count, _| *count += 1,
            |count, backoff| {
                backoff.clauses.map(count, |count, _| *count += 1, |count, ()| *count += 1);
            },
            |count, ()| *count += 1,
        );
        count
    }
}

/// Interpretation of a duration's value on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DurationScale {
    /// A number of units.
    Of(Unit),
    /// A text such as `5 minutes` or `1h30m`.
    Whole,
}
