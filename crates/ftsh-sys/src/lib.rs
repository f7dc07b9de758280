//! System calls without a safe interface in std, nix and rustix: the only unsafe code of the shell.

#![allow(unsafe_code, reason = "the only crate that implements anything unsafe")]

mod attributes;
mod boot;
mod c_string_array;
mod children;
mod descriptors;
mod fd_kind;
mod file_handle;
mod file_lock;
mod inotify;
mod key_monitor;
mod launch;
mod memory;
mod oom_score;
pub mod os_error;
mod overlays;
mod pipes;
mod pre_main;
mod random;
mod remove_tree;
mod signals;
mod sock_diag;
mod vfork;

pub use attributes::{attribute, attributes, attributes_in, remove_attribute, set_attribute};
pub use boot::{boot_timer, set_boot_timer};
pub use c_string_array::CStringArray;
pub use children::{
    ChildChange, ExitStatus, become_subreaper, continue_without_parent, die_with_parent,
    ended_child, exit_now, group_of, has_no_children, has_pidfds, is_group_alive, is_parent, kill,
    pidfd_open, set_variable, stopped_child, terminate_process, wait_for, wait_for_end,
};
pub use descriptors::epoll_wait;
pub use descriptors::{
    FileLimit, Inherited, Parcel, Replaced, add_flags, can_open, close_all, close_number,
    duplicate, is_own, is_passed_on, move_up, receive_descriptors, send_descriptors,
    set_foreground, size,
};
pub use fd_kind::{FdKind, fd_kind};
pub use file_handle::file_handle;
pub use file_lock::{FileLock, LockKind};
pub use inotify::{CloseEvents, WatchNumber, report_closing, watch_changes};
pub use key_monitor::start_key_monitor;
pub use launch::{Launch, detach, exec, forbid_starts, fork, is_starting, prepare_exec};
pub use memory::{has_room, is_static, prepare_allocator, shared_number, with_large_stack};
pub use overlays::{
    MountFailure, MountStep, Namespaces, Overlay, mount_overlays, mount_overlays_within,
};
pub use pipes::{read_now, unread, write_now};
pub use pre_main::was_ignored;
pub use pre_main::{
    ignore_file_size_limit, ignore_only, ignored_signals, keep_closed, parent_at_start, was_closed,
};
pub use random::random;
pub use remove_tree::{is_left_by_removal, remove_tree};
pub use signals::{
    Caught, Thread, catch, catch_children, die_by, hold_signals, is_ignored, next_signal,
    release_signals, release_signals_of, restore_job_control, suspend, suspend_self,
    without_stopping,
};
pub use sock_diag::tcp_bytes;
pub use vfork::{spawn, spawn_within};
