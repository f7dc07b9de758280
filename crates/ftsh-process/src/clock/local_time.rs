//! Local time.

use bstr::ByteSlice;
use jiff::Timestamp;
use jiff::fmt::strtime;
use jiff::tz::TimeZone;
use thiserror::Error;

use ftsh_machine::effect::LocalTime;

/// File with the rules of the system's time zone.
const LOCAL: &str = "/etc/localtime";

/// Time that cannot be shown.
#[derive(Debug, Error)]
pub enum LocalTimeError {
    /// A value of `TZ` that is neither the name of a time zone nor a rule.
    #[error("there is no time zone `{0}`")]
    Zone(String),
    /// A moment before or after all years that can be shown.
    #[error("{0} seconds after the beginning of 1970 is out of range")]
    Moment(i64),
    /// A pattern with an unknown directive.
    #[error("`{pattern}` is not a pattern of a time: {error}")]
    Pattern {
        /// Pattern.
        pattern: String,
        /// Error of the library.
        error: jiff::Error,
    },
}

/// Returns the local time that a query asks for.
///
/// # Errors
///
/// Fails if the time zone, the moment or the pattern is unknown.
pub(crate) fn local_time(wanted: &LocalTime) -> Result<String, LocalTimeError> {
    let LocalTime { pattern, at, zone } = wanted;
    let zone = match zone {
        Some(zone) => zone_of(&zone.to_str_lossy())?,
        None => system_zone(),
    };
    let moment = match *at {
        Some((seconds, nanos)) => Timestamp::new(seconds, nanos.min(999_999_999) as i32)
            .map_err(|_| LocalTimeError::Moment(seconds))?,
        None => Timestamp::now(),
    };
    let wrong =
        |error| LocalTimeError::Pattern { pattern: pattern.to_str_lossy().into_owned(), error };
    strtime::format(pattern, &moment.to_zoned(zone)).map_err(wrong)
}

/// Returns the time zone that a value of `TZ` names or defines.
fn zone_of(text: &str) -> Result<TimeZone, LocalTimeError> {
    let name = text.strip_prefix(':').unwrap_or(text);
    let zone = TimeZone::get(name).or_else(|_| TimeZone::posix(name));
    zone.map_err(|_| LocalTimeError::Zone(text.to_owned()))
}

/// Returns the time zone of `TZ` or of the system, or UTC.
pub fn local_zone() -> TimeZone {
    if std::env::var_os("TZ").is_some_and(|name| !name.is_empty()) {
        return TimeZone::system();
    }
    system_zone()
}

/// Returns the time zone of the system, or UTC.
fn system_zone() -> TimeZone {
    // Reading the rules avoids a search by name. For a search, the library lists all zones, which
    // takes a quarter of the time of a short script.
    let content = std::fs::read(LOCAL).ok();
    let zone = content.and_then(|content| TimeZone::tzif("local", &content).ok());
    zone.unwrap_or_else(TimeZone::system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_show_moments_in_time_zones() {
        let shown = |pattern: &str, at, zone: &str| {
            let (pattern, zone) = (pattern.into(), Some(zone.into()));
            local_time(&LocalTime { pattern, at: Some(at), zone }).map_err(|it| it.to_string())
        };
        assert_eq!(shown("%F %T", (0, 0), "UTC").as_deref(), Ok("1970-01-01 00:00:00"));
        assert_eq!(shown("%H:%M%z", (0, 0), "CET-1").as_deref(), Ok("01:00+0100"));
        assert_eq!(shown("%s 100%%", (-1, 500_000_000), "UTC").as_deref(), Ok("0 100%"));
        assert!(shown("%F", (0, 0), "No/Where").is_err());
        assert!(shown("%F", (i64::MAX, 0), "UTC").is_err());
        assert!(shown("%!", (0, 0), "UTC").is_err_and(|it| it.contains("%!")));
        let now = LocalTime { pattern: "%Y".into(), at: None, zone: None };
        assert!(local_time(&now).is_ok_and(|year| year.len() == 4));
    }
}
