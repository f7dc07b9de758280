//! Commit of a transaction: files, then variables, then streams.
//!
//! An error before the first file is in place is an ordinary failure. After that, no attempt is
//! repeated, because part of the output is already in place.

use std::collections::VecDeque;

use super::{Committer, view::empty_view};
use crate::core::Flow;
use crate::effect::{BufferId, Effect, OperationId, ProcessId, Query, StagedFileId, TaskId};
use crate::endings::{Continuation, Retry, Thrown};
use crate::event::{Refusal, Reply, SIGPIPE};
use crate::frames::{Frame, FrameKind};
use crate::grouped_output::{GroupedOutput, WriteError};
use crate::outcome::FailureKind;
use crate::record::Level;
use crate::resources::ResourceHandle;
use crate::tasks::{AfterEmptied, Task, TaskState, Tasks};
use crate::transactions::{BufferedStream, Commit, Committing, Transaction, TransactionKind};
use ftsh_syntax::slug::Slug;

/// Violated invariant: the innermost structure is a transaction.
const NO_TRANSACTION: &str = "the innermost structure is not a transaction";

impl Committer<'_> {
    /// Ends an atomic attempt, or a redirection to files inside such an attempt.
    pub(crate) fn end_transaction(&mut self, task: &mut Task) -> Flow {
        match task.frames.pop() {
            Some(Frame { kind: FrameKind::Transaction(transaction), .. }) => {
                let then = Continuation::To(task.at + 1);
                self.begin_commit(task, transaction, then)
            }
            _ => Flow::broken(task, NO_TRANSACTION),
        }
    }

    /// Begins the commit of a successful transaction, which was taken off the frames.
    pub(crate) fn begin_commit(
        &mut self,
        task: &mut Task,
        transaction: Box<Transaction>,
        then: Continuation,
    ) -> Flow {
        if let TransactionKind::NoLeftovers { scope, outer_scope } = transaction.kind {
            task.scope = outer_scope;
            task.enter(FrameKind::Transaction(transaction));
            return self.core.end_leftovers(task, scope, AfterEmptied::Commit(then));
        }
        let Some(view) = transaction.view().cloned() else {
            return self.commit_transaction(task, transaction, then);
        };
        task.enter(FrameKind::Transaction(transaction));
        empty_view(task, &view, then)
    }

    /// Commits a transaction in whose view nothing runs any more.
    pub(crate) fn view_is_empty(&mut self, task: &mut Task, then: Continuation) -> Flow {
        match task.frames.pop() {
            Some(Frame { kind: FrameKind::Transaction(transaction), .. }) => {
                self.commit_transaction(task, transaction, then)
            }
            _ => Flow::broken(task, NO_TRANSACTION),
        }
    }

    /// Writes the held output of a failed attempt, after which no other follows.
    pub(crate) fn write_held(
        &mut self,
        task: &mut Task,
        buffer: ResourceHandle<BufferId>,
        then: Continuation,
    ) -> Flow {
        let transaction = Box::new(Transaction::held(buffer, task.io.clone()));
        self.commit_transaction(task, transaction, then)
    }

    /// Writes held output as part of a cleanup, without a query whose answer the end of the cleanup
    /// could overtake.
    pub(crate) fn write_canceled(&mut self, task: &mut Task, mut held: Box<Transaction>) -> Flow {
        let streams = std::mem::take(&mut held.buffered).into();
        held.commit = Some(Commit { then: Continuation::Canceled, streams });
        task.enter(FrameKind::Transaction(held));
        self.next_stream(task)
    }

    fn commit_transaction(
        &mut self,
        task: &mut Task,
        mut transaction: Box<Transaction>,
        then: Continuation,
    ) -> Flow {
        transaction.commit = Some(Commit { then, streams: VecDeque::new() });
        if let TransactionKind::Tee { relay, .. } = transaction.kind {
            task.enter(FrameKind::Transaction(transaction));
            self.core.parts().requests.await_operation(relay, task.id);
            self.core.request(Effect::FinishRelay(relay));
            return Flow::Wait(TaskState::Committing(Committing::Relay(relay)));
        }
        let mut drafts = std::mem::take(&mut transaction.inner);
        drafts.extend(std::mem::take(&mut transaction.drafts).into_iter().map(|(_, draft)| draft));
        transaction.inner = drafts;
        let buffered = transaction.buffered.iter().map(|(_, buffer)| buffer.id());
        let written = transaction.written.iter().map(|(_, written)| written.buffer.id());
        let buffers: Vec<_> = buffered.chain(written).collect();
        task.enter(FrameKind::Transaction(transaction));
        if buffers.is_empty() {
            return self.commit_files(task);
        }
        // The query comes first, so that nothing can fail between the commit of the files and that
        // of the variables.
        let operation = self.core.query(task, Query::Filled(buffers));
        Flow::Wait(TaskState::Committing(Committing::Filled(operation)))
    }

    /// Commits the files. Those of an inner attempt wait for the enclosing one.
    fn commit_files(&mut self, task: &mut Task) -> Flow {
        let Some((transaction, outer)) = self.core.parts().tasks.with_enclosing(task) else {
            return Flow::broken(task, NO_TRANSACTION);
        };
        let files: Vec<StagedFileId> = transaction.inner.iter().map(ResourceHandle::id).collect();
        let is_inner = outer.is_some();
        let operation = match transaction.view().map(|view| view.handle.id()) {
            Some(view) => {
                let operation = self.core.new_operation(task);
                self.core.request(Effect::CommitView { operation, view, files, is_inner });
                operation
            }
            None if is_inner || files.is_empty() => return self.files_in_place(task),
            None => self.request_commit(task, files),
        };
        Flow::Wait(TaskState::Committing(Committing::Files(operation)))
    }

    /// Continues a commit with the answer to its request.
    pub(crate) fn continue_commit(
        &mut self,
        task: &mut Task,
        waited: Committing,
        result: Result<Reply, Refusal>,
    ) -> Flow {
        match (waited, result) {
            (Committing::Files(_), result) => match commit_result(result) {
                Ok(()) => self.files_in_place(task),
                Err(FileCommitError { why, errno, retry, kind }) => {
                    let thrown = task.thrown(kind, 1, why, "");
                    let thrown = match kind {
                        FailureKind::Conflict => thrown,
                        _ => thrown.named(Slug::Commit),
                    };
                    self.commit_failed(task, Thrown { retry, ..thrown.caused_by(errno) })
                }
            },
            (Committing::Filled(_), Ok(Reply::Buffers(filled))) => {
                let Some(transaction) = task.top_transaction() else {
                    return Flow::broken(task, NO_TRANSACTION);
                };
                // A `catch` without output keeps the previous content.
                if let TransactionKind::Catch = transaction.kind {
                    let written = &mut transaction.written;
                    written.retain(|(_, written)| filled.contains(&written.buffer.id()));
                }
                let is_filled = |(_, buffer): &BufferedStream| filled.contains(&buffer.id());
                let streams: VecDeque<BufferedStream> = transaction
                    .buffered
                    .iter()
                    .filter(|buffered| is_filled(buffered))
                    .cloned()
                    .collect();
                if let Some(commit) = &mut transaction.commit {
                    commit.streams = streams;
                }
                self.commit_files(task)
            }
            (Committing::Filled(_), Err(refusal)) => {
                let thrown = task.refused(FailureKind::Builtin, refusal);
                self.commit_failed(task, thrown.named(Slug::Output))
            }
            (Committing::Relay(_), Ok(Reply::Truth(true))) => self.committed(task),
            (Committing::Relay(_), result) => {
                let refused = match result {
                    Ok(_) => WriteError::BrokenPipe(SIGPIPE),
                    Err(refusal) => WriteError::Error(refusal),
                };
                self.stream_failed(task, 2, refused, Retry::AsUsual)
            }
            (Committing::Filled(_) | Committing::Writing(..), _) => {
                Flow::broken(task, "a commit waits for something else")
            }
        }
    }

    /// Continues after the commit of the files: consumes the input, and commits variables and
    /// streams.
    fn files_in_place(&mut self, task: &mut Task) -> Flow {
        // What follows happens outside of the view, which has ended.
        if let Some(view) = task.top_transaction().and_then(|it| it.view().cloned()) {
            task.directory.view = view.outer;
        }
        let Some((transaction, outer)) = self.core.parts().tasks.with_enclosing(task) else {
            return Flow::broken(task, NO_TRANSACTION);
        };
        // Not before: the commit of a view may fail, and then the enclosing attempt must not commit
        // the files.
        match outer {
            Some(outer) => outer.inner.append(&mut transaction.inner),
            None => transaction.inner.clear(),
        }
        let written = std::mem::take(&mut transaction.written);
        if let TransactionKind::Attempt { replay, .. } | TransactionKind::Input(replay) =
            transaction.kind
        {
            self.core.request(Effect::KeepInput(replay));
        }
        for (_, written) in written {
            written.commit(&mut task.variables);
        }
        self.next_stream(task)
    }

    /// Writes the next stream.
    fn next_stream(&mut self, task: &mut Task) -> Flow {
        let Some(transaction) = task.top_transaction() else {
            return Flow::broken(task, NO_TRANSACTION);
        };
        let io = transaction.before.id();
        let streams = transaction.commit.as_mut().map(|commit| &mut commit.streams);
        let Some(buffered) = streams.and_then(VecDeque::pop_front) else {
            return self.committed(task);
        };
        let process = GroupedOutput::new(self.core).copy(task, io, buffered.1.id(), buffered.0);
        Flow::Wait(TaskState::Committing(Committing::Writing(process, buffered)))
    }

    /// Handles output to a descriptor that could not be written.
    fn stream_failed(
        &mut self,
        task: &mut Task,
        descriptor: u8,
        refused: WriteError,
        retry: Retry,
    ) -> Flow {
        let Some(transaction) = task.top_transaction() else {
            return Flow::broken(task, NO_TRANSACTION);
        };
        let broken_pipe = refused.is_broken_pipe() && transaction.before.feeds(descriptor);
        let thrown = refused.thrown(task, "the output of an attempt cannot be written");
        if broken_pipe && self.core.tasks().continues_without_reader(task) {
            self.core.log_failure(task, &thrown.failure, Level::COMMANDS, false);
            return self.next_stream(task);
        }
        let retry = if broken_pipe { Retry::BrokenPipe } else { retry };
        self.commit_failed(task, Thrown { retry, ..thrown })
    }

    /// Fails because of a commit. A failure that came before takes precedence.
    fn commit_failed(&mut self, task: &mut Task, thrown: Thrown) -> Flow {
        let commit = task.top_transaction().and_then(|it| it.commit.as_ref());
        if !commit.is_some_and(|commit| commit.then.is_failing()) {
            return Flow::Throw(thrown);
        }
        self.core.log_failure(task, &thrown.failure, Level::FAILURES, false);
        self.committed(task)
    }

    /// Ends a commit.
    fn committed(&mut self, task: &mut Task) -> Flow {
        let transaction = match task.frames.pop() {
            Some(Frame { height, kind: FrameKind::Transaction(transaction) }) => {
                task.stack.truncate(height);
                transaction
            }
            _ => return Flow::broken(task, NO_TRANSACTION),
        };
        if let TransactionKind::Tee { .. } = transaction.kind {
            task.note_output(true);
            self.core.forget_output(task);
        }
        task.leave_view(&transaction);
        task.io = transaction.before;
        let Some(Commit { then, .. }) = transaction.commit else {
            return Flow::broken(task, NO_TRANSACTION);
        };
        Flow::Proceed(then)
    }

    /// Handles the loss of the process that wrote a stream. An attempt whose view is committed is not
    /// made again, so its stream is written again from the beginning, like held output.
    pub(crate) fn stream_lost(&mut self, task: &mut Task) -> Flow {
        let is_over =
            |it: &mut Transaction| it.view().is_some() || matches!(it.kind, TransactionKind::Held);
        if !task.top_transaction().is_some_and(is_over) {
            return self.stream_written(task, Err(WriteError::Lost));
        }
        let state = std::mem::replace(&mut task.state, TaskState::Ready);
        if let TaskState::Committing(Committing::Writing(_, stream)) = state
            && let Some(commit) = task.top_transaction().and_then(|it| it.commit.as_mut())
        {
            commit.streams.push_front(stream);
        }
        self.next_stream(task)
    }

    /// Continues after a stream was written, or failed to be written.
    pub(crate) fn stream_written(
        &mut self,
        task: &mut Task,
        result: Result<(), WriteError>,
    ) -> Flow {
        let state = std::mem::replace(&mut task.state, TaskState::Ready);
        let TaskState::Committing(Committing::Writing(_, (descriptor, _))) = state else {
            return Flow::broken(task, "nothing is being let out");
        };
        match result {
            Ok(()) => self.next_stream(task),
            Err(refused) => self.stream_failed(task, descriptor, refused, Retry::Never),
        }
    }

    /// Requests the commit of staged files.
    pub(crate) fn request_commit(&mut self, task: &Task, files: Vec<StagedFileId>) -> OperationId {
        let operation = self.core.new_operation(task);
        self.core.request(Effect::Commit { operation, files });
        operation
    }
}

