//! A second evaluator of the language: recursive, slow and obvious. It shares nothing with the shell,
//! not even the tree of a program. What depends on who is faster it doesn't know.

mod branches;
mod commands;
mod expressions;
mod input;
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

/// Why a command isn't followed by the next one.
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
    /// Whether no attempt more can help.
    fatal: bool,
    /// Of a `forall`: `$failed` and `$succeeded`.
    words: Option<[String; 2]>,
}

type Done<T = ()> = Result<T, Stop>;

fn failed(kind: &'static str, code: i32) -> Stop {
    Stop::Failed(Failure { kind, code, fatal: false, words: None })
}

/// What commands write, and others read meanwhile.
type Written = Rc<RefCell<String>>;

/// What a variable holds.
#[derive(Clone)]
enum Value {
    Text(String),
    /// What commands wrote, and may still be writing; and in which branch, counted from the script's own
    /// level.
    Written(Written, usize),
}

/// A run.
pub struct Model<'p> {
    functions: &'p [Block],
    variables: HashMap<Name, Value>,
    arguments: Vec<String>,
    input: Reader,
    output: Written,
    /// What local variables of the calls were before.
    locals: Vec<Vec<(Name, Option<Value>)>>,
    /// The numbers of the attempts around.
    attempts: Vec<u32>,
    /// What the `catch` blocks around have caught, and `finally` blocks come after; none is a success.
    caught: Vec<Option<Failure>>,
    /// How many branches are around.
    level: usize,
    /// What branches around write to, later.
    held: Vec<Written>,
    /// How many commands it may still run.
    patience: u32,
    /// Whether all so far had to be like this.
    certain: Cell<bool>,
}

/// What a script with these functions prints, and its status; none if it takes long, or if it is a matter
/// of luck.
pub fn run(script: &Block, functions: &[Block], arguments: &[&str]) -> Option<(String, u8)> {
    let mut model = Model {
        functions,
        variables: HashMap::new(),
        arguments: arguments.iter().map(|argument| (*argument).into()).collect(),
        input: Reader::default(),
        output: Rc::default(),
        locals: Vec::new(),
        attempts: Vec::new(),
        caught: Vec::new(),
        level: 0,
        held: Vec::new(),
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
