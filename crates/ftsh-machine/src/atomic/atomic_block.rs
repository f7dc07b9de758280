//! Atomic attempts: their beginning, and the handling of their output after a failure.

use std::sync::Arc;

use bstr::BString;

use super::Committer;
use crate::attempts::TryFrame;
use crate::branches::JoinKind;
use crate::core::{Core, Flow};
use crate::dropped::{DroppedPart, OutputHolder};
use crate::effect::{
    Access, BufferId, CommitMode, Effect, FdChange, FdSource, OperationId, Query, ScratchId, Sink,
    SpoolId, StagedFileId,
};
use crate::endings::{Retry, TaskEnding, Thrown};
use crate::eval::resolve_redirects;
use crate::event::{Refusal, Reply};
use crate::frames::{Frame, FrameKind};
use crate::invocation::{RedirectTarget, Redirects, Resolved, Targets, WrittenVariable};
use crate::outcome::Failure;
use crate::record::Level;
use crate::resources::ResourceHandle;
use crate::size::{MAX_REPORTED_LINES, MAX_REPORTED_OUTPUT};
use crate::tasks::{AfterEmptied, Task, TaskState, Tasks};
use crate::transactions::{
    AttemptView, BufferedStream, OpeningTransaction, Scratch, Transaction, TransactionKind,
};
use crate::values::{Suspend, Value};
use ftsh_syntax::ast::{Mode, Name, Redirect};

