//! What a run is to do: flags and environment, examined and put together.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use bstr::BString;

use super::flags::{Flags, Lock};
use super::lock::Place;
use super::source::Program;
use crate::backoff::{Clauses, Kind, Policy};
use crate::driver::process::Patience;
use crate::duration::{self, Exact, Unit};
use crate::log::Format;
use crate::machine::record::Level;
use crate::machine::{Config, Time};
use crate::nearest::nearest;
use crate::secrets::Secrets;

/// What to do with the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Run it.
    Run,
    /// Find its errors.
    Check,
    /// Print it.
    Print,
}

/// Everything that options and environment decide.
#[derive(Debug)]
pub struct Settings {
    /// What to do with the script.
    pub action: Action,
    /// The script.
    pub program: Program,
    /// `$0`, `$1`, …
    pub arguments: Vec<BString>,
    /// For the random choices; none is to take one from the system.
    pub seed: Option<u64>,
    /// Where the log goes; none is standard error.
    pub log_file: Option<PathBuf>,
    /// How the log is written.
    pub log_format: Format,
    /// Whether the log has times in seconds since 1970.
    pub log_decimal: bool,
    /// Whether output is shown only if the script fails.
    pub cron: bool,
    /// What keeps a second run from starting.
    pub lock: Option<Place>,
    /// Where the locks of scripts are, if not in the usual place.
    pub lock_directory: Option<PathBuf>,
    /// How long to wait for the lock.
    pub lock_wait: Duration,
    /// A random part of this is waited first.
    pub splay: Duration,
    /// Whether to say at the end what the run came to.
    pub summary: bool,
    /// For the machine.
    pub config: Config,
    /// How long this shell has to kill in, and others with it.
    pub patience: Patience,
    /// Variables that tell nested shells what this one was told by options.
    pub told: Vec<(&'static str, BString)>,
}

/// What the process finds around it.
pub struct Surroundings<'a> {
    /// Looks up a variable of the environment.
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
    /// How long one may kill who was told this time.
    pub patience: &'a dyn Fn(Duration) -> Patience,
    /// The current directory.
    pub directory: &'a Path,
    /// The time since 1970.
    pub now: Duration,
    /// The process id.
    pub pid: u32,
    /// Whether someone is there to talk to.
    pub terminal: bool,
}

/// Tells nested shells whose values are hidden.
const REDACT_NAMES: &str = "FTSH_REDACT_NAMES";

/// A value, and whether an option gave it: then nested shells have to be told.
type Given<T> = Option<(T, bool)>;

