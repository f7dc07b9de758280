//! Commands at a terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::pty::openpty;
use nix::sys::stat::Mode;
use nix::sys::termios::{LocalFlags, tcgetattr};
use nix::unistd::{Pid, mkfifo, tcgetpgrp};
use wait_timeout::ChildExt;

/// Nothing here takes as long.
const LONG: Duration = Duration::from_secs(30);

/// A user at a terminal, where a shell runs a script.
struct User {
    terminal: File,
    slave: OwnedFd,
    seen: String,
    shell: Child,
}

impl User {
    /// Runs it; with job control if there is a `wrapper`, a line of shell in which `"$@"` stands
    /// for our shell.
    fn run(script: &str, wrapper: Option<&str>) -> Self {
        let pty = openpty(None, None).expect("a terminal");
        let copy = || pty.slave.try_clone().expect("a descriptor");
        let mut command = Command::new("setsid");
        command.arg("--ctty");
        if let Some(wrapper) = wrapper {
            command.args(["bash", "-c", wrapper, "bash"]);
        }
        let shell = command
            .arg(env!("CARGO_BIN_EXE_ftsh"))
            .args(["-c", script])
            .stdin(copy())
            .stdout(copy())
            .stderr(copy())
            .spawn()
            .expect("setsid exists");
        let flags = FcntlArg::F_SETFL(OFlag::O_RDWR | OFlag::O_NONBLOCK);
        fcntl(&pty.master, flags).expect("a terminal");
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

    fn awaits(&self, what: &str, condition: impl Fn(&Self) -> bool) {
        let start = Instant::now();
        while !condition(self) {
            assert!(start.elapsed() < LONG, "no {what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The command that has the terminal.
    fn foreground(&self) -> String {
        let leader = tcgetpgrp(&self.terminal).map_or(0, Pid::as_raw);
        std::fs::read_to_string(format!("/proc/{leader}/cmdline")).unwrap_or_default()
    }

    fn echo_is_on(&self) -> bool {
        let modes = tcgetattr(&self.slave).expect("a terminal");
        modes.local_flags.contains(LocalFlags::ECHO)
    }

    fn ends(mut self) -> ExitStatus {
        self.shell.wait_timeout(LONG).expect("a shell").expect("an end")
    }

    /// Ctrl-C until it ends: one that is typed while a command is about to give the terminal back
    /// is for that command alone.
    fn interrupts(mut self) -> ExitStatus {
        let start = Instant::now();
        while start.elapsed() < LONG {
            self.types("\x03");
            if let Some(status) =
                self.shell.wait_timeout(Duration::from_millis(100)).expect("a shell")
            {
                return status;
            }
        }
        panic!("no end: {:?}", self.seen)
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

#[test]
fn a_command_reads_from_the_terminal() {
    let script =
        "sh -c 'echo 1?; read line; echo got $line'\nsh -c 'echo 2?; read line; echo got $line'";
    let mut user = User::run(script, None);
    for answer in ["one", "two"] {
        user.sees("?");
        user.types(&format!("{answer}\n"));
        user.sees(&format!("got {answer}"));
    }
    assert_eq!(user.ends().code(), Some(0));
}

#[test]
fn a_command_without_input_may_still_ask_at_the_terminal() {
    let ask = "sh -c 'echo password?; read line < /dev/tty; echo got $line'";
    for script in [ask, &format!("forall x in 1\n{ask}\nend"), &format!("echo a | {ask}")] {
        let mut user = User::run(script, None);
        user.sees("password?");
        user.types("secret\n");
        user.sees("got secret");
        assert_eq!(user.ends().code(), Some(0));
    }
}

#[test]
fn a_command_asks_while_another_one_has_the_terminal() {
    let script = "sh -c 'sleep 1000 & wait' | sh -c 'read line < /dev/tty; echo got $line'";
    let mut user = User::run(&format!("try for 1 hour\n{script}\nend"), None);
    user.types("text\n");
    user.sees("got text");
    // The shell itself has the terminal again, or the command that waits.
    user.awaits("end of the reader", |user| user.foreground().contains("sleep 1000"));
    assert_eq!(user.interrupts().signal(), Some(libc::SIGINT));
}

#[test]
fn an_interrupt_ends_the_command_and_the_script() {
    let wait = "sh -c 'echo ready; exec sleep 1000'";
    let all = format!("forall x in 1 2 3\n{wait}\nend");
    let delay = "try for 1 hour every 1 hour; echo ready; failure; end";
    for line in [wait, &all, delay, "echo ready; sleep 1000"] {
        let mut user = User::run(&format!("try for 1 hour\n{line}\nend\necho wrong"), None);
        user.sees("ready");
        assert_eq!(user.interrupts().signal(), Some(libc::SIGINT), "{line}");
    }
}

#[test]
fn the_terminal_is_restored_after_a_killed_program() {
    let script =
        "try 1 time for 200 ms; sh -c 'stty raw -echo; echo raw; sleep 1000'; catch; end\nread x";
    let mut user = User::run(script, None);
    user.sees("raw");
    user.awaits("restored modes", User::echo_is_on);
    user.types("\n");
    assert_eq!(user.ends().code(), Some(0));
}

#[test]
fn what_a_program_sets_on_purpose_stays() {
    let mut user = User::run("stty -echo\nsh -c 'echo next; read line'", None);
    user.sees("next");
    assert!(!user.echo_is_on());
    user.types("\n");
    assert_eq!(user.ends().code(), Some(0));
}

#[test]
fn a_script_stops_and_continues_with_its_commands() {
    let place = tempfile::tempdir().expect("a directory");
    for round in 0..2 {
        let go = place.path().join(round.to_string());
        mkfifo(&go, Mode::S_IRWXU).expect("a fifo");
        // It starts nothing meanwhile: a shell can't stop while its new child does, before exec.
        let wait = format!("read go < {}", go.display());
        let line = format!("sh -c 'echo ready; {wait}; echo line: $(head -n 1 < /dev/tty)'");
        let script = if round == 0 { line } else { format!("forall x in 1\n{line}\nend") };
        let wrapper = "set -m; \"$@\"; echo stopped $?; fg; echo ended $?";
        let mut user = User::run(&script, Some(wrapper));
        user.sees("ready");
        user.types("\x1a");
        user.sees("stopped 1");
        std::fs::write(go, "go\n").expect("a fifo");
        user.types("typed\n");
        user.sees("line: typed");
        user.sees("ended 0");
        user.ends();
    }
}
