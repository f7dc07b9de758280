//! Parsing and checks of option values. Each error is one line for people.

use std::time::Duration;

use ftsh_syntax::duration;

/// Parses a length of time above 0, such as `500ms`, `1.5 hours` or `1h30m`.
pub fn length(text: &str) -> Result<Duration, String> {
    let joined: String = text.split_whitespace().collect();
    match duration::parse_joined(&joined) {
        Some(Duration::ZERO) => Err("a length of time must be above 0".into()),
        // The limit keeps sums of several lengths within range.
        Some(length) if length > LONGEST => Err("longer than 1000 days".into()),
        Some(length) => Ok(length),
        None => Err("not a length of time, like `90 s` or `1h30m`".into()),
    }
}

const LONGEST: Duration = Duration::from_secs(1000 * 86_400);

/// Parses a number above 0.
pub fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        Ok(_) => Err("must be a number above 0".into()),
        Err(_) => Err("not a number".into()),
    }
}

/// Parses a rate of events, such as `50/s`, `3000/min` or `0.5/s`.
pub fn rate(text: &str) -> Result<f64, String> {
    let (amount, unit) = text.split_once('/').ok_or("not a rate, like `50/s`")?;
    let unit = duration::Unit::named(unit.trim()).ok_or("not a rate, like `50/s` or `10/min`")?;
    let rate = positive(amount.trim())? / unit.duration().as_secs_f64();
    if (1e-9..=1e12).contains(&rate) {
        Ok(rate)
    } else {
        Err("must be from 1e-9/s to 1e12/s".into())
    }
}

/// Refuses a simulation that would take too long. `events` is an upper estimate of its events.
pub fn bounded(events: f64) -> anyhow::Result<()> {
    const MOST: f64 = 2e10;
    if events > MOST {
        anyhow::bail!("about {events:.0e} events are too many to simulate; reduce the numbers");
    }
    Ok(())
}
