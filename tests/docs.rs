//! Scripts in the documents are correct, and those of the reference do what the text says.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use ftsh_machine::FailureKind;

use crate::support::{Ftsh, documents, expectations};

/// Documents with scripts outside of `docs/`.
const ROOT_DOCUMENTS: [&str; 2] = ["README.md", "ARCHITECTURE.md"];

/// Pages whose scripts are wrong on purpose. `tests/slugs.rs` runs the scripts.
const ERRORS: [&str; 4] = [
    "docs/reference/errors-in-scripts.md",
    "docs/reference/errors-of-the-command-line.md",
    "docs/reference/failures.md",
    "docs/reference/warnings.md",
];

/// A block of a document: its line, the words after its language at its head, and its text.
pub(crate) struct Example {
    pub line: usize,
    pub label: String,
    pub text: String,
}

/// Returns the scripts of a document.
pub(crate) fn examples(document: &str) -> Vec<Example> {
    blocks(document, "ftsh")
}

/// Returns the blocks of a language in a document.
pub(crate) fn blocks(document: &str, language: &str) -> Vec<Example> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(document);
    let text = fs::read_to_string(path).expect("a document");
    let mut examples = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(label) = line.strip_prefix("```") else { continue };
        let text: String = lines
            .by_ref()
            .map(|(_, line)| line)
            .take_while(|line| *line != "```")
            .flat_map(|line| [line, "\n"])
            .collect();
        if let Some(label) = label.strip_prefix(language) {
            let label = label.trim().to_owned();
            examples.push(Example { line: number + 1, label, text });
        }
    }
    examples
}

#[test]
fn the_scripts_of_the_documents_are_right() {
    let mut count = 0;
    let pages =
        documents::below("docs").into_iter().filter(|page| !ERRORS.contains(&page.as_str()));
    for document in pages.chain(ROOT_DOCUMENTS.map(str::to_owned)) {
        for Example { line, label, text } in examples(&document) {
            count += 1;
            if label == "error" {
                Ftsh::script(&text).options(["-n"]).stdout("").failure(2);
                continue;
            }
            // The carriers of this repository count as installed.
            let path = std::env::var("PATH").expect("a path");
            let path = format!("{}/packaging/carriers:{path}", env!("CARGO_MANIFEST_DIR"));
            let checked = Ftsh::script(&text).env("PATH", path).options(["-n"]);
            let checked = checked.stdout("").success();
            assert_eq!(checked.warnings(), "", "{document}:{line}");
        }
    }
    assert!(count > 120, "{count} scripts");
}

#[test]
fn scripts_of_the_reference_do_what_the_text_says() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let script = directory.path().join("example.ftsh");
    let mut report = String::new();
    let mut pages = ["docs/reference", "docs/guide"].map(documents::below).concat();
    pages.extend(["from-sh", "from-2003"].map(|name| format!("docs/start/{name}.md")));
    for page in pages.into_iter().filter(|page| !ERRORS.contains(&page.as_str())) {
        for Example { line, label, text } in examples(&page) {
            // Some scripts need more than a test provides.
            if label == "check" {
                continue;
            }
            fs::write(&script, &text).expect("a script");
            let troubles = expectations::run(&script);
            if !troubles.is_empty() {
                let _ = write!(report, "\n{page}:{line}\n{troubles}");
            }
        }
    }
    assert!(report.is_empty(), "{report}");
}

#[test]
fn the_reference_lists_every_kind_of_failure() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/kinds.md");
    let text = fs::read_to_string(path).expect("a document");
    let section = text.split("## Exit status").next().expect("a section");
    let kinds: Vec<_> = section
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .filter(|kind| !kind.starts_with('$'))
        .collect();
    assert_eq!(kinds, FailureKind::NAMES);
}

#[test]
fn the_lines_of_the_crontabs_are_right() {
    let mut lines = 0;
    for document in ["docs/reference/one-screen.md", "docs/operate/cron.md"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(document);
        let text = fs::read_to_string(path).expect("a document");
        for crontab in text.split("```crontab\n").skip(1).filter_map(|it| it.split("```").next()) {
            let Some((_, ours)) = crontab.split_once("SHELL=/usr/bin/ftsh\n") else { continue };
            let jobs =
                ours.lines().filter(|line| line.starts_with(|c: char| "0123456789*".contains(c)));
            for job in jobs {
                let line = job.split_whitespace().skip(5).collect::<Vec<_>>().join(" ");
                assert!(!line.replace("\\%", "").contains('%'), "{job}");
                let checked = Ftsh::command(&line.replace("\\%", "%")).options(["-n"]).success();
                assert_eq!(checked.warnings(), "", "{document}: {job}");
                lines += 1;
            }
        }
    }
    assert!(lines >= 4, "{lines} lines");
}
