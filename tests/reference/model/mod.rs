//! A second evaluator of the language: recursive, slow and obvious. It shares no code with the
//! shell, not even the syntax tree. The evaluator does not model speed.

mod branches;
mod commands;
mod expressions;
mod input;
mod json;
mod loops;
mod numbers;
mod stages;
mod tries;
mod words;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use self::input::Reader;
use super::tree::{Block, Name};

/// Reason why execution does not continue with the next command.
#[derive(Clone, Debug)]
enum Stop {
    Failed(Failure),
    Exit(u8),
    Return(Option<String>),
    /// `break`, or else `continue`
    Jump(bool),
}

/// A failure.
#[derive(Clone, Debug)]
struct Failure {
    kind: &'static str,
    code: i32,
    /// True if no further attempt can help.
    fatal: bool,
    /// `$failed` and `$succeeded` of a `forall`.
    words: Option<[Vec<String>; 2]>,
}

type Done<T = ()> = Result<T, Stop>;

fn failed(kind: &'static str, code: i32) -> Stop {
    Stop::Failed(Failure { kind, code, fatal: false, words: None })
}

/// Output of commands that others read meanwhile.
type Written = Rc<RefCell<String>>;

/// Content of a variable.
#[derive(Clone)]
enum Value {
    Text(String),
    List(Vec<String>),
    /// Output of commands that may still be writing, with the depth of their branch.
    Written(Written, usize),
}

/// Way in which output of failed attempts is taken back.
#[derive(Clone, Copy, PartialEq)]
enum TakenBack {
    /// Another attempt begins with an empty variable.
    Cut,
    /// The output of an attempt is written when no other follows.
    Held,
}

/// State of a run.
pub(super) struct Model<'p> {
    functions: &'p [Block],
    variables: HashMap<Name, Value>,
    arguments: Vec<String>,
    input: Reader,
    output: Written,
    /// Earlier values of the local variables of calls.
    locals: Vec<Vec<(Name, Option<Value>)>>,
    /// Numbers of the enclosing attempts.
    attempts: Vec<u32>,
    /// True in a branch with the slot 1; false in a branch with another slot; none elsewhere.
    slot: Option<bool>,
    /// Failures handled by enclosing `catch` and `finally` blocks; none after a success.
    caught: Vec<Option<Failure>>,
    /// Number of enclosing branches.
    level: usize,
    /// Variables that enclosing branches write to later.
    held: Vec<Written>,
    /// Words that files of `once in` record.
    recorded: HashMap<Name, Vec<String>>,
    /// Way in which the next structure takes back output of its failed attempts.
    taken_back: Option<TakenBack>,
    /// Content of the file in the directory of `atomic in`.
    file: String,
    /// True in the directory of `in`.
    is_inside: bool,
    /// Remaining number of commands.
    patience: u32,
    /// True if the result so far is certain.
    certain: Cell<bool>,
}

/// Returns the output and the status of a script with functions. Returns none for a long run, and
/// for a run with several valid results.
pub(super) fn run(script: &Block, functions: &[Block], arguments: &[&str]) -> Option<(String, u8)> {
    let mut model = Model {
        functions,
        variables: HashMap::new(),
        arguments: arguments.iter().map(|argument| (*argument).into()).collect(),
        input: Reader::default(),
        output: Rc::default(),
        locals: Vec::new(),
        attempts: Vec::new(),
        slot: None,
        caught: Vec::new(),
        level: 0,
        held: Vec::new(),
        recorded: HashMap::new(),
        taken_back: None,
        file: String::new(),
        is_inside: false,
        patience: 800,
        certain: Cell::new(true),
    };
    let status = match model.block(script) {
        Ok(()) | Err(Stop::Jump(_)) => 0,
        Err(Stop::Return(value)) => branches::status(value.as_deref()),
        Err(Stop::Exit(code)) => code,
        Err(Stop::Failed(failure)) => failure.code.clamp(1, 255) as u8,
    };
    let output = model.output.borrow().clone();
    (model.patience > 0 && model.certain.get()).then_some((output, status))
}
