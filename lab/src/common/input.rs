//! Reads and checks what users say. Errors are one line for people.

use std::time::Duration;

use ftsh_syntax::duration;

/// A length of time above 0: `500ms`, `1.5 hours`, `1h30m`.
pub fn length(text: &str) -> Result<Duration, String> {
    let joined: String = text.split_whitespace().collect();
    match duration::parse_joined(&joined) {
        Some(Duration::ZERO) => Err("a length of time must be above 0".into()),
        // Years are plenty, and sums of a few lengths stay within what can be counted.
        Some(length) if length > LONGEST => Err("that is longer than 1000 days".into()),
        Some(length) => Ok(length),
        None => Err("not a length of time, like `90 s` or `1h30m`".into()),
    }
}

const LONGEST: Duration = Duration::from_secs(1000 * 86_400);

/// A number above 0.
pub fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        Ok(_) => Err("must be a number above 0".into()),
        Err(_) => Err("not a number".into()),
    }
}

/// Events a second: `50/s`, `3000/min`, `0.5/s`.
pub fn rate(text: &str) -> Result<f64, String> {
    let (amount, unit) = text.split_once('/').ok_or("not a rate, like `50/s`")?;
    let unit = duration::Unit::named(unit.trim()).ok_or("not a rate, like `50/s` or `10/min`")?;
    let rate = positive(amount.trim())? / unit.duration().as_secs_f64();
    if (1e-9..=1e12).contains(&rate) { Ok(rate) } else { Err("no server is like that".into()) }
}

/// Refuses a simulation that nobody would wait for: `events` are about as many as there can be.
pub fn bounded(events: f64) -> anyhow::Result<()> {
    const MOST: f64 = 2e10;
    if events > MOST {
        anyhow::bail!("that may be {events:.0e} events, too many to simulate: ask for less");
    }
    Ok(())
}
