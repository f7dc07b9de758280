//! Numbers: 64-bit integers and decimals.

use bstr::ByteSlice;

use super::{value::Value, value_error::ValueError};
use ftsh_syntax::ast::BinaryOperator;

/// Operand of arithmetic and comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    /// Number without a point or an exponent.
    Whole(i64),
    /// Number with a point or an exponent; never a NaN or infinite.
    Decimal(f64),
}

impl Number {
    /// Converts a value to a number. Surrounding white space is allowed.
    pub(crate) fn of(value: &Value) -> Result<Self, ValueError> {
        match value {
            Value::Integer(whole) => return Ok(Self::Whole(*whole)),
            Value::Decimal(decimal) => return Ok(Self::Decimal(*decimal)),
            _ => {}
        }
        let text = value.number_text()?;
        let digits = text.as_bytes().trim_ascii();
        if !is_decimal(digits) {
            return match value.integer() {
                Ok(whole) => Ok(Self::Whole(whole)),
                Err(_) if !is_whole(digits) => Err(ValueError::NotANumber(text.into_owned())),
                Err(error) => Err(error),
            };
        }
        // Text with the form of a decimal always parses.
        let decimal = digits.to_str().ok().and_then(|digits| digits.parse().ok());
        let decimal = decimal.filter(|decimal: &f64| decimal.is_finite());
        decimal.map(Self::Decimal).ok_or_else(|| ValueError::TooLarge(text.into_owned()))
    }

    /// Returns the number as a decimal.
    pub(crate) fn decimal(self) -> f64 {
        match self {
            Self::Whole(whole) => whole as f64,
            Self::Decimal(decimal) => decimal,
        }
    }
}

impl From<Number> for Value {
    fn from(number: Number) -> Self {
        match number {
            Number::Whole(whole) => Self::Integer(whole),
            Number::Decimal(decimal) => Self::Decimal(decimal),
        }
    }
}

