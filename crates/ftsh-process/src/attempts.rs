//! Answers to queries, and effects of atomic attempts and attempts with replayed input: commits,
//! scratch directories, input.

use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Arc;

use bstr::BString;

use super::cleanup::{NoteKind, not_removed, scratch_place};
use super::fds::path::TaskDirectory;
use super::fds::{Amount, commit, commit_view, ended, files, stream};
use super::input_spool::FEED;
use super::jobs::{JobRecipient, JobResult};
use super::os;
use super::os::clock::since_1970;
use super::os::poll::Token;
use super::os::workers::Control;
use super::program::{ProgramSpec, filter};
use super::{FdError, LINE_END, ProcessDriver, SMALL};
use ftsh_machine::effect::{
    BeginView, BufferId, Directory, IoId, OperationId, Query, ScratchId, Sink, SpoolId,
    StagedFileId, ViewId,
};
use ftsh_machine::event::{Reply, SpawnError};
use ftsh_machine::record::LogEvent;
use ftsh_machine::size::{MAX_VALUE_LEN, ValueTooLong};
use ftsh_sys as sys;
use ftsh_sys::os_error::plain;

impl ProcessDriver {
    /// Answers an operation by a worker's job.
    pub(super) fn operate(
        &mut self,
        operation: OperationId,
        job: impl FnOnce(&Control) -> JobResult + Send + 'static,
    ) {
        match self.work.pool.submit(job) {
            Ok(handle) => {
                self.work.waiting.insert(handle.ticket, JobRecipient::Operation(operation));
                self.work.operations.insert(operation, handle);
            }
            Err(error) => self.answer(operation, Err(FdError::Worker(error))),
        }
    }

    /// Answers a query, off the loop if the answer may take time.
    pub(super) fn query(&mut self, operation: OperationId, directory: &Directory, query: Query) {
        let directory = TaskDirectory::of(directory, &self.views);
        let id = match query {
            Query::Buffer(id) => id,
            Query::Clock => return self.answer(operation, Ok(Reply::clock(since_1970()))),
            // The rules of a time zone need more stack than a worker has.
            Query::LocalTime(wanted) => {
                let text = os::local_time::text(&wanted).map(|text| Reply::Text(text.into()));
                return self.answer(operation, text.map_err(FdError::LocalTime));
            }
            Query::Tail(sinks, most) => return self.tail(operation, &sinks, most),
            Query::Filled(buffers) => return self.find_filled(operation, &buffers),
            Query::InputEnded(io) => return self.query_input_end(operation, io),
            Query::Input(io, number) => return self.read_input(operation, io, number, Amount::All),
            Query::InputPart(io) => return self.read_input(operation, io, 0, Amount::Part),
            Query::InputWord(io, to) => return self.read_input(operation, io, 0, Amount::Word(to)),
            Query::Scratch(id) => return self.find_scratch(operation, id),
            Query::Durations(of) => {
                let read = self.durations.reader(of, directory);
                return self.operate(operation, |_| JobResult::Reply(Ok(Reply::Text(read()))));
            }
            Query::Filter(call) => {
                return self.operate(operation, move |control| {
                    JobResult::Reply(filter::results(&call, control))
                });
            }
            query => {
                if let Some(reply) = files::answer_now(&directory, &query) {
                    return self.answer(operation, Ok(reply));
                }
                return self.operate(operation, move |control| {
                    JobResult::Reply(files::answer(&directory, &query, control))
                });
            }
        };
        if let Some(length) = self.io.held.len(id) {
            if length > MAX_VALUE_LEN as u64 + LINE_END {
                return self.answer(operation, Err(ValueTooLong(length as usize).into()));
            }
            let content = self.io.held.content_from(id, 0).map(|it| Reply::Text(it.into()));
            return self.answer(operation, content.map_err(FdError::Unreadable));
        }
        if let Some(content) = self.io.text(id) {
            if content.len() as u64 > MAX_VALUE_LEN as u64 + LINE_END {
                return self.answer(operation, Err(ValueTooLong(content.len()).into()));
            }
            let content = content.clone();
            return self.answer(operation, Ok(Reply::Text(content)));
        }
        let buffer = match self.io.existing(id) {
            Ok(buffer) => buffer,
            Err(error) => return self.answer(operation, Err(error)),
        };
        let length = buffer.len();
        if length > MAX_VALUE_LEN as u64 + LINE_END {
            return self.answer(operation, Err(ValueTooLong(length as usize).into()));
        }
        let read = move || {
            let content = buffer.content().map(Reply::Text);
            content.map_err(FdError::Unreadable)
        };
        if length <= SMALL {
            self.answer(operation, read());
        } else {
            self.operate(operation, move |_| JobResult::Reply(read()));
        }
    }

