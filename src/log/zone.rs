//! Local time zone.

use jiff::tz::TimeZone;

/// File with the rules of the system's time zone.
const LOCAL: &str = "/etc/localtime";

/// Returns the time zone of `TZ` or of the system, or UTC.
pub fn local_zone() -> TimeZone {
    if std::env::var_os("TZ").is_some_and(|name| !name.is_empty()) {
        return TimeZone::system();
    }
    // Reading the rules avoids a search by name. For a search, the library lists all zones, which
    // takes a quarter of the time of a short script.
    let content = std::fs::read(LOCAL).ok();
    let zone = content.and_then(|content| TimeZone::tzif("local", &content).ok());
    zone.unwrap_or_else(TimeZone::system)
}
