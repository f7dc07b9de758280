//! Descriptors and files of a run: tables, views, recorded input, relayed output, and what must be
//! removed at the end.

mod queries;

use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Arc;

use bstr::BString;

use crate::cleanup::{Cleanup, NoteKind, Registry};
use crate::descriptors::{Fd, TreePosition};
use crate::fds::{FdTables, Need, Plan};
use crate::input_spool::{FEED, InputSpools};
use crate::jobs::{JobResult, Reactor, Relays};
use crate::paths::{FdError, TaskDirectory};
use crate::program::{DaemonPipe, ProgramSpec, start_reader};
use crate::staged::{commit_files, commit_view};
use crate::views::Views;
use crate::workers::Control;
use ftsh_machine::effect::{
    BeginView, BufferId, Directory, FdChange, FdSource, IoId, OperationId, ScratchId, StagedFileId,
    Umask, ViewId,
};
use ftsh_machine::event::{Reply, SpawnError};
use ftsh_sys as sys;

/// Descriptors and files of a run.
pub(super) struct Tables {
    io: FdTables,
    /// Dropped before the registry of their layers is cleared.
    views: Views,
    cleanup: Cleanup,
    spools: InputSpools,
    relays: Relays,
}

impl Tables {
    /// Creates the table of inherited descriptors. What must be removed is noted in the registry.
    pub(super) fn new(cleanup: Cleanup) -> Self {
        Self {
            io: FdTables::new(cleanup.registry.clone()),
            views: Views::default(),
            cleanup,
            spools: InputSpools::default(),
            relays: Relays::default(),
        }
    }

    /// Returns the tables of descriptors.
    pub(super) fn io(&self) -> &FdTables {
        &self.io
    }

    /// Returns the tables of descriptors.
    pub(super) fn io_mut(&mut self) -> &mut FdTables {
        &mut self.io
    }

    /// Returns the views of directories.
    pub(super) fn views(&mut self) -> &mut Views {
        &mut self.views
    }

    /// Returns the inputs that attempts read.
    pub(super) fn spools(&mut self) -> &mut InputSpools {
        &mut self.spools
    }

    pub(super) fn relays(&mut self) -> &mut Relays {
        &mut self.relays
    }

    /// Returns the notes of files to remove.
    pub(super) fn registry(&self) -> &Arc<Registry> {
        &self.cleanup.registry
    }

    /// Returns an estimate of the number of descriptors in use.
    pub(super) fn size(&self) -> usize {
        self.io.size() + self.relays.count() + self.spools.size()
    }

    /// Returns the descriptors that a table with these changes needs.
    pub(super) fn need(&self, io: IoId, redirects: &[FdChange]) -> Need {
        let need = self.io.need(io, redirects);
        // The command may get a pipe, and its recorded input a file.
        if self.spools.has_spools() { Need::of(need.kept + 3, need.passing) } else { need }
    }

    /// Returns a directory of the machine, in its view if it has one.
    pub(super) fn directory(&self, directory: &Directory) -> TaskDirectory {
        TaskDirectory::of(directory, &self.views)
    }

    /// Connects a command to recorded input. Returns the descriptors to keep until its end.
    pub(super) fn connect_input(
        &mut self,
        reactor: &mut Reactor,
        plan: &mut Plan,
    ) -> Result<Vec<Fd>, FdError> {
        self.spools.connect(plan, reactor.poller()).map_err(FdError::Pipe)
    }

    /// Prepares the table of the program that replaces the shell. The program continues to read
    /// recorded input.
    pub(super) fn plan_exec(
        &mut self,
        io: IoId,
        directory: &TaskDirectory,
        umask: Umask,
        redirects: Vec<FdChange>,
    ) -> Result<Plan, FdError> {
        let mut plan = self.io.plan(io, directory, umask, redirects)?;
        self.spools.hand_over(&mut plan)?;
        Ok(plan)
    }

