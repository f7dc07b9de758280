//! Run of the shell: started in a process group of its own, supervised, and cleaned up.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{PipeWriter, Seek, Write, pipe};
use std::os::fd::AsRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Once;
use std::time::{Duration, Instant};

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigHandler, SigSet, Signal, kill, killpg, signal};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::{Gid, Pid, Uid, setgid, setgroups, setsid, setuid};
use tempfile::TempDir;
use wait_timeout::ChildExt;

use super::apart::live_apart;
use super::old_kernel::take_features;
use super::processes::{Mark, Survivor};
use super::program::caller_environment;
use super::{FTSH, Ftsh, WAYS, lateness};

/// Folders of programs for runs, after the folder of the shell.
pub(super) const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// Maximum address space of a run, which protects the machine from a run out of control.
const MEMORY: u64 = 4 << 30;
/// User id of unprivileged runs.
pub(crate) const NOBODY: u32 = 65534;

/// Capacity of a pipe without a reader.
const PIPE: usize = 1 << 16;

/// Creates a command with the default disposition of every signal, without inherited descriptors,
/// and apart from the shells of other tests.
///
/// A script's `&`, `nohup` and service managers start programs, and thus the tests, with ignored
/// signals; a runner with a lock on descriptor 7 lets the tests have it.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    static CLEAN: Once = Once::new();
    CLEAN.call_once(|| {
        catch_ignored();
        // SAFETY: descriptors only change a flag.
        unsafe { libc::close_range(3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC as i32) };
    });
    live_apart();
    Command::new(program)
}

/// Catches ignored signals by a handler without effect. Programs then start with the default.
///
/// A function between fork and exec could restore the default as well, but a fork copies the page
/// tables of the tests: a tenth of the processor time.
fn catch_ignored() {
    extern "C" fn ignore(_: i32) {}
    let status = fs::read_to_string("/proc/self/status").expect("a state");
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("signals");
    let ignored = u64::from_str_radix(ignored.trim(), 16).expect("a set of signals");
    for caught in Signal::iterator().filter(|it| ignored & (1 << (*it as i32 - 1)) != 0) {
        // SAFETY: the handler does nothing.
        unsafe { signal(caught, SigHandler::Handler(ignore)) }.expect("a handler");
    }
}

/// Returns a file in memory, since some file systems make and remove files slowly.
fn memory_file() -> File {
    let made = memfd_create(c"test", MFdFlags::MFD_CLOEXEC).expect("a file in memory");
    // Concurrent writers to the first descriptor would overwrite each other's output.
    let path = format!("/proc/self/fd/{}", made.as_raw_fd());
    File::options().read(true).write(true).open(path).expect("the same file")
}

/// Limits the address space of a process from outside, since a function between fork and exec
/// requires a fork.
fn limit_memory(process: &Child) {
    let limit = libc::rlimit { rlim_cur: MEMORY, rlim_max: MEMORY };
    let pid = process.id() as libc::pid_t;
    // SAFETY: the limit is read, and the pointer to the previous one is null.
    unsafe { libc::prlimit(pid, libc::RLIMIT_AS, &raw const limit, std::ptr::null_mut()) };
}

/// Shell in progress.
pub(crate) struct Running {
    child: Child,
    started: Instant,
    limit: Duration,
    mark: Option<Mark>,
    stdout: File,
    stderr: File,
    input: Option<PipeWriter>,
    directory: Option<TempDir>,
    command_line: String,
}

