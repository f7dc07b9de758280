//! From what a log tells to the rows of a picture.

use std::collections::BTreeMap;
use std::time::Duration;

use super::course::{Course, Scene};
use super::rows::Rows;
use super::{End, Gap, Picture};
use ftsh_machine::Outcome;
use ftsh_machine::effect::TaskId;
use ftsh_machine::outcome::FailureKind;
use ftsh_machine::record::{LogEvent, LogRecord};

const SCRIPT: TaskId = TaskId(0);

/// What happened in a run.
#[derive(Debug, Default)]
pub struct Timeline {
    rows: Rows,
    /// None of what has ended, and of what there is no row for.
    tasks: BTreeMap<TaskId, Option<Course>>,
    gaps: Vec<Gap>,
    /// When something was last told.
    last: Duration,
}

impl Timeline {
    /// Takes note of what a log tells, at the level of structures at least.
    pub fn logged(&mut self, record: &LogRecord) {
        let at = record.at.elapsed();
        match &record.event {
            LogEvent::Suspended(signal) => {
                let by = match signal {
                    Some(signal) => format!("signal {signal}"),
                    None => "a limit from outside".to_owned(),
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
            self.tell(task, record, at);
        }
    }

    /// The picture, once nothing more is known after `now`.
    pub fn finish(mut self, now: Duration, outcome: Option<&Outcome>) -> Picture {
        let end = match outcome {
            None => End::Unknown,
            Some(Outcome::Succeeded | Outcome::Exited(0)) => End::Succeeded,
            Some(Outcome::Interrupted(_)) => End::Cancelled,
            Some(_) => End::Failed,
        };
        if let Some(Some(script)) = self.tasks.remove(&SCRIPT) {
            self.end(script, now, end);
        }
        let Self { rows, gaps, .. } = self;
        Picture { left_out: rows.left_out, rows: rows.in_order(), gaps, now }
    }

    /// The run goes on. If it isn't known when the shell ended, it was after what was last told.
    fn resumed(&mut self, at: Duration, lost: usize) {
        if self.gaps.last().is_none_or(|gap| gap.to.is_some()) {
            let ended = "the shell is last heard of".to_owned();
            let gap = Gap { from: self.last, to: None, ended, resumed: String::new() };
            self.gaps.push(gap);
        }
        if let Some(gap) = self.gaps.last_mut() {
            gap.to = Some(at);
            gap.resumed = match lost {
                0 => "the run goes on".to_owned(),
                1 => "the run goes on; of 1 command nobody knows what came of it".to_owned(),
                _ => format!("the run goes on; of {lost} commands nobody knows what came of them"),
            };
        }
    }

    /// Has a row made for a task that wasn't heard of.
    fn begin(&mut self, task: TaskId, record: &LogRecord, at: Duration) {
        if self.tasks.contains_key(&task) {
            return;
        }
        let parent = match record.parent {
            None => None,
            Some(parent) if self.tasks.contains_key(&parent) => Some(parent),
            // One that had nothing to say.
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
            LogEvent::Iteration { kind: "forall" | "forany", name, value } => {
                format!("{name}={value}")
            }
            LogEvent::CommandStarted(text) => format!("| {text}"),
            _ => format!("stage, line {}", record.line),
        };
        // One that is cut short before it does anything is no news.
        let is_idle = record.event == LogEvent::Cancelled;
        let has_place = parent.is_none() || (around.is_some() && !is_idle);
        let row = has_place.then(|| self.rows.begin(around, label)).flatten();
        // The script began before it had anything to say.
        let from = if parent.is_none() { Duration::ZERO } else { at };
        self.tasks.insert(task, row.map(|row| Course::new(row, from, &record.file)));
    }

    /// Has a task take note of a record.
    fn tell(&mut self, task: TaskId, record: &LogRecord, at: Duration) {
        let Some(Some(course)) = self.tasks.get_mut(&task) else { return };
        if let LogEvent::BranchEnded { failure, .. } = &record.event {
            let end = match failure {
                None => End::Succeeded,
                Some((FailureKind::Cancelled, _)) => End::Cancelled,
                Some(_) => End::Failed,
            };
            if let Some(course) = self.tasks.insert(task, None).flatten() {
                self.end(course, at, end);
            }
            return;
        }
        // While it waits for others it says nothing, or that all of them are cut short.
        let is_cut = matches!(
            record.event,
            LogEvent::CommandFailed(_) | LogEvent::Failed(_) | LogEvent::Cancelled
        );
        if !is_cut {
            let children = std::mem::take(&mut course.children);
            self.end_children(children);
        }
        let mut scene = Scene { rows: &mut self.rows, gap: self.gaps.last() };
        if let Some(Some(course)) = self.tasks.get_mut(&task) {
            course.tell(&mut scene, record, at);
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

    /// A task has ended, and all that it has waited for.
    fn end(&mut self, mut course: Course, at: Duration, end: End) {
        let mut inner = std::mem::take(&mut course.children);
        let mut courses = vec![(course, at, end)];
        while let Some(child) = inner.pop() {
            if let Some(mut course) = self.tasks.get_mut(&child).and_then(Option::take) {
                inner.append(&mut course.children);
                let (at, end) = if end == End::Unknown { (at, end) } else { course.last() };
                courses.push((course, at, end));
            }
        }
        for (course, at, end) in courses.into_iter().rev() {
            course.end(&mut Scene { rows: &mut self.rows, gap: self.gaps.last() }, at, end);
        }
    }
}
