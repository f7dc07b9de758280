//! Lengths of time in text: `500ms`, `1h30m`, `1.5` of a `minute`.
//!
//! Amounts are parsed as decimal text, without floating point, and are therefore exact. A length
//! beyond the range of [`Duration`] becomes [`Duration::MAX`].

use std::fmt;
use std::time::Duration;

/// Unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "plain words")]
pub enum Unit {
    Milliseconds,
    Seconds,
    Minutes,
    Hours,
    Days,
}

/// Spellings of the units.
const SPELLINGS: [(&str, Unit); 17] = [
    ("ms", Unit::Milliseconds),
    ("millisecond", Unit::Milliseconds),
    ("milliseconds", Unit::Milliseconds),
    ("s", Unit::Seconds),
    ("sec", Unit::Seconds),
    ("second", Unit::Seconds),
    ("seconds", Unit::Seconds),
    ("m", Unit::Minutes),
    ("min", Unit::Minutes),
    ("minute", Unit::Minutes),
    ("minutes", Unit::Minutes),
    ("h", Unit::Hours),
    ("hour", Unit::Hours),
    ("hours", Unit::Hours),
    ("d", Unit::Days),
    ("day", Unit::Days),
    ("days", Unit::Days),
];

impl Unit {
    /// Returns the unit with the spelling `name`.
    pub fn named(name: &str) -> Option<Self> {
        SPELLINGS.iter().find(|(spelling, _)| *spelling == name).map(|(_, unit)| *unit)
    }

    /// Returns every spelling, for suggestions.
    pub fn names() -> impl Iterator<Item = &'static str> {
        SPELLINGS.iter().map(|(spelling, _)| *spelling)
    }

    /// Returns the length of one unit.
    pub fn duration(self) -> Duration {
        match self {
            Self::Milliseconds => Duration::from_millis(1),
            Self::Seconds => Duration::from_secs(1),
            Self::Minutes => Duration::from_secs(60),
            Self::Hours => Duration::from_secs(3600),
            Self::Days => Duration::from_secs(86_400),
        }
    }

    /// Returns `amount` units, for a decimal number without a sign: `5`, `1.5`, `.5`.
    pub fn times(self, amount: &str) -> Option<Duration> {
        decimal(amount, self.duration().as_nanos()).map(from_nanos)
    }
}

/// Returns a decimal number without a sign times `unit`, rounded down; `u128::MAX` if out of range.
pub(crate) fn decimal(amount: &str, unit: u128) -> Option<u128> {
    let (whole, fraction) = amount.split_once('.').unwrap_or((amount, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || whole.len() + fraction.len() == 0 {
        return None;
    }
    // Further digits are finer than a nanosecond, in every unit of time.
    let fraction = &fraction[..fraction.len().min(15)];
    let number = |text: &str| {
        text.bytes().try_fold(0_u128, |number, digit| {
            number.checked_mul(10)?.checked_add(u128::from(digit - b'0'))
        })
    };
    let part = number(fraction)? * unit / 10_u128.pow(fraction.len() as u32);
    let total = number(whole).and_then(|whole| whole.checked_mul(unit)?.checked_add(part));
    Some(total.unwrap_or(u128::MAX))
}

/// Parses amounts with their units in one word, like `500ms`, `1h30m`, `1.5h`.
pub fn parse_joined(text: &str) -> Option<Duration> {
    let mut total = Duration::ZERO;
    let mut rest = text;
    loop {
        let amount = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let unit = &rest[amount..];
        let unit =
            &unit[..unit.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(unit.len())];
        total = total.saturating_add(Unit::named(unit)?.times(&rest[..amount])?);
        rest = &rest[amount + unit.len()..];
        if rest.is_empty() {
            return Some(total);
        }
    }
}

/// Parses a length of time: `5 minutes`, `500ms`, `1h30m`, `1m 30s`. A number without a unit counts
/// seconds, and several lengths add up.
pub fn parse(text: &str) -> Option<Duration> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (mut sum, mut rest) = first(&words)?;
    while !rest.is_empty() {
        let (amount, more) = first(rest)?;
        sum = sum.saturating_add(amount);
        rest = more;
    }
    Some(sum)
}

/// Parses the leading arguments of `defer`, and returns a length of time with the number of remaining
/// words.
///
/// A number without a unit counts in the first place only, because `503 Service Unavailable` may
/// follow.
pub fn parse_deferral(words: &[&str]) -> Option<(Duration, usize)> {
    let is_of_number = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    let (mut sum, mut rest) = first(words)?;
    while let Some((amount, more)) = first(rest) {
        if rest.len() - more.len() == 1 && rest[0].bytes().all(is_of_number) {
            break;
        }
        sum = sum.saturating_add(amount);
        rest = more;
    }
    Some((sum, rest.len()))
}

/// Returns the amount at the start of `words`, in seconds unless a unit follows, and the rest.
fn first<'a, 'w>(words: &'a [&'w str]) -> Option<(Duration, &'a [&'w str])> {
    let (word, rest) = words.split_first()?;
    match rest.split_first().and_then(|(unit, rest)| Some((Unit::named(unit)?, rest))) {
        Some((unit, rest)) => Some((unit.times(word)?, rest)),
        None => Some((Unit::Seconds.times(word).or_else(|| parse_joined(word))?, rest)),
    }
}

