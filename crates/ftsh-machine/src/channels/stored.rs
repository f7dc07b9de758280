//! Text form of a channel's state, shared through a file.
//!
//! All texts have the same length, so that the file never grows or shrinks.

use std::time::Duration;

use serde_json::{Map, Value, json};
use thiserror::Error;

use super::{
    Breaker, Moment, Rate, Rules,
    state::{ChannelState, Gauge, Opened},
};

/// Length of a text in bytes.
pub const SIZE: usize = 1024;

/// Version of the text form. Other versions cannot be read.
const VERSION: u64 = 1;
/// Upper bound of amounts.
const MAX_AMOUNT: f64 = 1e18;
/// Upper bound of queue numbers.
pub const MAX_NUMBER: u64 = 1 << 60;

/// Stored state of a channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// Number for the next attempt in the queue. Numbers increase, and are never reused.
    pub next: u64,
    /// First number of the queue. Waiters with smaller numbers were passed over.
    pub first: u64,
    /// Upper bound of the number of attempts inside, which may include dead ones.
    pub inside: u64,
    /// State of the channel.
    pub state: ChannelState,
    /// Rules of the latest user, for display.
    pub rules: Rules,
}

/// Reason why a text cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Damaged(&'static str);

impl Stored {
    /// Creates the state of an unknown channel, whose occupancy is unknown too.
    pub fn new(now: Moment) -> Self {
        // The number exceeds those of an earlier file with the same name.
        let next = nanos(now) % MAX_NUMBER;
        Self {
            next,
            first: 0,
            inside: u64::MAX,
            state: ChannelState::default(),
            rules: Rules::default(),
        }
    }

    /// Parses a text. `clock` names the clock of `now`. A state with times of another clock is
    /// discarded.
    pub fn read(text: &[u8], clock: &str, now: Moment) -> Result<Self, Damaged> {
        if text.is_empty() {
            return Ok(Self::new(now));
        }
        let value: Value = serde_json::from_slice(text).map_err(|_| Damaged("not JSON"))?;
        let object = StrictObject(value.as_object().ok_or(Damaged("not an object"))?, now);
        if object.count("version")? != VERSION {
            return Err(Damaged("written by another version of ftsh"));
        }
        if object.text("clock")? != clock {
            return Ok(Self::new(now));
        }
        let rules = object.object("rules")?.ok_or(Damaged("no rules"))?;
        Ok(Self {
            next: Some(object.count("next")?)
                .filter(|next| *next < MAX_NUMBER)
                .ok_or(Damaged("a number is out of range"))?,
            // Earlier versions of ftsh do not write this field.
            first: if object.0.contains_key("first") { object.count("first")? } else { 0 },
            inside: object.count("inside")?,
            state: ChannelState {
                begun: object.level("begun")?,
                tokens: object.level("tokens")?,
                failures: object.count("failures")?,
                failed: object.moment("failed")?,
                opened: match object.object("opened")? {
                    Some(opened) => Some(Opened {
                        failures: opened.count("failures")?,
                        at: opened.moment("at")?,
                    }),
                    None => None,
                },
            },
            rules: rules.rules()?,
        })
    }

    /// Formats the state as text for `read`.
    pub fn write(&self, clock: &str) -> Vec<u8> {
        let level = |level: Gauge| json!({"amount": level.amount, "at": nanos(level.at)});
        let ChannelState { begun, tokens, failures, failed, opened } = &self.state;
        let Rules { places, rate, budget, breaker } = &self.rules;
        let value = json!({
            "version": VERSION,
            "clock": clock,
            "next": self.next,
            "first": self.first,
            "inside": self.inside,
            "begun": begun.map(level),
            "tokens": tokens.map(level),
            "failures": failures,
            "failed": nanos(*failed),
            "opened": opened.map(|it| json!({"failures": it.failures, "at": nanos(it.at)})),
            "rules": {
                "places": places,
                "rate": rate.map(|it| json!({"count": it.count, "per": nanos(it.per)})),
                "budget": budget,
                "breaker": breaker.map(|it| json!({"failures": it.failures, "open": nanos(it.open)})),
            },
        });
        let mut text = value.to_string().into_bytes();
        text.resize(SIZE - 1, b' ');
        text.push(b'\n');
        text
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Object parsed strictly, with the current moment.
struct StrictObject<'a>(&'a Map<String, Value>, Moment);

impl<'a> StrictObject<'a> {
    fn get(&self, name: &str) -> Result<&'a Value, Damaged> {
        self.0.get(name).ok_or(Damaged("a field is missing"))
    }

    fn count(&self, name: &str) -> Result<u64, Damaged> {
        self.get(name)?.as_u64().ok_or(Damaged("a count is not an integer"))
    }

    fn positive(&self, name: &str) -> Result<u64, Damaged> {
        Some(self.count(name)?)
            .filter(|count| *count > 0)
            .ok_or(Damaged("a count of a rule is zero"))
    }

    fn text(&self, name: &str) -> Result<&'a str, Damaged> {
        self.get(name)?.as_str().ok_or(Damaged("a text field is not a string"))
    }

    fn amount(&self, name: &str) -> Result<f64, Damaged> {
        let amount = self.get(name)?.as_f64().filter(|amount| (0.0..=MAX_AMOUNT).contains(amount));
        amount.ok_or(Damaged("an amount is out of range"))
    }

    fn moment(&self, name: &str) -> Result<Moment, Damaged> {
        let moment = Duration::from_nanos(self.count(name)?);
        if moment <= self.1 { Ok(moment) } else { Err(Damaged("a time is in the future")) }
    }

    fn object(&self, name: &str) -> Result<Option<Self>, Damaged> {
        match self.get(name)? {
            Value::Null => Ok(None),
            Value::Object(object) => Ok(Some(Self(object, self.1))),
            _ => Err(Damaged("a field is not an object")),
        }
    }

    fn level(&self, name: &str) -> Result<Option<Gauge>, Damaged> {
        let Some(level) = self.object(name)? else { return Ok(None) };
        Ok(Some(Gauge { amount: level.amount("amount")?, at: level.moment("at")? }))
    }

    fn rules(&self) -> Result<Rules, Damaged> {
        let some = |name| self.get(name).map(|value| !value.is_null());
        let rate = self.object("rate")?.map(|it| -> Result<_, Damaged> {
            let per = Duration::from_nanos(it.positive("per")?);
            Ok(Rate { count: it.positive("count")?, per })
        });
        let breaker = self.object("breaker")?.map(|it| -> Result<_, Damaged> {
            let open = Duration::from_nanos(it.positive("open")?);
            Ok(Breaker { failures: it.positive("failures")?, open })
        });
        Ok(Rules {
            places: if some("places")? { Some(self.positive("places")?) } else { None },
            rate: rate.transpose()?,
            budget: if some("budget")? { Some(self.amount("budget")?) } else { None },
            breaker: breaker.transpose()?,
        })
    }
}
