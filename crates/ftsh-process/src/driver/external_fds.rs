//! Interface for a driver that wraps this one: scopes outside the script's, descriptor tables, and
//! readiness of foreign descriptors.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use bstr::BString;

use super::ProcessDriver;
use super::tokens::EXTERNAL_FDS;
use crate::carried::CarriedJobs;
use crate::descriptors::{Fd, FdTable};
use ftsh_machine::effect::{IoId, ScopeId};
use ftsh_machine::record::Level;
use ftsh_sys as sys;

/// Kind of readiness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// Readable, or at its end.
    ToRead,
    /// Writable, or without a reader.
    ToWrite,
}

impl ProcessDriver {
    /// Returns the variables in the environment of every command.
    pub fn child_env(&self) -> &[(&'static str, BString)] {
        self.environment.of_all()
    }

    /// Opens a scope outside all others, which the end of the script does not empty.
    pub fn open_apart(&mut self, scope: ScopeId) {
        self.processes.scopes().open_apart(scope);
    }

    /// Returns the jobs of carriers.
    pub fn carried_jobs(&self) -> CarriedJobs {
        CarriedJobs::of(self.tables.registry())
    }

    /// Writes a note to the log.
    pub fn log_note(&mut self, level: Level, note: String) {
        self.console.log_notes([(level, note)]);
    }

    /// Adds a table with the descriptors from 0 on, from which commands can start.
    pub fn add_table(
        &mut self,
        io: IoId,
        streams: impl IntoIterator<Item = OwnedFd>,
    ) -> io::Result<()> {
        let mut table = FdTable::default();
        for (slot, stream) in table.descriptors.iter_mut().zip(streams) {
            *slot = Some(Fd::new(stream)?);
        }
        self.tables.io_mut().insert(io, table);
        Ok(())
    }

    /// Moves a descriptor to a number that no command uses.
    pub fn move_above_script(fd: OwnedFd) -> io::Result<OwnedFd> {
        sys::move_up(fd)
    }

    /// Makes `wait` return when a descriptor is ready. The descriptor must stay open until removed.
    pub fn add_fd(&mut self, fd: BorrowedFd, key: u64, ready: Readiness) -> io::Result<()> {
        match ready {
            Readiness::ToRead => self.reactor.poller().add(fd, EXTERNAL_FDS + key),
            Readiness::ToWrite => self.reactor.poller().add_for_writing(fd, EXTERNAL_FDS + key),
        }
    }

    /// Removes a descriptor.
    pub fn remove_fd(&mut self, fd: BorrowedFd) {
        self.reactor.poller().remove(fd);
    }

    /// Returns the keys of descriptors that became ready since the last call.
    pub fn take_ready_keys(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.external_fds)
    }
}
