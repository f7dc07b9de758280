//! Channels of real shells, and `--channels`.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::Path;

use crate::support::Ftsh;

/// `--channels` with the channels in a directory of the test's own.
fn lists() -> Ftsh {
    Ftsh::new().arg("--channels").env("FTSH_CHANNELS", "channels")
}

fn make_private(path: &Path) {
    fs::DirBuilder::new().mode(0o700).create(path).expect("a directory");
}

#[test]
fn without_channels_there_are_none() {
    let shell = lists();
    let path = shell.path("channels");
    let finished = shell.success();
    assert_eq!(finished.text(), format!("no channels in {}\n", path.display()));
    assert!(!path.exists(), "looking makes nothing");
}

#[test]
fn a_damaged_channel_is_told() {
    let shell = lists();
    make_private(&shell.path("channels"));
    fs::write(shell.path("channels/mirror"), "{").expect("a file");
    fs::write(shell.path("channels/.hidden"), "{").expect("a file");
    let finished = shell.failure(1);
    let text = finished.text();
    assert_eq!(text.lines().nth(1), Some("mirror   damaged: it isn't JSON"), "{text}");
    assert_eq!(text.lines().count(), 2, "{text}");
}

#[test]
fn a_directory_that_could_be_anybodys_is_not_used() {
    let shell = lists();
    symlink("/tmp", shell.path("channels")).expect("a link");
    let finished = shell.stdout("").failure(2);
    finished.one_line().expect_stderr("channels: it is no directory; FTSH_CHANNELS names another");
}