fn from_nanos(nanos: u128) -> Duration {
    const SECOND: u128 = 1_000_000_000;
    u64::try_from(nanos / SECOND)
        .map_or(Duration::MAX, |seconds| Duration::new(seconds, (nanos % SECOND) as u32))
}

/// Length of time displayed exactly, in one unit: `100 ms`, `90 s`, `15 min`, `1 h`.
pub struct Exact(
    /// Length to display.
    pub Duration,
);

impl fmt::Display for Exact {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let nanos = self.0.as_nanos();
        if nanos == 0 {
            return f.write_str("0 s");
        }
        for (unit, name) in
            [(Unit::Days, "d"), (Unit::Hours, "h"), (Unit::Minutes, "min"), (Unit::Seconds, "s")]
        {
            let size = unit.duration().as_nanos();
            if nanos.is_multiple_of(size) {
                return write!(f, "{} {name}", nanos / size);
            }
        }
        let (millis, fraction) = (nanos / 1_000_000, nanos % 1_000_000);
        if fraction == 0 {
            return write!(f, "{millis} ms");
        }
        write!(f, "{millis}.{} ms", format!("{fraction:06}").trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn amounts_are_exact_decimals() {
        assert_eq!(Unit::Seconds.times("1.5"), Some(Duration::from_millis(1500)));
        assert_eq!(Unit::Hours.times(".1"), Some(Duration::from_secs(360)));
        assert_eq!(Unit::Days.times("3"), Some(Duration::from_secs(259_200)));
        assert_eq!(Unit::Milliseconds.times("0.000001"), Some(Duration::from_nanos(1)));
        assert_eq!(Unit::Seconds.times("2."), Some(Duration::from_secs(2)));
        for bad in ["", ".", "-1", "+1", "1e3", "1.2.3", " 1", "٣"] {
            assert_eq!(Unit::Seconds.times(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn joined_forms_add_up() {
        for (text, millis) in [
            ("500ms", 500),
            ("1h30m", 5_400_000),
            ("1.5h", 5_400_000),
            ("2d", 172_800_000),
            ("1min1sec1ms", 61_001),
            ("90seconds", 90_000),
        ] {
            assert_eq!(parse_joined(text), Some(Duration::from_millis(millis)), "{text}");
        }
        for bad in ["", "5", "m", "5x", "5 m", "1h30", "h1", "-5s", "1..5s", "5µs"] {
            assert_eq!(parse_joined(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_unit_may_stand_apart() {
        assert_eq!(parse("5 minutes"), Some(Duration::from_secs(300)));
        assert_eq!(parse(" 1.5  h "), Some(Duration::from_secs(5400)));
        assert_eq!(parse("1h30m"), Some(Duration::from_secs(5400)));
        assert_eq!(parse("5"), Some(Duration::from_secs(5)));
        assert_eq!(parse("5 minutes 3 s"), Some(Duration::from_secs(303)));
        for bad in ["", " ", "5 minutse", "minutes", "-1 s", "-1"] {
            assert_eq!(parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn lengths_out_of_range_become_the_maximum() {
        for amount in ["99999999999999999999", &"9".repeat(1000)] {
            assert_eq!(Unit::Days.times(amount), Some(Duration::MAX));
            assert_eq!(parse_joined(&format!("{amount}d{amount}h")), Some(Duration::MAX));
        }
        assert_eq!(
            Unit::Days.times(&format!("0.{}", "9".repeat(1000))).map(|d| d.as_secs()),
            Some(86399)
        );
    }

    proptest! {
        #[test]
        fn displayed_lengths_parse_back(nanos in any::<u64>(), seconds in any::<bool>()) {
            let duration = if seconds { Duration::from_secs(nanos) } else { Duration::from_nanos(nanos) };
            let shown = Exact(duration).to_string().replace(' ', "");
            prop_assert_eq!(parse_joined(&shown), Some(duration));
        }

        #[test]
        fn no_text_panics(text in ".*") {
            let _ = parse_joined(&text);
            let _ = Unit::Days.times(&text);
        }
    }
}
