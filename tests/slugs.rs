//! Explanations of slugs: the first program of each causes the message, the second one is right.

use std::collections::BTreeSet;

use ftsh_machine::FailureKind;
use ftsh_syntax::slug::{Severity, Slug};

use crate::support::run::Finished;
use crate::support::{FTSH, Ftsh};
use crate::tidy::assert_none;

/// Messages without a program: no program causes one on purpose within the time of a test.
const WITHOUT_PROGRAM: [Slug; 5] =
    [Slug::Conflict, Slug::Engine, Slug::Internal, Slug::ManyBranches, Slug::NoMemory];

/// Builds a run of a program that can start the shell itself.
fn run(program: &str) -> Ftsh {
    let folder = FTSH.rsplit_once('/').expect("a path").0;
    let run = Ftsh::script(program).env("PATH", format!("{folder}:/usr/bin:/bin"));
    let channels = run.path("channels");
    run.env("FTSH_CHANNELS", channels)
}

/// Returns the slugs in messages.
fn in_messages(messages: &str) -> BTreeSet<String> {
    let heads = messages.lines().filter_map(|line| {
        if let Some(mistake) = line.strip_prefix("ftsh: ") {
            // A mistake of the command line.
            return Some(mistake.strip_suffix(']')?.rsplit_once(" [")?.1.to_owned());
        }
        let rest = line.strip_prefix("error[").or_else(|| line.strip_prefix("warning["))?;
        Some(rest.split_once("]: ")?.0.to_owned())
    });
    heads.collect()
}

/// Returns the slugs of the messages that a program causes: when the shell checks the program, or
/// else when another script starts the shell.
fn found(program: &str) -> (BTreeSet<String>, Finished) {
    let checked = run(program).options(["-n"]).run();
    let slugs = in_messages(&checked.errors());
    if !slugs.is_empty() {
        return (slugs, checked);
    }
    let finished = run(program).run();
    (in_messages(&finished.errors()), finished)
}

#[test]
fn programs_cause_errors_and_warnings() {
    let mut problems = Vec::new();
    let with_program = Slug::ALL.iter().filter(|slug| !WITHOUT_PROGRAM.contains(slug));
    for slug in with_program.filter(|slug| slug.severity() != Severity::Failure) {
        let (slugs, finished) = found(slug.explanation().program);
        if slugs != BTreeSet::from([slug.name().to_owned()]) {
            problems.push(format!("{slug}: {slugs:?}\n{}", finished.story()));
        }
    }
    assert_none(&problems);
}

#[test]
fn programs_cause_failures() {
    let mut problems = Vec::new();
    for slug in Slug::ALL.iter().filter(|slug| slug.severity() == Severity::Failure) {
        let program = slug.explanation().program;
        if program.is_empty() {
            assert!(WITHOUT_PROGRAM.contains(slug), "{slug}");
            continue;
        }
        let tag = format!(" [{slug}]");
        if !FailureKind::NAMES.contains(&slug.name()) {
            let finished = run(program).run();
            if !finished.errors().lines().any(|line| line.ends_with(&tag)) {
                problems.push(format!("{slug}: {}", finished.story()));
            }
            continue;
        }
        // A program may print the kind itself, or have another shell report the failure.
        let caught = "try\n    source program.ftsh\ncatch\n    echo $error_kind\nend\n";
        let finished = run(caught).file("program.ftsh", program).run();
        let is_printed = finished.text().lines().any(|line| line == slug.name());
        if !is_printed && !finished.errors().lines().any(|line| line.ends_with(&tag)) {
            problems.push(format!("{slug}: {}", finished.story()));
        }
    }
    assert_none(&problems);
}

#[test]
fn corrected_programs_are_right() {
    let mut problems = Vec::new();
    for slug in Slug::ALL.iter().filter(|slug| !WITHOUT_PROGRAM.contains(slug)) {
        let explanation = slug.explanation();
        let checked = run(explanation.corrected).options(["-n"]).run();
        if !checked.warnings().is_empty() {
            problems.push(format!("{slug}: {}", checked.story()));
        }
        if explanation.runs {
            let finished = run(explanation.corrected).run();
            if finished.status.and_then(|status| status.code()) != Some(0) {
                problems.push(format!("{slug}: {}", finished.story()));
            }
        }
    }
    assert_none(&problems);
}

#[test]
fn explain_prints_a_paragraph() {
    for slug in ["subshell", "error[subshell]"] {
        let explained = Ftsh::new().args(["--explain", slug]).success();
        let text = explained.text();
        assert!(
            text.starts_with(
                "error[subshell]: Parentheses do not start a subshell.\n\n  (cd /tmp)"
            )
        );
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
    let listed = Ftsh::new().arg("--explain").success().text();
    for slug in Slug::ALL {
        assert!(listed.lines().any(|line| line.starts_with(&format!("  {slug} "))), "{slug}");
    }
}

#[test]
fn an_unknown_slug_is_an_error() {
    let wrong = |slug: &str| Ftsh::new().args(["--explain", slug]);
    wrong("subshel").refused(&["no message has the slug `subshel`; did you mean `subshell`?"]);
    wrong("x-y").refused(&["no message has the slug `x-y`; `ftsh --explain` lists all slugs"]);
}
