//! Process driver: real processes, files and time, on one thread.
//!
//! The event loop waits for pidfds, signals and results of worker threads. Workers perform calls
//! that may block, so that time limits hold whatever a file system does.

mod buffers;
mod carried;
mod channels;
mod children;
mod cleanup;
mod clock;
mod control;
mod descriptors;
mod driver;
mod durations;
mod events;
mod fds;
#[cfg(test)]
mod few_descriptors;
mod files;
mod input_spool;
mod jobs;
mod kill;
mod locks;
pub mod non_blocking_writer;
mod paths;
mod procs;
mod program;
mod scopes;
#[cfg(test)]
#[path = "../../../tests/support/skipped.rs"]
mod skipped;
mod staged;
mod stream;
mod supervisor;
mod system;
mod tag;
mod transfer;
mod tty;
pub mod user_directory;
mod views;
mod watch;
mod workers;

pub use self::buffers::SpillingLog;
pub use self::carried::{CANCEL_TIMEOUT, CARRY_WORDS, CarriedJob, CarriedJobs, NotedJob};
pub use self::channels::{BreakerSnapshot, ChannelSnapshot, ListedChannel, list_channels};
pub use self::cleanup::replace_file;
pub use self::clock::{BOOT_ID, boot_id, local_zone, since_boot};
pub use self::control::{ControlLink, Controller, Order, SharedDeadline};
pub use self::driver::{Attachments, BackgroundJob, Log, ProcessConfig, ProcessDriver, Readiness};
pub use self::durations::{DurationStore, DurationsConfig, ScriptIdentity};
pub use self::events::die_by;
pub use self::files::own_directory;
pub use self::kill::{CLIENTS, adopt_orphans, kill_children, kill_stale_runs, kill_subtree};
pub use self::program::{is_filter, serve_filter, start_detached};
pub use self::supervisor::{
    AtEnd, Caller, LivenessLocks, OutputCapture, ShellLiveness, Supervision, SupervisorOptions,
    end, liveness, supervise,
};
pub use self::system::{assume_umask, umask};
pub use self::tag::{KillTimeout, LimitClocks, PassedDeadline, remove_expired_limit};
pub use self::transfer::{
    DigestKey, Digests, FileEntry, FileStore, Gifts, IncomingFiles, Outgoing, TransferError,
};
pub use self::tty::{Edited, TerminalRestore, columns, shows_status_line};
pub use self::views::remove_commit_record;
pub use self::workers::while_busy;
pub use ftsh_sys::{
    duplicate, exit_now, has_room, ignore_file_size_limit, ignore_only, ignored_signals,
    keep_closed, prepare_allocator, random, restore_job_control, size, was_closed,
    with_large_stack,
};
