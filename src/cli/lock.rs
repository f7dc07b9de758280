//! `--lock`: one run at a time.
//!
//! The lock is `flock`'s: the kernel frees it with the last process of the shell, however that
//! ends. Commands don't inherit it. The file stays, and says who holds the lock.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use jiff::Timestamp;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::unistd::Pid;

use crate::log::local_zone;
use ftsh_machine::outcome::Human;
use ftsh_process::user_directory;
use ftsh_sys::os_error::plain;

/// How the file of a lock begins. A file that begins otherwise is something else, and left alone.
const MARK: &str = "ftsh lock\n";
/// A longer file is no lock.
const LONGEST: u64 = 1 << 16;

/// Where a lock is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In this file.
    File(PathBuf),
    /// In a file that belongs to this script.
    Script(PathBuf),
}

impl Place {
    /// The lock's file. `directory` is where those of scripts are, if not in the usual place.
    pub fn file(&self, directory: Option<PathBuf>) -> Result<PathBuf> {
        match self {
            Self::File(file) => Ok(file.clone()),
            Self::Script(script) => {
                let whole = std::fs::canonicalize(script).map_err(|error| {
                    anyhow!(
                        "can't find the script `{}` ({}); name a lock by --lock=FILE",
                        script.display(),
                        plain(&error)
                    )
                })?;
                let name = whole.file_name().unwrap_or_default().to_string_lossy();
                // The hash tells scripts of the same name apart.
                let short: String = name.chars().take(40).collect();
                let hash = fnv1a(whole.as_os_str().as_encoded_bytes());
                let directory = directory.unwrap_or_else(user_directory::path);
                user_directory::make_private(&directory).map_err(|reason| {
                    anyhow!(
                        "can't put a lock into `{}`: {reason}; name one by --lock=FILE",
                        directory.display()
                    )
                })?;
                Ok(directory.join(format!("{short}-{hash:016x}.lock")))
            }
        }
    }
}

/// The 64-bit FNV-1a hash, which stays the same from release to release.
/// <https://datatracker.ietf.org/doc/html/draft-eastlake-fnv>
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Whether a file is or could be a lock: it isn't there, is empty, or says that it is one.
pub fn may_be_lock(file: &Path) -> bool {
    match std::fs::symlink_metadata(file) {
        Err(error) => error.kind() == io::ErrorKind::NotFound,
        Ok(found) => {
            found.is_file()
                && (found.len() == 0 || File::open(file).is_ok_and(|file| is_marked(&file)))
        }
    }
}

fn is_marked(mut file: &File) -> bool {
    let mut start = vec![0; MARK.len()];
    file.rewind().is_ok() && file.read_exact(&mut start).is_ok() && start == MARK.as_bytes()
}

/// Who takes a lock, for others to read.
pub struct Holder<'a> {
    /// The process id of the shell as its user knows it.
    pub pid: u32,
    /// The script.
    pub script: &'a str,
}

/// What came of asking for a lock.
pub enum Taken {
    /// It is held from now on, until the process and those it forked have ended.
    Held,
    /// Somebody else holds it. One line for people.
    Busy(String),
}

/// Takes a lock, waiting no longer than `patience`. `waiting` is told why it takes so long, once.
pub fn take(
    path: &Path,
    holder: &Holder,
    patience: Duration,
    mut waiting: impl FnMut(&str),
) -> Result<Taken> {
    let start = Instant::now();
    let trouble = |what: &str, error: &io::Error| {
        anyhow!("can't {what} the lock `{}`: {}", path.display(), plain(error))
    };
    let mut told = false;
    loop {
        let file = open(path)?;
        let file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(file) => file,
            Err((file, Errno::EWOULDBLOCK)) => {
                let left = patience.saturating_sub(start.elapsed());
                let owner = describe(path, &file);
                if left.is_zero() {
                    return Ok(Taken::Busy(if patience.is_zero() {
                        format!("{owner}; --lock-wait D would wait for it")
                    } else {
                        format!("{owner}, still after {}", Human(start.elapsed()))
                    }));
                }
                if !told {
                    told = true;
                    waiting(&owner);
                }
                match wait(file, left).map_err(|error| trouble("wait for", &error))? {
                    Some(file) => file,
                    None => continue, // says who holds it by now
                }
            }
            Err((_, errno)) => {
                return Err(trouble("take", &errno.into()))
                    .context("does its file system have locks? --lock=FILE names another place")
                    .map_err(|error| anyhow!("{error:#}"));
            }
        };
        // Whoever cleaned up may have removed the file that we waited for.
        let same = |other: &Metadata| {
            file.metadata().is_ok_and(|ours| (ours.dev(), ours.ino()) == (other.dev(), other.ino()))
        };
        if std::fs::symlink_metadata(path).is_ok_and(|there| same(&there)) {
            // It is held even where that can't be written.
            let _ = sign(&file, holder);
            // The supervisor holds it as well: it ends with the last process, not before.
            std::mem::forget(file);
            return Ok(Taken::Held);
        }
    }
}

