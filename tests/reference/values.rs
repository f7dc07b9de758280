//! Random words and expressions.

use rand::RngExt;

use super::program::{NAMES, Random};
use super::tree::{Command, Expr, Piece, Word};

const READ: [&str; 12] = [
    "a",
    "b",
    "c",
    "d",
    "1",
    "#",
    "attempt",
    "slot",
    "error_kind",
    "error_code",
    "failed",
    "succeeded",
];
const BARE: [&str; 11] = ["x", "y", "0", "1", "7", "-3", "1.5", "2e-1", "true", "false", "x/y.b"];
const QUOTED: [&str; 7] = ["", " ", "x y", "z\n", "\n", "2", "9223372036854775807"];
const OPERATORS: [&str; 30] = [
    ".eq.",
    ".ne.",
    ".lt.",
    ".le.",
    ".gt.",
    ".ge.",
    ".eql.",
    ".neql.",
    ".add.",
    ".sub.",
    ".mul.",
    ".div.",
    ".mod.",
    ".pow.",
    ".and.",
    ".or.",
    ".contains.",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "+",
    "-",
    "*",
    "/",
    "%",
    "&&",
    "||",
];
pub(super) const COMPARISONS: [&str; 10] =
    [".lt.", ".le.", ".gt.", ".ge.", ".eql.", ".neql.", "<", "<=", ">", ">="];
pub(super) const CALCULATIONS: [&str; 11] =
    [".add.", ".sub.", ".mul.", ".div.", ".mod.", ".pow.", "+", "-", "*", "/", "%"];
const FUNCTIONS: [&str; 8] =
    ["length", "lower", "upper", "trim", "basename", "dirname", "stem", "suffix"];

const JSON_FILTERS: [&str; 4] = [".", "[.]", ". == 1", "type"];

impl Random {
    pub(super) fn words(&mut self) -> Vec<Word> {
        (0..self.rng.random_range(0..4)).map(|_| self.word()).collect()
    }

    /// Returns words, mostly several.
    pub(super) fn list(&mut self) -> Vec<Word> {
        let mut list = self.words();
        for _ in 0..self.rng.random_range(0..3) {
            list.push(vec![Piece::Text(self.of(&BARE))]);
        }
        list
    }

    pub(super) fn word(&mut self) -> Word {
        if self.rng.random_bool(0.06) {
            let name = self.of(&NAMES);
            if self.rng.random_bool(0.5) {
                return vec![Piece::Elements(name)];
            }
            let ends =
                [(); 2].map(|()| self.of(&[None, Some(1), Some(2), Some(-1), Some(-3), Some(9)]));
            return vec![Piece::Slice(name, ends[0], ends[1])];
        }
        let pieces = self.of(&[1, 1, 1, 2, 3]);
        (0..pieces).map(|_| self.piece(true)).collect()
    }

    fn piece(&mut self, outside: bool) -> Piece {
        if self.rng.random_bool(0.05) {
            let argument = Piece::Quoted(vec![self.piece(false)]);
            return Piece::Of(self.of(&FUNCTIONS), vec![argument]);
        }
        if self.rng.random_bool(0.03) {
            return Piece::Element(self.of(&NAMES), self.of(&[1, 2, -1, 3]));
        }
        match self.rng.random_range(0..if outside { 8 } else { 4 }) {
            0 if outside => Piece::Text(self.of(&BARE)),
            0 => Piece::Text(self.of(&QUOTED)),
            // Mostly variables that are set.
            1..4 if self.rng.random_bool(0.8) => Piece::Variable(self.of(&NAMES)),
            1..4 => Piece::Variable(self.of(&READ)),
            4 => Piece::Text(self.of(&BARE)),
            5 => Piece::Arguments,
            _ => Piece::Quoted((0..self.of(&[0, 1, 1, 2])).map(|_| self.piece(false)).collect()),
        }
    }

    pub(super) fn expr(&mut self, depth: u32) -> Expr {
        match self.rng.random_range(0..if depth == 0 { 3 } else { 8 }) {
            0..3 => Expr::Word(self.word()),
            _ if self.rng.random_bool(0.4) => self.number(depth),
            3 => Expr::Not(Box::new(self.expr(depth - 1))),
            5 if self.rng.random_bool(0.5) => {
                Expr::Of(self.of(&FUNCTIONS), Box::new(self.expr(depth - 1)))
            }
            6 if self.rng.random_bool(0.4) => {
                let value = Box::new(self.expr(depth - 1));
                match self.rng.random_range(0..6) {
                    5 => Expr::Newer(value, Box::new(self.expr(depth - 1))),
                    4 => Expr::Json(value, self.of(&JSON_FILTERS)),
                    0 => Expr::Digits(value),
                    1 => Expr::Succeeds(Box::new(self.question())),
                    _ => {
                        Expr::Replace(value, self.of(&["x", "y", "1"]), self.of(&["y", "xx", "0"]))
                    }
                }
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

    /// Returns an expression that is mostly logical.
    pub(super) fn condition(&mut self) -> Expr {
        if self.rng.random_bool(0.3) {
            return self.expr(2);
        }
        let texts = self.rng.random_bool(0.4);
        let operator =
            self.of(if texts { &[".eq.", ".ne.", ".contains.", "==", "!="] } else { &COMPARISONS });
        let operands = [(); 2].map(|()| if texts { self.quoted() } else { self.number(2) });
        let [left, right] = operands.map(Box::new);
        Expr::Binary(operator, left, right)
    }

    /// Returns an expression that is mostly a number.
    pub(super) fn number(&mut self, depth: u32) -> Expr {
        match self.rng.random_range(0..if depth == 0 { 3 } else { 6 }) {
            0 => Expr::Word(vec![Piece::Variable(self.of(&NAMES))]),
            1 | 2 => Expr::Word(vec![Piece::Text(self.of(&BARE[2..8]))]),
            3 => Expr::Of("length", Box::new(self.quoted())),
            _ => {
                let operator = self.of(&CALCULATIONS);
                let (left, right) = (self.number(depth - 1), self.number(depth - 1));
                Expr::Binary(operator, Box::new(left), Box::new(right))
            }
        }
    }

    fn quoted(&mut self) -> Expr {
        Expr::Word(vec![Piece::Quoted(vec![self.piece(false)])])
    }

    /// Returns a command for a condition.
    fn question(&mut self) -> Command {
        match self.rng.random_range(0..5) {
            0 => Command::Missing,
            1 => Command::Echo(self.words()),
            2 if self.callable > 0 => {
                Command::Call(self.rng.random_range(0..self.callable), self.words())
            }
            _ => Command::Status(self.of(&[0, 1, 3])),
        }
    }
}
