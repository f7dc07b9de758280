//! Random programs.

use std::fmt::Write;

use rand::rngs::ChaCha8Rng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use super::text::block;
use super::tree::{Block, Command, Expr, Piece, Word};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const READ: [&str; 9] = ["a", "b", "c", "d", "1", "#", "attempt", "error_kind", "error_code"];
const BARE: [&str; 10] = ["x", "y", "0", "1", "7", "-3", "1.5", "2e-1", "true", "false"];
const QUOTED: [&str; 7] = ["", " ", "x y", "z\n", "\n", "2", "9223372036854775807"];
const OPERATORS: [&str; 13] = [
    ".eq.", ".ne.", ".lt.", ".le.", ".eql.", ".neql.", ".add.", ".sub.", ".mul.", ".div.", ".mod.",
    ".and.", ".or.",
];

/// A program.
pub struct Program {
    pub script: Block,
    pub functions: Vec<Block>,
}

impl Program {
    /// The program of this seed.
    pub fn random(seed: u64) -> Self {
        let mut random = Random {
            rng: ChaCha8Rng::seed_from_u64(seed),
            counters: 0,
            callable: 0,
            jumps: &[],
            leaves: true,
        };
        // A function calls those before it: there is no recursion.
        let functions = (0..3)
            .map(|number| {
                random.callable = number;
                let mut body = random.block(2);
                if random.rng.random_bool(0.5) {
                    body.insert(0, Command::Local(random.of(&NAMES), random.expr(1)));
                }
                body
            })
            .collect();
        random.callable = 3;
        // Something to read, most of the time.
        let mut script: Block = NAMES
            .iter()
            .filter(|_| random.rng.random_bool(0.8))
            .map(|name| Command::Assign(name, Expr::Word(vec![Piece::Text("1")])))
            .collect();
        for _ in 0..3 {
            script.extend(random.block(3));
        }
        Self { script, functions }
    }

    /// Its text.
    pub fn text(&self) -> String {
        let mut text = block(&self.script);
        for (number, body) in self.functions.iter().enumerate() {
            let _ = write!(text, "function f{number}\n{}end\n", block(body));
        }
        text
    }
}

struct Random {
    rng: ChaCha8Rng,
    counters: u32,
    callable: usize,
    /// What may be said of the loop around: `break`, or else `continue`.
    jumps: &'static [bool],
    /// Whether the script may end here, or a function.
    leaves: bool,
}

