//! Contents on a node: each large content that the branches of a run take crosses once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bstr::{BString, ByteSlice};
use nix::errno::Errno;
use nix::unistd::{geteuid, gethostname};

use super::building::build;
use super::content::{Broken, ContentDigest, DigestKey, copy};
use super::entries::{EntryKind, FileEntry, failed, is_valid};
use crate::cleanup::scratch_place;
use ftsh_sys::{self as sys, FileLock, LockKind};

/// File in a store, locked by the process that will remove the store.
const KEEPER: &str = "keeper";
/// Length of a content that only one branch receives at a time. Others wait for the content.
const LARGE: u64 = 1 << 20;
/// Maximum number of large contents that one branch requests at once, each of which needs a
/// descriptor.
const MAX_LOCKS: usize = 128;

/// Directory of a run on a node: contents by their digests, and the directories of branches. Each
/// branch holds a shared lock, which its last process releases.
#[derive(Debug)]
pub struct FileStore {
    path: PathBuf,
    key: DigestKey,
    lock: FileLock,
}

impl FileStore {
    /// Opens the store of a run, and removes stores of this node that no process holds or keeps. The
    /// name is unique.
    pub fn open(name: &str, key: DigestKey) -> io::Result<Self> {
        let place = std::path::absolute(scratch_place())?;
        let prefix = prefix(&gethostname()?.to_string_lossy());
        for entry in place.read_dir()?.flatten() {
            if entry.file_name().as_bytes().starts_with(prefix.as_bytes())
                && let Ok(lock) = lock(&entry.path(), LockKind::ExclusiveNow)
                && !has_keeper(&entry.path())
            {
                // A store that this user cannot remove is another user's.
                let _ = sys::remove_tree(&entry.path());
                drop(lock);
            }
        }
        let path = place.join(format!("{prefix}{name}"));
        loop {
            match DirBuilder::new().mode(0o700).create(&path) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
            match lock(&path, LockKind::Shared) {
                Ok(lock) => return Ok(Self { path, key, lock }),
                // The last user has just removed the store.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Creates the directory of a branch.
    pub fn create_directory(&self) -> io::Result<PathBuf> {
        let path = self.path.join(format!("branch-{:016x}", sys::random()?));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(path)
    }

    /// Removes the directory of a branch, and the store if no other branch uses the store and
    /// `lingers` is false.
    pub fn leave(&self, directory: &Path, lingers: bool) -> io::Result<()> {
        sys::remove_tree(directory)?;
        if !lingers && self.lock.relock(LockKind::ExclusiveNow).is_ok() {
            sys::remove_tree(&self.path)?;
        }
        Ok(())
    }

    /// Returns the work of a process that removes the store after this time without a branch, for any
    /// end of the branches. Only one such process stays.
    pub fn keeper(&self, linger: Duration) -> impl FnOnce() + use<> {
        let path = self.path.clone();
        move || {
            let _ = keep(&path, linger);
        }
    }

    fn content(&self, digest: ContentDigest) -> PathBuf {
        self.path.join(format!("{:032x}", u128::from_be_bytes(digest.0)))
    }
}

/// Returns the prefix of the names of a node's stores. Nodes may share the directory of the stores on a
/// file system whose locks do not reach other nodes.
pub(super) fn prefix(host: &str) -> String {
    let is_safe = |it: char| it.is_ascii_alphanumeric() || it == '.';
    format!("ftsh-files-{}-", host.replace(|it| !is_safe(it), "_"))
}

/// Locks a directory of this user that is still at its path.
fn lock(path: &Path, kind: LockKind) -> io::Result<FileLock> {
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let directory = File::options().read(true).custom_flags(flags).open(path)?;
    let found = directory.metadata()?;
    if found.uid() != geteuid().as_raw() {
        return Err(ErrorKind::PermissionDenied.into());
    }
    let lock = FileLock::lock(directory, kind).map_err(|(_, errno)| errno)?;
    if is_at(path, &lock)? { Ok(lock) } else { Err(ErrorKind::NotFound.into()) }
}

/// True if a file is still at its path.
fn is_at(path: &Path, file: &File) -> io::Result<bool> {
    let (now, found) = (path.symlink_metadata()?, file.metadata()?);
    Ok((now.dev(), now.ino()) == (found.dev(), found.ino()))
}

/// True if a process keeps a store. While it waits for the last branch, it has no lock of the store.
fn has_keeper(store: &Path) -> bool {
    let file = File::options().write(true).open(store.join(KEEPER));
    file.is_ok_and(|file| FileLock::lock(file, LockKind::ExclusiveNow).is_err())
}

fn keep(path: &Path, linger: Duration) -> io::Result<()> {
    let own = path.join(KEEPER);
    let own = File::options().create(true).truncate(false).write(true).mode(0o600).open(own)?;
    let _own = FileLock::lock(own, LockKind::ExclusiveNow).map_err(|(_, errno)| errno)?;
    let store = lock(path, LockKind::Shared)?;
    loop {
        // Free when the last process of the last branch has ended.
        store.relock(LockKind::Exclusive)?;
        let unused = store.metadata()?.modified()?.elapsed().unwrap_or_default();
        if unused >= linger {
            return if is_at(path, &store)? { sys::remove_tree(path) } else { Ok(()) };
        }
        store.relock(LockKind::Shared)?;
        std::thread::sleep(linger.saturating_sub(unused));
    }
}

/// Files that a branch takes, and that arrive in a store.
#[derive(Debug)]
pub struct IncomingFiles<'a> {
    store: &'a FileStore,
    entries: Vec<FileEntry>,
    /// Locks of the large contents that this branch has requested.
    locks: BTreeMap<ContentDigest, FileLock>,
}

impl<'a> IncomingFiles<'a> {
    /// Begins with the list that the head has sent for these names.
    pub fn new(store: &'a FileStore, entries: Vec<FileEntry>, names: &[BString]) -> Option<Self> {
        is_valid(&entries, names).then(|| Self { store, entries, locks: BTreeMap::new() })
    }

    /// Returns indexes of files whose contents must be sent next; none if all contents are there.
    /// Waits for contents that other branches receive.
    pub fn wanted(&mut self) -> io::Result<Vec<u32>> {
        loop {
            let (mut wanted, mut seen, mut busy) = (Vec::new(), BTreeSet::new(), None);
            for (index, entry) in self.entries.iter().enumerate() {
                let EntryKind::File(length, digest) = entry.kind else { continue };
                let place = self.store.content(digest);
                if !seen.insert(digest) || place.exists() {
                    continue;
                }
                if length >= LARGE {
                    if self.locks.len() >= MAX_LOCKS {
                        break;
                    }
                    let part = place.with_extension("part");
                    match FileLock::lock(open_part(&part)?, LockKind::ExclusiveNow) {
                        Ok(_) if place.exists() => {
                            // There is no part if this branch opened the part just before its move.
                            let _ = fs::remove_file(part);
                            continue;
                        }
                        Ok(lock) => self.locks.insert(digest, lock),
                        Err((_, Errno::EWOULDBLOCK)) => {
                            busy.get_or_insert(part);
                            continue;
                        }
                        Err((_, errno)) => return Err(errno.into()),
                    };
                }
                wanted.push(index as u32);
            }
            let Some(busy) = busy.filter(|_| wanted.is_empty()) else { return Ok(wanted) };
            FileLock::lock(open_part(&busy)?, LockKind::Exclusive).map_err(|(_, errno)| errno)?;
        }
    }

    /// Receives the content of a file. Returns a message about the file.
    pub fn receive(&mut self, index: u32, from: &mut impl Read) -> Result<(), String> {
        let Some(FileEntry { path, kind: EntryKind::File(length, digest), .. }) =
            self.entries.get(index as usize)
        else {
            return Ok(());
        };
        let place = self.store.content(*digest);
        let mut receive = || {
            let lock = self.locks.remove(digest);
            let part = match &lock {
                Some(_) => place.with_extension("part"),
                None => place.with_extension(format!("{:016x}", sys::random()?)),
            };
            let mut file = open_part(&part)?;
            file.set_len(0)?;
            match copy(&self.store.key, from, &mut file, *length) {
                Ok(found) if found == *digest => fs::rename(part, &place),
                Ok(_) => Err(io::Error::other("it did not arrive whole")),
                Err(Broken::Source(error) | Broken::Target(error)) => Err(error),
            }
        };
        receive().map_err(|error| failed("take", path, &error))
    }

    /// Creates the files in the directory of the branch, as copies.
    pub fn build(&self, directory: &Path, names: &[BString]) -> io::Result<()> {
        let place = |path: &[u8]| directory.join(path.to_path_lossy());
        for name in names {
            fs::create_dir_all(place(name).parent().unwrap_or(directory))?;
        }
        build(&self.entries, place, |entry, file| match entry.kind {
            EntryKind::File(_, digest) => {
                io::copy(&mut File::open(self.store.content(digest))?, file).map(|_| ())
            }
            EntryKind::Directory | EntryKind::Link(_) => Ok(()),
        })
    }
}

fn open_part(path: &Path) -> io::Result<File> {
    File::options().create(true).truncate(false).write(true).mode(0o600).open(path)
}
