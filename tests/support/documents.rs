//! Files of the documents.

use std::fs;
use std::path::Path;

/// Returns the paths of the Markdown files in a folder and its subfolders, sorted.
pub(crate) fn below(folder: &str) -> Vec<String> {
    let mut pages = Vec::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let Ok(entries) = fs::read_dir(root.join(folder)) else { return pages };
    for entry in entries {
        let entry = entry.expect("an entry");
        let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
        let path = entry.path();
        if path.is_dir() {
            pages.extend(below(&name));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(name);
        }
    }
    pages.sort();
    pages
}

/// Replaces the parts of an output that differ from run to run: dates, process ids, tasks and durations.
pub(crate) fn timeless(output: &str) -> String {
    let replaced = [
        (r"(?m)^\d{4}-\d\d-\d\d [\d:.]+ \[\d+\]", "NOW"),
        (r"(attempts?|times) in \d[^)\n:]*", "$1 in TIME"),
        (r"\(task \d+\)", "(task N)"),
        (r"(?m)^ftsh \d+\.\d+\.\d+$", "ftsh VERSION"),
    ];
    replaced.into_iter().fold(output.to_owned(), |output, (pattern, with)| {
        let pattern = regex::Regex::new(pattern).expect("a pattern");
        pattern.replace_all(&output, with).into_owned()
    })
}
