//! Hints lead to working code.
//!
//! `tests/hints.txt` contains wrong scripts, each with a corrected one. A corrected script contains
//! all code of the hints for the wrong one, and runs. A hint without a wrong script is an error as
//! well.

use std::collections::BTreeSet;
use std::fmt::Write;

use ftsh_ide::lint::{Programs, lint};
use ftsh_syntax::backoff::Policy;
use ftsh_syntax::hint::Hint;
use ftsh_syntax::{parse, parse_bytes};

use crate::support::Ftsh;
use crate::tidy::{assert_none, code};

/// A wrong script and its correction.
#[derive(Default)]
struct Case {
    line: usize,
    wrong: String,
    /// Lines that run.
    right: String,
    /// Lines that are only checked.
    checked: String,
    input: String,
    prints: String,
}

fn cases() -> Vec<Case> {
    let mut cases = vec![Case::default()];
    for (at, line) in include_str!("hints.txt").lines().enumerate() {
        let case = cases.last_mut().expect("a case");
        let Some((mark, text)) = line.split_once(' ').or((!line.is_empty()).then_some((line, "")))
        else {
            cases.push(Case { line: at + 2, ..Case::default() });
            continue;
        };
        let lines = match mark {
            "-" => &mut case.wrong,
            "+" => &mut case.right,
            "?" => &mut case.checked,
            "<" => &mut case.input,
            ">" => &mut case.prints,
            "#" => continue,
            _ => panic!("tests/hints.txt:{}: {line}", at + 1),
        };
        writeln!(lines, "{text}").expect("a string");
    }
    cases.retain(|case| !case.wrong.is_empty());
    cases
}

/// `PATH` with a single program.
struct Curl;

impl Programs for Curl {
    fn has(&self, name: &str) -> bool {
        !["nosuch", "curll", "die"].contains(&name) && !name.starts_with("ftsh-carry-")
    }

    fn names(&self) -> Vec<String> {
        vec!["curl".to_owned()]
    }
}

/// Returns the hints for a script.
fn hints(script: &str) -> Vec<Hint> {
    if let Some(policy) = script.strip_prefix("--backoff ") {
        return policy
            .parse::<Policy>()
            .err()
            .and_then(|mistake| mistake.hint())
            .into_iter()
            .collect();
    }
    let mistakes = match parse("wrong", script) {
        Ok(script) => lint(&script, &Policy::default(), &Curl),
        Err(errors) => errors.errors,
    };
    mistakes.into_iter().filter_map(|mistake| mistake.hint).collect()
}

/// True if `right` contains the parts of `code` in order.
fn has(right: &str, code: &str) -> bool {
    let mut rest = right;
    code.split('…').map(str::trim).all(|piece| {
        let found = rest.split_once(piece);
        rest = found.map_or("", |(_, after)| after);
        found.is_some()
    })
}

#[test]
fn the_code_of_each_hint_works() {
    let mut problems = Vec::new();
    for case in cases() {
        let at = format!("tests/hints.txt:{}", case.line);
        let all = format!("{}{}", case.right, case.checked);
        let hints = hints(&case.wrong);
        if hints.is_empty() {
            problems.push(format!("{at}: no hint"));
        }
        for hint in hints {
            for code in hint.code().filter(|code| !case.wrong.contains(code)) {
                if !has(&all, code) {
                    problems.push(format!("{at}: the right script lacks `{code}` of: {hint}"));
                }
            }
        }
        if let Err(errors) = parse("right", &all) {
            problems.push(format!("{at}: {}", ftsh_syntax::diagnostic::render_all(&errors)));
        }
        if !case.right.is_empty() {
            let run = Ftsh::script(&case.right).stdin(&case.input).run();
            if run.status.and_then(|status| status.code()) != Some(0)
                || run.stdout != case.prints.as_bytes()
            {
                problems.push(format!("{at}: {}", run.story()));
            }
        }
    }
    assert_none(&problems);
}

#[test]
fn each_hint_is_tried() {
    let mut reached: BTreeSet<String> = BTreeSet::new();
    let texts = [
        // Too deep, too long, not UTF-8.
        "try\n".repeat(1001),
        format!("x={}1{}", "(".repeat(101), ")".repeat(101)),
        format!("x=1{}", " .add. 1".repeat(1001)),
    ];
    let wrong = cases().into_iter().map(|case| case.wrong).chain(texts);
    reached.extend(wrong.flat_map(|wrong| hints(&wrong)).map(|hint| hint.site().to_owned()));
    if let Err(errors) = parse_bytes("wrong", b"echo \xff") {
        reached.extend(
            errors.errors.iter().filter_map(|it| Some(it.hint.as_ref()?.site().to_owned())),
        );
    }
    let mut problems = Vec::new();
    for (name, text) in code() {
        for (at, _) in text.lines().enumerate().filter(|(_, line)| line.contains("hint!(")) {
            let site = format!("{name}:{}", at + 1);
            if !reached.contains(&site) {
                problems.push(format!("{site}: no script of tests/hints.txt is given this hint"));
            }
        }
    }
    assert_none(&problems);
}
