//! What the shell itself says on its standard output and error.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{self, Write};
use std::sync::OnceLock;
use std::time::Duration;

use super::patient::Patient;
use ftsh_machine::Outcome;
use ftsh_machine::secrets::Secrets;
use ftsh_process::non_blocking_writer::{self, NonBlockingWriter};
use ftsh_sys::os_error::plain;

/// The exit status of a bug in the shell, `EX_SOFTWARE` of sysexits.h.
const INTERNAL_ERROR: i32 = 70;
/// The reader of its last words has so long.
const BRIEFLY: Duration = Duration::from_secs(1);

/// Prints on standard output. Nobody who reads it to the end is no failure.
pub fn tell(text: &str) -> Outcome {
    let mut out = Patient(io::stdout());
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            complain(&format!("can't write to standard output: {}", plain(&error)));
            Outcome::Exited(1)
        }
        _ => Outcome::Succeeded,
    }
}

/// Says one line on standard error.
pub fn complain(message: &str) {
    report(&format!("ftsh: {}\n", crate::log::one_line(message)));
}

/// Says one line on standard error, or has it kept with all that goes there.
pub fn remark(message: &str) {
    let text = format!("ftsh: {}\n", crate::log::one_line(message));
    let text = SECRETS.get().map_or(text.as_str().into(), |secrets| secrets.hide(&text));
    non_blocking_writer::standard_error().say(&text);
}

/// Writes on standard error, also when what goes there otherwise is kept. If nobody takes it, it
/// waits, for [`non_blocking_writer::wait`].
pub fn report(text: &str) {
    let text = SECRETS.get().map_or(text.into(), |secrets| secrets.hide(text));
    VOICE.get().unwrap_or_else(|| non_blocking_writer::standard_error()).say(&text);
}

/// Where the shell's own messages go if standard error is kept.
static VOICE: OnceLock<NonBlockingWriter> = OnceLock::new();

/// What isn't to be said.
static SECRETS: OnceLock<Secrets> = OnceLock::new();

/// Has messages hide these, for good.
pub fn keep_secret(secrets: Secrets) {
    let _ = SECRETS.set(secrets);
}

/// Has messages go there instead of to standard error, for good.
pub fn speak_through(voice: NonBlockingWriter) {
    let _ = VOICE.set(voice);
}

/// Makes a panic, in whatever thread, end the shell with a message: half a shell must not go on.
pub fn tell_of_panics() {
    std::panic::set_hook(Box::new(|panic| {
        report(&format!(
            "ftsh: internal error: {panic}\nThis is a bug in ftsh, please report it.\n"
        ));
        let trace = Backtrace::capture();
        if trace.status() == BacktraceStatus::Captured {
            report(&trace.to_string());
        }
        non_blocking_writer::wait(Some(BRIEFLY));
        std::process::exit(INTERNAL_ERROR);
    }));
}
