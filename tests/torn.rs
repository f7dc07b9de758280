//! Kills of the shell's two processes at random moments during commits. A file has its old or its
//! new content, and no other file is left.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use crate::support::Ftsh;
use crate::support::rounds;

/// Number of kills in each round.
const KILLS: usize = 40;

/// Script with files that are replaced repeatedly, a file that is created, and scratch directories.
/// The shell writes the content itself, so a commit is nearly always in progress.
const SCRIPT: &str = "
    cat new -> text
    while true
        try 1 time atomic
            echo $text
            echo $text > made
            echo x > $scratch/file
            echo x > link
        end > replaced
        try 1 time atomic
            echo $text
        end >> added
        rm -f made
    end";

/// Script that mostly creates files without names.
const UNNAMED: &str = "
    cat new -> text
    try 1 time atomic
        echo $text
    end > replaced
    while true
        try 1 time atomic
            x=1
        end >> added
    end";

/// Script and method of its run.
const RUNS: [(&str, &str); 4] = [(SCRIPT, "0"), (SCRIPT, "0"), (SCRIPT, "1"), (UNNAMED, "1")];

#[test]
fn a_kill_at_any_moment_leaves_a_file_old_or_new() {
    let all = rounds::count() * KILLS;
    let half =
        |half| move || (half..all).step_by(2).filter(|&it| catch_unwind(|| survive(it)).is_err());
    let failed: Vec<usize> = thread::scope(|scope| {
        let halves = [0, 1].map(|it| scope.spawn(move || half(it)().collect::<Vec<_>>()));
        halves.into_iter().flat_map(|half| half.join().expect("no panic")).collect()
    });
    assert!(failed.is_empty(), "{} of {all} kills left something: {failed:?}", failed.len());
}

/// Processes to kill.
#[derive(Clone, Copy, Debug)]
enum Victim {
    Supervisor,
    Interpreter,
    Both,
}

/// Performs one kill, with choices determined by its number.
fn survive(number: usize) {
    let mut random = ChaCha8Rng::seed_from_u64(number as u64);
    let victims = [Victim::Supervisor, Victim::Interpreter, Victim::Both];
    let (victim, (script, way)) = (victims[number % 3], RUNS[number % 4]);
    let unprivileged = random.random_bool(0.5);
    let place = Place::new();
    let user = |run: Ftsh| {
        let run = run.in_way(way).env("TMPDIR", &place.temporary);
        if unprivileged { run.unprivileged() } else { run }
    };
    let text = format!("cd {}; {script}", place.files.display());
    let run = user(Ftsh::command(&text)).session().start();
    run.until("something replaced", |_| place.read("replaced") != "old\n");
    thread::sleep(Duration::from_micros(random.random_range(0..20_000)));
    let shell = run.pid().as_raw();
    let interpreter = child_of(shell).expect("an interpreter");
    let notes = notes_of(interpreter);
    let pids = match victim {
        Victim::Supervisor => vec![shell],
        Victim::Interpreter => vec![interpreter],
        // Whichever process is killed first, the other has no time to react.
        Victim::Both => vec![shell, interpreter],
    };
    for pid in pids {
        kill(Pid::from_raw(pid), Signal::SIGKILL).expect("it lives");
    }
    let what = format!("kill {number} of {victim:?}, way {way}: nothing left");
    run.until_gone(&what);
    run.wait().killed_by(Signal::SIGKILL).nothing_left();
    if matches!(victim, Victim::Both) {
        // A dying process loses its memory before its descriptors.
        until_free(&notes);
        user(Ftsh::command("x=1")).success();
        // The next shell may be one started by another test.
        until_free(&notes);
    }
    place.check(&what, matches!(victim, Victim::Both));
}

/// Kills the supervisor just before an attempt requests its scratch directory, the first file with
/// a note.
#[test]
fn a_supervisor_killed_before_the_first_note_leaves_no_directory() {
    let script = "
        sleep 0.04
        try 1 time atomic
            sh -c \"kill -KILL $$\"
            echo x > $scratch/file
            sleep 1000
        end";
    for number in 0..rounds::count() * KILLS {
        let place = Place::new();
        let options = if number % 2 == 0 { &["--journal=j"][..] } else { &[] };
        let run = Ftsh::script(script).options(options).env("TMPDIR", &place.temporary).session();
        let run = run.start();
        let what = format!("kill {number}: nothing left");
        run.until_gone(&what);
        run.wait().killed_by(Signal::SIGKILL).nothing_left();
        assert_eq!(names(&place.temporary), [""; 0], "{what}");
    }
}

/// Directory for the files, in memory if possible, so that most of the time is spent in commits.
struct Place {
    _directory: tempfile::TempDir,
    files: PathBuf,
    temporary: PathBuf,
}

const NEW: usize = 100_000;

impl Place {
    fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let directory =
            if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let directory = directory.expect("a directory");
        let path = directory.path();
        let (files, temporary) = (path.join("files"), path.join("temporary"));
        for place in [path, &files, &temporary] {
            let _ = fs::create_dir(place);
            fs::set_permissions(place, fs::Permissions::from_mode(0o777)).expect("for all");
        }
        for (name, text) in [
            ("new", "x".repeat(NEW)),
            ("replaced", "old\n".into()),
            ("added", String::new()),
            ("behind", "x\n".into()),
        ] {
            fs::write(files.join(name), text).expect("a file");
            fs::set_permissions(files.join(name), fs::Permissions::from_mode(0o666))
                .expect("for all");
        }
        std::os::unix::fs::symlink("behind", files.join("link")).expect("a link");
        Self { _directory: directory, files, temporary }
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.files.join(name)).expect("a file")
    }

    fn check(&self, what: &str, nobody_survived: bool) {
        let mut files = names(&self.files);
        files.retain(|name| name != "made");
        assert_eq!(files, ["added", "behind", "link", "new", "replaced"], "{what}");
        assert_eq!(names(&self.temporary), [""; 0], "{what}");
        let new = "x".repeat(NEW) + "\n";
        let made = fs::read_to_string(self.files.join("made"));
        assert!(made.is_err() || made.is_ok_and(|made| made == new), "{what}: half of one");
        assert!(self.read("replaced") == new, "{what}: half of one");
        // The survivor removes a partial addition. Later, other processes may have appended.
        let added = self.read("added");
        assert!(
            nobody_survived || added.len().is_multiple_of(new.len()),
            "{what}: {}",
            added.len()
        );
        assert_eq!(self.read("behind"), "x\n", "{what}");
    }
}

/// Returns the sorted names in a directory.
fn names(place: &Path) -> Vec<String> {
    let entries = fs::read_dir(place).expect("a directory");
    let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
    let mut names: Vec<_> = entries.flat_map(|entry| name(entry).into_string()).collect();
    names.sort();
    names
}

/// Returns the directory of a shell's notes, which its processes hold a lock on.
fn notes_of(interpreter: i32) -> PathBuf {
    let open = fs::read_dir(format!("/proc/{interpreter}/fd")).expect("it lives").flatten();
    let mut paths = open.filter_map(|it| fs::read_link(it.path()).ok());
    let is_of_runs = |path: &PathBuf| path.parent().is_some_and(|it| it.ends_with("runs"));
    paths.find(is_of_runs).expect("notes, once something was replaced")
}

/// Waits until no process holds the lock of the notes, if they exist.
fn until_free(notes: &Path) {
    if let Ok(notes) = File::open(notes) {
        drop(Flock::lock(notes, FlockArg::LockShared).expect("a lock"));
    }
}

/// Returns the first child of a process, if any.
fn child_of(pid: i32) -> Option<i32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}
