//! The file of a journal, with its lock.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read, Seek};
use std::mem;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::cli::messages::usage;
use nix::errno::Errno;
use nix::unistd::geteuid;

use ftsh_journal::{Journal, Over, Unreadable};
use ftsh_process::{LivenessLocks, ShellLiveness, liveness};
use ftsh_syntax::slug::Slug;
use ftsh_sys::os_error::plain;
use ftsh_sys::{FileLock, LockKind};

/// Maximum wait for the lock of a process that is about to end, or that only checks the lock.
const LOCK_TIMEOUT: Duration = Duration::from_millis(200);
const LOCK_POLL: Duration = Duration::from_millis(5);
/// Pause while another shell kills its remaining processes.
const END_POLL: Duration = Duration::from_millis(50);

/// Result of [`claim`].
pub(crate) enum JournalClaim {
    /// Another shell holds the journal. Contains a line for people.
    Busy(String),
    /// The journal is free for a run.
    New(JournalFile),
    /// The journal holds a run that is unfinished, or whose end is not reported.
    Earlier(Box<EarlierRun>),
}

/// A locked file that belongs to this run until all its processes have ended.
pub(crate) struct JournalFile {
    pub path: PathBuf,
    pub file: File,
    /// Signs of life for other shells, if the system supports them.
    pub liveness_locks: Option<Rc<LivenessLocks>>,
    /// True if the file never held a run.
    pub is_new: bool,
}

/// A run that an earlier start recorded.
pub(crate) struct EarlierRun {
    pub journal_file: JournalFile,
    pub journal: Journal,
}

/// True if a file holds a run that must be resumed or reported before a new one. Without a lock,
/// the answer may change.
pub(crate) fn has_earlier(path: &Path) -> bool {
    content(path).is_ok_and(|bytes| Journal::of(bytes).is_ok_and(|journal| !is_done_with(&journal)))
}

/// True if a run is over and its end is reported.
pub(super) fn is_done_with(journal: &Journal) -> bool {
    match journal.over {
        None => false,
        // The journal ends there.
        Some(Over::Replaced) => true,
        // Older versions recorded neither reports nor starts.
        Some(_) => journal.reported || journal.starts.is_empty(),
    }
}

/// Claims a file for a journal. A new run replaces a run that is over and reported.
pub(crate) fn claim(path: &Path) -> Result<JournalClaim> {
    let refuse = |reason: &str| {
        usage(
            Slug::JournalFile,
            format_args!("can't use `{}` as a journal: {reason}", path.display()),
        )
    };
    let cannot = |error: io::Error| refuse(&plain(&error));
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        // Opening a FIFO must not block. A link in a directory such as `/tmp` could lead anywhere.
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)
        .map_err(|error| match error.raw_os_error() {
            Some(libc::ELOOP) => refuse("it is a symbolic link; name the file itself"),
            _ => cannot(error),
        })?;
    let metadata = file.metadata().map_err(cannot)?;
    if !metadata.is_file() {
        bail!(refuse("it is not a regular file"));
    }
    // The file determines the commands that are run.
    let (owner, user) = (metadata.uid(), geteuid().as_raw());
    if owner != user {
        bail!(refuse(&format!("it belongs to the user with the id {owner}, not {user}")));
    }
    let file = loop {
        if let Some(file) = lock(file.try_clone().map_err(cannot)?).map_err(cannot)? {
            break file;
        }
        let holder = match content(path).map(Journal::of) {
            // The holder has finished this run and is about to end.
            Ok(Ok(Journal { suspended: Some(_), .. } | Journal { over: Some(_), .. })) => {
                thread::sleep(END_POLL);
                continue;
            }
            Ok(Ok(journal)) => format!("process {}", latest_pid(&journal)),
            _ => "another process".into(),
        };
        return Ok(JournalClaim::Busy(format!("{holder} records a run in `{}`", path.display())));
    };
    let bytes = whole(&file).map_err(cannot)?;
    let journal = match Journal::of(bytes) {
        Err(Unreadable::Empty) => None,
        Err(gap @ Unreadable::Gap(at)) => bail!(refuse(&format!(
            "{gap}; commands in the gap have run and would run again. Copy the file once more; to resume from \
             before the gap anyway, cut off the rest: `truncate -s {at} {}`",
            path.display()
        ))),
        Err(error) => bail!(refuse(&format!("{error}; choose another file (nothing was changed)"))),
        Ok(journal) => Some(journal),
    };
    let liveness_locks = LivenessLocks::of(&file).ok().map(Rc::new);
    let journal_file =
        JournalFile { path: path.into(), file, liveness_locks, is_new: journal.is_none() };
    if let Some(journal) = journal
        && !is_done_with(&journal)
    {
        return Ok(JournalClaim::Earlier(Box::new(EarlierRun { journal_file, journal })));
    }
    let empty = || {
        journal_file.file.set_permissions(Permissions::from_mode(0o600))?;
        journal_file.file.set_len(0)
    };
    empty().map_err(cannot)?;
    sync_directory(path).map_err(cannot)?;
    Ok(JournalClaim::New(journal_file))
}

/// Flushes the name of a new journal to the disk, so that the name survives a crash of the machine.
/// Skips directories that the user may not read and file systems without such a request.
fn sync_directory(journal: &Path) -> io::Result<()> {
    let directory = journal.parent().filter(|directory| !directory.as_os_str().is_empty());
    match File::open(directory.unwrap_or(Path::new("."))).and_then(|it| it.sync_all()) {
        Err(error) if may_lack_sync(error.kind()) => Ok(()),
        result => result,
    }
}

fn may_lack_sync(kind: io::ErrorKind) -> bool {
    matches!(
        kind,
        io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported
    )
}

/// Returns the process id of the present or last shell of a run.
pub(super) fn latest_pid(journal: &Journal) -> u32 {
    journal.starts.last().map_or_else(|| journal.beginning.pid(), |start| start.pid)
}

/// Locks a file for the life of the process. Returns none if another process holds the lock. Waits
/// for shells that are about to end.
fn lock(mut file: File) -> io::Result<Option<File>> {
    let start = Instant::now();
    loop {
        match FileLock::lock(file, LockKind::ExclusiveNow) {
            Ok(locked) => {
                let file = locked.try_clone()?;
                // Forked processes share the descriptor, so the lock lasts as long as the last
                // process.
                mem::forget(locked);
                return Ok(Some(file));
            }
            Err((same, Errno::EWOULDBLOCK))
                if start.elapsed() < LOCK_TIMEOUT || liveness(&same) == ShellLiveness::Partial =>
            {
                file = same;
                thread::sleep(LOCK_POLL);
            }
            Err((_, Errno::EWOULDBLOCK)) => return Ok(None),
            Err((_, errno)) => return Err(errno.into()),
        }
    }
}

/// Reads a whole file from the beginning. Forked processes share the position in the file.
fn whole(mut file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a file that another process may have locked.
pub(super) fn content(path: &Path) -> io::Result<Vec<u8>> {
    let file =
        OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    whole(&file)
}

/// True if another process holds the lock of the file.
pub(super) fn is_locked(path: &Path) -> bool {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    file.is_ok_and(|file| {
        // An attempt to lock the file would claim the lock for a moment.
        liveness(&file) != ShellLiveness::Unlocked
            || matches!(FileLock::lock(file, LockKind::SharedNow), Err((_, Errno::EWOULDBLOCK)))
    })
}
