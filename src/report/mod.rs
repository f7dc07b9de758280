//! Report about a failed script, printed at the end of a run.
//!
//! ```text
//! ftsh: mirror.ftsh:3: `wget -q http://a/index` exited with 4 after 12 s
//!   3 | wget -q "http://$mirror/index"
//!   in the `try` at line 2: 5 attempts in 3 min 2 s
//!   in `fetch`, called at line 9
//!   in the branch mirror=a at line 8
//! ```

pub mod brief;

use std::fmt::Write;
use std::time::Duration;

use ftsh_machine::outcome::{
    BranchFailure, BranchResults, Failure, FailureKind, Human, TrySummary,
};
use ftsh_machine::secrets::Secrets;
use ftsh_machine::size::MAX_REPORTED_LINES;
use ftsh_machine::trace::{INNER_STEPS, StepKind, TraceStep, place};
use ftsh_syntax::diagnostic::{excerpt, printable};
use ftsh_syntax::slug::Slug;

/// Lines of a trace: calls, branches and tries around a failure, innermost first.
const MAX_TRACE: usize = 8;
/// Lines at the end of a cut trace, from its outer end. A line above gives the number of omitted
/// lines.
const OUTER_TRACE: usize = MAX_TRACE - INNER_STEPS - 1;

/// Renders the report about a failure, with secrets hidden. Each line ends in a newline.
/// | The report names the command, its place, the enclosing tries and the number of attempts.
pub fn render(failure: &Failure, secrets: &Secrets) -> String {
    // Writing to a string can't fail.
    let file = printable(failure.file());
    // A caller with a missing argument needs no line of the script.
    let is_usage = failure.slug == Slug::Usage;
    let place = if is_usage { file } else { format!("{file}:{}", failure.line) };
    let mut text = format!("ftsh: {place}: {}\n", message(failure));
    let source = secrets.hide(failure.source.line_text(failure.line).trim());
    // The source line is omitted if only quotes differ from the message. A line from another file
    // than the caller's is always shown.
    let is_news = source.replace('"', "'") != failure.command || is_elsewhere(failure);
    if !source.is_empty() && is_news && !is_usage {
        let _ = writeln!(text, "  {} | {}", failure.line, excerpt(&source));
    }
    if failure.kind == FailureKind::Lost && failure.tries.is_empty() {
        text += "  nobody knows whether it was done; a `try` around it would have done it again\n";
    }
    for line in trace(failure) {
        let _ = writeln!(text, "  {line}");
    }
    let printed = failure.last_lines(MAX_REPORTED_LINES);
    write_printed(&mut text, &printed, secrets);
    if let Some(branches) = &failure.branches {
        write_branches(&mut text, branches, secrets);
    }
    if let Some(earlier) = &failure.earlier {
        // Scripts often fail with `failure "…: $error"`.
        if !failure.message.contains(&earlier.message) {
            let way = earlier.way(failure.file(), own_steps(earlier, failure));
            let _ = writeln!(text, "  before that: {way}: {}", printable(&earlier.summary()));
        }
        // The lines of a failure that was cut short are those of the earlier one.
        if printed.is_empty() {
            write_printed(&mut text, &earlier.last_lines(MAX_REPORTED_LINES), secrets);
        }
    }
    // Some secrets become known only after the failure.
    secrets.hide_in(&mut text);
    text
}

/// Writes the last lines of a failed attempt whose output was discarded.
fn write_printed(text: &mut String, lines: &[String], secrets: &Secrets) {
    if !lines.is_empty() {
        *text += "  it had printed last:\n";
    }
    for line in lines {
        let _ = writeln!(text, "    {}", excerpt(&secrets.hide(line)));
    }
}

/// Writes the failed branches of a `forall` that continued after a failure.
fn write_branches(text: &mut String, branches: &BranchResults, secrets: &Secrets) {
    for BranchFailure { word, story, printed } in &branches.reported {
        let _ = writeln!(text, "  {}: {}", printable(word), printable(story));
        write_printed(text, printed, secrets);
    }
    let listed = branches.reported.len() as u64;
    if let Some(more @ 1..) = branches.failed.checked_sub(listed)
        && listed > 0
    {
        let noun = if more == 1 { "branch" } else { "branches" };
        let _ = writeln!(text, "  and {more} {noun} more");
    }
}

/// True if the failure lies in another file than the outermost call or branch around the failed
/// command.
fn is_elsewhere(failure: &Failure) -> bool {
    failure.trace.steps().last().is_some_and(|outermost| outermost.file != *failure.file())
}

