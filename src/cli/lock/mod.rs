//! `--lock`: one run at a time.
//!
//! The lock uses `flock`: the kernel frees the lock with the last process of the shell. Commands do
//! not inherit the lock. The file names the holder, and remains after the run. A later run with a
//! lock of its own removes the files of scripts.

mod failures;
mod replace;

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};

pub(super) use self::failures::FailureCount;
use crate::cli::messages::usage;
use jiff::Timestamp;
use nix::errno::Errno;
use nix::unistd::Pid;

use crate::log::local_zone;
use ftsh_machine::outcome::Human;
use ftsh_process::user_directory;
use ftsh_syntax::slug::Slug;
use ftsh_sys::os_error::plain;
use ftsh_sys::{FileLock, LockKind};

/// First bytes of a lock file. Other files are never overwritten.
const MAGIC: &str = "ftsh lock\n";
/// Maximum size of a lock file in bytes.
const MAX_FILE_SIZE: u64 = 1 << 16;
/// Polling interval of a lock whose holder is being replaced.
const REPLACE_INTERVAL: Duration = Duration::from_millis(20);
/// Holder of a lock whose file does not name the holder.
const UNNAMED: &str = "another program, or by a run that has just started";
/// Minimum wait for a lock whose noted holder is gone: the rest of the holder is about to end, or
/// another run removes the lock.
const ENDING_TIMEOUT: Duration = Duration::from_secs(1);
/// Longest time in which a new holder writes its name into the lock file.
const NAMING_TIMEOUT: Duration = Duration::from_secs(1);

/// Location of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LockLocation {
    /// A file that the user names.
    File(PathBuf),
    /// A file that belongs to this script.
    Script(PathBuf),
}

impl LockLocation {
    /// Returns the path of the lock file. `directory` replaces the usual directory of the locks of
    /// scripts.
    pub(super) fn file(&self, directory: Option<PathBuf>) -> Result<PathBuf> {
        match self {
            Self::File(file) => Ok(file.clone()),
            Self::Script(script) => {
                let whole = std::fs::canonicalize(script).map_err(|error| {
                    anyhow!(
                        "can't find the script `{}` ({}); name a lock by `--lock=FILE`",
                        script.display(),
                        plain(&error)
                    )
                })?;
                let name = whole.file_name().unwrap_or_default().to_string_lossy();
                // The hash distinguishes scripts of the same name.
                // At most 160 bytes, so that the hash fits into the 255 bytes of a name.
                let short: String = name.chars().take(40).collect();
                let hash = fnv1a(whole.as_os_str().as_encoded_bytes());
                let directory = directory.unwrap_or_else(user_directory::path);
                user_directory::make_private(&directory).map_err(|reason| {
                    anyhow!(
                        "can't put a lock into `{}`: {reason}; name one by `--lock=FILE`",
                        directory.display()
                    )
                })?;
                remove_ended(&directory);
                Ok(directory.join(format!("{short}-{hash:016x}.lock")))
            }
        }
    }
}

/// Removes the locks of ended runs from the directory of the locks of scripts. A run that takes such
/// a lock at this moment waits for its release, since the noted holder is gone.
fn remove_ended(directory: &Path) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|it| it != "lock") {
            continue;
        }
        let is_ended = |file: &File| HolderNote::read(file).is_some_and(|note| note.is_gone());
        // A lock that a run begins to hold has no note yet.
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        if let Ok(file) = OpenOptions::new().read(true).custom_flags(flags).open(&path)
            && is_ended(&file)
            && let Ok(file) = FileLock::lock(file, LockKind::ExclusiveNow)
            && is_ended(&file)
            // Another run may have replaced the file since it was opened.
            && identity_of(file.metadata()) == identity_of(std::fs::symlink_metadata(&path))
        {
            let _ = std::fs::remove_file(&path);
        }
    }
}

/// Returns the 64-bit FNV-1a hash, which is stable across releases.
///
/// <https://datatracker.ietf.org/doc/html/draft-eastlake-fnv>
pub(super) fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// True if a file is or could be a lock: the file is missing, empty, or begins with the mark.
pub(super) fn may_be_lock(file: &Path) -> bool {
    match std::fs::symlink_metadata(file) {
        Err(error) => error.kind() == io::ErrorKind::NotFound,
        Ok(found) => {
            found.is_file()
                && (found.len() == 0 || File::open(file).is_ok_and(|file| is_marked(&file)))
        }
    }
}

fn is_marked(mut file: &File) -> bool {
    let mut start = vec![0; MAGIC.len()];
    file.rewind().is_ok() && file.read_exact(&mut start).is_ok() && start == MAGIC.as_bytes()
}

/// Holder of a lock, written to the lock file for other runs.
pub(super) struct LockHolder<'a> {
    /// Process id of the shell, as the user sees the shell.
    pub pid: u32,
    /// Name of the script.
    pub script: &'a str,
}

/// Result of [`take`].
pub(super) enum LockResult {
    /// This run holds the lock until all its processes have ended.
    Held(HeldLock),
    /// Another run holds the lock. Contains one line for people.
    Busy(String),
}

