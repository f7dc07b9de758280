//! Exit statuses of processes, as the machine knows them.

use ftsh_machine::event::Status;
use ftsh_sys::ExitStatus;

/// Converts an exit status of the kernel.
pub fn status(ended: ExitStatus) -> Status {
    match ended {
        ExitStatus::Exited(code) => Status::Exited(code),
        ExitStatus::Signaled(signal) => Status::Signaled(signal),
    }
}
