//! Attempts on one and several directories, and refusals.

use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{PermissionsExt, chown};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

use super::{NOBODY, assert_clean, begin, is_nobody, is_root, layers_in, scratch, sh};
use crate::{ChangeKind, CommitFailure, CoverError, Directories, Swept, leftovers, sweep};

#[test]
fn changes_as_root() {
    if is_root() {
        try_changes();
        try_several();
    }
}

#[test]
fn changes_as_nobody() {
    if is_nobody("attempts::changes_as_nobody") {
        try_changes();
        try_several();
    }
}

const CHANGES: &str = "
    echo new > new; echo more >> kept; rm gone; rm -r emptied; mkdir emptied; touch emptied/x
    ln kept link; ln -s kept symbolic; mkdir -p deep/er; echo x > deep/er/file; mv moved to";

fn plant(directory: &Path) {
    fs::create_dir_all(directory.join("emptied/inner")).expect("a directory");
    for name in ["kept", "gone", "moved", "emptied/inner/file"] {
        fs::write(directory.join(name), name).expect("a file");
    }
}

fn try_changes() {
    let scratch = scratch();
    let directory = scratch.path().join("it, with: a\\name");
    plant(&directory);
    let Some(attempt) = begin(&[&directory]) else { return };
    assert_eq!(sh(&attempt, &directory, CHANGES), 0);
    let own = attempt.translate(&directory.join("symbolic"), true).expect("a path");
    assert_eq!(fs::read_to_string(own).expect("a file"), "keptmore\n");
    assert!(!directory.join("new").exists());
    let changes = attempt.changes().expect("changes");
    let found: Vec<String> = changes
        .iter()
        .map(|change| {
            let path = change.path.strip_prefix(&directory).expect("below");
            format!("{} {}", change.kind, path.display())
        })
        .collect();
    let should_be = [
        "A deep",
        "A deep/er",
        "A deep/er/file",
        "M emptied",
        "A emptied/x",
        "D gone",
        "M kept",
        "A link",
        "D moved",
        "A new",
        "A symbolic",
        "A to",
    ];
    assert_eq!(found, should_be);
    assert_eq!(changes[0].kind, ChangeKind::Added);
    let _ = attempt.commit().expect("a commit");
    assert_clean(&directory);
    let read = |name: &str| fs::read_to_string(directory.join(name)).ok();
    assert_eq!(read("link").as_deref(), Some("keptmore\n"));
    assert_eq!(read("to").as_deref(), Some("moved"));
    assert_eq!(read("gone"), None);
    assert!(!directory.join("emptied/inner").exists());
    for name in ["kept", "link", "deep", "deep/er", "emptied", "to"] {
        let attributes = ftsh_sys::attributes(&directory.join(name)).expect("attributes");
        assert!(attributes.is_empty(), "{name}: {attributes:?}");
    }
}

fn try_several() {
    let scratch = scratch();
    let [one, two] = ["one", "two"].map(|name| scratch.path().join(name));
    plant(&one);
    plant(&two);
    let inner = two.join("emptied");
    let Some(attempt) = begin(&[&two, &one, &inner]) else { return };
    assert_eq!(layers_in(scratch.path()).len(), 2);
    assert_eq!(sh(&attempt, &one, "echo 1 > ../two/emptied/both; echo 2 > both"), 0);
    drop(attempt);
    assert_clean(&one);
    assert!(!one.join("both").exists() && !inner.join("both").exists());
    let attempt = begin(&[&one, &two]).expect("an attempt");
    assert_eq!(sh(&attempt, &one, "echo 1 > ../two/emptied/both; echo 2 > both"), 0);
    assert_eq!(attempt.commit().expect("a commit").changes, 2);
    assert_clean(&one);
    assert!(one.join("both").exists() && inner.join("both").exists());
}

#[test]
fn layers_inside_a_directory_are_hidden() {
    if !is_nobody("attempts::layers_inside_a_directory_are_hidden") {
        return;
    }
    let scratch = scratch();
    let parent = scratch.path().join("parent");
    let directory = parent.join("directory");
    plant(&directory);
    let mode = |mode| std::os::unix::fs::PermissionsExt::from_mode(mode);
    fs::set_permissions(&parent, mode(0o555)).expect("permissions");
    if let Some(attempt) = begin(&[&directory]) {
        assert_eq!(layers_in(&directory).len(), 1);
        assert_eq!(leftovers(&directory), layers_in(&directory));
        assert_eq!(sweep(&layers_in(&directory)[0]).expect("a sweep"), Swept::InUse);
        let hidden = "test \"$(ls -A | grep -c ftsh)\" = 0 && find . -delete; echo x > y";
        assert_eq!(sh(&attempt, &directory, hidden), 0);
        assert_eq!(attempt.changes().expect("changes").len(), 5);
        let _ = attempt.commit().expect("a commit");
        assert_clean(&directory);
        assert_eq!(fs::read_dir(&directory).expect("a directory").count(), 1);
    }
    fs::set_permissions(&parent, mode(0o755)).expect("permissions");
}

