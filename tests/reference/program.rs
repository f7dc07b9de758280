//! Random programs.

use std::fmt::Write;
use std::ops::Range;

use rand::rngs::ChaCha8Rng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use super::text::{block, command};
use super::tree::{
    Block, Command, Expr, ForAll, Form, Hold, Input, Name, Pace, Pattern, Piece, Try, Word,
};

pub(super) const NAMES: [&str; 4] = ["a", "b", "c", "d"];
/// Jumps of a loop.
const JUMPS: &[bool] = &[true, false];

/// Channel with places for all.
pub(super) const CHANNEL: &str = "wide";
/// Directory of `atomic in`, and a file there.
pub(super) const DIRECTORY: &str = "here";
pub(super) const FILE: &str = "here/file";

/// A program.
pub(super) struct Program {
    pub script: Block,
    pub functions: Vec<Block>,
    /// Number of functions in a file that the script uses, from the first.
    used: usize,
}

/// File that programs use.
pub(super) const USED: &str = "functions.ftsh";

impl Program {
    /// Generates the program of a seed.
    pub(super) fn random(seed: u64) -> Self {
        let mut random = Random {
            rng: ChaCha8Rng::seed_from_u64(seed),
            counters: 0,
            callable: 0,
            is_function: false,
            jumps: &[],
            leaves: true,
            returns: true,
        };
        // A function may call earlier functions, so there is no recursion.
        let functions = (0..3)
            .map(|number| {
                random.callable = number;
                random.is_function = true;
                let mut body = random.block(2);
                if random.rng.random_bool(0.5) {
                    body.insert(0, random.local());
                }
                if random.rng.random_bool(0.5) {
                    body.insert(0, random.parameters());
                }
                body
            })
            .collect();
        (random.callable, random.is_function) = (3, false);
        // Input, most of the time.
        let mut script = Block::new();
        if random.rng.random_bool(0.2) {
            script.push(Command::Args(["a", "b", "c"], "word"));
        }
        let assigned = NAMES.iter().filter(|_| random.rng.random_bool(0.8));
        let assigned =
            assigned.map(|name| Command::Assign(name, Expr::Word(vec![Piece::Text("1")])));
        script.extend(assigned);
        for _ in 0..8 {
            let part = random.block(3);
            if random.rng.random_bool(0.8) {
                script.push(contained(part));
            } else {
                script.extend(part);
            }
        }
        script.push(Command::Written);
        let used = random.of(&[0, 0, 1, 3]);
        Self { script, functions, used }
    }

    /// Returns the text of the program.
    pub(super) fn text(&self) -> String {
        let has_args = matches!(self.script.first(), Some(Command::Args(..)));
        let (args, rest) = self.script.split_at(usize::from(has_args));
        let uses = if self.used > 0 { format!("use {USED}\n") } else { String::new() };
        let own = self.functions_text(self.used..self.functions.len());
        let channel = if self.used > 0 { String::new() } else { channel() };
        format!("{}{uses}{channel}top=$(pwd)\n{}{own}", block(args), block(rest))
    }

    /// Returns the text of the file that the program uses.
    pub(super) fn used_text(&self) -> String {
        if self.used == 0 { String::new() } else { channel() + &self.functions_text(0..self.used) }
    }

    fn functions_text(&self, numbers: Range<usize>) -> String {
        let mut text = String::new();
        for number in numbers {
            let (head, body) = match &self.functions[number][..] {
                [head @ Command::Parameters(..), body @ ..] => (command(head), block(body)),
                body => (String::new(), block(body)),
            };
            let _ = write!(text, "function f{number}{head}\n{body}end\n");
        }
        text
    }
}

/// Returns the declaration of the channel.
fn channel() -> String {
    format!("channel {CHANNEL} at most 1000\n")
}

/// Wraps commands so that a failure is printed and the program continues.
fn contained(part: Block) -> Command {
    let tell = ["error_kind", "error_code"].map(|name| vec![Piece::Variable(name)]);
    Command::Try(Try {
        times: 1,
        pace: Pace::None,
        condition: None,
        hold: None,
        body: part,
        catch: Some(vec![Command::Echo(tell.into())]),
        finally: None,
    })
}

pub(super) struct Random {
    pub rng: ChaCha8Rng,
    counters: u32,
    /// Number of functions that may be called.
    pub callable: usize,
    /// True in the body of a function.
    is_function: bool,
    /// Jumps that the enclosing loop allows: `break`, or else `continue`.
    jumps: &'static [bool],
    /// True if the script or a function may end here.
    leaves: bool,
    /// True if `return` is allowed here.
    returns: bool,
}

