//! Resolution of options and environment into the plan of a run.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, anyhow};

use crate::cli::messages::usage;
use bstr::BString;

use crate::cli::lock::LockLocation;
use crate::cli::options::flags::{Flags, Lock};
use crate::cli::options::values::{self, BadValue};
use crate::cli::options::{self, KILL_TIMEOUT, REDACT, Setting, Spec};
use crate::cli::plan::source::ScriptSource;
use crate::cli::plan::{
    Action, CronMode, JournalPlan, JournalView, ReportingPlan, RunPlan, ScriptPlan, StartPlan,
    WhenBusy,
};
use crate::cli::prefix::Prefix;
use crate::log::Format;
use crate::state;
use ftsh_cluster::ClusterConfig;
use ftsh_machine::Config;
use ftsh_machine::record::Level;
use ftsh_machine::secrets::Secrets;
use ftsh_machine::time::{Deadline, Time};
use ftsh_process::{DurationStore, DurationsConfig, KillTimeout, LimitClocks, ProcessConfig};
use ftsh_syntax::backoff::{Clauses, Policy, PolicyKind};
use ftsh_syntax::duration::Exact;
use ftsh_syntax::slug::Slug;

/// Longest wait for the end of a run that `--lock-busy replace` ends, without `--lock-wait`.
const REPLACE_TIMEOUT: Duration = Duration::from_secs(60);

/// Variable that holds the directory of channels.
const CHANNELS: &str = "FTSH_CHANNELS";

/// Variable that holds the directory of durations. Empty if none are recorded.
const DURATIONS: &str = "FTSH_DURATIONS";

/// Variable that holds the deadline of the run.
pub(crate) const DEADLINE: &str = "FTSH_DEADLINE";

/// Context of this process that options are resolved in.
pub(crate) struct ProcessContext<'a> {
    /// Lookup of a variable in the environment.
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
    /// Kill timeout of a process that inherits this one.
    pub kill_timeout: &'a dyn Fn(Duration) -> KillTimeout,
    /// Current directory.
    pub directory: &'a Path,
    /// Reads the clocks that deadlines are passed on by.
    pub clocks: &'a dyn Fn() -> LimitClocks,
    /// Process id.
    pub pid: u32,
    /// Permission bits that new files lack.
    pub umask: u16,
    /// True if standard input is a pipe or a socket.
    pub passing_input: bool,
    /// True if a terminal connects the shell with a person.
    pub terminal: bool,
    /// True if the person at the terminal sees the status line.
    pub status_line: bool,
}

impl ProcessContext<'_> {
    /// Returns a variable of the shell that is set and not empty. Some crons pass on the two quotes
    /// that stand for an empty value in a crontab.
    fn get(&self, name: &str) -> Option<OsString> {
        let empty = ["", "\"\"", "''"];
        (self.variable)(name).filter(|value| !empty.iter().any(|empty| value == empty))
    }

    fn read<T>(&self, name: &str, read: impl Fn(&str) -> Result<T, BadValue>) -> Result<Option<T>> {
        self.get(name).map(|value| examine(name, &value, read)).transpose()
    }

    /// Returns the value of an option's variable.
    fn inherited<T>(&self, setting: &Setting<T>) -> Result<Option<T>> {
        setting.option.variable.map_or(Ok(None), |name| self.read(name, setting.read))
    }
}

fn examine<T>(name: &str, value: &OsStr, read: impl Fn(&str) -> Result<T, BadValue>) -> Result<T> {
    let text = value.to_string_lossy();
    read(&text).map_err(|reason| {
        usage(Slug::OptionValue, format_args!("`{name}` can't be `{text}`: {reason}"))
    })
}

/// Resolver of options, which collects the variables for nested shells.
struct Resolver<'a> {
    flags: &'a Flags,
    context: &'a ProcessContext<'a>,
    child_env: Vec<(&'static str, BString)>,
}

