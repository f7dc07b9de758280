//! Conversion of exit statuses.

use ftsh_machine::event::CommandStatus;
use ftsh_sys::ExitStatus;

/// Converts an exit status of the kernel to one of the machine.
pub(crate) fn status(ended: ExitStatus) -> CommandStatus {
    match ended {
        ExitStatus::Exited(code) => CommandStatus::Exited(code),
        ExitStatus::Signaled(signal) => CommandStatus::Signaled(signal),
    }
}
