//! Processes that are blocked in a read from the terminal.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Activity of processes, as far as a terminal is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TerminalActivity {
    /// Every thread sleeps elsewhere.
    Elsewhere,
    /// A thread runs, perhaps between two reads of a line.
    Running,
    /// A thread is blocked in a read from a terminal.
    Reading,
}

/// Returns the activity of these processes that is closest to a read from a terminal. A process of
/// another user counts as one that sleeps, as does any on a system without Linux's `/proc`.
pub(crate) fn terminal_activity(pids: &[i32]) -> TerminalActivity {
    let of_process = |&pid: &i32| {
        let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
        threads.map(|thread| activity(pid, &thread.path())).max()
    };
    pids.iter().filter_map(of_process).max().unwrap_or(TerminalActivity::Elsewhere)
}

fn activity(pid: i32, thread: &Path) -> TerminalActivity {
    let call = fs::read_to_string(thread.join("syscall"));
    let is_reading = match &call {
        Ok(call) => descriptor_read(call).is_some_and(|number| is_terminal(pid, number)),
        // Not every kernel shows system calls to the parent. The function that the thread sleeps in
        // also serves reads from some sockets.
        Err(_) => fs::read_to_string(thread.join("wchan"))
            .is_ok_and(|function| matches!(function.as_str(), "wait_woken" | "n_tty_read")),
    };
    if is_reading {
        TerminalActivity::Reading
    } else if call.is_ok_and(|call| call.trim_end() == "running") {
        TerminalActivity::Running
    } else {
        TerminalActivity::Elsewhere
    }
}

/// Returns the descriptor that a thread is reading from, by its line in `/proc`: the number of the
/// system call and its arguments.
fn descriptor_read(call: &str) -> Option<u64> {
    let mut words = call.split_ascii_whitespace();
    let number: i64 = words.next()?.parse().ok()?;
    let is_read = [libc::SYS_read, libc::SYS_readv].contains(&number);
    let argument = words.next()?.strip_prefix("0x").filter(|_| is_read)?;
    u64::from_str_radix(argument, 16).ok()
}

/// Tests the name, since the file system of any other file may hang. Where the terminal belongs to
/// another container, its name is only a number.
fn is_terminal(pid: i32, descriptor: u64) -> bool {
    let Ok(name) = fs::read_link(format!("/proc/{pid}/fd/{descriptor}")) else { return false };
    let name = name.as_os_str().as_bytes();
    ["/dev/tty", "/dev/pts/", "/dev/console"].iter().any(|it| name.starts_with(it.as_bytes()))
        || name.strip_prefix(b"/").is_some_and(|rest| rest.iter().all(u8::is_ascii_digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_distinguished_from_other_system_calls() {
        let line = |number: i64| format!("{number} 0x1f 0x7fc5ec09f9b0 0x1 0x0 0x0 0x0 0x7f 0x7f");
        assert_eq!(descriptor_read(&line(libc::SYS_read)), Some(31));
        assert_eq!(descriptor_read(&line(libc::SYS_write)), None);
        assert_eq!(descriptor_read("running"), None);
        assert_eq!(descriptor_read("-1 0x7f 0x7f"), None);
        assert_eq!(descriptor_read(""), None);
    }
}
