//! The node's side of a conversation, once its branch has begun: when to ask for more time, and what follows
//! from the answers. Pure, as the head's side.

use std::collections::VecDeque;
use std::time::Duration;

use super::frame::Frames;
use super::nonce::Nonce;
use super::request::Request;
use super::{Go, ToNode};
use ftsh_machine::control::{Order, Overseer};

/// It is asked for more time so often in a lease.
const REQUESTS: u32 = 3;
/// Killing takes that long on a busy machine, after its moment has come.
const KILLING: Duration = Duration::from_secs(1);
/// So much of the time is added as clocks differ: one that is set right runs a twelfth too fast or too slow
/// at most (chrony's limit; others keep to a thousandth), the head's one way and the node's the other.
const DRIFT: u32 = 5;

/// The time that a branch has. Moments are those of a clock that counts also while the machine sleeps.
#[derive(Debug)]
pub struct Lease {
    nonce: Nonce,
    length: Duration,
    kill_timeout: Duration,
    /// What has come of the head's.
    frames: Frames<ToNode>,
    /// When it is over.
    until: Duration,
    /// When more time is to be asked for; none if there is nobody to be asked.
    request: Option<Duration>,
    /// Whether all is being ended because of it.
    is_over: bool,
    orders: VecDeque<Order>,
}

impl Lease {
    /// The first one, which was asked for at this moment. The frames have what came after *go*.
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

    /// How long after its last grant of such a lease a head knows that nothing of the branch is left, which
    /// has so long from SIGTERM to SIGKILL.
    pub fn gone_after(length: Duration, kill_timeout: Duration) -> Duration {
        let time = length.saturating_add(kill_timeout);
        time.saturating_add(time / DRIFT).saturating_add(KILLING)
    }

    /// Whether it was over before the branch could begin.
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

impl Overseer for Lease {
    fn hear(&mut self, now: Duration, bytes: &[u8]) {
        self.frames.push(bytes);
        loop {
            match self.frames.message() {
                // A branch that is being ended has more time for that. No request was made later than now.
                Ok(Some(ToNode::Lease(asked))) if asked <= now => {
                    self.until = self.until.max(asked.saturating_add(self.length));
                }
                Ok(Some(ToNode::End(signal))) => self.orders.push_back(Order::Interrupt(signal)),
                Ok(Some(ToNode::Lease(_) | ToNode::Branch(_) | ToNode::Go(_))) => {}
                Ok(None) => return,
                // What can't be understood can't be obeyed.
                Err(_) => return self.finish(),
            }
        }
    }

    fn left(&mut self) {
        self.finish();
    }

    fn handle_timeout(&mut self, now: Duration) {
        if now >= self.last_moment() {
            self.orders.push_back(Order::Kill);
        } else if now >= self.until {
            self.finish();
        } else if self.request.is_some_and(|request| now >= request) {
            self.request = Some(now.saturating_add(self.length / REQUESTS));
            self.orders.push_back(Order::Say(Request { at: now }.to_line(&self.nonce)));
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
