//! Functions of numbers.

use super::function::{Function, FunctionContext};
use crate::values::{Number, Suspend, Value, ValueError};
use ftsh_syntax::ast::BinaryOperator;
use ftsh_syntax::slug::Slug;

/// Maximum number of digits of `round`. A decimal has fewer.
const MAX_DIGITS: i64 = 400;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("round", &[("round(2.5)", &["3"]), ("round(2.345, 2)", &["2.35"])], round),
    Function::new("min", &[("min(3, 1.5, 2)", &["1.5"])], |context| {
        extreme(context, BinaryOperator::Lt)
    }),
    Function::new("max", &[("max(3, 1.5, 12)", &["12"])], |context| {
        extreme(context, BinaryOperator::Gt)
    }),
    Function::new("abs", &[("abs(-3)", &["3"]), ("abs(-0.5)", &["0.5"])], abs),
];

fn round(context: &mut FunctionContext) -> Result<Value, Suspend> {
    let number = context.number(0)?;
    let digits = match context.arguments().len() {
        2 => Some(context.integer(1)?),
        _ => None,
    };
    if digits.is_some_and(|digits| !(0..=MAX_DIGITS).contains(&digits)) {
        let message = format!("round takes 0 to {MAX_DIGITS} digits");
        return Err(Suspend::expression(Slug::FunctionArgument, message));
    }
    let rounded = match (number, digits) {
        (Number::Whole(_), None | Some(0)) => number,
        (_, None | Some(0)) => {
            let whole = rounded(number.decimal(), 0).parse::<i64>();
            let too_large = |_| {
                let message = format!("{:?} doesn't fit in 64 bits", number.decimal());
                Suspend::expression(Slug::Overflow, message)
            };
            Number::Whole(whole.map_err(too_large)?)
        }
        (_, Some(digits)) => {
            let text = rounded(number.decimal(), digits as usize);
            Number::Decimal(text.parse().unwrap_or(number.decimal()))
        }
    };
    Ok(rounded.into())
}

/// Rounds the shortest text of a decimal, halves away from zero. The digits of the text are those
/// that a person sees, so that 2.345 becomes 2.35.
fn rounded(decimal: f64, digits: usize) -> String {
    let shortest = decimal.abs().to_string();
    let (whole, fraction) = shortest.split_once('.').unwrap_or((&shortest, ""));
    let mut kept: Vec<u8> = whole.bytes().chain(fraction.bytes().take(digits)).collect();
    if fraction.as_bytes().get(digits).is_some_and(|digit| *digit >= b'5') {
        let mut at = kept.len();
        loop {
            match at.checked_sub(1) {
                None => {
                    kept.insert(0, b'1');
                    break;
                }
                Some(before) if kept[before] == b'9' => kept[before] = b'0',
                Some(before) => {
                    kept[before] += 1;
                    break;
                }
            }
            at -= 1;
        }
    }
    let fraction = fraction.len().min(digits);
    let point = kept.len() - fraction;
    let digits = |digits: &[u8]| String::from_utf8_lossy(digits).into_owned();
    let (whole, fraction) = (digits(&kept[..point]), digits(&kept[point..]));
    let is_zero = kept.iter().all(|digit| *digit == b'0');
    let sign = if decimal < 0.0 && !is_zero { "-" } else { "" };
    if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

/// Returns the argument that is less or greater than the others.
fn extreme(context: &mut FunctionContext, operator: BinaryOperator) -> Result<Value, Suspend> {
    context.spread()?;
    if context.arguments().is_empty() {
        return Err(Suspend::from(ValueError::NumberOfList(0)));
    }
    let mut found = context.number(0)?;
    for at in 1..context.arguments().len() {
        let number = context.number(at)?;
        if Number::compare(operator, number, found) {
            found = number;
        }
    }
    Ok(found.into())
}

fn abs(context: &mut FunctionContext) -> Result<Value, Suspend> {
    Ok(match context.number(0)? {
        Number::Whole(whole) => {
            let positive = whole.checked_abs();
            let message = || format!("{whole} has no positive number");
            let too_large = || Suspend::expression(Slug::Overflow, message());
            Value::Integer(positive.ok_or_else(too_large)?)
        }
        Number::Decimal(decimal) => Number::Decimal(decimal.abs()).into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_rounded_away_from_zero() {
        for (decimal, digits, text) in [
            (2.5, 0, "3"),
            (-2.5, 0, "-3"),
            (0.4, 0, "0"),
            (-0.4, 0, "0"),
            (9.5, 0, "10"),
            (99.99, 1, "100.0"),
            (2.345, 2, "2.35"),
            (1.005, 2, "1.01"),
            (-1.25, 1, "-1.3"),
            (1e21, 0, "1000000000000000000000"),
            (1e-7, 3, "0.000"),
            (1.5, 5, "1.5"),
        ] {
            assert_eq!(rounded(decimal, digits), text, "{decimal} {digits}");
        }
    }
}