impl Surroundings<'_> {
    /// A variable that is set and not empty.
    fn get(&self, name: &str) -> Option<OsString> {
        (self.variable)(name).filter(|value| !value.is_empty())
    }

    fn read<T>(&self, name: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<Option<T>> {
        self.get(name).map(|value| examine(name, &value, read)).transpose()
    }

    /// The value of an option or else of a variable. Nonsense in a variable is told even if an
    /// option overrides it.
    fn given<T>(
        &self,
        (option, value): (&str, Option<&OsString>),
        name: &str,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Given<T>> {
        let inherited = self.read(name, &read)?;
        let typed = value.map(|value| examine(option, value, &read)).transpose()?;
        Ok(typed.map(|value| (value, true)).or(inherited.map(|value| (value, false))))
    }
}

fn examine<T>(name: &str, value: &OsString, read: impl Fn(&str) -> Result<T, String>) -> Result<T> {
    let text = value.to_string_lossy();
    read(&text).map_err(|reason| anyhow!("`{name}` can't be `{text}`: {reason}"))
}

impl Settings {
    /// Puts together what was typed and what stands in the environment. Options win.
    pub fn resolve(flags: Flags, around: &Surroundings) -> Result<Self> {
        let secrets = secrets(&flags.redact, around)?;
        let hidden = secrets.clone();
        Self::examined(flags, around, secrets)
            .map_err(|error| anyhow!("{}", hidden.hide(&error.to_string())))
    }

    fn examined(flags: Flags, around: &Surroundings, secrets: Secrets) -> Result<Self> {
        let mut told = Vec::new();
        let mut tell = |name, value: BString| told.push((name, value));

        let log_level =
            around.given(("-l", flags.log_level.as_ref()), "FTSH_LOG_LEVEL", |text| {
                let level = text.parse().ok().filter(|level: &u8| *level <= 100);
                level.ok_or("it is a number from 0 to 100".into())
            })?;
        if let Some((level, true)) = log_level {
            tell("FTSH_LOG_LEVEL", level.to_string().into());
        }
        let log_format = around.given(
            ("--log-format", flags.log_format.as_ref()),
            "FTSH_LOG_FORMAT",
            |text| match text {
                "text" => Ok(Format::Text),
                "json" => Ok(Format::Json),
                _ => Err("it is `text` or `json`".into()),
            },
        )?;
        if let Some((format, true)) = log_format {
            tell("FTSH_LOG_FORMAT", if format == Format::Json { "json" } else { "text" }.into());
        }
        let log_decimal = around.read("FTSH_LOG_DECIMAL", switch)?.unwrap_or_default();
        if flags.log_decimal {
            tell("FTSH_LOG_DECIMAL", "1".into());
        }
        if flags.log_file.as_ref().is_some_and(|file| file.is_empty()) {
            bail!("`-f` lacks its value");
        }
        // Absolute, because nested shells may run elsewhere.
        let log_file = flags.log_file.or_else(|| around.get("FTSH_LOG_FILE"));
        let log_file = log_file.map(|file| around.directory.join(file));
        if let Some(file) = &log_file {
            tell("FTSH_LOG_FILE", file.clone().into_os_string().into_vec().into());
        }

        let kill_timeout =
            around.given(("-t", flags.kill_timeout.as_ref()), "FTSH_KILL_TIMEOUT", seconds)?;
        let patience = match kill_timeout {
            Some((time, false)) => (around.patience)(time),
            Some((time, true)) => Patience::of(time),
            None => Patience::of(Duration::from_secs(30)),
        };
        tell("FTSH_KILL_TIMEOUT", decimal(patience.inside().time()).into());
        let kill_strong = around.given(
            ("-k", flags.kill_mode.as_ref()),
            "FTSH_KILL_MODE",
            |text| match text {
                "strong" => Ok(true),
                "weak" => Ok(false),
                _ => Err("it is `strong` or `weak`".into()),
            },
        )?;
        if let Some((strong, true)) = kill_strong {
            tell("FTSH_KILL_MODE", if strong { "strong" } else { "weak" }.into());
        }

        let unset =
            around.given(("--unset", flags.unset.as_ref()), "FTSH_UNSET", |text| match text {
                "empty" => Ok(true),
                "fail" => Ok(false),
                _ => Err("it is `empty` or `fail`".into()),
            })?;
        if let Some((empty, true)) = unset {
            tell("FTSH_UNSET", if empty { "empty" } else { "fail" }.into());
        }
        let policy =
            around.given(("--backoff", flags.backoff.as_ref()), "FTSH_BACKOFF", |text| {
                text.parse::<Policy>().map_err(|mistake| mistake.in_a_line())
            })?;
        if let Some((policy, true)) = &policy {
            tell("FTSH_BACKOFF", policy.to_string().into());
        }
        if !flags.redact.is_empty() {
            tell(REDACT_NAMES, secrets.all_names().join(" ").into());
        }
        let policy_of_2003 = policy_of_2003(around)?;
        let deadline = around.read("FTSH_DEADLINE", |text| {
            Unit::Seconds.times(text).ok_or("it is a time in seconds since 1970".into())
        })?;
        let seed = flags.seed.map(|seed| {
            examine("--seed", &seed, |text| {
                text.parse().map_err(|_| format!("it is a whole number from 0 to {}", u64::MAX))
            })
        });

        let cron = around.read("FTSH_CRON", switch)?.unwrap_or_default();
        let lock_wait = around.given(
            ("--lock-wait", flags.lock_wait.as_ref()),
            "FTSH_LOCK_WAIT",
            duration_of_words,
        )?;
        let splay =
            around.given(("--splay", flags.splay.as_ref()), "FTSH_SPLAY", duration_of_words)?;

        let mut words = flags.words.into_iter().peekable();
        let program = match flags.text {
            Some(text) => Program::Text { text, named: words.peek().cloned() },
            None => match words.peek() {
                Some(path) if path != "-" => Program::File(path.into()),
                None if around.terminal && !flags.check && !flags.print => Program::Prompt,
                _ => {
                    words.next();
                    Program::StandardInput
                }
            },
        };
        let lock = match (flags.lock, &program) {
            (Some(Lock::File(file)), _) if file.is_empty() => bail!("`--lock=` lacks its file"),
            (Some(Lock::File(file)), _) => Some(Place::File(around.directory.join(file))),
            (Some(Lock::Alone), Program::File(script)) => Some(Place::Script(script.clone())),
            (Some(Lock::Alone), _) => {
                bail!("`--lock` alone is for script files; here it needs a name: --lock=FILE")
            }
            (None, _) => {
                around.get("FTSH_LOCK").map(|file| Place::File(around.directory.join(file)))
            }
        };
        let talks = matches!(program, Program::Prompt);
        if talks && flags.cron {
            bail!("`--cron` needs a script: at a prompt one sees what is printed");
        }
        if lock.is_none() && flags.lock_wait.is_some() {
            bail!("`--lock-wait` without `--lock` waits for nothing");
        }
        // At a prompt one sees what fails; a log is for those who asked for one.
        let usual_level = match program {
            Program::Prompt if log_file.is_none() => Level::NOTHING,
            _ => Level::FAILURES,
        };
        let mut arguments: Vec<BString> = words.map(|word| word.into_vec().into()).collect();
        if matches!(program, Program::StandardInput) || arguments.is_empty() {
            arguments.insert(0, "ftsh".into());
        }

        Ok(Self {
            action: match (flags.check, flags.print) {
                (_, true) => Action::Print,
                (true, false) => Action::Check,
                (false, false) => Action::Run,
            },
            program,
            arguments,
            seed: seed.transpose()?,
            log_file,
            log_format: log_format.map_or(Format::default(), |(format, _)| format),
            log_decimal: log_decimal || flags.log_decimal,
            cron: (cron || flags.cron) && !talks,
            lock,
            lock_directory: around.get("FTSH_LOCK_DIR").map(|path| around.directory.join(path)),
            lock_wait: lock_wait.map(|(time, _)| time).unwrap_or_default(),
            splay: splay.map(|(time, _)| time).unwrap_or_default(),
            summary: flags.summary,
            config: Config {
                pid: around.pid,
                backoff: policy.map(|(policy, _)| policy).or(policy_of_2003).unwrap_or_default(),
                kill_timeout: patience.time(),
                kill_strong: kill_strong.is_none_or(|(strong, _)| strong),
                unset_is_empty: unset.is_some_and(|(empty, _)| empty),
                deadline: deadline.map(|moment| Time::after(moment.saturating_sub(around.now))),
                log_level: log_level.map_or(usual_level, |(level, _)| Level(level)),
                secrets,
            },
            patience,
            told,
        })
    }
}

/// What is to be hidden, as far as it is known by now.
pub fn secrets(typed: &[OsString], around: &Surroundings) -> Result<Secrets> {
    let given = around.get("FTSH_REDACT").unwrap_or_default();
    let inherited = around.read(REDACT_NAMES, |text| {
        text.split_whitespace().map(variable_name).collect::<Result<Vec<_>, _>>()
    })?;
    let mut names = inherited.unwrap_or_default();
    for name in typed {
        names.push(examine("--redact", name, variable_name)?);
    }
    let secrets = Secrets::new(names, given.as_bytes());
    for name in secrets.all_names() {
        secrets.learn(name, around.get(name).unwrap_or_default().as_bytes());
    }
    Ok(secrets)
}

fn variable_name(text: &str) -> Result<String, String> {
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if starts && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        Ok(text.into())
    } else {
        Err("it is the name of a variable, whose values are hidden".into())
    }
}