impl Running {
    pub(super) fn new(ftsh: Ftsh) -> Self {
        let mark = ftsh.mark.unwrap_or_else(Mark::new);
        let (name, value) = mark.variable();
        let bin = std::path::Path::new(FTSH).parent().expect("the binary is in a directory");
        let directory = ftsh.directory.path();
        let mut words = ftsh.wrapper.iter().map(OsString::as_os_str).chain([OsStr::new(FTSH)]);
        let mut command = command(words.next().expect("at least the shell"));
        command
            .args(words)
            .args(&ftsh.arguments)
            .current_dir(directory)
            .env_clear()
            .envs(caller_environment())
            .env("PATH", format!("{}:{PATH}", bin.display()))
            .env("HOME", directory)
            .env("TMPDIR", directory)
            .env("FTSH_CHANNELS", directory.join("channels"))
            .env("LC_ALL", "C")
            .envs(ftsh.environment.iter().map(|(name, value)| (name, value)))
            .env(name, value);
        if !ftsh.session {
            command.process_group(0);
        }
        // Files instead of pipes: processes left by the run cannot block the test.
        let stdout = memory_file();
        let stderr = memory_file();
        command.stdout(stdout.try_clone().expect("a descriptor"));
        command.stderr(match ftsh.errors {
            None => stderr.try_clone().expect("a descriptor").into(),
            Some(end) => Stdio::from(end),
        });
        let mut input = None;
        command.stdin(match &ftsh.stdin {
            written if ftsh.stays_open => {
                let (reader, mut writer) = pipe().expect("a pipe");
                let written = written.as_deref().unwrap_or_default();
                assert!(written.len() <= PIPE, "more than a pipe takes");
                writer.write_all(written).expect("standard input");
                input = Some(writer);
                reader.into()
            }
            None => Stdio::null(),
            Some(input) => {
                let mut file = memory_file();
                file.write_all(input).expect("standard input");
                file.rewind().expect("standard input from its beginning");
                file.into()
            }
        });
        let (ignored, session, with_thread) = (ftsh.ignored, ftsh.session, ftsh.with_thread);
        let (blocked, way) = (ftsh.blocked, ftsh.way);
        let is_reduced = way != WAYS[0];
        let drops_rights = ftsh.unprivileged && Uid::effective().is_root();
        if session
            || with_thread.is_some()
            || ignored.is_some()
            || blocked != SigSet::empty()
            || is_reduced
            || drops_rights
        {
            // SAFETY: between fork and exec, and all calls are async-signal-safe.
            unsafe {
                command.pre_exec(move || {
                    // As root, so that programs with the set-uid bit keep their effect.
                    if is_reduced {
                        take_features(&way)?;
                    }
                    // The signal at the end of the thread is lost with the rights.
                    if drops_rights {
                        setgroups(&[])?;
                        setgid(Gid::from_raw(NOBODY))?;
                        setuid(Uid::from_raw(NOBODY))?;
                    }
                    if session {
                        setsid()?;
                    }
                    if let Some(signal) = with_thread {
                        set_pdeathsig(signal)?;
                    }
                    if let Some(ignored) = ignored {
                        signal(ignored, SigHandler::SigIgn)?;
                    }
                    blocked.thread_block()?;
                    Ok(())
                });
            }
        }
        lateness::watch();
        let command_line = format!("{command:?}");
        let started = Instant::now();
        let child = command.spawn().expect("the shell starts");
        limit_memory(&child);
        Self {
            child,
            started,
            limit: ftsh.limit,
            mark: Some(mark),
            stdout,
            stderr,
            input,
            directory: Some(ftsh.directory),
            command_line,
        }
    }

