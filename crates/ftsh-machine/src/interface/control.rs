//! Remote control of a shell: orders from another machine, and the trait of the type that decodes
//! them.

use std::time::Duration;

/// Order of another machine to this shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Write a text to standard error, as soon as standard error accepts the text.
    Say(String),
    /// End the shell, as by a signal.
    Interrupt(i32),
    /// End the shell, as by SIGTERM, unless the shell is ending already.
    Finish,
    /// Kill all that is left, now and from now on.
    Kill,
}

/// Source of orders. Times are measured since the machine was started, and include suspension of
/// the machine.
pub trait Controller {
    /// Handles received bytes.
    fn on_bytes(&mut self, now: Duration, bytes: &[u8]);

    /// Handles the end of the connection.
    fn on_closed(&mut self);

    /// Handles the passing of time.
    fn handle_timeout(&mut self, now: Duration);

    /// Returns the next time at which `handle_timeout` must be called.
    fn next_timeout(&self) -> Duration;

    /// Returns the moment after which everything is killed. The moment is never moved to an earlier
    /// time.
    fn last_moment(&self) -> Duration;

    /// Returns the next order to carry out.
    fn next_order(&mut self) -> Option<Order>;
}
