//! The world as a driver whose shell may die at any moment.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use bstr::BString;
use ftsh_machine::driver::{BufferPart, Driver, Durable};
use ftsh_machine::effect::{BufferId, Dispatch, IoId, Query, ScopeId, ViewId};
use ftsh_machine::event::{Refusal, Reply};
use ftsh_machine::{Effect, Event, Time};

use super::{Faulty, WaitResult};

/// Minimum number of request ids that only restore the world.
const OTHERS: u64 = 1 << 63;
/// Error of files whose commit was in progress when the shell died.
const HALF_SETTLED: &str = "the shell ended while files took their places";

/// A world shared by a recorder and an observer.
#[derive(Clone)]
pub(crate) struct Shared {
    world: Rc<RefCell<Faulty>>,
    /// True if no event will ever come.
    pub is_over: Rc<RefCell<bool>>,
}

impl Shared {
    pub(crate) fn new(world: Faulty) -> Self {
        Self { world: Rc::new(RefCell::new(world)), is_over: Rc::default() }
    }

    pub(crate) fn with<T>(&self, look: impl FnOnce(&mut Faulty) -> T) -> T {
        look(&mut self.world.borrow_mut())
    }
}

impl Driver for Shared {
    fn now(&self) -> Time {
        self.world.borrow().now()
    }

    fn perform(&mut self, effect: Effect) {
        self.with(|world| match &effect {
            Effect::Open { operation, .. } if operation.0 >= OTHERS => {
                world.shell.perform(effect, &mut world.around);
                world.first.extend(std::iter::from_fn(|| world.shell.poll_event()));
            }
            _ => {
                world.ledger.asked(&effect);
                world.perform(effect);
            }
        });
    }

    fn wait(&mut self, until: Time) -> Option<Event> {
        let result = self.with(|world| match world.first.pop_front() {
            Some(event) => WaitResult::Event(event),
            None => world.wait(until),
        });
        *self.is_over.borrow_mut() = matches!(result, WaitResult::Never);
        let WaitResult::Event(event) = result else { return None };
        self.with(|world| world.ledger.on_event(&event));
        Some(event)
    }
}

impl Durable for Shared {
    fn position(&self, io: IoId, descriptor: u8) -> Option<u64> {
        self.world.borrow().shell.position(io, descriptor)
    }

    fn outlived_by(&self, branch: &Dispatch) -> Duration {
        self.world.borrow().cluster.outlived_by(branch)
    }

    fn inherit(&mut self, orphans: Vec<(ScopeId, Time)>) {
        self.with(|world| world.cluster.inherit(orphans));
    }

    fn written(&mut self, buffer: BufferId, from: u64) -> io::Result<Option<BufferPart>> {
        Ok(self.world.borrow_mut().shell.written(buffer, from))
    }

    fn take_over_view(&mut self, view: ViewId, _directories: &[BString]) -> io::Result<bool> {
        Ok(self.world.borrow().shell.take_over_view(view))
    }
}

impl Faulty {
    /// True if the shell has received all events. A missing event would be in the world without an
    /// observer.
    pub(crate) fn is_delivered(&self) -> bool {
        // The world has consumed what these requests read, and the journal has not.
        let reads = |effect: &Effect| match effect {
            Effect::Query { query, .. } => {
                matches!(query, Query::Input(..) | Query::InputPart(_) | Query::InputWord(..))
            }
            _ => false,
        };
        let is_reading = self.shell.is_reading() || self.ledger.open().iter().any(reads);
        !is_reading && self.ledger.commands().all(|process| self.shell.runs(process))
    }

    /// Kills the shell with all its processes, except branches elsewhere.
    fn die(&mut self, later: Duration) {
        self.cluster.head_dies(self.around.now);
        self.around.now = self.around.now + later;
        self.mail.keep_signals();
        self.around.future.clear();
        self.kills.clear();
        self.hung.clear();
        self.ending.clear();
        self.terminated.clear();
        self.around.replies.clear();
        let replies = self.around.channels.died(0, self.around.now);
        self.around.send(replies);
    }

    /// Kills the shell and starts another one.
    pub(crate) fn replace_shell(&mut self, later: Duration) {
        self.die(later);
        self.cluster.forget_scopes();
        self.shell = self.shell.successor();
    }

    /// Restores the state as if all processes were alive: reports them at once and repeats their
    /// requests.
    pub(crate) fn end_processes(&mut self, later: Duration) {
        self.die(later);
        self.shell.end_processes();
        let until = self.around.now + std::mem::take(&mut self.outlived);
        let orphans = self.ledger.scopes_away().into_iter().map(|scope| (scope, until));
        self.cluster.inherit(orphans.collect());
        let lost = self.ledger.commands().collect();
        let open = self.ledger.open().to_vec();
        let committed = open.iter().filter_map(|effect| match effect {
            Effect::CommitView { operation, view, .. } => {
                self.shell.take_over_view(*view).then_some(*operation)
            }
            _ => None,
        });
        self.first.push_back(Event::Resumed { lost, committed: committed.collect() });
        for effect in open {
            match effect {
                Effect::CommitView { operation, view, .. } if self.shell.take_over_view(view) => {
                    let result = Ok(Reply::Truth(true));
                    self.first.push_back(Event::Done { operation, result });
                }
                Effect::Commit { operation, .. } | Effect::CommitView { operation, .. } => {
                    let result = Ok(Reply::Incomplete(Refusal::new(HALF_SETTLED)));
                    self.first.push_back(Event::Done { operation, result });
                }
                effect => self.perform(effect),
            }
        }
    }
}
