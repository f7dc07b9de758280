//! Numbers and logical values as texts.

use std::cmp::Ordering;

use super::{Done, failed};

/// Parses a logical value.
pub(super) fn truth(text: &str) -> Done<bool> {
    text.parse().map_err(|_| failed("expression", 1))
}

/// Parses an integer.
pub(super) fn whole(text: &str) -> Done<i64> {
    text.trim().parse().map_err(|_| failed("expression", 1))
}

/// Parses a decimal number, which contains a point.
fn decimal(text: &str) -> Done<f64> {
    let text = text.trim();
    let is_number = text.contains(|c: char| c.is_ascii_digit())
        && !text.contains(|c: char| !c.is_ascii_digit() && !"+-.eE".contains(c));
    let number = text.parse().ok().filter(|number: &f64| is_number && number.is_finite());
    number.ok_or(failed("expression", 1))
}

/// Returns the result of an operator on two numbers.
pub(super) fn compute(operator: &str, left: &str, right: &str) -> Done<String> {
    let result = match (whole(left), whole(right)) {
        (Ok(left), Ok(right)) => {
            let (left, right) = (i128::from(left), i128::from(right));
            compare(operator, &left, &right).or_else(|| calculate(operator, left, right))
        }
        // Digits that do not fit an integer are no number of any kind.
        _ if is_large(left) || is_large(right) => None,
        _ => {
            let (left, right) = (decimal(left)?, decimal(right)?);
            compare(operator, &left, &right).or_else(|| calculate_decimals(operator, left, right))
        }
    };
    result.ok_or(failed("expression", 1))
}

/// Compares two texts as numbers if both are numbers.
pub(super) fn are_same(left: &str, right: &str) -> bool {
    let exact = whole(left).ok().zip(whole(right).ok());
    let number = |text| decimal(text).ok().filter(|_| !is_large(text) || whole(text).is_ok());
    match (exact, number(left).zip(number(right))) {
        (Some((left, right)), _) => left == right,
        (None, Some((left, right))) => left.partial_cmp(&right).is_some_and(Ordering::is_eq),
        (None, None) => left == right,
    }
}

fn is_large(text: &str) -> bool {
    whole(text).is_err() && !text.contains(['.', 'e', 'E'])
}

/// Compares two numbers; none if the operator is no comparison.
fn compare<N: PartialOrd>(operator: &str, left: &N, right: &N) -> Option<String> {
    let holds = match operator {
        ".lt." | "<" => left < right,
        ".le." | "<=" => left <= right,
        ".gt." | ">" => left > right,
        ".ge." | ">=" => left >= right,
        ".eql." => left == right,
        ".neql." => left != right,
        _ => return None,
    };
    Some(holds.to_string())
}

fn calculate(operator: &str, left: i128, right: i128) -> Option<String> {
    let number = match operator {
        ".add." | "+" => left + right,
        ".sub." | "-" => left - right,
        ".mul." | "*" => left * right,
        ".div." | "/" => left.checked_div(right)?,
        ".pow." => power(left, right)?,
        _ => left.checked_rem(right)?,
    };
    i64::try_from(number).ok().map(|number| number.to_string())
}

/// Rounds a number to an integer; none if the number is too large or no integer.
fn power(base: i128, exponent: i128) -> Option<i128> {
    match (base, u32::try_from(exponent).ok()) {
        (_, None) if exponent < 0 => None,
        (0 | 1, None) => Some(base),
        (-1, None) => Some(if exponent % 2 == 0 { 1 } else { -1 }),
        (_, exponent) => base.checked_pow(exponent?),
    }
}

fn calculate_decimals(operator: &str, left: f64, right: f64) -> Option<String> {
    let number = match operator {
        ".add." | "+" => left + right,
        ".sub." | "-" => left - right,
        ".mul." | "*" => left * right,
        ".div." | "/" => left / right,
        ".pow." => left.powf(right),
        _ => left % right,
    };
    // Division by zero fails as well.
    number.is_finite().then(|| format!("{number:?}"))
}
