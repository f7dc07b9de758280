//! Resolution of options and environment into the plan of a run.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, anyhow};

use crate::cli::messages::usage;
use bstr::BString;

use crate::cli::lock::LockLocation;
use crate::cli::options;
use crate::cli::options::flags::Flags;
use crate::cli::options::values::{self, BadValue};
use crate::cli::plan::source::ScriptSource;
use crate::cli::plan::{
    Action, CronMode, JournalPlan, JournalView, ReportingPlan, RunPlan, ScriptPlan, StartPlan,
    TelemetryPlan, TracePlan, WhenBusy,
};
use crate::cli::prefix::Prefix;
use crate::log::Format;
use crate::state;
use crate::telemetry::{Destination, Url};
use ftsh_cluster::ClusterConfig;
use ftsh_machine::Config;
use ftsh_machine::record::Level;
use ftsh_machine::record::spans::TRACEPARENT;
use ftsh_machine::secrets::Secrets;
use ftsh_machine::time::{Deadline, Time};
use ftsh_process::{DurationStore, DurationsConfig, KillTimeout, LimitClocks, ProcessConfig};
use ftsh_syntax::backoff::{Clauses, Policy, PolicyKind};
use ftsh_syntax::duration::Exact;
use ftsh_syntax::slug::Slug;

/// Value of a switch that is on.
const ON: &str = "1";

const KILL_TIMEOUT: &str = "-t";
const REDACT: &str = "--redact";
const OTLP: &str = "--otlp";

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

    fn read<T>(&self, name: &str, read: Read<T>) -> Result<Option<T>> {
        self.get(name).map(|value| examine(name, &value, read)).transpose()
    }
}

/// Parser of a value.
type Read<T> = fn(&str) -> Result<T, BadValue>;

