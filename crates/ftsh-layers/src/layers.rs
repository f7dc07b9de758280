//! Directory with the layers of one attempt on one directory.

use std::ffi::{CStr, CString, OsStr};
use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use rustix::fs::{AtFlags, Stat};
use rustix::fs::{
    CWD, FileType, Gid, Mode, Timespec, Timestamps, Uid, XattrFlags, chmodat, chownat, fstat,
    linkat, lremovexattr, lsetxattr, mkdirat, mknodat, utimensat,
};
use rustix::process::geteuid;

use crate::directories::{CoveredDirectory, accepts_files};
use crate::entry::{
    self, AttributeSet, FileId, FileTime, change_time, find, is_reserved, mode, names, path_in,
    path_of,
};
use crate::step::Prepared;
use ftsh_sys::{FileLock, LockKind};

/// Link to the covered directory.
pub(crate) const LOWER: &CStr = c"lower";
/// Directory with the changes.
pub(crate) const UPPER: &CStr = c"upper";
/// Directory for the kernel.
pub(crate) const WORK: &CStr = c"work";
/// Index of changed files with several hard links, which some overlays keep.
pub(crate) const INDEX: &CStr = c"work/index";
/// Directory for entries that are between two places, and for removed entries.
pub(crate) const ASIDE: &CStr = c"aside";
/// Link to the layers that have the note of the attempt, in all other layers.
pub(crate) const PRIMARY: &CStr = c"primary";

/// Locked directory with layers.
pub(crate) struct Layers {
    pub(crate) path: PathBuf,
    pub(crate) directory: FileLock,
}

/// Facts about the layers right after their creation.
pub(crate) struct Start {
    /// Time of the file system.
    pub(crate) since: FileTime,
    /// Facts about the root of the changes.
    pub(crate) root: Stat,
    pub(crate) root_attributes: AttributeSet,
    /// True if the overlay can use attributes for administrators.
    pub(crate) is_privileged: bool,
}

