//! Conversion of log records to the rows of a drawing.

use std::collections::BTreeMap;
use std::time::Duration;

use super::course::{Scene, TaskTimeline};
use super::rows::Rows;
use super::{Drawing, Gap, SpanEnd};
use ftsh_machine::Outcome;
use ftsh_machine::effect::TaskId;
use ftsh_machine::outcome::FailureKind;
use ftsh_machine::record::{LogEvent, LogRecord};

const SCRIPT: TaskId = TaskId(0);

/// Timeline of a run.
#[derive(Debug, Default)]
pub struct Timeline {
    rows: Rows,
    /// Tasks in progress; none for tasks that have ended or have no row.
    tasks: BTreeMap<TaskId, Option<TaskTimeline>>,
    gaps: Vec<Gap>,
    /// Time of the latest record.
    last: Duration,
}

impl Timeline {
    /// Adds a log record. Needs the records of the level of structures.
    pub fn logged(&mut self, record: &LogRecord) {
        let at = record.at.elapsed();
        match &record.event {
            LogEvent::RetriesEnded(_) => return,
            LogEvent::Suspended(signal) => {
                let by = match signal {
                    Some(signal) => format!("signal {signal}"),
                    None => "an external limit".to_owned(),
                };
                let (ended, resumed) = (format!("the shell was ended by {by}"), String::new());
                self.gaps.push(Gap { from: at, to: None, ended, resumed });
            }
            LogEvent::Resumed { lost } => self.resumed(at, *lost),
            _ => {}
        }
        self.last = self.last.max(at);
        if let Some(task) = record.task {
            self.begin(task, record, at);
            self.add_to_task(task, record, at);
        }
    }

    /// Returns the drawing. Nothing is known after `now`.
    pub fn finish(mut self, now: Duration, outcome: Option<&Outcome>) -> Drawing {
        let end = match outcome {
            None => SpanEnd::Unknown,
            Some(Outcome::Succeeded | Outcome::Exited(0)) => SpanEnd::Succeeded,
            Some(Outcome::Interrupted(_)) => SpanEnd::Canceled,
            Some(_) => SpanEnd::Failed,
        };
        if let Some(Some(script)) = self.tasks.remove(&SCRIPT) {
            self.end(script, now, end);
        }
        let Self { rows, gaps, .. } = self;
        Drawing { left_out: rows.left_out, rows: rows.in_order(), gaps, now }
    }

    /// Marks the resumption of the run. An unknown end of the shell is placed after the latest
    /// record.
    fn resumed(&mut self, at: Duration, lost: usize) {
        if self.gaps.last().is_none_or(|gap| gap.to.is_some()) {
            let ended = "the latest record of the shell".to_owned();
            let gap = Gap { from: self.last, to: None, ended, resumed: String::new() };
            self.gaps.push(gap);
        }
        if let Some(gap) = self.gaps.last_mut() {
            gap.to = Some(at);
            gap.resumed = match lost {
                0 => "the run was resumed".to_owned(),
                1 => "the run was resumed; the result of 1 command is unknown".to_owned(),
                _ => format!("the run was resumed; the results of {lost} commands are unknown"),
            };
        }
    }

    /// Creates a row for a new task.
    fn begin(&mut self, task: TaskId, record: &LogRecord, at: Duration) {
        if self.tasks.contains_key(&task) {
            return;
        }
        let parent = match record.parent {
            None => None,
            Some(parent) if self.tasks.contains_key(&parent) => Some(parent),
            // A parent without any record.
            Some(_) => {
                self.begin(
                    SCRIPT,
                    &LogRecord { task: Some(SCRIPT), parent: None, ..record.clone() },
                    at,
                );
                Some(SCRIPT)
            }
        };
        let mut around = None;
        if let Some(parent) = parent {
            let mut scene = Scene { rows: &mut self.rows, gap: self.gaps.last() };
            if let Some(Some(course)) = self.tasks.get_mut(&parent) {
                course.waits(&mut scene, at);
                course.children.push(task);
                around = course.innermost();
            }
        }
        let label = match &record.event {
            _ if parent.is_none() => record.file.to_string(),
            LogEvent::Iteration { kind: "forall" | "forany" | "with", name, value } => {
                format!("{name}={value}")
            }
            _ if !record.around.is_stage => format!("group, line {}", record.line),
            LogEvent::CommandStarted(text) => format!("| {text}"),
            _ => format!("stage, line {}", record.line),
        };
        // A task canceled before its first action has no row.
        let is_idle = record.event == LogEvent::Canceled;
        let has_place = parent.is_none() || (around.is_some() && !is_idle);
        let row = has_place.then(|| self.rows.begin(around, label)).flatten();
        // The script began before its first record.
        let from = if parent.is_none() { Duration::ZERO } else { at };
        self.tasks.insert(task, row.map(|row| TaskTimeline::new(row, from, &record.file)));
    }

    /// Adds a record to its task.
    fn add_to_task(&mut self, task: TaskId, record: &LogRecord, at: Duration) {
        let Some(Some(course)) = self.tasks.get_mut(&task) else { return };
        if let LogEvent::BranchEnded { failure, .. } = &record.event {
            let end = match failure {
                None => SpanEnd::Succeeded,
                Some((FailureKind::Canceled, _)) => SpanEnd::Canceled,
                Some(_) => SpanEnd::Failed,
            };
            if let Some(course) = self.tasks.insert(task, None).flatten() {
                self.end(course, at, end);
            }
            return;
        }
        // A waiting task has no records, except for the cancellation of all its children.
        let is_cut = matches!(
            record.event,
            LogEvent::CommandFailed(_) | LogEvent::Failed(_) | LogEvent::Canceled
        );
        if !is_cut {
            let children = std::mem::take(&mut course.children);
            self.end_children(children);
        }
        let mut scene = Scene { rows: &mut self.rows, gap: self.gaps.last() };
        if let Some(Some(course)) = self.tasks.get_mut(&task) {
            course.add(&mut scene, record, at);
        }
    }

    fn end_children(&mut self, children: Vec<TaskId>) {
        for child in children {
            if let Some(course) = self.tasks.get_mut(&child).and_then(Option::take) {
                let (at, end) = course.last();
                self.end(course, at, end);
            }
        }
    }

    /// Ends a task and all tasks that it waited for.
    fn end(&mut self, mut course: TaskTimeline, at: Duration, end: SpanEnd) {
        let mut inner = std::mem::take(&mut course.children);
        let mut courses = vec![(course, at, end)];
        while let Some(child) = inner.pop() {
            if let Some(mut course) = self.tasks.get_mut(&child).and_then(Option::take) {
                inner.append(&mut course.children);
                let (at, end) = if end == SpanEnd::Unknown { (at, end) } else { course.last() };
                courses.push((course, at, end));
            }
        }
        for (course, at, end) in courses.into_iter().rev() {
            course.end(&mut Scene { rows: &mut self.rows, gap: self.gaps.last() }, at, end);
        }
    }
}