/// Returns the steps of an earlier failure without the outer steps shared with the later failure.
fn own_steps<'f>(earlier: &'f Failure, later: &Failure) -> &'f [TraceStep] {
    let (own, theirs) = (earlier.trace.steps(), later.trace.steps());
    let is_same = |(one, other): &(&TraceStep, &TraceStep)| {
        (&one.kind, &one.file, one.line) == (&other.kind, &other.file, other.line)
    };
    let common = own.iter().rev().zip(theirs.iter().rev()).take_while(is_same).count();
    &own[..own.len() - common]
}

/// Returns the lines for the calls, branches and tries around a failure.
fn trace(failure: &Failure) -> Vec<String> {
    let mut tries = failure.tries.iter();
    let mut passed = 0;
    let mut lines = Vec::new();
    for step in failure.trace.steps() {
        let inside = step.tries.saturating_sub(passed);
        passed += inside;
        lines.extend(tries.by_ref().take(inside).map(|tried| attempts(tried, failure)));
        lines.push(describe(step, failure));
    }
    lines.extend(tries.map(|tried| attempts(tried, failure)));
    let left_out = failure.trace.left_out() + lines.len().saturating_sub(MAX_TRACE) as u64;
    if left_out > 0 {
        // Another omitted line makes room for the line with the count.
        let outer = lines.split_off(lines.len() - OUTER_TRACE);
        lines.truncate(INNER_STEPS);
        lines.push(format!("… {} more …", left_out + 1));
        lines.extend(outer);
    }
    lines
}

fn describe(step: &TraceStep, failure: &Failure) -> String {
    let place = place(&step.file, step.line, failure.file());
    match &step.kind {
        StepKind::Function(name) => format!("in `{name}`, called at {place}"),
        StepKind::Source => format!("in the file sourced at {place}"),
        StepKind::Branch { name, word } => {
            format!("in the branch {name}={} at {place}", printable(word))
        }
    }
}

fn message(failure: &Failure) -> String {
    let message = printable(&failure.message);
    if let Some(slug) = failure.shown_slug() {
        return format!("{message} [{slug}]");
    }
    match failure.elapsed {
        Some(elapsed)
            if elapsed >= Duration::from_secs(1)
                && matches!(failure.kind, FailureKind::Exit | FailureKind::Signal) =>
        {
            format!("{message} after {}", Human(elapsed))
        }
        _ => message,
    }
}