impl Layers {
    /// Creates and locks the directory.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        DirBuilder::new().mode(0o700).create(path)?;
        let layers = Self::lock(path.to_owned()).and_then(|locked| {
            locked.ok_or_else(|| io::Error::other("another process has just removed the layers"))
        });
        if layers.is_err() {
            let _ = std::fs::remove_dir(path);
        }
        layers
    }

    /// Locks existing layers. Returns none if a living shell holds the lock.
    ///
    /// Layers of other users are refused, because a sweep executes the note in them.
    pub(crate) fn lock(path: PathBuf) -> io::Result<Option<Self>> {
        let mut options = File::options();
        options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_DIRECTORY);
        let directory = File::from(ftsh_sys::move_up(options.open(&path)?.into())?);
        let stat = fstat(&directory)?;
        if !is_private(&stat) {
            let text = "the layers belong to another user";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        let own = FileId::from(&stat);
        let directory = match FileLock::lock(directory, LockKind::ExclusiveNow) {
            Err((_, Errno::EWOULDBLOCK)) => return Ok(None),
            result => result.map_err(|(_, errno)| errno)?,
        };
        let found = rustix::fs::lstat(&path)?;
        // Another process may have removed the directory before the lock.
        Ok((FileId::from(&found) == own).then_some(Self { path, directory }))
    }

    /// Creates the parts of the layers for a directory.
    pub(crate) fn fill(
        &self,
        place: &CoveredDirectory,
        primary: Option<&Path>,
    ) -> io::Result<Start> {
        if let Some(primary) = primary {
            symlink(primary, self.path.join("primary"))?;
        }
        match place.hiding() {
            None => symlink(&place.path, self.path.join("lower"))?,
            Some(outer) => {
                let below = place.path.strip_prefix(outer).map_err(io::Error::other)?;
                symlink(Path::new("outer").join(below), self.path.join("lower"))?;
                for part in ["outer", "merged"] {
                    mkdirat(&*self.directory, part, Mode::RWXU)?;
                }
            }
        }
        for part in [UPPER, WORK] {
            mkdirat(&*self.directory, part, Mode::RWXU)?;
        }
        let is_privileged = self.try_attributes();
        self.hide_layers(place)?;
        let root_attributes = self.copy_root(place)?;
        let root = rustix::fs::statat(&*self.directory, UPPER, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(Start { since: change_time(&root), root, root_attributes, is_privileged })
    }

    /// Returns true if this process can set attributes for administrators.
    fn try_attributes(&self) -> bool {
        let path = path_in(self.fd(), WORK);
        let name = c"trusted.overlay.ftsh";
        lsetxattr(&path, name, b"", XattrFlags::empty()).is_ok()
            && lremovexattr(&path, name).is_ok()
    }

    /// Hides layers inside the covered directory.
    fn hide_layers(&self, place: &CoveredDirectory) -> io::Result<()> {
        if !place.is_inside {
            return Ok(());
        }
        let upper = entry::open_directory(&*self.directory, UPPER)?;
        let fresh = File::open(path_of(place.directory.as_fd()))?;
        for name in names(fresh)?.iter().filter(|name| is_reserved(name)) {
            mknodat(&upper, name.as_c_str(), FileType::CharacterDevice, Mode::empty(), 0)?;
        }
        Ok(())
    }

    /// Gives the root of the changes the attributes of the covered directory. Returns the extended
    /// attributes set.
    fn copy_root(&self, place: &CoveredDirectory) -> io::Result<AttributeSet> {
        let lower = fstat(&place.directory)?;
        let upper = path_in(self.fd(), UPPER);
        let owner = (Uid::from_raw(lower.st_uid), Gid::from_raw(lower.st_gid));
        // Without privileges, the owner stays this user.
        let _ = chownat(CWD, &upper, Some(owner.0), Some(owner.1), AtFlags::SYMLINK_NOFOLLOW);
        let denied = if accepts_files(&place.directory) { 0 } else { 0o222 };
        chmodat(CWD, &upper, Mode::from_raw_mode(mode(&lower) & !denied), AtFlags::empty())?;
        let mut copied = AttributeSet::new();
        for (name, value) in attributes(&path_of(place.directory.as_fd()))? {
            if lsetxattr(&upper, name.as_c_str(), &value, XattrFlags::empty()).is_ok() {
                copied.push((name, value));
            }
        }
        let time = |tv_sec: i64, tv_nsec: i64| Timespec { tv_sec, tv_nsec: tv_nsec as _ };
        let times = Timestamps {
            last_access: time(lower.st_atime as _, lower.st_atime_nsec as _),
            last_modification: time(lower.st_mtime as _, lower.st_mtime_nsec as _),
        };
        utimensat(CWD, &upper, &times, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(copied)
    }

    /// Returns the path of a part of the layers.
    pub(crate) fn part(&self, name: &CStr) -> PathBuf {
        self.path.join(OsStr::from_bytes(name.to_bytes()))
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// True if the layers contain this name.
    pub(crate) fn has(&self, name: &CStr) -> bool {
        find(self.fd(), name).is_ok_and(|found| found.is_some())
    }

    /// True if the overlay keeps an index.
    pub(crate) fn has_index(&self) -> bool {
        self.has(INDEX)
    }

    /// Creates the directory for entries between two places.
    pub(crate) fn prepare(&self) -> io::Result<()> {
        Ok(mkdirat(&*self.directory, ASIDE, Mode::RWXU)?)
    }

    /// Creates links to files of the index.
    pub(crate) fn link(&self, links: &[Prepared]) -> io::Result<()> {
        let from = entry::open_directory(self.fd(), INDEX)?;
        for link in links {
            let to = CString::new(link.aside.as_slice())?;
            linkat(&from, link.name.as_c_str(), self.fd(), to.as_c_str(), AtFlags::empty())?;
            strip_file(self.fd(), &to)?;
        }
        Ok(())
    }

    /// Removes the layers. Sweeps find the layers by their link, so the link stays until the rest is
    /// removed.
    pub(crate) fn remove(self) -> io::Result<()> {
        for part in [UPPER, WORK, ASIDE] {
            ftsh_sys::remove_tree(&self.part(part))?;
        }
        ftsh_sys::remove_tree(&self.path)
    }
}

/// True if this user owns a directory, and no other user can write to the directory.
fn is_private(stat: &Stat) -> bool {
    stat.st_uid == geteuid().as_raw() && mode(stat) & 0o022 == 0
}

/// Returns the extended attributes of a file, except for those of overlays. Attributes that this
/// user cannot read are left out.
pub(crate) fn attributes(path: &Path) -> io::Result<AttributeSet> {
    let names = match ftsh_sys::attributes(path) {
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => return Ok(Vec::new()),
        names => names?,
    };
    let own = names.into_iter().filter(|name| !is_of_overlay(name));
    Ok(own
        .filter_map(|name| {
            let value = ftsh_sys::attribute(path, &name).ok()?;
            Some((name, value))
        })
        .collect())
}

/// True for the attributes that overlays set.
pub(crate) fn is_of_overlay(name: &CString) -> bool {
    let name = name.to_bytes();
    name.starts_with(b"user.overlay.") || name.starts_with(b"trusted.overlay.")
}

/// Removes the attributes that the overlay set on a file.
fn strip_file(parent: BorrowedFd, name: &CStr) -> io::Result<()> {
    let path = path_in(parent, name);
    for name in ftsh_sys::attributes(&path)?.iter().filter(|name| is_of_overlay(name)) {
        lremovexattr(&path, name.as_c_str())?;
    }
    Ok(())
}
