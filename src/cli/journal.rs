//! `--journal`, and looks at what is recorded: `--replay`, `--status`, `--timeline`.

use std::cell::RefCell;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, BufWriter, Read, Write};
use std::mem;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Result, anyhow, bail};
use bstr::BString;
use jiff::Timestamp;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use super::messages::{complain, tell};
use super::settings::{Look, Settings};
use crate::driver::{self, Driver};
use crate::journal::{Beginning, Journal, Over, Recorder, Unreadable, Watch, Writer, read, replay};
use crate::log::{Lines, Style};
use crate::machine::effect::{Effect, Environment};
use crate::machine::outcome::Human;
use crate::machine::record::{Level, Record};
use crate::machine::{Config, Machine, Outcome, Time};
use crate::os_error::plain;
use crate::status;
use crate::syntax::Script;
use crate::timeline::{self, Timeline};

/// Who ends needs a moment for it, and who only looks whether a run is on holds its lock as short.
const PATIENCE: Duration = Duration::from_millis(200);
const PAUSE: Duration = Duration::from_millis(5);

/// What came of asking for a journal.
pub enum Prepared {
    /// Another shell has it: a line for people.
    Busy(String),
    /// There is room for the run.
    Ready(Place),
}

/// A file that is ours until the process and those it forked have ended, and that holds nothing.
pub struct Place {
    path: PathBuf,
    file: File,
}

/// A journal that can begin.
pub struct Room {
    place: Place,
    run: u64,
    beginning: Beginning,
}

/// A journal that is written; clones are the same.
#[derive(Clone)]
pub struct Kept {
    path: Rc<PathBuf>,
    writer: Rc<RefCell<Writer<File>>>,
}

/// Takes a file for a journal. A run in it that has ended makes room for the new one.
pub fn prepare(path: &Path) -> Result<Prepared> {
    let refuse = |reason: &str| anyhow!("can't use `{}` as a journal: {reason}", path.display());
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        // A FIFO mustn't make it wait, and a link in a directory like `/tmp` could lead anywhere.
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)
        .map_err(|error| match error.raw_os_error() {
            Some(libc::ELOOP) => refuse("it is a symbolic link; name the file itself"),
            _ => refuse(&plain(&error)),
        })?;
    if !file.metadata().map_err(|error| refuse(&plain(&error)))?.is_file() {
        bail!(refuse("it is no plain file"));
    }
    let Some(file) = lock(file).map_err(|error| refuse(&plain(&error)))? else {
        let holder = match content(path).map(|bytes| read(&bytes)) {
            Ok(Ok(journal)) => format!("process {}", journal.beginning.pid()),
            _ => "another process".into(),
        };
        return Ok(Prepared::Busy(format!("{holder} records a run in `{}`", path.display())));
    };
    let bytes = whole(&file).map_err(|error| refuse(&plain(&error)))?;
    match read(&bytes) {
        Err(Unreadable::Empty) | Ok(Journal { over: Some(_), .. }) => {}
        Ok(Journal { over: None, .. }) => bail!(refuse(&format!(
            "the run in it was cut short, and is there to be looked at (`ftsh --status {0}`, `ftsh \
             --replay {0}`); to begin another one, remove it or name another file",
            path.display()
        ))),
        Err(error) => bail!(refuse(&error.to_string())),
    }
    let empty = || {
        file.set_permissions(Permissions::from_mode(0o600))?;
        file.set_len(0)
    };
    empty().map_err(|error| refuse(&plain(&error)))?;
    // A new name is to be there after a crash, where one may ask for that.
    let directory = path.parent().and_then(|directory| File::open(directory).ok());
    let _ = directory.map(|directory| directory.sync_all());
    Ok(Prepared::Ready(Place { path: path.into(), file }))
}

/// Locks a file for good; none if somebody else has it locked.
fn lock(mut file: File) -> io::Result<Option<File>> {
    let start = Instant::now();
    loop {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(locked) => {
                let file = locked.try_clone()?;
                // All that was forked holds it as well: it ends with the last process, not before.
                mem::forget(locked);
                return Ok(Some(file));
            }
            Err((same, Errno::EWOULDBLOCK)) if start.elapsed() < PATIENCE => {
                file = same;
                thread::sleep(PAUSE);
            }
            Err((_, Errno::EWOULDBLOCK)) => return Ok(None),
            Err((_, errno)) => return Err(errno.into()),
        }
    }
}

fn whole(mut file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn content(path: &Path) -> io::Result<Vec<u8>> {
    let file =
        OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no plain file"));
    }
    whole(&file)
}

impl Place {
    /// It is to hold this run.
    pub fn of(
        self,
        run: u64,
        script: &Script,
        arguments: &[BString],
        environment: &Environment,
        config: &Config,
        seed: u64,
    ) -> Room {
        let now = since_1970();
        let beginning = Beginning::new(script, arguments, environment, config, seed, now);
        Room { place: self, run, beginning }
    }
}