    /// Commits staged files.
    pub(super) fn commit_staged_files(
        &mut self,
        operation: OperationId,
        staged_files: &[StagedFileId],
    ) {
        let staged_files = self.io.staged_files(staged_files);
        if staged_files.is_empty() {
            return self.answer(operation, Ok(Reply::Truth(true)));
        }
        let registry = self.cleanup.registry.clone();
        self.operate(operation, move |control| {
            JobResult::Reply(commit::commit(&staged_files, &registry, control))
        });
    }

    /// Begins a view of directories.
    pub(super) fn begin_view(&mut self, request: BeginView) {
        let BeginView { operation, view, directories, directory } = request;
        let around = TaskDirectory::of(&directory, &self.views);
        let paths: Vec<_> = directories.iter().map(|path| around.join(path)).collect();
        let (view, registry) = (self.views.add(view, around.view), self.cleanup.registry.clone());
        self.operate(operation, move |_| {
            let begun = view.begin(&paths, &registry).map_err(FdError::from);
            let name = |path: PathBuf| path.into_os_string().into_vec().into();
            let names = |paths: Vec<PathBuf>| paths.into_iter().map(name).collect();
            JobResult::Reply(begun.map(|paths| Reply::Words(names(paths))))
        });
    }

    /// Commits a view and staged files.
    pub(super) fn commit_view(
        &mut self,
        operation: OperationId,
        view: ViewId,
        files: &[StagedFileId],
        is_inner: bool,
    ) {
        let (view, files) = (self.views.get(view), self.io.staged_files(files));
        let registry = self.cleanup.registry.clone();
        self.operate(operation, move |control| {
            JobResult::Reply(commit_view::commit(&view, &files, is_inner, &registry, control))
        });
    }

    /// Drops a view with its changes.
    pub(super) fn drop_view(&mut self, view: ViewId) {
        let Some(view) = self.views.remove(view) else { return };
        let busy = self.cleanup.registry.begin();
        // From here on, no later process of a recorded run takes over the view.
        let note = view.record().map(|path| self.cleanup.registry.note(NoteKind::Tree, path));
        // Without a worker, the view ends with its last user.
        let _ = self.work.pool.submit(move |_| {
            view.end();
            drop(note);
            drop(busy);
            JobResult::Cancelled
        });
    }

    /// Answers with the buffers that are not empty.
    pub(super) fn find_filled(&mut self, operation: OperationId, buffers: &[BufferId]) {
        let filled = self.io.filled(buffers);
        self.answer(operation, Ok(Reply::Buffers(filled)));
    }

    /// Commits the input read by an attempt.
    pub(super) fn keep_input(&mut self, input_spool: SpoolId) {
        self.input_spools.keep(input_spool, &mut self.poller);
    }

    /// Ends the attempts of an input.
    pub(super) fn drop_replay(&mut self, input_spool: SpoolId) {
        self.input_spools.drop(input_spool, &mut self.poller);
        self.admission.note_free();
    }

