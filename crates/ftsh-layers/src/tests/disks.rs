//! Full and read-only file systems, in a mount namespace of the test's thread.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nix::sched::{CloneFlags, unshare};

use super::skipped::skipped;
use super::snapshot::{assert_same, snapshot};
use super::{Scratch, assert_clean, begin, is_root, scratch, sh};
use crate::{CommitFailure, Directories, Swept, leftovers, sweep};

/// Small file system that only this thread and its children see.
struct Disk {
    root: PathBuf,
    /// File system with the image of this one.
    _below: Option<Box<Disk>>,
    _scratch: Option<Scratch>,
}

fn disk(size: &str) -> Option<Disk> {
    if !is_root() {
        return None;
    }
    let scratch = scratch();
    let root = scratch.path().join("disk");
    fs::create_dir(&root).expect("a directory");
    let size = format!("size={size}");
    let mounted = unshare(CloneFlags::CLONE_NEWNS).is_ok()
        && mount(&["--make-rprivate", "/"]).is_some()
        && mount(&["-t", "tmpfs", "-o", &size, "disk", root.to_str()?]).is_some();
    if !mounted {
        skipped("mounts in a namespace");
        return None;
    }
    Some(Disk { root, _below: None, _scratch: Some(scratch) })
}

/// Returns a file system that a program makes in an image of 320 MB, where the program is available.
fn image(program: &str) -> Option<Disk> {
    let below = disk("400M")?;
    let (image, root) = (below.root.join("image"), below.root.join("root"));
    fs::create_dir(&root).expect("a directory");
    fs::File::create(&image).and_then(|file| file.set_len(320 << 20)).expect("a file");
    run(program, &["-q", image.to_str()?])?;
    mount(&["-o", "loop", image.to_str()?, root.to_str()?])?;
    Some(Disk { root, _below: Some(Box::new(below)), _scratch: None })
}

/// Returns a file system with a quota of 2 MB.
fn disk_with_quota() -> Option<Disk> {
    let disk = image("mkfs.btrfs")?;
    let place = disk.root.to_str()?;
    run("btrfs", &["quota", "enable", place])?;
    // Until the kernel has counted what is there, the limit does not hold.
    run("btrfs", &["quota", "rescan", "-w", place])?;
    run("btrfs", &["qgroup", "limit", "2M", place])?;
    Some(disk)
}

/// Runs a program that may be missing.
fn run(program: &str, arguments: &[&str]) -> Option<()> {
    Command::new(program).args(arguments).status().ok()?.success().then_some(())
}

fn mount(arguments: &[&str]) -> Option<()> {
    run("mount", arguments)
}

fn remount(root: &Path, how: &str) {
    mount(&["-o", &format!("remount,{how}"), root.to_str().expect("a name")]).expect("a mount");
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.root).status();
    }
}

fn plant(directory: &Path) {
    fs::create_dir(directory).expect("a directory");
    fs::write(directory.join("file"), "old").expect("a file");
}

#[test]
fn a_full_disk_fails_the_attempt() {
    let Some(disk) = disk("1M") else { return };
    let directory = disk.root.join("it");
    plant(&directory);
    let before = snapshot(&directory);
    let Some(attempt) = begin(&[&directory]) else { return };
    let fill = "echo x >> file; head -c 4000000 /dev/zero > big";
    assert_ne!(sh(&attempt, &directory, fill), 0);
    // The note does not fit.
    let result = attempt.commit();
    assert!(matches!(result, Err(CommitFailure::Failed { .. })), "{result:?}");
    assert!(result.expect_err("full").to_string().contains("no space left on device"));
    assert_same(&snapshot(&directory), &before, "full");
    assert_clean(&directory);
}

