//! Backoff policies: how long to wait between attempts. Pure: random numbers come in, nothing
//! sleeps.
//!
//! In the formulas, T is `from`, M is `to`, F is `by`, P is `jitter`, n counts the delays already
//! taken, U(a, b) is uniform, N(m, s) is normal with standard deviation s, and `prev` is the delay
//! before.

mod bounds;
mod delay;
mod mistake;
mod percent;
mod policy;
#[cfg(test)]
mod tests;

pub use bounds::{Bound, Bounds};
pub use delay::{Backoff, State, deferral, last_attempt};
pub use mistake::Mistake;
pub use policy::{Clauses, Policy};

/// The policies by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum Kind {
    /// min(R·T·Fⁿ, M) with R = U(1, 2): spreads the load, but is never less patient than plain
    /// backoff. Thain, *Exponential Backoff in Distributed Systems*, 2009.
    Ethernet,
    /// min(T·Fⁿ, M): no jitter, so clients that failed together return together.
    Exponential,
    /// U(0, min(T·Fⁿ, M)). Brooker, *Exponential Backoff And Jitter* (AWS), 2015: full jitter.
    Full,
    /// v/2 + U(0, v/2), v = min(T·Fⁿ, M). Brooker 2015: equal jitter.
    Equal,
    /// min(M, U(T, 3·prev)), prev starts at T. Brooker 2015: decorrelated jitter.
    Decorrelated,
    /// T at first, then v + N(0, P·v) with v = min(prev·F, M), the jittered value being the next
    /// prev; never below 0. An article on the interval between retried requests, whose client in Go
    /// has `MinDelay`, `MaxDelay`, `Factor` and `Jitter`.
    Normal,
    /// v·U(1−P, 1+P), v = min(T·Fⁿ, M). Google's `ExponentialBackOff` for Java.
    Proportional,
    /// T times a whole number drawn from 0 … 2^min(n+1, 10) − 1, at most M. Ethernet's truncated
    /// binary exponential backoff (IEEE 802.3).
    Slotted,
    /// The rest of the previous window, plus U(0, w), w = min(T·2ⁿ, M/2): attempts fall in windows
    /// that never overlap, so that the retry rate of a crowd only falls. *Exponential back-off,
    /// revisited*, 2024. Windows stop growing at M/2 because a delay can last for nearly all of
    /// one window and all of the next. Time spent in attempts counts: one that outlasts its window
    /// is followed by a retry in the rest of the window that is on by then.
    Windowed,
    /// T.
    Fixed,
    /// 0.
    None,
}

/// What can be set about a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Clause {
    /// `from D`: T, the first delay or the slot.
    From,
    /// `to D`: M, the longest delay.
    To,
    /// `by F`: F, the factor between delays.
    By,
    /// `jitter P%`: P, the spread as a part of the delay.
    Jitter,
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

    /// The clauses it can be given.
    pub fn clauses(self) -> &'static [Clause] {
        match self {
            Self::Ethernet | Self::Exponential | Self::Full | Self::Equal => {
                &[Clause::From, Clause::To, Clause::By]
            }
            Self::Normal | Self::Proportional => {
                &[Clause::From, Clause::To, Clause::By, Clause::Jitter]
            }
            Self::Decorrelated | Self::Slotted | Self::Windowed => &[Clause::From, Clause::To],
            Self::Fixed => &[Clause::From],
            Self::None => &[],
        }
    }

    /// Whether it can be given this clause.
    pub fn takes(self, clause: Clause) -> bool {
        self.clauses().contains(&clause)
    }
}

impl Clause {
    /// Every clause, in the order they are written.
    pub const ALL: [Self; 4] = [Self::From, Self::To, Self::By, Self::Jitter];

    /// Its keyword.
    pub fn name(self) -> &'static str {
        match self {
            Self::From => "from",
            Self::To => "to",
            Self::By => "by",
            Self::Jitter => "jitter",
        }
    }

    /// What follows it, in words.
    fn wants(self) -> &'static str {
        match self {
            Self::From | Self::To => "a duration, like `500 ms`",
            Self::By => "a number, like `2`",
            Self::Jitter => "a percentage, like `10%`",
        }
    }

    /// The clause of this keyword.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|clause| clause.name() == name)
    }
}
