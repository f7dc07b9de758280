//! Why a value isn't what an operator or a clause needs.

use bstr::BString;
use thiserror::Error;

use ftsh_syntax::ast::BinaryOperator;

/// What is wrong with a value, or with what is to be computed of it.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ValueError {
    /// A range of so many numbers as text.
    #[error("a range of {0} numbers is too long for one value; use it in a for list")]
    LongRange(u64),
    /// There is no memory for the text of a range of so many numbers.
    #[error("there is too little memory for {0} numbers")]
    NoMemory(u64),
    /// There is no memory for a text of this many bytes.
    #[error("there is too little memory for {0} bytes")]
    NoRoom(usize),
    /// More digits than an integer has.
    #[error("{0} doesn't fit in 64 bits")]
    TooManyDigits(BString),
    /// No digits.
    #[error("`{0}` is not an integer")]
    NotAnInteger(BString),
    /// No digits, nor a decimal.
    #[error("`{0}` is not a number")]
    NotANumber(BString),
    /// More than a decimal can be.
    #[error("{0} is too large for a number")]
    TooLarge(BString),
    /// Neither `true` nor `false`.
    #[error("`{0}` is neither true nor false")]
    NotABoolean(BString),
    /// A pattern that isn't one.
    #[error("`{0}` is not a regular expression")]
    NotAPattern(BString),
    /// Nothing matches this pattern.
    #[error("nothing matches `{0}`")]
    NoMatch(BString),
    /// A group that a pattern doesn't have.
    #[error("the regular expression has no group `{0}`")]
    NoGroup(String),
    /// Splitter without anything between them.
    #[error("split needs a separator: `split($text, \",\")`")]
    NoSeparator,
    /// One word is needed, and a text has none.
    #[error("exactly one word is needed here, but there is none")]
    NoWord,
    /// One word is needed, and a text has more.
    #[error(
        "exactly one word is needed here, but there are several: \
         `lines` and `split` are for a loop's list"
    )]
    SeveralWords,
    /// The numbers from one to another that is less.
    #[error("there is no whole number from {0} to {1}")]
    NoneBetween(i64, i64),
    /// A range that would never end.
    #[error("a range can't have step 0")]
    NoStep,
    /// A division of this by zero.
    #[error("{0} can't be divided by zero")]
    DivisionByZero(i64),
    /// A division of this decimal by zero.
    #[error("{0:?} can't be divided by zero")]
    DecimalByZero(f64),
    /// A power that is no integer.
    #[error("{base} can't be raised to the negative power {exponent}; {base}.0 can")]
    NegativePower {
        /// What is raised.
        base: i64,
        /// To what.
        exponent: i64,
    },
    /// Decimals without a result.
    #[error("{left:?} {} {right:?} is no number", .operator.spelling())]
    Undefined {
        /// The left operand.
        left: f64,
        /// The operator.
        operator: BinaryOperator,
        /// The right operand.
        right: f64,
    },
    /// Decimals with a result that is too large.
    #[error("{left:?} {} {right:?} is too large for a number", .operator.spelling())]
    Infinite {
        /// The left operand.
        left: f64,
        /// The operator.
        operator: BinaryOperator,
        /// The right operand.
        right: f64,
    },
    /// A result that is too large.
    #[error("{left} {} {right} doesn't fit in 64 bits", .operator.spelling())]
    Overflow {
        /// The left operand.
        left: i64,
        /// The operator.
        operator: BinaryOperator,
        /// The right operand.
        right: i64,
    },
}