fn open(path: &Path) -> Result<File> {
    let refuse = |reason: String| anyhow!("can't use `{}` as a lock: {reason}", path.display());
    let mut options = OpenOptions::new();
    // A FIFO mustn't make it wait, and a link in a directory like `/tmp` could lead anywhere.
    options
        .read(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY);
    let file = match options.clone().write(true).create(true).truncate(false).open(path) {
        // Others' locks can be taken without writing to them.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
            ) =>
        {
            options.open(path).map_err(|_| error)
        }
        result => result,
    };
    let file = file.map_err(|error| {
        refuse(match error.raw_os_error() {
            Some(libc::ELOOP) => "it is a symbolic link; name the file itself".into(),
            Some(libc::EISDIR) => "it is a directory".into(),
            Some(libc::ENXIO) => "it is no plain file".into(),
            _ => plain(&error),
        })
    })?;
    let found = file.metadata().map_err(|error| refuse(plain(&error)))?;
    if !found.is_file() {
        bail!(refuse("it is no plain file".into()));
    }
    if found.len() > 0 && (found.len() > LONGEST || !is_marked(&file)) {
        bail!(refuse("it holds something else; a lock is a file of its own".into()));
    }
    Ok(file)
}

/// Waits for a lock; none if it isn't free in time. The thread that does it ends with the wait, or
/// with the process.
fn wait(file: File, time: Duration) -> io::Result<Option<Flock<File>>> {
    let (tell, told) = mpsc::channel();
    let thread = std::thread::Builder::new().spawn(move || {
        let mut file = file;
        let result = loop {
            match Flock::lock(file, FlockArg::LockExclusive) {
                Err((same, Errno::EINTR)) => file = same,
                Err((_, errno)) => break Err(errno),
                Ok(file) => break Ok(file),
            }
        };
        let _ = tell.send(result);
    })?;
    match told.recv_timeout(time) {
        Ok(result) => {
            let _ = thread.join();
            Ok(Some(result?))
        }
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(None),
    }
}

/// Writes who holds it.
fn sign(mut file: &File, holder: &Holder) -> io::Result<()> {
    let since = Timestamp::from_second(Timestamp::now().as_second()).unwrap_or_default();
    let script = crate::log::one_line(holder.script);
    let text = format!(
        "{MARK}pid {}\nsince {since}\nhost {}\nscript {script}\n",
        holder.pid,
        host().unwrap_or_default(),
    );
    // Some file systems wait for the disk when a file was emptied first.
    file.rewind()?;
    file.write_all(text.as_bytes())?;
    file.set_len(text.len() as u64)?;
    Ok(())
}

fn host() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned())
}

/// Says who holds a lock.
fn describe(path: &Path, file: &File) -> String {
    let lock = format!("the lock `{}` is held by", path.display());
    let mut text = String::new();
    let mut file = file;
    let read = file.rewind().and_then(|()| file.take(LONGEST).read_to_string(&mut text));
    let said = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).unwrap_or("")
    };
    let pid: Option<i32> = said("pid").parse().ok().filter(|pid| *pid > 0);
    let (Ok(_), Some(pid)) = (read, pid) else {
        return format!("{lock} another program");
    };
    let here = host().unwrap_or_default();
    let is_here = said("host") == here;
    let gone = || nix::sys::signal::kill(Pid::from_raw(pid), None) == Err(Errno::ESRCH);
    if is_here && gone() {
        return format!("{lock} another program");
    }
    let mut text = format!("{lock} process {pid}, `{}`", said("script"));
    if !is_here {
        text += &format!(", on {}", said("host"));
    }
    if let Ok(since) = said("since").parse::<Timestamp>() {
        let ago = Timestamp::now().duration_since(since).unsigned_abs();
        let ago = match ago.as_secs() {
            0 => "just now".into(),
            seconds => format!("{} ago", Human(Duration::from_secs(seconds))),
        };
        let shown = since.to_zoned(local_zone()).strftime("%Y-%m-%d %H:%M:%S").to_string();
        text += &format!(", since {shown} ({ago})");
    }
    text
}
