//! Messages of the shell on standard output and standard error, and its exit.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::borrow::Cow;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Error, Result, anyhow};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::memfd::{MFdFlags, memfd_create};

use ftsh_ide::lint::Warning;
use ftsh_machine::Outcome;
use ftsh_machine::event::CommandStatus;
use ftsh_machine::secrets::Secrets;
use ftsh_process as process;
use ftsh_process::non_blocking_writer::{self, ERROR_PRIORITY, NonBlockingWriter};
use ftsh_syntax::slug::Slug;
use ftsh_sys::os_error::plain;

/// Exit status of wrong usage and of other errors before a script starts.
pub(super) const NOTHING_WAS_RUN: u8 = 2;

/// Maximum wait for the reader of the final messages.
const FINAL_WRITE_TIMEOUT: Duration = Duration::from_secs(1);

/// Prints a text on standard output. A reader that closes the pipe early is no failure.
pub(super) fn print_text(text: &str) -> Outcome {
    let mut out = BlockingIo(io::stdout());
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            let message = format!("can't write to standard output: {}", plain(&error));
            print_message(Slug::Output, message);
            Outcome::Exited(1)
        }
        _ => Outcome::Succeeded,
    }
}

/// Prints a message with its slug in one line on standard error, even while output is captured.
pub(super) fn print_message(slug: Slug, message: impl Display) {
    report(&format!("ftsh: {} [{slug}]\n", crate::log::one_line(&message.to_string())));
}

/// Prints an error like [`print_message`]. An error without a slug of its own is one of the system.
pub(super) fn print_error(error: &Error) {
    let message = error.to_string();
    let slug = message.rsplit_once(" [").and_then(|(_, slug)| Slug::named(slug.strip_suffix(']')?));
    match slug {
        Some(_) => report(&format!("ftsh: {}\n", crate::log::one_line(&message))),
        None => print_message(Slug::System, message),
    }
}

/// Creates an error of the use of the command line, with its slug after the message.
pub(super) fn usage(slug: Slug, message: impl Display) -> Error {
    anyhow!("{message} [{slug}]")
}

/// Prints a warning about the command behind a prefix like a note.
pub(super) fn print_warning(warning: &Warning) {
    let hint = warning.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
    print_note(&format!("warning: {}{hint} [{}]", warning.message, warning.slug));
}

/// Prints a note in one line on standard error. The line is captured with other output.
pub(super) fn print_note(message: &str) {
    let text = format!("ftsh: {}\n", crate::log::one_line(message));
    let text = hidden(&text);
    non_blocking_writer::standard_error().print(&text);
}

/// Writes a text to standard error, even while output is captured. Text that a slow reader does not
/// accept stays queued for [`non_blocking_writer::wait`].
pub(super) fn report(text: &str) {
    report_with(ERROR_PRIORITY, text);
}

/// Writes a text like [`report`], with a priority where systemd's journal reads the lines.
pub(super) fn report_with(priority: u8, text: &str) {
    let text = hidden(text);
    let _ = COPY.get().map(|mut copy| copy.write_all(text.as_bytes()));
    if WITHHELD.load(Ordering::Relaxed) {
        return;
    }
    let writer = UNCAPTURED.get().unwrap_or_else(|| non_blocking_writer::standard_error());
    writer.print(&writer.prioritized(priority, text));
}

/// Copy of messages, and of the end of captured output, which the processes of the shell share.
static COPY: OnceLock<File> = OnceLock::new();

/// Copies later messages.
pub(super) fn keep_copy() {
    let made = memfd_create(c"messages", MFdFlags::MFD_CLOEXEC).map_err(io::Error::from);
    if let Ok(file) = made.and_then(ftsh_sys::move_up) {
        let _ = COPY.set(file.into());
    }
}

/// Returns the file of the copy, to append to it.
pub(super) fn copy() -> Option<&'static File> {
    COPY.get()
}

/// Returns the copied text.
pub(super) fn copied() -> String {
    let mut bytes = Vec::new();
    let _ = COPY.get().map(|mut file| file.rewind().and_then(|()| file.read_to_end(&mut bytes)));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// True if messages are only copied.
static WITHHELD: AtomicBool = AtomicBool::new(false);

/// Withholds later messages, which are still copied, or no longer withholds them. Returns whether they
/// were withheld before.
pub(super) fn withhold(is_withheld: bool) -> bool {
    WITHHELD.swap(is_withheld, Ordering::Relaxed)
}

/// Standard error for the shell's own messages while output is captured.
static UNCAPTURED: OnceLock<NonBlockingWriter> = OnceLock::new();

/// Secrets that messages must not contain.
static SECRETS: OnceLock<Secrets> = OnceLock::new();

/// Returns a text without secrets.
pub(super) fn hidden(text: &str) -> Cow<'_, str> {
    SECRETS.get().map_or(text.into(), |secrets| secrets.hide(text))
}

/// Makes all later messages hide these secrets.
pub(super) fn hide_secrets(secrets: Secrets) {
    let _ = SECRETS.set(secrets);
}

/// Sends all later messages to `writer` instead of standard error.
pub(super) fn redirect_to(writer: NonBlockingWriter) {
    let _ = UNCAPTURED.set(writer);
}

/// Makes a panic in any thread print a message and end the process by SIGABRT. A supervisor then
/// cleans up, as after any other signal to the interpreter.
pub(super) fn report_panics() {
    std::panic::set_hook(Box::new(|panic| {
        report(&format!(
            "ftsh: internal error: {panic}\nThis is a bug in ftsh, please report it.\n"
        ));
        let trace = Backtrace::capture();
        if trace.status() == BacktraceStatus::Captured {
            report(&trace.to_string());
        }
        non_blocking_writer::wait(Some(FINAL_WRITE_TIMEOUT));
        std::process::abort();
    }));
}

/// Ends this process with the status of its work, after all output is written.
pub(super) fn end(result: Result<Outcome>) -> ! {
    let code = match result {
        Ok(Outcome::Interrupted(signal)) => process::end(CommandStatus::Signaled(signal)),
        Ok(outcome) => outcome.exit_code(),
        Err(error) => {
            print_error(&error);
            NOTHING_WAS_RUN
        }
    };
    non_blocking_writer::wait(None);
    process::end(CommandStatus::Exited(code.into()))
}

/// Standard input or output of the shell, which another process may have made non-blocking. Operations
/// wait where those of a non-blocking descriptor would fail.
pub(super) struct BlockingIo<T>(pub T);

impl<T: AsFd> BlockingIo<T> {
    fn until_done<R>(
        &mut self,
        events: PollFlags,
        mut action: impl FnMut(&mut T) -> io::Result<R>,
    ) -> io::Result<R> {
        // The Rust runtime opens /dev/null in place of a closed standard descriptor.
        if process::was_closed(self.0.as_fd().as_raw_fd()) {
            return Err(Errno::EBADF.into());
        }
        loop {
            match action(&mut self.0) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    poll(&mut [PollFd::new(self.0.as_fd(), events)], PollTimeout::NONE)?;
                }
                result => return result,
            }
        }
    }
}

impl<T: AsFd + Read> Read for BlockingIo<T> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.until_done(PollFlags::POLLIN, |it| it.read(room))
    }
}

impl<T: AsFd + Write> Write for BlockingIo<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.until_done(PollFlags::POLLOUT, |it| it.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.until_done(PollFlags::POLLOUT, Write::flush)
    }
}