    /// Answers with the path of a scratch directory, created if missing.
    pub(super) fn find_scratch(&mut self, operation: OperationId, id: ScratchId) {
        let (scratch, registry) = (self.cleanup.scratch(id), self.cleanup.registry.clone());
        self.operate(operation, move |_| {
            let path = scratch.path(&registry);
            let path = path.map_err(|error| FdError::Scratch { place: scratch_place(), error });
            JobResult::Reply(path.map(|path| Reply::Text(path.into_os_string().into_vec().into())))
        });
    }

    /// Removes a scratch directory.
    pub(super) fn drop_scratch(&mut self, id: ScratchId) {
        let Some(scratch) = self.cleanup.take_scratch(id) else { return };
        let registry = self.cleanup.registry.clone();
        // Without a worker, the end of the run removes the directory.
        let _ = self.work.pool.submit(move |_| match scratch.remove(&registry) {
            Ok(()) => JobResult::Cancelled,
            Err((path, error)) => JobResult::Left(vec![not_removed(&path, &error)]),
        });
    }

    /// Answers with the last part of outputs.
    pub(super) fn tail(&mut self, operation: OperationId, sinks: &[Sink], most: usize) {
        for sink in sinks {
            if let Sink::Buffer(id) = sink
                && let Some(kept) = self.relays.take_kept(*id)
            {
                self.io.fill(*id, kept.into());
            }
        }
        let tail = self.io.tail(sinks, most).map(Reply::Text);
        self.answer(operation, tail.map_err(FdError::Unreadable));
    }

    /// Answers with true if descriptor 0 of a table is at its end.
    pub(super) fn query_input_end(&mut self, operation: OperationId, io: IoId) {
        let table = self.io.table(io);
        let known = table.and_then(|table| self.input_spools.has_ended(table));
        let is_so = || table.and_then(|table| table.get(0)).is_some_and(ended::has_ended);
        let has_ended = known.unwrap_or_else(is_so);
        self.answer(operation, Ok(Reply::Truth(has_ended)));
    }

    /// Reads what is still to come from a descriptor, all of it or the next part.
    pub(super) fn read_input(
        &mut self,
        operation: OperationId,
        io: IoId,
        number: u8,
        amount: Amount,
    ) {
        let plan =
            self.io.plan(io, &TaskDirectory::default(), None, Vec::new()).and_then(|mut plan| {
                let kept = self.input_spools.connect(&mut plan, &mut self.poller);
                Ok((plan, kept.map_err(FdError::Pipe)?))
            });
        let (plan, kept) = match plan {
            Ok(plan) => plan,
            Err(error) => return self.answer(operation, Err(error)),
        };
        let amount = match amount {
            // What is left in the pipe of a replayed input would be lost.
            Amount::Part if !plan.table.replays.is_empty() => Amount::All,
            amount => amount,
        };
        self.operate(operation, move |control| {
            let table = plan.carry_out(control);
            let text = table.and_then(|table| stream::read_input(&table, number, &amount, control));
            drop(kept);
            JobResult::Reply(text.map(Reply::Text))
        });
    }

    /// Starts feeder processes, which write recorded input and then further input to the program
    /// that replaces the shell.
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
        for table in self.input_spools.take_feeders() {
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

    /// Handles available input, or room in the pipe of an input.
    pub(super) fn feed_inputs(&mut self, token: Token) {
        if let Err(error) = self.input_spools.handle_event(token, &mut self.poller) {
            let note = format!("cannot read the input to its end: {}", plain(&error));
            self.log(0, LogEvent::Note(note));
        }
    }

    /// Updates the pipes of inputs after readers ended or tables were closed.
    pub(super) fn reconsider_inputs(&mut self) {
        self.input_spools.reconsider(&mut self.poller);
    }

    /// Starts a job that removes files of shells killed together with their supervisors.
    pub(super) fn sweep_stale_runs(&mut self) {
        if let Some(job) = self.cleanup.sweep_job() {
            let _ = self.work.pool.submit(move |_| JobResult::Left(job()));
        }
    }
}
