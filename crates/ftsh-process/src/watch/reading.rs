//! Progress and memory of processes, as `/proc` and the kernel's clocks report them.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

use crate::procs::{ProcDir, ProcessEntry, by_parent, lists_children};
use crate::system::kilobytes;
use ftsh_sys as sys;

/// Work that a process has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProcessWork {
    /// Processor time of all threads; `None` if unreadable.
    pub cpu: Option<Duration>,
    /// Bytes read and written; `None` if unreadable.
    pub bytes: Option<u64>,
}

/// Source of data about processes.
pub(crate) trait ProcessReader {
    /// Returns these processes and all their descendants. Fails rather than return part of the
    /// list.
    fn family(&mut self, roots: &[i32]) -> io::Result<Vec<i32>>;

    /// Returns the work of a process; `None` if the process has ended.
    fn work(&mut self, pid: i32) -> Option<ProcessWork>;

    /// Returns the bytes sent and received by each TCP socket of some processes.
    fn sockets(&mut self, pids: &[i32]) -> HashMap<u64, u64>;

    /// Returns an upper bound of the memory of a process, in bytes.
    fn memory_bound(&mut self, pid: i32) -> u64;

    /// Returns the memory of a process with its share of shared pages; `None` if unreadable.
    fn memory_share(&mut self, pid: i32) -> Option<u64>;

    /// Returns the name of a process.
    fn name(&mut self, pid: i32) -> String;
}

/// Reader of processes that a test describes.
#[cfg(test)]
#[derive(Default)]
pub(super) struct Fake {
    pub work: std::collections::BTreeMap<i32, ProcessWork>,
    pub sockets: HashMap<u64, u64>,
    /// Time that each list of processes takes.
    pub wait: Duration,
}

#[cfg(test)]
impl ProcessReader for Fake {
    fn family(&mut self, roots: &[i32]) -> io::Result<Vec<i32>> {
        std::thread::sleep(self.wait);
        Ok(roots.to_vec())
    }

    fn work(&mut self, pid: i32) -> Option<ProcessWork> {
        self.work.get(&pid).copied()
    }

    fn sockets(&mut self, _: &[i32]) -> HashMap<u64, u64> {
        self.sockets.clone()
    }

    fn memory_bound(&mut self, _: i32) -> u64 {
        0
    }

    fn memory_share(&mut self, _: i32) -> Option<u64> {
        None
    }

    fn name(&mut self, _: i32) -> String {
        String::new()
    }
}

pub(crate) struct SystemReader;

impl ProcessReader for SystemReader {
    fn family(&mut self, roots: &[i32]) -> io::Result<Vec<i32>> {
        let by_parent =
            if lists_children() { None } else { Some(by_parent(&ProcessEntry::all()?)) };
        let mut seen: HashSet<i32> = roots.iter().copied().collect();
        let mut found: Vec<i32> = seen.iter().copied().collect();
        let mut next = 0;
        while let Some(&pid) = found.get(next) {
            next += 1;
            let children = match &by_parent {
                None => ProcDir(pid).children()?,
                Some(all) => all.get(&pid).cloned().unwrap_or_default(),
            };
            found.extend(children.into_iter().filter(|pid| seen.insert(*pid)));
        }
        Ok(found)
    }

    fn work(&mut self, pid: i32) -> Option<ProcessWork> {
        let clock = clock_getcpuclockid(Pid::from_raw(pid));
        let cpu = clock.and_then(clock_gettime).ok().map(Duration::from);
        let io = fs::read_to_string(format!("/proc/{pid}/io")).ok();
        let work = ProcessWork { cpu, bytes: io.as_deref().map(moved_bytes) };
        // A process that ended after it was listed cannot be read either.
        let is_unreadable = work == ProcessWork::default();
        let has_ended = is_unreadable && kill(Pid::from_raw(pid), None) == Err(Errno::ESRCH);
        (!has_ended).then_some(work)
    }

    fn sockets(&mut self, pids: &[i32]) -> HashMap<u64, u64> {
        let inodes: HashSet<u64> = pids.iter().flat_map(|&pid| socket_inodes(pid)).collect();
        if inodes.is_empty() {
            return HashMap::new();
        }
        let mut sockets = sys::tcp_bytes().unwrap_or_default();
        sockets.retain(|inode, _| inodes.contains(inode));
        sockets
    }

    fn memory_bound(&mut self, pid: i32) -> u64 {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        kilobytes(&status, &["RssAnon:", "RssShmem:", "VmSwap:"]).unwrap_or(0)
    }

    fn memory_share(&mut self, pid: i32) -> Option<u64> {
        let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
        // Pages of files can be dropped at any time, so they are not counted. Kernels before 5.4
        // do not tell them apart.
        let own = kilobytes(&rollup, &["Pss_Anon:", "Pss_Shmem:"]);
        let own = own.or_else(|| kilobytes(&rollup, &["Pss:"]))?;
        Some(own.saturating_add(kilobytes(&rollup, &["SwapPss:"]).unwrap_or(0)))
    }

    fn name(&mut self, pid: i32) -> String {
        ProcDir(pid).name()
    }
}

fn moved_bytes(text: &str) -> u64 {
    const COUNTERS: [&str; 4] = ["rchar:", "wchar:", "read_bytes:", "write_bytes:"];
    let counters = text.lines().filter_map(|line| {
        let (name, value) = line.split_once(' ')?;
        COUNTERS.contains(&name).then(|| value.trim().parse::<u64>().ok())?
    });
    counters.fold(0, u64::wrapping_add)
}

/// Returns the inodes of the sockets that a process has open.
fn socket_inodes(pid: i32) -> Vec<u64> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let inode = |entry: fs::DirEntry| {
        let target = fs::read_link(entry.path()).ok()?;
        target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    };
    entries.filter_map(inode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_works_and_has_memory() {
        let own = std::process::id() as i32;
        let mut reader = SystemReader;
        let before = reader.work(own).expect("the own process");
        assert!(before.cpu.is_some() && before.bytes.is_some_and(|bytes| bytes > 0));
        let mut sum = 0_u64;
        while reader.work(own).is_some_and(|work| work.cpu <= before.cpu) {
            sum = sum.wrapping_add(1);
        }
        let (bound, share) = (reader.memory_bound(own), reader.memory_share(own));
        assert!(share.is_some_and(|share| share > 0 && share <= 2 * bound), "{bound} {share:?}");
        // No process has the largest id, which is the limit of the kernel.
        let nobody = 4_194_304;
        assert_eq!(reader.memory_bound(nobody), 0);
        assert_eq!(reader.work(nobody), None);
    }

    #[test]
    fn counters_are_added_up() {
        let io = "rchar: 5\nwchar: 6\nsyscr: 100\nsyscw: 100\nread_bytes: 7\nwrite_bytes: 8\n\
                  cancelled_write_bytes: 9\n";
        assert_eq!(moved_bytes(io), 26);
        let status = "Name:\tcat\nRssAnon:\t   96 kB\nRssShmem:\t   4 kB\nVmSwap:\t 0 kB\n";
        assert_eq!(kilobytes(status, &["RssAnon:", "RssShmem:", "VmSwap:"]), Some(100 * 1024));
        assert_eq!(kilobytes(status, &["Pss:"]), None);
    }
}
