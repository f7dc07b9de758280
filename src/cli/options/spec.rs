//! An option of the command line.

use anyhow::{Result, anyhow};

use crate::cli::options::values::BadValue;

/// First heading in the help, for options without a heading of their own.
const GENERAL: &str = "General";

/// An option of the command line.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each can be true of any option")]
pub struct Spec {
    /// Names on the command line, such as `-l` and `--log-format`; the first is the main name.
    pub names: &'static [&'static str],
    /// Name of the value; none for a switch.
    pub value: Option<&'static str>,
    /// True if the value is optional.
    pub is_optional: bool,
    /// True if a value has to stand in the same word as the option, after a `=`.
    pub is_joined: bool,
    /// True if the option may be repeated and all values count.
    pub is_repeated: bool,
    /// Values that completions suggest. Other values may be valid.
    pub suggestions: fn() -> Vec<&'static str>,
    /// True if completions suggest files.
    pub is_file: bool,
    /// Variable of the environment with the same meaning.
    pub variable: Option<&'static str>,
    /// True if the variable applies to one shell only, not to shells that a script starts.
    pub is_private: bool,
    /// Default value.
    pub default: Option<&'static str>,
    /// Heading of the option in the help.
    pub heading: &'static str,
    /// True if the short help lists the option.
    pub is_common: bool,
    /// Description in the help.
    pub help: &'static str,
}

/// An option whose value has a type of its own.
#[derive(Debug)]
pub struct Setting<T> {
    /// The option.
    pub option: Spec,
    /// Parser of a value.
    pub read: fn(&str) -> Result<T, BadValue>,
    /// Formatter of a value for nested shells.
    pub write: fn(&T) -> String,
}

/// Defaults of the fields.
pub(crate) const PLAIN: Spec = Spec {
    names: &[],
    value: None,
    is_optional: false,
    is_joined: false,
    is_repeated: false,
    suggestions: Vec::new,
    is_file: false,
    variable: None,
    is_private: false,
    default: None,
    heading: GENERAL,
    is_common: false,
    help: "",
};

impl<T> Setting<T> {
    /// Returns the value that applies without the option.
    ///
    /// # Errors
    ///
    /// Fails if the table has no default for the option, or one that cannot be parsed.
    pub fn default(&self) -> Result<T> {
        let option = &self.option;
        let text = option.default.ok_or_else(|| anyhow!("`{}` has no default", option.name()))?;
        (self.read)(text)
            .map_err(|reason| anyhow!("`{}` has a bad default: {reason}", option.name()))
    }
}

impl Spec {
    /// Returns the main name.
    pub fn name(&self) -> &'static str {
        self.names[0]
    }

    /// True if `letter` is a name of the option and the option takes a value.
    pub fn takes_value_as(&self, letter: char) -> bool {
        self.value.is_some() && self.names.iter().any(|name| short(name) == Some(letter))
    }

    /// Returns the description with the default.
    pub fn meaning(&self) -> String {
        let default = self.default.map(|default| format!(" [{default}]"));
        format!("{}{}", self.help, default.unwrap_or_default())
    }

    /// Returns the variable in the form of an assignment; a switch has the value that turns it on.
    pub fn assignment(&self) -> Option<String> {
        let on = if self.value.is_none() { "=1" } else { "" };
        self.variable.map(|variable| format!("{variable}{on}"))
    }
}

/// Returns the letter of an option with a single letter.
pub fn short(name: &str) -> Option<char> {
    let rest = name.strip_prefix('-')?;
    let mut letters = rest.chars();
    letters.next().filter(|letter| *letter != '-' && letters.next().is_none())
}