impl Random {
    pub(super) fn of<T: Copy>(&mut self, all: &[T]) -> T {
        *all.choose(&mut self.rng).expect("something to choose from")
    }

    fn maybe<T>(&mut self, probability: f64, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.rng.random_bool(probability).then(|| make(self))
    }

    fn name(&mut self) -> Name {
        self.of(&NAMES)
    }

    fn block(&mut self, depth: u32) -> Block {
        (0..self.rng.random_range(1..4)).map(|_| self.command(depth)).collect()
    }

    /// Generates the body of a loop with the allowed jumps.
    fn body(&mut self, jumps: &'static [bool], depth: u32) -> Block {
        let around = std::mem::replace(&mut self.jumps, jumps);
        let body = self.block(depth);
        self.jumps = around;
        body
    }

    /// Generates the body of a branch, which allows these jumps even in a `finally`.
    fn branch(&mut self, depth: u32) -> Block {
        let leaves = std::mem::replace(&mut self.leaves, true);
        let body = self.body(&[], depth);
        self.leaves = leaves;
        body
    }

    /// Generates a stage of a pipeline, which only `exit` can leave, even in a `finally`.
    fn stage(&mut self, jumps: &'static [bool], depth: u32) -> Block {
        let leaves = std::mem::replace(&mut self.leaves, true);
        let returns = std::mem::replace(&mut self.returns, false);
        let body = self.body(jumps, depth);
        (self.leaves, self.returns) = (leaves, returns);
        body
    }

    /// Generates a block without any jump out of it, also in called functions.
    fn finally(&mut self, depth: u32) -> Block {
        let callable = std::mem::take(&mut self.callable);
        let leaves = std::mem::replace(&mut self.leaves, false);
        let block = self.body(&[], depth);
        (self.callable, self.leaves) = (callable, leaves);
        block
    }

    fn command(&mut self, depth: u32) -> Command {
        if depth > 0 && self.rng.random_bool(0.4) {
            return self.structure(depth - 1);
        }
        match self.rng.random_range(0..21) {
            19 => Command::List(self.name(), self.list(), true),
            20 => {
                let added = [self.word(), vec![Piece::Text("x")]].into();
                Command::List(self.name(), added, false)
            }
            0 if self.rng.random_bool(0.2) => Command::Where,
            1 if self.rng.random_bool(0.2) => Command::Line(self.name(), self.list(), self.words()),
            0..4 => Command::Echo(self.words()),
            4 if self.rng.random_bool(0.3) => {
                Command::Keep(Box::new(Command::Status(self.of(&[0, 1, 3]))))
            }
            4 => Command::Status(self.of(&[0, 1, 3])),
            5 if self.rng.random_bool(0.6) => {
                let inside = match self.callable {
                    0 => Command::Status(self.of(&[0, 1, 3])),
                    callable => Command::Call(self.rng.random_range(0..callable), self.words()),
                };
                Command::Accept(self.of(&[0, 1, 3]), Box::new(inside))
            }
            5 => Command::Missing,
            6 => Command::Show(self.name()),
            7 => Command::Pipe(self.words()),
            8 if self.rng.random_bool(0.3) => Command::Export(self.name(), self.expr(2)),
            8..11 => Command::Assign(self.name(), self.expr(2)),
            11 => match self.rng.random_range(0..if self.jumps.is_empty() { 6 } else { 10 }) {
                0 => Command::Unset(self.name()),
                1 => Command::Shift,
                2 => Command::Failure(self.maybe(0.5, Self::words).unwrap_or_default()),
                3 => Command::Giveup,
                4 | 5 if !self.leaves => Command::Giveup,
                4 => Command::Exit(self.of(&[0, 5])),
                5 if self.returns => Command::Return(self.maybe(0.7, |it| it.expr(1))),
                5 => Command::Exit(0),
                _ => Command::Jump(self.of(self.jumps)),
            },
            12 | 13 if self.callable > 0 => {
                Command::Call(self.rng.random_range(0..self.callable), self.words())
            }
            12..16 => {
                let inside = match self.rng.random_range(0..5) {
                    0 => Command::Show(self.name()),
                    1 => Command::Pipe(self.words()),
                    2 if self.callable > 0 => {
                        Command::Call(self.rng.random_range(0..self.callable), self.words())
                    }
                    _ => Command::Echo(self.words()),
                };
                self.captured(inside)
            }
            16 if self.is_function => self.local(),
            16 | 17 => {
                let value = self.rng.random_range(0..3).to_string();
                Command::Assign(self.name(), Expr::Word(vec![Piece::Text(value.leak())]))
            }
            _ => Command::Read(self.names(), self.input()),
        }
    }