    /// Opens files into a table, and answers the operation.
    pub(super) fn open(
        &mut self,
        reactor: &mut Reactor,
        request: OpenRequest,
        place: TreePosition,
    ) {
        let operation = request.operation;
        match self.plan_open(reactor, request, place) {
            Err(error) => reactor.answer(operation, Err(error)),
            Ok((io, plan)) if plan.may_block() => {
                reactor.operate(operation, move |control| {
                    JobResult::Table(io, plan.carry_out(control))
                });
            }
            Ok((io, plan)) => {
                let table = plan.carry_out(&Control::default());
                let result = table.map(|table| {
                    self.io.insert(io, table);
                    Reply::Truth(true)
                });
                reactor.answer(operation, result);
            }
        }
    }

    fn plan_open(
        &mut self,
        reactor: &mut Reactor,
        request: OpenRequest,
        place: TreePosition,
    ) -> Result<(IoId, Plan), FdError> {
        let OpenRequest { io, base, directory, umask, redirects, .. } = request;
        let adds = |it: &FdChange| {
            !matches!(
                it.source,
                FdSource::Null | FdSource::Gone | FdSource::Position(_) | FdSource::Descriptor(_)
            )
        };
        let holds = redirects.iter().any(adds);
        let directory = self.directory(&directory);
        let mut plan = self.io.plan(base, &directory, umask, redirects)?;
        let relayed = std::mem::take(&mut plan.relayed);
        self.relays.listen(reactor, io, relayed).map_err(FdError::Pipe)?;
        self.io.held.listen(reactor.poller()).map_err(FdError::Pipe)?;
        self.spools.begin(&mut plan, reactor.poller())?;
        plan.table.holds = holds;
        if holds {
            plan.table.place = place;
        }
        plan.begin()?;
        Ok((io, plan))
    }

    /// Closes a table.
    pub(super) fn close(&mut self, reactor: &mut Reactor, io: IoId) {
        self.io.close(io);
        self.relays.end_table(reactor, io);
        self.reconsider_inputs(reactor);
    }

    /// Begins a relay to the descriptors of a table.
    pub(super) fn begin_relay(&mut self, operation: OperationId, io: IoId) {
        self.relays.begin(&self.io, operation, io);
    }

    /// Returns the offset at which another process would continue to read an input.
    pub(super) fn position(&self, io: IoId, descriptor: u8) -> Option<u64> {
        let (fd, position) = self.io.position(io, descriptor)?;
        // A current attempt is lost, and the next one begins at the same offset.
        Some(self.spools.start_of(fd).unwrap_or(position))
    }

    pub(super) fn drop_buffer(&mut self, buffer: BufferId) {
        self.io.drop_buffer(buffer);
        self.relays.take_kept(buffer);
    }

    /// Updates the pipes of inputs after readers ended or tables were closed.
    pub(super) fn reconsider_inputs(&mut self, reactor: &mut Reactor) {
        self.spools.reconsider(reactor.poller());
    }

    /// Starts a process that reads from pipes of this shell after its end. Returns the process id.
    pub(super) fn start_reader(&self) -> io::Result<Option<i32>> {
        let pipes: Vec<_> =
            self.io.held.pipes().map(DaemonPipe::from).chain(self.relays.pipes()).collect();
        start_reader(&pipes)
    }

    /// Starts a job that removes files of shells killed together with their supervisors.
    pub(super) fn sweep_stale_runs(&self, reactor: &mut Reactor) {
        if let Some(job) = self.cleanup.sweep_job() {
            reactor.submit_unattended(move |_| JobResult::Left(job()));
        }
    }
}

/// Request to open files into a table.
pub(super) struct OpenRequest {
    pub(super) operation: OperationId,
    /// Table to create.
    pub(super) io: IoId,
    /// Table to start from.
    pub(super) base: IoId,
    pub(super) directory: Directory,
    pub(super) umask: Umask,
    pub(super) redirects: Vec<FdChange>,
}