impl Tasks {
    /// Returns the transaction that is a task's current structure, and the innermost atomic attempt
    /// around it, also among the parents of the task. A redirection commits its files by itself.
    fn with_enclosing<'t>(
        &'t mut self,
        task: &'t mut Task,
    ) -> Option<(&'t mut Transaction, Option<&'t mut Transaction>)> {
        let (top, around) = task.frames.split_last_mut()?;
        let FrameKind::Transaction(transaction) = &mut top.kind else { return None };
        if let TransactionKind::Redirected { .. } = transaction.kind {
            return Some((transaction, None));
        }
        let parent = task.parent.map(|(parent, _)| parent);
        let outer = own_attempt(around).or_else(|| self.attempt_in(parent?));
        Some((transaction, outer))
    }

    /// Returns the innermost atomic attempt of a task or of its parents.
    fn attempt_in(&mut self, mut task: TaskId) -> Option<&mut Transaction> {
        while own_attempt(&mut self.get_mut(task)?.frames).is_none() {
            task = self.get(task)?.parent?.0;
        }
        own_attempt(&mut self.get_mut(task)?.frames)
    }

    /// Returns true if a process writes a stream of a task's commit.
    pub(crate) fn commits(&self, task: TaskId, process: ProcessId) -> bool {
        let state = self.get(task).map(|task| &task.state);
        matches!(state, Some(TaskState::Committing(Committing::Writing(it, _))) if *it == process)
    }
}

