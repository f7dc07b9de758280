//! Inputs kept from fuzzing, and all scripts, checked against the properties of the parser.

use std::fs;
use std::path::Path;

use crate::scripts::scripts;

#[path = "../fuzz/fuzz_targets/checks.rs"]
mod checks;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn kept_fuzzing_inputs_parse_and_print() {
    let corpus = fs::read_dir(root().join("fuzz/corpus/parse")).expect("the corpus");
    let mut paths: Vec<_> = corpus.flatten().map(|entry| entry.path()).collect();
    assert!(paths.len() > 100, "{} files in the corpus", paths.len());
    for folder in ["tests/scripts", "examples", "lab/scripts"] {
        paths.extend(scripts(&root().join(folder)));
    }
    for path in paths {
        let bytes = fs::read(&path).expect("a file of the corpus");
        let checked = std::panic::catch_unwind(|| checks::parse_and_print(&bytes));
        assert!(checked.is_ok(), "{}", path.display());
    }
}