fn attempts(tried: &TrySummary, failure: &Failure) -> String {
    let place = place(&tried.file, tried.line, failure.file());
    let noun = if tried.attempts == 1 { "attempt" } else { "attempts" };
    let (attempts, elapsed) = (tried.attempts, Human(tried.elapsed));
    format!("in the `try` at {place}: {attempts} {noun} in {elapsed}")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use ftsh_machine::trace::Trace;
    use ftsh_syntax::Source;

    fn failure() -> Failure {
        let text = "try 5 times\n    try 3 times\n        wget \"$url\"\n    end\nend\n";
        Failure {
            elapsed: Some(Duration::from_millis(12_300)),
            source: Arc::new(Source::new("mirror.ftsh", text)),
            line: 3,
            ..Failure::new(
                FailureKind::Exit,
                4,
                "`wget http://a` exited with 4".into(),
                "wget http://a".into(),
            )
        }
    }

    fn tried(line: u32, attempts: u64) -> TrySummary {
        let elapsed = Duration::from_millis(4200 * attempts);
        TrySummary { file: "mirror.ftsh".into(), line, attempts, elapsed }
    }

    #[test]
    fn all_is_told() {
        let elsewhere = TrySummary { file: "main.ftsh".into(), ..tried(9, 1) };
        let message = "ran out of time".into();
        let earlier = Failure { line: 1, message, tries: vec![tried(1, 5)], ..failure() };
        let failure = Failure {
            tries: vec![tried(2, 3), tried(1, 5), elsewhere.clone(), elsewhere],
            earlier: Some(Arc::new(earlier)),
            ..failure()
        };
        insta::assert_snapshot!(render(&failure, &Secrets::default()), @r#"
        ftsh: mirror.ftsh:3: `wget http://a` exited with 4 after 12.3 s
          3 | wget "$url"
          in the `try` at line 2: 3 attempts in 12.6 s
          in the `try` at line 1: 5 attempts in 21 s
          in the `try` at main.ftsh:9: 1 attempt in 4.2 s
          in the `try` at main.ftsh:9: 1 attempt in 4.2 s
          before that: line 1: ran out of time, 5 attempts in 21 s
        "#);
        let said = Failure { message: "no luck: ran out of time".into(), ..failure };
        assert!(!render(&said, &Secrets::default()).contains("before"));
    }

    #[test]
    fn calls_branches_and_tries_are_a_trace() {
        let step =
            |kind, file: &str, line, tries| TraceStep { kind, file: file.into(), line, tries };
        let branch = StepKind::Branch { name: "h".into(), word: "web\n3".into() };
        let steps = vec![
            step(StepKind::Function("fetch".into()), "mirror.ftsh", 7, 1),
            step(StepKind::Source, "main.ftsh", 4, 1),
            step(branch, "main.ftsh", 3, 2),
        ];
        let mut trace = Trace::default();
        trace.extend(steps);
        let tries = vec![tried(2, 3), tried(1, 5), tried(9, 1)];
        let failure = Failure { tries, trace, ..failure() };
        insta::assert_snapshot!(render(&failure, &Secrets::default()), @r#"
        ftsh: mirror.ftsh:3: `wget http://a` exited with 4 after 12.3 s
          3 | wget "$url"
          in the `try` at line 2: 3 attempts in 12.6 s
          in `fetch`, called at line 7
          in the file sourced at main.ftsh:4
          in the `try` at line 1: 5 attempts in 21 s
          in the branch h=web⏎3 at main.ftsh:3
          in the `try` at line 9: 1 attempt in 4.2 s
        "#);
    }

    #[test]
    fn a_long_trace_has_eight_lines() {
        let mut trace = Trace::default();
        for line in 1..=20 {
            let kind = StepKind::Function("f".into());
            trace.push(TraceStep { kind, file: "mirror.ftsh".into(), line, tries: 0 });
        }
        let failure = Failure { tries: vec![tried(2, 3)], trace, ..failure() };
        insta::assert_snapshot!(render(&failure, &Secrets::default()), @r#"
        ftsh: mirror.ftsh:3: `wget http://a` exited with 4 after 12.3 s
          3 | wget "$url"
          in `f`, called at line 1
          in `f`, called at line 2
          in `f`, called at line 3
          in `f`, called at line 4
          in `f`, called at line 5
          … 14 more …
          in `f`, called at line 20
          in the `try` at line 2: 3 attempts in 12.6 s
        "#);
    }

    #[test]
    fn what_a_failed_attempt_had_printed_is_told() {
        let output = "a\n1\n2\n\n3\x1b[3m\ntoken\nno end";
        let failure = Failure {
            tries: vec![tried(2, 3)],
            output: Some(Arc::new(output.into())),
            ..failure()
        };
        let secrets = Secrets::new(vec!["T".into()], b"");
        secrets.learn("T", b"token");
        insta::assert_snapshot!(render(&failure, &secrets), @r#"
        ftsh: mirror.ftsh:3: `wget http://a` exited with 4 after 12.3 s
          3 | wget "$url"
          in the `try` at line 2: 3 attempts in 12.6 s
          it had printed last:
            1
            2
            3�[3m
            ***
            no end
        "#);
    }

    #[test]
    fn what_is_lost_comes_with_what_would_have_helped() {
        let message = "`wget http://a` was running when the shell ended".into();
        let (kind, slug) = (FailureKind::Lost, FailureKind::Lost.slug());
        let failure = Failure { kind, code: 1, slug, message, ..failure() };
        insta::assert_snapshot!(render(&failure, &Secrets::default()), @r#"
        ftsh: mirror.ftsh:3: `wget http://a` was running when the shell ended [lost]
          3 | wget "$url"
          nobody knows whether it was done; a `try` around it would have done it again
        "#);
        let again = Failure { tries: vec![tried(2, 3)], ..failure };
        assert!(!render(&again, &Secrets::default()).contains("nobody"));
    }

    #[test]
    fn a_line_that_says_nothing_new_is_left_out() {
        let source = Arc::new(Source::new("-c", "false"));
        let (message, command) = ("`false` exited with 1".into(), "false".into());
        let failure = Failure { source, message, command, line: 1, elapsed: None, ..failure() };
        insta::assert_snapshot!(render(&failure, &Secrets::default()), @"ftsh: -c:1: `false` exited with 1");
        let nowhere = Failure { line: 7, ..failure };
        insta::assert_snapshot!(render(&nowhere, &Secrets::default()), @"ftsh: -c:7: `false` exited with 1");
    }

    #[test]
    fn terminals_are_safe() {
        let source = Arc::new(Source::new("a\x1b[1m", "echo '\x1b[2J\u{202e}' x; false"));
        let message = "`a\nb\x1b[3m` exited with 4".into();
        let text = render(&Failure { source, message, line: 1, ..failure() }, &Secrets::default());
        assert!(!text.contains(['\x1b', '\u{202e}']), "{text:?}");
        assert_eq!(text.lines().count(), 2, "{text}");
    }
}
