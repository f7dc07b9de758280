//! Lengths of time as floating-point nanoseconds: exact up to 100 days, and infinite where integers
//! would overflow. A conversion at the end makes a valid [`Duration`] of any result.

use std::time::Duration;

use super::parameters::Parameters;

/// Returns the nearest duration, at most M.
pub(super) fn capped(nanos: f64, parameters: Parameters) -> Duration {
    duration(nanos).min(parameters.to)
}

/// Returns the length in nanoseconds, exact up to 100 days.
pub(super) fn nanos(duration: Duration) -> f64 {
    duration.as_secs() as f64 * 1e9 + f64::from(duration.subsec_nanos())
}

/// Returns the nearest duration; 0 for a number that is not a length of time.
pub(super) fn duration(nanos: f64) -> Duration {
    if nanos >= u64::MAX as f64 {
        Duration::try_from_secs_f64(nanos / 1e9).unwrap_or(Duration::MAX)
    } else {
        // Saturates: negative numbers and NaN become 0.
        Duration::from_nanos(nanos as u64)
    }
}