impl Committer<'_> {
    /// Resolves the targets of the output before the first attempt, so that no attempt can change
    /// the targets.
    pub(crate) fn find_targets(
        &self,
        task: &mut Task,
        redirects: &[Redirect],
    ) -> Result<(), Suspend> {
        let resolved = resolve_redirects(self.core, task, redirects)?.pending;
        let (directory, umask) = (task.directory.clone(), task.umask);
        task.enter(FrameKind::Targets(Arc::new(Targets { resolved, directory, umask })));
        Ok(())
    }

    /// Begins an attempt of an atomic `try`, or its `catch`. An attempt of `atomic in` has a view
    /// first.
    pub(crate) fn begin_atomic(&mut self, task: &mut Task, attempt: bool) -> Flow {
        match task.top_try() {
            Some(frame) if attempt && !frame.directories.is_empty() => {
                let directories = frame.directories.clone();
                self.request_view(task, directories)
            }
            _ => self.stage_output(task, attempt, None),
        }
    }

    /// Stages the output of an attempt or a `catch` from now on.
    pub(super) fn stage_output(
        &mut self,
        task: &mut Task,
        attempt: bool,
        view: Option<AttemptView>,
    ) -> Flow {
        let targets = targets_around(task);
        let resolved = targets.as_ref().map(|targets| targets.resolved.iter().cloned());
        let mut changes = Vec::new();
        let mut buffered = Vec::new();
        let kind = if attempt {
            self.attempt(task, &mut changes, &mut buffered, view)
        } else {
            Some(TransactionKind::Catch)
        };
        let Some(kind) = kind else { return Flow::broken(task, TryFrame::MISSING) };
        let (mut drafts, mut written) = (Vec::new(), Vec::new());
        for Resolved { descriptor, with_errors, target } in resolved.into_iter().flatten() {
            let source = match target {
                RedirectTarget::FdSource(source) => {
                    // A `catch` without output keeps the existing file.
                    let mode = if attempt { CommitMode::Replace } else { CommitMode::Fill };
                    let mut draft = Vec::new();
                    let source = self.as_draft(source, mode, true, &mut draft);
                    drafts.extend(draft.into_iter().map(|draft| (descriptor, draft)));
                    source
                }
                RedirectTarget::WriteVariable(name, mode) => {
                    let (source, change) = self.buffered_variable(task, &written, name, mode);
                    written.extend(change.map(|change| (descriptor, change)));
                    source
                }
                // Input is opened once, around all attempts.
                RedirectTarget::ReadVariable(_) => continue,
            };
            changes.push(FdChange { descriptor, source });
            if with_errors {
                changes.push(FdChange { descriptor: 2, source: FdSource::Descriptor(descriptor) });
            }
        }
        let place = match &targets {
            Some(targets) => (targets.directory.clone(), targets.umask),
            None => (task.directory.clone(), task.umask),
        };
        let (operation, io) = self.core.open_io_in(place, &task.io, task, changes);
        let before = task.io.clone();
        let inner = Vec::new();
        let transaction =
            Transaction { kind, before, buffered, drafts, inner, written, commit: None };
        let transaction = Box::new(transaction);
        Flow::Wait(TaskState::Beginning(OpeningTransaction { operation, io, transaction }))
    }

    /// Begins an attempt whose standard error may be read by a clause of its `try`, and is kept by
    /// a relay.
    pub(crate) fn begin_tee(&mut self, task: &Task) -> Flow {
        let relay = OperationId(self.core.next_id());
        self.core.request(Effect::Relay { operation: relay, io: task.io.id() });
        let buffer = self.core.new_handle(BufferId);
        let source = FdSource::Tee { relay, buffer: buffer.id() };
        let changes = vec![FdChange { descriptor: 2, source }];
        let (operation, io) = self.core.open_io(&task.io, task, changes);
        let kind = TransactionKind::Tee { relay, buffer, is_used: false };
        let transaction = Box::new(Transaction::bare(kind, task.io.clone()));
        Flow::Wait(TaskState::Beginning(OpeningTransaction { operation, io, transaction }))
    }

    /// Begins an attempt that is not atomic and reads the same standard input as the first one.
    pub(crate) fn begin_same_input(&mut self, task: &mut Task) -> Flow {
        let Some(replay) = self.replay(task) else { return Flow::broken(task, TryFrame::MISSING) };
        let changes = vec![FdChange { descriptor: 0, source: FdSource::Spool(replay) }];
        let (operation, io) = self.core.open_io(&task.io, task, changes);
        let transaction =
            Box::new(Transaction::bare(TransactionKind::Input(replay), task.io.clone()));
        Flow::Wait(TaskState::Beginning(OpeningTransaction { operation, io, transaction }))
    }

    /// Begins an attempt whose standard output is written when no other attempt follows.
    pub(crate) fn begin_hold(&mut self, task: &Task) -> Flow {
        let buffer = self.core.new_handle(BufferId);
        let changes = vec![FdChange { descriptor: 1, source: FdSource::Hold(buffer.id()) }];
        let (operation, io) = self.core.open_io(&task.io, task, changes);
        let transaction = Box::new(Transaction::held(buffer, task.io.clone()));
        Flow::Wait(TaskState::Beginning(OpeningTransaction { operation, io, transaction }))
    }

    /// Begins a body of which nothing is left after its success.
    pub(crate) fn begin_no_leftovers(&mut self, task: &mut Task) {
        let outer_scope = task.scope;
        task.scope = self.core.new_scope(Some(outer_scope));
        let kind = TransactionKind::NoLeftovers { scope: task.scope, outer_scope };
        let transaction = Box::new(Transaction::bare(kind, task.io.clone()));
        task.enter(FrameKind::Transaction(transaction));
    }

    /// Prepares the parts specific to an attempt: replayed input, buffered output, a scratch
    /// directory.
    fn attempt(
        &mut self,
        task: &mut Task,
        changes: &mut Vec<FdChange>,
        buffered: &mut Vec<BufferedStream>,
        view: Option<AttemptView>,
    ) -> Option<TransactionKind> {
        let replay = self.replay(task)?;
        let frame = task.top_try()?;
        changes.push(FdChange { descriptor: 0, source: FdSource::Spool(replay) });
        // If both lead to one file, standard error keeps the output of both, so that it is not lost
        // when standard output is redirected.
        for descriptor in [2, 1].into_iter().chain(3..=9) {
            let buffer = self.core.new_handle(BufferId);
            changes.push(FdChange { descriptor, source: FdSource::Hold(buffer.id()) });
            buffered.push((descriptor, buffer));
        }
        let scratch = self.core.new_handle(ScratchId);
        self.core.parts().scopes.set_scratch(frame.scope, scratch.clone());
        Some(TransactionKind::Attempt { replay, scratch, view })
    }

    /// Handles the result of opening a transaction's descriptors.
    pub(crate) fn begun(
        &mut self,
        task: &mut Task,
        beginning: OpeningTransaction,
        result: Result<Reply, Refusal>,
    ) -> Flow {
        if let Err(refusal) = result {
            self.leave_tee(&beginning.transaction.kind);
            task.leave_view(&beginning.transaction);
            return Flow::Throw(task.not_begun(refusal));
        }
        task.io = beginning.io;
        task.enter(FrameKind::Transaction(beginning.transaction));
        task.advance();
        Flow::Continue
    }

    /// Leaves a transaction without a commit. The output of a failed attempt is reported once
    /// nothing of the attempt runs.
    pub(crate) fn roll_back(&mut self, task: &mut Task, transaction: Transaction) {
        self.leave_tee(&transaction.kind);
        task.leave_view(&transaction);
        let dropped = transaction.dropped();
        let Transaction { kind, before, mut buffered, commit, .. } = transaction;
        task.io = before;
        let mut around = task.frames.iter_mut().rev().map(|frame| &mut frame.kind);
        let frame = around.find(|kind| !matches!(kind, FrameKind::Transaction(_)));
        let Some(FrameKind::Try(frame)) = frame else { return };
        for (part, held) in dropped {
            frame.dropped.entry(part).or_insert(held);
        }
        // A part may be written already.
        if matches!(kind, TransactionKind::Held) && commit.is_none() {
            frame.held = buffered.pop().map(|(_, buffer)| buffer);
        }
    }

    /// Requests the last output of a failed attempt, before its `try` continues.
    pub(crate) fn query_output(
        &mut self,
        task: &Task,
        sinks: Vec<Sink>,
        then: AfterEmptied,
    ) -> Flow {
        let most = then.failure().map_or(MAX_REPORTED_OUTPUT, |failure| {
            let parts = [&failure.errors, &failure.output].into_iter().flatten();
            MAX_REPORTED_OUTPUT.saturating_sub(parts.map(|part| part.len()).sum())
        });
        let operation = self.core.query(task, Query::Tail(sinks, most));
        Flow::Wait(TaskState::ReadingOutput(operation, then))
    }

    /// Returns the input that all attempts of the innermost `try` read.
    fn replay(&mut self, task: &mut Task) -> Option<SpoolId> {
        let frame = task.frames.iter_mut().rev().find_map(|frame| match &mut frame.kind {
            FrameKind::Try(frame) => Some(frame),
            _ => None,
        })?;
        let replay = frame.replay.get_or_insert_with(|| self.core.new_handle(SpoolId));
        Some(replay.id())
    }

    /// Returns the source for a variable that changes at the commit.
    fn buffered_variable(
        &mut self,
        task: &Task,
        before: &[(u8, WrittenVariable)],
        name: Name,
        mode: Mode,
    ) -> (FdSource, Option<WrittenVariable>) {
        let same = before.iter().rev().find(|(_, written)| written.name == name);
        if let (Mode::Append, Some((_, written))) = (mode, same) {
            return (FdSource::BufferAppend(written.buffer.id()), None);
        }
        let buffer = self.core.new_handle(BufferId);
        let variable = task.variables.get(&name).map(|variable| &variable.value);
        let source = match variable.filter(|_| mode == Mode::Append) {
            Some(Value::Buffer(of)) => FdSource::BufferCopy { buffer: buffer.id(), of: of.id() },
            value => {
                let text = value.and_then(Value::text).unwrap_or_default().into_owned();
                FdSource::BufferCreate(buffer.id(), text)
            }
        };
        (source, Some(WrittenVariable { name, buffer, waits: true }))
    }

    /// Stages a file that is written, and with `appends` also a file that is appended to.
    fn as_draft(
        &mut self,
        source: FdSource,
        mode: CommitMode,
        appends: bool,
        drafts: &mut Vec<ResourceHandle<StagedFileId>>,
    ) -> FdSource {
        let mode = match &source {
            FdSource::File { access: Access::Write, .. } => mode,
            FdSource::File { access: Access::Append, .. } if appends => CommitMode::Append,
            _ => return source,
        };
        let FdSource::File { path, .. } = source else { return source };
        let draft = self.core.new_handle(StagedFileId);
        let file = draft.id();
        drafts.push(draft);
        FdSource::StagedFile { file, path, mode }
    }

    /// Stages the files written by the current instruction of an atomic attempt. Files that are
    /// appended to are not staged, because a command could read its own output endlessly.
    pub(crate) fn draft_files(&mut self, task: &mut Task) {
        if !task.is_atomic() {
            return;
        }
        let Some(Redirects { pending, drafts, .. }) = task.redirects() else { return };
        for Resolved { target, .. } in pending {
            if let RedirectTarget::FdSource(source) = target {
                let file = std::mem::replace(source, FdSource::Null);
                *source = self.as_draft(file, CommitMode::Replace, false, drafts);
            }
        }
    }

    /// Abandons the relay of an attempt's standard error.
    pub(crate) fn leave_tee(&mut self, kind: &TransactionKind) {
        if let TransactionKind::Tee { relay, .. } = kind {
            self.core.abandon(*relay);
        }
    }

    /// Ends an atomic `try`. Without a commit, the input is available again to the next reader.
    pub(crate) fn end_replay(&mut self, replay: Option<ResourceHandle<SpoolId>>) {
        if replay.is_some() {
            drop(replay);
            self.core.parts().requests.flush_released();
        }
    }
}