    fn structure(&mut self, depth: u32) -> Command {
        match self.rng.random_range(0..24) {
            22 if self.rng.random_bool(0.5) => Command::With(self.block(depth)),
            22 => Command::In(self.block(depth)),
            23 => {
                let name = self.name();
                let inside = match self.rng.random_range(0..5) {
                    4 => Command::With(self.block(depth)),
                    0 => Command::In(self.block(depth)),
                    1 => Command::ForAny(name, self.list(), false, self.body(&[true], depth)),
                    // A redirection is around all parts.
                    2 => match self.for_all(depth) {
                        Command::ForAll(all) => Command::ForAll(ForAll { input: None, ..all }),
                        other => other,
                    },
                    _ => Command::For(name, self.list(), self.body(JUMPS, depth)),
                };
                let catch = self.maybe(0.7, |it| it.block(depth));
                let finally = self.maybe(0.4, |it| it.finally(depth));
                Command::Handled(Box::new(inside), catch, finally)
            }
            20 => Command::Limit(self.block(depth), self.maybe(0.5, |it| it.block(depth))),
            21 => {
                let by = self.maybe(0.4, |it| it.of(&[" ", "x", "1"]));
                let from = self.own_input();
                Command::Incoming(self.name(), by, from, self.body(JUMPS, depth))
            }
            19 => self.case(depth),
            0 => Command::If(self.condition(), self.block(depth), self.block(depth)),
            1 => {
                self.counters += 1;
                let name = format!("n{}", self.counters).leak();
                Command::Count(name, self.rng.random_range(0..3), self.body(JUMPS, depth))
            }
            2 => Command::For(self.name(), self.list(), self.body(JUMPS, depth)),
            3 => {
                let ends = [self.rng.random_range(-1..3), self.rng.random_range(0..3)];
                let step = self.maybe(0.5, |it| it.of(&[-2, -1, 0, 1, 2, 3]));
                Command::Range(self.name(), ends, step, self.body(JUMPS, depth))
            }
            4 if self.rng.random_bool(0.3) => {
                Command::Values(self.name(), self.expr(1), self.body(JUMPS, depth))
            }
            4 => Command::Lines(self.name(), self.expr(1), self.body(JUMPS, depth)),
            5 => {
                let separator = self.of(&[" ", "x", ", ", "1"]);
                Command::Split(self.name(), self.expr(1), separator, self.body(JUMPS, depth))
            }
            6 => Command::Reading(self.names(), self.name(), self.body(JUMPS, depth)),
            7 => {
                let is_atomic = self.rng.random_bool(0.2);
                let (name, words) = (self.name(), self.list());
                let body = if is_atomic { self.plain(false) } else { self.body(&[true], depth) };
                Command::ForAny(name, words, is_atomic, body)
            }
            8 => {
                let at_most = self.maybe(0.3, Self::amount);
                Command::Hedge(self.name(), self.list(), at_most, self.branch(depth))
            }
            9..12 => self.for_all(depth),
            12 => {
                let inside = self.structure(depth.max(1) - 1);
                match inside {
                    // One redirection is enough, and an atomic `try` has rules of its own for them.
                    Command::Try(Try { hold: Some(Hold::Output | Hold::Files), .. })
                    | Command::Reading(..)
                    | Command::Incoming(..)
                    | Command::ForAll(ForAll { input: Some(_), .. })
                    | Command::Capture(..)
                    | Command::Piped(_)
                    | Command::Fed(..) => inside,
                    inside => self.captured(inside),
                }
            }
            13 => Command::Piped(self.stage(&[], depth)),
            14 => Command::Fed(self.words(), self.names(), self.stage(JUMPS, depth)),
            _ => {
                let catch = self.maybe(0.8, |it| it.block(depth));
                let hold = self.maybe(0.4, |it| it.of(&[Hold::Input, Hold::Output, Hold::Files]));
                let body = if hold.is_some() { self.plain(true) } else { self.block(depth) };
                let finally = self.maybe(0.4, |it| it.finally(depth));
                let paces = [Pace::None, Pace::Every, Pace::Full, Pace::Normal, Pace::Through];
                let kinds = [(true, "exit"), (false, "exit"), (true, "failure"), (false, "signal")];
                Command::Try(Try {
                    times: self.rng.random_range(1..4),
                    pace: self.of(&paces),
                    condition: self.maybe(0.3, |it| it.of(&kinds)),
                    hold,
                    body,
                    catch,
                    finally,
                })
            }
        }
    }

