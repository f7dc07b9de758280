//! File systems that do not answer: a frozen ext4 on a loop device, for root only.

use std::fs::{self, File};
use std::io::{PipeReader, PipeWriter, Read, pipe};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::unistd::Uid;
use tempfile::TempDir;

use crate::cluster::with_ssh;
use crate::support::run::{Finished, Running};
use crate::support::skipped::skipped;
use crate::support::{Ftsh, WAYS};

/// Time after which the guard thaws a file system, whatever the test does.
const MAX_FROZEN: u32 = 50;
/// Time limit of a run, shorter than the file system stays frozen.
const LIMIT: Duration = Duration::from_secs(40);

/// Thaws and unmounts once standard input ends, which is at the end of the test, or after the limit.
const GUARD: &str = r#"timeout "$1" cat > /dev/null; fsfreeze --unfreeze "$2"; umount "$2""#;

/// Frozen file system. Dropping the value thaws and unmounts the file system.
struct Frozen {
    mounted: TempDir,
    guard: Child,
    /// Input of the guard.
    held: Option<PipeWriter>,
}

impl Frozen {
    /// Returns `None` where no file system can be mounted and frozen.
    fn new() -> Option<Self> {
        let why = match Self::mount() {
            Ok(frozen) => return Some(frozen),
            Err(why) => why,
        };
        skipped(why);
        None
    }

    fn mount() -> Result<Self, &'static str> {
        if !Uid::effective().is_root() {
            return Err("root");
        }
        let (mounted, stored) =
            (TempDir::new().expect("a place"), TempDir::new().expect("a place"));
        let image = stored.path().join("image");
        File::create(&image).and_then(|it| it.set_len(1 << 20)).expect("an image");
        run("mkfs.ext4", &["-q".as_ref(), image.as_path()]).ok_or("mkfs.ext4")?;
        let options = ["-o".as_ref(), "loop".as_ref(), image.as_path(), mounted.path()];
        run("mount", &options).ok_or("a loop device and the right to mount")?;
        let (reader, writer) = pipe().expect("a pipe");
        let guard = Command::new("sh")
            .args(["-c", GUARD, "guard", &MAX_FROZEN.to_string()])
            .arg(mounted.path())
            .stdin(reader)
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("a guard");
        let frozen = Self { mounted, guard, held: Some(writer) };
        run("fsfreeze", &["--freeze".as_ref(), frozen.mounted.path()]).ok_or("fsfreeze")?;
        Ok(frozen)
    }

    fn file(&self) -> PathBuf {
        self.mounted.path().join("new")
    }

    /// Returns a run of a script in which `$m` is a directory on the file system.
    fn script(&self, text: &str) -> Ftsh {
        let script = format!("m='{}'\n{text}\n", self.mounted.path().display());
        Ftsh::script(script).limit(LIMIT)
    }

    /// Expects a run to end while the file system is frozen.
    fn ends(&self, run: Ftsh) -> Finished {
        self.ended(run.start())
    }

    fn ended(&self, run: Running) -> Finished {
        let finished = run.leave();
        assert!(finished.status.is_some(), "{}", finished.story());
        // The guard ends first if it thaws the file system.
        assert!(self.held.is_some() && !self.file().exists());
        finished
    }

    /// Runs a script with a limit, and expects a message that names the file. On a busy machine a
    /// short limit passes before the file is opened, so longer limits follow.
    fn cut(&self, run: impl Fn(&str) -> Ftsh) -> Finished {
        let message = format!("opening `{}` hangs in the kernel", self.file().display());
        let mut runs = ["50 ms", "1 s", "10 s"].iter().map(|limit| self.ends(run(limit)));
        runs.find(|finished| finished.errors().contains(&message)).expect("a message")
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        self.held = None;
        self.guard.wait().expect("the guard ends");
    }
}

fn run(program: &str, arguments: &[&Path]) -> Option<()> {
    let status = Command::new(program).args(arguments).stderr(Stdio::null()).status();
    status.is_ok_and(|it| it.success()).then_some(())
}

#[test]
fn a_script_goes_on_at_its_limit() {
    let Some(frozen) = Frozen::new() else { return };
    for way in WAYS {
        for command in ["echo y > $m/new", "cat /etc/hostname > $m/new", "echo y >> $m/new"] {
            let finished = frozen.cut(|limit| {
                let script = format!("limit {limit}\n {command}\ncatch\n echo went on\nend");
                frozen.script(&script).in_way(way)
            });
            finished.expect_code(0);
            assert_eq!(finished.text(), "went on\n", "{}", finished.story());
        }
    }
}

