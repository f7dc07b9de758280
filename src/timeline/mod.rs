//! A picture of a run: a row for each branch and each `try`, with what happened when.
//!
//! [`Timeline`] is told what a log would tell, and what was asked of the driver; [`svg`] draws it, and
//! [`html`] is a page around that, on which one can look closer.

mod draw;
mod page;
mod story;
#[cfg(test)]
mod tests;

pub use self::draw::svg;
pub use self::page::html;
pub use self::story::Timeline;

use std::time::Duration;

/// A line of the picture.
#[derive(Debug)]
pub struct Row {
    /// What it is of.
    pub label: String,
    /// In how many others it is.
    pub depth: usize,
    /// What happened in it.
    pub bars: Vec<Bar>,
    /// When limits would have passed.
    pub deadlines: Vec<Duration>,
}

/// Something that took time.
#[derive(Debug, PartialEq)]
pub struct Bar {
    /// What it is.
    pub kind: Kind,
    /// From when.
    pub from: Duration,
    /// Until when.
    pub to: Duration,
    /// What came of it.
    pub end: End,
    /// What is to be said of it.
    pub text: String,
}

/// What takes time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The script or a branch.
    Task,
    /// An attempt.
    Attempt,
    /// The time before the next one.
    Delay,
    /// A command.
    Command,
}

/// What comes of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It went well.
    Succeeded,
    /// It failed.
    Failed,
    /// It was cut short.
    Cancelled,
    /// Nobody knows: the record ends before.
    Unknown,
}