impl Task {
    /// Returns the innermost structure if it is a transaction.
    pub(crate) fn top_transaction(&mut self) -> Option<&mut Transaction> {
        match self.frames.last_mut().map(|frame| &mut frame.kind) {
            Some(FrameKind::Transaction(transaction)) => Some(transaction),
            _ => None,
        }
    }

    /// Returns true if the structure at this index is a transaction being committed, whose attempt
    /// is not repeated.
    pub(crate) fn is_committing(&self, at: usize) -> bool {
        self.frames.get(at).is_some_and(|frame| match &frame.kind {
            FrameKind::Transaction(transaction) => {
                transaction.commit.is_some()
                    && !matches!(transaction.kind, TransactionKind::Tee { .. })
            }
            _ => false,
        })
    }
}

/// Error of a commit of files.
pub(crate) struct FileCommitError {
    /// Message for people.
    pub why: String,
    /// Name of the system's error, if known.
    pub errno: Option<String>,
    /// Permission for another attempt, given if no file has taken its place.
    pub retry: Retry,
    /// Kind of the failure.
    pub kind: FailureKind,
}

/// Converts the result of a commit of files.
pub(crate) fn commit_result(result: Result<Reply, Refusal>) -> Result<(), FileCommitError> {
    let mut kind = FailureKind::Redirect;
    let (Refusal { message: why, errno }, retry) = match result {
        Ok(Reply::Conflict(why)) => {
            kind = FailureKind::Conflict;
            (Refusal::new(why), Retry::AsUsual)
        }
        Ok(Reply::Incomplete(refusal)) => (refusal, Retry::Never),
        Ok(_) => return Ok(()),
        Err(refusal) => (refusal, Retry::AsUsual),
    };
    Err(FileCommitError { why, errno, retry, kind })
}

/// Returns the innermost atomic attempt among structures of a task.
fn own_attempt(frames: &mut [Frame]) -> Option<&mut Transaction> {
    frames.iter_mut().rev().find_map(|frame| match &mut frame.kind {
        FrameKind::Transaction(it) if matches!(it.kind, TransactionKind::Attempt { .. }) => {
            Some(&mut **it)
        }
        _ => None,
    })
}
