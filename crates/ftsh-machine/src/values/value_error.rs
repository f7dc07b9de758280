//! Errors of operators and conversions of values.

use bstr::{BString, ByteSlice};
use thiserror::Error;

use super::suspend::Suspend;
use ftsh_syntax::ast::BinaryOperator;
use ftsh_syntax::parse::literal;
use ftsh_syntax::slug::Slug;

/// Error of an operator or a conversion of a value.
#[derive(Clone, Debug, PartialEq, Error)]
pub(crate) enum ValueError {
    /// A range with too many numbers for a text.
    #[error("a range of {0} numbers is too long for one value; use it in a for list")]
    LongRange(u64),
    /// Not enough memory for the text of a range with this many numbers.
    #[error("there is too little memory for {0} numbers")]
    NoMemory(u64),
    /// Not enough memory for a text of this many bytes.
    #[error("there is too little memory for {0} bytes")]
    NoRoom(usize),
    /// An integer with more than 64 bits.
    #[error("{0} doesn't fit in 64 bits")]
    TooManyDigits(BString),
    /// A text that is not an integer.
    #[error("{} is not an integer", quoted(.0))]
    NotAnInteger(BString),
    /// A text that is neither an integer nor a decimal.
    #[error("{} is not a number{}", quoted(.0), advice(.0))]
    NotANumber(BString),
    /// A list of this many elements in place of a number.
    #[error("a list of {0} elements is not a number")]
    NumberOfList(usize),
    /// A number beyond the range of decimals.
    #[error("{0} is too large for a number")]
    TooLarge(BString),
    /// Neither `true` nor `false`.
    #[error("{} is neither true nor false{}", quoted(.0), comparison(.0))]
    NotABoolean(BString),
    /// A text that is not a regular expression.
    #[error("`{0}` is not a regular expression")]
    NotAPattern(BString),
    /// A pattern without a match.
    #[error("nothing matches `{0}`")]
    NoMatch(BString),
    /// A group missing in a pattern.
    #[error("the regular expression has no group `{0}`")]
    NoGroup(String),
    /// An empty separator.
    #[error("split needs a separator: `split($text, \",\")`")]
    NoSeparator,
    /// A text without words where one word is needed.
    #[error("exactly one word is needed here, but there is none")]
    NoWord,
    /// A text with several words where one word is needed.
    #[error(
        "exactly one word is needed here, but there are several: \
         `lines`, `split`, `json` and `files` are for a loop's list"
    )]
    SeveralWords,
    /// An empty interval of integers.
    #[error("there is no whole number from {0} to {1}")]
    NoneBetween(i64, i64),
    /// A range with step 0, which would never end.
    #[error("a range can't have step 0")]
    NoStep,
    /// A division of an integer by zero.
    #[error("{0} can't be divided by zero")]
    DivisionByZero(i64),
    /// A division of a decimal by zero.
    #[error("{0:?} can't be divided by zero")]
    DecimalByZero(f64),
    /// An integer with a negative exponent.
    #[error("{base} can't be raised to the negative power {exponent}; {base}.0 can")]
    NegativePower {
        /// Base of the power.
        base: i64,
        /// Exponent of the power.
        exponent: i64,
    },
    /// Decimals with an undefined result.
    #[error("{left:?} {} {right:?} is not a number", .operator.written(*.is_symbol))]
    Undefined {
        /// The left operand.
        left: f64,
        /// The operator.
        operator: BinaryOperator,
        /// True if the operator was written as a symbol.
        is_symbol: bool,
        /// The right operand.
        right: f64,
    },
    /// Decimals with an infinite result.
    #[error("{left:?} {} {right:?} is too large for a number", .operator.written(*.is_symbol))]
    Infinite {
        /// The left operand.
        left: f64,
        /// The operator.
        operator: BinaryOperator,
        /// True if the operator was written as a symbol.
        is_symbol: bool,
        /// The right operand.
        right: f64,
    },
    /// Integers with a result of more than 64 bits.
    #[error("{left} {} {right} doesn't fit in 64 bits", .operator.written(*.is_symbol))]
    Overflow {
        /// The left operand.
        left: i64,
        /// The operator.
        operator: BinaryOperator,
        /// True if the operator was written as a symbol.
        is_symbol: bool,
        /// The right operand.
        right: i64,
    },
}

/// Quotes a text of one line.
fn quoted(text: &BString) -> String {
    match text.lines().count() {
        0 | 1 => format!("`{text}`"),
        lines => format!("a text of {lines} lines"),
    }
}

/// Returns advice for a version in place of a number, such as `1.2.3`.
fn advice(text: &BString) -> &'static str {
    let is_of = |separator| text.split_str(separator).count() > 2 && text[0].is_ascii_digit();
    match (is_of("."), is_of("-")) {
        (true, _) => "; `newer` compares versions",
        (false, true) => "; `newer` compares dates like this one",
        (false, false) => "",
    }
}

/// Returns the question that a number in place of a boolean was meant for.
fn comparison(text: &BString) -> String {
    let is_number = text.to_str().ok().and_then(literal::number).is_some();
    if is_number { format!("; compare the number: `{text} != 0`") } else { String::new() }
}

impl ValueError {
    /// Shows the operator as a symbol if it was written as one.
    pub(crate) fn written(mut self, symbol: bool) -> Self {
        if let Self::Undefined { is_symbol, .. }
        | Self::Infinite { is_symbol, .. }
        | Self::Overflow { is_symbol, .. } = &mut self
        {
            *is_symbol = symbol;
        }
        self
    }

    /// Returns the slug of the message.
    pub(crate) fn slug(&self) -> Slug {
        match self {
            Self::LongRange(_) => Slug::LargeValue,
            Self::NoMemory(_) | Self::NoRoom(_) => Slug::NoMemory,
            Self::NotAnInteger(_) | Self::NotANumber(_) | Self::NumberOfList(_) => Slug::NotANumber,
            Self::TooManyDigits(_)
            | Self::TooLarge(_)
            | Self::Infinite { .. }
            | Self::Overflow { .. } => Slug::Overflow,
            Self::NotABoolean(_) => Slug::NotABoolean,
            Self::NotAPattern(_) => Slug::RegularExpression,
            Self::NoMatch(_) => Slug::NoMatch,
            Self::NoGroup(_) => Slug::NoGroup,
            Self::NoSeparator => Slug::EmptySeparator,
            Self::NoWord | Self::SeveralWords => Slug::WordCount,
            Self::NoneBetween(..) => Slug::EmptyInterval,
            Self::NoStep => Slug::ZeroStep,
            Self::DivisionByZero(_) | Self::DecimalByZero(_) => Slug::DivisionByZero,
            Self::NegativePower { .. } => Slug::NegativePower,
            Self::Undefined { .. } => Slug::UndefinedResult,
        }
    }
}

impl From<ValueError> for Suspend {
    fn from(error: ValueError) -> Self {
        Self::expression(error.slug(), error)
    }
}
