//! How modelled commands behave.

use std::time::Duration;

use bstr::{BStr, BString, ByteSlice};

use ftsh_machine::Time;
use ftsh_machine::effect::{Environment, Umask};
use ftsh_machine::event::Status;

/// A command as it is run.
#[derive(Debug)]
pub struct Call<'a> {
    /// Its name and arguments.
    pub words: &'a [BString],
    /// The exported variables.
    pub environment: &'a Environment,
    /// Variables for this command only.
    pub overrides: &'a [(BString, BString)],
    /// What its standard input has.
    pub input: BString,
    /// The rights that its files don't get; none for those that the shell was started without.
    pub umask: Umask,
    /// When it starts.
    pub now: Time,
    /// How long it has from SIGTERM to SIGKILL, where that is less than the run's kill timeout.
    pub grace: Option<Duration>,
    /// When it must end, as `FTSH_DEADLINE` says.
    pub deadline: Option<Time>,
}

impl Call<'_> {
    /// A variable of its environment.
    pub fn variable(&self, name: &str) -> Option<&BStr> {
        let all = self.overrides.iter().chain(self.environment);
        all.filter(|(key, _)| key == name).map(|(_, value)| value.as_bstr()).next()
    }
}

/// What a command does.
#[derive(Clone, Debug)]
pub struct Model {
    /// How long it runs; none is for ever.
    pub takes: Option<Duration>,
    /// How it ends.
    pub status: Status,
    /// What it writes to descriptor 1 when it ends.
    pub output: BString,
    /// What it writes to descriptor 2 when it ends.
    pub errors: BString,
    /// How long it takes to obey SIGTERM; none is not to obey.
    pub obeys: Option<Duration>,
    /// Whether something of it runs on when it has succeeded.
    pub leaves: bool,
    /// Whether somebody reads what it writes, although it dies of SIGPIPE.
    pub read: bool,
    /// Whether it reads its standard input to the end, so that nobody else does.
    pub consumes: bool,
}

impl Model {
    /// Ends like this, at once.
    pub fn ends(status: Status) -> Self {
        Self {
            takes: Some(Duration::ZERO),
            status,
            output: BString::default(),
            errors: BString::default(),
            obeys: Some(Duration::ZERO),
            leaves: false,
            read: false,
            consumes: false,
        }
    }

    /// Exits 0 at once.
    pub fn succeeds() -> Self {
        Self::ends(Status::Exited(0))
    }

    /// Exits with `code` at once.
    pub fn fails(code: i32) -> Self {
        Self::ends(Status::Exited(code))
    }

    /// Never ends by itself.
    pub fn hangs() -> Self {
        Self { takes: None, ..Self::succeeds() }
    }

    /// Takes this long.
    #[must_use]
    pub fn takes(self, takes: Duration) -> Self {
        Self { takes: Some(takes), ..self }
    }

    /// Writes this to descriptor 1.
    #[must_use]
    pub fn prints(self, output: impl Into<BString>) -> Self {
        Self { output: output.into(), ..self }
    }

    /// Ignores SIGTERM.
    #[must_use]
    pub fn stubborn(self) -> Self {
        Self { obeys: None, ..self }
    }

    /// Has a reader to its end.
    #[must_use]
    pub fn read(self) -> Self {
        Self { read: true, ..self }
    }

    /// Writes this to descriptor 2.
    #[must_use]
    pub fn complains(self, errors: impl Into<BString>) -> Self {
        Self { errors: errors.into(), ..self }
    }

    /// Reads its standard input to the end.
    #[must_use]
    pub fn consumes(self) -> Self {
        Self { consumes: true, ..self }
    }

    /// Leaves something running when it succeeds.
    #[must_use]
    pub fn leaves_a_daemon(self) -> Self {
        Self { leaves: true, ..self }
    }
}

/// Whether a name matches a pattern of `*`, `?` and literal text.
pub fn matches(pattern: &[u8], name: &[u8]) -> bool {
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
