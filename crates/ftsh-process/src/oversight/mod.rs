//! Remote control of a shell on a node.
//!
//! Messages of the controller arrive on a descriptor. Their orders, and the controller's silence,
//! decide how long the shell may run, independently of its commands. The supervisor enforces the
//! limit too.

mod limit;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use nix::errno::Errno;
use nix::unistd::read;

use super::os::clock::since_boot;
use ftsh_sys as sys;

pub use self::limit::Limit;
pub use ftsh_machine::control::{Controller, Order};

/// Controller with its descriptor, timer and limit.
pub struct Oversight {
    controller: Box<dyn Controller>,
    /// Descriptor of the controller's messages; none after its end.
    voice: Option<OwnedFd>,
    /// Timer on the clock since boot; none where the system has no such timer.
    timer: Option<OwnedFd>,
    limit: Limit,
}

impl Oversight {
    /// Creates a link to the controller that writes to `voice`. `limit` is shared with the
    /// supervisor.
    pub fn new(controller: Box<dyn Controller>, voice: OwnedFd, limit: Limit) -> io::Result<Self> {
        let timer = Some(sys::boot_timer()?);
        Ok(Self { controller, voice: Some(voice), timer, limit })
    }

    /// Returns a descriptor that is readable after a message or the end of messages.
    pub fn voice(&self) -> Option<BorrowedFd<'_>> {
        self.voice.as_ref().map(AsFd::as_fd)
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
    pub fn listen(&mut self) -> Option<OwnedFd> {
        let mut bytes = [0; 4096];
        match read(self.voice.as_ref()?, &mut bytes) {
            Ok(count @ 1..) => self.controller.on_bytes(since_boot(), &bytes[..count]),
            Err(Errno::EINTR | Errno::EAGAIN) => {}
            Ok(0) | Err(_) => return self.leave(),
        }
        None
    }

    /// Reports the loss of the connection to the controller. Returns the descriptor.
    pub fn leave(&mut self) -> Option<OwnedFd> {
        let voice = self.voice.take();
        self.controller.on_closed();
        voice
    }

    /// Returns all orders that are due, and updates timer and limit.
    pub fn orders(&mut self) -> Vec<Order> {
        self.controller.handle_timeout(since_boot());
        let orders = std::iter::from_fn(|| self.controller.next_order()).collect();
        self.limit.set(self.controller.last_moment());
        if let Some(timer) = &self.timer {
            sys::set_boot_timer(timer.as_fd(), self.controller.next_timeout());
        }
        orders
    }
}
