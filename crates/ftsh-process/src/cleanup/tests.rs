//! Remaining files at each moment at which a shell can be killed.

use std::cell::RefCell;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::fcntl::{AT_FDCWD, Flock, FlockArg, OFlag, openat};
use nix::sys::stat::{Mode, UtimensatFlags, mkdirat, utimensat};
use nix::sys::time::TimeSpec;

use super::kind::NoteKind;
use super::named::{keep_notes_in, named_file, unlinked_file};
use super::registry::Registry;
use super::scratch::Scratch;
use super::sweep::{clean, has_free_run, sweep_interpreter, sweep_stale_runs};
use ftsh_sys as sys;

use ftsh_sys::Parcel;

/// Registry with the other end of its supervisor's socket.
fn registry() -> (Arc<Registry>, UnixStream) {
    let (ours, theirs) = UnixStream::pair().expect("sockets");
    (Arc::new(Registry::new(Some(Arc::new(ours)))), theirs)
}

/// Steps in the life of a file and of a directory. A shell may be killed after each step.
const STEPS: usize = 7;

/// Performs the first steps in a directory, as if the process were killed then.
fn steps(registry: &Arc<Registry>, place: &Path, count: usize) {
    let hidden = place.join("hidden");
    let steps: [&dyn Fn(); STEPS] = [
        &|| std::mem::forget(registry.note(NoteKind::File, hidden.clone())),
        &|| fs::write(&hidden, "new").expect("a file"),
        &|| fs::rename(&hidden, place.join("f")).expect("it is there"),
        &|| {
            std::mem::forget(registry.note(NoteKind::File, place.join("none/hidden")));
            std::mem::forget(registry.note(NoteKind::Tree, place.join("tree")));
        },
        &|| fs::create_dir(place.join("tree")).expect("a directory"),
        &|| fs::create_dir_all(place.join("tree/a/b")).expect("directories"),
        &|| {
            fs::write(place.join("tree/a/b/c"), "").expect("a file");
            symlink("../../..", place.join("tree/a/b/link")).expect("a link");
            let rights = fs::Permissions::from_mode(0o500);
            fs::set_permissions(place.join("tree/a"), rights).expect("its mode");
        },
    ];
    steps[..count].iter().for_each(|step| step());
}

/// Sweeps until a run's directory is gone. Tests sweep concurrently, and a sweep leaves locked
/// directories to the other one.
fn sweep_until_gone(run: &Path) {
    let limit = Instant::now() + Duration::from_secs(20);
    while run.exists() {
        assert!(Instant::now() < limit, "{}", run.display());
        sweep_stale_runs(|_| {});
    }
}

fn names(place: &Path) -> Vec<PathBuf> {
    fs::read_dir(place).expect("a directory").flatten().map(|it| it.path()).collect()
}

#[test]
fn the_survivor_cleans_up_after_each_step() {
    for count in 0..=STEPS {
        let place = tempfile::tempdir().expect("a directory");
        let (registry, supervisor) = registry();
        steps(&registry, place.path(), count);
        let run = registry.path();
        // The shell is alive, so its lock is held.
        sweep_stale_runs(|_| {});
        assert_eq!(names(place.path()).is_empty(), count < 2);
        if count % 2 == 0 {
            registry.close();
        } else {
            let (parcel, locks) = sys::receive_descriptors(&supervisor).expect("a lock");
            assert_eq!(parcel, Parcel::Lock);
            sweep_interpreter(&locks, |_| {});
        }
        assert!(sys::receive_descriptors(&supervisor).is_err() || count % 2 == 0);
        let wanted: &[PathBuf] = if count < 3 { &[] } else { &[place.path().join("f")] };
        assert_eq!(names(place.path()), wanted, "after {count} steps");
        assert!(run.is_none_or(|run| !run.exists()));
    }
}

#[test]
fn the_next_shell_cleans_up_after_each_step() {
    for count in 1..=STEPS {
        let place = tempfile::tempdir().expect("a directory");
        let (registry, supervisor) = registry();
        steps(&registry, place.path(), count);
        let run = registry.path().expect("a directory of the run");
        // One of the two processes is gone; the other still holds the lock.
        registry.die();
        sweep_stale_runs(|_| {});
        assert_eq!(names(place.path()).is_empty(), count < 2);
        drop(supervisor);
        sweep_until_gone(&run);
        let wanted: &[PathBuf] = if count < 3 { &[] } else { &[place.path().join("f")] };
        assert_eq!(names(place.path()), wanted, "after {count} steps");
        assert!(!run.exists());
    }
}

#[test]
fn a_job_is_noted_until_a_shell_has_canceled_it() {
    let (registry, supervisor) = registry();
    registry.keep_stale_job(Path::new("job"));
    let run = registry.path().expect("a directory of the run");
    // The shell ends before it cancels the job.
    assert_eq!(registry.close(), [Path::new("job")]);
    let (_, locks) = sys::receive_descriptors(&supervisor).expect("a lock");
    let canceled = RefCell::new(Vec::new());
    sweep_interpreter(&locks, |jobs| {
        assert!(run.join("job-1").is_symlink());
        canceled.borrow_mut().extend_from_slice(jobs);
    });
    assert_eq!(*canceled.borrow(), [Path::new("job")]);
    assert!(!run.exists());
}

