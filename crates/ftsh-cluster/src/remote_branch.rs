//! State of one remote branch.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bstr::{BString, ByteSlice};

use super::backlog::Backlog;
use super::carried::Carried;
use super::connection::{Connection, ConnectionPipe};
use super::engines::{self, Engine, FailedSubmission, Notice, StartRefusal};
use super::files::{FileNames, FileOrder, Transfer};
use ftsh_machine::Time;
use ftsh_machine::effect::{
    Action, Directory, Dispatch, Effect, FdChange, IoId, OperationId, ProcessId, Run, ScopeId,
    TaskId,
};
use ftsh_machine::event::Returned;
use ftsh_machine::packed::PackedBranch;
use ftsh_machine::time::Deadline;
use ftsh_process::{CLIENTS, Digests, NotedJob, ProcessDriver};
use ftsh_remote::{Head, HeadOutput};
use ftsh_syntax::engine::EngineId;

/// Time until a needless command of an engine is killed.
pub(crate) const END_TIMEOUT: Duration = Duration::from_secs(5);
/// First reserved id. The machine counts from 1, and the journal counts down from the greatest
/// number. The process driver recognizes the commands of engines by reserved scope ids.
const RESERVED: u64 = CLIENTS;
/// Bits of an id that mark reserved ids.
const RESERVED_MASK: u64 = 0xff << 56;

/// Ids of the parts of one branch in the process driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReservedIds(u64);

impl ReservedIds {
    /// Returns the ids of the branch with this number.
    pub(crate) fn new(number: u64) -> Self {
        Self(number)
    }

    /// Returns the number of the branch.
    pub(crate) fn number(self) -> u64 {
        self.0
    }

    /// Returns the name of the job, in a run with this mark: at most 50 characters, which are
    /// letters, digits and `-`.
    pub(crate) fn job(self, mark: &str) -> String {
        // The other parts of the mark are no longer unique on other machines.
        let random = mark.rsplit('-').next().unwrap_or(mark);
        format!("ftsh-{random}-{}", self.0)
    }

    /// Returns the first key of the pipes.
    pub(crate) fn first_key(self) -> u64 {
        self.0 * ConnectionPipe::KEYS
    }

    /// Returns the effect that runs a command here.
    pub(crate) fn run(
        self,
        (task, line): (TaskId, u32),
        process: ProcessId,
        action: Action,
        io: IoId,
        redirects: Vec<FdChange>,
    ) -> Effect {
        Effect::Run(Box::new(Run {
            process,
            task,
            scope: self.scope(),
            action,
            directory: Directory::default(),
            umask: None,
            io,
            is_last: io == self.engine_io(),
            redirects,
            feeds: 0,
            deadline: Deadline::NONE,
            grace: None,
            line,
        }))
    }

    /// Returns the id of the engine's command.
    pub(crate) fn engine(self) -> ProcessId {
        ProcessId(RESERVED | self.0 << 1)
    }

    /// Returns the id of the command that prints.
    pub(crate) fn printing(self) -> ProcessId {
        ProcessId(RESERVED | self.0 << 1 | 1)
    }

    /// Returns the descriptors of the engine's command.
    pub(crate) fn engine_io(self) -> IoId {
        IoId(RESERVED | self.0 << 1)
    }

    /// Returns the descriptors of the command that prints.
    pub(crate) fn printing_io(self) -> IoId {
        IoId(RESERVED | self.0 << 1 | 1)
    }

    /// Returns the operation that opens the descriptors for printing.
    pub(crate) fn opening(self) -> OperationId {
        OperationId(RESERVED | self.0)
    }

    /// Returns the scope of both commands.
    pub(crate) fn scope(self) -> ScopeId {
        ScopeId(RESERVED | self.0)
    }

    /// Returns the number of the branch that a command belongs to, and true for the engine's
    /// command.
    pub(crate) fn of_process(process: ProcessId) -> Option<(u64, bool)> {
        (process.0 & RESERVED_MASK == RESERVED)
            .then_some(((process.0 & !RESERVED_MASK) >> 1, process.0 & 1 == 0))
    }

    /// Returns the number of the branch that an operation belongs to.
    pub(crate) fn of_operation(operation: OperationId) -> Option<(u64, bool)> {
        (operation.0 & RESERVED_MASK == RESERVED).then_some((operation.0 & !RESERVED_MASK, false))
    }

    /// Returns the number of the branch that a scope belongs to.
    pub(crate) fn of_scope(scope: ScopeId) -> Option<(u64, bool)> {
        (scope.0 & RESERVED_MASK == RESERVED).then_some((scope.0 & !RESERVED_MASK, true))
    }
}

