//! The file of a journal, and whose it is.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read, Seek};
use std::mem;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::unistd::geteuid;

use ftsh_journal::{Journal, Over, Unreadable};
use ftsh_process::{Life, Lifelines, life};
use ftsh_sys::os_error::plain;

/// Who ends needs a moment for it, and who only looks whether a run is on holds its lock as short.
const PATIENCE: Duration = Duration::from_millis(200);
const PAUSE: Duration = Duration::from_millis(5);
/// Who ends what it has started may need longer.
const LONG_PAUSE: Duration = Duration::from_millis(50);

/// What came of asking for a journal.
pub enum Taken {
    /// Another shell has it: a line for people.
    Busy(String),
    /// There is room for a run.
    New(Place),
    /// It holds a run that isn't over, or that is, which nobody was told.
    Earlier(Box<Earlier>),
}

/// A file that is ours until the process and those it forked have ended.
pub struct Place {
    pub path: PathBuf,
    pub file: File,
    /// Tells others that we live; none where that can't be had.
    pub lifelines: Option<Rc<Lifelines>>,
    /// Whether it never held a run.
    pub is_new: bool,
}

/// A run that an earlier start recorded.
pub struct Earlier {
    pub place: Place,
    pub journal: Journal,
}

/// Whether a file holds a run that is to be gone on with, or told of, instead of a new one. Nothing is
/// locked: that may change.
pub fn has_earlier(path: &Path) -> bool {
    content(path).is_ok_and(|bytes| Journal::of(bytes).is_ok_and(|journal| !is_done_with(&journal)))
}

/// Whether a run is over, and its end was told.
pub fn is_done_with(journal: &Journal) -> bool {
    match journal.over {
        None => false,
        // Nobody knows more of it.
        Some(Over::Replaced) => true,
        // Versions that didn't say whether they had told didn't say either who they were.
        Some(_) => journal.reported || journal.starts.is_empty(),
    }
}

/// Takes a file for a journal. A run in it that nothing more is to be done about makes room for a new
/// one.
pub fn take(path: &Path) -> Result<Taken> {
    let refuse = |reason: &str| anyhow!("can't use `{}` as a journal: {reason}", path.display());
    let cannot = |error: io::Error| refuse(&plain(&error));
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
            _ => cannot(error),
        })?;
    let metadata = file.metadata().map_err(cannot)?;
    if !metadata.is_file() {
        bail!(refuse("it is no plain file"));
    }
    // What is run is what the file says.
    let (owner, user) = (metadata.uid(), geteuid().as_raw());
    if owner != user {
        bail!(refuse(&format!("it is of the user with the id {owner}, not {user}")));
    }
    let file = loop {
        if let Some(file) = lock(file.try_clone().map_err(cannot)?).map_err(cannot)? {
            break file;
        }
        let holder = match content(path).map(Journal::of) {
            // It has done all that it does for this run but to end.
            Ok(Ok(Journal { suspended: Some(_), .. } | Journal { over: Some(_), .. })) => {
                thread::sleep(LONG_PAUSE);
                continue;
            }
            Ok(Ok(journal)) => format!("process {}", latest_pid(&journal)),
            _ => "another process".into(),
        };
        return Ok(Taken::Busy(format!("{holder} records a run in `{}`", path.display())));
    };
    let bytes = whole(&file).map_err(cannot)?;
    let journal = match Journal::of(bytes) {
        Err(Unreadable::Empty) => None,
        Err(gap @ Unreadable::Gap(at)) => bail!(refuse(&format!(
            "{gap}, but was done, and would be done again. Copy it once more; to go on from before the gap \
             all the same, cut off the rest: `truncate -s {at} {}`",
            path.display()
        ))),
        Err(error) => bail!(refuse(&error.to_string())),
        Ok(journal) => Some(journal),
    };
    let lifelines = Lifelines::of(&file).ok().map(Rc::new);
    let place = Place { path: path.into(), file, lifelines, is_new: journal.is_none() };
    if let Some(journal) = journal
        && !is_done_with(&journal)
    {
        return Ok(Taken::Earlier(Box::new(Earlier { place, journal })));
    }
    let empty = || {
        place.file.set_permissions(Permissions::from_mode(0o600))?;
        place.file.set_len(0)
    };
    empty().map_err(cannot)?;
    sync_directory(path).map_err(cannot)?;
    Ok(Taken::New(place))
}

/// Writes the name of a new journal to the disk, so that the name survives a crash of the machine. Skips
/// directories that the user may not read and file systems without such a request.
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

/// The process id of the shell that has a run, or had it last.
pub fn latest_pid(journal: &Journal) -> u32 {
    journal.starts.last().map_or_else(|| journal.beginning.pid(), |start| start.pid)
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

/// All that is in a file. Processes that were forked share where it is read.
fn whole(mut file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
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
