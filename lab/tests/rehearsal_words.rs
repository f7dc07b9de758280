//! What is said of commands and files before a rehearsal, and of what never came in one.

use std::path::Path;

use crate::rehearse::{folder, lab};

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).expect("a file");
}

/// What a rehearsal prints, and what it complains of.
fn both(folder: &Path, args: &[&str]) -> (String, String) {
    let output = lab(folder, args);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn comments_stand_where_words_begin() {
    let folder = folder("a\nb '#1'\n");
    let models = "# of both\na takes 3s   # slow\n#\n\
                  b '#1' takes 4 s # 'quoted\nb prints \"x # y\" takes 9s#\n";
    write(folder.path(), "models", &models.replace("takes 9s#", "takes 9s"));
    let args = ["--commands", "models", "--trials", "1", "--csv", "--as-it-is"];
    let (printed, said) = both(folder.path(), &args);
    assert!(printed.contains(",7.000000,") || printed.contains(",7,"), "{printed}{said}");
    write(folder.path(), "models", models);
    let (_, said) = both(folder.path(), &args);
    assert!(said.contains("models:5: `takes 9s#`"), "inside a word it is no comment: {said}");
    write(folder.path(), "models", "a # takes 3s\n");
    let (_, said) = both(folder.path(), &args);
    assert!(said.contains("models:1: what does `a` do?"), "{said}");
}