/// Event that the machine waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AwaitedEvent {
    /// Result of the branch.
    End,
    /// Only the end of the branch, as the scope is being emptied.
    Nothing,
    /// None: the result was delivered.
    Delivered,
}

/// Part of a dispatch that is needed until the branch has returned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dispatched {
    /// The machine's id of the branch.
    pub process: ProcessId,
    pub task: TaskId,
    pub scope: ScopeId,
    pub line: u32,
    pub engine: EngineId,
    pub implementation: &'static dyn Engine,
    /// True if the list of the engine's queue shows the job.
    pub is_listed: bool,
    /// Time at which the first avoided node may be used again.
    pub avoid_until: Time,
}

impl Dispatched {
    /// Returns the needed part of a dispatch.
    pub(crate) fn of(dispatch: &Dispatch, implementation: &'static dyn Engine) -> Self {
        let Dispatch { process, task, scope, line, avoid_until, .. } = *dispatch;
        let (engine, options) = (dispatch.on.engine, dispatch.on.options.as_ref());
        let options = options.map(|it| it.as_bstr()).unwrap_or_default();
        let is_listed = implementation.queue().is_some_and(|queue| queue.shows(options));
        Self { process, task, scope, line, engine, implementation, is_listed, avoid_until }
    }
}

/// Host of a branch, if the driver chooses hosts.
#[derive(Debug, Default)]
pub(crate) struct HostPlace {
    /// Host of the branch, until the place is free again.
    pub host: Option<String>,
    /// True if the list has other hosts.
    pub others: bool,
    /// True once the branch has begun or cannot begin.
    pub start_ended: bool,
}

/// A remote branch.
#[derive(Debug)]
pub(crate) struct RemoteBranch {
    pub ids: ReservedIds,
    pub dispatched: Dispatched,
    pub place: HostPlace,
    pub head: Head,
    pub connection: Connection,
    /// Name of the job.
    pub job: String,
    /// State of the job, if a carrier has the job.
    pub carried: Option<Carried>,
    /// Node of the job in the list of the queue.
    pub sent_to: Option<String>,
    /// True once the engine's command has ended.
    pub engine_ended: bool,
    /// Output that is not yet printed.
    pub unprinted: Backlog,
    /// Reason why output was lost.
    pub output_error: Option<String>,
    /// True while output is being printed.
    pub is_printing: bool,
    /// Event that the machine waits for.
    pub awaited: AwaitedEvent,
    /// Result, before delivery.
    pub returned: Option<Returned>,
    /// Reason why the branch did not begin.
    pub reason: Option<StartRefusal>,
    /// Time at which the needless command of the engine is killed.
    pub kill_at: Option<Time>,
    /// Files on their way.
    pub transfer: Option<Transfer>,
}

impl RemoteBranch {
    /// Creates a branch that is being submitted.
    pub(crate) fn new(
        ids: ReservedIds,
        dispatched: Dispatched,
        place: HostPlace,
        head: Head,
        connection: Connection,
        job: String,
    ) -> Self {
        Self {
            ids,
            dispatched,
            place,
            head,
            connection,
            job,
            carried: None,
            sent_to: None,
            engine_ended: false,
            unprinted: Backlog::default(),
            output_error: None,
            is_printing: false,
            awaited: AwaitedEvent::End,
            returned: None,
            reason: None,
            kill_at: None,
            transfer: None,
        }
    }

    /// Returns the effect that runs a command here for the branch.
    pub(crate) fn run(
        &self,
        process: ProcessId,
        action: Action,
        io: IoId,
        redirects: Vec<FdChange>,
    ) -> Effect {
        self.ids.run((self.dispatched.task, self.dispatched.line), process, action, io, redirects)
    }

    /// Returns the number of the branch.
    pub(crate) fn number(&self) -> u64 {
        self.ids.number()
    }

    /// True if the branch has returned without its end, so its job is to be canceled.
    pub(crate) fn is_needless(&self) -> bool {
        self.returned.as_ref().is_some_and(|it| !matches!(it, Returned::Ended { .. }))
    }

    /// Returns the time of the next timeout.
    pub(crate) fn next_due(&self) -> Time {
        let silent_at = self.carried.as_ref().and_then(|it| it.silent_at).unwrap_or(Time::NEVER);
        self.head.next_timeout().min(self.kill_at.unwrap_or(Time::NEVER)).min(silent_at)
    }

    /// Handles bytes from a pipe.
    pub(crate) fn on_bytes(&mut self, pipe: ConnectionPipe, now: Time, bytes: &[u8]) {
        match pipe {
            ConnectionPipe::Input | ConnectionPipe::Files => {}
            ConnectionPipe::Output => self.head.on_stdout(now, bytes),
            ConnectionPipe::Errors => self.head.on_stderr(now, bytes),
            ConnectionPipe::Notices => {
                let notices = self.carried.as_mut().map(|carried| carried.read(bytes));
                for notice in notices.into_iter().flatten() {
                    self.on_notice(notice, now);
                }
            }
        }
    }

