//! Output of the shell itself, without blocking.
//!
//! A pipe without a reader and a terminal under Ctrl-S may block forever. Text that is not accepted
//! at once waits in a queue, and a thread writes it. Later text is queued behind.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::SigSet;
use nix::sys::socket::{MsgFlags, send};
use nix::sys::stat::{SFlag, fstat};
use nix::unistd::write;

/// Maximum size of a queue, in bytes, for text that may be dropped.
const MAX_QUEUE_SIZE: usize = 4 << 20;
const STACK_SIZE: usize = 256 * 1024;

/// Writer with a queue; clones share the queue.
#[derive(Clone)]
pub struct NonBlockingWriter(Arc<WriterShared>);

struct WriterShared {
    target: WriteTarget,
    method: OnceLock<WriteMethod>,
    queue: Mutex<WriteQueue>,
}

enum WriteTarget {
    Error(io::Stderr),
    Output(io::Stdout),
    File(File),
}

impl AsFd for WriteTarget {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Error(error) => error.as_fd(),
            Self::Output(output) => output.as_fd(),
            Self::File(file) => file.as_fd(),
        }
    }
}

/// Method of writing without blocking.
enum WriteMethod {
    /// Plain writes: files do not block.
    Direct,
    /// Non-blocking writes to a new open file description, since the original one is shared.
    Reopened(File),
    /// Non-blocking `send` to a socket.
    Socket,
    /// Poll before each write, where the file cannot be opened again. Another writer may still take
    /// the room.
    Polled,
}

impl WriteMethod {
    fn of(fd: BorrowedFd) -> Self {
        let kind = fstat(fd)
            .map_or(SFlag::S_IFREG, |stat| SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT);
        if kind == SFlag::S_IFSOCK {
            return Self::Socket;
        }
        if kind != SFlag::S_IFIFO && (kind != SFlag::S_IFCHR || !fd.is_terminal()) {
            return Self::Direct;
        }
        let reopened = OpenOptions::new()
            .write(true)
            .custom_flags((OFlag::O_NONBLOCK | OFlag::O_NOCTTY).bits())
            .open(format!("/proc/self/fd/{}", fd.as_raw_fd()));
        reopened.map_or(Self::Polled, Self::Reopened)
    }
}

#[derive(Default)]
struct WriteQueue {
    lines: VecDeque<Vec<u8>>,
    /// Size of the queued text and of the text being written, in bytes.
    size: usize,
    /// True while a thread writes.
    busy: bool,
    /// Error of the thread.
    error: Option<io::Error>,
}

impl WriteQueue {
    fn is_idle(&self) -> bool {
        !self.busy && self.lines.is_empty()
    }
}

/// State shared by all writers.
struct WriterRegistry {
    /// True if threads may be started.
    threads: bool,
    /// Writers with queued text.
    waiting: Vec<NonBlockingWriter>,
}

static WRITERS: Mutex<WriterRegistry> =
    Mutex::new(WriterRegistry { threads: false, waiting: Vec::new() });
static WRITTEN: Condvar = Condvar::new();

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Priority of lines about the failure of a run, in systemd's journal.
pub const ERROR_PRIORITY: u8 = 3;

/// Returns a text with a priority in each line if a descriptor leads to systemd's journal.
///
/// <https://www.freedesktop.org/software/systemd/man/latest/systemd.exec.html>
pub(crate) fn prioritized(fd: impl AsFd, priority: u8, text: Cow<str>) -> Cow<str> {
    let Some(stream) = std::env::var_os("JOURNAL_STREAM") else { return text };
    if fstat(fd).is_ok_and(|it| stream == *format!("{}:{}", it.st_dev, it.st_ino)) {
        return text.split_inclusive('\n').map(|line| format!("<{priority}>{line}")).collect();
    }
    text
}

/// True if the shell's own text goes to standard output.
static LEAVES_ERRORS: AtomicBool = AtomicBool::new(false);

/// Leaves standard error to commands: from now on, the shell's own text goes to standard output.
pub fn leave_errors() {
    LEAVES_ERRORS.store(true, Ordering::Relaxed);
}

/// Returns the writer for standard error, which must not be redirected later.
pub fn standard_error() -> &'static NonBlockingWriter {
    static ERROR: OnceLock<NonBlockingWriter> = OnceLock::new();
    if LEAVES_ERRORS.load(Ordering::Relaxed) {
        return standard_output();
    }
    ERROR.get_or_init(|| NonBlockingWriter::to(WriteTarget::Error(io::stderr())))
}

/// Returns the writer for standard output.
pub fn standard_output() -> &'static NonBlockingWriter {
    static OUTPUT: OnceLock<NonBlockingWriter> = OnceLock::new();
    OUTPUT.get_or_init(|| NonBlockingWriter::to(WriteTarget::Output(io::stdout())))
}

/// Permits threads. Before this call, text that is not accepted stays in the queue.
pub fn allow_threads() {
    lock(&WRITERS).threads = true;
    for writer in waiting() {
        writer.start();
    }
}

