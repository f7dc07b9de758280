//! Directories to cover, and the places of their layers.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, StatxFlags, accessat, fstat, statx};

use crate::entry::{FileId, NESTED, PREFIX};
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
    /// Place in an outer attempt, if an outer attempt covers the directory.
    pub(crate) nested: Option<NestedPlace>,
}

/// Directory that an attempt covers, as inner attempts use it.
#[derive(Clone)]
pub(crate) struct OuterPlace {
    /// Absolute path without links.
    pub(crate) covered: PathBuf,
    /// Root directory below which the shell reaches the directory.
    pub(crate) root: PathBuf,
    /// Directory with the layers.
    pub(crate) layers: PathBuf,
}

impl OuterPlace {
    /// Returns the place of a path that another shell covers, in whose namespaces this process runs.
    fn of_other_shell(path: &Path) -> Result<Option<Self>, CoverError> {
        let Some((covered, layers)) = mounts::outer_overlay(path)? else { return Ok(None) };
        // The overlay hides layers inside the covered directory.
        if !layers.join("lower").is_symlink() {
            return Err(CoverError::Hidden { path: path.into(), covered });
        }
        Ok(Some(Self { covered, root: "/".into(), layers }))
    }

    /// Returns the path by which the shell reaches the directory.
    pub(crate) fn reached(&self) -> PathBuf {
        self.root.join(self.covered.strip_prefix("/").unwrap_or(&self.covered))
    }
}

/// Absolute path without links, and the path by which the shell reaches a directory that an outer
/// attempt covers.
pub(crate) type ResolvedPath = (PathBuf, Option<PathBuf>);

/// Place of a directory in an outer attempt.
#[derive(Clone, Debug)]
pub(crate) struct NestedPlace {
    /// Directory that the outer attempt covers.
    pub(crate) outer: PathBuf,
    /// Path by which the shell reaches that directory.
    pub(crate) outer_reached: PathBuf,
    /// Path by which the shell reaches the directory itself.
    reached: PathBuf,
}

impl Directories {
    /// Resolves directories. A directory below another one is a part of that one.
    pub fn find(directories: &[impl AsRef<Path>]) -> Result<Self, CoverError> {
        Self::of_resolved(Self::find_outside(directories)?, &[])
    }

    fn find_outside(directories: &[impl AsRef<Path>]) -> Result<Vec<ResolvedPath>, CoverError> {
        let resolved = directories.iter().map(|given| {
            let given = given.as_ref();
            let refuse = |error| CoverError::Directory { path: given.into(), error };
            Ok((given.canonicalize().map_err(refuse)?, None))
        });
        resolved.collect()
    }

    /// Creates the set of resolved directories. `around` are the directories of the outer attempts.
    pub(crate) fn of_resolved(
        mut paths: Vec<ResolvedPath>,
        around: &[OuterPlace],
    ) -> Result<Self, CoverError> {
        for (path, reached) in &paths {
            if !reached.as_ref().unwrap_or(path).is_dir() {
                let error = io::ErrorKind::NotADirectory.into();
                return Err(CoverError::Directory { path: path.clone(), error });
            }
        }
        paths.sort();
        paths.dedup();
        // In this order, a directory precedes everything below.
        let mut places: Vec<CoveredDirectory> = Vec::new();
        for (path, reached) in paths {
            if places.iter().any(|place| path.starts_with(&place.path)) {
                continue;
            }
            let covered_below = around.iter().find(|place| place.covered.starts_with(&path));
            places.push(match (reached, covered_below) {
                (Some(reached), _) => CoveredDirectory::nested(path, reached, around)?,
                (None, Some(below)) => {
                    return Err(CoverError::Mounted { path, below: below.covered.clone() });
                }
                (None, None) => match OuterPlace::of_other_shell(&path)? {
                    Some(place) => CoveredDirectory::nested(path.clone(), path, &[place])?,
                    None => CoveredDirectory::find(path)?,
                },
            });
        }
        Ok(Self { places })
    }

    /// Returns the covered directories, as absolute paths without links.
    pub fn directories(&self) -> impl Iterator<Item = &Path> {
        self.places.iter().map(|place| place.path.as_path())
    }

    /// Returns the directories that an attempt with this mark creates, except for those in the layers
    /// of an outer attempt. Each mark serves one attempt.
    pub fn layers<'a>(&'a self, mark: &'a str) -> impl Iterator<Item = PathBuf> + 'a {
        let places = self.places.iter().enumerate();
        let own = places.filter(|(_, place)| place.nested.is_none());
        own.map(move |(index, place)| place.layers(mark, index))
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
        Ok(Self { path, directory, id, home, is_inside, nested: None })
    }

    /// Returns a directory that an outer attempt covers. Its layers are in the layers of that attempt,
    /// and end with them.
    fn nested(path: PathBuf, reached: PathBuf, around: &[OuterPlace]) -> Result<Self, CoverError> {
        let refuse = |error| CoverError::Directory { path: path.clone(), error };
        let directory = File::open(&reached).map_err(refuse)?;
        let id = FileId::from(&fstat(&directory).map_err(|errno| refuse(errno.into()))?);
        let place = around.iter().find(|place| path.starts_with(&place.covered));
        let place = place.ok_or_else(|| refuse(io::ErrorKind::NotFound.into()))?;
        let outer_reached = place.reached();
        let nested = Some(NestedPlace { outer: place.covered.clone(), outer_reached, reached });
        let home = place.layers.clone();
        Ok(Self { path, directory, id, home, is_inside: false, nested })
    }

    /// Returns the path of the layers. The index separates directories with the same parent.
    pub(crate) fn layers(&self, mark: &str, index: usize) -> PathBuf {
        let prefix = if self.nested.is_some() { NESTED } else { PREFIX };
        self.home.join(format!("{prefix}{mark}-{index}"))
    }

    /// Returns the path by which the shell reaches the directory.
    pub(crate) fn reached(&self) -> &Path {
        self.nested.as_ref().map_or(&self.path, |nested| &nested.reached)
    }

    /// Returns the directory that an outer attempt covers and that hides the layers of this one.
    pub(crate) fn hiding(&self) -> Option<&Path> {
        let outer = &self.nested.as_ref()?.outer;
        self.home.starts_with(outer).then_some(outer)
    }

    /// True if the path still leads to the directory.
    pub(crate) fn is_current(&self) -> bool {
        self.reached()
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
