//! Remote control of a shell on a node.
//!
//! Messages of the controller arrive on a descriptor. Their orders, and the controller's silence,
//! decide how long the shell may run, independently of its commands. The supervisor enforces the
//! limit too.

mod shared_deadline;
mod state;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use nix::errno::Errno;
use nix::unistd::read;

use super::os::clock::since_boot;
use ftsh_sys as sys;

pub use self::shared_deadline::SharedDeadline;
pub(crate) use self::state::ControlState;
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
