//! Commands at a terminal.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;

use nix::pty::openpty;
use nix::sys::termios::{LocalFlags, tcgetattr};

use super::*;
use crate::driver::process::{die_by, supervise, sys};

const SCRIPT: &str = "FTSH_TEST_SCRIPT";

/// A user at a terminal, where a shell runs a script.
struct User {
    terminal: File,
    slave: std::os::fd::OwnedFd,
    seen: String,
    shell: process::Child,
}

impl User {
    /// Runs it; with job control if there is a `wrapper`, a line of shell in which `"$@"` stands
    /// for our shell.
    fn run(test: &str, script: &str, wrapper: Option<&str>) -> Self {
        let pty = openpty(None, None).expect("a terminal");
        let copy = || pty.slave.try_clone().expect("a descriptor");
        let program = std::env::current_exe().expect("a test has a program");
        let mut command = process::Command::new("setsid");
        command.arg("--ctty");
        if let Some(wrapper) = wrapper {
            command.args(["bash", "-c", wrapper, "bash"]);
        }
        let shell = command
            .arg(program)
            .args(["--exact", &format!("driver::process::tests::terminal::{test}"), "--nocapture"])
            .env(SCRIPT, script)
            .stdin(copy())
            .stdout(copy())
            .stderr(copy())
            .spawn()
            .expect("setsid exists");
        sys::add_flags(pty.master.as_fd(), nix::fcntl::OFlag::O_NONBLOCK).expect("a terminal");
        Self { terminal: pty.master.into(), slave: pty.slave, seen: String::new(), shell }
    }

    fn types(&mut self, text: &str) {
        self.terminal.write_all(text.as_bytes()).expect("a terminal");
    }

    /// Waits until the terminal has shown this since the last time.
    fn sees(&mut self, text: &str) {
        let start = Instant::now();
        loop {
            let mut bytes = [0; 4096];
            if let Ok(count) = self.terminal.read(&mut bytes) {
                self.seen.push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
            if let Some(at) = self.seen.find(text) {
                self.seen.drain(..at + text.len());
                return;
            }
            assert!(start.elapsed() < LONG, "no {text:?} in {:?}", self.seen);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn echo_is_on(&self) -> bool {
        let modes = tcgetattr(&self.slave).expect("a terminal");
        modes.local_flags.contains(LocalFlags::ECHO)
    }

    fn ends(mut self) -> process::ExitStatus {
        self.shell.wait().expect("an end")
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

/// What the shell of a test does: the script's lines, one after the other. `null:` gives a line no
/// input.
fn run_script() -> bool {
    let Ok(script) = std::env::var(SCRIPT) else { return false };
    let supervision = supervise().expect("a supervisor");
    let settings = Settings { supervision: Some(supervision), ..Settings::default() };
    let mut world = World::with_settings(settings);
    for line in script.lines() {
        let line = if let Some(line) = line.strip_prefix("null:") {
            world.with(&[(0, Port::Null)]);
            line
        } else {
            world.with(&[]);
            line
        };
        let process = world.start(shell(line));
        let interrupted = world.expect("end", |event| match event {
            Event::Interrupted(signal) => Some(Some(*signal)),
            Event::Exited { process: ended, .. } if *ended == process => Some(None),
            _ => None,
        });
        if let Some(signal) = interrupted {
            drop(world);
            die_by(signal);
        }
    }
    drop(world);
    sys::exit_now(0);
}

#[test]
fn a_command_reads_from_the_terminal() {
    if run_script() {
        return;
    }
    let script = "echo 1?; read line; echo got $line\necho 2?; read line; echo got $line";
    let mut user = User::run("a_command_reads_from_the_terminal", script, None);
    for answer in ["one", "two"] {
        user.sees("?");
        user.types(&format!("{answer}\n"));
        user.sees(&format!("got {answer}"));
    }
    assert_eq!(user.ends().code(), Some(0));
}

#[test]
fn a_command_without_input_may_still_ask_at_the_terminal() {
    if run_script() {
        return;
    }
    let script = "null:echo password?; read line < /dev/tty; echo got $line";
    let mut user = User::run("a_command_without_input_may_still_ask_at_the_terminal", script, None);
    user.sees("password?");
    user.types("secret\n");
    user.sees("got secret");
    assert_eq!(user.ends().code(), Some(0));
}

#[test]
fn an_interrupt_ends_the_command_and_the_script() {
    if run_script() {
        return;
    }
    for line in ["echo ready; exec sleep 1000", "null:echo ready; exec sleep 1000"] {
        let script = format!("{line}\necho wrong");
        let mut user = User::run("an_interrupt_ends_the_command_and_the_script", &script, None);
        user.sees("ready");
        user.types("\x03");
        assert_eq!(user.ends().signal(), Some(libc::SIGINT));
    }
}

#[test]
fn the_terminal_is_restored_after_a_killed_program() {
    if run_script() {
        return;
    }
    let script = "stty raw -echo; kill -KILL $$\nread line";
    let mut user = User::run("the_terminal_is_restored_after_a_killed_program", script, None);
    until("it isn't restored", || user.echo_is_on());
    user.types("\n");
    assert_eq!(user.ends().code(), Some(0));

    // What a program does on purpose stays.
    let script = "stty -echo\necho next; read line";
    let mut user = User::run("the_terminal_is_restored_after_a_killed_program", script, None);
    user.sees("next");
    assert!(!user.echo_is_on());
    user.types("\n");
    assert_eq!(user.ends().code(), Some(0));
}

#[test]
fn a_script_stops_and_continues_with_its_commands() {
    if run_script() {
        return;
    }
    for line in ["", "null:"] {
        let script = format!("{line}echo ready; sleep 0.3; echo line: $(head -n 1 < /dev/tty)");
        let wrapper = "set -m; \"$@\"; echo stopped $?; fg; echo ended $?";
        let test = "a_script_stops_and_continues_with_its_commands";
        let mut user = User::run(test, &script, Some(wrapper));
        user.sees("ready");
        user.types("\x1a");
        user.sees("stopped 1");
        user.types("typed\n");
        user.sees("line: typed");
        user.sees("ended 0");
        user.ends();
    }
}
