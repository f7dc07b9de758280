//! Picture of a run: a row for each branch, each stage and each `try`, with bars over time.
//!
//! [`Timeline`] collects log records and makes a [`Drawing`]. [`svg`] draws it, and [`html`] adds a
//! page for closer inspection.

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

/// Content of a picture.
#[derive(Debug)]
pub struct Drawing {
    /// Rows, each before its inner rows.
    pub rows: Vec<Row>,
    /// Times without a shell.
    pub gaps: Vec<Gap>,
    /// Number of rows that did not fit.
    pub left_out: usize,
    /// Duration of the known part of the run.
    pub now: Duration,
}

/// A row of the picture.
#[derive(Debug)]
pub struct Row {
    /// Label of the row.
    pub label: String,
    /// Number of enclosing rows.
    pub depth: usize,
    /// Number of inner rows, which follow the row.
    pub inner: usize,
    /// Bars of the row.
    pub bars: Vec<Bar>,
    /// Times at which limits passed.
    pub limits: Vec<Duration>,
}

/// A span of time in a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// Kind of the work.
    pub kind: BarKind,
    /// Start.
    pub from: Duration,
    /// End.
    pub to: Duration,
    /// Result of the work.
    pub end: SpanEnd,
    /// Text of the bar.
    pub text: String,
}

/// Kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarKind {
    /// The script, a branch or a stage.
    Task,
    /// An attempt.
    Attempt,
    /// Delay before the next attempt.
    Delay,
    /// A function with its content.
    Call,
    /// A command.
    Command,
}

/// Result of work, in ascending priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SpanEnd {
    /// Success.
    Succeeded,
    /// Canceled.
    Canceled,
    /// Unknown: the record ends earlier.
    Unknown,
    /// Unknown: the shell ended, and the run was resumed.
    Lost,
    /// Failure.
    Failed,
}

/// Time between the end of a shell and the next start of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Gap {
    /// End of the shell, or its latest record.
    pub from: Duration,
    /// Start of the next shell, if there is one.
    pub to: Option<Duration>,
    /// Text of its beginning.
    pub ended: String,
    /// Text of its end.
    pub resumed: String,
}
