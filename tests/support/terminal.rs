//! A terminal and its user.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::pty::{Winsize, openpty};
use nix::sys::termios::{LocalFlags, tcgetattr};
use nix::unistd::{Pid, tcgetpgrp};
use wait_timeout::ChildExt;

use super::run;

/// Nothing here takes as long.
pub const LONG: Duration = Duration::from_secs(30);

/// A user at a terminal, where a shell runs a script.
pub struct User {
    terminal: File,
    slave: OwnedFd,
    seen: String,
    /// All that the terminal has shown.
    pub shown: String,
    shell: Child,
}

impl User {
    /// Runs it; with job control if there is a `wrapper`, a line of shell in which `"$@"` stands
    /// for our shell.
    pub fn run(script: &str, wrapper: Option<&str>) -> Self {
        Self::start(&["-c", script], &[("TERM", "xterm")], 80, wrapper)
    }

    /// Runs the shell with these arguments and variables, at a terminal of so many columns.
    pub fn start(
        arguments: &[&str],
        variables: &[(&str, &str)],
        columns: u16,
        wrapper: Option<&str>,
    ) -> Self {
        let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(&size, None).expect("a terminal");
        for end in [&pty.master, &pty.slave] {
            fcntl(end, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).expect("a terminal");
        }
        let copy = || pty.slave.try_clone().expect("a descriptor");
        let mut command = run::command("setsid");
        command.arg("--ctty");
        if let Some(wrapper) = wrapper {
            command.args(["bash", "-c", wrapper, "bash"]);
        }
        command
            .arg(env!("CARGO_BIN_EXE_ftsh"))
            .args(arguments)
            .env_remove("NO_COLOR")
            .envs(variables.iter().copied())
            .stdin(copy())
            .stdout(copy())
            .stderr(copy());
        let shell = command.spawn().expect("setsid exists");
        let flags = FcntlArg::F_SETFL(OFlag::O_RDWR | OFlag::O_NONBLOCK);
        fcntl(&pty.master, flags).expect("a terminal");
        Self {
            terminal: pty.master.into(),
            slave: pty.slave,
            seen: String::new(),
            shown: String::new(),
            shell,
        }
    }

    /// The shell's process id, if there is no wrapper.
    pub fn pid(&self) -> i32 {
        self.shell.id() as i32
    }

    pub fn types(&mut self, text: &str) {
        self.terminal.write_all(text.as_bytes()).expect("a terminal");
    }

    /// Types more than a terminal holds back.
    pub fn types_on_and_on(&mut self, text: &str) {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            self.reads();
            match self.terminal.write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
            let mut terminal =
                [PollFd::new(self.terminal.as_fd(), PollFlags::POLLOUT | PollFlags::POLLIN)];
            poll(&mut terminal, 1000u16).expect("a terminal");
        }
    }

    /// Makes the terminal narrower or wider.
    pub fn resizes(&self, columns: u16) {
        let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: the size is a live object.
        let result =
            unsafe { libc::ioctl(self.terminal.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) };
        assert_eq!(result, 0);
    }

    /// Ctrl-S, until the terminal shows nothing more.
    pub fn stops(&mut self) {
        self.types("\x13");
        self.awaits("stop", |user| {
            let mut slave = [PollFd::new(user.slave.as_fd(), PollFlags::POLLOUT)];
            poll(&mut slave, PollTimeout::ZERO) == Ok(0)
        });
        self.reads();
    }

    /// Takes in what the terminal shows.
    pub fn reads(&mut self) {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = self.terminal.read(&mut bytes) {
            let text = String::from_utf8_lossy(&bytes[..count]);
            self.seen.push_str(&text);
            self.shown.push_str(&text);
        }
    }

    /// Waits until the terminal has shown this since the last time; says what came before it.
    pub fn sees(&mut self, text: &str) -> String {
        let start = Instant::now();
        loop {
            self.reads();
            if let Some(at) = self.seen.find(text) {
                let mut before: String = self.seen.drain(..at + text.len()).collect();
                before.truncate(at);
                return before;
            }
            assert!(start.elapsed() < LONG, "no {text:?} in {:?}", self.seen);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Whether the terminal shows this within so long; what it has shown is still to be seen.
    pub fn has_shown(&mut self, text: &str, within: Duration) -> bool {
        let start = Instant::now();
        while !self.seen.contains(text) && start.elapsed() < within {
            self.reads();
            std::thread::sleep(Duration::from_millis(1));
        }
        self.seen.contains(text)
    }

    pub fn awaits(&mut self, what: &str, condition: impl Fn(&Self) -> bool) {
        let start = Instant::now();
        while !condition(self) {
            self.reads();
            assert!(start.elapsed() < LONG, "no {what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The command that has the terminal.
    pub fn foreground(&self) -> String {
        let leader = tcgetpgrp(&self.terminal).map_or(0, Pid::as_raw);
        std::fs::read_to_string(format!("/proc/{leader}/cmdline")).unwrap_or_default()
    }

    /// Counts the processes that are stopped, and whose command line begins with `command`.
    pub fn stopped(&self, command: &str) -> usize {
        let is_stopped = |(pid, state): &(i32, String)| {
            let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            state == "T" && line.replace('\0', " ").starts_with(command)
        };
        self.processes().filter(is_stopped).count()
    }

    /// Counts the threads that are blocked in a read from the terminal.
    pub fn reading(&self) -> usize {
        let threads = self.processes().flat_map(|(pid, _)| {
            std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten()
        });
        let sleeps = threads.filter_map(|it| std::fs::read_to_string(it.path().join("wchan")).ok());
        sleeps.filter(|it| ["wait_woken", "n_tty_read"].contains(&it.as_str())).count()
    }

    /// The processes of the terminal's session, with their states.
    fn processes(&self) -> impl Iterator<Item = (i32, String)> {
        let session = self.pid();
        let processes = std::fs::read_dir("/proc").expect("processes").flatten();
        let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter_map(move |pid: i32| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            // The state, the parent, the group and the session follow the name.
            let mut fields = stat.rsplit(") ").next()?.split(' ');
            let state = fields.next()?.to_owned();
            (fields.nth(2)?.parse() == Ok(session)).then_some((pid, state))
        })
    }

    pub fn echo_is_on(&self) -> bool {
        let modes = tcgetattr(&self.slave).expect("a terminal");
        modes.local_flags.contains(LocalFlags::ECHO)
    }

    /// Whether the shell has ended, after so long at most.
    pub fn has_ended(&mut self, within: Duration) -> bool {
        self.shell.wait_timeout(within).expect("a shell").is_some()
    }

    pub fn ends(mut self) -> ExitStatus {
        self.shell.wait_timeout(LONG).expect("a shell").expect("an end")
    }

    /// Waits for its end; says all that the terminal has shown since the last time.
    pub fn ends_after(mut self) -> (ExitStatus, String) {
        let status = self.shell.wait_timeout(LONG).expect("a shell").expect("an end");
        self.reads();
        (status, std::mem::take(&mut self.seen))
    }

    /// Ctrl-C, once.
    pub fn interrupts(mut self) -> ExitStatus {
        self.types("\x03");
        self.ends()
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}