fn examine<T>(name: &str, value: &OsStr, read: Read<T>) -> Result<T> {
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
    fn pass_on(&mut self, option: &str, value: impl Into<BString>) {
        if let Some(setting) = options::setting(option).filter(|setting| !setting.is_private) {
            self.child_env.push((setting.variable, value.into()));
        }
    }

    /// Returns the value of an option's variable.
    fn inherited<T>(&self, option: &str, read: Read<T>) -> Result<Option<T>> {
        options::setting(option).map_or(Ok(None), |it| self.context.read(it.variable, read))
    }

    /// Returns the value of an option, or else of its variable. A variable with a bad value is an
    /// error even if an option overrides it.
    fn value<T>(
        &mut self,
        option: &str,
        typed: Option<&OsStr>,
        read: Read<T>,
    ) -> Result<Option<T>> {
        let inherited = self.inherited(option, read)?;
        let Some(typed) = typed else { return Ok(inherited) };
        let value = examine(option, typed, read)?;
        self.pass_on(option, typed.as_bytes());
        Ok(Some(value))
    }

    /// Returns the value of an option, of its variable or its default.
    fn value_or_default<T>(
        &mut self,
        option: &str,
        typed: Option<&OsStr>,
        read: Read<T>,
    ) -> Result<T> {
        match self.value(option, typed, read)? {
            Some(value) => Ok(value),
            None => default(option, read),
        }
    }

    /// Returns true if a switch is typed or its variable is on.
    fn switch(&mut self, option: &str, is_typed: bool) -> Result<bool> {
        let is_on = self.value(option, is_typed.then_some(OsStr::new(ON)), values::switch)?;
        Ok(is_on.unwrap_or_default())
    }

    /// Returns the file of a picture.
    ///
    /// # Errors
    ///
    /// Fails if there is no such format.
    fn picture(&mut self) -> Result<Option<PathBuf>> {
        let picture = self.file("-o", self.flags.output.as_ref())?;
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
    fn file(&mut self, option: &str, typed: Option<&OsString>) -> Result<Option<PathBuf>> {
        let file = self.path(option, typed)?.map(|file| self.context.directory.join(file));
        if let Some(file) = &file {
            self.pass_on(option, file.as_os_str().as_bytes());
        }
        Ok(file)
    }

    /// Returns the text of an option or else of its variable, which is not empty.
    fn path(&self, option: &str, typed: Option<&OsString>) -> Result<Option<OsString>> {
        if typed.is_some_and(|file| file.is_empty()) {
            return Err(usage(Slug::OptionValue, format_args!("`{option}` lacks its value")));
        }
        let variable = || self.context.get(options::setting(option)?.variable);
        Ok(typed.cloned().or_else(variable))
    }

    /// Returns the trace that `--otlp` or its variable names.
    fn trace(&mut self) -> Result<Option<TracePlan>> {
        let Some(mut value) = self.path(OTLP, self.flags.otlp.as_ref())?.filter(|it| it != "0")
        else {
            return Ok(None);
        };
        let is_file = value != ON && !value.to_string_lossy().contains("://");
        if is_file {
            value = self.context.directory.join(value).into();
        }
        self.pass_on(OTLP, value.as_bytes());
        let variable = |name: &str| Some(self.context.get(name)?.to_string_lossy().into_owned());
        let destination = Destination::new(Path::new(&value), variable).map_err(|url| {
            usage(Slug::OptionValue, format_args!("`--otlp`: `{url}` is not {}", Url::FORM))
        })?;
        let caller = self.context.get(TRACEPARENT).map(|it| it.into_vec().into());
        Ok(destination.map(|destination| TracePlan { destination, caller }))
    }

    /// Returns the kill timeout of this shell. Nested shells get less.
    fn kill_timeout(&mut self) -> Result<KillTimeout> {
        let typed = self.flags.kill_timeout.as_ref();
        let inherited = self.inherited(KILL_TIMEOUT, values::seconds)?;
        let kill_timeout = match (typed, inherited) {
            (Some(time), _) => KillTimeout::of(examine(KILL_TIMEOUT, time, values::seconds)?),
            (None, Some(time)) => (self.context.kill_timeout)(time),
            (None, None) => KillTimeout::of(default(KILL_TIMEOUT, values::seconds)?),
        };
        self.pass_on(KILL_TIMEOUT, values::decimal(kill_timeout.inside().time()));
        Ok(kill_timeout)
    }

    /// Returns the lock that keeps a second run of `program` from starting.
    fn lock(&self, program: &ScriptSource) -> Result<Option<LockLocation>> {
        let place = |file| LockLocation::File(self.context.directory.join::<OsString>(file));
        match (&self.flags.lock, program) {
            (Some(Some(file)), _) if file.is_empty() => {
                Err(usage(Slug::OptionValue, "`--lock=` lacks its file"))
            }
            (Some(Some(file)), _) => Ok(Some(place(file.clone()))),
            (Some(None), ScriptSource::File(script)) => {
                Ok(Some(LockLocation::Script(script.clone())))
            }
            (Some(None), _) => Err(usage(
                Slug::OptionConflict,
                "`--lock` without a file needs a script file; name one by `--lock=FILE`",
            )),
            (None, _) => {
                let is_file = self.context.read("FTSH_LOCK", values::lock)?.unwrap_or_default();
                Ok(self.context.get("FTSH_LOCK").filter(|_| is_file).map(place))
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
        let &Flags { check, print, durations, durations_forget, .. } = self.flags;
        let only_looks = check || print || durations || durations_forget;
        let program = match &self.flags.text {
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
        let flags = self.flags;
        let views = [
            ("--replay", &flags.replay, JournalView::Log),
            ("--status", &flags.status, JournalView::Status),
            ("--timeline", &flags.timeline, JournalView::Timeline),
            ("--trace", &flags.trace, JournalView::Trace),
        ];
        for (option, file, view) in views {
            if let Some(file) = self.file(option, file.as_ref())? {
                return Ok(Action::View(view, file));
            }
        }
        Ok(match flags {
            Flags { lsp: true, .. } => Action::Serve,
            Flags { durations_forget: true, .. } => Action::Durations { forgets: true },
            Flags { durations: true, .. } => Action::Durations { forgets: false },
            Flags { print: true, .. } => Action::Print,
            Flags { check: true, strict, .. } => Action::Check { strict: *strict },
            _ => Action::Run,
        })
    }
}

/// Returns the default of an option.
fn default<T>(option: &str, read: Read<T>) -> Result<T> {
    let default = options::setting(option).map_or("", |setting| setting.default);
    examine(option, OsStr::new(default), read)
}

/// Refuses options that contradict each other: the first pair that is true is the reason.
fn check(conflicts: impl IntoIterator<Item = (bool, &'static str)>) -> Result<()> {
    let conflict = conflicts.into_iter().find(|(is_conflict, _)| *is_conflict);
    conflict.map_or(Ok(()), |(_, message)| Err(usage(Slug::OptionConflict, message)))
}

impl RunPlan {
    /// Resolves options and environment. Options take precedence.
    pub(crate) fn resolve(flags: &Flags, context: &ProcessContext) -> Result<Self> {
        let secrets = secrets(&flags.redact, context)?;
        let hidden = secrets.clone();
        Self::examined(flags, context, secrets)
            .map_err(|error| anyhow!("{}", hidden.hide(&error.to_string())))
    }

    fn examined(flags: &Flags, context: &ProcessContext, secrets: Secrets) -> Result<Self> {
        let mut resolver = Resolver { flags, context, child_env: Vec::new() };
        check(flags.conflicts())?;
        let log_level = resolver.value("-l", flags.log_level.as_deref(), values::level)?;
        let log_format = flags.log_format.as_deref();
        let log_format = resolver.value_or_default("--log-format", log_format, values::format)?;
        let log_decimal = resolver.switch("-D", flags.log_decimal)?;
        let log_file = resolver.file("-f", flags.log_file.as_ref())?;
        let results = resolver.file("--results", flags.results.as_ref())?;
        let trace = resolver.trace()?;
        let kill_timeout = resolver.kill_timeout()?;
        let kill_mode = flags.kill_mode.as_deref();
        let kill_strong = resolver.value_or_default("-k", kill_mode, values::kill_mode)?;
        let unset_is_empty =
            resolver.value_or_default("--unset", flags.unset.as_deref(), values::unset)?;
        let policy = resolver.value("--backoff", flags.backoff.as_deref(), values::policy)?;
        if !flags.redact.is_empty() {
            resolver.pass_on(REDACT, secrets.all_names().to_vec().join(" "));
        }
        let policy_of_2003 = policy_of_2003(context)?;
        let deadline = context.read(DEADLINE, values::deadline)?;
        let seed = resolver.value("--seed", flags.seed.as_deref(), values::seed)?;
        let cron = flags.cron.as_ref().map(|mode| mode.as_deref().unwrap_or(OsStr::new(ON)));
        let cron = resolver.value("--cron", cron, values::cron)?.unwrap_or_default();
        let cron_after =
            resolver.value("--cron-after", flags.cron_after.as_deref(), values::failures)?;
        let cron = if cron_after.is_some() && !cron.is_on() { CronMode::Failure } else { cron };
        let telemetry = TelemetryPlan {
            ping: resolver.value("--ping", flags.ping.as_deref(), values::url)?,
            metrics: resolver.file("--metrics", flags.metrics.as_ref())?,
            cron_after,
        };
        let on = resolver.value("--on", flags.on.as_deref(), values::on)?;
        let lease = resolver.value_or_default("--lease", flags.lease.as_deref(), values::lease)?;
        let ship = resolver.switch("--ship", flags.ship)?;
        let lock_wait =
            resolver.value("--lock-wait", flags.lock_wait.as_deref(), values::duration)?;
        let lock_busy = flags.lock_busy.as_deref();
        let when_busy = resolver.value_or_default("--lock-busy", lock_busy, values::when_busy)?;
        let splay = resolver.value("--splay", flags.splay.as_deref(), values::duration)?;
        let (program, arguments) = resolver.program()?;
        let lock = resolver.lock(&program)?;
        let action = resolver.action()?;
        let journal = resolver.file("--journal", flags.journal.as_ref())?;
        let picture = resolver.picture()?;
        let is_prompt = matches!(program, ScriptSource::Prompt) && action == Action::Run;
        let is_file = matches!(program, ScriptSource::File(_));
        let is_prefixed = matches!(program, ScriptSource::Prefix(_));
        let locked = match &lock {
            Some(LockLocation::File(file)) => Some(file.as_path()),
            _ => None,
        };
        let spans = trace.as_ref().and_then(|trace| trace.destination.file());
        let is_journal = |file: Option<&Path>| file.is_some() && file == journal.as_deref();
        // Each run overwrites its lock.
        let is_lock = |file: Option<&Path>| file.is_some() && file == locked;
        let no_lock = lock.is_none();
        let is_replaced = when_busy == WhenBusy::Replace;
        check([
            (is_journal(log_file.as_deref()), "`--journal` and `-f` can't have the same file"),
            (
                is_journal(results.as_deref()),
                "`--journal` and `--results` can't have the same file",
            ),
            (is_journal(spans), "`--journal` and `--otlp` can't have the same file"),
            (is_journal(locked), "`--journal` and `--lock` can't have the same file"),
            (is_lock(log_file.as_deref()), "`--lock` and `-f` can't have the same file"),
            (is_lock(results.as_deref()), "`--lock` and `--results` can't have the same file"),
            (is_lock(spans), "`--lock` and `--otlp` can't have the same file"),
            (
                is_prompt && journal.is_some(),
                "`--journal` needs a script: a prompt is not recorded",
            ),
            (
                is_prompt && (flags.cron.is_some() || flags.cron_after.is_some()),
                "`--cron` needs a script: a prompt shows all output",
            ),
            (
                is_prompt && (flags.ping.is_some() || flags.metrics.is_some()),
                "`--ping` and `--metrics` need a script: a prompt is not reported",
            ),
            (
                no_lock && cron_after.is_some() && !is_prompt && !is_file,
                "`--cron-after` needs a script file or `--lock=FILE`, next to which failures are \
                 counted",
            ),
            (trace.is_none() && flags.trace.is_some(), "`--trace` needs `--otlp`"),
            (no_lock && flags.lock_wait.is_some(), "`--lock-wait` needs `--lock`"),
            (
                no_lock && journal.is_none() && lock_busy.is_some(),
                "`--lock-busy` needs `--lock` or `--journal`",
            ),
            (no_lock && is_replaced && lock_busy.is_some(), "`--lock-busy replace` needs `--lock`"),
        ])?;
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
            None => Level(default("-l", values::level)?),
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
                splay: splay.unwrap_or_default(),
                lock,
                lock_directory: context
                    .get("FTSH_LOCK_DIR")
                    .map(|path| context.directory.join(path)),
                lock_wait: lock_wait.unwrap_or(match when_busy {
                    WhenBusy::Replace => REPLACE_TIMEOUT,
                    WhenBusy::Fail | WhenBusy::Skip => Duration::ZERO,
                }),
                when_busy,
                end_with_caller: resolver.switch("--end-with-caller", flags.end_with_caller)?,
            },
            machine: Config {
                pid: context.pid,
                umask: context.umask,
                passing_input: context.passing_input,
                backoff: policy.or(policy_of_2003).unwrap_or_default(),
                kill_timeout: kill_timeout.time(),
                kill_strong,
                no_leftovers: flags.no_leftovers,
                unset_is_empty,
                on,
                deadline,
                trace: None,
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
                summary: flags.summary,
                results,
                trace: trace.filter(|_| !is_prompt),
                picture,
            },
            telemetry: if is_prompt { TelemetryPlan::default() } else { telemetry },
            storm: None,
        })
    }
}

/// Returns the secrets that are known before the run.
pub(crate) fn secrets(typed: &[OsString], context: &ProcessContext) -> Result<Secrets> {
    let given = context.get("FTSH_REDACT").unwrap_or_default();
    let mut names = context.read("FTSH_REDACT_NAMES", values::variables)?.unwrap_or_default();
    for name in typed {
        names.push(examine(REDACT, name, values::variable)?);
    }
    let secrets = Secrets::new(names, given.as_bytes());
    for name in secrets.all_names() {
        secrets.learn(name, (context.variable)(name).unwrap_or_default().as_bytes());
    }
    Ok(secrets)
}

/// Returns the address of a monitor of the run that options request, if it can be read, whatever else
/// is wrong with the options.
pub(crate) fn ping(flags: Option<&Flags>, context: &ProcessContext) -> Option<Url> {
    let is_run = |flags: &Flags| {
        let mut resolver = Resolver { flags, context, child_env: Vec::new() };
        let is_prompt = matches!(resolver.program(), Ok((ScriptSource::Prompt, _)));
        let is_other = flags.storm || flags.calls() || is_prompt;
        !is_other && matches!(resolver.action(), Ok(Action::Run))
    };
    flags.is_none_or(is_run).then_some(())?;
    let typed = flags.and_then(|flags| flags.ping.clone());
    Url::parse(&typed.or_else(|| context.get("FTSH_PING"))?.to_string_lossy())
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
