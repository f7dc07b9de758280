//! State of a shell towards its controller.

use std::io;
use std::os::fd::AsFd;
use std::time::Instant;

use super::{ControlLink, Order};
use crate::os::poll::{Poller, Token};

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