/// Effects of atomic attempts.
impl Tables {
    /// Commits staged files.
    pub(super) fn commit(
        &mut self,
        reactor: &mut Reactor,
        operation: OperationId,
        staged_files: &[StagedFileId],
    ) {
        let staged_files = self.io.staged_files(staged_files);
        if staged_files.is_empty() {
            return reactor.answer(operation, Ok(Reply::Truth(true)));
        }
        let registry = self.cleanup.registry.clone();
        reactor.operate(operation, move |control| {
            JobResult::Reply(commit_files(&staged_files, &registry, control))
        });
    }

    /// Begins a view of directories.
    pub(super) fn begin_view(&mut self, reactor: &mut Reactor, request: BeginView) {
        let BeginView { operation, view, directories, directory } = request;
        let around = TaskDirectory::of(&directory, &self.views);
        let paths: Vec<_> = directories.iter().map(|path| around.join(path)).collect();
        let (view, registry) = (self.views.add(view, around.view), self.cleanup.registry.clone());
        reactor.operate(operation, move |_| {
            let begun = view.begin(&paths, &registry).map_err(FdError::from);
            let name = |path: PathBuf| path.into_os_string().into_vec().into();
            let names = |paths: Vec<PathBuf>| paths.into_iter().map(name).collect();
            JobResult::Reply(begun.map(|paths| Reply::Words(names(paths))))
        });
    }

    /// Commits a view and staged files.
    pub(super) fn commit_view(
        &mut self,
        reactor: &mut Reactor,
        operation: OperationId,
        view: ViewId,
        files: &[StagedFileId],
        is_inner: bool,
    ) {
        let (view, files) = (self.views.get(view), self.io.staged_files(files));
        let registry = self.cleanup.registry.clone();
        reactor.operate(operation, move |control| {
            JobResult::Reply(commit_view(&view, &files, is_inner, &registry, control))
        });
    }

    /// Drops a view with its changes.
    pub(super) fn drop_view(&mut self, reactor: &mut Reactor, view: ViewId) {
        let Some(view) = self.views.remove(view) else { return };
        let busy = self.cleanup.registry.begin();
        // From here on, no later process of a recorded run takes over the view.
        let note = view.record().map(|path| self.cleanup.registry.note(NoteKind::Tree, path));
        // Without a worker, the view ends with its last user.
        reactor.submit_unattended(move |_| {
            view.end();
            drop(note);
            drop(busy);
            JobResult::Cancelled
        });
    }

    /// Removes a scratch directory.
    pub(super) fn drop_scratch(&mut self, reactor: &mut Reactor, id: ScratchId) {
        let Some(scratch) = self.cleanup.take_scratch(id) else { return };
        let registry = self.cleanup.registry.clone();
        // Without a worker, the end of the run removes the directory.
        reactor.submit_unattended(move |_| match scratch.remove(&registry) {
            Ok(()) => JobResult::Cancelled,
            Err(note) => JobResult::Left(vec![note]),
        });
    }
}

/// Feeder processes, which write recorded input and then further input to the program that replaces
/// the shell.
impl Tables {
    /// Starts the feeders. Returns their process ids.
    pub(super) fn start_feeders(&mut self) -> Result<Vec<i32>, SpawnError> {
        let environment = std::env::vars_os()
            .map(|(name, value)| (name.into_vec().into(), value.into_vec().into()))
            .collect();
        let feeder = ProgramSpec {
            words: ["sh", "-c", FEED].map(BString::from).to_vec(),
            environment: Arc::new(environment),
            child_env: Vec::new(),
            overrides: Vec::new(),
            directory: TaskDirectory::default(),
            umask: None,
            file: None,
        };
        let mut pids = Vec::new();
        for table in self.spools.take_feeders() {
            match feeder.start(&table) {
                Ok(started) => pids.push(started.pid),
                Err(error) => {
                    Self::stop_feeders(&pids);
                    return Err(error);
                }
            }
        }
        Ok(pids)
    }

    /// Kills feeder processes after a failed `exec`.
    pub(super) fn stop_feeders(pids: &[i32]) {
        for pid in pids {
            let _ = sys::kill(-pid, libc::SIGKILL);
        }
    }
}
