//! Process driver: real processes, files and time, on one thread.
//!
//! The event loop waits for pidfds, signals and results of worker threads. Workers perform calls
//! that may block, so that time limits hold whatever a file system does.

mod channels;
mod cleanup;
mod control;
mod driver;
mod durations;
mod fds;
mod input_spool;
mod jobs;
pub mod non_blocking_writer;
mod os;
mod procs;
mod program;
mod scopes;
mod supervisor;
mod tag;
mod tty;
pub mod user_directory;
mod views;
mod watch;

pub use self::channels::{BreakerSnapshot, ChannelSnapshot, ListedChannel, list_channels};
pub use self::cleanup::replace_file;
pub use self::control::{ControlLink, Controller, Order, SharedDeadline};
pub use self::driver::{Attachments, BackgroundJob, Log, ProcessConfig, ProcessDriver, Readiness};
pub use self::durations::{DurationStore, DurationsConfig, ScriptIdentity};
pub use self::fds::spilling_log::SpillingLog;
pub use self::os::clock::{BOOT_ID, boot_id, since_boot};
pub use self::os::local_time::local_zone;
pub use self::os::signal::die_by;
pub use self::os::umask::{assume_umask, umask};
pub use self::procs::{CLIENTS, adopt_orphans, kill_children, kill_stale_runs, kill_subtree};
pub use self::program::filter::{is_requested as is_filter, serve as serve_filter};
pub use self::supervisor::{
    AtEnd, LivenessLocks, OutputCapture, ShellLiveness, Supervision, SupervisorOptions, end,
    liveness, supervise,
};
pub use self::tag::{KillTimeout, LimitClocks, PassedDeadline, remove_expired_limit};
pub use self::tty::{Edited, TerminalRestore, columns, shows_status_line};
pub use self::views::remove_commit_record;
pub use ftsh_sys::{
    duplicate, exit_now, has_room, ignore_file_size_limit, ignore_only, ignored_signals,
    keep_closed, prepare_allocator, random, restore_job_control, size, was_closed,
    with_large_stack,
};
