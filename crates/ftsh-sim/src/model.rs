//! Behavior of modelled commands.

use std::time::Duration;

use bstr::{BStr, BString, ByteSlice};

use ftsh_machine::Time;
use ftsh_machine::effect::{Environment, Umask};
use ftsh_machine::event::CommandStatus;
use ftsh_machine::time::Deadline;

/// Run of a command.
#[derive(Debug)]
pub struct Call<'a> {
    /// Name and arguments.
    pub words: &'a [BString],
    /// Exported variables.
    pub environment: &'a Environment,
    /// Variables for this command only.
    pub overrides: &'a [(BString, BString)],
    /// Content of the standard input.
    pub input: BString,
    /// File mode mask of the command; none for the mask that the shell started with.
    pub umask: Umask,
    /// Time of the start.
    pub now: Time,
    /// Time from SIGTERM to SIGKILL, if less than the run's kill timeout.
    pub grace: Option<Duration>,
    /// Deadline in `FTSH_DEADLINE`.
    pub deadline: Deadline,
}

impl Call<'_> {
    /// Returns a variable of the environment.
    pub fn variable(&self, name: &str) -> Option<&BStr> {
        let all = self.overrides.iter().chain(self.environment);
        all.filter(|(key, _)| key == name).map(|(_, value)| value.as_bstr()).next()
    }
}

/// Signals that end a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndsBy {
    /// Every signal that ends a process by default.
    AnySignal,
    /// SIGTERM alone.
    Sigterm,
}

/// Behavior of a command.
#[derive(Clone, Debug)]
pub struct Model {
    /// Duration; none for a command that never ends.
    pub takes: Option<Duration>,
    /// Status at the end.
    pub status: CommandStatus,
    /// Output on descriptor 1 at the end.
    pub output: BString,
    /// Output on descriptor 2 at the end.
    pub errors: BString,
    /// Time from SIGTERM to the end; none if the command ignores SIGTERM.
    pub terminates_after: Option<Duration>,
    /// Signals of `signal NAME` that end the command.
    pub ends_by: EndsBy,
    /// True if a process continues after a success.
    pub leaves: bool,
    /// True if a reader exists although the command dies of SIGPIPE.
    pub read: bool,
    /// True if the command reads its standard input to the end.
    pub consumes: bool,
    /// Time of progress after the start; none for a command that always makes progress.
    pub progress: Option<Duration>,
    /// Memory in bytes, and the time after the start at which the command has it.
    pub memory: (Duration, u64),
}

impl Model {
    /// Ends at once with a status.
    pub fn ends(status: CommandStatus) -> Self {
        Self {
            takes: Some(Duration::ZERO),
            status,
            output: BString::default(),
            errors: BString::default(),
            terminates_after: Some(Duration::ZERO),
            ends_by: EndsBy::AnySignal,
            leaves: false,
            read: false,
            consumes: false,
            progress: None,
            memory: (Duration::ZERO, 0),
        }
    }

    /// Exits 0 at once.
    pub fn succeeds() -> Self {
        Self::ends(CommandStatus::Exited(0))
    }

    /// Exits with `code` at once.
    pub fn fails(code: i32) -> Self {
        Self::ends(CommandStatus::Exited(code))
    }

    /// Never ends by itself.
    pub fn hangs() -> Self {
        Self { takes: None, ..Self::succeeds() }
    }

    /// Sets the duration.
    #[must_use]
    pub fn takes(self, takes: Duration) -> Self {
        Self { takes: Some(takes), ..self }
    }

    /// Sets the output on descriptor 1.
    #[must_use]
    pub fn prints(self, output: impl Into<BString>) -> Self {
        Self { output: output.into(), ..self }
    }

    /// Makes no progress from a time after the start on.
    #[must_use]
    pub fn stalls_after(self, progress: Duration) -> Self {
        Self { progress: Some(progress), ..self }
    }

    /// Has this memory in bytes, from a time after the start on.
    #[must_use]
    pub fn grows(self, after: Duration, memory: u64) -> Self {
        Self { memory: (after, memory), ..self }
    }

    /// Ignores SIGTERM.
    #[must_use]
    pub fn stubborn(self) -> Self {
        Self { terminates_after: None, ..self }
    }

    /// Ignores the signals of `signal NAME` except for SIGTERM.
    #[must_use]
    pub fn ignores_others(self) -> Self {
        Self { ends_by: EndsBy::Sigterm, ..self }
    }

    /// Marks the output as read to its end.
    #[must_use]
    pub fn read(self) -> Self {
        Self { read: true, ..self }
    }

    /// Sets the output on descriptor 2.
    #[must_use]
    pub fn complains(self, errors: impl Into<BString>) -> Self {
        Self { errors: errors.into(), ..self }
    }

    /// Reads its standard input to the end.
    #[must_use]
    pub fn consumes(self) -> Self {
        Self { consumes: true, ..self }
    }

    /// Leaves a process running after a success.
    #[must_use]
    pub fn leaves_a_daemon(self) -> Self {
        Self { leaves: true, ..self }
    }
}

/// True if a name matches a pattern of `*`, `?` and literal text.
pub(crate) fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern, name) {
        ([], []) => true,
        ([b'*', rest @ ..], _) => {
            matches(rest, name)
                || matches!(name, [first, tail @ ..] if *first != b'/' && matches(pattern, tail))
        }
        ([b'?', rest @ ..], [_, tail @ ..]) => matches(rest, tail),
        ([b'\\', escaped, rest @ ..], [first, tail @ ..]) => {
            escaped == first && matches(rest, tail)
        }
        ([literal, rest @ ..], [first, tail @ ..]) => literal == first && matches(rest, tail),
        _ => false,
    }
}
