//! Engines, which run branches on other machines: their names and arguments in scripts.
//!
//! The crate `ftsh-cluster` implements the engines.

mod argument;

pub use self::argument::{Argument, RefusedOption, hosts};
use self::argument::{NOTHING, ONE_TASK, STREAMS};

/// Identity of an engine.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub enum EngineId {
    /// The batch system Slurm.
    Slurm,
    /// A list of hosts, reached by `ssh`.
    Ssh,
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

impl EngineId {
    /// All engines.
    pub const ALL: [Self; 2] = [Self::Slurm, Self::Ssh];

    /// Returns the facts about the engine.
    pub const fn row(self) -> &'static EngineRow {
        match self {
            Self::Slurm => &SLURM,
            Self::Ssh => &SSH,
        }
    }

    /// Returns the name after `on`, which journals and logs use too.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns the engine with a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|engine| engine.name() == name)
    }

    /// True if the argument lists the hosts, so that the shell and not the engine chooses a machine.
    pub const fn lists_hosts(self) -> bool {
        matches!(self.row().argument, Argument::Hosts)
    }

    /// Returns the error in an argument.
    pub fn argument_error(self, argument: &str) -> Option<String> {
        self.row().argument.error(self.name(), argument)
    }

    /// Returns the forms of engines with their arguments, like `` `ssh HOST ...` ``, joined by
    /// commas and "or".
    pub fn usage() -> String {
        let mut usages: Vec<_> = Self::ALL.into_iter().flat_map(Self::usages).collect();
        let last = usages.pop().unwrap_or_default();
        format!("{} or {last}", usages.join(", "))
    }

    fn usages(self) -> Vec<String> {
        let name = self.name();
        match self.row().argument {
            Argument::Options { .. } => vec![format!("`{name}`"), format!("`{name} OPTION ...`")],
            Argument::Hosts => vec![format!("`{name} HOST ...`")],
        }
    }
}
