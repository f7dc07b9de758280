//! `--cron`: captures the output of a script and its commands, and shows the output only if the
//! script fails.
//!
//! With `--cron=stderr`, the output is also shown if a command wrote to standard error. Standard
//! error is then a pipe of its own, and the order of the two is that of arrival.
//!
//! Standard output and error become one pipe, so their order is kept. With a file, a command that
//! opens `/dev/stderr` could overwrite earlier output. The supervisor empties the pipe into an
//! unnamed file. It never waits for the end of the pipe, which a daemon may keep open forever.

use std::fs::File;
use std::io::{self, PipeReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll, ppoll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::time::TimeSpec;

use super::spill::SpillBuffer;
use crate::buffers::file_on_disk;
use crate::non_blocking_writer::{ERROR_PRIORITY, prioritized};
use crate::program::{DaemonPipe, start_reader};
use ftsh_machine::event::CommandStatus;
use ftsh_machine::size::MAX_REPORTED_LINES;
use ftsh_sys as sys;
use ftsh_sys::os_error::plain;

const STANDARD_OUTPUT: i32 = 1;
const STANDARD_ERROR: i32 = 2;

/// Bytes that a writable pipe accepts without blocking.
const ATOMIC: usize = 4096;
/// Largest size of a pipe, unless a privileged process has raised it.
const LARGEST_PIPE: usize = 1 << 20;
/// Number of looks at a pipe that the collector empties at this moment.
const MAX_LOOKS: usize = 1000;
/// Number of bytes at the end of the output that are copied.
const COPIED: u64 = 100_000;
/// Time limit for a reader that does not read, once a signal has ended the run.
const READER_TIMEOUT: Duration = Duration::from_secs(1);

/// Captured standard output and error.
pub struct OutputCapture {
    /// Name of the script, for messages.
    script: String,
    pipe: PipeReader,
    /// Pipe of standard error, if a success with output there is shown.
    errors: Option<PipeReader>,
    file: io::Result<File>,
    /// Standard output and error before the capture.
    replaced: sys::Replaced,
    /// Twice the number of bytes that the collector has taken, odd while it takes more.
    taken: &'static AtomicU64,
    /// Start and end of the output of the command whose failure ended the run.
    failed: [&'static AtomicU64; 2],
    /// File that also receives the end of the output.
    copy: Option<&'static File>,
    /// True if a failure is not shown.
    is_withheld: bool,
}

impl OutputCapture {
    /// Redirects standard output and error of this process into the capture. Must be called before
    /// `supervise`.
    #[expect(unsafe_code, reason = "standard output and error lead elsewhere for a time")]
    pub fn begin(script: &str, shows_errors: bool) -> io::Result<Self> {
        let (pipe, writer) = self::pipe()?;
        let (errors, errors_writer) = if shows_errors { Some(self::pipe()?) } else { None }.unzip();
        let changes = [
            (writer.as_fd(), STANDARD_OUTPUT),
            (errors_writer.as_ref().unwrap_or(&writer).as_fd(), STANDARD_ERROR),
        ];
        // SAFETY: no value owns standard output and error, and all writers want their current target.
        let replaced = unsafe { sys::Replaced::set(changes) }?;
        let (script, file) = (script.to_owned(), file_on_disk().map(File::from));
        let taken = sys::shared_number()?;
        let failed = [sys::shared_number()?, sys::shared_number()?];
        let (copy, is_withheld) = (None, false);
        Ok(Self { script, pipe, errors, file, replaced, taken, failed, copy, is_withheld })
    }

    /// Captures into a file, after the output of an earlier start. Must be called before
    /// `supervise`.
    pub fn keep_in(&mut self, file: File) {
        self.taken.store(2 * file.metadata().map_or(0, |it| it.len()), Ordering::SeqCst);
        self.file = Ok(file);
    }

    /// Copies the end of the output that is shown, and withholds the output of a failure. Must be called
    /// before `supervise`.
    pub fn copy_to(&mut self, copy: Option<&'static File>, is_withheld: bool) {
        (self.copy, self.is_withheld) = (copy, is_withheld);
    }

    /// Returns the number of bytes that were written to the pipes so far. Returns none while the
    /// collector is busy for long.
    pub fn position(&self) -> Option<u64> {
        (0..MAX_LOOKS).find_map(|_| {
            let taken = self.taken.load(Ordering::SeqCst);
            let unread = self.pipes().map(|(pipe, _)| sys::unread(pipe.as_fd()).unwrap_or(0));
            let unread: usize = unread.sum();
            let is_exact = taken & 1 == 0 && self.taken.load(Ordering::SeqCst) == taken;
            if !is_exact {
                std::thread::yield_now();
            }
            is_exact.then_some(taken / 2 + unread as u64)
        })
    }

    /// Shows output between two positions first: that of the command whose failure ended the run.
    pub fn show_first(&self, output: [u64; 2]) {
        for (number, position) in self.failed.into_iter().zip(output) {
            number.store(position, Ordering::SeqCst);
        }
    }

    /// Returns the descriptor for messages to people: the original standard error, or else standard
    /// output.
    pub fn message_fd(&self) -> Option<BorrowedFd<'_>> {
        self.replaced.before(STANDARD_ERROR).or(self.replaced.before(STANDARD_OUTPUT))
    }

    /// Begins to empty the pipe. Must be called in the supervisor, which writes nothing into the
    /// pipe.
    pub fn collect(&self) -> io::Result<Collector> {
        self.replaced.restore();
        let mut pipes = Vec::new();
        for (pipe, is_errors) in self.pipes() {
            pipes.push((pipe.try_clone()?, is_errors));
        }
        let mut captured = self.captured();
        let (stopped, stop) = io::pipe()?;
        let thread = std::thread::Builder::new().spawn(move || {
            loop {
                let fds = pipes.iter().map(|(pipe, _)| pipe.as_fd()).chain([stopped.as_fd()]);
                let mut waited: Vec<_> = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
                let failed = poll(&mut waited, PollTimeout::NONE).is_err();
                let is_over = waited.last().and_then(PollFd::any).unwrap_or(failed);
                // The output up to now is in the pipes. A daemon may write forever.
                pipes.retain(|(pipe, is_errors)| !captured.take(pipe, *is_errors));
                if is_over || pipes.is_empty() {
                    return captured;
                }
            }
        })?;
        Ok(Collector { stop, thread })
    }

    /// Shows the captured output if the run failed. Must be called in the supervisor, after all
    /// processes of a failed run have ended.
    pub fn finish(&self, collector: io::Result<Collector>, status: CommandStatus) {
        let captured = collector.ok().and_then(Collector::captured);
        let captured = captured.unwrap_or_else(|| self.rest());
        if status != CommandStatus::Exited(0) || captured.has_errors {
            self.show(&captured.store, status);
        }
        let pipes: Vec<_> = self.pipes().map(|(pipe, _)| DaemonPipe::from(pipe.as_fd())).collect();
        let _ = start_reader(&pipes);
    }

    /// Shows the captured output in an interpreter whose supervisor was killed.
    pub fn finish_alone(&self, status: CommandStatus) {
        self.replaced.restore();
        self.show(&self.rest().store, status);
    }

    /// Returns the pipes, each with true for standard error alone. What commands print there comes
    /// before the shell's own text about the commands.
    fn pipes(&self) -> impl Iterator<Item = (&PipeReader, bool)> {
        self.errors.iter().map(|pipe| (pipe, true)).chain([(&self.pipe, false)])
    }

    fn captured(&self) -> Captured {
        let store = SpillBuffer::new(match &self.file {
            Ok(file) => file.try_clone(),
            Err(error) => Err(io::Error::new(error.kind(), plain(error))),
        });
        Captured { store, has_errors: false, taken: self.taken }
    }

    /// Returns the captured output, including the bytes still in the pipes.
    fn rest(&self) -> Captured {
        let mut captured = self.captured();
        for (pipe, is_errors) in self.pipes() {
            captured.take(pipe, is_errors);
        }
        captured
    }

    /// Shows the output. Errors are ignored: no other descriptor is available for a message.
    fn show(&self, store: &SpillBuffer, status: CommandStatus) {
        let how = match status {
            CommandStatus::Exited(0) => "succeeded with output on standard error".into(),
            CommandStatus::Exited(code) => format!("ended with status {code}"),
            CommandStatus::Signaled(number) => {
                let name = Signal::try_from(number).map_or("a signal", Signal::as_str);
                format!("ended by {name}")
            }
            CommandStatus::OutOfMemory => {
                "ended by SIGKILL: the system had too little memory".into()
            }
            CommandStatus::Lost => "ended with an unknown status: an internal error of ftsh".into(),
        };
        let printed = if store.is_empty() { "" } else { "; it printed:" };
        let [from, to] = self.failed.map(|number| number.load(Ordering::SeqCst));
        // The only output comes first in any case.
        let first =
            if from > 0 { store.lines(from, to, MAX_REPORTED_LINES) } else { String::new() };
        let head = first + &format!("ftsh: {}: {how}{printed}\n", self.script);
        if let Some(mut copy) = self.copy {
            let end = store.end(COPIED);
            let _ = copy.write_all(head.as_bytes()).and_then(|()| copy.write_all(&end));
        }
        let is_withheld = self.is_withheld && status != CommandStatus::Exited(0);
        let Some(message_fd) = self.message_fd().filter(|_| !is_withheld) else { return };
        let timeout = (!matches!(status, CommandStatus::Exited(_))).then_some(READER_TIMEOUT);
        let mut out = WaitingWriter { fd: message_fd, timeout };
        let head = prioritized(message_fd, ERROR_PRIORITY, head.into());
        let _ = out.write_all(head.as_bytes());
        let _ = store.copy(&mut out);
    }
}

/// Thread that empties the pipe while a script runs.
pub struct Collector {
    /// Closing this pipe ends the thread.
    stop: io::PipeWriter,
    thread: JoinHandle<Captured>,
}

/// Captured output.
struct Captured {
    /// Output in the order of arrival.
    store: SpillBuffer,
    /// True if a command wrote to the pipe of standard error.
    has_errors: bool,
    taken: &'static AtomicU64,
}

impl Captured {
    /// Adds the bytes of a pipe. Returns true if no more can arrive.
    fn take(&mut self, pipe: &PipeReader, is_errors: bool) -> bool {
        let before = self.taken.fetch_or(1, Ordering::SeqCst);
        let mut count = 0;
        let is_over = drain(pipe, LARGEST_PIPE, |bytes| {
            self.has_errors |= is_errors;
            self.store.add(bytes);
            count += bytes.len() as u64;
        });
        self.taken.store(before + 2 * count, Ordering::SeqCst);
        is_over
    }
}

/// Creates a pipe with a non-blocking read end.
fn pipe() -> io::Result<(PipeReader, OwnedFd)> {
    let (pipe, writer) = io::pipe()?;
    let pipe = PipeReader::from(sys::move_up(pipe.into())?);
    sys::add_flags(pipe.as_fd(), OFlag::O_NONBLOCK)?;
    Ok((pipe, sys::move_up(writer.into())?))
}

impl Collector {
    fn captured(self) -> Option<Captured> {
        drop(self.stop);
        self.thread.join().ok()
    }
}

/// Reads the available bytes, but stops soon after `most`. Returns true if no more can arrive: no
/// process has the pipe open for writing, or it cannot be read.
fn drain(mut pipe: &PipeReader, most: usize, mut take: impl FnMut(&[u8])) -> bool {
    let mut bytes = [0; 1 << 14];
    let mut total = 0;
    while total < most {
        match pipe.read(&mut bytes) {
            Ok(0) => return true,
            Ok(count) => {
                take(&bytes[..count]);
                total += count;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return error.kind() != io::ErrorKind::WouldBlock,
        }
    }
    false
}

/// Writer that waits for its reader, without limit or up to a time limit. While waiting, it lets in
/// blocked signals, which end this process, except for the signal that requests the status.
pub(super) struct WaitingWriter<'a> {
    fd: BorrowedFd<'a>,
    timeout: Option<Duration>,
}

impl<'a> WaitingWriter<'a> {
    /// Creates a writer with a short time limit.
    pub(super) fn briefly(fd: BorrowedFd<'a>) -> Self {
        Self { fd, timeout: Some(READER_TIMEOUT) }
    }
}

impl Write for WaitingWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            let mut waited = [PollFd::new(self.fd, PollFlags::POLLOUT)];
            let timeout = self.timeout.map(TimeSpec::from_duration);
            let held = SigSet::from_iter([Signal::SIGUSR1]);
            if ppoll(&mut waited, timeout, Some(held))? == 0 {
                return Err(io::ErrorKind::TimedOut.into());
            }
            match nix::unistd::write(self.fd, &bytes[..bytes.len().min(ATOMIC)]) {
                Err(nix::errno::Errno::EAGAIN | nix::errno::Errno::EINTR) => {}
                result => return Ok(result?),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
