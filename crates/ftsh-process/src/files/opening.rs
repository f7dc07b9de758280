//! Opening of files with the umask of a task.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open as open_file};
use nix::sys::stat::{Mode, fchmod, mode_t};

use super::local::learn;
use crate::system::umask as own_umask;
use crate::workers::Control;
use ftsh_machine::effect::Umask;

/// Opens a file with these flags. Blocks until the file is open or the job is canceled.
pub(crate) fn open_as(
    path: &Path,
    flags: OFlag,
    umask: Umask,
    control: &Control,
) -> io::Result<OwnedFd> {
    let flags = flags | OFlag::O_CLOEXEC | OFlag::O_NOCTTY;
    let mode = Mode::from_bits_truncate(0o666 & !mode_t::from(umask.unwrap_or(0)));
    let lacks = umask.is_some() && mode.bits() & mode_t::from(own_umask()) != 0;
    // The shell's own umask would remove permissions that the task's umask leaves. A new file
    // therefore gets its permissions afterwards.
    if lacks
        && flags.contains(OFlag::O_CREAT)
        && let Ok(fd) = open_file(path, flags | OFlag::O_EXCL, mode)
    {
        fchmod(&fd, mode)?;
        return Ok(fd);
    }
    loop {
        match open_file(path, flags, mode) {
            Err(Errno::EINTR) if !control.is_cancelled() => {}
            result => {
                learn(path);
                return Ok(result?);
            }
        }
    }
}