impl Resolver<'_> {
    fn pass_on(&mut self, option: &Spec, value: impl Into<BString>) {
        if let Some(name) = option.variable.filter(|_| !option.is_private) {
            self.child_env.push((name, value.into()));
        }
    }

    /// Returns the value of an option that was typed.
    fn typed<T>(&self, setting: &Setting<T>) -> Result<Option<T>> {
        let option = &setting.option;
        if !self.flags.has(option) {
            return Ok(None);
        }
        // An option without a value is on.
        let value = self.flags.optional_value(option).map_or(OsStr::new("1"), OsString::as_os_str);
        examine(option.name(), value, setting.read).map(Some)
    }

    /// Returns the value of an option, or else of its variable. A variable with a bad value is an
    /// error even if an option overrides it.
    fn value<T>(&mut self, setting: &Setting<T>) -> Result<Option<T>> {
        let inherited = self.context.inherited(setting)?;
        let Some(typed) = self.typed(setting)? else { return Ok(inherited) };
        self.pass_on(&setting.option, (setting.write)(&typed));
        Ok(Some(typed))
    }

    /// Returns the value of an option, of its variable or its default.
    fn value_or_default<T>(&mut self, setting: &Setting<T>) -> Result<T> {
        match self.value(setting)? {
            Some(value) => Ok(value),
            None => setting.default(),
        }
    }

    /// Returns the file of a picture.
    ///
    /// # Errors
    ///
    /// Fails if there is no such format.
    fn picture(&mut self) -> Result<Option<PathBuf>> {
        let picture = self.file(&options::OUTPUT)?;
        if let Some(format) = picture.as_ref().and_then(|picture| picture.extension())
            && !["svg", "html", "htm"].iter().any(|known| format == *known)
        {
            let format = format.display();
            return Err(usage(
                Slug::OptionValue,
                format_args!("`-o`: unknown picture format `.{format}`; use `.svg` or `.html`"),
            ));
        }
        Ok(picture)
    }

    /// Returns the file that an option or else its variable names. The path is absolute, because
    /// nested shells may run elsewhere.
    fn file(&mut self, option: &Spec) -> Result<Option<PathBuf>> {
        let typed = self.flags.value(option);
        if typed.is_some_and(|file| file.is_empty()) {
            return Err(usage(
                Slug::OptionValue,
                format_args!("`{}` lacks its value", option.name()),
            ));
        }
        let file = typed.cloned().or_else(|| self.context.get(option.variable?));
        let file = file.map(|file| self.context.directory.join(file));
        if let Some(file) = &file {
            self.pass_on(option, file.clone().into_os_string().into_vec());
        }
        Ok(file)
    }

    /// Returns the kill timeout of this shell. Nested shells get less.
    fn kill_timeout(&mut self) -> Result<KillTimeout> {
        let inherited = self.context.inherited(&KILL_TIMEOUT)?;
        let kill_timeout = match (self.typed(&KILL_TIMEOUT)?, inherited) {
            (Some(time), _) => KillTimeout::of(time),
            (None, Some(time)) => (self.context.kill_timeout)(time),
            (None, None) => KillTimeout::of(KILL_TIMEOUT.default()?),
        };
        self.pass_on(&KILL_TIMEOUT.option, (KILL_TIMEOUT.write)(&kill_timeout.inside().time()));
        Ok(kill_timeout)
    }

    /// Returns the lock that keeps a second run of `program` from starting.
    fn lock(&self, program: &ScriptSource) -> Result<Option<LockLocation>> {
        let place = |file| LockLocation::File(self.context.directory.join::<OsString>(file));
        match (self.flags.lock(), program) {
            (Some(Lock::File(file)), _) if file.is_empty() => {
                Err(usage(Slug::OptionValue, "`--lock=` lacks its file"))
            }
            (Some(Lock::File(file)), _) => Ok(Some(place(file))),
            (Some(Lock::Alone), ScriptSource::File(script)) => {
                Ok(Some(LockLocation::Script(script.clone())))
            }
            (Some(Lock::Alone), _) => Err(usage(
                Slug::OptionConflict,
                "`--lock` without a file needs a script file; name one by `--lock=FILE`",
            )),
            (None, _) => {
                Ok(options::LOCK.variable.and_then(|name| self.context.get(name)).map(place))
            }
        }
    }

    /// Returns the directory of channels, for nested shells as well, which may run elsewhere.
    fn channels(&mut self) -> Option<PathBuf> {
        let directory = channels(self.context)?;
        self.child_env.push((CHANNELS, directory.clone().into_os_string().into_vec().into()));
        Some(directory)
    }

    /// Returns the directory of durations, for nested shells as well, which may run elsewhere.
    fn durations(&mut self) -> DurationsConfig {
        let variable = |name: &str| self.context.get(name).map(PathBuf::from);
        let (store, missing) = match variable(DURATIONS) {
            Some(folder) => {
                let folder = self.context.directory.join(folder);
                self.child_env.push((DURATIONS, folder.clone().into_os_string().into_vec().into()));
                (Some(folder), None)
            }
            None if (self.context.variable)(DURATIONS).is_some() => (None, None),
            None => match state::directory(variable) {
                Some(state) => (Some(state.join("ftsh/durations")), None),
                None => (None, Some("there is no home directory".to_owned())),
            },
        };
        let store = store.map(|folder| DurationStore::new(folder, state::home(variable)));
        DurationsConfig { store, missing, script: None }
    }

    /// Returns the script and its arguments.
    fn program(&self) -> Result<(ScriptSource, Vec<BString>)> {
        if self.flags.is_prefix() {
            let prefix = Prefix::read(&self.flags.words)?;
            return Ok((ScriptSource::Prefix(prefix), vec!["ftsh".into()]));
        }
        let mut words = self.flags.words.iter().cloned().peekable();
        let only_looks =
            [&options::CHECK, &options::PRINT, &options::DURATIONS, &options::DURATIONS_FORGET];
        let only_looks = only_looks.into_iter().any(|option| self.flags.has(option));
        let program = match self.flags.value(&options::TEXT) {
            Some(text) => ScriptSource::Text { text: text.clone(), named: words.peek().cloned() },
            None => match words.peek() {
                Some(path) if path != "-" => ScriptSource::File(path.into()),
                None if self.context.terminal && !only_looks => ScriptSource::Prompt,
                _ => {
                    words.next();
                    ScriptSource::StandardInput
                }
            },
        };
        let mut arguments: Vec<BString> = words.map(|word| word.into_vec().into()).collect();
        if matches!(program, ScriptSource::StandardInput) || arguments.is_empty() {
            arguments.insert(0, "ftsh".into());
        }
        Ok((program, arguments))
    }

    fn action(&mut self) -> Result<Action> {
        let views = [
            (&options::REPLAY, JournalView::Log),
            (&options::STATUS_OF, JournalView::Status),
            (&options::TIMELINE, JournalView::Timeline),
        ];
        if self.flags.has(&options::OUTPUT) && !self.flags.has(&options::TIMELINE) {
            return Err(usage(
                Slug::OptionConflict,
                "`-o` needs `--timeline`, whose picture it names",
            ));
        }
        if self.flags.has(&options::LSP) {
            if !self.flags.words.is_empty() || self.flags.has(&options::TEXT) {
                return Err(usage(
                    Slug::OptionConflict,
                    "`--lsp` takes no script: an editor provides the scripts",
                ));
            }
            return Ok(Action::Serve);
        }
        for (option, view) in views {
            if let Some(file) = self.file(option)? {
                if !self.flags.words.is_empty() || self.flags.has(&options::TEXT) {
                    return Err(usage(
                        Slug::OptionConflict,
                        format_args!(
                            "`{}` shows a recorded run and takes no script",
                            option.name()
                        ),
                    ));
                }
                return Ok(Action::View(view, file));
            }
        }
        let strict = self.flags.has(&options::STRICT);
        if strict && !self.flags.has(&options::CHECK) {
            let message = "`--strict` needs `-n`, whose warnings it makes a failure";
            return Err(usage(Slug::OptionConflict, message));
        }
        let forgets = self.flags.has(&options::DURATIONS_FORGET);
        if forgets || self.flags.has(&options::DURATIONS) {
            return Ok(Action::Durations { forgets });
        }
        Ok(match (self.flags.has(&options::CHECK), self.flags.has(&options::PRINT)) {
            (_, true) => Action::Print,
            (true, false) => Action::Check { strict },
            (false, false) => Action::Run,
        })
    }
}

