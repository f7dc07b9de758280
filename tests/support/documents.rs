//! Files of the documents.

use std::fs;
use std::path::Path;

/// Returns the paths of the Markdown files in a folder and its subfolders, sorted.
pub fn below(folder: &str) -> Vec<String> {
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