#[test]
fn names_like_those_of_layers_are_ordinary() {
    if !is_nobody("attempts::names_like_those_of_layers_are_ordinary") {
        return;
    }
    let scratch = scratch();
    // Layers are inside the directory where the parent accepts none.
    let parent = scratch.path().join("parent");
    let directory = parent.join("it");
    fs::create_dir_all(directory.join("sub/.ftsh-d")).expect("a directory");
    for name in [".ftsh-rc", ".ftsh-1", "sub/.ftsh-copy"] {
        fs::write(directory.join(name), "old\n").expect("a file");
    }
    for mode in [0o755, 0o555] {
        fs::set_permissions(&parent, Permissions::from_mode(mode)).expect("permissions");
        let Some(attempt) = begin(&[&directory]) else { return };
        let commands = format!(
            "echo {mode} >> .ftsh-rc; echo {mode} > .ftsh-new-{mode}; mv .ftsh-1 .ftsh-2
            mv .ftsh-2 .ftsh-1; echo {mode} >> sub/.ftsh-copy; rm -r sub/.ftsh-d; mkdir sub/.ftsh-d"
        );
        assert_eq!(sh(&attempt, &directory, &commands), 0);
        let _ = attempt.commit().expect("a commit");
        let read = |name: &str| fs::read_to_string(directory.join(name)).unwrap_or_default();
        assert!(read(".ftsh-rc").ends_with(&format!("{mode}\n")));
        assert!(read("sub/.ftsh-copy").ends_with(&format!("{mode}\n")));
        assert_eq!(read(&format!(".ftsh-new-{mode}")), format!("{mode}\n"));
    }
    fs::set_permissions(&parent, Permissions::from_mode(0o755)).expect("permissions");
    assert!(leftovers(&directory).is_empty());
}

#[test]
fn a_commit_can_be_canceled() {
    let scratch = scratch();
    let directory = scratch.path().join("it");
    plant(&directory);
    for commands in ["echo x > new; rm gone", "true"] {
        let Some(attempt) = begin(&[&directory]) else { return };
        assert_eq!(sh(&attempt, &directory, commands), 0);
        let result = attempt.commit_if(true, &mut || false);
        assert!(matches!(result, Err(CommitFailure::Canceled)), "{result:?}");
        assert_clean(&directory);
        assert!(!directory.join("new").exists() && directory.join("gone").exists());
    }
}

#[test]
fn names_of_layers_are_reserved() {
    let is_reserved =
        |name: &str| crate::entry::is_reserved(&std::ffi::CString::new(name).expect("no NUL"));
    for name in [".ftsh-0123456789abcdef-0", ".ftsh-0123456789abcdef-1f-0123456789abcdef-12"] {
        assert!(is_reserved(name), "{name}");
    }
    for name in [
        ".ftsh-",
        ".ftsh-rc",
        ".ftsh-0123456789abcde-0",
        ".ftsh-0123456789abcdef-",
        "x",
        ".ftsh-0123456789abcdef",
        ".ftsh-x-0123456789abcdef-0",
        ".ftsh-0123456789abcdeg-0",
        ".ftsh-1-2",
    ] {
        assert!(!is_reserved(name), "{name}");
    }
}

#[test]
fn files_without_permissions_are_committed() {
    if !is_nobody("attempts::files_without_permissions_are_committed") {
        return;
    }
    let scratch = scratch();
    let directory = scratch.path().join("it");
    plant(&directory);
    let Some(attempt) = begin(&[&directory]) else { return };
    let commands = "chmod 000 kept; chmod 200 moved; echo new > new; chmod 000 new emptied";
    assert_eq!(sh(&attempt, &directory, commands), 0);
    let _ = attempt.commit().expect("a commit");
    let mode = |name: &str| {
        let found = directory.join(name).symlink_metadata().expect("an entry");
        found.permissions().mode() & 0o777
    };
    assert_eq!(["kept", "moved", "new", "emptied"].map(mode), [0, 0o200, 0, 0]);
    assert_clean(&directory);
}

