//! Shared code of the tests: supervised runs of the real binary.

pub(crate) mod apart;
pub(crate) mod branches;
pub(crate) mod documents;
pub(crate) mod expectations;
pub(crate) mod home;
pub(crate) mod http;
pub(crate) mod lateness;
pub(crate) mod monitor;
pub(crate) mod network;
pub(crate) mod old_kernel;
pub(crate) mod processes;
pub(crate) mod program;
pub(crate) mod rounds;
pub(crate) mod run;
pub(crate) mod side_by_side;
pub(crate) mod skipped;
pub(crate) mod slurm;
pub(crate) mod spans;
pub(crate) mod sshd;
pub(crate) mod terminal;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::stat::Mode;
use nix::unistd::{Uid, mkfifo};
use tempfile::TempDir;

use self::processes::Mark;
pub(crate) use self::program::FTSH;
use self::run::{Finished, Running};

/// Ways to find processes, for [`Ftsh::in_way`]: the best way, without pidfds, and without
/// subreapers as well.
pub(crate) const WAYS: [&str; 3] = ["0", "pidfd", "1"];

/// Builder of a run of the shell, in a directory of its own and with nearly no environment.
///
/// [`Ftsh::success`], [`Ftsh::failure`] and [`Ftsh::killed_by`] start the run.
pub(crate) struct Ftsh {
    pub(crate) directory: TempDir,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) stdin: Option<Vec<u8>>,
    pub(crate) stays_open: bool,
    /// Time waited and lease of a branch that begins when this node is ready.
    pub(crate) go: Option<(Duration, Duration)>,
    pub(crate) limit: Duration,
    pub(crate) ignored: Option<Signal>,
    pub(crate) blocked: SigSet,
    pub(crate) unprivileged: bool,
    pub(crate) way: String,
    pub(crate) errors: Option<OwnedFd>,
    pub(crate) wrapper: Vec<OsString>,
    pub(crate) session: bool,
    pub(crate) with_thread: Option<Signal>,
    pub(crate) mark: Option<Mark>,
    stdout: Option<Vec<u8>>,
    stderr: Vec<String>,
    takes: Option<(Duration, Duration)>,
}

