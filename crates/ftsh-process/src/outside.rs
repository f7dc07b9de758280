//! What a driver around this one needs of it: families of commands beside the script's, tables of
//! descriptors that it has made itself, and to be told when some of its own are ready.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use bstr::BString;

use super::ProcessDriver;
use super::fds::{Fd, FdTable};
use super::os::poll::Token;
use ftsh_machine::effect::{IoId, ScopeId};
use ftsh_sys as sys;

/// What the poller knows such a descriptor by is its key plus this.
pub const OUTSIDE: Token = 1 << 40;

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// That there is something to read, or nothing more comes.
    ToRead,
    /// That something can be written, or nobody reads.
    ToWrite,
}

impl ProcessDriver {
    /// Returns the variables in the environment of every command.
    pub fn child_env(&self) -> &[(&'static str, BString)] {
        &self.config.child_env
    }

    /// A family that is in no other one: the end of the script's scope doesn't end it.
    pub fn open_apart(&mut self, scope: ScopeId) {
        self.scopes.open_apart(scope);
    }

    /// Commands can start from these descriptors 0, 1 and 2 by this name.
    pub fn give(&mut self, io: IoId, streams: [OwnedFd; 3]) -> io::Result<()> {
        let mut table = FdTable::default();
        for (slot, stream) in table.descriptors.iter_mut().zip(streams) {
            *slot = Some(Fd::new(stream)?);
        }
        self.io.insert(io, table);
        Ok(())
    }

    /// A descriptor of the driver around, at a number that no command uses.
    pub fn keep(fd: OwnedFd) -> io::Result<OwnedFd> {
        sys::move_up(fd)
    }

    /// Has `wait` return when a descriptor is ready; it must stay open until it is left.
    pub fn listen_to(&mut self, fd: BorrowedFd, key: u64, ready: Ready) -> io::Result<()> {
        match ready {
            Ready::ToRead => self.poller.add(fd, OUTSIDE + key),
            Ready::ToWrite => self.poller.add_for_writing(fd, OUTSIDE + key),
        }
    }

    /// The opposite.
    pub fn listen_no_more(&mut self, fd: BorrowedFd) {
        self.poller.remove(fd);
    }

    /// The keys of descriptors that have become ready since this was asked last.
    pub fn take_ready(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.outside)
    }
}
