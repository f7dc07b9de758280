//! Somebody far away who has a say in how long a shell goes on: it is heard on a descriptor, and what it
//! says, or doesn't say in time, is obeyed, whatever the shell's commands do. The supervisor sees to it too.

mod limit;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use nix::errno::Errno;
use nix::unistd::read;

use super::os::clock::since_boot;
use ftsh_sys as sys;

pub use self::limit::Limit;
pub use ftsh_machine::control::{Order, Overseer};

/// An overseer, and what it takes to hear of it.
pub struct Oversight {
    overseer: Box<dyn Overseer>,
    /// Where it is heard; none if it won't be any more.
    voice: Option<OwnedFd>,
    /// None where there are no such timers.
    timer: Option<OwnedFd>,
    limit: Limit,
}

impl Oversight {
    /// By who is heard on this descriptor. The limit is the one that the supervisor has.
    pub fn new(overseer: Box<dyn Overseer>, voice: OwnedFd, limit: Limit) -> io::Result<Self> {
        let timer = Some(sys::boot_timer()?);
        Ok(Self { overseer, voice: Some(voice), timer, limit })
    }

    /// Readable when something has come, or won't any more.
    pub fn voice(&self) -> Option<BorrowedFd<'_>> {
        self.voice.as_ref().map(AsFd::as_fd)
    }

    /// Readable when it is later, if there is such a descriptor.
    pub fn timer(&self) -> Option<BorrowedFd<'_>> {
        self.timer.as_ref().map(AsFd::as_fd)
    }

    /// When it is later, if no descriptor tells.
    pub fn due(&self) -> Option<Instant> {
        let left = self.overseer.next_timeout().saturating_sub(since_boot());
        self.timer.is_none().then(|| Instant::now() + left)
    }

    /// Whether it is later.
    pub fn is_due(&self) -> bool {
        self.timer.is_none() && since_boot() >= self.overseer.next_timeout()
    }

    /// Hears what has come; to be called when there is something. Returns the descriptor if that was all.
    pub fn listen(&mut self) -> Option<OwnedFd> {
        let mut bytes = [0; 4096];
        match read(self.voice.as_ref()?, &mut bytes) {
            Ok(count @ 1..) => self.overseer.hear(since_boot(), &bytes[..count]),
            Err(Errno::EINTR | Errno::EAGAIN) => {}
            Ok(0) | Err(_) => return self.leave(),
        }
        None
    }

    /// Nothing can be heard, or will be. Returns the descriptor.
    pub fn leave(&mut self) -> Option<OwnedFd> {
        let voice = self.voice.take();
        self.overseer.left();
        voice
    }

    /// All that is to be done now.
    pub fn orders(&mut self) -> Vec<Order> {
        self.overseer.handle_timeout(since_boot());
        let orders = std::iter::from_fn(|| self.overseer.next_order()).collect();
        self.limit.set(self.overseer.last_moment());
        if let Some(timer) = &self.timer {
            sys::set_boot_timer(timer.as_fd(), self.overseer.next_timeout());
        }
        orders
    }
}
