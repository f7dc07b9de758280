//! Parts of documents and editors' files that are generated from the rows of the language.
//!
//! A part stands between a line with `generated: NAME` and a line with `end of generated`. In JSON, which
//! has no comments, a part is the words between `(?:` and `)` in the line after `"comment": "generated: NAME"`.
//! `just generate` writes the parts.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use ftsh_machine::builtins;
use ftsh_machine::functions;
use ftsh_syntax::backoff;
use ftsh_syntax::duration::Unit;
use ftsh_syntax::vocabulary::{
    CLAUSES, OPERATOR_ROWS, OPERATORS, PREFIX_LEVEL, RULES, TIMES, loop_clauses,
};

/// Variable that has files written instead of compared.
const WRITE: &str = "FTSH_TEST_GENERATE";

/// Files with generated parts.
const FILES: [&str; 5] = [
    "README.md",
    "docs/language.md",
    "editors/vim/syntax/ftsh.vim",
    "editors/vscode/syntaxes/ftsh.tmLanguage.json",
    "editors/tree-sitter/grammar.js",
];

#[test]
fn generated_parts_are_up_to_date() {
    let mut stale = Vec::new();
    for file in FILES {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        let text = fs::read_to_string(&path).expect("a file with generated parts");
        let generated =
            if file.contains("vscode") { in_json(&text) } else { regenerated(file, &text) };
        if generated == text {
            continue;
        }
        if std::env::var_os(WRITE).is_some() {
            fs::write(&path, generated).expect("a file to write");
        } else {
            stale.push(file);
        }
    }
    assert!(stale.is_empty(), "generated parts of {stale:?} are stale: run `just generate`");
}

/// Returns the text with all of its parts generated.
fn regenerated(file: &str, text: &str) -> String {
    let (mut out, mut is_inside) = (String::new(), false);
    for line in text.lines() {
        is_inside &= !line.contains("end of generated");
        if !is_inside {
            out.push_str(line);
            out.push('\n');
        }
        if let Some(name) = part_name(line) {
            out.push_str(&part(file, name));
            is_inside = true;
        }
    }
    assert!(!is_inside, "{file}: a generated part has no end");
    out
}

fn in_json(text: &str) -> String {
    let (mut out, mut name) = (String::new(), None);
    for line in text.lines() {
        let words = name.map(words).map(|words| alternatives(&words, "|").replace('\\', "\\\\"));
        match words.zip(line.split_once("(?:")) {
            Some((words, (before, after))) => {
                let (_, after) = after.split_once(')').expect("alternatives end with `)`");
                let _ = writeln!(out, "{before}(?:{words}){after}");
            }
            None => {
                out.push_str(line);
                out.push('\n');
            }
        }
        name = part_name(line);
    }
    out
}

fn part_name(line: &str) -> Option<&str> {
    let (_, name) = line.split_once("generated: ")?;
    Some(name.trim_end_matches([' ', '-', '>', '"', ',']))
}

fn part(file: &str, name: &str) -> String {
    match (file, name) {
        (_, "functions") => functions_table(),
        (_, "builtins") => builtins_table(),
        (_, "operators") => operators_table(),
        ("README.md", "policies") => backoff::summary_table(),
        (_, "policies") => backoff::reference_table(),
        ("editors/tree-sitter/grammar.js", "words") => tree_sitter_words(),
        (_, "words") => vim_words(),
        _ => panic!("{file}: nothing generates the part `{name}`"),
    }
}

/// Returns the words that a grammar of an editor needs, each with `\s+` between its parts.
fn words(name: &str) -> Vec<String> {
    let phrases = |head: &str| {
        let own = loop_clauses().filter(|(owner, _)| *owner == head);
        own.map(|(_, words)| words.join(r"\s+")).collect()
    };
    let policies = backoff::Kind::ALL.map(backoff::Kind::name);
    let owned = |words: Vec<&str>| words.into_iter().map(str::to_owned).collect::<Vec<_>>();
    match name {
        "functions" => owned(functions::all().map(|it| it.signature.name).collect()),
        "builtins" => owned(builtins::names().collect()),
        "operators" => {
            let operators = OPERATORS.into_iter().filter(|operator| *operator != ".succeeds.");
            operators.map(|operator| operator.trim_matches('.').to_owned()).collect()
        }
        "try-words" => {
            owned(CLAUSES.into_iter().chain(TIMES).chain(policies).chain(Unit::names()).collect())
        }
        "channel-words" => owned(RULES.into_iter().chain(Unit::names()).collect()),
        "forany-clauses" => phrases("forany"),
        "forall-clauses" => phrases("forall"),
        _ => panic!("there are no words `{name}`"),
    }
}

