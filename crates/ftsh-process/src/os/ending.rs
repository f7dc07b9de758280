//! Conversion of exit statuses.

use ftsh_machine::event::Status;
use ftsh_sys::ExitStatus;

/// Converts an exit status of the kernel to one of the machine.
pub fn status(ended: ExitStatus) -> Status {
    match ended {
        ExitStatus::Exited(code) => Status::Exited(code),
        ExitStatus::Signaled(signal) => Status::Signaled(signal),
    }
}