#[test]
fn refusals_name_the_directory() {
    let refusal = |path: &str| Directories::find(&[path]).expect_err("a refusal").to_string();
    assert_eq!(refusal("/missing"), "`/missing`: no such file or directory");
    assert_eq!(refusal("/etc/passwd"), "`/etc/passwd`: not a directory");
    assert!(refusal("/").starts_with("`/` cannot be covered"));
    let found =
        Directories::find(&["/proc/self"]).and_then(|it| crate::Attempt::begin(&it, "x").map(drop));
    assert!(
        matches!(
            found,
            Err(CoverError::Layers { .. }
                | CoverError::Mounted { .. }
                | CoverError::Directory { .. })
        ),
        "{found:?}"
    );
}

#[test]
fn hard_links_are_not_separated() {
    if !is_nobody("attempts::hard_links_are_not_separated") {
        return;
    }
    for change in ["echo x >> linked", "mv linked renamed", "chmod 600 other", "ln linked third"] {
        let scratch = scratch();
        let directory = scratch.path().join("it");
        plant(&directory);
        fs::write(directory.join("linked"), "old").expect("a file");
        fs::hard_link(directory.join("linked"), directory.join("other")).expect("a link");
        let Some(attempt) = begin(&[&directory]) else { return };
        assert_eq!(sh(&attempt, &directory, change), 0);
        let result = attempt.commit();
        assert!(matches!(result, Err(CommitFailure::Linked { .. })), "{change}: {result:?}");
        assert_clean(&directory);
        assert_eq!(fs::read_to_string(directory.join("linked")).expect("a file"), "old");
    }
    let scratch = scratch();
    let directory = scratch.path().join("it");
    plant(&directory);
    fs::hard_link(directory.join("kept"), directory.join("other")).expect("a link");
    let Some(attempt) = begin(&[&directory]) else { return };
    assert_eq!(sh(&attempt, &directory, "rm other; echo x > new"), 0);
    let _ = attempt.commit().expect("a removal separates nothing");
}

#[test]
fn an_interrupted_removal_is_finished() {
    let scratch = scratch();
    let layers = scratch.path().join(".ftsh-mark-0");
    fs::create_dir_all(layers.join(".4/inner")).expect("directories");
    assert_eq!(sweep(&layers).expect("a sweep"), Swept::Discarded);
    assert!(!layers.exists());
    // What is no part of layers stays.
    fs::create_dir_all(layers.join("4/inner")).expect("directories");
    assert!(sweep(&layers).is_err() && layers.exists());
}

#[test]
fn layers_of_other_users_are_not_swept() {
    if !is_root() {
        return;
    }
    let scratch = scratch();
    for (name, owner, mode) in [("other", NOBODY, 0o700), ("shared", 0, 0o770)] {
        let layers = scratch.path().join(format!(".ftsh-{name}-0"));
        fs::create_dir(&layers).expect("a directory");
        fs::write(layers.join("note"), "").expect("a file");
        chown(&layers, Some(owner), Some(owner)).expect("another owner");
        fs::set_permissions(&layers, Permissions::from_mode(mode)).expect("permissions");
        let error = sweep(&layers).expect_err("a sweep of foreign layers");
        assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{name}: {error}");
        assert!(layers.join("note").exists(), "{name}");
    }
}

#[test]
fn an_interrupted_commit_is_finished_before_the_next_attempt() {
    let scratch = scratch();
    let directory = scratch.path().join("directory");
    fs::create_dir(&directory).expect("a directory");
    let Some(attempt) = begin(&[&directory]) else { return };
    assert_eq!(sh(&attempt, &directory, "echo new > one; echo new > two"), 0);
    let layers = layers_in(scratch.path());
    let commit = AssertUnwindSafe(|| {
        let mut stop = || {
            if layers[0].join("note").exists() {
                resume_unwind(Box::new("stopped"));
            }
        };
        let _ = attempt.commit_observed(false, &mut stop);
    });
    assert!(catch_unwind(commit).is_err() && !directory.join("one").exists());
    let reports = Directories::find(&[&directory]).expect("directories").sweep();
    assert_eq!(reports, [""; 0]);
    assert!(directory.join("one").exists() && directory.join("two").exists());
    assert_clean(&directory);
}
