//! Files that can be opened without blocking: cached by the kernel, on the file system of the root
//! directory or of the shell's own directory, if local.
//!
//! `RESOLVE_CACHED` reads no disk and contacts no server: uncached paths are left to a worker.
//! `RESOLVE_NO_XDEV` stays on the file system where the path begins. A worker checks that file
//! system once, since the check may block, and the result holds for all paths.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl, open as open_file};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, recv};
use nix::sys::stat::{Mode, SFlag, fstat};
use nix::unistd::{AccessFlags, geteuid};

use crate::descriptors::Fd;
use crate::paths::TaskDirectory;
use ftsh_machine::effect::Access;
use ftsh_sys as sys;
use ftsh_sys::FdKind;

/// Size in bytes above which truncation may take long.
const LARGE: u64 = 1024 * 1024;

/// Set to true if the root directory, or the shell's own directory, is on a local file system.
static ROOT: OnceLock<bool> = OnceLock::new();
static OWN: OnceLock<bool> = OnceLock::new();

fn start(path: &Path) -> (&'static OnceLock<bool>, &'static str) {
    if path.is_absolute() { (&ROOT, "/") } else { (&OWN, ".") }
}

/// Checks the file system where a path begins. Called by workers after use of the path.
pub(crate) fn learn(path: &Path) {
    let (known, start) = start(path);
    known.get_or_init(|| system::is_local(start));
}

/// Returns a descriptor of the path, or the error that the kernel has cached; none if only a
/// blocking call can tell.
pub(crate) fn find_locally(path: &Path, flags: OFlag) -> Option<Result<OwnedFd, Errno>> {
    if start(path).0.get() != Some(&true) {
        return None;
    }
    match system::find_locally(path, flags | OFlag::O_CLOEXEC) {
        Err(errno @ (Errno::ENOENT | Errno::ENOTDIR | Errno::EACCES)) => Some(Err(errno)),
        Err(_) => None,
        Ok(fd) => Some(Ok(fd)),
    }
}

/// Opens an existing file for a redirection, if possible without blocking.
pub(crate) fn open_locally(directory: &TaskDirectory, path: &[u8], access: Access) -> Option<Fd> {
    if path == b"/dev/null" {
        return null();
    }
    // Overlays may be slow.
    if path.is_empty() || directory.view.is_some() {
        return None;
    }
    let found = find_locally(&directory.resolve(path), OFlag::empty())?.ok()?;
    let kind = sys::fd_kind(found.as_fd()).ok()?;
    // Opening a FIFO wakes processes at its other end, and opening a device may have any effect.
    if kind.file_type != SFlag::S_IFREG || access != Access::Read && !may_be_written(&kind, access)
    {
        return None;
    }
    let flags = match access {
        Access::Read => OFlag::O_RDONLY,
        Access::Write => OFlag::O_WRONLY | OFlag::O_TRUNC,
        Access::Append => OFlag::O_WRONLY | OFlag::O_APPEND,
    };
    reopen(&found, flags).and_then(|fd| Fd::new(fd).ok())
}

/// Opens the file behind an `O_PATH` descriptor. Another process may hold a file lease and be slow
/// to release it, so the open does not wait.
fn reopen(found: &OwnedFd, flags: OFlag) -> Option<OwnedFd> {
    let path = format!("/proc/self/fd/{}", found.as_raw_fd());
    let unhurried = OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let fd = open_file(path.as_str(), flags | unhurried, Mode::empty()).ok()?;
    fcntl(&fd, FcntlArg::F_SETFL(flags & OFlag::O_APPEND)).ok()?;
    Some(fd)
}

/// True if the file may be opened for writing without `O_CREAT`, by which the system protects files
/// of others in `/tmp`, and without freeing much disk space.
fn may_be_written(kind: &FdKind, access: Access) -> bool {
    kind.owner == geteuid().as_raw() && (access == Access::Append || kind.size <= LARGE)
}

/// Returns a descriptor of `/dev/null`, shared by all scripts.
fn null() -> Option<Fd> {
    static NULL: OnceLock<Option<Arc<OwnedFd>>> = OnceLock::new();
    let open = || {
        let file = File::options().read(true).write(true).open("/dev/null").ok()?;
        is_null(&sys::fd_kind(file.as_fd()).ok()?)
            .then(|| sys::move_up(file.into()).ok().map(Arc::new))?
    };
    NULL.get_or_init(open).clone().map(Fd::Owned)
}

/// True for `/dev/null`, which never blocks.
pub(crate) fn is_null(kind: &FdKind) -> bool {
    kind.file_type == SFlag::S_IFCHR && kind.device == libc::makedev(1, 3)
}

/// True if the user has this access to an open file.
pub(crate) fn is_allowed(file: &OwnedFd, how: AccessFlags) -> io::Result<bool> {
    system::check(file, how).map(|()| true).map_err(Into::into)
}

mod system {
    use std::os::fd::OwnedFd;
    use std::path::Path;

