//! Messages of the shell on standard output and standard error.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt::Display;
use std::io::{self, Write};
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Error, anyhow};

use super::blocking_io::BlockingIo;
use ftsh_ide::lint::Warning;
use ftsh_machine::Outcome;
use ftsh_machine::secrets::Secrets;
use ftsh_process::non_blocking_writer::{self, NonBlockingWriter};
use ftsh_syntax::slug::Slug;
use ftsh_sys::os_error::plain;

/// Maximum wait for the reader of the final messages.
const FINAL_WRITE_TIMEOUT: Duration = Duration::from_secs(1);

/// Prints a text on standard output. A reader that closes the pipe early is no failure.
pub(super) fn print_text(text: &str) -> Outcome {
    let mut out = BlockingIo(io::stdout());
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
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
    let text = SECRETS.get().map_or(text.as_str().into(), |secrets| secrets.hide(&text));
    non_blocking_writer::standard_error().print(&text);
}

/// Writes a text to standard error, even while output is captured. Text that a slow reader does not
/// accept stays queued for [`non_blocking_writer::wait`].
pub(super) fn report(text: &str) {
    let text = SECRETS.get().map_or(text.into(), |secrets| secrets.hide(text));
    UNCAPTURED.get().unwrap_or_else(|| non_blocking_writer::standard_error()).print(&text);
}

/// Standard error for the shell's own messages while output is captured.
static UNCAPTURED: OnceLock<NonBlockingWriter> = OnceLock::new();

/// Secrets that messages must not contain.
static SECRETS: OnceLock<Secrets> = OnceLock::new();

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
