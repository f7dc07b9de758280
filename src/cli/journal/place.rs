//! The file of a journal, and whose it is.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read};
use std::mem;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use crate::driver::process::{Life, Lifelines, life};
use crate::journal::{Journal, Unreadable, read};
use crate::os_error::plain;

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
    pub path: PathBuf,
    pub file: File,
    /// Tells others that we live; none where that can't be had.
    pub lifelines: Option<Rc<Lifelines>>,
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
    let lifelines = Lifelines::of(&file).ok().map(Rc::new);
    Ok(Prepared::Ready(Place { path: path.into(), file, lifelines }))
}

/// Locks a file for good; none if somebody else has it locked. What is left of a shell is waited for.
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
            Err((same, Errno::EWOULDBLOCK))
                if start.elapsed() < PATIENCE || life(&same) == Life::Dying =>
            {
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

/// The content of a file that somebody may have.
pub fn content(path: &Path) -> io::Result<Vec<u8>> {
    let file =
        OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no plain file"));
    }
    whole(&file)
}

/// Whether somebody has it.
pub fn is_locked(path: &Path) -> bool {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    file.is_ok_and(|file| {
        // To try whether it is locked would lock it.
        life(&file) != Life::Unseen
            || matches!(
                Flock::lock(file, FlockArg::LockSharedNonblock),
                Err((_, Errno::EWOULDBLOCK))
            )
    })
}
