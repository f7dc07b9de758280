//! Directories that the system cannot read to their end: nothing takes a part for the whole, and
//! nothing reads the same error for ever.

use std::fs;
use std::io;
use std::process::Command;
use std::time::Duration;

use ftsh_sys::os_error::plain;
use tempfile::TempDir;

use crate::support::Ftsh;
use crate::support::skipped::skipped;

/// Returns the text for an error that all C libraries call the same.
fn lost() -> String {
    plain(&io::Error::from_raw_os_error(libc::ESTALE))
}

/// Runs the shell with an error in place of some of its reads of directories; none where strace may
/// not do that.
fn failing(script: &str, errors: &str) -> Option<Ftsh> {
    injecting(Ftsh::command(script), "getdents64", errors, &[])
}

/// Runs a shell with errors in place of some of its system calls, of all or those on some paths; none where
/// strace may not do that.
fn injecting(ftsh: Ftsh, call: &str, errors: &str, paths: &[&str]) -> Option<Ftsh> {
    let (trace, inject) = (format!("trace={call}"), format!("inject={call}:{errors}"));
    let mut strace = vec!["strace", "-f", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject];
    strace.extend(paths.iter().flat_map(|path| ["-P", path]));
    let trial = Command::new(strace[0]).args(&strace[1..]).arg("true").status();
    if !trial.is_ok_and(|status| status.success()) {
        skipped("strace");
        return None;
    }
    Some(ftsh.through(strace).limit(Duration::from_secs(60)))
}

#[test]
fn a_pattern_never_stands_for_part_of_the_names() {
    let names = TempDir::new().expect("a directory");
    let first = names.path().join("first");
    fs::write(&first, "").expect("a file");
    // More than the C library reads at once; links, since files are made and removed slowly.
    for number in 0..1500 {
        let name = names.path().join(format!("file{number:04}"));
        fs::hard_link(&first, name).expect("a link");
    }
    let within = |ftsh: Ftsh| ftsh.env("names", names.path());
    let count = "cd ${names}; n=0; for f in file*; n=$n .add. 1; end; echo $n";
    within(Ftsh::command(count)).stdout("1500\n").success();
    for errors in ["error=EIO:when=2+", "error=ESTALE:when=1+", "error=ENOMEM:when=2+"] {
        let Some(ftsh) = failing(count, errors) else { return };
        within(ftsh).stdout("").stderr(": .: ").failure(1);
    }
    let Some(ftsh) = failing("cd ${names}; echo */file*", "error=ESTALE:when=1+") else { return };
    within(ftsh).stdout("").stderr(&format!(": .: {}", lost())).failure(1);
}

#[test]
fn a_directory_that_cannot_be_read_delays_no_end() {
    for (script, ended) in [
        ("try atomic; echo x > $scratch/f; end", true),
        ("try atomic; echo x > $scratch/f; sh -c \"kill -KILL $$\"; sleep 1000; end", false),
    ] {
        let Some(ftsh) = failing(script, "error=ESTALE:when=1+") else { return };
        let finished = ftsh.run();
        finished.expect_time(Duration::ZERO, Duration::from_secs(10));
        if ended {
            finished.expect_code(0);
        }
        finished.nothing_left();
    }
}

#[test]
fn a_journal_whose_name_may_be_lost_is_refused() {
    for journal in ["j", "./j"] {
        let run = Ftsh::script("echo never\n").options([format!("--journal={journal}")]);
        let Some(run) = injecting(run, "fsync", "error=ESTALE", &[]) else { return };
        run.stdout("").refused(&[&format!("as a journal: {}", lost())]);
    }
}

#[test]
fn a_first_line_that_cannot_be_read_drops_no_options() {
    let run = || Ftsh::script("#!/usr/bin/ftsh -n\necho never\n");
    run().stdout("").success();
    let errors = "error=ESTALE:when=1";
    let Some(run) = injecting(run(), "read", errors, &["script.ftsh"]) else { return };
    let message = format!("can't read the `#!` line of script.ftsh: {}", lost());
    run.stdout("").refused(&[&message]);
}

#[test]
fn a_start_that_cannot_be_described_is_refused() {
    let journaled = || Ftsh::command("echo never").options(["--journal=../j"]);
    let gone = "mkdir gone; cd gone; rmdir ../gone; exec \"$@\"";
    let message = "can't record the current directory, where the next start would resume the run: no such file";
    // The journal is beside the removed directory, not in the root directory.
    let refused = journaled().through(["sh", "-c", gone, "sh"]).stdout("").refused(&[message]);
    assert_eq!(refused.read("j"), "");
    let boot = "/proc/sys/kernel/random/boot_id";
    let run = Ftsh::script("echo never\n").options(["--journal=j"]);
    let Some(run) = injecting(run, "/^open(at)?$", "error=ENFILE", &[boot]) else { return };
    run.stdout("").refused(&["can't read /proc/sys/kernel/random/boot_id: too many open files"]);
}
