//! Directories of other owners.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::PathBuf;

use super::{NOBODY, PASSED, assert_clean, begin, is_root, run_as_nobody, scratch, sh};

#[test]
fn directories_of_other_owners_are_committed() {
    if !is_root() {
        return;
    }
    let scratch = scratch();
    let directory = scratch.path().join("it");
    fs::create_dir_all(directory.join("sub")).expect("a directory");
    for name in ["own", "gone", "sub/own"] {
        fs::write(directory.join(name), "old").expect("a file");
        chown(directory.join(name), Some(NOBODY), Some(NOBODY)).expect("an owner");
    }
    chown(directory.join("sub"), Some(NOBODY), Some(NOBODY)).expect("an owner");
    fs::set_permissions(&directory, Permissions::from_mode(0o777)).expect("permissions");
    let passed = directory.to_str().expect("a name");
    run_as_nobody("owners::committed", scratch.path(), passed);
    // The test as nobody made this file, unless overlays are forbidden.
    if directory.join("new").exists() {
        assert_eq!(fs::read_to_string(directory.join("sub/own")).expect("a file"), "oldx\n");
        assert!(directory.join("made").is_dir() && !directory.join("gone").exists());
    }
}

/// Body of the process of another user, and no test otherwise.
#[test]
fn committed() {
    let directory = std::env::var_os(PASSED).map(PathBuf::from).unwrap_or_default();
    if !directory.is_absolute() {
        return;
    }
    for commands in ["echo x > new", "echo x >> own", "mkdir made", "rm gone", "echo x >> sub/own"]
    {
        let Some(attempt) = begin(&[&directory]) else { return };
        assert_eq!(sh(&attempt, &directory, commands), 0);
        let _ = attempt.commit().expect(commands);
        assert_clean(&directory);
    }
}
