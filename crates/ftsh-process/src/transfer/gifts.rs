//! Files that a branch gives, at the head: hidden next to their places until the branch has
//! succeeded.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bstr::{BString, ByteSlice};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::building::build;
use super::content::{Broken, DigestKey, copy};
use super::entries::{EntryKind, FileEntry, failed, is_valid};
use super::sending::TransferError;
use crate::cleanup::{Note, Registry, hidden_name};

/// Files that a branch gives. Dropping the value removes the files that are not in their places, and
/// the replaced directories, which may take long.
pub struct Gifts {
    gifts: Vec<Gift>,
    registry: Arc<Registry>,
}

struct Gift {
    name: BString,
    place: PathBuf,
    mode: Option<u32>,
    /// Hidden directory of the new entry, on the file system of the place.
    hidden: Note,
}

impl Gift {
    fn new_entry(&self) -> PathBuf {
        self.hidden.path().join("new")
    }

    /// Fails if a directory would replace another kind of entry, or the reverse: a mistaken name must
    /// not remove a tree of files, or a link to a directory that a user keeps elsewhere.
    fn check(&self) -> io::Result<()> {
        let old = match self.place.symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            old => old?.file_type(),
        };
        let (new, old) = match (self.mode, old) {
            (Some(_), old) if old.is_dir() => return Ok(()),
            (Some(_), old) if old.is_symlink() => ("a directory", "a symbolic link"),
            (Some(_), _) => ("a directory", "a file"),
            (None, old) if old.is_dir() => ("a file", "a directory"),
            (None, _) => return Ok(()),
        };
        Err(io::Error::other(format!("{new} cannot replace {old}")))
    }

    /// Moves the entry to its place.
    fn place(&self) -> io::Result<()> {
        let (new, place) = (self.new_entry(), &self.place);
        fs::create_dir_all(place.parent().unwrap_or(Path::new("/")))?;
        let Some(mode) = self.mode else { return fs::rename(new, place) };
        // A directory that moves must be writable.
        fs::set_permissions(&new, Permissions::from_mode(0o700))?;
        match place.symlink_metadata() {
            Ok(old) => {
                let old = old.permissions();
                let opened = Permissions::from_mode(old.mode() | 0o700);
                if opened != old {
                    // Only the owner may do this, and the move may still be possible.
                    let _ = fs::set_permissions(place, opened);
                }
                // The hidden directory then holds the old directory.
                if renameat_with(CWD, &new, CWD, place, RenameFlags::EXCHANGE).is_err() {
                    let hidden = self.hidden.path().join("old");
                    let moved = replace(&new, place, &hidden, |from, to| fs::rename(from, to));
                    moved.inspect_err(|_| {
                        let _ = fs::set_permissions(place, old);
                    })?;
                }
            }
            Err(_) => fs::rename(&new, place)?,
        }
        fs::set_permissions(place, Permissions::from_mode(mode))
    }
}

/// Replaces a directory where the file system cannot exchange two entries, such as NFS, and moves the old
/// directory to `old`. Between the steps, the old directory has a hidden name that no note covers:
/// a cleanup after a kill must not remove both directories.
pub(super) fn replace(
    new: &Path,
    place: &Path,
    old: &Path,
    rename: impl Fn(&Path, &Path) -> io::Result<()>,
) -> io::Result<()> {
    let aside = place.with_file_name(hidden_name()? + "-old");
    rename(place, &aside)?;
    rename(new, place).inspect_err(|_| {
        let _ = rename(&aside, place);
    })?;
    // The new directory is in its place, so an error here must not fail the branch.
    let _ = rename(&aside, old);
    Ok(())
}

/// Number of bytes of a file that are written between two syncs.
const SYNC_PIECE: usize = 64 << 20;

/// File with the number of bytes that may not be on the disk yet. Without syncs in between, a slow disk
/// would delay only the end of a file, when the node may have ended.
struct SyncedFile<'a>(&'a mut File, usize);

impl Write for SyncedFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.1 >= SYNC_PIECE {
            self.0.sync_data()?;
            self.1 = 0;
        }
        self.0.write(bytes).inspect(|written| self.1 += written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Gifts {
    /// Receives the listed files of a branch whose directory here is `directory`.
    pub fn receive(
        directory: &Path,
        names: &[BString],
        entries: &[FileEntry],
        key: &DigestKey,
        from: &mut impl Read,
    ) -> Result<Self, TransferError> {
        let registry = Registry::own().ok_or(TransferError::Cut)?;
        Self::receive_in(&registry, directory, names, entries, key, from)
    }

    pub(super) fn receive_in(
        registry: &Arc<Registry>,
        directory: &Path,
        names: &[BString],
        entries: &[FileEntry],
        key: &DigestKey,
        from: &mut impl Read,
    ) -> Result<Self, TransferError> {
        if !is_valid(entries, names) {
            return Err(TransferError::Cut);
        }
        let mut gifts = Vec::new();
        for entries in entries.chunk_by(|_, next| !names.contains(&next.path)) {
            let Some(first) = entries.first() else { continue };
            let name = first.path.clone();
            let failed = |error: &io::Error| TransferError::Files(failed("give", &name, error));
            let hide = || {
                let place = directory.join(name.to_path().map_err(io::Error::other)?);
                let mut near = place.ancestors().skip(1);
                let near = near.find(|it| it.is_dir()).unwrap_or(Path::new("/"));
                let hidden = registry.hidden_directory(near)?;
                let mode = matches!(first.kind, EntryKind::Directory).then_some(first.mode);
                Ok(Gift { name: name.clone(), place, mode, hidden })
            };
            let gift = hide().map_err(|error| failed(&error))?;
            let place = |path: &[u8]| {
                let mut place = gift.new_entry().into_os_string();
                place.push(std::ffi::OsStr::from_bytes(&path[name.len()..]));
                PathBuf::from(place)
            };
            build(entries, place, |entry, file| {
                let EntryKind::File(length, digest) = entry.kind else { return Ok(()) };
                match copy(key, from, &mut SyncedFile(file, 0), length) {
                    Ok(found) if found == digest => file.sync_data(),
                    Ok(_) | Err(Broken::Source(_)) => Err(ErrorKind::UnexpectedEof.into()),
                    Err(Broken::Target(error)) => Err(error),
                }
            })
            .map_err(|error| match error.kind() {
                ErrorKind::UnexpectedEof => TransferError::Cut,
                _ => failed(&error),
            })?;
            gifts.push(gift);
        }
        Ok(Self { gifts, registry: registry.clone() })
    }

    /// Moves the files to their places, each by one step. Returns a message about a file that stays
    /// hidden. Moves nothing if a place has an entry of another kind. Calls `moved` for each file.
    pub fn place(&self, moved: impl Fn()) -> Result<(), String> {
        let each = |step: fn(&Gift) -> io::Result<()>| {
            let mut gifts = self.gifts.iter();
            gifts.try_for_each(|gift| {
                moved();
                step(gift).map_err(|it| failed("give", &gift.name, &it))
            })
        };
        // The end of the shell must not remove what moves.
        let _busy = self.registry.begin().ok_or("the shell has ended")?;
        each(Gift::check)?;
        each(Gift::place)
    }
}
