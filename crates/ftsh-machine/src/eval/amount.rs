//! Durations as arguments of `sleep` and `defer`.

use std::time::Duration;

use bstr::{BString, ByteSlice};

use crate::tasks::suspend::Suspend;
use ftsh_syntax::duration;

/// Parses the arguments of `sleep`.
pub(crate) fn pause(args: &[BString]) -> Result<Duration, Suspend> {
    duration::parse(&bstr::join(" ", args).to_str_lossy()).ok_or_else(|| {
        wrong("sleep takes seconds or a duration, like `5`, `0.5` or `2 minutes`", args)
    })
}

/// Parses the arguments of `defer`: a duration, followed by the words of a message.
///
/// The duration may be one argument with blanks, so the first argument is split.
pub(crate) fn deferral(args: &[BString]) -> Result<(Duration, BString), Suspend> {
    let (first, others) = args.split_at(args.len().min(1));
    let first = first.iter().flat_map(|arg| arg.fields_with(char::is_whitespace));
    let args: Vec<&[u8]> = first.chain(others.iter().map(|arg| arg.as_slice())).collect();
    let words: Vec<&str> = args.iter().map(|arg| arg.to_str().unwrap_or_default().trim()).collect();
    let (by, after) = duration::parse_deferral(&words).ok_or_else(|| {
        wrong("defer takes a time and a message, like `30`, `2 minutes busy`", &args)
    })?;
    Ok((by, bstr::join(" ", &args[args.len() - after..]).into()))
}

fn wrong(takes: &str, args: &[impl AsRef<[u8]>]) -> Suspend {
    Suspend::usage(match bstr::join(" ", args) {
        nothing if nothing.is_empty() => takes.into(),
        words => format!("{takes}, not `{}`", words.as_bstr()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the duration in milliseconds, and the words after the duration.
    fn deferred(text: &str) -> Option<(u128, String)> {
        let args: Vec<BString> = text.split(' ').map(BString::from).collect();
        let (by, message) = deferral(&args).ok()?;
        Some((by.as_millis(), message.to_string()))
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
        is("0", 0, "");
        is("0 seconds busy", 0, "busy");
        is("2 minutes busy for 3 days", 120_000, "busy for 3 days");
        let (by, message) = deferral(&["2 minutes".into(), "very  busy".into()]).expect("a time");
        assert_eq!((by.as_secs(), message.to_string()), (120, "very  busy".into()));
        for wrong in ["", "busy", "-1", "minutes"] {
            assert_eq!(deferred(wrong), None, "{wrong}");
        }
    }
}