    fn on_notice(&mut self, notice: Notice, now: Time) {
        match notice {
            Notice::Node(_) => {
                let sent = self.carried.as_ref().map_or(0, |it| it.sent_along);
                self.head.expect_hello(now, sent);
            }
            Notice::Refused { blame, node, why } if !self.head.has_begun() => {
                self.reason = Some(StartRefusal { blame, node, why: why.clone() });
                self.head.refuse(&why, blame);
            }
            Notice::Queued | Notice::Refused { .. } => {}
        }
    }

    /// Takes the job of a carrier, to cancel the job or to forget that it has ended.
    pub(crate) fn take_job(&mut self) -> Option<NotedJob> {
        self.carried.as_mut()?.job.take()
    }

    /// Returns a note for the log if nothing has been heard of the job for long.
    pub(crate) fn take_silence(&mut self, now: Time) -> Option<String> {
        let is_silent = self.carried.as_mut().is_some_and(|it| it.take_silence(now));
        let is_waiting = is_silent && self.head.node().is_none() && !self.head.is_over();
        let program = self.dispatched.implementation.program(self.dispatched.engine);
        is_waiting.then(|| {
            format!("waiting for a node: `{program}` says nothing of its job {}", self.job)
        })
    }

    /// Starts a transfer that the head requests.
    pub(crate) fn start_transfer(
        &mut self,
        driver: &mut ProcessDriver,
        digests: &Arc<Digests>,
        request: HeadOutput,
    ) -> io::Result<()> {
        let PackedBranch { directory, files: packed, .. } = &self.head.branch().packed;
        let (directory, digests) = (directory.to_path_lossy().into_owned(), digests.clone());
        let files = |names: &[BString]| FileNames { directory, names: names.to_vec(), digests };
        let key = self.ids.first_key();
        let transfer = match request {
            HeadOutput::Offer(offer) => {
                let (files, input) = (files(&packed.takes), self.connection.input()?);
                Some(Transfer::takes(driver, key, files, input, offer)?)
            }
            HeadOutput::Receive(first) => {
                let output = self.connection.take_output(driver)?;
                Some(Transfer::gives(driver, key, files(&packed.gives), output, first)?)
            }
            _ => None,
        };
        self.close_transfer(driver);
        self.transfer = transfer;
        Ok(())
    }

    /// Gives an order to the thread that transfers files.
    pub(crate) fn order(&self, order: FileOrder) {
        if let Some(transfer) = &self.transfer {
            transfer.order(order);
        }
    }

    /// Ends a transfer.
    pub(crate) fn close_transfer(&mut self, driver: &mut ProcessDriver) {
        if let Some(transfer) = self.transfer.take() {
            transfer.close(driver);
        }
    }

    /// Handles the end of the engine's command.
    pub(crate) fn closed(&mut self, code: Option<i32>) {
        let messages = self.head.preamble();
        let has_other_hosts = self.place.others;
        let failure = FailedSubmission { messages: &messages, code, has_other_hosts };
        let Dispatched { engine, implementation, .. } = self.dispatched;
        let reason = engines::reason(engine, implementation, &failure);
        self.head.closed("", reason.blame);
        self.reason = Some(reason);
    }

    /// Returns the name of the node in the script: the host's name if the script lists hosts, else
    /// the carrier's.
    pub(crate) fn node(&self, name: String) -> String {
        self.script_name().unwrap_or(name)
    }

    fn script_name(&self) -> Option<String> {
        let carried = self.carried.as_ref().and_then(|it| it.node.clone());
        self.place.host.clone().or(carried)
    }

    /// Returns the result with the name of the node in the script.
    pub(crate) fn with_script_name(&self, returned: Returned) -> Returned {
        let name = |node: Option<String>| self.script_name().or(node);
        match returned {
            Returned::Ended { node, elapsed, ended } => {
                Returned::Ended { node: self.node(node), elapsed, ended }
            }
            Returned::Lost { node, why } => Returned::Lost { node: name(node), why },
            Returned::Files { node, why } => Returned::Files { node: name(node), why },
            Returned::NotBegun { node: None, why, blame } => {
                let (named, why) = match &self.reason {
                    Some(reason) => (reason.node.clone(), reason.why.clone()),
                    None => (None, why),
                };
                let node = named.or_else(|| self.sent_to.clone());
                Returned::NotBegun { node: name(node), why, blame }
            }
            Returned::NotBegun { node, why, blame } => {
                Returned::NotBegun { node: name(node), why, blame }
            }
        }
    }
}
