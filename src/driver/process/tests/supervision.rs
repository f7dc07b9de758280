//! What is left when the shell itself is killed.

use super::*;
use crate::driver::process::{supervise, sys};

/// Runs a shell of two processes in a process of its own: the supervisor's and the interpreter's
/// ids, once all its daemons run.
fn shell_with_daemons(name: &str, mark: &str, fallback: &str) -> (process::Child, i32) {
    let program = std::env::current_exe().expect("a test has a program");
    let child = process::Command::new(program)
        .args(["--exact", name, "--include-ignored", "--test-threads=1"])
        .env("FTSH_TEST_ALONE", name)
        .env("FTSH_TEST_SHELL", mark)
        .env("FTSH_TEST_FALLBACK", fallback)
        .stdin(process::Stdio::null())
        .stdout(process::Stdio::null())
        .stderr(process::Stdio::null())
        .spawn()
        .expect("a test can start itself");
    until("the daemons don't start", || marked(mark).len() == 41);
    let interpreter = super::super::proc::children(child.id() as i32);
    (child, interpreter[0])
}

/// The other side of it.
fn run_shell(mark: &str) {
    // Tests may run in a thread, which is good enough here: it is the only one that does anything.
    let supervision = supervise().expect("a supervisor");
    let settings = Settings { supervision: Some(supervision), ..Settings::default() };
    let mut world = World::with_settings(settings);
    let script = "for i in $(seq 20); do setsid sh -c 'trap \"\" TERM; sleep 1000; :' & done; wait";
    world.with(&[(0, Port::Null), (1, Port::Null), (2, Port::Null)]);
    let process = world.start(with_variables(&["sh", "-c", script], &[("MARK", mark)]));
    let end = |event: &Event| match event {
        Event::Interrupted(signal) => Some(Some(*signal)),
        Event::Exited { process: ended, .. } if *ended == process => Some(None),
        _ => None,
    };
    if let Some(signal) = world.expect("end", end) {
        drop(world);
        super::super::die_by(signal);
    }
    sys::exit_now(7);
}

fn check(test: &str, act: impl Fn(i32, i32), ended: impl Fn(process::ExitStatus) -> bool) {
    let name = format!("driver::process::tests::supervision::{test}");
    if let Some(mark) = std::env::var_os("FTSH_TEST_SHELL") {
        return run_shell(mark.to_str().expect("text"));
    }
    if std::env::var_os("FTSH_TEST_ALONE").is_some() {
        return;
    }
    for (index, fallback) in ["0", "1"].into_iter().enumerate() {
        let mark = format!("{test}{index}{}", process::id());
        let (mut child, interpreter) = shell_with_daemons(&name, &mark, fallback);
        let start = Instant::now();
        act(child.id() as i32, interpreter);
        let status = child.wait().expect("an end");
        until("daemons live on", || marked(&mark).is_empty());
        eprintln!("{test}, fallback {fallback}: gone after {:?}", start.elapsed());
        assert!(ended(status), "{status}");
        until("the interpreter lives on", || !lives(interpreter));
    }
}

fn by_signal(status: process::ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[test]
fn nothing_outlives_a_killed_interpreter() {
    check(
        "nothing_outlives_a_killed_interpreter",
        |_, interpreter| sys::kill(interpreter, libc::SIGKILL).expect("it lives"),
        |status| by_signal(status) == Some(libc::SIGKILL),
    );
}

#[test]
fn nothing_outlives_a_killed_supervisor() {
    check(
        "nothing_outlives_a_killed_supervisor",
        |supervisor, _| sys::kill(supervisor, libc::SIGKILL).expect("it lives"),
        |status| by_signal(status) == Some(libc::SIGKILL),
    );
}

#[test]
fn a_signal_to_the_supervisor_ends_the_shell_by_that_signal() {
    check(
        "a_signal_to_the_supervisor_ends_the_shell_by_that_signal",
        |supervisor, _| sys::kill(supervisor, libc::SIGTERM).expect("it lives"),
        |status| by_signal(status) == Some(libc::SIGTERM),
    );
}

#[test]
fn the_shell_ends_as_the_interpreter_does() {
    check(
        "the_shell_ends_as_the_interpreter_does",
        |_, interpreter| {
            // Its command, and all it started.
            super::super::purge::stop_and_kill(&super::super::proc::children(interpreter));
        },
        |status| status.code() == Some(7),
    );
}
