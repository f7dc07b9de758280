//! Evaluation of operators.

use bstr::{BStr, ByteSlice};
use regex::bytes::Regex;

use crate::values::{Number, Subject, Value, ValueError};
use ftsh_syntax::ast::BinaryOperator;

/// Computes `left operator right`. Neither operand is a buffer.
pub(crate) fn binary<'v>(
    operator: BinaryOperator,
    left: &'v Value,
    right: &'v Value,
) -> Result<Value, ValueError> {
    if let Some(error) = left.not_text().or_else(|| right.not_text()) {
        return Err(error);
    }
    let text = |value: &'v Value| value.text().unwrap_or_default();
    match operator {
        BinaryOperator::Eq => Ok(Value::Boolean(text(left) == text(right))),
        BinaryOperator::Ne => Ok(Value::Boolean(text(left) != text(right))),
        BinaryOperator::Contains => Ok(Value::Boolean(text(left).contains_str(&*text(right)))),
        BinaryOperator::Matches => {
            let pattern = text(right);
            let (regex, subject) = (regex(&pattern)?, Subject::new(text(left), &pattern)?);
            Ok(Value::Boolean(regex.is_match(subject.searched())))
        }
        BinaryOperator::Eql
        | BinaryOperator::Neql
        | BinaryOperator::Lt
        | BinaryOperator::Le
        | BinaryOperator::Gt
        | BinaryOperator::Ge => {
            let (left, right) = (Number::of(left)?, Number::of(right)?);
            Ok(Value::Boolean(Number::compare(operator, left, right)))
        }
        BinaryOperator::And => Ok(Value::Boolean(left.boolean()? && right.boolean()?)),
        BinaryOperator::Or => Ok(Value::Boolean(left.boolean()? || right.boolean()?)),
        BinaryOperator::Add
        | BinaryOperator::Sub
        | BinaryOperator::Mul
        | BinaryOperator::Div
        | BinaryOperator::Mod
        | BinaryOperator::Pow => {
            Number::arithmetic(operator, Number::of(left)?, Number::of(right)?).map(Value::from)
        }
    }
}

/// Compiles a regular expression.
///
/// # Errors
///
/// One line for people, if the pattern is invalid.
pub(crate) fn regex(pattern: &BStr) -> Result<Regex, ValueError> {
    let regex = pattern.to_str().ok().and_then(|pattern| Regex::new(pattern).ok());
    regex.ok_or_else(|| ValueError::NotAPattern(pattern.to_owned()))
}

#[cfg(test)]
mod tests {
    use bstr::BString;

    use super::*;

    fn compute(operator: BinaryOperator, left: &str, right: &str) -> Result<String, ValueError> {
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
    fn a_point_makes_decimals() {
        use BinaryOperator::{Add, Div, Eql, Ge, Lt, Mod, Mul, Pow, Sub};
        for (operator, left, right, result) in [
            (Mul, "3.5", "2", "7"),
            (Div, "7", "2", "3"),
            (Div, "7.0", "2", "3.5"),
            (Add, "0.1", "0.2", "0.30000000000000004"),
            (Sub, "1e3", "1", "999"),
            (Mod, "7.5", "2", "1.5"),
            (Pow, "2.0", "-1", "0.5"),
            (Mul, "1e10", "1e10", "1e20"),
            (Lt, "0.5", "1", "true"),
            (Ge, "-0.5", "0", "false"),
            (Eql, "2.0", "2", "true"),
            // Integers of any size are exact.
            (Eql, "9007199254740993", "9007199254740992", "false"),
        ] {
            assert_eq!(compute(operator, left, right).as_deref(), Ok(result), "{left} {right}");
        }
        for (operator, left, right) in [
            (Div, "1.0", "0"),
            (Mod, "1", "0.0"),
            (Pow, "-2.0", "0.5"),
            (Mul, "1e300", "1e300"),
            (Add, "1.0", "one"),
            (Add, "inf", "1"),
        ] {
            assert!(compute(operator, left, right).is_err(), "{left} {operator:?} {right}");
        }
    }

    #[test]
    fn a_calculation_goes_on_with_decimals() {
        let binary = |operator, left: Value, right: &str| binary(operator, &left, &right.into());
        let seven = || binary(BinaryOperator::Mul, "3.5".into(), "2").expect("a number");
        let half = binary(BinaryOperator::Div, seven(), "2").expect("a number");
        assert_eq!(half.text().unwrap_or_default().as_ref(), "3.5");
        let is_seven = binary(BinaryOperator::Eq, seven(), "7").expect("a comparison");
        assert!(is_seven.boolean().expect("true or false"));
    }

    #[test]
    fn text_compares_as_text_and_numbers_as_numbers() {
        use BinaryOperator::{Contains, Eq, Eql, Matches};
        assert_eq!(compute(Eq, "07", "7").as_deref(), Ok("false"));
        assert_eq!(compute(Eql, "07", " 7 ").as_deref(), Ok("true"));
        assert_eq!(compute(Contains, "abc", "bc").as_deref(), Ok("true"));
        assert_eq!(compute(Matches, "v1.2", r"^v\d+\.\d+$").as_deref(), Ok("true"));
        assert!(compute(Matches, "a", "(").is_err());
        let bytes = Value::from(BString::from(&b"a\xff\xfe.txt"[..]));
        let matches = |pattern: &str| {
            let found = binary(Matches, &bytes, &pattern.into()).expect("a pattern");
            found.boolean().expect("true or false")
        };
        assert!(matches(r"^.{3}\.txt$"));
        assert!(!matches(r"^[a-z.]*$"));
    }
}
