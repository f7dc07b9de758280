//! Inputs of a run.

use std::sync::Arc;
use std::time::Duration;

use bstr::{BString, ByteSlice};
use serde::{Deserialize, Serialize};

use ftsh_machine::record::Level;
use ftsh_machine::secrets::Secrets;
use ftsh_machine::{Config, Deadline, Machine};
use ftsh_syntax::backoff::Policy;
use ftsh_syntax::clauses::On;
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
    /// Settings of the machine.
    settings: Settings,
}

/// Configuration of a machine, without the level of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Settings {
    pid: u32,
    umask: u16,
    passing_input: bool,
    backoff: Policy,
    kill_timeout: Duration,
    kill_strong: bool,
    unset_is_empty: bool,
    deadline: Deadline,
    redacted: Vec<String>,
    on: Option<On<BString>>,
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
            settings: Settings {
                pid: config.pid,
                umask: config.umask,
                passing_input: config.passing_input,
                backoff: config.backoff.clone(),
                kill_timeout: config.kill_timeout,
                kill_strong: config.kill_strong,
                unset_is_empty: config.unset_is_empty,
                deadline: config.deadline,
                redacted: config.secrets.all_names().to_vec(),
                on: config.on.clone(),
            },
        }
    }

    /// Returns true if a script and the files that it uses have the recorded texts.
    pub fn is_of(&self, script: &Script) -> bool {
        self.text == with_files(script)
    }

    /// Returns the process id of the shell.
    pub fn pid(&self) -> u32 {
        self.settings.pid
    }

    /// Returns the values to redact from the log of the run.
    pub fn secrets(&self) -> Secrets {
        let value = |wanted: &str| {
            let found = self.environment.iter().find(|(name, _)| name == wanted);
            found.map(|(_, value)| value.as_bytes()).unwrap_or_default()
        };
        let secrets = Secrets::new(self.settings.redacted.clone(), value("FTSH_REDACT"));
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
        let settings = &self.settings;
        let config = Config {
            pid: settings.pid,
            umask: settings.umask,
            passing_input: settings.passing_input,
            backoff: settings.backoff.clone(),
            kill_timeout: settings.kill_timeout,
            kill_strong: settings.kill_strong,
            unset_is_empty: settings.unset_is_empty,
            deadline: settings.deadline,
            on: settings.on.clone(),
            log_level,
            secrets,
        };
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
