//! Remote control of a shell: the orders that another machine gives, and the type that makes them.

use std::time::Duration;

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// This is to be said on standard error, as soon as that takes it.
    Say(String),
    /// The shell is to end, as by this signal.
    Interrupt(i32),
    /// The shell is to end, as by SIGTERM, if it hasn't been told to.
    Finish,
    /// Nothing may be left from now on.
    Kill,
}

/// Makes orders of what is heard, and of what time it is: since the machine was started, also while it
/// slept.
pub trait Overseer {
    /// These bytes have come.
    fn hear(&mut self, now: Duration, bytes: &[u8]);

    /// Nothing more will come.
    fn left(&mut self);

    /// It is later.
    fn handle_timeout(&mut self, now: Duration);

    /// When that is to be told next.
    fn next_timeout(&self) -> Duration;

    /// When nothing may be left any more; it never comes nearer.
    fn last_moment(&self) -> Duration;

    /// The next thing to be done.
    fn next_order(&mut self) -> Option<Order>;
}