    /// Generates an attempt without structures and calls. Others may undo its effects.
    fn plain(&mut self, reads: bool) -> Block {
        let commands =
            (0..self.rng.random_range(1..5)).map(|_| match self.rng.random_range(0..9) {
                0..3 => Command::Echo(self.words()),
                3 => Command::Status(self.of(&[0, 1, 3])),
                4 => Command::Failure(self.maybe(0.5, Self::words).unwrap_or_default()),
                5 => Command::Assign(self.name(), Expr::Word(self.word())),
                6 if reads => Command::Read(self.names(), Input::Inherited),
                _ => Command::Write(self.of(&["one", "two", "three"])),
            });
        commands.collect()
    }

    fn case(&mut self, depth: u32) -> Command {
        let value = self.expr(1);
        let arms = (0..self.rng.random_range(1..4)).map(|_| {
            let patterns = (0..self.rng.random_range(1..3)).map(|_| self.pattern()).collect();
            (patterns, self.block(depth))
        });
        let arms = arms.collect();
        Command::Case(value, arms, self.maybe(0.5, |it| it.block(depth)))
    }

    fn pattern(&mut self) -> Pattern {
        match self.rng.random_range(0..6) {
            0 => Pattern::Begins(self.name()),
            1 => Pattern::Ends(self.of(&["x", "1", ""])),
            2 => Pattern::Digit,
            _ => Pattern::Word(self.word()),
        }
    }

    /// Generates a structure whose branches mostly do not interfere with each other.
    fn for_all(&mut self, depth: u32) -> Command {
        let one = vec![Piece::Text("1")];
        let in_turn = self.rng.random_bool(0.5);
        let keep_going = self.rng.random_bool(0.5);
        let input = self.maybe(0.2, Self::own_input);
        let at_least = self.maybe(0.3, Self::amount).filter(|_| input.is_none());
        let is_atomic = self.rng.random_bool(0.15);
        let forms = [None, Some(Form::Grouped), Some(Form::InOrder), Some(Form::Tagged)];
        let (name, words) = (self.name(), self.list());
        let recorded = self.maybe(0.2, Self::name);
        let takes = recorded.filter(|_| keep_going && at_least.is_some());
        Command::ForAll(ForAll {
            name,
            words,
            once: recorded,
            input,
            at_most: if in_turn { Some(one) } else { self.maybe(0.3, Self::amount) },
            at_least,
            keep_going,
            finish_running: !keep_going && self.rng.random_bool(0.3),
            form: if in_turn { self.of(&forms) } else { Some(Form::InOrder) },
            takes,
            is_atomic,
            body: if is_atomic { self.plain(false) } else { self.branch(depth) },
        })
    }

    /// Returns a number in a clause.
    fn amount(&mut self) -> Word {
        let number = self.of(&["1", "2", "3", "a"]);
        vec![if number == "a" { Piece::Variable(self.name()) } else { Piece::Text(number) }]
    }

    fn local(&mut self) -> Command {
        Command::Local(self.name(), self.maybe(0.8, |it| it.expr(1)))
    }

    fn parameters(&mut self) -> Command {
        let mut names = NAMES.to_vec();
        let mut name = || names.pop();
        let required = (0..self.of(&[0, 1, 1, 2])).filter_map(|_| name()).collect();
        let optional = self.maybe(0.5, |_| ()).and_then(|()| name());
        let rest = self.maybe(0.8, |_| ()).and_then(|()| name());
        Command::Parameters(required, optional, rest)
    }

    fn names(&mut self) -> Vec<Name> {
        (0..self.of(&[1, 1, 2, 3])).map(|_| self.name()).collect()
    }

    fn input(&mut self) -> Input {
        match self.rng.random_range(0..3) {
            0 => Input::Inherited,
            1 => Input::Variable(self.name()),
            _ => Input::Line(self.word()),
        }
    }

    /// Generates an input that the surroundings do not have.
    fn own_input(&mut self) -> Input {
        if self.rng.random_bool(0.6) {
            Input::Variable(self.name())
        } else {
            Input::Line(self.word())
        }
    }

    fn captured(&mut self, inside: Command) -> Command {
        Command::Capture(Box::new(inside), self.name(), self.rng.random())
    }
}
