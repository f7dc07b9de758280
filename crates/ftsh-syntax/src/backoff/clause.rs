//! Clauses of `backoff`.

/// Parameter of a policy that scripts can set.
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

impl Clause {
    /// Every clause, in the order they are written.
    pub const ALL: [Self; 4] = [Self::From, Self::To, Self::By, Self::Jitter];

    /// Returns the keyword.
    pub fn name(self) -> &'static str {
        match self {
            Self::From => "from",
            Self::To => "to",
            Self::By => "by",
            Self::Jitter => "jitter",
        }
    }

    /// Returns the description of a value.
    pub(super) fn value_form(self) -> &'static str {
        match self {
            Self::From | Self::To => "a duration, like `500 ms`",
            Self::By => "a number, like `2`",
            Self::Jitter => "a percentage, like `10%`",
        }
    }

    /// Returns the clause of this keyword.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|clause| clause.name() == name)
    }
}
