//! The scripts that the laboratory's clients run.

use ftsh_ide::lint::{UnknownPrograms, lint};
use ftsh_syntax::backoff::Policy;

#[test]
fn the_scripts_are_ones_that_one_would_write() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let text = std::fs::read_to_string(entry.path()).expect("text");
        let script = ftsh_syntax::parse(&entry.path().display().to_string(), &text);
        let script = script.unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
        assert_eq!(
            lint(&script, &Policy::default(), &UnknownPrograms),
            [],
            "{}",
            entry.path().display()
        );
        assert!(text.starts_with("#!/usr/bin/ftsh\n"));
        count += 1;
    }
    assert_eq!(count, 18);
}