impl AfterEmptied {
    /// Returns the failure of the attempt, if the continuation belongs to a failed attempt.
    fn failure_mut(&mut self) -> Option<&mut Arc<Failure>> {
        match self {
            Self::Fail(thrown) | Self::End(TaskEnding::Failed(thrown)) => Some(&mut thrown.failure),
            _ => None,
        }
    }

    /// Returns the failure of the attempt or the branch.
    pub(crate) fn failure(&self) -> Option<&Arc<Failure>> {
        match self {
            Self::Fail(thrown) | Self::End(TaskEnding::Failed(thrown)) => Some(&thrown.failure),
            _ => None,
        }
    }
}

impl Task {
    /// Returns the failure of an attempt that could not begin. Before the first attempt of a `try` a
    /// retry is pointless, but another word of a loop may fare better.
    pub(super) fn not_begun(&mut self, refusal: Refusal) -> Thrown {
        let is_first = self
            .top_try()
            .is_some_and(|frame| frame.first_failed.is_none() && !frame.code.is_limit);
        let retry = if is_first { Retry::Never } else { Retry::AsUsual };
        Thrown { retry, ..self.not_opened(refusal) }
    }

    /// Returns the scratch directory of the innermost atomic attempt.
    pub(crate) fn scratch(&self) -> Option<&Scratch> {
        let own = self.frames.iter().rev().find_map(|frame| match &frame.kind {
            FrameKind::Transaction(transaction) => match &transaction.kind {
                TransactionKind::Attempt { scratch, .. } => Some(scratch),
                TransactionKind::Tee { .. }
                | TransactionKind::Input(_)
                | TransactionKind::Held
                | TransactionKind::NoLeftovers { .. }
                | TransactionKind::Catch
                | TransactionKind::Redirected { .. } => None,
            },
            _ => None,
        });
        own.or(self.inherited.scratch.as_ref())
    }

