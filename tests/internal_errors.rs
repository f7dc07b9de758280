//! Errors in the program itself, and errors created while the environment requests backtraces.

use std::ffi::CStr;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::ptr;

use nix::unistd::Uid;

use crate::support::{FTSH, Ftsh, run};

/// Values with which a Rust program takes a backtrace for each error.
const BACKTRACES: [(&str, &str); 3] =
    [("RUST_BACKTRACE", "1"), ("RUST_BACKTRACE", "full"), ("RUST_LIB_BACKTRACE", "1")];

#[test]
fn wrong_usage_is_one_line_while_backtraces_are_requested() {
    let commands: [&[&str]; 22] = [
        &["nosuch.ftsh"],
        &["--nosuch"],
        &["-n", "nosuch.ftsh"],
        &["-p", "nosuch.ftsh"],
        &["-c"],
        &["-t", "x", "-c", "true"],
        &["-l", "loud", "-c", "true"],
        &["-f", "/nosuch/log", "-c", "true"],
        &["--seed", "x", "-c", "true"],
        &["--lock=/nosuch/lock", "-c", "true"],
        &["--journal", "/nosuch/journal", "script.ftsh"],
        &["--results", "/nosuch/results", "-c", "true"],
        &["--cron", "nosuch.ftsh"],
        &["--status", "nosuch"],
        &["--replay", "nosuch"],
        &["--timeline", "nosuch"],
        &["--durations", "nosuch"],
        &["--explain", "nosuch"],
        &["--storm", "nosuch"],
        &["--preview", "/nosuch", "script.ftsh"],
        &["try", "3", "tims", "--", "true"],
        &["try", "--"],
    ];
    for words in commands {
        for (name, value) in BACKTRACES {
            let run = Ftsh::new().file("script.ftsh", "true\n").args(words).env(name, value);
            let finished = run.failure(2);
            let errors = finished.errors();
            assert!(
                errors.starts_with("ftsh: ") && errors.lines().count() == 1,
                "{words:?}: {errors}"
            );
        }
    }
}

/// Makes std's source of random numbers fail, at which a program panics: the system call does not
/// exist, and the device is empty.
fn take_randomness_away() -> io::Result<()> {
    let check = |result| if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
    let bind = |from: &CStr, to: &CStr, flags| {
        // SAFETY: a plain call with valid strings.
        check(unsafe { libc::mount(from.as_ptr(), to.as_ptr(), ptr::null(), flags, ptr::null()) })
    };
    let statement = |code: u32, skip_otherwise, k| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: skip_otherwise,
        k,
    };
    let fails = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;
    let mut filter = [
        // The number of the call is the first word of its description.
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, libc::SYS_getrandom as u32),
        statement(libc::BPF_RET | libc::BPF_K, 0, fails),
        statement(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: plain calls; the filter lives until the last one returns.
    unsafe {
        check(libc::unshare(libc::CLONE_NEWNS))?;
        bind(c"none", c"/", libc::MS_REC | libc::MS_PRIVATE)?;
        bind(c"/dev/null", c"/dev/urandom", libc::MS_BIND)?;
        bind(c"/dev/null", c"/dev/random", libc::MS_BIND)?;
        check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
        check(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program))
    }
}

#[test]
fn a_panic_names_its_place_and_ends_the_shell_by_sigabrt() {
    if !Uid::effective().is_root() {
        println!("not root: not tried");
        return;
    }
    for (name, value) in [("RUST_BACKTRACE", "0"), ("RUST_BACKTRACE", "1")] {
        let mut command = run::command(FTSH);
        command.args(["-c", "echo never"]).env(name, value);
        // SAFETY: only system calls.
        unsafe { command.pre_exec(take_randomness_away) };
        let output = command.output().expect("the shell");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{errors}");
        assert!(output.stdout.is_empty());
        assert!(errors.starts_with("ftsh: internal error: panicked at "), "{errors}");
        let lines = ["failed to generate random data", "This is a bug in ftsh, please report it."];
        assert!(lines.iter().all(|line| errors.contains(line)), "{errors}");
    }
}