fn waiting() -> Vec<NonBlockingWriter> {
    lock(&WRITERS).waiting.clone()
}

/// True if no text is queued.
pub fn is_quiet() -> bool {
    lock(&WRITERS).waiting.is_empty()
}

/// Waits until all text is written, up to a limit. Returns true if it is.
pub fn wait(limit: Option<Duration>) -> bool {
    for writer in waiting() {
        if !writer.start() && limit.is_none() {
            writer.work();
        }
    }
    let common = lock(&WRITERS);
    let waits = |common: &mut WriterRegistry| !common.waiting.is_empty();
    match limit {
        None => {
            drop(WRITTEN.wait_while(common, waits));
            true
        }
        Some(limit) => match WRITTEN.wait_timeout_while(common, limit, waits) {
            Ok((_, timeout)) => !timeout.timed_out(),
            Err(_) => false,
        },
    }
}

impl NonBlockingWriter {
    /// Creates a writer for an open file, FIFO or terminal.
    pub fn new(file: File) -> Self {
        Self::to(WriteTarget::File(file))
    }

    fn to(target: WriteTarget) -> Self {
        Self(Arc::new(WriterShared {
            target,
            method: OnceLock::new(),
            queue: Mutex::new(WriteQueue::default()),
        }))
    }

    /// Writes text, at once or after queued text. Errors are ignored.
    pub fn print(&self, text: &str) {
        let _ = self.put(text.as_bytes(), usize::MAX);
    }

    /// Writes text, at once or after queued text. Returns false and drops the text if the queue is
    /// full. An error may belong to earlier text.
    pub fn offer(&self, text: &str) -> io::Result<bool> {
        self.put(text.as_bytes(), MAX_QUEUE_SIZE)
    }

    /// Writes text only if it can be written at once. Returns false otherwise.
    pub fn show(&self, text: &str) -> bool {
        let mut queue = lock(&self.0.queue);
        if !queue.is_idle() {
            return false;
        }
        match self.write_now(text.as_bytes()) {
            Ok(count @ 1..) => {
                // The text was written in part, so the rest must follow.
                self.enqueue(&mut queue, &text.as_bytes()[count..]);
                true
            }
            _ => false,
        }
    }

