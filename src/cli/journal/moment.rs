//! Moments of the wall clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

use ftsh_machine::outcome::Human;

/// Returns the present time since 1970.
pub(crate) fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Converts a time since 1970.
pub(super) fn timestamp(since_1970: Duration) -> Timestamp {
    let nanoseconds = since_1970.as_nanos().try_into().unwrap_or(i128::MAX);
    Timestamp::from_nanosecond(nanoseconds).unwrap_or(Timestamp::MAX)
}

/// Formats a time since 1970 for people.
pub(super) fn moment(since_1970: Duration) -> String {
    let local = timestamp(since_1970).to_zoned(crate::log::local_zone());
    let ago = self::since_1970().saturating_sub(since_1970).as_secs();
    let ago = match ago {
        0 => "just now".to_owned(),
        ago => format!("{} ago", Human(Duration::from_secs(ago))),
    };
    format!("{} ({ago})", local.strftime("%Y-%m-%d %H:%M:%S"))
}