/// Lock that this run holds.
pub(super) struct HeldLock {
    /// Path of the lock file, which does not depend on the current directory.
    path: PathBuf,
    /// Device and inode of the lock file.
    identity: (u64, u64),
}

impl HeldLock {
    /// Returns a warning if the path no longer leads to the lock file.
    pub(super) fn warning(&self) -> Option<String> {
        let is_there = match std::fs::symlink_metadata(&self.path) {
            Ok(found) => identity(&found) == self.identity,
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        };
        let path = self.path.display();
        (!is_there).then(|| {
            format!(
                "the lock `{path}` was removed during the run, so another run could start beside \
                 this run; keep the files of locks"
            )
        })
    }
}

/// Returns the device and the inode of a file.
fn identity(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

/// Returns the device and the inode of a file that was found.
fn identity_of(found: io::Result<Metadata>) -> Option<(u64, u64)> {
    found.ok().as_ref().map(identity)
}

/// Takes a lock, waiting at most `timeout`. Calls `waiting` once with the reason of a wait.
pub(super) fn take(
    path: &Path,
    holder: &LockHolder,
    timeout: Duration,
    mut waiting: impl FnMut(&str),
) -> Result<LockResult> {
    let start = Instant::now();
    let failed = |what: &str, error: &io::Error| {
        anyhow!("can't {what} the lock `{}`: {}", path.display(), plain(error))
    };
    let mut is_reported = false;
    loop {
        let file = open(path)?;
        let file = match FileLock::lock(file, LockKind::ExclusiveNow) {
            Ok(file) => file,
            Err((file, Errno::EWOULDBLOCK)) => {
                let note = HolderNote::read(&file);
                let is_ending = note.as_ref().is_some_and(HolderNote::is_gone);
                // A run that begins has no note yet.
                let is_short = is_ending || note.is_some_and(|note| note.0.is_empty());
                let limit = if is_short { timeout.max(ENDING_TIMEOUT) } else { timeout };
                let left = limit.saturating_sub(start.elapsed());
                let owner = describe(path, &file);
                if left.is_zero() {
                    return Ok(LockResult::Busy(if timeout.is_zero() {
                        owner
                    } else {
                        format!("{owner}, still after {}", Human(start.elapsed()))
                    }));
                }
                if !is_reported && !is_ending && !timeout.is_zero() {
                    is_reported = true;
                    waiting(&owner);
                }
                match wait(file, left).map_err(|error| failed("wait for", &error))? {
                    Some(file) => file,
                    None => continue, // says who holds it by now
                }
            }
            Err((_, errno)) => return Err(no_lock(path, errno)),
        };
        if let Some(held) = keep(path, file, holder) {
            return Ok(LockResult::Held(held));
        }
    }
}

/// Takes a lock like [`take`], after the run that holds the lock was ended. A run that takes the
/// lock meanwhile is ended as well.
pub(super) fn replace(
    path: &Path,
    holder: &LockHolder,
    timeout: Duration,
    mut waiting: impl FnMut(&str),
) -> Result<LockResult> {
    let start = Instant::now();
    let (mut signaled, mut strange) = (None, None);
    loop {
        let file = match FileLock::lock(open(path)?, LockKind::ExclusiveNow) {
            Ok(file) => {
                if let Some(held) = keep(path, file, holder) {
                    return Ok(LockResult::Held(held));
                }
                continue;
            }
            Err((file, Errno::EWOULDBLOCK)) => file,
            Err((_, errno)) => return Err(no_lock(path, errno)),
        };
        let owner = describe(path, &file);
        let pid = HolderNote::read(&file).and_then(|note| note.pid().filter(|_| note.is_here()));
        let is_late = start.elapsed() >= timeout;
        let result = match pid {
            None => Err("it is not a run of ftsh on this machine"),
            Some(_) if pid == signaled => Ok(()),
            // Neither run would remain.
            Some(_) if is_late => Err("no time is left to wait for its end"),
            Some(pid) => replace::end(pid, &file),
        };
        match result {
            Ok(()) if pid != signaled => {
                waiting(&format!("{owner}, and is being replaced"));
                (signaled, strange) = (pid, None);
            }
            Ok(()) => {}
            // A new holder writes its name after it has taken the lock.
            Err(why) => {
                if is_late || strange.get_or_insert_with(Instant::now).elapsed() >= NAMING_TIMEOUT {
                    return Ok(LockResult::Busy(format!("{owner}; it is not replaced: {why}")));
                }
            }
        }
        if is_late {
            let still = Human(start.elapsed());
            return Ok(LockResult::Busy(format!("{owner}, still after {still}")));
        }
        std::thread::sleep(REPLACE_INTERVAL);
    }
}

/// Returns the error of a lock that cannot be taken.
fn no_lock(path: &Path, errno: Errno) -> anyhow::Error {
    anyhow!(
        "the file system may lack locks; name a file elsewhere by `--lock=FILE`: \
         can't take the lock `{}`: {}",
        path.display(),
        plain(&errno.into())
    )
}

/// Keeps a lock until the end of all processes of this run. Returns none if the file was removed
/// meanwhile.
fn keep(path: &Path, file: FileLock, holder: &LockHolder) -> Option<HeldLock> {
    let identity = identity_of(file.metadata())?;
    // A lock on a removed file keeps no run out that creates the file again.
    if identity_of(std::fs::symlink_metadata(path)) != Some(identity) {
        return None;
    }
    // The lock counts even if the file is not writable.
    let _ = write_holder(&file, holder);
    // The supervisor shares the descriptor, so the lock lasts as long as the last process.
    std::mem::forget(file);
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    Some(HeldLock { path, identity })
}

fn open(path: &Path) -> Result<File> {
    let refuse = |reason: String| {
        usage(Slug::LockFile, format_args!("can't use `{}` as a lock: {reason}", path.display()))
    };
    let mut options = OpenOptions::new();
    // Opening a FIFO must not block. A link in a directory such as `/tmp` could lead anywhere.
    options
        .read(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY);
    let file = match options.clone().write(true).create(true).truncate(false).open(path) {
        // A lock of another user can be taken without write access.
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
            Some(libc::ENXIO) => "it is not a regular file".into(),
            _ => plain(&error),
        })
    })?;
    let found = file.metadata().map_err(|error| refuse(plain(&error)))?;
    if !found.is_file() {
        bail!(refuse("it is not a regular file".into()));
    }
    if found.len() > 0 && (found.len() > MAX_FILE_SIZE || !is_marked(&file)) {
        bail!(refuse("it holds other data; name a new or empty file".into()));
    }
    Ok(file)
}