impl Random {
    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        *all.choose(&mut self.rng).expect("something to choose from")
    }

    fn block(&mut self, depth: u32) -> Block {
        (0..self.rng.random_range(1..4)).map(|_| self.command(depth)).collect()
    }

    /// The body of a loop, which these jumps may be about.
    fn body(&mut self, jumps: &'static [bool], depth: u32) -> Block {
        let around = std::mem::replace(&mut self.jumps, jumps);
        let body = self.block(depth);
        self.jumps = around;
        body
    }

    /// A block that nothing in it leaves, nor what it calls.
    fn finally(&mut self, depth: u32) -> Block {
        let callable = std::mem::take(&mut self.callable);
        let leaves = std::mem::replace(&mut self.leaves, false);
        let block = self.body(&[], depth);
        (self.callable, self.leaves) = (callable, leaves);
        block
    }

    fn command(&mut self, depth: u32) -> Command {
        let simple = 18;
        let kind = self.rng.random_range(0..if depth == 0 { simple } else { simple + 11 });
        match kind {
            0..4 => Command::Echo(self.words()),
            4 => Command::Status(self.of(&[0, 1, 3])),
            5 => Command::Missing,
            6 => Command::Show(self.of(&NAMES)),
            7 => Command::Pipe(self.words()),
            8..11 => Command::Assign(self.of(&NAMES), self.expr(2)),
            11 => match self.rng.random_range(0..if self.jumps.is_empty() { 6 } else { 10 }) {
                0 => Command::Unset(self.of(&NAMES)),
                1 => Command::Shift,
                2 => Command::Failure(self.words()),
                3 => Command::Giveup,
                4 | 5 if !self.leaves => Command::Giveup,
                4 => Command::Exit(self.of(&[0, 5])),
                5 => Command::Return(self.rng.random_bool(0.7).then(|| self.expr(1))),
                _ => Command::Jump(self.of(self.jumps)),
            },
            12 | 13 if self.callable > 0 => {
                Command::Call(self.rng.random_range(0..self.callable), self.words())
            }
            12..16 => {
                let inside = match self.rng.random_range(0..5) {
                    0 => Command::Show(self.of(&NAMES)),
                    1 => Command::Pipe(self.words()),
                    2 if self.callable > 0 => {
                        Command::Call(self.rng.random_range(0..self.callable), self.words())
                    }
                    _ => Command::Echo(self.words()),
                };
                self.captured(inside)
            }
            16 | 17 => {
                let value = self.rng.random_range(0..3).to_string();
                Command::Assign(self.of(&NAMES), Expr::Word(vec![Piece::Text(value.leak())]))
            }
            18 => Command::If(self.expr(2), self.block(depth - 1), self.block(depth - 1)),
            19 => {
                self.counters += 1;
                let name = format!("n{}", self.counters).leak();
                Command::Count(
                    name,
                    self.rng.random_range(0..3),
                    self.body(&[true, false], depth - 1),
                )
            }
            20 => Command::For(self.of(&NAMES), self.words(), self.body(&[true, false], depth - 1)),
            21 => {
                let (from, to) = (self.rng.random_range(-1..3), self.rng.random_range(0..3));
                Command::Range(self.of(&NAMES), from, to, self.body(&[true, false], depth - 1))
            }
            27 => {
                Command::Lines(self.of(&NAMES), self.expr(1), self.body(&[true, false], depth - 1))
            }
            28 => {
                let separator = self.of(&[" ", "x", ", ", "1"]);
                Command::Split(
                    self.of(&NAMES),
                    self.expr(1),
                    separator,
                    self.body(&[true, false], depth - 1),
                )
            }
            22 => Command::ForAny(self.of(&NAMES), self.words(), self.body(&[true], depth - 1)),
            23 => {
                let inside = self.command(depth - 1);
                match inside {
                    Command::If(..) | Command::For(..) | Command::ForAny(..) | Command::Try(..) => {
                        self.captured(inside)
                    }
                    inside => inside,
                }
            }
            _ => {
                let catch = self.rng.random_bool(0.8).then(|| self.block(depth - 1));
                let body = self.block(depth - 1);
                let finally = self.rng.random_bool(0.4).then(|| self.finally(depth - 1));
                Command::Try(self.rng.random_range(1..4), body, catch, finally)
            }
        }
    }

    fn captured(&mut self, inside: Command) -> Command {
        Command::Capture(Box::new(inside), self.of(&NAMES), self.rng.random())
    }

    fn words(&mut self) -> Vec<Word> {
        (0..self.rng.random_range(0..4)).map(|_| self.word()).collect()
    }

    fn word(&mut self) -> Word {
        let pieces = self.of(&[1, 1, 1, 2, 3]);
        (0..pieces).map(|_| self.piece(true)).collect()
    }

    fn piece(&mut self, outside: bool) -> Piece {
        match self.rng.random_range(0..if outside { 8 } else { 4 }) {
            0 if outside => Piece::Text(self.of(&BARE)),
            0 => Piece::Text(self.of(&QUOTED)),
            // Mostly what is set.
            1..4 if self.rng.random_bool(0.8) => Piece::Variable(self.of(&NAMES)),
            1..4 => Piece::Variable(self.of(&READ)),
            4 => Piece::Text(self.of(&BARE)),
            5 => Piece::Arguments,
            _ => Piece::Quoted((0..self.of(&[0, 1, 1, 2])).map(|_| self.piece(false)).collect()),
        }
    }

    fn expr(&mut self, depth: u32) -> Expr {
        match self.rng.random_range(0..if depth == 0 { 3 } else { 8 }) {
            0..3 => Expr::Word(self.word()),
            3 => Expr::Not(Box::new(self.expr(depth - 1))),
            5 if self.rng.random_bool(0.5) => {
                let function =
                    self.of(&["length", "lower", "upper", "trim", "basename", "stem", "suffix"]);
                Expr::Of(function, Box::new(self.expr(depth - 1)))
            }
            4 if self.callable > 0 => {
                let function = self.rng.random_range(0..self.callable);
                let count = self.rng.random_range(0..3);
                Expr::Call(function, (0..count).map(|_| self.expr(depth - 1)).collect())
            }
            _ => {
                let operator = self.of(&OPERATORS);
                let (left, right) = (self.expr(depth - 1), self.expr(depth - 1));
                Expr::Binary(operator, Box::new(left), Box::new(right))
            }
        }
    }
}