#[test]
fn a_quota_fails_the_attempt() {
    let Some(disk) = disk_with_quota() else {
        return skipped("loop devices and a file system with quotas");
    };
    let directory = disk.root.join("it");
    plant(&directory);
    let before = snapshot(&directory);
    let Some(attempt) = begin(&[&directory]) else { return };
    let fill = "echo x >> file; head -c 4000000 /dev/urandom > big && sync big";
    assert_ne!(sh(&attempt, &directory, fill), 0);
    let result = attempt.commit();
    assert!(matches!(result, Err(CommitFailure::Failed { .. })), "{result:?}");
    assert!(result.expect_err("full").to_string().contains("quota exceeded"));
    assert_same(&snapshot(&directory), &before, "over the quota");
    assert_clean(&directory);
}

#[test]
fn directories_keep_their_times_on_xfs() {
    let Some(disk) = image("mkfs.xfs") else {
        return skipped("loop devices and XFS");
    };
    let directory = disk.root.join("it");
    plant(&directory);
    for name in ["new", "other", "renamed"] {
        fs::create_dir(directory.join(name)).expect("a directory");
    }
    let Some(attempt) = begin(&[&directory]) else { return };
    let make = "rmdir new other; mkdir new; mv renamed other; touch -d 2001-01-01 new other";
    assert_eq!(sh(&attempt, &directory, make), 0);
    let _ = attempt.commit().expect("a commit");
    for name in ["new", "other"] {
        let time = directory.join(name).metadata().and_then(|found| found.modified());
        let age = time.expect("a time").elapsed().expect("the past");
        assert!(age > Duration::from_secs(1_000_000), "{name} is {age:?} old");
    }
    assert_clean(&directory);
}

#[test]
fn an_overlay_is_refused() {
    let Some(disk) = disk("10M") else { return };
    for name in ["lower", "upper", "work", "over"] {
        fs::create_dir(disk.root.join(name)).expect("a directory");
    }
    let over = disk.root.join("over");
    let options = ["lowerdir=lower", "upperdir=upper", "workdir=work"]
        .map(|option| option.replace('=', &format!("={}/", disk.root.display())));
    let mounted =
        mount(&["-t", "overlay", "-o", &options.join(","), "over", over.to_str().expect("a name")]);
    if mounted.is_none() {
        return skipped("overlays");
    }
    let error = Directories::find(&[&over]).expect_err("an overlay").to_string();
    // The names of errors are those of the C library.
    assert!(error.contains("is on overlayfs, which cannot be covered: "), "{error}");
    let error = Directories::find(&[&disk.root]).expect_err("a mount below").to_string();
    assert!(error.contains("has a file system mounted below"), "{error}");
}

#[test]
fn a_disk_that_becomes_read_only_fails_the_attempt() {
    let Some(disk) = disk("10M") else { return };
    let directory = disk.root.join("it");
    plant(&directory);
    let before = snapshot(&directory);
    let Some(attempt) = begin(&[&directory]) else { return };
    assert_eq!(sh(&attempt, &directory, "echo x >> file"), 0);
    let layers = leftovers(&directory);
    // The overlay writes as long as the mount is busy, so the file system changes through a new
    // mount of the same disk.
    remount(&disk.root, "ro,bind");
    let result = attempt.commit();
    let text = result.expect_err("read-only").to_string();
    assert!(text.contains("read-only file system"), "{text}");
    assert_same(&snapshot(&directory), &before, "read-only");
    remount(&disk.root, "rw,bind");
    assert_eq!(sweep(&layers[0]).expect("a sweep"), Swept::Discarded);
    assert_clean(&directory);
}

#[test]
fn layers_that_cannot_be_removed_are_found_by_a_later_sweep() {
    let Some(disk) = disk("1M") else { return };
    let directory = disk.root.join("it");
    fs::create_dir(&directory).expect("a directory");
    let Some(attempt) = begin(&[&directory]) else { return };
    assert_eq!(sh(&attempt, &directory, "mkdir new"), 0);
    let left = leftovers(&directory);
    let new = left[0].join("upper/new");
    let new = new.to_str().expect("a name");
    mount(&["-t", "tmpfs", "new", new]).expect("a mount");
    attempt.discard().expect_err("a busy directory");
    run("umount", &[new]).expect("no mount");
    assert_eq!(leftovers(&directory), left);
    assert_eq!(sweep(&left[0]).expect("a sweep"), Swept::Discarded);
    assert_clean(&directory);
}
