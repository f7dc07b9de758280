//! System calls that neither std nor nix offers safely: the only unsafe code of the shell.

mod children;
mod descriptors;
mod launch;
mod signals;

pub use children::{
    Change, become_subreaper, ended_child, group_of, has_no_children, has_pidfds, kill, pidfd_open,
    stopped_child, wait_for,
};
pub use descriptors::{
    FileLimit, Kept, add_flags, borrow, close_number, duplicate, install, is_passed_on, move_up,
    receive_descriptors, send_descriptors, set_foreground, write_now,
};
pub use launch::{Launch, exec, exit_now, fork, prepare_exec, spawn};
#[cfg(test)]
pub use signals::sigpipe_was_ignored;
pub use signals::{
    Caught, Thread, catch, die_by, hold_signals, is_ignored, next_signal, release_signals,
    stop_self, suspend_group, without_stopping,
};
