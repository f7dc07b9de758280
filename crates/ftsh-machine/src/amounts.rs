//! Durations as arguments of `sleep` and `defer`.

use std::time::Duration;

use bstr::{BString, ByteSlice};

use crate::program::DurationScale;
use crate::tasks::Task;
use crate::values::{Suspend, Value};
use ftsh_syntax::duration;
use ftsh_syntax::size::{self, ByteUnit, Size};
use ftsh_syntax::slug::Slug;

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

/// Pops a duration.
pub(crate) fn length(task: &mut Task, scale: DurationScale) -> Result<Duration, Suspend> {
    let text = plain(&task.pop()?)?;
    let text = text.trim();
    let length = match scale {
        DurationScale::Of(unit) => unit.times(text),
        DurationScale::Whole => duration::parse(text),
    };
    match length {
        Some(length) => Ok(length),
        None if scale == DurationScale::Whole => Err(Suspend::expression(
            Slug::NotADuration,
            format!("`{text}` is not a length of time, like `90s` or `5 minutes`"),
        )),
        None => Err(Suspend::expression(
            Slug::NotADuration,
            format!("`{text}` is not a length of time: a number above 0 is needed"),
        )),
    }
}

/// Rejects a duration of zero.
pub(crate) fn not_zero(length: Duration) -> Result<(), Suspend> {
    match length {
        Duration::ZERO => {
            Err(Suspend::expression(Slug::ZeroDuration, "a length of time can't be zero"))
        }
        _ => Ok(()),
    }
}

/// Converts a value to a number, which may have a fraction.
pub(crate) fn number(value: &Value) -> Result<f64, Suspend> {
    let text = plain(value)?;
    let number = text.trim().parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| Suspend::expression(Slug::NotANumber, format!("`{text}` is not a number")))
}

/// Pops a size in bytes.
pub(crate) fn byte_size(task: &mut Task, size: &Size<()>) -> Result<u64, Suspend> {
    bytes(&plain(&task.pop()?)?, size.unit)
}

/// Converts the text of a size in a clause.
pub(crate) fn bytes(text: &str, unit: Option<ByteUnit>) -> Result<u64, Suspend> {
    match size::bytes(text, unit) {
        Some(0) => Err(Suspend::expression(Slug::OutOfRange, "a size must be above zero")),
        Some(bytes) => Ok(bytes),
        None if unit.is_some() => Err(Suspend::expression(
            Slug::NotASize,
            format!("`{text}` is not a size: a number above 0 is needed"),
        )),
        None => Err(Suspend::expression(
            Slug::NotASize,
            format!("`{text}` is not a size, like `4 GB` or `512MiB`"),
        )),
    }
}

/// Returns the text of a value that is no list.
pub(crate) fn plain(value: &Value) -> Result<String, Suspend> {
    match value.not_text() {
        Some(error) => Err(error.into()),
        None => Ok(value.text().unwrap_or_default().to_string()),
    }
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
