//! What a run begins with.

use std::time::Duration;

use bstr::{BString, ByteSlice};
use serde::{Deserialize, Serialize};

use ftsh_machine::record::Level;
use ftsh_machine::secrets::Secrets;
use ftsh_machine::{Config, Machine, Time};
use ftsh_syntax::backoff::{Kind, Policy};
use ftsh_syntax::clauses::On;
use ftsh_syntax::engine::EngineId;
use ftsh_syntax::{Script, parse};

/// All that a machine is made of, and when that was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Beginning {
    /// Which machine it is, as [`super::BEHAVIOR`].
    pub behavior: u32,
    /// The version of the shell, for people.
    pub version: String,
    /// The moment, since 1970.
    pub at: Duration,
    /// What the script is called.
    pub name: String,
    /// Its text.
    pub text: String,
    /// `$0`, `$1`, …
    pub arguments: Vec<BString>,
    /// The variables that it finds.
    pub environment: Vec<(BString, BString)>,
    /// For the random choices.
    pub seed: u64,
    /// The settings.
    settings: Settings,
}

/// What a machine's configuration says, but for what it tells people.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Settings {
    pid: u32,
    umask: u16,
    passing_input: bool,
    backoff: Backoff,
    kill_timeout: Duration,
    kill_strong: bool,
    unset_is_empty: bool,
    deadline: Option<Duration>,
    redacted: Vec<String>,
    /// An engine, and a word for it.
    on: Option<(String, Option<BString>)>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Backoff {
    kind: String,
    from: Duration,
    to: Duration,
    by: f64,
    jitter: f64,
}

impl Beginning {
    /// The beginning of a run of `script` at this moment since 1970.
    pub fn new(
        script: &Script,
        arguments: &[BString],
        environment: &[(BString, BString)],
        config: &Config,
        seed: u64,
        at: Duration,
    ) -> Self {
        let Policy { kind, from, to, by, jitter } = config.backoff;
        Self {
            behavior: super::BEHAVIOR,
            version: env!("CARGO_PKG_VERSION").into(),
            at,
            name: script.source.name().to_string(),
            text: script.source.text().into(),
            arguments: arguments.to_vec(),
            environment: environment.to_vec(),
            seed,
            settings: Settings {
                pid: config.pid,
                umask: config.umask,
                passing_input: config.passing_input,
                backoff: Backoff { kind: kind.name().into(), from, to, by, jitter },
                kill_timeout: config.kill_timeout,
                kill_strong: config.kill_strong,
                unset_is_empty: config.unset_is_empty,
                deadline: config.deadline.map(Time::elapsed),
                redacted: config.secrets.all_names().to_vec(),
                on: config.on.clone().map(|on| (on.engine.name().into(), on.options)),
            },
        }
    }

    /// The process id of the shell.
    pub fn pid(&self) -> u32 {
        self.settings.pid
    }

    /// What isn't to be said of the run.
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

    /// A machine that is to do the same, and tells this much of it; none if the text isn't a script or the
    /// policy unknown.
    pub fn machine(&self, log_level: Level, secrets: Secrets) -> Option<Machine> {
        let script = parse(&self.name, &self.text).ok()?;
        let Settings {
            pid, umask, passing_input, kill_timeout, kill_strong, unset_is_empty, ..
        } = self.settings;
        let Backoff { kind, from, to, by, jitter } = &self.settings.backoff;
        let (kind, from, to) = (Kind::named(kind)?, *from, *to);
        let on = match self.settings.on.clone() {
            Some((engine, options)) => Some(On { engine: EngineId::named(&engine)?, options }),
            None => None,
        };
        let config = Config {
            pid,
            umask,
            passing_input,
            backoff: Policy { kind, from, to, by: *by, jitter: *jitter },
            kill_timeout,
            kill_strong,
            unset_is_empty,
            deadline: self.settings.deadline.map(Time::after),
            on,
            log_level,
            secrets,
        };
        let (arguments, environment) = (self.arguments.clone(), self.environment.clone());
        Some(Machine::new(&script, arguments, environment, config, self.seed))
    }
}
