//! Order of versions.

use std::cmp::Ordering;

use bstr::ByteSlice;

use super::function::{Function, FunctionContext};
use crate::values::{Suspend, Value};
use ftsh_syntax::slug::Slug;

pub(super) const FUNCTIONS: &[Function] = &[Function::new(
    "newer",
    &[("newer(3.10, 3.9)", &["true"]), ("newer(\"v2.0-rc1\", 2)", &["false"])],
    newer,
)];

fn newer(context: &mut FunctionContext) -> Result<Value, Suspend> {
    let (one, other) = (context.text(0)?, context.text(1)?);
    if one.is_empty() || other.is_empty() {
        let message = "`newer` compares two versions, and one of them is empty";
        return Err(Suspend::expression(Slug::FunctionArgument, message));
    }
    Ok(Value::Boolean(order(&one, &other).is_gt()))
}

/// Compares two versions: first the numbers between points, then what stands behind them.
fn order(one: &[u8], other: &[u8]) -> Ordering {
    let ((one, early), (other, other_early)) = (parts(one), parts(other));
    let (mut ones, mut others) = (one.split_str("."), other.split_str("."));
    loop {
        let (one, other) = (ones.next(), others.next());
        if one.is_none() && other.is_none() {
            return match (early, other_early) {
                (Some(one), Some(other)) => natural(one, other),
                // A pre-release is before its release.
                (one, other) => other.cmp(&one),
            };
        }
        let number = |it: Option<&'_ [u8]>| it.filter(|it| !it.is_empty()).unwrap_or(b"0").to_vec();
        match natural(&number(one), &number(other)) {
            Ordering::Equal => {}
            order => return order,
        }
    }
}

/// Returns the release of a version without its `v`, and the name of a pre-release.
fn parts(version: &[u8]) -> (&[u8], Option<&[u8]>) {
    let version = version.strip_prefix(b"v").unwrap_or(version);
    // A `-` behind `+` belongs to the name of a build.
    match version.find_byteset(b"-~+").filter(|at| version[*at] != b'+') {
        Some(at) => (&version[..at], Some(&version[at + 1..])),
        None => (version, None),
    }
}

/// Compares two texts with their runs of digits as numbers of any size.
fn natural(mut one: &[u8], mut other: &[u8]) -> Ordering {
    while !one.is_empty() && !other.is_empty() {
        let order = match (run(&mut one), run(&mut other)) {
            ((true, one), (true, other)) => one.len().cmp(&other.len()).then(one.cmp(other)),
            ((one_is_number, one), (other_is_number, other)) => {
                other_is_number.cmp(&one_is_number).then(one.cmp(other))
            }
        };
        if order.is_ne() {
            return order;
        }
    }
    one.len().cmp(&other.len())
}

/// Takes the digits at the beginning of a text, without leading zeros, or else the text before the
/// next digit.
fn run<'t>(text: &mut &'t [u8]) -> (bool, &'t [u8]) {
    let is_number = text[0].is_ascii_digit();
    let end = text.iter().position(|byte| byte.is_ascii_digit() != is_number);
    let (run, rest) = text.split_at(end.unwrap_or(text.len()));
    *text = rest;
    (is_number, if is_number { run.trim_start_with(|digit| digit == '0') } else { run })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_order() {
        let versions = [
            "0",
            "0.0.1-alpha",
            "0.0.1",
            "1.0-1",
            "1.0-alpha",
            "1.0-alpha.1",
            "1.0-beta.2",
            "1.0-beta.11",
            "1.0~rc9",
            "1.0-rc10",
            "1.0",
            "1.0.0.1",
            "1.0.2a",
            "1.0.2b",
            "1.9",
            "1.010",
            "1.10+build-7",
            "2",
            "3.9",
            "3.10",
            "99999999999999999999999",
        ];
        for (at, one) in versions.iter().enumerate() {
            for (other_at, other) in versions.iter().enumerate() {
                let order = order(one.as_bytes(), other.as_bytes());
                assert_eq!(order, at.cmp(&other_at), "{one} {other}");
            }
        }
        for (one, other) in [("v1.2", "1.2.0"), ("1", "1.0.0"), ("1..2", "1.0.2"), ("02", "2")] {
            assert_eq!(order(one.as_bytes(), other.as_bytes()), Ordering::Equal, "{one} {other}");
        }
    }
}