/// Waits for a lock. Returns none if the lock is not free in time. The waiting thread ends with the
/// wait or with the process.
fn wait(file: File, time: Duration) -> io::Result<Option<FileLock>> {
    let (sender, receiver) = mpsc::channel();
    let thread = std::thread::Builder::new().spawn(move || {
        let mut file = file;
        let result = loop {
            match FileLock::lock(file, LockKind::Exclusive) {
                Err((same, Errno::EINTR)) => file = same,
                Err((_, errno)) => break Err(errno),
                Ok(file) => break Ok(file),
            }
        };
        let _ = sender.send(result);
    })?;
    match receiver.recv_timeout(time) {
        Ok(result) => {
            let _ = thread.join();
            Ok(Some(result?))
        }
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(None),
    }
}

/// Writes the holder to the lock file.
fn write_holder(mut file: &File, holder: &LockHolder) -> io::Result<()> {
    let since = Timestamp::from_second(Timestamp::now().as_second()).unwrap_or_default();
    let script = crate::log::one_line(holder.script);
    let text = format!(
        "{MAGIC}pid {}\nsince {since}\nhost {}\nscript {script}\n",
        holder.pid,
        host().unwrap_or_default(),
    );
    // Some file systems wait for the disk after a file was truncated first.
    file.rewind()?;
    file.write_all(text.as_bytes())?;
    file.set_len(text.len() as u64)?;
    Ok(())
}

fn host() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned())
}

/// Content of a lock file, written by its holder.
struct HolderNote(String);

impl HolderNote {
    fn read(mut file: &File) -> Option<Self> {
        let mut text = String::new();
        file.rewind().ok()?;
        file.take(MAX_FILE_SIZE).read_to_string(&mut text).ok()?;
        Some(Self(text))
    }

    fn field(&self, name: &str) -> &str {
        let mut lines = self.0.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).unwrap_or("")
    }

    /// Returns the process id of the shell.
    fn pid(&self) -> Option<i32> {
        self.field("pid").parse().ok().filter(|pid| *pid > 0)
    }

    /// Returns true if the holder runs on this machine.
    fn is_here(&self) -> bool {
        self.field("host") == host().unwrap_or_default()
    }

    /// Returns true if the holder was a process of this machine that has ended, even if its parent
    /// has not waited for it yet.
    fn is_gone(&self) -> bool {
        let is_gone = |pid| {
            let is_missing = nix::sys::signal::kill(Pid::from_raw(pid), None) == Err(Errno::ESRCH);
            // An ended process has no program.
            let program = std::fs::read_link(format!("/proc/{pid}/exe"));
            let kind = program.err().map(|error| error.kind());
            is_missing || kind == Some(io::ErrorKind::NotFound)
        };
        self.is_here() && self.pid().is_some_and(is_gone)
    }
}

/// Describes the holder of a lock in one line.
fn describe(path: &Path, file: &File) -> String {
    let lock = format!("the lock `{}` is held by", path.display());
    let note = HolderNote::read(file);
    let Some((note, pid)) = note.as_ref().and_then(|note| Some((note, note.pid()?))) else {
        return format!("{lock} {UNNAMED}");
    };
    let (field, is_here) = (|name| note.field(name), note.is_here());
    // The note is that of an earlier run.
    if note.is_gone() {
        return format!("{lock} {UNNAMED}");
    }
    let mut text = format!("{lock} process {pid}, `{}`", field("script"));
    if !is_here {
        text += &format!(", on {}", field("host"));
    }
    if let Ok(since) = field("since").parse::<Timestamp>() {
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
