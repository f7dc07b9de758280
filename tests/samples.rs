//! Sample outputs in the documents: each block with the label `text NAME` is what
//! `tests/samples/NAME.sh` prints, or what a terminal shows of the lines in `tests/samples/NAME.keys`.
//!
//! Blocks that are not output, such as forms and lists of files, have the label `text sketch`. Times,
//! dates and process ids differ from run to run and are not compared. `just generate` writes the
//! lines that differ otherwise into the documents.

use std::fs;
use std::path::Path;
use std::thread;

use crate::docs::{Example, blocks, examples};
use crate::generated::WRITE;
use crate::support::Ftsh;
use crate::support::documents::{below, timeless};
use crate::support::home::{CTRL_D, Home};

/// Label of a block that is not output.
const SKETCH: &str = "sketch";
/// First line of a sample with numbers that differ from run to run.
const NUMBERS: &str = "# numbers vary\n";
/// Start of each sample: its standard error is part of the output, and `program NAME TEXT` makes a
/// stand-in for a program.
const PRELUDE: &str = "exec 2>&1\nPATH=$PWD/bin:$PATH\nmkdir -p bin\n\
    program() { printf '#!/bin/sh\\n%s\\n' \"$2\" > bin/$1; chmod +x bin/$1; }\n";

/// A sample output in a document.
struct Sample {
    document: String,
    name: String,
    shown: String,
    /// Last script above the output in the document.
    script: String,
}

/// Returns the pages with sample outputs. `lab/tests/readme.rs` compares those of the laboratory.
fn pages() -> impl Iterator<Item = String> {
    let mut pages = below("docs");
    pages.push("README.md".to_owned());
    pages.into_iter()
}

fn samples(document: &str) -> Vec<Sample> {
    let scripts = examples(document);
    let mut samples = Vec::new();
    for Example { line, label, text } in blocks(document, "text") {
        assert_ne!(label, "", "{document}:{line}: name the sample, or `text {SKETCH}`");
        if label == SKETCH {
            continue;
        }
        let above = scripts.iter().rfind(|script| script.line < line);
        let script = above.map(|script| script.text.clone()).unwrap_or_default();
        samples.push(Sample { document: document.to_owned(), name: label, shown: text, script });
    }
    samples
}

/// Returns the text of a file in the folder of samples.
fn source(file: &str) -> Option<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples");
    fs::read_to_string(folder.join(file)).ok()
}

fn printed(sample: &Sample) -> String {
    let Sample { document, name, script, .. } = sample;
    if let Some(keys) = source(&format!("{name}.keys")) {
        return typed(&keys);
    }
    let text = source(&format!("{name}.sh"));
    let text = text.unwrap_or_else(|| panic!("{document}: there is no tests/samples/{name}.sh"));
    let run = Ftsh::new().file("page.ftsh", script).file("sample.sh", format!("{PRELUDE}{text}"));
    run.through(["sh", "sample.sh"]).run().text()
}

/// Types lines at a prompt. Returns the text on the terminal.
fn typed(keys: &str) -> String {
    let home = Home::new();
    let mut user =
        home.prompt(&[("TERM", "dumb"), ("FTSH_BACKOFF", "fixed from 10 ms")], 100, None);
    let mut shown = "~> ".to_owned();
    for line in keys.lines() {
        user.types(&format!("{line}\n"));
        shown += &user.sees("> ");
        shown += "> ";
    }
    user.types(CTRL_D);
    user.ends();
    format!("{}\n", shown.replace("\r\n", "\n").trim_end())
}

/// Replaces the parts of a line that differ from run to run.
fn masked(line: &str, numbers_vary: bool) -> String {
    let unit = "(?:ms|s|min|h|d|milliseconds?|seconds?|minutes?|hours?|days?)";
    let time = format!(r"\b\d+(?:\.\d+)? {unit}\b");
    let replaced = [
        (format!("{time}(?: {time})*( ago)?"), "TIME$1"),
        ("just now".to_owned(), "TIME ago"),
        (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?".to_owned(), "NOW"),
        // A time of the next day comes with its date.
        (r"\bat (?:NOW|\d\d:\d\d:\d\d)".to_owned(), "at CLOCK"),
        (r"\b\d+ runs in".to_owned(), "N runs in"),
        (r"\[\d+\]|\bprocess \d+".to_owned(), "PID"),
        (r"\t\d+\.\d{3}\t\d+\.\d{3}\t".to_owned(), "\tSTART\tTIME\t"),
        (if numbers_vary { r"\d+" } else { "$^" }.to_owned(), "N"),
    ];
    replaced.into_iter().fold(timeless(line), |line, (pattern, with)| {
        let pattern = regex::Regex::new(&pattern).expect("a pattern");
        pattern.replace_all(&line, with).into_owned()
    })
}

#[test]
fn samples_show_what_is_printed() {
    let all: Vec<_> = pages().flat_map(|page| samples(&page)).collect();
    assert!(all.len() >= 15, "{} samples", all.len());
    let printed = thread::scope(|scope| {
        let threads: Vec<_> = all.iter().map(|it| scope.spawn(|| printed(it))).collect();
        threads.into_iter().map(|it| it.join().expect("a sample")).collect::<Vec<_>>()
    });
    for (sample, printed) in all.iter().zip(printed) {
        let Sample { document, name, shown, .. } = sample;
        let numbers = source(&format!("{name}.sh")).is_some_and(|it| it.starts_with(NUMBERS));
        let mask = |line: &str| masked(line, numbers);
        let all_masked = |text: &str| text.lines().map(mask).collect::<Vec<_>>();
        if std::env::var_os(WRITE).is_none() {
            assert_eq!(all_masked(&printed), all_masked(shown), "{document}: {name}: {printed}");
            continue;
        }
        // Lines that differ in times only stay, so that times in the documents are plausible ones.
        let lines = printed.lines().map(|line| {
            let old = shown.lines().find(|old| mask(old) == mask(line)).unwrap_or(line);
            format!("{old}\n")
        });
        let text = fs::read_to_string(document).expect("a document");
        let head = format!("```text {name}\n");
        let written = text.replace(&format!("{head}{shown}"), &(head + &lines.collect::<String>()));
        fs::write(document, written).expect("a document to write");
    }
}