    /// Returns true inside an atomic attempt.
    pub(crate) fn is_atomic(&self) -> bool {
        self.scratch().is_some()
    }
}

/// Adds the last output of a failed attempt to its failure, a part at a time. For an atomic attempt,
/// the output of a failed inner attempt comes after it. Otherwise an inner attempt may have added
/// that of the failed command.
pub(crate) fn output_received(
    core: &mut Core,
    task: &mut Task,
    mut then: AfterEmptied,
    result: Result<Reply, Refusal>,
) -> Flow {
    // Without a `try`, a branch of a hedged `forany` has failed.
    let (part, earlier) = match task.top_try() {
        Some(frame) => (frame.dropped.pop_first(), frame.failure.clone()),
        None => (None, None),
    };
    let part = part.map_or(DroppedPart::Errors, |(part, _)| part);
    if let AfterEmptied::Leave(TaskEnding::Exited(code))
    | AfterEmptied::End(TaskEnding::Exited(code)) = then
        && let Ok(Reply::Text(text)) = &result
        && part == DroppedPart::Errors
        && !text.is_empty()
    {
        let mut failure = Arc::unwrap_or_clone(task.exited("an attempt", code).failure);
        failure.errors = Some(Arc::new(text.clone()));
        let lines = failure.last_lines(MAX_REPORTED_LINES).join("\n");
        let note = format!("the attempt that exited with {code} had printed: {lines}");
        let level = Level::of_failure(core.tasks().exits_run(task));
        core.log_note(task, failure.line, level, note);
    }
    if let (Some(failure), Ok(Reply::Text(text))) = (then.failure_mut(), result)
        && (failure.printed.is_some() || !text.is_empty())
    {
        let failure = Arc::make_mut(failure);
        let place = match part {
            DroppedPart::Errors => &mut failure.errors,
            DroppedPart::Output => &mut failure.output,
            DroppedPart::Forwarded => {
                failure.printed.get_or_insert_with(|| Arc::new(text));
                return Flow::Emptied(then);
            }
        };
        // The kept output of an inner attempt is part of the text.
        failure.printed = None;
        if !text.is_empty() {
            let inside = place.take();
            let inside = inside.as_ref().map_or(&b""[..], |output| &output[..]);
            *place = Some(Arc::new(BString::from([&text[..], inside].concat())));
        }
        let is_news = earlier.is_none_or(|earlier| earlier.errors != failure.errors);
        if part == DroppedPart::Errors && failure.errors.is_some() && is_news {
            let lines = failure.last_lines(MAX_REPORTED_LINES).join("\n");
            let note = format!("the failed attempt had printed: {lines}");
            core.log_note(task, failure.line, Level::FAILURES, note);
        }
    }
    match then {
        AfterEmptied::End(ending) => Flow::Exited(ending),
        then => Flow::Emptied(then),
    }
}

