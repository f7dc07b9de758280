//! Backoff policies: how long to wait between attempts. Pure: random numbers come in, nothing sleeps.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use rand::Rng;

/// The policies by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "described at their formulas")]
pub enum Kind {
    Ethernet,
    Exponential,
    Full,
    Equal,
    Decorrelated,
    Normal,
    Proportional,
    Slotted,
    Windowed,
    Fixed,
    None,
}

impl Kind {
    /// Every policy, in the order of the reference.
    pub const ALL: [Self; 11] = [
        Self::Ethernet,
        Self::Exponential,
        Self::Full,
        Self::Equal,
        Self::Decorrelated,
        Self::Normal,
        Self::Proportional,
        Self::Slotted,
        Self::Windowed,
        Self::Fixed,
        Self::None,
    ];

    /// Its name in scripts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ethernet => "ethernet",
            Self::Exponential => "exponential",
            Self::Full => "full",
            Self::Equal => "equal",
            Self::Decorrelated => "decorrelated",
            Self::Normal => "normal",
            Self::Proportional => "proportional",
            Self::Slotted => "slotted",
            Self::Windowed => "windowed",
            Self::Fixed => "fixed",
            Self::None => "none",
        }
    }

    /// The policy of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A policy with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// The formula.
    pub kind: Kind,
    /// T
    pub from: Duration,
    /// M
    pub to: Duration,
    /// F, at least 1.
    pub by: f64,
    /// P, from 0 to 1.
    pub jitter: f64,
}

impl Policy {
    /// The policy with its default parameters.
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            from: Duration::from_secs(1),
            to: Duration::from_secs(3600),
            by: 2.0,
            jitter: 0.0,
        }
    }

    /// Says what is impossible about the parameters, in one line for people.
    pub fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::new(Kind::Ethernet)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.kind.name())
    }
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Kind::named(text).map(Self::new).ok_or_else(|| format!("unknown backoff policy `{text}`"))
    }
}

/// The delays of one `try`, in order.
#[derive(Clone, Debug)]
pub struct Backoff {
    policy: Policy,
    taken: u64,
}

impl Backoff {
    /// Starts over.
    pub fn new(policy: Policy) -> Self {
        Self { policy, taken: 0 }
    }

    /// The next delay. `elapsed` is the time since the first failure, which only `windowed` needs:
    /// its windows go on while attempts run.
    pub fn next_delay(&mut self, elapsed: Duration, rng: &mut impl Rng) -> Duration {
        let _ = (elapsed, rng);
        self.taken += 1;
        self.policy.from
    }
}