fn alternatives(words: &[String], separator: &str) -> String {
    words.join(separator)
}

fn functions_table() -> String {
    let mut table = "| function | value | for example |\n|---|---|---|\n".to_owned();
    for function in functions::all() {
        let (call, words) = function.examples[0];
        let words: Vec<String> = words.iter().map(|word| format!("`{word:?}`")).collect();
        let signature = function.signature;
        let _ = writeln!(
            table,
            "| `{}` | {} | `{call}` is {} |",
            signature.call(),
            signature.help,
            words.join(", ")
        );
    }
    table
}

/// Sections of the reference about builtins that are not called after the builtin.
const SECTIONS: [(&str, &str); 4] =
    [("local", "functions"), ("failure", "catch"), ("giveup", "giving-up"), ("defer", "deferring")];

fn builtins_table() -> String {
    let reference = fs::read_to_string("docs/language.md").expect("the reference");
    let mut table = "| builtin | |\n|---|---|\n".to_owned();
    for builtin in builtins::all() {
        let usage: Vec<String> = builtin.usage.iter().map(|form| format!("`{form}`")).collect();
        let (name, help) = (builtin.name, builtin.help);
        let elsewhere = SECTIONS.iter().find(|(builtin, _)| *builtin == name);
        let has_section = reference.lines().any(|line| line == format!("#### {name}"));
        let section = elsewhere.map(|it| it.1).or(has_section.then_some(name));
        let more = section.map(|section| format!("; [more](#{section})")).unwrap_or_default();
        let _ = writeln!(table, "| {} | {help}{more} |", usage.join(", "));
    }
    table
}

fn operators_table() -> String {
    let mut table = "| operators | |\n|---|---|\n".to_owned();
    for row in OPERATOR_ROWS {
        let words: Vec<String> = row.words.iter().map(|word| format!("`{word}`")).collect();
        let help = if row.help.is_empty() { String::new() } else { format!("{} ", row.help) };
        let _ = writeln!(table, "| {} | {help}|", words.join(" "));
    }
    table
}

fn vim_words() -> String {
    let mut lines = String::new();
    for name in [
        "operators",
        "functions",
        "builtins",
        "try-words",
        "forany-clauses",
        "forall-clauses",
        "channel-words",
    ] {
        let words: Vec<_> = words(name).iter().map(|word| word.replace("\\s+", "\\s\\+")).collect();
        let _ =
            writeln!(lines, "let s:{} = '{}'", name.replace('-', "_"), alternatives(&words, "\\|"));
    }
    lines
}

fn tree_sitter_words() -> String {
    let quoted = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        words.join(", ")
    };
    let mut text = "const OPERATORS = [\n".to_owned();
    let mut questions = Vec::new();
    let mut levels: Vec<(u8, Vec<&str>)> = Vec::new();
    for row in OPERATOR_ROWS {
        match levels.last_mut() {
            _ if row.level == PREFIX_LEVEL => questions.extend(row.words),
            Some((level, words)) if *level == row.level => words.extend(row.words),
            _ => levels.push((row.level, row.words.to_vec())),
        }
    }
    for (level, words) in levels {
        let _ = writeln!(text, "  [{level}, {}],", quoted(&words));
    }
    let units: Vec<&str> = TIMES.into_iter().chain(Unit::names()).collect();
    let _ = write!(
        text,
        "];\nconst QUESTIONS = [\n  {},\n];\nconst UNITS = [\n  {},\n];\n",
        quoted(&questions),
        quoted(&units)
    );
    text
}