    use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, OpenHow, ResolveFlag, openat2};
    use nix::sys::statfs::{
        BTRFS_SUPER_MAGIC, EXT4_SUPER_MAGIC, F2FS_SUPER_MAGIC, FsType, TMPFS_MAGIC, statfs,
    };
    use nix::unistd::{AccessFlags, faccessat};

    // Missing from nix for some C libraries.
    const XFS_SUPER_MAGIC: FsType = FsType(0x5846_5342);

    /// Local file systems. An overlay may cover a remote one, so it is not in the list.
    const LOCAL: [FsType; 5] =
        [BTRFS_SUPER_MAGIC, EXT4_SUPER_MAGIC, F2FS_SUPER_MAGIC, TMPFS_MAGIC, XFS_SUPER_MAGIC];

    pub(crate) fn is_local(path: &str) -> bool {
        statfs(path).is_ok_and(|it| LOCAL.contains(&it.filesystem_type()))
    }

    pub(crate) fn find_locally(path: &Path, flags: OFlag) -> nix::Result<OwnedFd> {
        let cached = ResolveFlag::from_bits_retain(libc::RESOLVE_CACHED);
        let how = OpenHow::new().flags(flags | OFlag::O_PATH);
        openat2(AT_FDCWD, path, how.resolve(cached | ResolveFlag::RESOLVE_NO_XDEV))
    }

    pub(crate) fn check(file: &OwnedFd, how: AccessFlags) -> nix::Result<()> {
        faccessat(file, "", how, AtFlags::AT_EACCESS | AtFlags::AT_EMPTY_PATH)
    }
}

/// True if the descriptor is a pipe or a socket at its end.
pub(crate) fn has_ended(fd: &Fd) -> bool {
    let Ok(data) = fstat(fd) else { return false };
    match SFlag::from_bits_truncate(data.st_mode) & SFlag::S_IFMT {
        SFlag::S_IFIFO => {
            let mut polled = [PollFd::new(fd.as_fd(), PollFlags::POLLIN)];
            let _ = poll(&mut polled, PollTimeout::ZERO);
            let found = polled[0].revents().unwrap_or(PollFlags::empty());
            found.contains(PollFlags::POLLHUP) && !found.contains(PollFlags::POLLIN)
        }
        SFlag::S_IFSOCK => {
            let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
            recv(fd.as_fd().as_raw_fd(), &mut [0], flags) == Ok(0)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt;
    use std::sync::atomic::{AtomicBool, Ordering};

    use nix::unistd::mkfifo;
    use tempfile::TempDir;

    use super::*;

    /// Returns a directory, and true if its files can be opened without blocking. Temporary files
    /// may be on another file system than the root directory, or on none that is local.
    fn directory() -> (TempDir, bool) {
        let directory = TempDir::new().expect("a directory");
        learn(directory.path());
        let device = |path: &Path| path.metadata().expect("a directory").dev();
        let is_near = device(directory.path()) == device(Path::new("/"));
        (
            directory,
            is_near
                && system::is_local("/")
                && find_locally(Path::new("/"), OFlag::empty()).is_some(),
        )
    }

    fn open_in(directory: &TempDir, name: &str, access: Access) -> Option<Fd> {
        let path = directory.path().join(name);
        open_locally(&TaskDirectory::default(), path.as_os_str().as_encoded_bytes(), access)
    }

    #[test]
    fn files_are_opened_as_they_would_be_elsewhere() {
        let (directory, is_near) = directory();
        fs::write(directory.path().join("f"), "abc").expect("a file");
        for (access, text) in [(Access::Append, "abcx"), (Access::Write, "x")] {
            let Some(fd) = open_in(&directory, "f", access) else {
                assert!(!is_near, "{access:?}");
                continue;
            };
            let flags = fcntl(&fd, FcntlArg::F_GETFL).expect("an open file");
            assert!(!OFlag::from_bits_retain(flags).contains(OFlag::O_NONBLOCK));
            nix::unistd::write(&fd, b"x").expect("it can be written to");
            assert_eq!(fs::read_to_string(directory.path().join("f")).expect("a file"), text);
        }
        assert_eq!(open_in(&directory, "f", Access::Read).is_some(), is_near);
    }

    #[test]
    fn files_that_may_block_are_left_to_workers() {
        let (directory, _) = directory();
        mkfifo(&directory.path().join("pipe"), Mode::S_IRWXU).expect("a FIFO");
        let large = File::create(directory.path().join("large")).expect("a file");
        large.set_len(LARGE + 1).expect("a size");
        for access in [Access::Read, Access::Write, Access::Append] {
            for name in ["pipe", "missing", ".", "", "/dev/zero", "/proc/self/status"] {
                assert!(open_in(&directory, name, access).is_none(), "{access:?} {name}");
            }
        }
        assert!(open_in(&directory, "large", Access::Write).is_none());
        assert_eq!(large.metadata().expect("a file").len(), LARGE + 1);
    }

    #[test]
    fn nothing_else_is_opened_while_a_name_changes_its_meaning() {
        const TIMES: usize = 2000;
        let (directory, _) = directory();
        let path = |name: &str| directory.path().join(name);
        mkfifo(&path("pipe"), Mode::S_IRWXU).expect("a FIFO");
        fs::write(path("plain"), "").expect("a file");
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for name in ["plain", "pipe"].into_iter().cycle() {
                    fs::hard_link(path(name), path("next")).expect("a link");
                    fs::rename(path("next"), path("f")).expect("its new name");
                    // The FIFO opens without a reader only if a redirection has opened it for
                    // reading.
                    let unread = OFlag::O_WRONLY | OFlag::O_NONBLOCK;
                    let opened = open_file(&path("pipe"), unread, Mode::empty());
                    assert_eq!(opened.err(), Some(Errno::ENXIO));
                    if over.load(Ordering::Relaxed) {
                        break;
                    }
                    fs::remove_file(path("f")).expect("it is there");
                }
            });
            for access in [Access::Read, Access::Write, Access::Append] {
                for fd in (0..TIMES).filter_map(|_| open_in(&directory, "f", access)) {
                    assert_eq!(
                        sys::fd_kind(fd.as_fd()).expect("an open file").file_type,
                        SFlag::S_IFREG
                    );
                }
            }
            over.store(true, Ordering::Relaxed);
        });
    }
}
