//! Comparison of plain lines with the grammar.

#![allow(clippy::disallowed_methods, reason = "the test reads texts of the repository")]

use std::fs;
use std::path::Path;

use super::super::{KnownNames, reader};

/// Compares trees with their spans, or errors, of both parsers.
fn same(text: &str) {
    let quickly = reader::script(text, KnownNames::default());
    let by_grammar = reader::script_by_grammar(text);
    assert_eq!(format!("{quickly:?}"), format!("{by_grammar:?}"), "of:\n{text}");
}

/// Returns all texts in UTF-8 below some folders.
fn texts() -> Vec<String> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut folders: Vec<_> = ["fuzz/corpus", "tests/scripts", "examples", "lab/scripts", "docs"]
        .map(|it| root.join(it))
        .into();
    let mut texts = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            if entry.file_type().expect("its type").is_dir() {
                folders.push(entry.path());
            } else {
                texts.extend(fs::read_to_string(entry.path()).ok());
            }
        }
    }
    texts
}

#[test]
fn every_text_has_the_same_tree_by_the_grammar_alone() {
    let texts = texts();
    assert!(texts.len() > 300, "{} texts", texts.len());
    for text in &texts {
        same(text);
        // Each line is parsed alone as well, because errors elsewhere hide nothing then.
        text.lines().filter(|line| line.len() < 1000).for_each(same);
    }
}

#[test]
fn nearly_plain_lines_have_the_same_tree() {
    let starts = [
        "", "a", "end", "else", "finally", "local", "channel", "x=", "if=", "1=", "try", "export",
        "é", "\n\n\t", "; ",
    ];
    let parts = [
        "",
        " ",
        "a",
        " b",
        ".add.",
        ".add. 1",
        "$x",
        "$1",
        "$",
        "\"",
        "\"\"",
        "\"a$b c\"",
        "'",
        "'a'",
        "'a\\'b'",
        "=",
        "=b",
        "#",
        " #c",
        ",",
        " (a)",
        "\r",
        "\\",
        "\\\n",
        "\n",
        ";",
        "|",
        " | b",
        " | if a",
        " | break",
        " || b",
        " |& b",
        " > f",
        " 2>> f",
        " 2>&1",
        " 2>&",
        " >&2",
        " << E",
        " <<< a",
        " < f",
        " > ",
        " -> v",
        " 12> f",
        "~",
        "*",
        "``",
        "é",
        "\u{feff}",
    ];
    for start in starts {
        for first in parts {
            same(&format!("{start} {first}\nend"));
            for second in parts {
                same(&format!("{start}{first}{second}"));
            }
        }
    }
}

#[test]
fn heads_of_try_have_the_same_tree() {
    let parts = [
        "",
        " 5",
        " for",
        " or",
        " 3 times",
        " 1 time",
        " for 2 minutes",
        " or 10 s",
        " each 1 h",
        " every 5",
        " every 0 s",
        " every 07 seconds",
        " 0 times",
        " for 1.5 h",
        " $n times",
        " 1h30m",
        " 5 parsecs",
        " atomic",
        " same input",
        " no leftovers",
        " backoff full",
        " seconds",
        " 1234567890 s",
        "; a",
        " # c",
        "\t",
        " 5 times5",
    ];
    for first in parts {
        for second in parts {
            for third in parts {
                same(&format!("try{first}{second}{third}\nend"));
            }
        }
    }
}
