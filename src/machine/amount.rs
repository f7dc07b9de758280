//! Lengths of time as arguments: those of `sleep` and `defer`.

use std::time::Duration;

use bstr::{BString, ByteSlice};

use super::halt::Halt;
use crate::duration::{Unit, parse_joined};

/// What `sleep` is told: `5`, `1.5`, `500ms`, `5 minutes`, `1m 30s`.
pub fn pause(args: &[BString]) -> Result<Duration, Halt> {
    let wrong = || {
        Halt::usage(format!(
            "sleep takes seconds or a duration, like `5`, `0.5` or `2 minutes`, not `{}`",
            bstr::join(" ", args).as_bstr()
        ))
    };
    let text = bstr::join(" ", args).to_str_lossy().into_owned();
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut sum = Duration::ZERO;
    let mut rest = &words[..];
    while !rest.is_empty() {
        let (amount, more) = first(rest).ok_or_else(wrong)?;
        sum = sum.saturating_add(amount);
        rest = more;
    }
    if words.is_empty() { Err(wrong()) } else { Ok(sum) }
}

/// What `defer` is told: a length of time above zero, and the words after it. A number without a unit
/// is one only at the start, as `503 Service Unavailable` may follow.
pub fn deferral(args: &[BString]) -> Result<(Duration, &[BString]), Halt> {
    let words: Vec<&str> = args.iter().map(|arg| arg.to_str().unwrap_or_default().trim()).collect();
    let (mut sum, mut rest) = first(&words).filter(|(by, _)| !by.is_zero()).ok_or_else(|| {
        Halt::usage(format!(
            "defer takes a time above zero and a message, like `30`, `2 minutes busy`, not `{}`",
            bstr::join(" ", args).as_bstr()
        ))
    })?;
    while let Some((amount, more)) = first(rest) {
        if rest.len() - more.len() == 1 && rest[0].bytes().all(is_of_number) {
            break;
        }
        sum = sum.saturating_add(amount);
        rest = more;
    }
    Ok((sum, &args[args.len() - rest.len()..]))
}

fn is_of_number(byte: u8) -> bool {
    byte.is_ascii_digit() || byte == b'.'
}

/// The amount that words begin with, in seconds unless a unit follows, and the words after it.
fn first<'a, 'w>(words: &'a [&'w str]) -> Option<(Duration, &'a [&'w str])> {
    let (word, rest) = words.split_first()?;
    match rest.split_first().and_then(|(unit, rest)| Some((Unit::named(unit)?, rest))) {
        Some((unit, rest)) => Some((unit.times(word)?, rest)),
        None => Some((Unit::Seconds.times(word).or_else(|| parse_joined(word))?, rest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In milliseconds, and what comes after it.
    fn deferred(text: &str) -> Option<(u128, String)> {
        let args: Vec<BString> = text.split(' ').map(BString::from).collect();
        let (by, rest) = deferral(&args).ok()?;
        Some((by.as_millis(), bstr::join(" ", rest).to_str_lossy().into_owned()))
    }

    #[test]
    fn a_deferral_is_a_time_and_a_message() {
        let is = |text, millis, message: &str| {
            assert_eq!(deferred(text), Some((millis, message.into())), "{text}");
        };
        is("30", 30_000, "");
        is("1.5", 1500, "");
        is("2 minutes", 120_000, "");
        is("1m30s", 90_000, "");
        is("1 minute 30 seconds", 90_000, "");
        is("30 busy", 30_000, "busy");
        is("30 s 503 Service Unavailable", 30_000, "503 Service Unavailable");
        is("30 503", 30_000, "503");
        is("2 minutes busy for 3 days", 120_000, "busy for 3 days");
        for wrong in ["", "0", "busy", "-1", "minutes", "0 seconds"] {
            assert_eq!(deferred(wrong), None, "{wrong}");
        }
    }
}