impl Room {
    /// The run begins now.
    pub fn begin(mut self) -> Result<Kept> {
        self.beginning.at = since_1970();
        let Place { path, file } = self.place;
        let writer = Writer::begin(file, self.run, self.beginning);
        let writer = writer.map_err(|error| cannot_write(&path, &error))?;
        Ok(Kept { path: Rc::new(path), writer: Rc::new(RefCell::new(writer)) })
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> anyhow::Error {
    anyhow!("can't write the journal `{}`: {}", path.display(), plain(error))
}

impl Kept {
    /// Keeps what a driver logs.
    pub fn note(&self, record: &Record) {
        self.writer.borrow_mut().note(record);
    }

    /// Runs a machine to its end, and keeps what it is told.
    pub fn run(&self, machine: &mut Machine, driver: &mut impl Driver) -> Result<Outcome> {
        let recorder = Recorder::new(driver, Rc::clone(&self.writer));
        let mut recorder = recorder.map_err(|error| cannot_write(&self.path, &error))?;
        let outcome = driver::run(machine, &mut recorder);
        let result = match recorder.into_failure() {
            None => self.writer.borrow_mut().end(&outcome),
            Some(error) => Err(error),
        };
        if let Err(error) = result {
            complain(&format!("{}; the run ends", cannot_write(&self.path, &error)));
        }
        Ok(outcome)
    }
}

/// Shows what is recorded in a file.
pub fn look(look: Look, path: &Path, settings: &Settings) -> Result<Outcome> {
    let cannot = |reason: String| anyhow!("can't look at `{}`: {reason}", path.display());
    // Before its content, which may be the end of the run.
    let goes_on = is_locked(path);
    let bytes = content(path).map_err(|error| cannot(plain(&error)))?;
    let journal = read(&bytes).map_err(|error| cannot(error.to_string()))?;
    let outcome = match look {
        Look::Log => log(&journal, settings),
        Look::Status => page(&journal, goes_on),
        Look::Timeline => picture(&journal, settings.picture.as_deref()),
    };
    outcome.map_err(|error| cannot(error.to_string()))
}

fn is_locked(path: &Path) -> bool {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    file.is_ok_and(|file| {
        matches!(Flock::lock(file, FlockArg::LockSharedNonblock), Err((_, Errno::EWOULDBLOCK)))
    })
}

/// Prints what a log of the run would hold, with the times of then.
fn log(journal: &Journal, settings: &Settings) -> Result<Outcome> {
    let beginning = &journal.beginning;
    let mut lines = Lines::new(Style {
        format: settings.log_format,
        decimal: settings.log_decimal,
        pid: beginning.pid(),
        run: format!("{:016x}", journal.run),
    });
    let mut out = BufWriter::new(io::stdout().lock());
    let mut result = Ok(());
    let replayed = replay(journal, settings.config.log_level, |record: &Record| {
        if result.is_ok() {
            let at = timestamp(beginning.at + record.at.elapsed());
            result = out.write_all(lines.render(at, record).as_bytes());
        }
    });
    let result = result.and_then(|()| out.flush());
    drop(out);
    replayed?;
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            bail!("can't write to standard output: {}", plain(&error))
        }
        _ => Ok(Outcome::Succeeded),
    }
}

/// Prints what the run is doing, or was doing at last.
fn page(journal: &Journal, goes_on: bool) -> Result<Outcome> {
    let beginning = &journal.beginning;
    let replayed = replay(journal, Level::NOTHING, |_: &Record| ())?;
    let mut now = replayed.now;
    if goes_on && journal.over.is_none() {
        now = now.max(Time::after(since_1970().saturating_sub(beginning.at)));
    }
    let status = replayed.machine.status(status::TASKS_ON_PAGE, now);
    let mut text = status::page(&status, &beginning.name, beginning.pid());
    text += &match (&journal.over, goes_on) {
        (Some(Over::Exited(0)), _) => "  the run has succeeded".to_owned(),
        (Some(Over::Exited(code)), _) => format!("  the run has ended with exit status {code}"),
        (Some(Over::Interrupted(signal)), _) => format!("  the run was ended by signal {signal}"),
        (Some(Over::Replaced), _) => "  a program took the shell's place".to_owned(),
        (None, true) => "  the run goes on".to_owned(),
        (None, false) => format!(
            "  the run was cut short: this is what it did at {}, when something was recorded last",
            moment(beginning.at + now.elapsed())
        ),
    };
    text.push('\n');
    Ok(tell(&text))
}

/// What a picture is made of.
impl Watch for &mut Timeline {
    fn logged(&mut self, record: &Record) {
        Timeline::logged(self, record);
    }

    fn asked(&mut self, effect: &Effect) {
        Timeline::asked(self, effect);
    }
}

/// Draws the run, as the name of the file says.
fn picture(journal: &Journal, path: Option<&Path>) -> Result<Outcome> {
    let mut timeline = Timeline::default();
    let replayed = replay(journal, Level::STRUCTURES, &mut timeline)?;
    let now = replayed.now.elapsed();
    let beginning = &journal.beginning;
    let at = timestamp(beginning.at).to_zoned(crate::log::local_zone());
    let name = beginning.secrets().hide(&beginning.name).into_owned();
    let title = format!("{name}, {}, {}", at.strftime("%Y-%m-%d %H:%M:%S"), Human(now));
    let (rows, left_out) = timeline.finish(now, replayed.outcome.as_ref());
    let svg = timeline::svg(&title, &rows, left_out, now);
    let Some(path) = path else { return Ok(tell(&svg)) };
    let is_page = path.extension().is_some_and(|end| end == "html" || end == "htm");
    let content = if is_page { timeline::html(&title, &svg) } else { svg };
    std::fs::write(path, content)
        .map_err(|error| anyhow!("can't draw into `{}`: {}", path.display(), plain(&error)))?;
    Ok(Outcome::Succeeded)
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn timestamp(since_1970: Duration) -> Timestamp {
    let nanoseconds = since_1970.as_nanos().try_into().unwrap_or(i128::MAX);
    Timestamp::from_nanosecond(nanoseconds).unwrap_or(Timestamp::MAX)
}

fn moment(since_1970: Duration) -> String {
    let local = timestamp(since_1970).to_zoned(crate::log::local_zone());
    let ago = self::since_1970().saturating_sub(since_1970);
    format!(
        "{} ({} ago)",
        local.strftime("%Y-%m-%d %H:%M:%S"),
        Human(Duration::from_secs(ago.as_secs()))
    )
}