/// Returns true if a text has the form of an integer.
fn is_whole(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").or(text.strip_prefix(b"+")).unwrap_or(text);
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

/// Returns true if a text has the form of a number with a point or an exponent, such as `.5`, `2.`
/// or `1e-3`.
fn is_decimal(text: &[u8]) -> bool {
    let (base, exponent) = match text.iter().position(|byte| matches!(byte, b'e' | b'E')) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let digits = base.strip_prefix(b"-").or(base.strip_prefix(b"+")).unwrap_or(base);
    let (whole, fraction) = digits.split_once_str(b".").unwrap_or((digits, b""));
    let all_digits = |text: &[u8]| text.iter().all(u8::is_ascii_digit);
    let has_point = digits.len() > whole.len();
    whole.len() + fraction.len() > 0
        && all_digits(whole)
        && all_digits(fraction)
        && exponent.map_or(has_point, is_whole)
}

fn wholes(operator: BinaryOperator, left: i64, right: i64) -> Result<i64, ValueError> {
    let result = match operator {
        BinaryOperator::Div | BinaryOperator::Mod if right == 0 => {
            return Err(ValueError::DivisionByZero(left));
        }
        BinaryOperator::Pow if right < 0 => {
            return Err(ValueError::NegativePower { base: left, exponent: right });
        }
        BinaryOperator::Sub => left.checked_sub(right),
        BinaryOperator::Mul => left.checked_mul(right),
        BinaryOperator::Div => left.checked_div(right),
        // The quotient may overflow, but the remainder never does.
        BinaryOperator::Mod => Some(left.wrapping_rem(right)),
        BinaryOperator::Pow => power(left, right),
        _ => left.checked_add(right),
    };
    result.ok_or(ValueError::Overflow { left, operator, right, is_symbol: false })
}

fn power(base: i64, exponent: i64) -> Option<i64> {
    match base {
        0 | 1 if exponent > 0 => Some(base),
        -1 => Some(if exponent % 2 == 0 { 1 } else { -1 }),
        _ => base.checked_pow(u32::try_from(exponent).ok()?),
    }
}

fn decimals(operator: BinaryOperator, left: f64, right: f64) -> Result<f64, ValueError> {
    let result = match operator {
        BinaryOperator::Div | BinaryOperator::Mod if right == 0.0 => {
            return Err(ValueError::DecimalByZero(left));
        }
        BinaryOperator::Sub => left - right,
        BinaryOperator::Mul => left * right,
        BinaryOperator::Div => left / right,
        BinaryOperator::Mod => left % right,
        BinaryOperator::Pow => left.powf(right),
        _ => left + right,
    };
    match result {
        result if result.is_finite() => Ok(result),
        result if result.is_nan() => {
            Err(ValueError::Undefined { left, operator, right, is_symbol: false })
        }
        _ => Err(ValueError::Infinite { left, operator, right, is_symbol: false }),
    }
}

impl Number {
    /// Evaluates `left operator right` for a comparison of numbers.
    pub(crate) fn compare(operator: BinaryOperator, left: Self, right: Self) -> bool {
        let order = match (left, right) {
            (Self::Whole(left), Self::Whole(right)) => left.partial_cmp(&right),
            _ => left.decimal().partial_cmp(&right.decimal()),
        };
        order.is_some_and(|order| match operator {
            BinaryOperator::Neql => order.is_ne(),
            BinaryOperator::Lt => order.is_lt(),
            BinaryOperator::Le => order.is_le(),
            BinaryOperator::Gt => order.is_gt(),
            BinaryOperator::Ge => order.is_ge(),
            _ => order.is_eq(),
        })
    }
}

impl Number {
    /// Computes `left operator right` for an arithmetic operator.
    pub(crate) fn arithmetic(
        operator: BinaryOperator,
        left: Self,
        right: Self,
    ) -> Result<Self, ValueError> {
        match (left, right) {
            (Self::Whole(left), Self::Whole(right)) => {
                wholes(operator, left, right).map(Self::Whole)
            }
            _ => decimals(operator, left.decimal(), right.decimal()).map(Self::Decimal),
        }
    }
}

#[cfg(test)]
mod tests {
    use bstr::BString;

    use super::*;

    #[test]
    fn only_numbers_are_numbers() {
        for (text, number) in [
            ("1", Number::Whole(1)),
            (" -7 ", Number::Whole(-7)),
            ("1.5", Number::Decimal(1.5)),
            (".5", Number::Decimal(0.5)),
            ("2.", Number::Decimal(2.0)),
            ("-1e-3", Number::Decimal(-0.001)),
            ("1E3", Number::Decimal(1000.0)),
        ] {
            assert_eq!(Number::of(&BString::from(text).into()), Ok(number), "{text}");
        }
        for text in
            ["", ".", "-", "e5", ".e5", "1e", "1.2.3", "1e1.5", "inf", "NaN", "0x1", "1e999", "--1"]
        {
            assert!(Number::of(&BString::from(text).into()).is_err(), "{text}");
        }
    }

    #[test]
    fn a_decimal_reads_back() {
        for decimal in [0.1, 1e19, 1e-7, f64::MAX, f64::MIN_POSITIVE, 0.1 + 0.2, -1.5] {
            let text =
                Value::from(Number::Decimal(decimal)).text().unwrap_or_default().into_owned();
            assert_eq!(Number::of(&text.into()), Ok(Number::Decimal(decimal)));
        }
    }

    #[test]
    fn a_whole_decimal_has_no_point() {
        for (decimal, text) in [
            (7.0, "7"),
            (-0.0, "0"),
            (-2.0, "-2"),
            (1e16, "10000000000000000"),
            (9_223_372_036_854_775_808.0, "9.223372036854776e18"),
            (1e300, "1e300"),
        ] {
            let value = Value::from(Number::Decimal(decimal));
            assert_eq!(value.text().unwrap_or_default().as_ref(), text);
        }
    }
}