#[test]
fn runs_of_living_shells_start_no_worker() {
    let place = tempfile::tempdir().expect("a directory");
    let runs = place.path().join("runs");
    assert!(!has_free_run(&runs));
    fs::create_dir(&runs).expect("a directory");
    assert!(!has_free_run(&runs));
    assert!(!runs.exists(), "an empty directory is removed");
    fs::create_dir(&runs).expect("a directory");
    fs::write(runs.join("file"), "").expect("a file");
    assert!(!has_free_run(&runs));
    let lock = |name: String| {
        fs::create_dir(runs.join(&name)).expect("a directory");
        let directory = fs::File::open(runs.join(&name)).expect("a directory");
        Flock::lock(directory, FlockArg::LockExclusiveNonblock).expect("a lock")
    };
    let mut living: Vec<_> = (0..31).map(|run| lock(run.to_string())).collect();
    assert!(!has_free_run(&runs));
    let killed = living.pop();
    drop(killed);
    assert!(has_free_run(&runs));
    // With many runs, none is tested on the event loop.
    let _again = lock("31".into());
    fs::remove_dir(runs.join("30")).expect("removed");
    assert!(!has_free_run(&runs));
    let _many = [lock("32".into()), lock("33".into())];
    assert!(has_free_run(&runs));
    let link = place.path().join("link");
    std::os::unix::fs::symlink(&runs, &link).expect("a link");
    assert!(!has_free_run(&link));
}

#[test]
fn a_run_without_its_supervisor_keeps_its_notes() {
    for is_killed in [false, true] {
        let place = tempfile::tempdir().expect("a directory");
        let (registry, supervisor) = registry();
        drop(supervisor);
        steps(&registry, place.path(), STEPS);
        let run = registry.path().expect("a directory of the run");
        if is_killed {
            registry.die();
            sweep_until_gone(&run);
        } else {
            registry.close();
        }
        assert_eq!(names(place.path()), [place.path().join("f")], "{is_killed}");
        assert!(!run.exists());
    }
}

#[test]
fn files_without_a_note_are_removed_at_the_end() {
    let place = tempfile::tempdir().expect("a directory");
    let (registry, _supervisor) = registry();
    registry.note(NoteKind::File, place.path().join("first")).keep();
    // From here on, notes cannot be written.
    fs::remove_dir(registry.path().expect("a directory of the run")).expect("it is empty");
    steps(&registry, place.path(), STEPS);
    assert!(place.path().join("tree").exists());
    let other = place.path().join("other");
    let note = registry.note(NoteKind::File, other.clone());
    fs::write(&other, "").expect("a file");
    note.keep();
    registry.close();
    let mut left = names(place.path());
    left.sort();
    assert_eq!(left, [place.path().join("f"), other]);
}

#[test]
fn a_directory_can_be_removed_twice_at_once() {
    let place = tempfile::tempdir().expect("a directory");
    let tree = place.path().join("tree");
    for _ in 0..30 {
        fs::create_dir_all(tree.join("a/".repeat(100))).expect("directories");
        let remove = || NoteKind::Tree.remove(&tree).is_ok().then(|| !tree.exists());
        std::thread::scope(|scope| {
            let both = [scope.spawn(remove), scope.spawn(remove)];
            for one in both {
                assert_ne!(one.join().expect("no panic"), Some(false));
            }
        });
        NoteKind::Tree.remove(&tree).expect("it goes");
    }
}

#[test]
fn an_unlinked_file_is_noted_while_it_has_a_name() {
    let place = tempfile::tempdir().expect("a directory");
    let (registry, supervisor) = registry();
    let (_file, note) = named_file(place.path(), Mode::S_IRWXU, &registry).expect("a file");
    assert_eq!(names(place.path()), [note.path()]);
    std::mem::forget(note);
    let run = registry.path().expect("a directory of the run");
    registry.die();
    drop(supervisor);
    sweep_until_gone(&run);
    assert!(names(place.path()).is_empty());
    let (registry, _supervisor) = self::registry();
    for has_run in [false, true] {
        if has_run {
            keep_notes_in(&registry);
        }
        let file = fs::File::from(unlinked_file(place.path()).expect("a file"));
        assert_eq!(file.metadata().expect("it is open").nlink(), 0);
        assert!(names(place.path()).is_empty());
        assert_eq!(registry.path().is_some(), has_run);
    }
    registry.close();
}

