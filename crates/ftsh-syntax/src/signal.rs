//! Signals of the clause `signal NAME`.

use serde::{Deserialize, Serialize};

use crate::hint::{Hint, hint};
use crate::nearest::nearest;

/// Prefix of the long form of a name.
const PREFIX: &str = "SIG";

/// Signal that cancels the processes of an attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Signal {
    /// Request to end.
    #[default]
    Term,
    /// Interruption, as by Ctrl-C.
    Int,
    /// Hangup of the terminal.
    Hup,
    /// Request to end with a core dump, as by Ctrl-\\.
    Quit,
    /// First signal that programs define.
    Usr1,
    /// Second signal that programs define.
    Usr2,
    /// End of a timer.
    Alrm,
    /// Abnormal end.
    Abrt,
    /// Change of the size of the terminal.
    Winch,
    /// End that no process can prevent.
    Kill,
}

impl Signal {
    /// All signals.
    pub const ALL: [Self; 10] = [
        Self::Term,
        Self::Int,
        Self::Hup,
        Self::Quit,
        Self::Usr1,
        Self::Usr2,
        Self::Alrm,
        Self::Abrt,
        Self::Winch,
        Self::Kill,
    ];

    /// Returns the name without `SIG`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Term => "TERM",
            Self::Int => "INT",
            Self::Hup => "HUP",
            Self::Quit => "QUIT",
            Self::Usr1 => "USR1",
            Self::Usr2 => "USR2",
            Self::Alrm => "ALRM",
            Self::Abrt => "ABRT",
            Self::Winch => "WINCH",
            Self::Kill => "KILL",
        }
    }

    /// Returns the signal of a name, with or without `SIG`.
    pub fn named(name: &str) -> Option<Self> {
        let name = name.strip_prefix(PREFIX).unwrap_or(name);
        Self::ALL.into_iter().find(|signal| signal.name() == name)
    }
}

/// Returns the message about an unknown name.
pub fn unknown(name: &str) -> String {
    format!("`{name}` is not a signal that `signal` can send")
}

/// Returns the hint about an unknown name.
pub fn unknown_hint(name: &str) -> Hint {
    let upper = name.to_ascii_uppercase();
    let short = upper.strip_prefix(PREFIX).unwrap_or(&upper);
    match nearest(short, Signal::ALL.map(Signal::name)) {
        Some(meant) => hint!("did you mean `signal {meant}`?"),
        None => {
            let names = Signal::ALL.map(Signal::name).join(", ");
            hint!("the signals are {names}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_two_forms() {
        for signal in Signal::ALL {
            assert_eq!(Signal::named(signal.name()), Some(signal));
            assert_eq!(Signal::named(&format!("SIG{}", signal.name())), Some(signal));
        }
        for wrong in ["", "SIG", "int", "SIGSIGINT", "2", "STOP", "INT "] {
            assert_eq!(Signal::named(wrong), None, "{wrong}");
        }
    }
}
