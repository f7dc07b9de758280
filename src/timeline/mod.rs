//! A picture of a run: a row for each branch, each stage and each `try`, with what happened when.
//!
//! [`Timeline`] is told what a log would tell, and makes a [`Picture`] of it; [`svg`] draws that, and
//! [`html`] is a page around the drawing, on which one can look closer.

mod axis;
mod course;
mod draw;
mod page;
mod rows;
mod story;
#[cfg(test)]
mod tests;
mod thin;
mod words;

pub use self::draw::svg;
pub use self::page::html;
pub use self::story::Timeline;

use std::time::Duration;

/// What there is to be drawn.
#[derive(Debug)]
pub struct Picture {
    /// The lines, those that are in another one below it.
    pub rows: Vec<Row>,
    /// When no shell ran.
    pub gaps: Vec<Gap>,
    /// How many rows there would be more.
    pub left_out: usize,
    /// How much of the run is known.
    pub now: Duration,
}

/// A line of the picture.
#[derive(Debug)]
pub struct Row {
    /// What it is of.
    pub label: String,
    /// In how many others it is.
    pub depth: usize,
    /// How many rows after it are in it.
    pub inner: usize,
    /// What happened in it.
    pub bars: Vec<Bar>,
    /// When limits passed.
    pub limits: Vec<Duration>,
}

/// Something that took time.
#[derive(Clone, Debug, PartialEq)]
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
    /// The script, a branch or a stage.
    Task,
    /// An attempt.
    Attempt,
    /// The time before the next one.
    Delay,
    /// A function, with what it does in it.
    Call,
    /// A command.
    Command,
}

/// What comes of something; what outweighs others comes later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// It went well.
    Succeeded,
    /// It was cut short.
    Cancelled,
    /// Nobody knows: the record ends before.
    Unknown,
    /// Nobody knows: the shell ended before, and the run went on.
    Lost,
    /// It failed.
    Failed,
}

/// From the end of one shell to the start of the next one that goes on with the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Gap {
    /// When the shell ended, or was last heard of.
    pub from: Duration,
    /// When the run went on, if it did.
    pub to: Option<Duration>,
    /// What is to be said of its beginning.
    pub ended: String,
    /// What is to be said of its end.
    pub resumed: String,
}
