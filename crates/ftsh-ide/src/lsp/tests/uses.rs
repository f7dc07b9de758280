//! Scripts with functions and channels in other files.

use std::collections::HashMap;
use std::fs;

use tempfile::TempDir;

use super::*;
use crate::lint::UnknownPrograms;
use crate::lsp::rename_files::{SharedFunction, Workspace};
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

/// Returns the changed places of a renaming with the names of their files, or the reason against the
/// renaming.
fn renamed(text: &str, files: &[(&str, &str)], new: &str) -> String {
    let (directory, document, place) = script(text, files);
    let open = HashMap::from([(document.uri.to_string(), script_copy(&document))]);
    fs::write(document.path().expect("a path"), document.text()).expect("a file");
    let workspace = Workspace { open: &open, root: directory.path() };
    let function = SharedFunction::at(&document, place, &workspace);
    let edit = match function {
        Ok(Some(function)) => function.rename(new),
        Ok(None) => return "alone".into(),
        Err(reason) => Err(reason),
    };
    let place = directory.path().canonicalize().expect("a path").display().to_string();
    #[expect(clippy::mutable_key_type, reason = "the protocol's own type")]
    let changes = match edit {
        Ok(edit) => edit.changes.unwrap_or_default(),
        Err(reason) => return reason.replace(&(place + "/"), ""),
    };
    let mut lines: Vec<_> = changes
        .into_iter()
        .map(|(uri, edits)| {
            let name = uri.as_str().rsplit('/').next().unwrap_or_default().to_owned();
            let places: Vec<_> = edits.iter().map(|edit| shown(edit.range)).collect();
            format!("{name} {}", places.join(" "))
        })
        .collect();
    lines.sort();
    lines.join(", ")
}

fn script_copy(document: &Document) -> Document {
    Document::new(document.uri.clone(), Some(1), document.text().to_owned())
}

#[test]
fn functions_are_renamed_in_all_files_that_use_them() {
    let library = "function greet\n a\nend\nfunction twice\n greet\n greet\nend";
    let files = [
        ("lib.ftsh", library),
        ("other.ftsh", "use sub.ftsh\ngreet\ngreeting"),
        ("sub.ftsh", "use lib.ftsh\nfunction both\n greet\n twice\nend"),
        ("apart.ftsh", "function greet\n b\nend\ngreet"),
    ];
    let all =
        "a%20script.ftsh 2:1-6, lib.ftsh 1:10-15 5:2-7 6:2-7, other.ftsh 2:1-6, sub.ftsh 3:2-7";
    assert_eq!(renamed("use lib.ftsh\ngr‸eet", &files, "hello"), all);
    assert_eq!(
        renamed("use lib.ftsh\ngr‸eet", &files, "both"),
        "sub.ftsh: `both` is a command of the script already"
    );
    assert_eq!(renamed("function own\nend\now‸n", &files, "hello"), "alone");
    let sourcing = [("lib.ftsh", library), ("other.ftsh", "use lib.ftsh\nsource x\ngreet")];
    assert_eq!(
        renamed("use lib.ftsh\ngr‸eet", &sourcing, "hello"),
        "other.ftsh sources other scripts with the same names"
    );
    let broken = [("lib.ftsh", library), ("other.ftsh", "use lib.ftsh\nif true\ngreet")];
    assert_eq!(renamed("use lib.ftsh\ngr‸eet", &broken, "hello"), "other.ftsh has errors");
}