impl Ftsh {
    /// Creates a run without arguments.
    pub(crate) fn new() -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        // Unprivileged runs need access too.
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777))
            .expect("permissions of the temporary directory");
        Self {
            directory,
            arguments: Vec::new(),
            environment: Vec::new(),
            stdin: None,
            stays_open: false,
            go: None,
            limit: Duration::from_secs(60),
            ignored: None,
            blocked: SigSet::empty(),
            unprivileged: false,
            way: WAYS[0].to_owned(),
            errors: None,
            wrapper: Vec::new(),
            session: false,
            with_thread: None,
            mark: None,
            stdout: None,
            stderr: Vec::new(),
            takes: None,
        }
    }

    /// Creates a run after another run, in the same directory. Processes left by the other run
    /// count as left by this run.
    pub(crate) fn after(before: Finished) -> Self {
        let mark = Some(before.mark);
        Self { directory: before.directory, mark, ..Self::new() }
    }

    /// Creates a run of `-c text`.
    pub(crate) fn command(text: &str) -> Self {
        Self::new().arg("-c").arg(text)
    }

    /// Creates a run of a script file, `script.ftsh` in the directory of the run.
    pub(crate) fn script(text: impl AsRef<[u8]>) -> Self {
        Self::new().file("script.ftsh", text).arg("script.ftsh")
    }

    /// Adds an argument.
    pub(crate) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().into());
        self
    }

    /// Adds arguments.
    pub(crate) fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().into()));
        self
    }

    /// Inserts options before the arguments so far.
    pub(crate) fn options<A: AsRef<OsStr>>(mut self, options: impl IntoIterator<Item = A>) -> Self {
        let options: Vec<OsString> =
            options.into_iter().map(|option| option.as_ref().into()).collect();
        self.arguments.splice(0..0, options);
        self
    }

    /// Sets a variable in the environment of the shell.
    pub(crate) fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.as_ref().into(), value.as_ref().into()));
        self
    }

    /// Sets the standard input of the shell, which is empty by default.
    pub(crate) fn stdin(mut self, input: impl AsRef<[u8]>) -> Self {
        self.stdin = Some(input.as_ref().to_vec());
        self
    }

    /// Keeps standard input open after its content, as a pipe ([`Running::write`]).
    pub(crate) fn stdin_stays_open(mut self) -> Self {
        self.stays_open = true;
        self
    }

    /// Writes a file to the directory of the run.
    pub(crate) fn file(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.path(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).expect("a directory for the file");
        }
        fs::write(path, content).expect("a file for the run");
        self
    }

    /// Writes an executable shell script to the directory of the run.
    ///
    /// Another process writes the file. A child started by another test would otherwise hold the
    /// file open for writing for a moment, and such a file cannot be executed.
    pub(crate) fn program(self, name: &str, content: &str) -> Self {
        // The text is a separate file, because a script in execution cannot be written.
        let this = self.file(&format!("{name}.text"), content);
        let copy = "cp \"$0.text\" \"$0.new\" && chmod 755 \"$0.new\" && mv \"$0.new\" \"$0\" && rm \"$0.text\"";
        let status = Command::new("/bin/sh").args(["-c", copy]).arg(this.path(name)).status();
        assert!(status.expect("a shell").success(), "an executable file");
        this
    }

    /// Makes a FIFO in the directory of the run.
    pub(crate) fn fifo(self, name: &str) -> Self {
        let path = self.path(name);
        mkfifo(&path, Mode::S_IRWXU).expect("a FIFO");
        fs::set_permissions(path, fs::Permissions::from_mode(0o666)).expect("for all");
        self
    }

    /// Sets the time limit of the run, which is 20 seconds by default.
    pub(crate) fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Starts the shell with this signal ignored, as `nohup` does with SIGHUP.
    pub(crate) fn ignoring(mut self, signal: Signal) -> Self {
        self.ignored = Some(signal);
        self
    }

    /// Starts the shell with all signals blocked, as some service managers do.
    pub(crate) fn blocking_all(mut self) -> Self {
        self.blocked = SigSet::all();
        self
    }

    /// Runs the shell as nobody if the tests run as root.
    pub(crate) fn unprivileged(mut self) -> Self {
        self.unprivileged = true;
        self
    }

    /// Takes features of the system away from the shell, so that it finds processes in this way.
    pub(crate) fn in_way(mut self, way: &str) -> Self {
        way.clone_into(&mut self.way);
        self
    }

    /// Gives files of the directory of the run to the user of unprivileged runs.
    pub(crate) fn owned_by_nobody(self, names: &[&str]) -> Self {
        for name in names.iter().filter(|_| Uid::effective().is_root()) {
            let nobody = Some(run::NOBODY);
            std::os::unix::fs::chown(self.path(name), nobody, nobody).expect("another owner");
        }
        self
    }

    /// Sets the standard error of the shell, for the reader of the other end.
    pub(crate) fn errors_to(mut self, end: impl Into<OwnedFd>) -> Self {
        self.errors = Some(end.into());
        self
    }

    /// Runs the shell through another program with these arguments.
    pub(crate) fn through<A: AsRef<OsStr>>(mut self, wrapper: impl IntoIterator<Item = A>) -> Self {
        self.wrapper = wrapper.into_iter().map(|word| word.as_ref().into()).collect();
        self
    }

    /// Ends the run with the thread that starts the run.
    pub(crate) fn bound(mut self) -> Self {
        self.with_thread = Some(Signal::SIGKILL);
        self
    }

    /// Runs the shell in a session of its own, without a terminal.
    pub(crate) fn session(mut self) -> Self {
        self.session = true;
        self
    }

    /// Expects exactly this on standard output.
    pub(crate) fn stdout(mut self, text: impl AsRef<[u8]>) -> Self {
        self.stdout = Some(text.as_ref().to_vec());
        self
    }

    /// Expects this text somewhere on standard error.
    pub(crate) fn stderr(mut self, text: &str) -> Self {
        self.stderr.push(text.into());
        self
    }

    /// Expects the run to take between these times, in milliseconds.
    pub(crate) fn takes(mut self, at_least: u64, at_most: u64) -> Self {
        self.takes = Some((Duration::from_millis(at_least), Duration::from_millis(at_most)));
        self
    }

    /// Returns the path of a file in the directory of the run.
    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Starts the shell.
    pub(crate) fn start(self) -> Running {
        let go = self.go;
        let mut running = Running::new(self);
        if let Some(go) = go {
            branches::begin(&mut running, go);
        }
        running
    }

    /// Runs the shell to its end, with any status. Only the expected output and time are checked.
    pub(crate) fn run(mut self) -> Finished {
        let (stdout, stderr, takes) =
            (self.stdout.take(), std::mem::take(&mut self.stderr), self.takes.take());
        let finished = self.start().wait();
        finished.check_health();
        if let Some(stdout) = stdout {
            finished.expect_stdout(&stdout);
        }
        for text in stderr {
            finished.expect_stderr(&text);
        }
        if let Some((at_least, at_most)) = takes {
            finished.expect_time(at_least, at_most);
        }
        finished
    }

    /// Runs the shell, and expects status 0.
    pub(crate) fn success(self) -> Finished {
        self.failure(0)
    }

    /// Runs the shell, and expects this status.
    pub(crate) fn failure(self, code: i32) -> Finished {
        let finished = self.run();
        finished.expect_code(code);
        finished
    }

    /// Runs the shell, and expects status 2 with one line on standard error that contains `texts`,
    /// and nothing on standard output.
    pub(crate) fn refused(self, texts: &[&str]) -> Finished {
        let mut finished = self.stdout("");
        for text in texts {
            finished = finished.stderr(text);
        }
        finished.failure(2)
    }
}

/// Returns true if runs find a program. Otherwise the test, or its part for the program, is reported
/// as skipped.
pub(crate) fn has(program: &str) -> bool {
    let found = std::env::split_paths(run::PATH).any(|folder| folder.join(program).is_file());
    if !found {
        skipped::skipped(program);
    }
    found
}

/// Returns true if one of `events` occurs within `limit`.
///
/// `wait_timeout` handles SIGCHLD in this process, so that the end of any child interrupts the
/// call.
pub(crate) fn is_ready(
    descriptor: impl AsFd,
    events: PollFlags,
    limit: impl Into<PollTimeout> + Copy,
) -> bool {
    let mut descriptors = [PollFd::new(descriptor.as_fd(), events)];
    loop {
        match poll(&mut descriptors, limit) {
            Err(Errno::EINTR) => {}
            ready => return ready.expect("a descriptor") > 0,
        }
    }
}