impl RunPlan {
    /// Resolves options and environment. Options take precedence.
    pub(crate) fn resolve(flags: &Flags, context: &ProcessContext) -> Result<Self> {
        let secrets = secrets(flags.values(&REDACT.option), context)?;
        let hidden = secrets.clone();
        Self::examined(flags, context, secrets)
            .map_err(|error| anyhow!("{}", hidden.hide(&error.to_string())))
    }

    fn examined(flags: &Flags, context: &ProcessContext, secrets: Secrets) -> Result<Self> {
        let mut resolver = Resolver { flags, context, child_env: Vec::new() };
        let log_level = resolver.value(&options::LOG_LEVEL)?;
        let log_format = resolver.value_or_default(&options::LOG_FORMAT)?;
        let log_decimal = resolver.value(&options::LOG_DECIMAL)?.unwrap_or_default();
        let log_file = resolver.file(&options::LOG_FILE)?;
        let results = resolver.file(&options::RESULTS)?;
        let kill_timeout = resolver.kill_timeout()?;
        let kill_strong = resolver.value_or_default(&options::KILL_MODE)?;
        let unset_is_empty = resolver.value_or_default(&options::UNSET)?;
        let policy = resolver.value(&options::BACKOFF)?;
        if flags.has(&REDACT.option) {
            resolver.pass_on(&REDACT.option, (REDACT.write)(&secrets.all_names().to_vec()));
        }
        let policy_of_2003 = policy_of_2003(context)?;
        let deadline = context.read(DEADLINE, values::deadline)?;
        let seed = resolver.value(&options::SEED)?;
        let cron = resolver.value(&options::QUIET)?.unwrap_or_default();
        let on = resolver.value(&options::ON)?;
        let lease = resolver.value_or_default(&options::LEASE)?;
        let ship = resolver.value(&options::SHIP)?.unwrap_or_default();
        let lock_wait = resolver.value(&options::LOCK_WAIT)?;
        let when_busy = resolver.value_or_default(&options::LOCK_BUSY)?;
        let splay = resolver.value(&options::SPLAY)?.unwrap_or_default();
        let (program, arguments) = resolver.program()?;
        let lock = resolver.lock(&program)?;
        let action = resolver.action()?;
        let journal = resolver.file(&options::JOURNAL)?;
        let picture = resolver.picture()?;
        let is_prompt = matches!(program, ScriptSource::Prompt) && action == Action::Run;
        let is_prefixed = matches!(program, ScriptSource::Prefix(_));
        let locked = match &lock {
            Some(LockLocation::File(file)) => Some(file),
            _ => None,
        };
        let others = [
            (&options::LOG_FILE, log_file.as_ref()),
            (&options::RESULTS, results.as_ref()),
            (&options::LOCK, locked),
        ];
        for (option, file) in others {
            if file.is_some() && file == journal.as_ref() {
                return Err(usage(
                    Slug::OptionConflict,
                    format_args!("`--journal` and `{}` can't have the same file", option.name()),
                ));
            }
        }
        if is_prompt && journal.is_some() {
            return Err(usage(
                Slug::OptionConflict,
                "`--journal` needs a script: a prompt is not recorded",
            ));
        }
        if is_prompt && flags.has(&options::QUIET.option) {
            return Err(usage(
                Slug::OptionConflict,
                "`--cron` needs a script: a prompt shows all output",
            ));
        }
        if lock.is_none() && flags.has(&options::LOCK_WAIT.option) {
            return Err(usage(Slug::OptionConflict, "`--lock-wait` needs `--lock`"));
        }
        if lock.is_none() && journal.is_none() && flags.has(&options::LOCK_BUSY.option) {
            return Err(usage(Slug::OptionConflict, "`--lock-busy` needs `--lock` or `--journal`"));
        }
        if lock.is_none() && when_busy == WhenBusy::Replace && flags.has(&options::LOCK_BUSY.option)
        {
            return Err(usage(Slug::OptionConflict, "`--lock-busy replace` needs `--lock`"));
        }
        let log_level = match log_level {
            Some(level) => Level(level),
            // A prompt shows failures without a log. A log is written only on request.
            None if is_prompt && log_file.is_none() => Level::NOTHING,
            // The command itself reports the reason of a failed attempt.
            None if is_prefixed && log_file.is_none() => Level::ENDING,
            // The status line shows the failures of attempts.
            None if context.status_line
                && log_file.is_none()
                && log_format == Format::Text
                && !cron.is_on() =>
            {
                Level::ENDING
            }
            None => Level(options::LOG_LEVEL.default()?),
        };
        let left = deadline.map(|it| it.left(&(context.clocks)()));
        let deadline = Deadline::of_limit(Time::START, left);
        let (journal, deadline) = match journal {
            Some(file) => (Some(JournalPlan { file, deadline }), Deadline::NONE),
            None => (None, deadline),
        };
        let channels = resolver.channels();
        let durations = resolver.durations();
        Ok(Self {
            action,
            script: ScriptPlan { program, arguments, seed },
            start: StartPlan {
                splay,
                lock,
                lock_directory: context
                    .get("FTSH_LOCK_DIR")
                    .map(|path| context.directory.join(path)),
                lock_wait: lock_wait.unwrap_or(match when_busy {
                    WhenBusy::Replace => REPLACE_TIMEOUT,
                    WhenBusy::Fail | WhenBusy::Skip => Duration::ZERO,
                }),
                when_busy,
            },
            machine: Config {
                pid: context.pid,
                umask: context.umask,
                passing_input: context.passing_input,
                backoff: policy.or(policy_of_2003).unwrap_or_default(),
                kill_timeout: kill_timeout.time(),
                kill_strong,
                unset_is_empty,
                on,
                deadline,
                log_level,
                secrets,
            },
            process: ProcessConfig {
                child_env: resolver.child_env,
                kill_timeout: kill_timeout.inside(),
                channels,
                durations,
            },
            cluster: ClusterConfig { lease, ship },
            journal,
            reporting: ReportingPlan {
                log_file,
                log_format,
                log_decimal,
                is_brief: is_prefixed,
                cron: if is_prompt { CronMode::Off } else { cron },
                summary: flags.has(&options::SUMMARY),
                results,
                picture,
            },
            storm: None,
        })
    }
}

