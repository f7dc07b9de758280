//! `--cron`: what a script and its commands print is kept, and shown only if the script fails.
//!
//! Standard output and error become one pipe. So what they say stays in order, and a command that
//! opens `/dev/stderr` anew can't cut off what was said before, as it could with a file. The
//! supervisor empties the pipe into a file without a name; nobody ever waits for the pipe's end,
//! which a daemon may put off for ever.

use std::fs::File;
use std::io::{self, PipeReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll, ppoll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::time::TimeSpec;

use super::super::fds::buffer::file_on_disk;
use super::super::os::reader::leave_reader;
use super::spill::SpillBuffer;
use ftsh_machine::event::Status;
use ftsh_sys as sys;
use ftsh_sys::os_error::plain;

const STANDARD_OUTPUT: i32 = 1;
const STANDARD_ERROR: i32 = 2;

/// A writable pipe takes so much without making its writer wait.
const ATOMIC: usize = 4096;
/// No pipe holds more, unless a privileged process asked for it.
const LARGEST_PIPE: usize = 1 << 20;
/// Who told the shell to end needn't wait longer for somebody who doesn't read.
const BRIEFLY: Duration = Duration::from_secs(1);

/// What is printed, kept.
pub struct OutputCapture {
    /// The script, for people.
    script: String,
    pipe: PipeReader,
    file: io::Result<File>,
    /// Where standard output and error led before.
    replaced: sys::Replaced,
}

impl OutputCapture {
    /// From now on nothing is shown that goes to this process's standard output and error. To be
    /// called before `supervise`, which takes care of the rest.
    #[expect(unsafe_code, reason = "standard output and error lead elsewhere for a time")]
    pub fn begin(script: &str) -> io::Result<Self> {
        let (pipe, writer) = io::pipe()?;
        let pipe = PipeReader::from(sys::move_up(pipe.into())?);
        sys::add_flags(pipe.as_fd(), OFlag::O_NONBLOCK)?;
        let writer = sys::move_up(writer.into())?;
        let changes = [STANDARD_OUTPUT, STANDARD_ERROR].map(|number| (writer.as_fd(), number));
        // SAFETY: nothing owns standard output and error, and all that is written there is meant for where
        // they lead now.
        let replaced = unsafe { sys::Replaced::set(changes) }?;
        Ok(Self { script: script.to_owned(), pipe, file: file_on_disk().map(File::from), replaced })
    }

    /// Keeps it in this file, after what that holds already: an earlier start printed that. To be called
    /// before `supervise`.
    pub fn keep_in(&mut self, file: File) {
        self.file = Ok(file);
    }

    /// Where people are told of a failure: what standard error was, or else standard output.
    pub fn voice(&self) -> Option<BorrowedFd<'_>> {
        self.replaced.before(STANDARD_ERROR).or(self.replaced.before(STANDARD_OUTPUT))
    }

    /// Begins to empty the pipe. For the supervisor, which writes nothing into it.
    pub fn collect(&self) -> io::Result<Collector> {
        self.replaced.restore();
        let pipe = self.pipe.try_clone()?;
        let mut store = self.store();
        let (stopped, stop) = io::pipe()?;
        let thread = std::thread::Builder::new().spawn(move || {
            let drained =
                |store: &mut SpillBuffer| drain(&pipe, usize::MAX, |bytes| store.add(bytes));
            loop {
                let mut waited = [
                    PollFd::new(pipe.as_fd(), PollFlags::POLLIN),
                    PollFd::new(stopped.as_fd(), PollFlags::POLLIN),
                ];
                let failed = poll(&mut waited, PollTimeout::NONE).is_err();
                let is_over = waited[1].any().unwrap_or(failed);
                if is_over {
                    // What was written up to now is in the pipe; a daemon may go on for ever.
                    drain(&pipe, LARGEST_PIPE, |bytes| store.add(bytes));
                }
                if is_over || drained(&mut store) {
                    return store;
                }
            }
        })?;
        Ok(Collector { stop, thread })
    }

    /// At the end of a run: shows what was kept if the run failed. For the supervisor, after
    /// nothing of a run that failed is left.
    pub fn finish(&self, collector: io::Result<Collector>, status: Status) {
        let store = collector.ok().and_then(Collector::store);
        let store = store.unwrap_or_else(|| self.rest());
        if status != Status::Exited(0) {
            self.show(&store, status);
        }
        let _ = leave_reader(&[self.pipe.as_fd().into()]);
    }

    /// The same for an interpreter that was left alone by its supervisor.
    pub fn finish_alone(&self, status: Status) {
        self.replaced.restore();
        self.show(&self.rest(), status);
    }

    fn store(&self) -> SpillBuffer {
        SpillBuffer::new(match &self.file {
            Ok(file) => file.try_clone(),
            Err(error) => Err(io::Error::new(error.kind(), plain(error))),
        })
    }

    /// What was kept, and what still is in the pipe.
    fn rest(&self) -> SpillBuffer {
        let mut store = self.store();
        drain(&self.pipe, LARGEST_PIPE, |bytes| store.add(bytes));
        store
    }

    /// Shows it all. If that fails, there is nobody left to tell.
    fn show(&self, store: &SpillBuffer, status: Status) {
        let Some(voice) = self.voice() else { return };
        let patience = (!matches!(status, Status::Exited(_))).then_some(BRIEFLY);
        let mut out = Patient { fd: voice, patience };
        let how = match status {
            Status::Exited(code) => format!("ended with status {code}"),
            Status::Signaled(number) => {
                let name = Signal::try_from(number).map_or("a signal", Signal::as_str);
                format!("ended by {name}")
            }
            Status::OutOfMemory => "ended by SIGKILL: the system had too little memory".into(),
            Status::Lost => "ended in a way that is lost: an internal error of ftsh".into(),
        };
        let printed = if store.is_empty() { "" } else { "; it printed:" };
        let _ = writeln!(out, "ftsh: {}: {how}{printed}", self.script);
        let _ = store.copy(&mut out);
    }
}

/// What empties the pipe while a script runs.
pub struct Collector {
    /// The thread ends when this is closed.
    stop: io::PipeWriter,
    thread: JoinHandle<SpillBuffer>,
}

impl Collector {
    fn store(self) -> Option<SpillBuffer> {
        drop(self.stop);
        self.thread.join().ok()
    }
}

/// Reads what is there, but not much more than `most`. Returns true if no more can come: no process
/// can write any more, or the pipe cannot be read.
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

/// Writes however long its reader takes, if there is no limit to that. Signals that are held back
/// otherwise end this process while the reader makes it wait, but for the one that only asks.
pub struct Patient<'a> {
    fd: BorrowedFd<'a>,
    patience: Option<Duration>,
}

impl<'a> Patient<'a> {
    /// Gives a reader that is not there little time.
    pub fn briefly(fd: BorrowedFd<'a>) -> Self {
        Self { fd, patience: Some(BRIEFLY) }
    }
}

impl Write for Patient<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            let mut waited = [PollFd::new(self.fd, PollFlags::POLLOUT)];
            let patience = self.patience.map(TimeSpec::from_duration);
            let held = SigSet::from_iter([Signal::SIGUSR1]);
            if ppoll(&mut waited, patience, Some(held))? == 0 {
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
