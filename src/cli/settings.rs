//! What a run is to do: flags and environment, examined and put together.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use bstr::BString;

use super::flags::{Flags, Lock};
use super::lock::Place;
use super::options::{self, KILL_TIMEOUT, REDACT, Setting, Spec};
use super::source::Program;
use super::values::{self, BadValue};
use crate::log::Format;
use ftsh_machine::record::Level;
use ftsh_machine::secrets::Secrets;
use ftsh_machine::{Config, Time};
use ftsh_process::Patience;
use ftsh_syntax::backoff::{Clauses, Kind, Policy};
use ftsh_syntax::duration::Exact;

/// Names the directory of channels.
const CHANNELS: &str = "FTSH_CHANNELS";

/// Says until when a run may go on.
pub const DEADLINE: &str = "FTSH_DEADLINE";

/// What to do with the script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Run it.
    Run,
    /// Find its errors.
    Check,
    /// Print it.
    Print,
    /// There is none, but an editor with scripts of its own.
    Serve,
    /// There is none, but a journal to look at.
    Look(Look, PathBuf),
}

/// What is to be seen of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// The log.
    Log,
    /// What the run does.
    Status,
    /// A picture.
    Timeline,
}

/// Everything that options and environment decide.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each can be true of any run")]
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
    /// Whether a run is silently none while another one has the lock or the journal.
    pub lock_skips: bool,
    /// Where channels are, if not in the usual place.
    pub channels: Option<PathBuf>,
    /// How long branches on other machines go on without hearing of this shell.
    pub lease: Duration,
    /// Whether they are sent this program.
    pub ship: bool,
    /// A random part of this is waited first.
    pub splay: Duration,
    /// Whether to say at the end what the run came to.
    pub summary: bool,
    /// Where a line for each branch goes, if anywhere.
    pub results: Option<PathBuf>,
    /// Where the run is recorded, if anywhere.
    pub journal: Option<PathBuf>,
    /// Where the picture of one goes; none is standard output.
    pub picture: Option<PathBuf>,
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
    /// The rights that new files don't get.
    pub umask: u16,
    /// Whether the standard input is a pipe or a socket.
    pub passing_input: bool,
    /// Whether someone is there to talk to.
    pub terminal: bool,
}

impl Surroundings<'_> {
    /// A variable of the shell's that is set and not empty. Where a crontab has to say by two quotes
    /// that one is empty, there are crons that hand these on.
    fn get(&self, name: &str) -> Option<OsString> {
        let empty = ["", "\"\"", "''"];
        (self.variable)(name).filter(|value| !empty.iter().any(|empty| value == empty))
    }

    fn read<T>(&self, name: &str, read: impl Fn(&str) -> Result<T, BadValue>) -> Result<Option<T>> {
        self.get(name).map(|value| examine(name, &value, read)).transpose()
    }

    /// What an option's variable says.
    fn inherited<T>(&self, setting: &Setting<T>) -> Result<Option<T>> {
        setting.option.variable.map_or(Ok(None), |name| self.read(name, setting.read))
    }
}

fn examine<T>(name: &str, value: &OsStr, read: impl Fn(&str) -> Result<T, BadValue>) -> Result<T> {
    let text = value.to_string_lossy();
    read(&text).map_err(|reason| anyhow!("`{name}` can't be `{text}`: {reason}"))
}

/// What was typed and what stands in the environment, and what of it nested shells have to be told.
struct Given<'a> {
    flags: &'a Flags,
    around: &'a Surroundings<'a>,
    told: Vec<(&'static str, BString)>,
}

