//! Locks on whole files, by `flock(2)`.

use std::fs::File;
use std::ops::{Deref, DerefMut};

use nix::errno::Errno;
use rustix::fs::{FlockOperation, flock};

/// Kind of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// One holder. Waits for the lock.
    Exclusive,
    /// One holder. Fails with EWOULDBLOCK if another process holds the lock.
    ExclusiveNow,
    /// Any number of holders. Waits for the lock.
    Shared,
    /// Any number of holders. Fails with EWOULDBLOCK if another process holds an exclusive lock.
    SharedNow,
}

/// File that is locked until the value is dropped, even if another process inherited the file.
///
/// nix has such a type, but that one panics if the file cannot be unlocked, as on a file system
/// whose server is gone. Closing the file then releases the lock.
#[derive(Debug)]
pub struct FileLock(File);

impl FileLock {
    /// Locks a file. Returns the file and the error if the file cannot be locked.
    pub fn lock(file: File, kind: LockKind) -> Result<Self, (File, Errno)> {
        match apply(&file, kind) {
            Ok(()) => Ok(Self(file)),
            Err(errno) => Err((file, errno)),
        }
    }

    /// Changes the kind of the lock. After an error, the lock may be lost.
    pub fn relock(&self, kind: LockKind) -> Result<(), Errno> {
        apply(&self.0, kind)
    }
}

fn apply(file: &File, kind: LockKind) -> Result<(), Errno> {
    let operation = match kind {
        LockKind::Exclusive => FlockOperation::LockExclusive,
        LockKind::ExclusiveNow => FlockOperation::NonBlockingLockExclusive,
        LockKind::Shared => FlockOperation::LockShared,
        LockKind::SharedNow => FlockOperation::NonBlockingLockShared,
    };
    flock(file, operation).map_err(|errno| Errno::from_raw(errno.raw_os_error()))
}

impl Deref for FileLock {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl DerefMut for FileLock {
    fn deref_mut(&mut self) -> &mut File {
        &mut self.0
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        while flock(&self.0, FlockOperation::Unlock) == Err(rustix::io::Errno::INTR) {}
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use rustix::fs::{Mode, OFlags};

    use super::*;

    #[test]
    fn one_lock_excludes_others() {
        let lockable = tempfile::NamedTempFile::new().expect("a file");
        let open = || lockable.reopen().expect("open");
        let held = FileLock::lock(open(), LockKind::SharedNow).expect("a lock");
        FileLock::lock(open(), LockKind::SharedNow).expect("a second lock");
        let (file, errno) = FileLock::lock(open(), LockKind::ExclusiveNow).expect_err("it is held");
        assert_eq!(errno, Errno::EWOULDBLOCK);
        // The copy shares the lock, which ends nevertheless.
        let copy = held.try_clone().expect("a copy");
        drop(held);
        FileLock::lock(file, LockKind::ExclusiveNow).expect("the lock is free");
        drop(copy);
    }

    #[test]
    fn an_unlock_that_fails_is_no_panic() {
        let file = tempfile::tempfile().expect("a file");
        let held = FileLock::lock(file, LockKind::Exclusive).expect("a lock");
        // std takes `O_PATH` for an access mode with musl.
        let other = rustix::fs::open("/", OFlags::PATH, Mode::empty()).expect("a place");
        // SAFETY: both descriptors are open, and the first is replaced as a whole.
        assert!(unsafe { libc::dup2(other.as_raw_fd(), held.as_raw_fd()) } >= 0);
        assert_eq!(flock(&held.0, FlockOperation::Unlock), Err(rustix::io::Errno::BADF));
        drop(held);
    }
}