/// Returns the secrets that are known before the run.
pub(crate) fn secrets(typed: &[OsString], context: &ProcessContext) -> Result<Secrets> {
    let given = context.get("FTSH_REDACT").unwrap_or_default();
    let mut names = context.inherited(&REDACT)?.unwrap_or_default();
    for name in typed {
        names.push(examine(REDACT.option.name(), name, values::variable)?);
    }
    let secrets = Secrets::new(names, given.as_bytes());
    for name in secrets.all_names() {
        secrets.learn(name, (context.variable)(name).unwrap_or_default().as_bytes());
    }
    Ok(secrets)
}

/// Returns the directory of channels, if it is not the usual one.
pub(crate) fn channels(context: &ProcessContext) -> Option<PathBuf> {
    Some(context.directory.join(context.get(CHANNELS)?))
}

/// Returns the policy that the four variables of 2003 describe, if any of them is set.
fn policy_of_2003(context: &ProcessContext) -> Result<Option<Policy>> {
    let from = context.read("FTSH_EXPMIN", values::seconds)?;
    let to = context.read("FTSH_EXPMAX", values::seconds)?;
    let by = context.read("FTSH_EXPFACTOR", values::factor)?;
    let random = context.read("FTSH_EXPRAND", values::switch)?;
    if from.is_none() && to.is_none() && by.is_none() && random.is_none() {
        return Ok(None);
    }
    if from == Some(Duration::ZERO) || to == Some(Duration::ZERO) {
        return Ok(Some(Policy::new(PolicyKind::None)));
    }
    if let (Some(from), Some(to)) = (from, to)
        && from > to
    {
        return Err(usage(
            Slug::OptionValue,
            format_args!("`FTSH_EXPMIN` ({}) is above `FTSH_EXPMAX` ({})", Exact(from), Exact(to)),
        ));
    }
    let kind = if random == Some(false) { PolicyKind::Exponential } else { PolicyKind::Ethernet };
    Policy::with(kind, &Clauses { from, to, by, jitter: None })
        .map(Some)
        .map_err(|error| anyhow!(error.one_line()))
}