impl Given<'_> {
    fn tell(&mut self, option: &Spec, value: impl Into<BString>) {
        if let Some(name) = option.variable.filter(|_| !option.is_private) {
            self.told.push((name, value.into()));
        }
    }

    /// What was typed.
    fn typed<T>(&self, setting: &Setting<T>) -> Result<Option<T>> {
        let option = &setting.option;
        if option.value.is_none() {
            let on =
                self.flags.has(option).then(|| examine(option.name(), "1".as_ref(), setting.read));
            return on.transpose();
        }
        let value = self.flags.value(option);
        value.map(|value| examine(option.name(), value, setting.read)).transpose()
    }

    /// The value of an option or else of its variable. Nonsense in a variable is told even if an
    /// option overrides it.
    fn value<T>(&mut self, setting: &Setting<T>) -> Result<Option<T>> {
        let inherited = self.around.inherited(setting)?;
        let Some(typed) = self.typed(setting)? else { return Ok(inherited) };
        self.tell(&setting.option, (setting.write)(&typed));
        Ok(Some(typed))
    }

    /// The same; none is its default.
    fn value_or_default<T>(&mut self, setting: &Setting<T>) -> Result<T> {
        match self.value(setting)? {
            Some(value) => Ok(value),
            None => setting.default(),
        }
    }

    /// The file that an option or else its variable names. It is absolute, because nested shells may
    /// run elsewhere.
    /// Returns where a picture goes, in a format that there is.
    fn picture(&mut self) -> Result<Option<PathBuf>> {
        let picture = self.file(&options::OUTPUT)?;
        if let Some(format) = picture.as_ref().and_then(|picture| picture.extension())
            && !["svg", "html", "htm"].iter().any(|known| format == *known)
        {
            let format = format.display();
            bail!("`-o`: there are no pictures as `.{format}`, but as `.svg` and as `.html`");
        }
        Ok(picture)
    }

    fn file(&mut self, option: &Spec) -> Result<Option<PathBuf>> {
        let typed = self.flags.value(option);
        if typed.is_some_and(|file| file.is_empty()) {
            bail!("`{}` lacks its value", option.name());
        }
        let file = typed.cloned().or_else(|| self.around.get(option.variable?));
        let file = file.map(|file| self.around.directory.join(file));
        if let Some(file) = &file {
            self.tell(option, file.clone().into_os_string().into_vec());
        }
        Ok(file)
    }

    /// How long this shell has to kill in; those in it are told less.
    fn patience(&mut self) -> Result<Patience> {
        let inherited = self.around.inherited(&KILL_TIMEOUT)?;
        let patience = match (self.typed(&KILL_TIMEOUT)?, inherited) {
            (Some(time), _) => Patience::of(time),
            (None, Some(time)) => (self.around.patience)(time),
            (None, None) => Patience::of(KILL_TIMEOUT.default()?),
        };
        self.tell(&KILL_TIMEOUT.option, (KILL_TIMEOUT.write)(&patience.inside().time()));
        Ok(patience)
    }

    /// What keeps a second run of `program` from starting.
    fn lock(&self, program: &Program) -> Result<Option<Place>> {
        let place = |file| Place::File(self.around.directory.join::<OsString>(file));
        match (self.flags.lock(), program) {
            (Some(Lock::File(file)), _) if file.is_empty() => bail!("`--lock=` lacks its file"),
            (Some(Lock::File(file)), _) => Ok(Some(place(file))),
            (Some(Lock::Alone), Program::File(script)) => Ok(Some(Place::Script(script.clone()))),
            (Some(Lock::Alone), _) => {
                bail!("`--lock` alone is for script files; here it needs a name: --lock=FILE")
            }
            (None, _) => {
                Ok(options::LOCK.variable.and_then(|name| self.around.get(name)).map(place))
            }
        }
    }

    /// Where channels are, for nested shells as well, which may run elsewhere.
    fn channels(&mut self) -> Option<PathBuf> {
        let directory = channels(self.around)?;
        self.told.push((CHANNELS, directory.clone().into_os_string().into_vec().into()));
        Some(directory)
    }

    /// The script and its arguments.
    fn program(&self) -> (Program, Vec<BString>) {
        let mut words = self.flags.words.iter().cloned().peekable();
        let only_looks = self.flags.has(&options::CHECK) || self.flags.has(&options::PRINT);
        let program = match self.flags.value(&options::TEXT) {
            Some(text) => Program::Text { text: text.clone(), named: words.peek().cloned() },
            None => match words.peek() {
                Some(path) if path != "-" => Program::File(path.into()),
                None if self.around.terminal && !only_looks => Program::Prompt,
                _ => {
                    words.next();
                    Program::StandardInput
                }
            },
        };
        let mut arguments: Vec<BString> = words.map(|word| word.into_vec().into()).collect();
        if matches!(program, Program::StandardInput) || arguments.is_empty() {
            arguments.insert(0, "ftsh".into());
        }
        (program, arguments)
    }

    fn action(&mut self) -> Result<Action> {
        let looks = [
            (&options::REPLAY, Look::Log),
            (&options::STATUS_OF, Look::Status),
            (&options::TIMELINE, Look::Timeline),
        ];
        if self.flags.has(&options::OUTPUT) && !self.flags.has(&options::TIMELINE) {
            bail!("`-o` is where the picture of `--timeline` goes; there is none");
        }
        if self.flags.has(&options::LSP) {
            if !self.flags.words.is_empty() || self.flags.has(&options::TEXT) {
                bail!("`--lsp` is told of scripts by an editor: it takes none");
            }
            return Ok(Action::Serve);
        }
        for (option, look) in looks {
            if let Some(file) = self.file(option)? {
                if !self.flags.words.is_empty() || self.flags.has(&options::TEXT) {
                    bail!(
                        "`{}` looks at a run that is recorded: it takes no script",
                        option.name()
                    );
                }
                return Ok(Action::Look(look, file));
            }
        }
        Ok(match (self.flags.has(&options::CHECK), self.flags.has(&options::PRINT)) {
            (_, true) => Action::Print,
            (true, false) => Action::Check,
            (false, false) => Action::Run,
        })
    }
}

impl Settings {
    /// Puts together what was typed and what stands in the environment. Options win.
    pub fn resolve(flags: &Flags, around: &Surroundings) -> Result<Self> {
        let secrets = secrets(flags.values(&REDACT.option), around)?;
        let hidden = secrets.clone();
        Self::examined(flags, around, secrets)
            .map_err(|error| anyhow!("{}", hidden.hide(&error.to_string())))
    }