    /// Returns the process id of the shell.
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id() as i32)
    }

    /// Returns the process id of the interpreter, once the interpreter exists.
    pub(crate) fn interpreter(&self) -> Option<Pid> {
        let pid = self.pid();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
        let name = |pid: &str| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let found = children.split_whitespace().find(|pid| name(pid) != "ftsh-courier\n");
        found?.parse().ok().map(Pid::from_raw)
    }

    /// Sends a signal to the process group of the shell.
    pub(crate) fn signal_group(&self, signal: Signal) {
        killpg(self.pid(), signal).expect("the shell's group takes a signal");
    }

    /// Sends a signal to the shell.
    pub(crate) fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).expect("the shell takes a signal");
    }

    /// Writes to standard input, which stays open.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("standard input stays open");
        // The write fails if the reader has ended.
        let _ = input.write_all(bytes);
    }

    /// Closes standard input.
    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    /// Returns the standard error so far.
    pub(crate) fn errors(&self) -> String {
        String::from_utf8_lossy(&read(&self.stderr)).into_owned()
    }

    /// Returns the standard output so far.
    pub(crate) fn output(&self) -> Vec<u8> {
        read(&self.stdout)
    }

    /// Returns true if there is standard output.
    pub(crate) fn has_output(&self) -> bool {
        !self.output().is_empty()
    }

    /// Waits until `condition` holds. Fails the test after the limit of the run, or if the shell
    /// ends.
    pub(crate) fn until(&self, what: &str, condition: impl FnMut(&Self) -> bool) {
        self.wait_until(what, Self::has_ended, condition);
    }

    /// Waits like [`Running::until`], also after the end of the shell.
    pub(crate) fn eventually(&self, what: &str, condition: impl FnMut(&Self) -> bool) {
        self.wait_until(what, |_| false, condition);
    }

    /// Waits until no process of the run is left.
    pub(crate) fn until_gone(&self, what: &str) {
        // At its start, a program has no environment for a moment, and is not found.
        self.eventually(what, |run| run.has_ended() && run.processes().is_empty());
    }

    fn wait_until(
        &self,
        what: &str,
        is_in_vain: impl Fn(&Self) -> bool,
        mut condition: impl FnMut(&Self) -> bool,
    ) {
        loop {
            let (in_vain, passed) = (is_in_vain(self), self.started.elapsed());
            if condition(self) {
                return;
            }
            let why = if in_vain { "the shell has ended" } else { "not within its limit" };
            assert!(
                !in_vain && passed < self.limit,
                "{what}: {why}, after {passed:?}\n{}\nstandard output:\n{}\nstandard error:\n{}",
                self.command_line,
                String::from_utf8_lossy(&read(&self.stdout)),
                self.errors(),
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Returns true if the shell has ended, without waiting for the shell.
    pub(crate) fn has_ended(&self) -> bool {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        waitid(Id::Pid(self.pid()), flags) != Ok(WaitStatus::StillAlive)
    }

    /// Waits until a file in the directory of the run has this many lines.
    pub(crate) fn until_lines(&self, name: &str, lines: usize) {
        self.until(&format!("{lines} lines in {name}"), |run| {
            fs::read_to_string(run.directory().join(name))
                .is_ok_and(|text| text.matches('\n').count() >= lines)
        });
    }

    /// Returns the directory of the run.
    pub(crate) fn directory(&self) -> &std::path::Path {
        self.directory.as_ref().expect("kept until the end").path()
    }

    /// Returns the live processes of the run, including the shell.
    pub(crate) fn processes(&self) -> Vec<Survivor> {
        self.mark.as_ref().expect("kept until the end").processes()
    }

    /// Waits for the end, or for the limit.
    pub(crate) fn wait(mut self) -> Finished {
        let (status, elapsed) = self.await_end();
        let mut mark = self.mark.take().expect("kept until the end");
        let survivors = mark.survivors();
        let hang = if status.is_none() { self.hang(&survivors) } else { String::new() };
        self.end();
        if !survivors.is_empty() {
            mark.kill();
        }
        self.finished(status, elapsed, survivors, mark, hang)
    }

    /// Waits for the end like [`Running::wait`], and leaves the remaining processes to the next run
    /// ([`Ftsh::after`]).
    pub(crate) fn leave(mut self) -> Finished {
        let (status, elapsed) = self.await_end();
        self.end();
        let mut mark = self.mark.take().expect("kept until the end");
        let survivors = mark.survivors();
        self.finished(status, elapsed, survivors, mark, String::new())
    }

    fn await_end(&mut self) -> (Option<ExitStatus>, Duration) {
        let rest = self.limit.saturating_sub(self.started.elapsed());
        let status = self.child.wait_timeout(rest).expect("the shell can be waited for");
        (status, self.started.elapsed())
    }

    /// Describes what hangs: the script, and each process with its state.
    fn hang(&self, survivors: &[Survivor]) -> String {
        let script = fs::read(self.directory().join("script.ftsh")).unwrap_or_default();
        let states: String = survivors.iter().map(Survivor::state).collect();
        format!("{}\n{states}", String::from_utf8_lossy(&script))
    }

    fn finished(
        mut self,
        status: Option<ExitStatus>,
        elapsed: Duration,
        survivors: Vec<Survivor>,
        mark: Mark,
        hang: String,
    ) -> Finished {
        Finished {
            status,
            started: self.started,
            elapsed,
            survivors,
            stdout: read(&self.stdout),
            stderr: read(&self.stderr),
            directory: self.directory.take().expect("taken once"),
            mark,
            command_line: std::mem::take(&mut self.command_line),
            hang,
        }
    }

    /// Kills the shell if it has not ended.
    fn end(&mut self) {
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            // The group id cannot be reused while its leader is a zombie.
            let _ = killpg(self.pid(), Signal::SIGKILL);
            let _ = self.child.wait();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

fn read(file: &File) -> Vec<u8> {
    use std::os::unix::fs::FileExt;
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, 0).expect("what was written can be read");
    bytes
}

/// Finished run.
pub(crate) struct Finished {
    /// Exit status; `None` if the limit passed and the run was killed.
    pub status: Option<ExitStatus>,
    /// Start of the run.
    started: Instant,
    /// Duration of the run.
    pub elapsed: Duration,
    /// Processes that were alive at the end of the shell.
    pub survivors: Vec<Survivor>,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
    /// Directory of the run.
    pub directory: TempDir,
    /// Mark in the environment of the run's processes.
    pub(super) mark: Mark,
    command_line: String,
    /// State of the processes that a hang left; empty for a run that ended.
    hang: String,
}

impl Finished {
    /// Describes the run for people.
    pub(crate) fn story(&self) -> String {
        let ended = match self.status {
            None => "killed at the test's limit".into(),
            Some(status) => status.to_string(),
        };
        format!(
            "{}\n{ended} after {:?}\nstandard output:\n{}\nstandard error:\n{}",
            self.command_line,
            self.elapsed,
            String::from_utf8_lossy(&self.stdout),
            String::from_utf8_lossy(&self.stderr),
        )
    }

    /// Returns standard output as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Returns the warnings of `-n`, except for programs missing on this machine.
    pub(crate) fn warnings(&self) -> String {
        let errors = self.errors();
        let is_here = |it: &&str| !it.starts_with("warning[missing-program]");
        errors.split("\n\n").filter(is_here).collect::<Vec<_>>().join("\n\n")
    }

    /// Returns standard error as text.
    pub(crate) fn errors(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// Returns a file in the directory of the run as text.
    pub(crate) fn read(&self, name: &str) -> String {
        let bytes = fs::read(self.directory.path().join(name))
            .unwrap_or_else(|error| panic!("{name}: {error}\n{}", self.story()));
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Checks for a hang and for a panic.
    pub(crate) fn check_health(&self) {
        assert!(self.status.is_some(), "hung: {}\n{}", self.story(), self.hang);
        assert!(!self.errors().contains("panicked at"), "panicked: {}", self.story());
    }

    /// Checks the exit status.
    pub(crate) fn expect_code(&self, code: i32) {
        let found = self.status.and_then(|status| status.code());
        assert_eq!(found, Some(code), "exit status of {}", self.story());
    }

    /// Checks that a signal ended the run.
    pub(crate) fn killed_by(&self, signal: Signal) -> &Self {
        self.check_health();
        let found = self.status.and_then(|status| status.signal());
        assert_eq!(found, Some(signal as i32), "signal that ended {}", self.story());
        self
    }

    /// Checks that no process is left.
    pub(crate) fn nothing_left(&self) -> &Self {
        let left: Vec<_> = self.survivors.iter().filter(|it| !it.ends_by_itself()).collect();
        assert!(left.is_empty(), "left running: {left:?}\n{}", self.story());
        self
    }

    /// Checks the whole standard output.
    pub(crate) fn expect_stdout(&self, expected: &[u8]) {
        assert!(
            self.stdout == expected,
            "expected on standard output:\n{}\n{}",
            String::from_utf8_lossy(expected),
            self.story()
        );
    }

    /// Checks that standard error contains this text.
    pub(crate) fn expect_stderr(&self, text: &str) {
        assert!(
            self.errors().contains(text),
            "expected on standard error: {text}\n{}",
            self.story()
        );
    }

    /// Checks that standard error is one line.
    pub(crate) fn one_line(&self) -> &Self {
        let errors = self.errors();
        assert_eq!(
            errors.trim_end().lines().count(),
            1,
            "lines on standard error: {}",
            self.story()
        );
        self
    }

    /// Returns true if the run took at most `most`, plus the measured delay of the machine.
    pub(crate) fn within(&self, most: Duration) -> bool {
        self.elapsed <= most || self.elapsed <= most + lateness::since(self.started)
    }

    /// Checks the duration.
    pub(crate) fn expect_time(&self, at_least: Duration, at_most: Duration) {
        assert!(
            self.elapsed >= at_least && self.within(at_most),
            "expected to take {at_least:?} to {at_most:?}: {}",
            self.story()
        );
    }
}