#[test]
fn a_failure_at_the_limit_ends_the_shell() {
    let Some(frozen) = Frozen::new() else { return };
    let body = "forall d in $m $m keep going\n  echo y > $d/new\n end\nend";
    for options in [&["-k", "weak"][..], &["-k", "strong"], &["--cron"]] {
        let finished =
            frozen.cut(|limit| frozen.script(&format!("limit {limit}\n {body}")).options(options));
        finished.expect_code(124);
        let left = format!("  left behind: opening `{}`", frozen.file().display());
        assert!(finished.errors().contains(&left), "{}", finished.story());
    }
}

#[test]
fn a_signal_ends_the_shell() {
    let Some(frozen) = Frozen::new() else { return };
    for way in WAYS {
        let script = "sh -c 'echo >> begun'\ncat /etc/hostname > $m/new";
        let run = frozen.script(script).in_way(way).start();
        run.until_lines("begun", 1);
        run.signal(Signal::SIGTERM);
        let finished = frozen.ended(run);
        finished.killed_by(Signal::SIGTERM);
    }
}

#[test]
fn a_program_that_hangs_is_given_up_after_a_signal() {
    let Some(frozen) = Frozen::new() else { return };
    for way in WAYS {
        let script = "sh -c 'echo $$ >> begun; echo y > $0/new' $m";
        let run = frozen.script(script).options(["-t", "0.1"]).in_way(way);
        let run = run.start();
        run.until_lines("begun", 1);
        let pid = fs::read_to_string(run.directory().join("begun")).expect("a file");
        let stat = format!("/proc/{}/stat", pid.trim());
        run.until("a call that hangs", |_| {
            fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") D "))
        });
        run.signal(Signal::SIGTERM);
        let finished = frozen.ended(run);
        finished.killed_by(Signal::SIGTERM);
        assert!(finished.within(Duration::from_secs(6)), "{}", finished.story());
        assert!(finished.errors().contains(" can't be killed: sh\n"), "{}", finished.story());
    }
}

#[test]
fn what_the_shell_held_is_free() {
    let Some(frozen) = Frozen::new() else { return };
    let locks = TempDir::new().expect("a place for locks");
    let (mut output, writer) = pipe().expect("a pipe");
    let script = "limit 50 ms\n echo y > $m/new\nend";
    let run = frozen.script(script).options(["--lock", "name"]).env("FTSH_LOCK_DIR", locks.path());
    let finished = frozen.ends(run.errors_to(writer));
    finished.expect_code(124);
    ends(&mut output);
    let next = Ftsh::command("echo next").options(["--lock", "name"]);
    next.env("FTSH_LOCK_DIR", locks.path()).stdout("next\n").success();
    drop(frozen);
}

/// Reads to the end of a pipe that nothing holds open.
fn ends(output: &mut PipeReader) {
    let mut text = String::new();
    output.read_to_string(&mut text).expect("text");
    assert!(text.contains("ran out of time"), "{text}");
}

#[test]
fn a_program_replaces_a_shell_with_a_hanging_worker() {
    let Some(frozen) = Frozen::new() else { return };
    let script = "limit 50 ms\n echo y > $m/new\ncatch\n true\nend\nexec echo replaced";
    let finished = frozen.ends(frozen.script(script));
    finished.expect_code(0);
    assert_eq!(finished.text(), "replaced\n", "{}", finished.story());
}

#[test]
fn an_inner_shell_holds_nothing_up() {
    let Some(frozen) = Frozen::new() else { return };
    let inner = "try for 50 ms or 1 time; echo y > $0/new; end";
    let script = format!("try 1 time\n ftsh -c '{inner}' $m\ncatch\n echo went on\nend");
    let finished = frozen.ends(frozen.script(&script).options(["-t", "0.1", "-k", "weak"]));
    finished.expect_code(0);
    assert_eq!(finished.text(), "went on\n", "{}", finished.story());
}

#[test]
fn files_of_a_branch_hold_nothing_up() {
    let Some(frozen) = Frozen::new() else { return };
    let run = frozen.script("cd $m\nforall x in a on ssh h gives new\necho y > new\nend");
    let finished = frozen.ends(with_ssh(run).options(["--lease", "1s", "-t", "2"]));
    finished.expect_stderr("its files did not arrive whole");
}

#[test]
fn a_recorded_run_goes_on() {
    let Some(frozen) = Frozen::new() else { return };
    let script = "limit 50 ms\n echo y > $m/new\ncatch\n echo went on\nend\nsh -c 'echo >> begun'";
    let finished = frozen.ends(frozen.script(script).options(["--journal", "journal"]));
    finished.expect_code(0);
    assert_eq!(finished.text(), "went on\n", "{}", finished.story());
    assert_eq!(fs::read_to_string(finished.directory.path().join("begun")).expect("a file"), "\n");
}
