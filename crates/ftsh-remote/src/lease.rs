//! The node's side of a conversation after the branch has begun: requests for more time, and the
//! orders that follow. The lease has no clock and no connection.

use std::collections::VecDeque;
use std::time::Duration;

use super::frame::Frames;
use super::line::NodeLine;
use super::nonce::Nonce;
use super::{Go, ToNode};
use ftsh_machine::control::{Controller, Order};

/// Number of requests for more time during one lease.
const REQUESTS: u32 = 3;
/// Time that killing takes on a busy machine.
const KILLING: Duration = Duration::from_secs(1);
/// Divisor of the additional time for clock drift: one fifth. A clock under correction deviates by
/// at most a twelfth, chrony's limit. The head's clock may run slow while the node's clock runs
/// fast.
const DRIFT: u32 = 5;

/// Time that a branch may run. Moments are times of a clock that also counts while the machine
/// sleeps.
#[derive(Debug)]
pub struct Lease {
    nonce: Nonce,
    length: Duration,
    kill_timeout: Duration,
    /// Decoder of the head's messages.
    frames: Frames<ToNode>,
    /// End of the lease.
    until: Duration,
    /// Time of the next request; none if the connection is closed or the branch is ending.
    request: Option<Duration>,
    /// True once the branch is being ended.
    is_over: bool,
    orders: VecDeque<Order>,
}

impl Lease {
    /// Creates the first lease, which was requested at the moment `asked`. The frames hold the
    /// bytes after *go*.
    pub fn new(go: &Go, frames: Frames<ToNode>, kill_timeout: Duration, asked: Duration) -> Self {
        let length = go.lease;
        Self {
            nonce: go.nonce,
            length,
            kill_timeout,
            frames,
            until: asked.saturating_add(length),
            request: Some(asked.saturating_add(length / REQUESTS)),
            is_over: false,
            orders: VecDeque::new(),
        }
    }

    /// Returns the time after a grant at which the head knows that no process of the branch is
    /// left. `kill_timeout` is the time from SIGTERM to SIGKILL on the node.
    pub fn gone_after(length: Duration, kill_timeout: Duration) -> Duration {
        let time = length.saturating_add(kill_timeout);
        time.saturating_add(time / DRIFT).saturating_add(KILLING)
    }

    /// True if the lease ended before the branch began.
    pub fn has_passed(&self, now: Duration) -> bool {
        now >= self.until
    }

    fn finish(&mut self) {
        self.request = None;
        if !self.is_over {
            self.is_over = true;
            self.orders.push_back(Order::Finish);
        }
    }
}

impl Controller for Lease {
    fn on_bytes(&mut self, now: Duration, bytes: &[u8]) {
        self.frames.push(bytes);
        loop {
            match self.frames.message() {
                // A branch that is ending gets more time as well. A request cannot be later than
                // now.
                Ok(Some(ToNode::Lease(asked))) if asked <= now => {
                    self.until = self.until.max(asked.saturating_add(self.length));
                }
                Ok(Some(ToNode::End(signal))) => self.orders.push_back(Order::Interrupt(signal)),
                Ok(Some(ToNode::Lease(_) | ToNode::Branch(_) | ToNode::Go(_))) => {}
                Ok(None) => return,
                // An invalid message ends the branch.
                Err(_) => return self.finish(),
            }
        }
    }

    fn on_closed(&mut self) {
        self.finish();
    }

    fn handle_timeout(&mut self, now: Duration) {
        if now >= self.last_moment() {
            self.orders.push_back(Order::Kill);
        } else if now >= self.until {
            self.finish();
        } else if self.request.is_some_and(|request| now >= request) {
            self.request = Some(now.saturating_add(self.length / REQUESTS));
            self.orders.push_back(Order::Say(NodeLine::Request(now).encode(&self.nonce)));
        }
    }

    fn next_timeout(&self) -> Duration {
        let end = if self.is_over { self.last_moment() } else { self.until };
        self.request.map_or(end, |request| request.min(end))
    }

    fn last_moment(&self) -> Duration {
        self.until.saturating_add(self.kill_timeout)
    }

    fn next_order(&mut self) -> Option<Order> {
        self.orders.pop_front()
    }
}
