//! Remote control of a shell on a node.
//!
//! Messages of the controller arrive on a descriptor. Their orders, and the controller's silence,
//! decide how long the shell may run, independently of its commands. The supervisor enforces the
//! limit too.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::unistd::read;

use crate::clock::since_boot;
use crate::events::{DeadlineAlarm, Poller, Token};
use ftsh_sys as sys;

pub use ftsh_machine::control::{Controller, Order};

/// Controller with its descriptor, timer and limit.
pub struct ControlLink {
    controller: Box<dyn Controller>,
    /// Descriptor of the controller's messages; none after its end.
    descriptor: Option<OwnedFd>,
    /// Timer on the clock since boot; none where the system has no such timer.
    timer: Option<OwnedFd>,
    shared_deadline: SharedDeadline,
}

impl ControlLink {
    /// Creates a link to the controller that writes to `descriptor`. `shared_deadline` is shared with the
    /// supervisor.
    pub fn new(
        controller: Box<dyn Controller>,
        descriptor: OwnedFd,
        shared_deadline: SharedDeadline,
    ) -> io::Result<Self> {
        let timer = Some(sys::boot_timer()?);
        Ok(Self { controller, descriptor: Some(descriptor), timer, shared_deadline })
    }

    /// Returns a descriptor that is readable after a message or the end of messages.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.descriptor.as_ref().map(AsFd::as_fd)
    }

    /// Returns a descriptor that is readable at the controller's next timeout, if the system has
    /// such timers.
    pub fn timer(&self) -> Option<BorrowedFd<'_>> {
        self.timer.as_ref().map(AsFd::as_fd)
    }

    /// Returns the controller's next timeout if no timer descriptor reports it.
    pub fn due(&self) -> Option<Instant> {
        let left = self.controller.next_timeout().saturating_sub(since_boot());
        self.timer.is_none().then(|| Instant::now() + left)
    }

    /// True if the controller's timeout has passed and no timer descriptor reports it.
    pub fn is_due(&self) -> bool {
        self.timer.is_none() && since_boot() >= self.controller.next_timeout()
    }

    /// Reads messages. Returns the descriptor, for its removal from the poller, after the last
    /// message.
    pub fn read_messages(&mut self) -> Option<OwnedFd> {
        let mut bytes = [0; 4096];
        match read(self.descriptor.as_ref()?, &mut bytes) {
            Ok(count @ 1..) => self.controller.on_bytes(since_boot(), &bytes[..count]),
            Err(Errno::EINTR | Errno::EAGAIN) => {}
            Ok(0) | Err(_) => return self.disconnect(),
        }
        None
    }

    /// Reports the loss of the connection to the controller. Returns the descriptor.
    pub fn disconnect(&mut self) -> Option<OwnedFd> {
        let descriptor = self.descriptor.take();
        self.controller.on_closed();
        descriptor
    }

    /// Returns all orders that are due, and updates timer and limit.
    pub fn orders(&mut self) -> Vec<Order> {
        self.controller.handle_timeout(since_boot());
        let orders = std::iter::from_fn(|| self.controller.next_order()).collect();
        self.shared_deadline.set(self.controller.last_moment());
        if let Some(timer) = &self.timer {
            sys::set_boot_timer(timer.as_fd(), self.controller.next_timeout());
        }
        orders
    }
}

/// Time at which all processes of a shell are killed. Copies and forked processes share the value;
/// only one process sets it.
#[derive(Clone, Copy)]
pub struct SharedDeadline(&'static AtomicU64);

impl SharedDeadline {
    /// Creates a limit in shared memory, as time since boot.
    pub fn at(moment: Duration) -> io::Result<Self> {
        let limit = Self(sys::shared_number()?);
        limit.set(moment);
        Ok(limit)
    }

    /// Changes the limit.
    pub fn set(self, moment: Duration) {
        let nanoseconds = u64::try_from(moment.as_nanos()).unwrap_or(u64::MAX);
        self.0.store(nanoseconds, Ordering::Relaxed);
    }

    /// True if the limit has passed. Otherwise sets the alarm to the limit.
    pub fn has_come(self, alarm: &mut DeadlineAlarm) -> bool {
        let moment = Duration::from_nanos(self.0.load(Ordering::Relaxed));
        if since_boot() >= moment {
            return true;
        }
        alarm.set(moment);
        false
    }
}

/// Controller of this shell, if any.
pub(crate) struct ControlState {
    link: Option<ControlLink>,
    /// Set when the shell was ordered to end.
    is_interrupted: bool,
}

impl ControlState {
    /// Creates the state for an optional controller.
    pub(crate) fn new(link: Option<ControlLink>) -> Self {
        Self { link, is_interrupted: false }
    }

    /// Polls the descriptors of the controller: its messages, and the timer of its silence.
    pub(crate) fn listen(
        &mut self,
        poller: &mut Poller,
        messages: Token,
        timer: Token,
    ) -> io::Result<()> {
        let Some(link) = &mut self.link else { return Ok(()) };
        if let Some(descriptor) = link.timer() {
            poller.add(descriptor, timer)?;
        }
        // A file cannot be polled: no controller writes there.
        if link.descriptor().is_some_and(|descriptor| poller.add(descriptor, messages).is_err()) {
            link.disconnect();
        }
        Ok(())
    }

    /// True if the shell has a controller.
    pub(crate) fn is_active(&self) -> bool {
        self.link.is_some()
    }

    /// Returns the controller's next timeout if no descriptor reports it.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.link.as_ref().and_then(ControlLink::due)
    }

    /// True if that timeout has passed.
    pub(crate) fn is_due(&self) -> bool {
        self.link.as_ref().is_some_and(ControlLink::is_due)
    }

    /// Reads the messages of the controller.
    pub(crate) fn read_messages(&mut self, poller: &mut Poller) {
        if let Some(ended) = self.link.as_mut().and_then(ControlLink::read_messages) {
            poller.remove(ended.as_fd());
        }
    }

    /// Returns the orders that are due.
    pub(crate) fn orders(&mut self) -> Vec<Order> {
        self.link.as_mut().map(ControlLink::orders).unwrap_or_default()
    }

    /// Records that the shell was ordered to end.
    pub(crate) fn note_interrupt(&mut self) {
        self.is_interrupted = true;
    }

    /// True if the shell was ordered to end.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.is_interrupted
    }
}
