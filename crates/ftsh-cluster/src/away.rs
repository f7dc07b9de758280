//! One branch that is away, and what belongs to it here.

use bstr::ByteSlice;

use super::backlog::Backlog;
use super::connection::{Connection, Pipe};
use super::engines::{self, Engine, Failure, Reason};
use ftsh_machine::Time;
use ftsh_machine::effect::{
    Action, Dispatch, Effect, FdChange, IoId, OperationId, ProcessId, Run, ScopeId, TaskId,
};
use ftsh_machine::event::Returned;
use ftsh_process::CLIENTS;
use ftsh_remote::Head;
use ftsh_syntax::engine::EngineId;

/// Names that nobody else gives: the machine counts from 1, the journal down from the greatest number. Where
/// they are those of scopes, the process driver knows engines' commands by them.
const OWN: u64 = CLIENTS;
/// By what of a name that is known.
const WHOSE: u64 = 0xff << 56;

/// What belongs to one branch is called, to the process driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Names(u64);

impl Names {
    /// Those of the branch with this number.
    pub fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    pub fn number(self) -> u64 {
        self.0
    }

    /// What the engine calls it, in a run with this mark.
    pub fn job(self, mark: &str) -> String {
        format!("ftsh-{mark}-{}", self.0)
    }

    /// The first of the keys of its pipes.
    pub fn first_key(self) -> u64 {
        self.0 * Pipe::KEYS
    }

    /// What has a command run here.
    pub fn run(
        self,
        errand: &Errand,
        process: ProcessId,
        action: Action,
        io: IoId,
        redirects: Vec<FdChange>,
    ) -> Effect {
        Effect::Run(Box::new(Run {
            process,
            task: errand.task,
            scope: self.scope(),
            action,
            directory: None,
            umask: None,
            io,
            is_last: io == self.engine_io(),
            redirects,
            feeds: 0,
            deadline: None,
            grace: None,
            line: errand.line,
        }))
    }

    /// The engine's command.
    pub fn engine(self) -> ProcessId {
        ProcessId(OWN | self.0 << 1)
    }

    /// What prints.
    pub fn printing(self) -> ProcessId {
        ProcessId(OWN | self.0 << 1 | 1)
    }

    /// The descriptors of the engine's command.
    pub fn engine_io(self) -> IoId {
        IoId(OWN | self.0 << 1)
    }

    /// Where is printed.
    pub fn printing_io(self) -> IoId {
        IoId(OWN | self.0 << 1 | 1)
    }

    /// The opening of that.
    pub fn opening(self) -> OperationId {
        OperationId(OWN | self.0)
    }

    /// The family of both.
    pub fn scope(self) -> ScopeId {
        ScopeId(OWN | self.0)
    }

    /// The number of the branch that a command belongs to, and whether it is the engine's.
    pub fn of_process(process: ProcessId) -> Option<(u64, bool)> {
        (process.0 & WHOSE == OWN).then_some(((process.0 & !WHOSE) >> 1, process.0 & 1 == 0))
    }

    /// The number of the branch that an opening belongs to.
    pub fn of_operation(operation: OperationId) -> Option<(u64, bool)> {
        (operation.0 & WHOSE == OWN).then_some((operation.0 & !WHOSE, false))
    }

    /// The number of the branch that a family belongs to.
    pub fn of_scope(scope: ScopeId) -> Option<(u64, bool)> {
        (scope.0 & WHOSE == OWN).then_some((scope.0 & !WHOSE, true))
    }
}

/// What the machine waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// What becomes of the branch.
    End,
    /// Only that nothing is left of it: its scope is being emptied.
    Nothing,
    /// It knows that it is over.
    Told,
}

/// What the machine has asked.
#[derive(Clone, Copy, Debug)]
pub struct Errand {
    /// What the machine calls the branch.
    pub process: ProcessId,
    pub task: TaskId,
    pub scope: ScopeId,
    pub line: u32,
    pub engine: EngineId,
    pub implementation: &'static dyn Engine,
    /// Whether the engine's list has what waits.
    pub is_listed: bool,
    /// When some machine needn't be avoided any more that was to be.
    pub avoid_until: Time,
}

