//! `why`: the last failure at the prompt with its attempts.

use std::fmt::Write;
use std::time::Duration;

use unicode_width::UnicodeWidthStr;

use super::story::{AttemptStory, Story, TryStory};
use ftsh_ide::help::fill_hanging;
use ftsh_machine::outcome::{Failure, Human, TrySummary, shorten};
use ftsh_machine::secrets::Secrets;
use ftsh_machine::time::Time;
use ftsh_machine::trace::place;
use ftsh_syntax::diagnostic::printable;

/// Name of the command.
pub(super) const COMMAND: &str = "why";

/// Hint for users who may not know the command.
pub(super) const HINT: &str = "`why` lists each attempt";

/// Maximum number of tries whose attempts are listed.
const MAX_TRIES: usize = 3;

/// A statement that failed or was interrupted.
pub(super) struct LastFailure {
    /// Input of the statement.
    pub statement: String,
    /// Times of its beginning and its end.
    pub began: Time,
    pub ended: Time,
    /// Report of the failure.
    pub report: String,
    /// Failure; none after an interrupt.
    pub failure: Option<Failure>,
    pub story: Story,
}

impl LastFailure {
    /// Renders the explanation for a terminal with `columns`, without secrets.
    pub(super) fn render(&self, now: Time, columns: usize, secrets: &Secrets) -> String {
        let when = ago(now - self.ended);
        let statement = secrets.hide(self.statement.trim());
        let mut text = format!("{when}: {}\n", printable(&shorten(&statement)));
        text += self.report.strip_prefix("ftsh: ").unwrap_or(&self.report);
        let tries = self.tries();
        for it in tries.iter().take(MAX_TRIES) {
            self.attempts(&mut text, it);
        }
        if tries.len() > MAX_TRIES {
            text += "  … more tries left out …\n";
        }
        if let Some(failure) = &self.failure {
            let slug = failure.slug;
            let _ = writeln!(text, "`help {slug}` explains this kind of failure.");
        }
        secrets.hide_in(&mut text);
        text.lines().map(|line| hanging(line, columns)).collect()
    }

    /// Returns the tries whose attempts explain the failure.
    fn tries(&self) -> Vec<&TryStory> {
        let Some(failure) = &self.failure else { return self.story.open().collect() };
        let earlier = failure.earlier.iter().flat_map(|it| &it.tries);
        let reported: Vec<&TrySummary> = failure.tries.iter().chain(earlier).collect();
        let mut tries: Vec<&TryStory> =
            reported.iter().filter_map(|it| self.story.find(it)).collect();
        tries.dedup_by(|a, b| std::ptr::eq(*a, *b));
        let has_branches = failure.branches.as_ref().is_some_and(|it| !it.reported.is_empty());
        if tries.is_empty() && has_branches {
            return self.story.failed().iter().collect();
        }
        tries
    }

    fn attempts(&self, text: &mut String, it: &TryStory) {
        let place = place(&it.file, it.line, super::NAME);
        let word = it.word.as_ref().map(|word| format!("{}, ", printable(word)));
        let _ = writeln!(text, "{}the `try` at {place}:", word.unwrap_or_default());
        let mut before = None;
        for attempt in &it.first {
            self.attempt(text, attempt, &mut before);
        }
        let left_out = it.count.saturating_sub((it.first.len() + it.last.len()) as u64);
        if left_out > 0 {
            let noun = if left_out == 1 { "attempt" } else { "attempts" };
            let _ = writeln!(text, "  … {left_out} {noun} left out …");
            before = None;
        }
        for attempt in &it.last {
            self.attempt(text, attempt, &mut before);
        }
    }

    fn attempt<'a>(&self, text: &mut String, it: &'a AttemptStory, before: &mut Option<&'a str>) {
        let failure = it.failure.as_deref();
        let what = match failure {
            None if self.failure.is_none() => "in progress".into(),
            None if it.delay.is_some() => "failed".into(),
            None => "canceled with the enclosing structure".into(),
            Some(_) if failure == *before => "the same".into(),
            Some(failure) => printable(failure),
        };
        *before = failure;
        let at = Human(it.at - self.began);
        let _ = write!(text, "  attempt {} after {at}: {what}", it.number);
        if let Some(delay) = it.delay {
            let _ = write!(text, "; then {} of waiting", Human(delay));
        }
        text.push('\n');
    }
}

/// Formats a time that has passed, in whole seconds.
fn ago(duration: Duration) -> String {
    match duration.as_secs() {
        0 => "just now".into(),
        seconds => format!("{} ago", Human(Duration::from_secs(seconds))),
    }
}

/// Wraps a line at the width of the terminal, with a hanging indent.
fn hanging(line: &str, columns: usize) -> String {
    if line.width() < columns {
        return format!("{line}\n");
    }
    let indent = &line[..line.len() - line.trim_start().len()];
    fill_hanging(line, indent, &format!("{indent}    "), columns)
}