impl Tasks {
    /// Collects the standard error held by attempts and hedged branches inside structures.
    pub(crate) fn held_errors(&self, inside: &[Frame], held: &mut Vec<OutputHolder>) {
        for frame in inside {
            match &frame.kind {
                FrameKind::Transaction(transaction) => {
                    held.extend(
                        transaction.dropped().remove(&DroppedPart::Errors).unwrap_or_default(),
                    );
                }
                FrameKind::Try(frame) => {
                    held.extend(
                        frame.dropped.get(&DroppedPart::Errors).into_iter().flatten().cloned(),
                    );
                }
                FrameKind::Join(join) => {
                    if let JoinKind::Hedge(hedge) = &join.kind {
                        let errors = hedge.outputs.iter().flat_map(|it| it.errors(None));
                        held.extend(errors.cloned().map(OutputHolder::Buffer));
                    }
                    for child in join.running.iter().filter_map(|child| self.get(*child)) {
                        self.held_errors(&child.frames, held);
                    }
                }
                _ => {}
            }
        }
    }

    /// Returns the standard error of a failed branch of a hedged `forany`.
    pub(crate) fn hedge_errors(&self, task: &Task) -> Option<Vec<Sink>> {
        let Some(FrameKind::Join(join)) = self.parent(task)?.frames.last().map(|it| &it.kind)
        else {
            return None;
        };
        let JoinKind::Hedge(hedge) = &join.kind else { return None };
        let buffer = hedge.outputs.as_ref()?.errors(Some(task.id)).next()?;
        Some(vec![Sink::Buffer(buffer.id())])
    }
}

/// Returns the targets of output for the innermost structure, a `try` or its `catch`.
fn targets_around(task: &Task) -> Option<Arc<Targets>> {
    let mut around = task.frames.iter().rev().skip(1).map(|frame| &frame.kind);
    match around.find(|kind| !matches!(kind, FrameKind::Guard(_)))? {
        FrameKind::Targets(targets) => Some(Arc::clone(targets)),
        _ => None,
    }
}
