//! Scripts with functions and channels in other files.

use std::fs;

use tempfile::TempDir;

use super::*;
use crate::lint::UnknownPrograms;
use crate::lsp::{definition, diagnostics, document as documents};

/// Returns a document in a directory with these files. The text has a cursor.
fn script(text: &str, files: &[(&str, &str)]) -> (TempDir, Document, Position) {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, content) in files {
        fs::write(directory.path().join(name), content).expect("a file");
    }
    let offset = text.find('‸').expect("a cursor");
    let uri = documents::file_uri(&directory.path().join("a script.ftsh")).expect("an address");
    let document = Document::new(uri, Some(1), text.replace('‸', ""));
    let place = document.range(Span::new(offset, offset)).start;
    (directory, document, place)
}

/// Returns the places of the definitions, with the names of their files.
fn defined(text: &str, files: &[(&str, &str)]) -> String {
    let (_directory, document, place) = script(text, files);
    let found = definition::definition(&document, place).into_iter().map(|it| {
        let name = it.uri.as_str().rsplit('/').next().unwrap_or_default().to_owned();
        format!("{name} {}", shown(it.range))
    });
    found.collect::<Vec<_>>().join(", ")
}

#[test]
fn definitions_are_found_in_used_files() {
    let files = [
        ("a b.ftsh", "# Greets.\nuse c.ftsh\nfunction greet\n a\nend"),
        ("c.ftsh", "channel disk at most 1\nfunction name\n return 1\nend"),
    ];
    assert_eq!(defined("use 'a b.ftsh'\ngr‸eet", &files), "a%20b.ftsh 3:10-15");
    assert_eq!(defined("use 'a b.ftsh'\nx=na‸me()", &files), "c.ftsh 2:10-14");
    assert_eq!(defined("use c.ftsh\ntry through di‸sk\n a\nend", &files), "c.ftsh 1:9-13");
    assert_eq!(defined("use c‸.ftsh", &files), "c.ftsh 1:1-1");
    assert_eq!(defined("use c.ftsh\nl‸s", &files), "");
}

#[test]
fn errors_of_used_files_are_shown_at_their_use() {
    let messages = |text: &str, files: &[(&str, &str)]| {
        let (_directory, document, _) = script(text, files);
        let found = diagnostics::publish(&document, &policy(), &UnknownPrograms).diagnostics;
        let messages = found.iter().map(|it| format!("{} {}", shown(it.range), it.message));
        messages.collect::<Vec<_>>().join(", ")
    };
    let broken = [("ok.ftsh", ""), ("broken.ftsh", "function f\n if true\nend")];
    let shown = messages("use ok.ftsh\nuse broken.ftsh‸\n", &broken);
    assert!(shown.starts_with("2:1-16 "), "{shown}");
    assert!(shown.contains("broken.ftsh, line "), "{shown}");
    let missing = messages("use none.ftsh‸", &[]);
    assert!(missing.contains("can't read `none.ftsh`"), "{missing}");
    let fine = [("lib.ftsh", "function f\n return 1\nend")];
    assert_eq!(messages("use lib.ftsh\nx=f()\necho $x‸", &fine), "");
}