    fn examined(flags: &Flags, around: &Surroundings, secrets: Secrets) -> Result<Self> {
        let mut given = Given { flags, around, told: Vec::new() };
        let log_level = given.value(&options::LOG_LEVEL)?;
        let log_format = given.value_or_default(&options::LOG_FORMAT)?;
        let log_decimal = given.value(&options::LOG_DECIMAL)?.unwrap_or_default();
        let log_file = given.file(&options::LOG_FILE)?;
        let results = given.file(&options::RESULTS)?;
        let patience = given.patience()?;
        let kill_strong = given.value_or_default(&options::KILL_MODE)?;
        let unset_is_empty = given.value_or_default(&options::UNSET)?;
        let policy = given.value(&options::BACKOFF)?;
        if flags.has(&REDACT.option) {
            given.tell(&REDACT.option, (REDACT.write)(&secrets.all_names().to_vec()));
        }
        let policy_of_2003 = policy_of_2003(around)?;
        let deadline = around.read(DEADLINE, values::moment)?;
        let seed = given.value(&options::SEED)?;
        let cron = given.value(&options::QUIET)?.unwrap_or_default();
        let on = given.value(&options::ON)?;
        let lease = given.value_or_default(&options::LEASE)?;
        let ship = given.value(&options::SHIP)?.unwrap_or_default();
        let lock_wait = given.value(&options::LOCK_WAIT)?;
        let lock_skips = given.value_or_default(&options::LOCK_BUSY)?;
        let splay = given.value(&options::SPLAY)?.unwrap_or_default();
        let (program, arguments) = given.program();
        let lock = given.lock(&program)?;
        let action = given.action()?;
        let journal = given.file(&options::JOURNAL)?;
        let picture = given.picture()?;
        let talks = matches!(program, Program::Prompt) && action == Action::Run;
        let locked = match &lock {
            Some(Place::File(file)) => Some(file),
            _ => None,
        };
        let others = [
            (&options::LOG_FILE, log_file.as_ref()),
            (&options::RESULTS, results.as_ref()),
            (&options::LOCK, locked),
        ];
        for (option, file) in others {
            if file.is_some() && file == journal.as_ref() {
                bail!("`--journal` and `{}` can't have the same file", option.name());
            }
        }
        if talks && journal.is_some() {
            bail!("a journal is of a script: at a prompt nothing is recorded");
        }
        if talks && flags.has(&options::QUIET.option) {
            bail!("`--cron` needs a script: at a prompt one sees what is printed");
        }
        if lock.is_none() && flags.has(&options::LOCK_WAIT.option) {
            bail!("`--lock-wait` without `--lock` waits for nothing");
        }
        if lock.is_none() && journal.is_none() && flags.has(&options::LOCK_BUSY.option) {
            bail!("`--lock-busy` is about `--lock` and `--journal`; there is neither");
        }
        let log_level = match log_level {
            Some(level) => Level(level),
            // At a prompt one sees what fails; a log is for those who asked for one.
            None if talks && log_file.is_none() => Level::NOTHING,
            None => Level(options::LOG_LEVEL.default()?),
        };
        Ok(Self {
            action,
            program,
            arguments,
            seed,
            log_file,
            log_format,
            log_decimal,
            cron: cron && !talks,
            lock,
            lock_directory: around.get("FTSH_LOCK_DIR").map(|path| around.directory.join(path)),
            lock_wait: lock_wait.unwrap_or_default(),
            lock_skips,
            channels: given.channels(),
            lease,
            ship,
            splay,
            results,
            summary: flags.has(&options::SUMMARY),
            journal,
            picture,
            config: Config {
                pid: around.pid,
                umask: around.umask,
                passing_input: around.passing_input,
                backoff: policy.or(policy_of_2003).unwrap_or_default(),
                kill_timeout: patience.time(),
                kill_strong,
                unset_is_empty,
                on,
                deadline: deadline.map(|moment| Time::after(moment.saturating_sub(around.now))),
                log_level,
                secrets,
            },
            patience,
            told: given.told,
        })
    }
}

/// What is to be hidden, as far as it is known by now.
pub fn secrets(typed: &[OsString], around: &Surroundings) -> Result<Secrets> {
    let given = around.get("FTSH_REDACT").unwrap_or_default();
    let mut names = around.inherited(&REDACT)?.unwrap_or_default();
    for name in typed {
        names.push(examine(REDACT.option.name(), name, values::variable)?);
    }
    let secrets = Secrets::new(names, given.as_bytes());
    for name in secrets.all_names() {
        secrets.learn(name, (around.variable)(name).unwrap_or_default().as_bytes());
    }
    Ok(secrets)
}

/// Where channels are, if not in the usual place.
pub fn channels(around: &Surroundings) -> Option<PathBuf> {
    Some(around.directory.join(around.get(CHANNELS)?))
}

/// The policy that the four variables of 2003 describe, if any of them is set.
fn policy_of_2003(around: &Surroundings) -> Result<Option<Policy>> {
    let from = around.read("FTSH_EXPMIN", values::seconds)?;
    let to = around.read("FTSH_EXPMAX", values::seconds)?;
    let by = around.read("FTSH_EXPFACTOR", values::factor)?;
    let random = around.read("FTSH_EXPRAND", values::switch)?;
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