    /// Returns a text with a priority in each line if systemd's journal reads the lines.
    pub fn prioritized<'t>(&self, priority: u8, text: Cow<'t, str>) -> Cow<'t, str> {
        prioritized(&self.0.target, priority, text)
    }

    /// True if no text is queued.
    pub fn is_idle(&self) -> bool {
        lock(&self.0.queue).is_idle()
    }

    fn put(&self, bytes: &[u8], most: usize) -> io::Result<bool> {
        let mut queue = lock(&self.0.queue);
        if queue.is_idle() {
            let count = self.write_now(bytes)?;
            self.enqueue(&mut queue, &bytes[count..]);
        } else if queue.size.saturating_add(bytes.len()) > most {
            return Ok(false);
        } else {
            self.enqueue(&mut queue, bytes);
        }
        queue.error.take().map_or(Ok(true), Err)
    }

    fn enqueue(&self, queue: &mut WriteQueue, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let mut common = lock(&WRITERS);
        if queue.is_idle() {
            common.waiting.push(self.clone());
        }
        queue.size += bytes.len();
        queue.lines.push_back(bytes.to_vec());
        if common.threads {
            self.start_thread(queue);
        }
    }

    /// Starts a thread for queued text. Returns false if no thread is available.
    fn start(&self) -> bool {
        self.start_thread(&mut lock(&self.0.queue))
    }

    fn start_thread(&self, queue: &mut WriteQueue) -> bool {
        if !queue.busy && !queue.lines.is_empty() {
            let writer = self.clone();
            let work = move || {
                // Other threads handle signals, and a background process may write too.
                let _ = SigSet::all().thread_block();
                writer.work();
            };
            let builder = std::thread::Builder::new().name("writer".into()).stack_size(STACK_SIZE);
            queue.busy = builder.spawn(work).is_ok();
        }
        queue.busy || queue.lines.is_empty()
    }

    /// Writes all queued text. Blocks.
    fn work(&self) {
        let mut queue = lock(&self.0.queue);
        queue.busy = true;
        while let Some(line) = queue.lines.pop_front() {
            drop(queue);
            let result = self.write_out(&line);
            queue = lock(&self.0.queue);
            queue.size -= line.len();
            queue.error = result.err().or(queue.error.take());
        }
        queue.busy = false;
        lock(&WRITERS).waiting.retain(|other| !Arc::ptr_eq(&other.0, &self.0));
        WRITTEN.notify_all();
    }

    /// Writes all bytes. Blocks.
    fn write_out(&self, mut bytes: &[u8]) -> io::Result<()> {
        let target = self.0.target.as_fd();
        while !bytes.is_empty() {
            match write(target, bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(Errno::EINTR) => {}
                // Another process has set O_NONBLOCK.
                Err(Errno::EAGAIN) => {
                    let _ = poll(&mut [PollFd::new(target, PollFlags::POLLOUT)], PollTimeout::NONE);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Writes as many bytes as possible without blocking. Returns their number.
    fn write_now(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut count = 0;
        while count < bytes.len() {
            match self.attempt(&bytes[count..]) {
                Ok(more) => count += more,
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(count)
    }

    fn attempt(&self, bytes: &[u8]) -> nix::Result<usize> {
        let target = self.0.target.as_fd();
        match self.0.method.get_or_init(|| WriteMethod::of(target)) {
            WriteMethod::Direct => write(target, bytes),
            WriteMethod::Reopened(file) => write(file, bytes),
            WriteMethod::Socket => send(target.as_raw_fd(), bytes, MsgFlags::MSG_DONTWAIT),
            WriteMethod::Polled => {
                let mut polled = [PollFd::new(target, PollFlags::POLLOUT)];
                if poll(&mut polled, PollTimeout::ZERO)? == 0 {
                    return Err(Errno::EAGAIN);
                }
                // A pipe that polls as writable accepts this many bytes.
                write(target, &bytes[..bytes.len().min(libc::PIPE_BUF)])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{PipeReader, Read, Write};
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use std::time::Instant;

    use nix::fcntl::{FcntlArg, fcntl};

    use super::*;

    /// Creates a writer to a full pipe. Returns the writer, the pipe's reader, and the size of its
    /// content.
    fn stalled() -> (NonBlockingWriter, PipeReader, usize) {
        allow_threads();
        let (reader, mut writer) = io::pipe().expect("a pipe");
        let size = fcntl(&writer, FcntlArg::F_GETPIPE_SZ).expect("its size") as usize;
        writer.write_all(&vec![b'.'; size]).expect("as much as it holds");
        (NonBlockingWriter::new(File::from(OwnedFd::from(writer))), reader, size)
    }

    /// Drops the writer, and returns the text after the first `skipped` bytes.
    fn rest(writer: NonBlockingWriter, mut reader: impl Read, skipped: usize) -> String {
        drop(writer);
        let mut text = String::new();
        reader.read_to_string(&mut text).expect("what was written");
        text.split_off(skipped)
    }

    fn lines() -> Vec<String> {
        (0..500).map(|number| format!("{number} {}\n", "x".repeat(number * 20))).collect()
    }

    #[test]
    fn unaccepted_text_is_queued() {
        for polled in [false, true] {
            let (writer, reader, size) = stalled();
            if polled {
                assert!(writer.0.method.set(WriteMethod::Polled).is_ok());
            }
            for line in lines() {
                assert!(writer.offer(&line).expect("a pipe"));
            }
            assert!(!writer.is_idle());
            assert!(!wait(Some(Duration::ZERO)));
            assert_eq!(rest(writer, reader, size), lines().concat());
        }
    }

    #[test]
    fn a_full_socket_does_not_block() {
        allow_threads();
        let (reader, mut writer) = UnixStream::pair().expect("two sockets");
        writer.set_nonblocking(true).expect("a socket");
        let mut size = 0;
        while let Ok(count) = writer.write(b".") {
            size += count;
        }
        writer.set_nonblocking(false).expect("a socket");
        let writer = NonBlockingWriter::new(File::from(OwnedFd::from(writer)));
        for line in lines() {
            writer.print(&line);
        }
        assert_eq!(rest(writer, reader, size), lines().concat());
    }

    #[test]
    fn text_for_now_only_is_not_queued() {
        let (writer, reader, size) = stalled();
        assert!(!writer.show("never"));
        writer.print("first");
        assert!(!writer.show("never"));
        assert_eq!(rest(writer, reader, size), "first");
    }

    #[test]
    fn partly_written_text_is_completed() {
        let (writer, mut reader, size) = stalled();
        let mut page = [0; libc::PIPE_BUF];
        reader.read_exact(&mut page).expect("a part of it");
        let long = "x".repeat(2 * page.len());
        assert!(writer.show(&long));
        writer.print("next");
        assert_eq!(rest(writer, reader, size - page.len()), long + "next");
    }

    #[test]
    fn a_full_queue_drops_text() {
        let (writer, reader, size) = stalled();
        let line = "x".repeat(MAX_QUEUE_SIZE / 4);
        let taken: Vec<bool> = (0..6).map(|_| writer.offer(&line).expect("a pipe")).collect();
        assert_eq!(taken, [true, true, true, true, false, false]);
        writer.print("last");
        assert_eq!(rest(writer, reader, size), line.repeat(4) + "last");
    }

    #[test]
    fn a_lost_reader_is_reported_once() {
        let (writer, reader, _) = stalled();
        writer.print("lost");
        drop(reader);
        let start = Instant::now();
        while !writer.is_idle() {
            assert!(start.elapsed() < Duration::from_secs(20), "still waiting");
            std::thread::yield_now();
        }
        let error = writer.offer("next").expect_err("nobody reads");
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
