//! What operators compute.

use bstr::ByteSlice;
use regex::bytes::Regex;

use super::value::Value;
use crate::syntax::ast::BinaryOperator;

/// Computes `left operator right`; neither is a buffer.
///
/// # Errors
///
/// One line for people: a non-number, an overflow, a division by zero, a negative exponent, an
/// invalid regular expression.
pub fn binary<'v>(
    operator: BinaryOperator,
    left: &'v Value,
    right: &'v Value,
) -> Result<Value, String> {
    let compare = |holds: fn(&i64, &i64) -> bool| {
        Ok(Value::Boolean(holds(&left.integer()?, &right.integer()?)))
    };
    if let Some(error) = left.too_long().or_else(|| right.too_long()) {
        return Err(error);
    }
    let text = |value: &'v Value| value.text().unwrap_or_default();
    match operator {
        BinaryOperator::Eq => Ok(Value::Boolean(text(left) == text(right))),
        BinaryOperator::Ne => Ok(Value::Boolean(text(left) != text(right))),
        BinaryOperator::Contains => Ok(Value::Boolean(text(left).contains_str(&*text(right)))),
        BinaryOperator::Matches => {
            let pattern = text(right);
            let regex = str::from_utf8(&pattern)
                .ok()
                .and_then(|pattern| Regex::new(pattern).ok())
                .ok_or_else(|| format!("`{pattern}` is not a regular expression"))?;
            Ok(Value::Boolean(regex.is_match(&text(left))))
        }
        BinaryOperator::Eql => compare(i64::eq),
        BinaryOperator::Neql => compare(i64::ne),
        BinaryOperator::Lt => compare(i64::lt),
        BinaryOperator::Le => compare(i64::le),
        BinaryOperator::Gt => compare(i64::gt),
        BinaryOperator::Ge => compare(i64::ge),
        BinaryOperator::And => Ok(Value::Boolean(left.boolean()? && right.boolean()?)),
        BinaryOperator::Or => Ok(Value::Boolean(left.boolean()? || right.boolean()?)),
        BinaryOperator::Add
        | BinaryOperator::Sub
        | BinaryOperator::Mul
        | BinaryOperator::Div
        | BinaryOperator::Mod
        | BinaryOperator::Pow => {
            arithmetic(operator, left.integer()?, right.integer()?).map(Value::Integer)
        }
    }
}

fn arithmetic(operator: BinaryOperator, left: i64, right: i64) -> Result<i64, String> {
    let (name, result) = match operator {
        BinaryOperator::Div | BinaryOperator::Mod if right == 0 => {
            return Err(format!("{left} can't be divided by zero"));
        }
        BinaryOperator::Pow if right < 0 => {
            return Err(format!("{left} can't be raised to the negative power {right}"));
        }
        BinaryOperator::Sub => (".sub.", left.checked_sub(right)),
        BinaryOperator::Mul => (".mul.", left.checked_mul(right)),
        BinaryOperator::Div => (".div.", left.checked_div(right)),
        // The quotient may not fit; the remainder always does.
        BinaryOperator::Mod => (".mod.", Some(left.wrapping_rem(right))),
        BinaryOperator::Pow => (".pow.", power(left, right)),
        _ => (".add.", left.checked_add(right)),
    };
    result.ok_or_else(|| format!("{left} {name} {right} doesn't fit in 64 bits"))
}

fn power(base: i64, exponent: i64) -> Option<i64> {
    match base {
        0 | 1 if exponent > 0 => Some(base),
        -1 => Some(if exponent % 2 == 0 { 1 } else { -1 }),
        _ => base.checked_pow(u32::try_from(exponent).ok()?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compute(operator: BinaryOperator, left: &str, right: &str) -> Result<String, String> {
        binary(operator, &left.into(), &right.into())
            .map(|value| value.text().unwrap_or_default().to_string())
    }

    #[test]
    fn arithmetic_never_wraps_or_crashes() {
        use BinaryOperator::{Add, Div, Mod, Mul, Pow, Sub};
        let (max, min) = ("9223372036854775807", "-9223372036854775808");
        for (operator, left, right) in [
            (Add, max, "1"),
            (Sub, min, "1"),
            (Mul, max, "2"),
            (Div, min, "-1"),
            (Pow, "2", "63"),
            (Pow, "2", "99999999999"),
            (Pow, "2", "-1"),
            (Div, "1", "0"),
            (Mod, "1", "0"),
            (Add, "one", "1"),
            (Add, "99999999999999999999", "1"),
        ] {
            assert!(compute(operator, left, right).is_err(), "{left} {operator:?} {right}");
        }
        assert_eq!(compute(Pow, "-1", "9223372036854775807").as_deref(), Ok("-1"));
        assert_eq!(compute(Pow, "0", "0").as_deref(), Ok("1"));
        assert_eq!(compute(Mod, "-7", "3").as_deref(), Ok("-1"));
        assert_eq!(compute(Mod, min, "-1").as_deref(), Ok("0"));
    }

    #[test]
    fn text_compares_as_text_and_numbers_as_numbers() {
        use BinaryOperator::{Contains, Eq, Eql, Matches};
        assert_eq!(compute(Eq, "07", "7").as_deref(), Ok("false"));
        assert_eq!(compute(Eql, "07", " 7 ").as_deref(), Ok("true"));
        assert_eq!(compute(Contains, "abc", "bc").as_deref(), Ok("true"));
        assert_eq!(compute(Matches, "v1.2", r"^v\d+\.\d+$").as_deref(), Ok("true"));
        assert!(compute(Matches, "a", "(").is_err());
    }
}
