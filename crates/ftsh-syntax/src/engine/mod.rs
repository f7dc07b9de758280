//! Engines, which run branches on other machines: their names and arguments in scripts.
//!
//! The crate `ftsh-cluster` implements the engines.

mod argument;
mod carrier;

pub use self::argument::{Argument, RefusedOption, hosts};
use self::argument::{NOTHING, ONE_TASK, STREAMS};
pub use self::carrier::{CarrierName, words_for_carrier};

/// Identity of an engine. Journals and messages between shells contain the name.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(into = "String", try_from = "String")]
pub enum EngineId {
    /// The batch system Slurm.
    Slurm,
    /// A list of hosts, reached by `ssh`.
    Ssh,
    /// A program along PATH, which runs branches elsewhere.
    Carrier(CarrierName),
}

/// Facts about an engine that the text of a script depends on.
#[derive(Debug)]
pub struct EngineRow {
    /// Name after `on`.
    pub name: &'static str,
    /// Text that explains `on NAME` to people.
    pub help: &'static str,
    /// Value that may stand after the name.
    pub argument: Argument,
}

const SLURM: EngineRow = EngineRow {
    name: "slurm",
    help: "`on slurm OPTIONS`: branches run as jobs of a Slurm cluster.",
    argument: Argument::Options {
        program: "srun",
        #[rustfmt::skip]
        refused: &[
            RefusedOption::option('n', "ntasks", ONE_TASK),
            RefusedOption::option('N', "nodes", ONE_TASK),
            RefusedOption::option('i', "input", STREAMS),
            RefusedOption::option('o', "output", STREAMS),
            RefusedOption::option('e', "error", STREAMS),
            RefusedOption::option('l', "label", STREAMS),
            RefusedOption::long("pty", STREAMS),
            RefusedOption::long("multi-prog", "a branch runs this shell as its only program"),
            RefusedOption::option('Q', "quiet", "the shell reads the messages about the job"),
            RefusedOption::option('E', "preserve-env", "a branch requests its resources by options"),
            RefusedOption::option('Z', "no-allocate", "a branch needs an allocation"),
            RefusedOption::option('V', "version", NOTHING),
            RefusedOption::option('h', "help", NOTHING),
            RefusedOption::long("usage", NOTHING),
            RefusedOption::long("test-only", NOTHING),
            RefusedOption::long("het-group", ONE_TASK),
        ],
        flags: "HklOQsuvXZEVh",
    },
};

const SSH: EngineRow = EngineRow {
    name: "ssh",
    help: "`on ssh HOSTS`: branches run on these machines.",
    argument: Argument::Hosts,
};

const CARRIER: EngineRow = EngineRow {
    name: "NAME",
    help: "`on NAME WORDS`: the program `ftsh-carry-NAME` runs branches elsewhere.",
    argument: Argument::Words,
};

impl EngineId {
    /// The engines of the shell itself.
    pub const BUILT_IN: [Self; 2] = [Self::Slurm, Self::Ssh];

    /// Returns the facts about all engines; the last row is that of carriers.
    pub fn rows() -> impl Iterator<Item = &'static EngineRow> {
        Self::BUILT_IN.into_iter().map(Self::row).chain([&CARRIER])
    }

    /// Returns the facts about the engine.
    pub const fn row(self) -> &'static EngineRow {
        match self {
            Self::Slurm => &SLURM,
            Self::Ssh => &SSH,
            Self::Carrier(_) => &CARRIER,
        }
    }

    /// Returns the name after `on`, which journals and logs use too.
    pub fn name(self) -> &'static str {
        match self {
            Self::Slurm | Self::Ssh => self.row().name,
            Self::Carrier(name) => name.as_str(),
        }
    }

    /// Returns the engine with a name; none if no engine can have this name.
    pub fn named(name: &str) -> Option<Self> {
        let built_in = Self::BUILT_IN.into_iter().find(|engine| engine.name() == name);
        built_in.or_else(|| CarrierName::new(name).map(Self::Carrier))
    }

    /// Returns the hosts in an argument, each with its places, if the shell and not the engine
    /// chooses a machine.
    ///
    /// # Errors
    ///
    /// Returns the reason if the list is invalid.
    pub fn hosts(self, argument: &str) -> Result<Option<Vec<(String, u64)>>, String> {
        match self.row().argument {
            Argument::Options { .. } => Ok(None),
            Argument::Hosts => hosts(argument).map(Some),
            Argument::Words => carrier::hosts(argument),
        }
    }

    /// Returns the error in an argument.
    pub fn argument_error(self, argument: &str) -> Option<String> {
        self.hosts(argument).err().or_else(|| self.row().argument.error(self.name(), argument))
    }

    /// Returns the forms of engines with their arguments, like `` `ssh HOST ...` ``, joined by
    /// commas and "or".
    pub fn usage() -> String {
        let mut usages: Vec<_> = Self::rows().flat_map(EngineRow::usages).collect();
        let last = usages.pop().unwrap_or_default();
        format!("{} or {last}", usages.join(", "))
    }
}

impl EngineRow {
    fn usages(&self) -> Vec<String> {
        let name = self.name;
        match self.argument {
            Argument::Options { .. } => vec![format!("`{name}`"), format!("`{name} OPTION ...`")],
            Argument::Hosts => vec![format!("`{name} HOST ...`")],
            Argument::Words => vec![format!("`{name} WORD ...` for `ftsh-carry-{name}`")],
        }
    }
}

impl From<EngineId> for String {
    fn from(engine: EngineId) -> Self {
        engine.name().to_owned()
    }
}

impl TryFrom<String> for EngineId {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        Self::named(&name).ok_or_else(|| format!("there is no engine `{name}`"))
    }
}
