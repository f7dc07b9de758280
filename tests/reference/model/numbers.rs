//! Numbers and logical values as texts.

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

/// Returns the result of a calculation as text: no point in whole numbers.
pub(super) fn settled(text: String) -> String {
    match text.parse::<f64>() {
        Ok(number) if text.contains(['.', 'e']) && number.fract() == 0.0 && number.abs() < 9e18 => {
            format!("{:.0}", number + 0.0)
        }
        _ => text,
    }
}

/// Returns true if a version is later than another. The versions have at most nine numbers.
pub(super) fn newer(one: &str, other: &str) -> Done<bool> {
    if one.is_empty() || other.is_empty() {
        return Err(failed("expression", 1));
    }
    // A number sorts like its digits with zeros before them.
    let padded = |text: &str| {
        let mut key = String::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let is_number = first.is_ascii_digit();
            let end = rest.find(|c: char| c.is_ascii_digit() != is_number).unwrap_or(rest.len());
            let run = &rest[..end];
            key += &if is_number {
                format!("\u{1}{:0>30}", run.trim_start_matches('0'))
            } else {
                run.into()
            };
            rest = &rest[end..];
        }
        key
    };
    let key = |version: &str| {
        let version = version.strip_prefix('v').unwrap_or(version);
        let mark = version.find(['-', '~', '+']).filter(|at| !version[*at..].starts_with('+'));
        let (release, early) = match mark {
            Some(at) => (&version[..at], Some(&version[at + 1..])),
            None => (version, None),
        };
        let mut numbers: Vec<String> = release
            .split('.')
            .map(|it| if it.is_empty() { padded("0") } else { padded(it) })
            .collect();
        numbers.resize(10, padded("0"));
        (numbers, early.is_none(), early.map(padded))
    };
    Ok(key(one) > key(other))
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
