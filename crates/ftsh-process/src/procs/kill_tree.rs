//! Reliable killing of process trees.
//!
//! Processes are stopped from the root down before any is killed: a stopped process starts no
//! further process, and its list of children does not change.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use nix::errno::Errno;

use super::list::{self, ProcessEntry};
use ftsh_sys as sys;

/// Maximum number of walks over a tree that grows meanwhile.
const PASSES: usize = 10;

/// Time without progress after which killing is given up. On a busy machine, a single scan may take
/// as long.
const STUCK_TIMEOUT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(2);

/// Kills these processes and all their descendants. Returns their ids.
pub(crate) fn stop_and_kill(roots: &[i32]) -> Vec<i32> {
    let found = stop(roots);
    for &pid in &found {
        let _ = sys::kill(pid, libc::SIGKILL);
    }
    found
}

fn stop(roots: &[i32]) -> Vec<i32> {
    let lists_children = list::lists_children();
    let own = std::process::id() as i32;
    let mut found: Vec<i32> = Vec::new();
    let mut seen = HashSet::from([0, 1, own]);
    let add = |pid: i32, found: &mut Vec<i32>, seen: &mut HashSet<i32>| {
        if seen.insert(pid) && sys::kill(pid, libc::SIGSTOP) != Err(Errno::ESRCH) {
            found.push(pid);
        }
    };
    for &pid in roots {
        add(pid, &mut found, &mut seen);
    }
    for _ in 0..PASSES {
        let before = found.len();
        let all = if lists_children { Ok(Vec::new()) } else { list::all() };
        let mut is_listed = all.is_ok();
        let tree = list::by_parent(&all.unwrap_or_default());
        let mut next = 0;
        while let Some(&pid) = found.get(next) {
            next += 1;
            let children = if lists_children {
                list::children(pid)
            } else {
                Ok(tree.get(&pid).cloned().unwrap_or_default())
            };
            is_listed &= children.is_ok();
            for child in children.unwrap_or_default() {
                add(child, &mut found, &mut seen);
            }
        }
        if !is_listed {
            std::thread::sleep(PAUSE);
        } else if found.len() == before {
            break;
        }
    }
    found
}

/// Result of a scan for remaining processes.
#[derive(Clone, Copy)]
enum ScanResult {
    /// No process is left.
    Empty,
    /// A process ended, or a new process was found.
    Progress,
    /// Nothing changed.
    Same,
}

/// Repeats a scan until no process is left, or until `STUCK_TIMEOUT` has passed without progress.
fn until_empty(now: impl Fn() -> Instant, mut look: impl FnMut() -> ScanResult) {
    let mut progress = now();
    while now().duration_since(progress) < STUCK_TIMEOUT {
        match look() {
            ScanResult::Empty => return,
            ScanResult::Progress => progress = now(),
            ScanResult::Same => {}
        }
    }
}

/// Kills all current and future children of this process, except these. Blocks; gives up on
/// processes that cannot be killed after some seconds.
pub(crate) fn empty(except: &HashSet<i32>) {
    let own = std::process::id() as i32;
    let mut killed = HashSet::new();
    until_empty(Instant::now, || {
        let may_come = sys::is_starting();
        let mut left = Vec::new();
        let mut has_ended = false;
        let Ok(children) = list::children(own) else {
            if has_reaped_all(except) && !may_come {
                return ScanResult::Empty;
            }
            std::thread::sleep(PAUSE);
            return ScanResult::Same;
        };
        for pid in children.into_iter().filter(|pid| !except.contains(pid)) {
            match sys::wait_for(pid, false) {
                // Children of the ended process became children of this process, perhaps after the
                // list was read.
                Ok(Some(_)) => {
                    has_ended = true;
                    killed.remove(&pid);
                }
                // A process of another user cannot be killed.
                Ok(None) if sys::kill(pid, 0) != Err(Errno::EPERM) => left.push(pid),
                _ => {}
            }
        }
        let new: Vec<i32> = left.iter().copied().filter(|pid| !killed.contains(pid)).collect();
        if !new.is_empty() {
            killed.extend(stop_and_kill(&new));
            return ScanResult::Progress;
        }
        if left.is_empty() && !has_ended && !may_come {
            return ScanResult::Empty;
        }
        std::thread::sleep(PAUSE);
        if has_ended { ScanResult::Progress } else { ScanResult::Same }
    });
}

/// Waits for children that have ended, except these. Returns true if no child is left at all, which
/// needs no list of children.
pub(super) fn has_reaped_all(except: &HashSet<i32>) -> bool {
    let ended = || sys::ended_child().filter(|pid| !except.contains(pid));
    while ended().is_some_and(|pid| matches!(sys::wait_for(pid, false), Ok(Some(_)))) {}
    sys::has_no_children()
}

/// Kills the processes returned by `find` until two scans in a row certainly find none. Blocks.
pub(crate) fn kill_found(mut find: impl FnMut() -> (Vec<ProcessEntry>, bool)) {
    let (mut nothing, mut clean) = (false, false);
    let mut killed = HashSet::new();
    until_empty(Instant::now, || {
        let (found, is_certain) = find();
        let pids: Vec<i32> = found.iter().map(|process| process.pid).collect();
        stop_and_kill(&pids);
        let before = std::mem::replace(&mut nothing, pids.is_empty() && !sys::is_starting());
        let was_clean = std::mem::replace(&mut clean, nothing && is_certain);
        if was_clean && clean {
            return ScanResult::Empty; // two scans without processes
        }
        let new = found.iter().filter(|process| killed.insert((process.pid, process.started)));
        let has_new = new.count() > 0;
        std::thread::sleep(PAUSE);
        if has_new || before != nothing { ScanResult::Progress } else { ScanResult::Same }
    });
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Returns the number of scans, given the duration of a scan and the results of the first
    /// scans. Further scans find no change.
    fn looks(seconds: u64, results: &[ScanResult]) -> usize {
        let clock = Cell::new(Instant::now());
        let count = Cell::new(0);
        until_empty(
            || clock.get(),
            || {
                clock.set(clock.get() + Duration::from_secs(seconds));
                let nth = count.replace(count.get() + 1);
                results.get(nth).copied().unwrap_or(ScanResult::Same)
            },
        );
        count.get()
    }

    #[test]
    fn unkillable_processes_are_given_up() {
        assert_eq!(looks(1, &[]), 5);
        assert_eq!(looks(1, &[ScanResult::Same, ScanResult::Same, ScanResult::Empty]), 3);
    }

    #[test]
    fn progress_restarts_the_time_limit() {
        use ScanResult::{Empty, Progress, Same};
        assert_eq!(looks(1, &[Same, Same, Same, Progress]), 4 + 5);
        // On this machine, a scan takes longer than the time limit.
        assert_eq!(looks(20, &[Progress, Progress, Progress, Empty, Progress]), 4);
        assert_eq!(looks(20, &[Progress, Same, Progress]), 2);
    }

    #[test]
    fn an_uncertain_scan_is_repeated() {
        let mut looks = [false, true, false, true, true, true].into_iter();
        kill_found(|| (Vec::new(), looks.next().expect("another look")));
        assert_eq!(looks.len(), 1);
    }
}
