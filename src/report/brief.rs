//! Report about a failed command with heads before it, in one line.
//!
//! ```text
//! ftsh: rsync exited with 12 after 5 attempts in 31 s
//! ftsh: host2: ssh exited with 255 after 3 attempts in 7 s
//! ```

use std::time::Duration;

use super::write_printed;
use ftsh_machine::outcome::{Failure, FailureKind, Human, shorten};
use ftsh_machine::secrets::Secrets;
use ftsh_machine::size::MAX_REPORTED_LINES;
use ftsh_syntax::diagnostic::printable;

/// Program that runs another one whose name is that of a builtin.
const ENV: &str = "env ";

/// Renders the report about a failure as a line with a newline, with secrets hidden.
pub fn render(failure: &Failure, secrets: &Secrets) -> String {
    let mut text = "ftsh: ".to_owned();
    let name = name(&failure.command);
    let branches = failure.trace.steps().iter().filter_map(|step| step.branch());
    // The branch of `on` has the command's name.
    let mut words: Vec<_> =
        branches.map(|(_, word)| printable(word)).filter(|word| *word != name).collect();
    words.reverse();
    for word in words {
        text += &format!("{word}: ");
    }
    text += &printable(&message(failure, name));
    text += &attempts(failure);
    text.push('\n');
    let first = failure.branches.as_ref().and_then(|branches| branches.reported.first());
    let of_branch = first.map(|first| first.printed.clone());
    let lines = of_branch.unwrap_or_else(|| failure.last_lines(MAX_REPORTED_LINES));
    write_printed(&mut text, &lines, secrets);
    secrets.hide_in(&mut text);
    text
}

/// Returns the message of a failure, with the name of the command instead of all its words.
fn message(failure: &Failure, name: &str) -> String {
    if let Some(first) = failure.branches.as_ref().and_then(|branches| branches.reported.first()) {
        let (counts, _) = failure.message.split_once("; the first, ").unwrap_or_default();
        let (_, word) = first.word.split_once('=').unwrap_or_default();
        let story = match first.story.split_once(": ") {
            Some((place, story)) if place.starts_with("line ") => story,
            _ => &first.story,
        };
        return format!("{counts}; the first, {word}: {}", story.replace('`', ""));
    }
    let quoted = format!("`{}`", shorten(&failure.command));
    match failure.message.strip_prefix(&quoted) {
        Some(rest) if !failure.command.is_empty() => format!("{name}{rest}"),
        _ => failure.message.clone(),
    }
}

/// Returns the first word of a command.
fn name(command: &str) -> &str {
    let command = command.strip_prefix(ENV).unwrap_or(command);
    let quoted = command.strip_prefix('\'').and_then(|rest| rest.split('\'').next());
    quoted.unwrap_or_else(|| command.split(' ').next().unwrap_or_default())
}

/// Returns the words about attempts and time, with a blank before them.
fn attempts(failure: &Failure) -> String {
    // The outermost `try` has the most.
    let tried = failure.tries.iter().rev().find(|tried| tried.attempts > 1);
    match (tried, failure.elapsed) {
        (Some(tried), _) => {
            let has_advice =
                failure.kind == FailureKind::NotFound && failure.message.contains("; ");
            let after =
                if has_advice || failure.message.contains(" after ") { "," } else { " after" };
            format!("{after} {} attempts in {}", tried.attempts, Human(tried.elapsed))
        }
        (None, Some(elapsed))
            if elapsed >= Duration::from_secs(1)
                && matches!(failure.kind, FailureKind::Exit | FailureKind::Signal) =>
        {
            format!(" after {}", Human(elapsed))
        }
        (None, _) => String::new(),
    }
}
