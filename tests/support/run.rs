//! A run of the shell: started in a process group of its own, watched, and cleaned up after.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{PipeWriter, Seek, Write, pipe};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use nix::sys::prctl::set_pdeathsig;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SigHandler, Signal, kill, killpg, signal};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::{Pid, Uid, setsid};
use tempfile::TempDir;
use wait_timeout::ChildExt;

use super::processes::{MARK, Survivor, marked};
use super::{FTSH, Ftsh, lateness};

/// A run that wants more address space than this is out of control, and shall not take the machine.
const MEMORY: u64 = 4 << 30;
/// What unprivileged runs run as.
const NOBODY: u32 = 65534;

/// A pipe takes that much before somebody reads.
const PIPE: usize = 1 << 16;

static RUNS: AtomicU32 = AtomicU32::new(0);

/// A command that begins with the default disposition of every signal, however the tests were started: a
/// script's `&`, `nohup` and service managers start programs with some of them ignored.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    // SAFETY: between fork and exec, and async-signal-safe.
    unsafe { command.pre_exec(restore_signals) };
    command
}

fn restore_signals() -> std::io::Result<()> {
    let fixed = [Signal::SIGKILL, Signal::SIGSTOP];
    for restored in Signal::iterator().filter(|it| !fixed.contains(it)) {
        // SAFETY: async-signal-safe, and it leaves no handler.
        unsafe { signal(restored, SigHandler::SigDfl)? };
    }
    Ok(())
}

/// A started shell.
pub struct Running {
    child: Child,
    started: Instant,
    limit: Duration,
    mark: String,
    stdout: File,
    stderr: File,
    input: Option<PipeWriter>,
    directory: Option<TempDir>,
    command_line: String,
    over: bool,
}

