//! Finding a run's processes.

use std::fs;

/// A process that carries a run's mark.
#[derive(Debug)]
pub struct Survivor {
    /// Its id.
    pub pid: i32,
    /// Its command line, for people.
    pub command: String,
}

/// The live processes whose environment has the entry `mark` (`NAME=value`). Zombies have none.
pub fn marked(mark: &str) -> Vec<Survivor> {
    with(|pid| {
        fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|environ| environ.split(|&byte| byte == 0).any(|e| e == mark.as_bytes()))
    })
}

/// The live processes one of whose arguments is `mark`: for those that wipe their environment.
pub fn with_argument(mark: &str) -> Vec<Survivor> {
    with(|pid| {
        fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| line.split(|&byte| byte == 0).any(|a| a == mark.as_bytes()))
    })
}

fn with(matches: impl Fn(i32) -> bool) -> Vec<Survivor> {
    let own = std::process::id() as i32;
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|&pid| pid != own && matches(pid))
        .map(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&line).replace('\0', " ").trim_end().to_owned();
            Survivor { pid, command }
        })
        .collect()
}
