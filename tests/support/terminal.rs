//! Terminal and its user.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use nix::poll::{PollFlags, PollTimeout};
use nix::pty::{Winsize, openpty};
use nix::sys::termios::{LocalFlags, tcgetattr};
use nix::unistd::{Pid, tcgetpgrp};
use wait_timeout::ChildExt;

use super::{FTSH, is_ready, run};

/// Time limit, longer than any step.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// User at a terminal, where a shell runs a script.
pub(crate) struct User {
    terminal: File,
    slave: OwnedFd,
    seen: String,
    /// All output of the terminal.
    pub shown: String,
    shell: Child,
}

impl User {
    /// Runs a script; with job control if there is a `wrapper`, a line of bash in which `"$@"` is
    /// the shell under test.
    pub(crate) fn run(script: &str, wrapper: Option<&str>) -> Self {
        Self::start(&["-c", script], &[("TERM", "xterm")], 80, wrapper)
    }

    /// Runs the shell with these arguments and variables, at a terminal of this width.
    pub(crate) fn start(
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
            .arg(FTSH)
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

    /// Returns the process id of the shell, if there is no wrapper.
    pub(crate) fn pid(&self) -> i32 {
        self.shell.id() as i32
    }

    pub(crate) fn types(&mut self, text: &str) {
        self.terminal.write_all(text.as_bytes()).expect("a terminal");
    }

    /// Types text beyond the capacity of the terminal.
    pub(crate) fn types_beyond_capacity(&mut self, text: &str) {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            self.reads();
            match self.terminal.write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
            is_ready(&self.terminal, PollFlags::POLLOUT | PollFlags::POLLIN, 1000u16);
        }
    }

    /// Changes the width of the terminal.
    pub(crate) fn resizes(&self, columns: u16) {
        let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: the size is a live object.
        let result =
            unsafe { libc::ioctl(self.terminal.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) };
        assert_eq!(result, 0);
    }

    /// Types Ctrl-S, and waits until the terminal shows no further output.
    pub(crate) fn stops(&mut self) {
        self.types("\x13");
        self.awaits("stop", |user| !is_ready(&user.slave, PollFlags::POLLOUT, PollTimeout::ZERO));
        self.reads();
    }

    /// Reads the output of the terminal.
    pub(crate) fn reads(&mut self) {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = self.terminal.read(&mut bytes) {
            let text = String::from_utf8_lossy(&bytes[..count]);
            self.seen.push_str(&text);
            self.shown.push_str(&text);
        }
    }

    /// Waits for new output with this text, and returns the output before the text.
    pub(crate) fn sees(&mut self, text: &str) -> String {
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

    /// Returns true if the terminal shows this text in time. The output counts as unseen.
    pub(crate) fn has_shown(&mut self, text: &str, within: Duration) -> bool {
        let start = Instant::now();
        while !self.seen.contains(text) && start.elapsed() < within {
            self.reads();
            std::thread::sleep(Duration::from_millis(1));
        }
        self.seen.contains(text)
    }

    pub(crate) fn awaits(&mut self, what: &str, condition: impl Fn(&Self) -> bool) {
        let start = Instant::now();
        while !condition(self) {
            self.reads();
            assert!(start.elapsed() < LONG, "no {what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Returns the command in the foreground of the terminal.
    pub(crate) fn foreground(&self) -> String {
        let leader = tcgetpgrp(&self.terminal).map_or(0, Pid::as_raw);
        std::fs::read_to_string(format!("/proc/{leader}/cmdline")).unwrap_or_default()
    }

    /// Counts the stopped processes whose command line begins with `command`.
    pub(crate) fn stopped(&self, command: &str) -> usize {
        let is_stopped = |(pid, state): &(i32, String)| {
            let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            state == "T" && line.replace('\0', " ").starts_with(command)
        };
        self.processes().filter(is_stopped).count()
    }

    /// Counts the threads that are blocked in a read from the terminal.
    pub(crate) fn reading(&self) -> usize {
        let threads = self.processes().flat_map(|(pid, _)| {
            std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten()
        });
        let sleeps = threads.filter_map(|it| std::fs::read_to_string(it.path().join("wchan")).ok());
        sleeps.filter(|it| ["wait_woken", "n_tty_read"].contains(&it.as_str())).count()
    }

    /// Counts the times that the interpreter has gone to sleep.
    pub(crate) fn sleeps_of_interpreter(&self) -> u64 {
        let count = |pid| status_field(pid, "voluntary_ctxt_switches:")?.parse().ok();
        self.interpreter().and_then(count).unwrap_or_default()
    }

    /// Returns true while the interpreter has nothing to do.
    pub(crate) fn interpreter_is_asleep(&self) -> bool {
        let state = |pid| status_field(pid, "State:");
        self.interpreter().and_then(state).is_some_and(|state| state.starts_with('S'))
    }

    /// Returns the interpreter. Its parent is the shell's first process, the supervisor.
    fn interpreter(&self) -> Option<i32> {
        let supervisor = self.pid().to_string();
        let is_child = |pid| status_field(pid, "PPid:").is_some_and(|it| it == supervisor);
        self.processes().map(|(pid, _)| pid).find(|pid| is_child(*pid))
    }

    /// Returns the processes of the terminal's session, with their states.
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

    pub(crate) fn echo_is_on(&self) -> bool {
        let modes = tcgetattr(&self.slave).expect("a terminal");
        modes.local_flags.contains(LocalFlags::ECHO)
    }

    /// Returns true if the shell ends within this time.
    pub(crate) fn has_ended(&mut self, within: Duration) -> bool {
        self.shell.wait_timeout(within).expect("a shell").is_some()
    }

    pub(crate) fn ends(mut self) -> ExitStatus {
        self.shell.wait_timeout(LONG).expect("a shell").expect("an end")
    }

    /// Waits for the end of the shell, and returns the unseen output.
    pub(crate) fn ends_after(mut self) -> (ExitStatus, String) {
        let status = self.shell.wait_timeout(LONG).expect("a shell").expect("an end");
        self.reads();
        (status, std::mem::take(&mut self.seen))
    }

    /// Types Ctrl-C once.
    pub(crate) fn interrupts(mut self) -> ExitStatus {
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

/// Returns a field of the status of a process.
fn status_field(pid: i32, name: &str) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
}