impl Running {
    pub(super) fn new(ftsh: Ftsh) -> Self {
        let number = RUNS.fetch_add(1, Ordering::Relaxed);
        let mark = ftsh.mark.unwrap_or_else(|| format!("{MARK}={}-{number}", std::process::id()));
        let (name, value) = mark.split_once('=').expect("a mark has a value");
        let bin = std::path::Path::new(FTSH).parent().expect("the binary is in a directory");
        let directory = ftsh.directory.path();
        let mut words = ftsh.wrapper.iter().map(OsString::as_os_str).chain([OsStr::new(FTSH)]);
        let mut command = command(words.next().expect("at least the shell"));
        command
            .args(words)
            .args(&ftsh.arguments)
            .current_dir(directory)
            .env_clear()
            .env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display()))
            .env("HOME", directory)
            .env("TMPDIR", directory)
            .env("FTSH_CHANNELS", directory.join("channels"))
            .env("LC_ALL", "C")
            .envs(ftsh.environment.iter().map(|(name, value)| (name, value)))
            .env(name, value);
        if !ftsh.session {
            command.process_group(0);
        }
        // Files, not pipes: what the run leaves behind can't make the test wait.
        let stdout = tempfile::tempfile().expect("a file for standard output");
        let stderr = tempfile::tempfile().expect("a file for standard error");
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
                let mut file = tempfile::tempfile().expect("a file for standard input");
                file.write_all(input).expect("standard input");
                file.rewind().expect("standard input from its beginning");
                file.into()
            }
        });
        let (ignored, session, with_thread) = (ftsh.ignored, ftsh.session, ftsh.with_thread);
        let blocked = ftsh.blocked;
        // SAFETY: between fork and exec, and all calls are async-signal-safe.
        unsafe {
            command.pre_exec(move || {
                if session {
                    setsid()?;
                }
                setrlimit(Resource::RLIMIT_AS, MEMORY, MEMORY)?;
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
        if ftsh.unprivileged && Uid::effective().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        lateness::watch();
        let command_line = format!("{command:?}");
        let started = Instant::now();
        let child = command.spawn().expect("the shell starts");
        Self {
            child,
            started,
            limit: ftsh.limit,
            mark,
            stdout,
            stderr,
            input,
            directory: Some(ftsh.directory),
            command_line,
            over: false,
        }
    }

    /// The process id of the shell as its user knows it.
    pub fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id() as i32)
    }

    /// The process that does the shell's work, once it is there.
    pub fn interpreter(&self) -> Option<Pid> {
        let pid = self.pid();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
        children.split_whitespace().next()?.parse().ok().map(Pid::from_raw)
    }

    /// Sends a signal to the shell's group.
    pub fn signal_group(&self, signal: Signal) {
        killpg(self.pid(), signal).expect("the shell's group takes a signal");
    }

    /// Sends the shell a signal.
    pub fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).expect("the shell takes a signal");
    }

    /// Writes to standard input that stays open.
    pub fn write(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("standard input stays open");
        // Whoever doesn't read it any more has ended.
        let _ = input.write_all(bytes);
    }

    /// Closes it.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// What standard error was told by now.
    pub fn errors(&self) -> String {
        String::from_utf8_lossy(&read(&self.stderr)).into_owned()
    }

    /// Whether there is anything on standard output.
    pub fn has_output(&self) -> bool {
        !read(&self.stdout).is_empty()
    }

    /// Waits until `condition` holds; fails the test when the run's limit passes first, or the shell ends.
    pub fn until(&self, what: &str, condition: impl FnMut(&Self) -> bool) {
        self.wait_until(what, Self::has_ended, condition);
    }

    /// The same for what may come after the shell's end.
    pub fn eventually(&self, what: &str, condition: impl FnMut(&Self) -> bool) {
        self.wait_until(what, |_| false, condition);
    }

    /// Waits until none of the run's processes is left.
    pub fn until_gone(&self, what: &str) {
        self.eventually(what, |run| run.processes().is_empty());
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

    /// Whether the shell has ended, which is still to be waited for.
    fn has_ended(&self) -> bool {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        waitid(Id::Pid(self.pid()), flags) != Ok(WaitStatus::StillAlive)
    }

    /// Waits until a file of the run's directory has this many lines.
    pub fn until_lines(&self, name: &str, lines: usize) {
        self.until(&format!("{lines} lines in {name}"), |run| {
            fs::read_to_string(run.directory().join(name))
                .is_ok_and(|text| text.matches('\n').count() >= lines)
        });
    }

    /// The run's directory.
    pub fn directory(&self) -> &std::path::Path {
        self.directory.as_ref().expect("kept until the end").path()
    }

    /// The run's live processes, the shell's own among them.
    pub fn processes(&self) -> Vec<Survivor> {
        marked(&self.mark)
    }

    /// Waits for the end, or for the limit.
    pub fn wait(mut self) -> Finished {
        let (status, elapsed) = self.await_end();
        let survivors = marked(&self.mark);
        // Nothing has to be ended, nor looked for again.
        self.over = status.is_some() && survivors.is_empty();
        self.end();
        self.finished(status, elapsed, survivors)
    }

    /// The same, but what is left is for the run after this one ([`Ftsh::after`]).
    pub fn leave(mut self) -> Finished {
        let (status, elapsed) = self.await_end();
        self.over = status.is_some();
        self.finished(status, elapsed, Vec::new())
    }

    fn await_end(&mut self) -> (Option<ExitStatus>, Duration) {
        let rest = self.limit.saturating_sub(self.started.elapsed());
        let status = self.child.wait_timeout(rest).expect("the shell can be waited for");
        (status, self.started.elapsed())
    }

    fn finished(
        mut self,
        status: Option<ExitStatus>,
        elapsed: Duration,
        survivors: Vec<Survivor>,
    ) -> Finished {
        Finished {
            status,
            started: self.started,
            elapsed,
            survivors,
            stdout: read(&self.stdout),
            stderr: read(&self.stderr),
            directory: self.directory.take().expect("taken once"),
            mark: self.mark.clone(),
            command_line: std::mem::take(&mut self.command_line),
        }
    }

    /// Ends what is left of the run, by id.
    fn end(&mut self) {
        if self.over {
            return;
        }
        self.over = true;
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            // Its group can't have been given to others while its leader isn't reaped.
            let _ = killpg(self.pid(), Signal::SIGKILL);
            let _ = self.child.wait();
        }
        for _ in 0..100 {
            let survivors = marked(&self.mark);
            if survivors.is_empty() {
                return;
            }
            for survivor in survivors {
                let _ = kill(Pid::from_raw(survivor.pid), Signal::SIGKILL);
            }
            std::thread::sleep(Duration::from_millis(2));
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

/// A run that is over.
pub struct Finished {
    /// How it ended; none if the limit passed and it was killed.
    pub status: Option<ExitStatus>,
    /// When it started.
    started: Instant,
    /// How long it took.
    pub elapsed: Duration,
    /// The processes that were there when the shell had ended.
    pub survivors: Vec<Survivor>,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
    /// Its directory.
    pub directory: TempDir,
    /// What its processes carry.
    pub(super) mark: String,
    command_line: String,
}

impl Finished {
    /// What happened, for people.
    pub fn story(&self) -> String {
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

    /// Standard output as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// What `-n` warns of, but for programs that this machine doesn't have.
    pub fn warnings(&self) -> String {
        let errors = self.errors();
        let is_here = |it: &&str| !it.starts_with("warning[missing-program]");
        errors.split("\n\n").filter(is_here).collect::<Vec<_>>().join("\n\n")
    }

    /// Standard error as text.
    pub fn errors(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// A file of the run's directory, as text.
    pub fn read(&self, name: &str) -> String {
        let bytes = fs::read(self.directory.path().join(name))
            .unwrap_or_else(|error| panic!("{name}: {error}\n{}", self.story()));
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// No hang, no panic.
    pub fn check_health(&self) {
        assert!(self.status.is_some(), "hung: {}", self.story());
        assert!(!self.errors().contains("panicked at"), "panicked: {}", self.story());
    }

    /// Checks the exit status.
    pub fn expect_code(&self, code: i32) {
        let found = self.status.and_then(|status| status.code());
        assert_eq!(found, Some(code), "exit status of {}", self.story());
    }

    /// Checks that a signal ended it.
    pub fn killed_by(&self, signal: Signal) -> &Self {
        self.check_health();
        let found = self.status.and_then(|status| status.signal());
        assert_eq!(found, Some(signal as i32), "signal that ended {}", self.story());
        self
    }

    /// Checks that nothing is left running.
    pub fn nothing_left(&self) -> &Self {
        assert!(self.survivors.is_empty(), "left running: {:?}\n{}", self.survivors, self.story());
        self
    }

    /// Checks the whole standard output.
    pub fn expect_stdout(&self, expected: &[u8]) {
        assert!(
            self.stdout == expected,
            "expected on standard output:\n{}\n{}",
            String::from_utf8_lossy(expected),
            self.story()
        );
    }

    /// Checks that standard error has this text.
    pub fn expect_stderr(&self, text: &str) {
        assert!(
            self.errors().contains(text),
            "expected on standard error: {text}\n{}",
            self.story()
        );
    }

    /// Checks that standard error is one line.
    pub fn one_line(&self) -> &Self {
        let errors = self.errors();
        assert_eq!(
            errors.trim_end().lines().count(),
            1,
            "lines on standard error: {}",
            self.story()
        );
        self
    }

    /// Whether it took no longer than this; if the machine is busy with something else, as much more
    /// as that delays others too.
    pub fn within(&self, most: Duration) -> bool {
        self.elapsed <= most || self.elapsed <= most + lateness::since(self.started)
    }

    /// Checks how long it took.
    pub fn expect_time(&self, at_least: Duration, at_most: Duration) {
        assert!(
            self.elapsed >= at_least && self.within(at_most),
            "expected to take {at_least:?} to {at_most:?}: {}",
            self.story()
        );
    }
}