#[test]
fn a_partial_addition_is_removed_at_once_or_never() {
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("f");
    // State of the file when the shell is killed while changing `old` to `old and new`.
    for (text, just_now) in [
        ("old", "old"),
        ("old and", "old"),
        ("old and new", "old and new"),
        ("ol", "ol"),
        ("old and other", "old and other"),
    ] {
        for survives in [true, false] {
            fs::write(&path, text).expect("a file");
            let (registry, supervisor) = registry();
            std::mem::forget(registry.note(NoteKind::Addition { from: 3, to: 11 }, path.clone()));
            let run = registry.path().expect("a directory of the run");
            registry.die();
            let (_, locks) = sys::receive_descriptors(&supervisor).expect("a lock");
            if survives {
                sweep_interpreter(&locks, |_| {});
            } else {
                drop(locks);
                sweep_until_gone(&run);
            }
            let wanted = if survives { just_now } else { text };
            assert_eq!(fs::read_to_string(&path).expect("a file"), wanted, "{text} {survives}");
            assert!(!run.exists());
        }
    }
    // A file already handled is forgotten.
    fs::write(&path, "old and").expect("a file");
    let (registry, _supervisor) = registry();
    registry.note(NoteKind::Addition { from: 3, to: 11 }, path.clone()).keep();
    registry.close();
    assert_eq!(fs::read_to_string(&path).expect("a file"), "old and");
}

#[test]
fn unremovable_files_keep_their_notes() {
    let (registry, _supervisor) = registry();
    // The kernel allows no process to remove this file.
    drop(registry.note(NoteKind::File, "/proc/version".into()));
    let run = registry.path().expect("a directory of the run");
    assert_eq!(names(&run).len(), 1);
    registry.close();
    assert_eq!(names(&run).len(), 1);
    fs::remove_dir_all(&run).expect("it is there");
}

#[test]
fn a_link_in_the_place_of_a_directory_is_left_alone() {
    let place = tempfile::tempdir().expect("a directory");
    let kept = place.path().join("kept");
    fs::create_dir(&kept).expect("a directory");
    fs::write(kept.join("f"), "").expect("a file");
    let (registry, _supervisor) = registry();
    let note = registry.note(NoteKind::Tree, place.path().join("tree"));
    symlink("kept", note.path()).expect("a link");
    drop(note);
    assert!(kept.join("f").exists());
    registry.close();
    assert!(kept.join("f").exists());
    fs::remove_file(place.path().join("tree")).expect("the link is there");
    assert!(registry.begin().is_none());
    assert!(Scratch::default().path(&registry).is_err());
}

#[test]
fn much_and_deep_things_are_removed() {
    let (registry, _supervisor) = registry();
    let scratch = Scratch::default();
    let path = scratch.path(&registry).expect("a directory");
    assert_eq!(scratch.path(&registry).expect("the same"), path);
    let first = path.join("first");
    fs::write(&first, "").expect("a file");
    for number in 0..3 {
        fs::create_dir(path.join(number.to_string())).expect("a directory");
    }
    // Links, since files are made and removed slowly.
    for number in 0..3_000 {
        let name = path.join((number % 3).to_string()).join(number.to_string());
        fs::hard_link(&first, name).expect("a link");
    }
    // Deeper than the maximum length of a path, with names that the removal uses itself.
    let mut directory: OwnedFd = fs::File::open(&path).expect("a directory").into();
    for _ in 0..200 {
        let name = "0123456789012345678901234567890123456789";
        for name in [name, ".1", ".3"] {
            mkdirat(&directory, name, Mode::S_IRWXU).expect("a directory");
        }
        directory =
            openat(&directory, name, OFlag::O_DIRECTORY, Mode::empty()).expect("it is there");
    }
    scratch.remove(&registry).expect("it goes");
    assert!(!path.exists());
    assert!(scratch.path(&registry).is_err());
    registry.close();
}

#[test]
fn a_note_that_always_fails_is_removed_in_the_end() {
    let place = tempfile::tempdir().expect("a directory");
    let own = |name: &str| place.path().join(name);
    fs::write(own("file"), "").expect("a file");
    fs::create_dir(own("directory")).expect("a directory");
    // The kernel allows no process to remove this file.
    let fixed = PathBuf::from("/proc/version");
    for (kind, path, is_old, stays) in [
        // Another file has the name by now.
        (NoteKind::File, own("file/below"), false, false),
        (NoteKind::Tree, own("file"), false, false),
        (NoteKind::File, own("directory"), false, false),
        (NoteKind::File, fixed.clone(), false, true),
        (NoteKind::File, fixed, true, false),
    ] {
        let run = tempfile::tempdir().expect("a directory of a run");
        let note = run.path().join(kind.note(1));
        symlink(path, &note).expect("a note");
        if is_old {
            let long_ago = TimeSpec::new(1_000_000_000, 0);
            let flag = UtimensatFlags::NoFollowSymlink;
            utimensat(AT_FDCWD, &note, &long_ago, &long_ago, flag).expect("its times");
        }
        let directory = fs::File::open(run.path()).expect("a directory of a run");
        let left = clean(directory.as_fd(), false);
        assert_eq!(note.symlink_metadata().is_ok(), stays, "{kind:?} {is_old}");
        assert_eq!(left.lines.iter().any(|(_, text)| text.contains("/version`")), is_old);
    }
    assert!(own("file").exists() && own("directory").exists());
}