fn switch(text: &str) -> Result<bool, String> {
    match text {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err("it is 0 or 1".into()),
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    Unit::Seconds.times(text).ok_or("it is a number of seconds, from 0".into())
}

fn duration_of_words(text: &str) -> Result<Duration, String> {
    duration::parse(text).ok_or_else(|| {
        let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').trim();
        match nearest(unit, Unit::names()) {
            Some(known) if known != unit => {
                format!("there is no unit `{unit}`; did you mean `{known}`?")
            }
            _ => "it is a duration, like `90s` or `5 minutes`".into(),
        }
    })
}

/// Seconds as a decimal number.
fn decimal(duration: Duration) -> String {
    let text = format!("{}.{:09}", duration.as_secs(), duration.subsec_nanos());
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The policy that the four variables of 2003 describe, if any of them is set.
fn policy_of_2003(around: &Surroundings) -> Result<Option<Policy>> {
    let from = around.read("FTSH_EXPMIN", seconds)?;
    let to = around.read("FTSH_EXPMAX", seconds)?;
    let by = around.read("FTSH_EXPFACTOR", |text| {
        let factor = text.parse().ok().filter(|by: &f64| by.is_finite() && *by >= 1.0);
        factor.ok_or("it is a number from 1".into())
    })?;
    let random = around.read("FTSH_EXPRAND", switch)?;
    if from.is_none() && to.is_none() && by.is_none() && random.is_none() {
        return Ok(None);
    }
    if from == Some(Duration::ZERO) || to == Some(Duration::ZERO) {
        return Ok(Some(Policy::new(Kind::None)));
    }
    if let (Some(from), Some(to)) = (from, to)
        && from > to
    {
        bail!("`FTSH_EXPMIN` ({}) is above `FTSH_EXPMAX` ({})", Exact(from), Exact(to));
    }
    let kind = if random == Some(false) { Kind::Exponential } else { Kind::Ethernet };
    Policy::with(kind, &Clauses { from, to, by, jitter: None })
        .map(Some)
        .map_err(|mistake| anyhow!(mistake.in_a_line()))
}