impl Errand {
    /// What of a dispatch is needed as long as the branch is away.
    pub fn of(dispatch: &Dispatch, implementation: &'static dyn Engine) -> Self {
        let Dispatch { process, task, scope, line, avoid_until, .. } = *dispatch;
        let (engine, options) = (dispatch.on.engine, dispatch.on.options.as_ref());
        let options = options.map(|it| it.as_bstr()).unwrap_or_default();
        let is_listed = implementation.queue().is_some_and(|queue| queue.shows(options));
        Self { process, task, scope, line, engine, implementation, is_listed, avoid_until }
    }
}

/// Where a branch is, if the choice was ours.
#[derive(Debug, Default)]
pub struct Place {
    /// Its host, until that has room for another branch.
    pub host: Option<String>,
    /// Whether there are other hosts.
    pub others: bool,
    /// Whether it has begun there, or won't.
    pub is_settled: bool,
}

/// A branch that is away.
#[derive(Debug)]
pub struct Away {
    pub names: Names,
    pub errand: Errand,
    pub place: Place,
    pub head: Head,
    pub connection: Connection,
    /// The machine that it was sent to, as the engine's list says.
    pub sent_to: Option<String>,
    /// Whether the engine's command has ended.
    pub engine_ended: bool,
    /// What it has printed and is not written yet.
    pub unprinted: Backlog,
    /// Why some of that is lost.
    pub spoilt: Option<String>,
    /// Whether some of it is being written.
    pub is_printing: bool,
    /// What the machine waits for.
    pub awaited: Awaited,
    /// What became of it.
    pub returned: Option<Returned>,
    /// Why nothing came to run, if that is known.
    pub reason: Option<Reason>,
    /// When the engine's command is killed that isn't needed any more.
    pub kill_at: Option<Time>,
}

impl Away {
    /// One that is being sent.
    pub fn new(
        names: Names,
        errand: Errand,
        place: Place,
        head: Head,
        connection: Connection,
    ) -> Self {
        Self {
            names,
            errand,
            place,
            head,
            connection,
            sent_to: None,
            engine_ended: false,
            unprinted: Backlog::default(),
            spoilt: None,
            is_printing: false,
            awaited: Awaited::End,
            returned: None,
            reason: None,
            kill_at: None,
        }
    }

    /// What has a command run here for the branch.
    pub fn run(
        &self,
        process: ProcessId,
        action: Action,
        io: IoId,
        redirects: Vec<FdChange>,
    ) -> Effect {
        self.names.run(&self.errand, process, action, io, redirects)
    }

    /// Its number.
    pub fn number(&self) -> u64 {
        self.names.number()
    }

    /// When something is to be done for it.
    pub fn next_due(&self) -> Time {
        self.head.next_timeout().min(self.kill_at.unwrap_or(Time::NEVER))
    }

    /// Something has come from it.
    pub fn hear(&mut self, pipe: Pipe, now: Time, bytes: &[u8]) {
        match pipe {
            Pipe::Input => {}
            Pipe::Output => self.head.heard_output(now, bytes),
            Pipe::Errors => self.head.heard_errors(now, bytes),
        }
    }

    /// The engine's command has ended, and nothing more comes.
    pub fn closed(&mut self, code: Option<i32>) {
        let said = self.head.noise();
        let has_other_hosts = self.place.others;
        let failure = Failure { messages: &said, code, has_other_hosts };
        let reason = engines::reason(self.errand.implementation, &failure);
        self.head.closed("", reason.blame);
        self.reason = Some(reason);
    }

    /// The machine's name, as the script knows it: that of the host, if it names one.
    pub fn node(&self, told: String) -> String {
        self.place.host.clone().unwrap_or(told)
    }

    /// What became of it, in the script's words.
    pub fn told(&self, returned: Returned) -> Returned {
        let name = |node: Option<String>| self.place.host.clone().or(node);
        match returned {
            Returned::Ended { node, elapsed, ended } => {
                Returned::Ended { node: self.node(node), elapsed, ended }
            }
            Returned::Lost { node, why } => Returned::Lost { node: name(node), why },
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
