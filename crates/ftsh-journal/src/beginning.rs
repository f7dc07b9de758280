//! Inputs of a run.

use std::sync::Arc;
use std::time::Duration;

use bstr::{BString, ByteSlice};
use serde::{Deserialize, Serialize};

use ftsh_machine::record::Level;
use ftsh_machine::record::spans::{TRACEPARENT, TraceContext};
use ftsh_machine::secrets::Secrets;
use ftsh_machine::{Config, Machine};
use ftsh_syntax::{Script, parse};

/// Everything that a machine is built from, and the moment of the beginning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Beginning {
    /// Behavior of the machine, as [`super::BEHAVIOR`].
    pub behavior: u32,
    /// Version of the shell, for messages.
    pub version: String,
    /// Moment of the beginning, since 1970.
    pub at: Duration,
    /// Name of the script.
    pub name: String,
    /// Text of the script. For each `use`, the name of the file follows after a NUL, empty if the
    /// file was used before, and then the text of the file in the same form. No script contains a
    /// NUL.
    pub text: String,
    /// `$0`, `$1`, …
    pub arguments: Vec<BString>,
    /// Environment of the shell.
    pub environment: Vec<(BString, BString)>,
    /// Seed of the random choices.
    pub seed: u64,
    /// Settings of the machine, with the names of secret variables only.
    config: Config,
}

impl Beginning {
    /// Returns the inputs of a run of `script` that begins `at` this time since 1970.
    pub fn new(
        script: &Script,
        arguments: &[BString],
        environment: &[(BString, BString)],
        config: &Config,
        seed: u64,
        at: Duration,
    ) -> Self {
        Self {
            behavior: super::BEHAVIOR,
            version: env!("CARGO_PKG_VERSION").into(),
            at,
            name: script.source.name().to_string(),
            text: with_files(script),
            arguments: arguments.to_vec(),
            environment: environment.to_vec(),
            seed,
            config: Config {
                secrets: Secrets::new(config.secrets.all_names().to_vec(), b""),
                log_level: Level::NOTHING,
                ..config.clone()
            },
        }
    }

    /// Returns true if a script and the files that it uses have the recorded texts.
    pub fn is_of(&self, script: &Script) -> bool {
        self.text == with_files(script)
    }

    /// Returns the process id of the shell.
    pub fn pid(&self) -> u32 {
        self.config.pid
    }

    /// Returns the place of the run in a distributed trace, also of a run that had no trace.
    pub fn trace(&self, run: u64) -> TraceContext {
        let caller = self.environment.iter().find(|(name, _)| name == TRACEPARENT);
        let own = || TraceContext::new(run, None);
        let context = TraceContext::new(run, caller.map(|(_, value)| &value[..]));
        self.config.trace.or(context).or_else(own).unwrap_or_default()
    }

    /// Returns the values to redact from the log of the run.
    pub fn secrets(&self) -> Secrets {
        let value = |wanted: &str| {
            let found = self.environment.iter().find(|(name, _)| name == wanted);
            found.map(|(_, value)| value.as_bytes()).unwrap_or_default()
        };
        let secrets = Secrets::new(self.config.secrets.all_names().to_vec(), value("FTSH_REDACT"));
        for name in secrets.all_names() {
            secrets.learn(name, value(name));
        }
        secrets
    }

    /// Returns a machine with the same behavior, which logs records up to `log_level`.
    ///
    /// Returns `None` if the text is not a valid script.
    pub fn machine(&self, log_level: Level, secrets: Secrets) -> Option<Machine> {
        let script = script(&self.name, &mut self.text.split('\0'))?;
        let config = Config { log_level, secrets, ..self.config.clone() };
        let (arguments, environment) = (self.arguments.clone(), self.environment.clone());
        Some(Machine::new(&script, arguments, environment, config, self.seed))
    }
}

/// Returns the text of a script, followed by those of the files that it uses.
fn with_files(script: &Script) -> String {
    let mut text = script.source.text().to_owned();
    for file in &script.used {
        text.push('\0');
        if let Some(file) = file {
            text += file.source.name();
            text.push('\0');
            text += &with_files(file);
        }
    }
    text
}

/// Parses a script and the files that it uses, which were checked before they were recorded.
fn script(name: &str, parts: &mut std::str::Split<'_, char>) -> Option<Script> {
    let mut script = parse(name, parts.next()?).ok()?;
    for _ in 0..script.uses().count() {
        let file = match parts.next()? {
            "" => None,
            name => Some(Arc::new(self::script(name, parts)?)),
        };
        script.used.push(file);
    }
    Some(script)
}
