//! A second evaluator of the sequential core of the language: recursive, slow and obvious. It shares
//! nothing with the shell, not even the tree of a program.

mod expressions;
mod numbers;
mod words;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use self::numbers::{compute, truth, whole};
use super::tree::{Block, Command, Expr, Piece, Word};

/// Why a command isn't followed by the next one.
#[derive(Clone, Debug)]
enum Stop {
    Failed {
        kind: &'static str,
        code: i32,
        fatal: bool,
    },
    Exit(u8),
    Return(Option<String>),
    /// `break`, or else `continue`
    Jump(bool),
}

type Done<T = ()> = Result<T, Stop>;

fn failed(kind: &'static str, code: i32) -> Stop {
    Stop::Failed { kind, code, fatal: false }
}

/// What a variable holds.
#[derive(Clone)]
enum Value {
    Text(String),
    /// What commands wrote, and may still be writing.
    Written(Rc<RefCell<String>>),
}

/// The kind and the code of a failure; none of a success.
type Caught = Option<(&'static str, i32)>;

/// A run.
pub struct Model<'p> {
    functions: &'p [Block],
    variables: HashMap<&'static str, Value>,
    arguments: Vec<String>,
    output: Rc<RefCell<String>>,
    /// What local variables of the calls were before.
    locals: Vec<Vec<(&'static str, Option<Value>)>>,
    /// The numbers of the attempts around.
    attempts: Vec<u32>,
    /// What the `catch` blocks around have caught, and `finally` blocks come after.
    caught: Vec<Caught>,
    /// How many commands it may still run.
    patience: u32,
}

/// What a script with these functions prints, and its status; none if it takes long.
pub fn run(script: &Block, functions: &[Block], arguments: &[&str]) -> Option<(String, u8)> {
    let mut model = Model {
        functions,
        variables: HashMap::new(),
        arguments: arguments.iter().map(|argument| (*argument).into()).collect(),
        output: Rc::default(),
        attempts: Vec::new(),
        locals: Vec::new(),
        caught: Vec::new(),
        patience: 400,
    };
    let status = match model.block(script) {
        Ok(()) | Err(Stop::Return(_) | Stop::Jump(_)) => 0,
        Err(Stop::Exit(code)) => code,
        Err(Stop::Failed { code, .. }) => code.clamp(1, 255) as u8,
    };
    let output = model.output.borrow().clone();
    (model.patience > 0).then_some((output, status))
}

impl Model<'_> {
    fn block(&mut self, block: &Block) -> Done {
        block.iter().try_for_each(|command| self.command(command))
    }

    fn command(&mut self, command: &Command) -> Done {
        self.patience = self.patience.saturating_sub(1);
        if self.holds_much() {
            self.patience = 0;
        }
        if self.patience == 0 {
            return Err(Stop::Exit(0));
        }
        match command {
            Command::Echo(words) | Command::Pipe(words) => {
                let line = self.words(words)?.join(" ");
                self.print(&line);
                self.print("\n");
            }
            Command::Print(text) => self.print(text),
            Command::Status(0) => {}
            Command::Status(code) => return Err(failed("exit", i32::from(*code))),
            Command::Missing => return Err(failed("notfound", 127)),
            // cat refuses to copy a file to its own end.
            Command::Show(name) if self.is_output(name) => return Err(failed("exit", 1)),
            Command::Show(name) => self.print(&self.content(name)?),
            Command::Assign(name, expr) => {
                let text = match expr {
                    Expr::Word(word) => match &self.split(word)?[..] {
                        [word] => word.clone(),
                        _ => return Err(failed("expression", 1)),
                    },
                    expr => self.expr(expr)?,
                };
                self.variables.insert(name, Value::Text(text));
            }
            Command::Local(name, expr) => {
                let before = self.variables.get(name).cloned();
                self.command(&Command::Assign(name, expr.clone()))?;
                let locals = self.locals.last_mut().expect("it is in a function");
                locals.push((*name, before));
            }
            Command::Unset(name) => _ = self.variables.remove(name),
            Command::If(condition, yes, no) => {
                let taken = if truth(&self.expr(condition)?)? { yes } else { no };
                self.block(taken)?;
            }
            Command::Count(name, end, body) => {
                self.variables.insert(name, Value::Text("0".into()));
                while compute(".lt.", &self.named(name)?, &end.to_string())? == "true" {
                    let next = compute(".add.", &self.named(name)?, "1")?;
                    self.variables.insert(name, Value::Text(next));
                    if !self.goes_on(body)? {
                        break;
                    }
                }
            }
            Command::For(name, words, body) => {
                for word in self.words(words)? {
                    self.variables.insert(name, Value::Text(word));
                    if !self.goes_on(body)? {
                        break;
                    }
                }
            }
            Command::Lines(name, value, body) => {
                for line in self.expr(value)?.split_terminator('\n') {
                    self.variables.insert(name, Value::Text(line.into()));
                    if !self.goes_on(body)? {
                        break;
                    }
                }
            }
            Command::Split(name, value, separator, body) => {
                let text = self.expr(value)?;
                for piece in text.split(separator).filter(|_| !text.is_empty()) {
                    self.variables.insert(name, Value::Text(piece.into()));
                    if !self.goes_on(body)? {
                        break;
                    }
                }
            }
            Command::Range(name, from, to, body) => {
                for number in *from..=*to {
                    self.variables.insert(name, Value::Text(number.to_string()));
                    if !self.goes_on(body)? {
                        break;
                    }
                }
            }
            Command::ForAny(name, words, body) => {
                let mut result = Err(failed("expression", 1));
                for word in self.words(words)? {
                    self.variables.insert(name, Value::Text(word));
                    result = self.goes_on(body).map(|_| ());
                    if !matches!(result, Err(Stop::Failed { fatal: false, .. })) {
                        break;
                    }
                }
                return result;
            }
            Command::Try(times, body, catch, finally) => {
                let (result, caught) = self.attempts(*times, body, catch.as_ref());
                let Some(finally) = finally else { return result };
                self.caught.push(caught);
                let after = self.block(finally);
                self.caught.pop();
                // What had failed before counts.
                return match result {
                    Err(Stop::Failed { .. } | Stop::Exit(1..)) => result,
                    _ => after.and(result),
                };
            }
            Command::Capture(inside, name, append) => {
                let written = match self.variables.get(name) {
                    Some(Value::Written(written)) if *append => Rc::clone(written),
                    Some(Value::Text(text)) if *append => Rc::new(RefCell::new(text.clone())),
                    _ => Rc::default(),
                };
                // The words of a single command are expanded before its redirections are set up; of
                // a pipeline, that which fails doesn't keep the other stage from beginning.
                let ready = self.expanded(inside);
                if ready.is_ok() || matches!(**inside, Command::Pipe(_)) {
                    self.variables.insert(name, Value::Written(Rc::clone(&written)));
                }
                let ready = ready?;
                let before = std::mem::replace(&mut self.output, written);
                let result = self.command(&ready);
                self.output = before;
                return result;
            }
            Command::Call(function, words) => {
                let arguments = self.words(words)?;
                let value = self.call(*function, arguments)?;
                // A whole number other than 0 is the code of a failure.
                if let Some(Ok(code)) = value.as_deref().map(whole)
                    && code != 0
                {
                    return Err(failed(
                        "exit",
                        code.clamp(i32::MIN.into(), i32::MAX.into()) as i32,
                    ));
                }
            }
            Command::Return(value) => {
                let value = value.as_ref().map(|value| self.expr(value)).transpose()?;
                return Err(Stop::Return(value));
            }
            Command::Shift if self.arguments.is_empty() => return Err(failed("expression", 1)),
            Command::Shift => _ = self.arguments.remove(0),
            Command::Failure(words) => {
                return Err(match (self.words(words)?.is_empty(), self.caught.last()) {
                    (true, Some(Some((kind, code)))) => failed(kind, *code),
                    _ => failed("failure", 1),
                });
            }
            Command::Jump(over) => return Err(Stop::Jump(*over)),
            Command::Giveup => {
                return Err(Stop::Failed { kind: "giveup", code: 1, fatal: true });
            }
            Command::Exit(code) => return Err(Stop::Exit(*code)),
        }
        Ok(())
    }

    /// Whether a loop goes on after its body.
    fn goes_on(&mut self, body: &Block) -> Done<bool> {
        match self.block(body) {
            Err(Stop::Jump(over)) => Ok(!over),
            result => result.map(|()| true),
        }
    }

    /// Whether texts have grown so long, as by doubling, that the next ones may not fit into memory.
    fn holds_much(&self) -> bool {
        const MUCH: usize = 100_000;
        let values = self.variables.values().map(|value| match value {
            Value::Text(text) => text.len(),
            Value::Written(written) => written.borrow().len(),
        });
        let arguments = self.arguments.iter().map(String::len);
        values.chain(arguments).sum::<usize>() + self.output.borrow().len() > MUCH
    }

    /// What comes of attempts and `catch`, and what `finally` sees of it.
    fn attempts(&mut self, times: u32, body: &Block, catch: Option<&Block>) -> (Done, Caught) {
        for attempt in 1..=times {
            self.attempts.push(attempt);
            let result = self.block(body);
            self.attempts.pop();
            let Err(Stop::Failed { kind, code, fatal }) = result else { return (result, None) };
            if attempt < times && !fatal {
                continue;
            }
            let caught = Some((kind, code));
            let Some(catch) = catch else { return (Err(failed(kind, code)), caught) };
            self.caught.push(caught);
            let result = self.block(catch);
            self.caught.pop();
            return (result, caught);
        }
        (Ok(()), None)
    }

    /// A command whose words are nothing but text any more.
    fn expanded(&self, command: &Command) -> Done<Command> {
        let literal = |words: &[Word]| -> Done<Vec<Word>> {
            let words = self.words(words)?.into_iter();
            Ok(words.map(|word| vec![Piece::Text(word.leak())]).collect())
        };
        Ok(match command {
            Command::Echo(words) => Command::Echo(literal(words)?),
            Command::Pipe(words) => Command::Pipe(literal(words)?),
            Command::Show(name) => Command::Print(self.content(name)?),
            Command::Failure(words) => Command::Failure(literal(words)?),
            Command::Call(function, words) => Command::Call(*function, literal(words)?),
            block => block.clone(),
        })
    }

    fn call(&mut self, function: usize, arguments: Vec<String>) -> Done<Option<String>> {
        let before = std::mem::replace(&mut self.arguments, arguments);
        self.locals.push(Vec::new());
        let result = self.block(&self.functions[function]);
        self.arguments = before;
        for (name, before) in self.locals.pop().unwrap_or_default().into_iter().rev() {
            match before {
                Some(value) => self.variables.insert(name, value),
                None => self.variables.remove(name),
            };
        }
        match result {
            Err(Stop::Return(value)) => Ok(value),
            result => result.map(|()| None),
        }
    }

    fn print(&self, text: &str) {
        self.output.borrow_mut().push_str(text);
    }
}
