//! Directories to cover, and the places of their layers.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, StatxFlags, accessat, fstat, statx};

use crate::entry::{FileId, PREFIX};
use crate::error::CoverError;
use crate::mounts;

/// Directories to cover, resolved once for all attempts.
#[derive(Debug)]
pub struct Directories {
    pub(crate) places: Vec<CoveredDirectory>,
}

/// One directory to cover.
#[derive(Debug)]
pub(crate) struct CoveredDirectory {
    /// Absolute path without links.
    pub(crate) path: PathBuf,
    /// The directory, open for reading.
    pub(crate) directory: File,
    pub(crate) id: FileId,
    /// Directory that receives the layers: the parent, or the directory itself.
    pub(crate) home: PathBuf,
    /// True if the layers are inside the directory.
    pub(crate) is_inside: bool,
}

impl Directories {
    /// Resolves directories. A directory below another one is a part of that one.
    pub fn find(directories: &[impl AsRef<Path>]) -> Result<Self, CoverError> {
        let mut paths = Vec::new();
        for given in directories {
            let given = given.as_ref();
            let refuse = |error| CoverError::Directory { path: given.into(), error };
            let path = given.canonicalize().map_err(refuse)?;
            if !path.is_dir() {
                return Err(refuse(io::ErrorKind::NotADirectory.into()));
            }
            paths.push(path);
        }
        paths.sort();
        paths.dedup();
        // In this order, a directory precedes everything below.
        let mut places: Vec<CoveredDirectory> = Vec::new();
        for path in paths {
            if !places.iter().any(|place| path.starts_with(&place.path)) {
                places.push(CoveredDirectory::find(path)?);
            }
        }
        Ok(Self { places })
    }

    /// Returns the covered directories, as absolute paths without links.
    pub fn directories(&self) -> impl Iterator<Item = &Path> {
        self.places.iter().map(|place| place.path.as_path())
    }

    /// Returns the directories that an attempt with this mark creates. Each mark serves one attempt.
    pub fn layers<'a>(&'a self, mark: &'a str) -> impl Iterator<Item = PathBuf> + 'a {
        self.places.iter().enumerate().map(move |(index, place)| place.layers(mark, index))
    }
}

impl CoveredDirectory {
    fn find(path: PathBuf) -> Result<Self, CoverError> {
        let refuse = |error| CoverError::Directory { path: path.clone(), error };
        let directory = File::open(&path).map_err(refuse)?;
        let id = FileId::from(&fstat(&directory).map_err(|errno| refuse(errno.into()))?);
        let Some(parent) = path.parent() else { return Err(CoverError::Root) };
        if let Some(below) = mounts::mounted_below(&path)? {
            return Err(CoverError::Mounted { path: path.clone(), below });
        }
        if mounts::is_on_overlay(&directory) {
            let error = io::Error::from_raw_os_error(libc::EOPNOTSUPP);
            let system = mounts::file_system(&directory);
            return Err(CoverError::FileSystem { path: path.clone(), system, error });
        }
        let is_inside = !(is_writable(parent).is_ok() && are_on_one_mount(parent, &path));
        if is_inside && let Err(error) = is_writable(&path) {
            return Err(CoverError::Layers { path: path.clone(), error });
        }
        let home = if is_inside { &path } else { parent }.to_owned();
        Ok(Self { path, directory, id, home, is_inside })
    }

    /// Returns the path of the layers. The index separates directories with the same parent.
    pub(crate) fn layers(&self, mark: &str, index: usize) -> PathBuf {
        self.home.join(format!("{PREFIX}{mark}-{index}"))
    }

    /// True if the path still leads to the directory.
    pub(crate) fn is_current(&self) -> bool {
        self.path
            .symlink_metadata()
            .is_ok_and(|found| (FileId { device: found.dev(), inode: found.ino() }) == self.id)
    }
}

fn is_writable(path: &Path) -> io::Result<()> {
    Ok(accessat(CWD, path, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)?)
}

/// True if files can be renamed from one directory to the other.
fn are_on_one_mount(one: &Path, other: &Path) -> bool {
    let mount = |path: &Path| {
        let found = statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::MNT_ID).ok()?;
        let id = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::MNT_ID);
        Some((found.stx_dev_major, found.stx_dev_minor, id.then_some(found.stx_mnt_id)))
    };
    mount(one).is_some_and(|found| Some(found) == mount(other))
}

/// True if this user can create files in the directory.
pub(crate) fn accepts_files(directory: impl AsFd) -> bool {
    accessat(directory, c".", Access::WRITE_OK, AtFlags::EACCESS).is_ok()
}
