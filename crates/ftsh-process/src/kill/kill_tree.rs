//! Reliable killing of process trees.
//!
//! Processes are stopped from the root down before any is killed: a stopped process starts no
//! further process, and its list of children does not change.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use nix::errno::Errno;

use crate::procs::{ProcDir, ProcessEntry, by_parent, lists_children};
use ftsh_sys as sys;

/// Maximum number of walks over a tree that grows meanwhile.
const PASSES: usize = 10;

/// Time without progress after which killing is given up. On a busy machine, a single scan may take
/// as long.
const STUCK_TIMEOUT: Duration = Duration::from_secs(5);
/// Time after SIGKILL after which a process in an uninterruptible call is given up.
const HANG_TIMEOUT: Duration = Duration::from_secs(1);
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
    let lists_children = lists_children();
    let own = std::process::id() as i32;
    let mut found: Vec<i32> = Vec::new();
    // A stopped shell kills nothing, and a signal to 0 reaches the whole group of the shell.
    let mut seen = HashSet::from([0, 1, own]);
    let add = |pid: i32, found: &mut Vec<i32>, seen: &mut HashSet<i32>| {
        // A process of another user cannot be stopped, but its children may be ours.
        if seen.insert(pid) && sys::kill(pid, libc::SIGSTOP) != Err(Errno::ESRCH) {
            found.push(pid);
        }
    };
    for &pid in roots {
        add(pid, &mut found, &mut seen);
    }
    for _ in 0..PASSES {
        let before = found.len();
        let all = if lists_children { Ok(Vec::new()) } else { ProcessEntry::all() };
        let mut is_listed = all.is_ok();
        let tree = by_parent(&all.unwrap_or_default());
        let mut next = 0;
        while let Some(&pid) = found.get(next) {
            next += 1;
            let children = if lists_children {
                ProcDir(pid).children()
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

/// Killed processes, with the times of the first SIGKILL.
#[derive(Default)]
struct Killed(HashMap<i32, Instant>);

impl Killed {
    fn add(&mut self, pids: impl IntoIterator<Item = i32>) {
        let now = Instant::now();
        for pid in pids {
            self.0.entry(pid).or_insert(now);
        }
    }

    /// True if the kernel does not let a killed process die.
    fn hangs(&self, pid: i32) -> bool {
        self.0.get(&pid).is_some_and(|it| it.elapsed() >= HANG_TIMEOUT) && ProcDir(pid).hangs()
    }
}

/// Kills all current and future children of this process, except these. Blocks. Returns the
/// processes that it gave up on: after a second where the kernel does not let a process die, and
/// after some seconds otherwise.
pub(crate) fn kill_all_except(except: &HashSet<i32>) -> HashSet<i32> {
    let own = std::process::id() as i32;
    let mut killed = Killed::default();
    let mut hanging = HashSet::new();
    until_empty(Instant::now, || {
        // Read before the list: a program whose start ends in between is in the list.
        let may_come = sys::is_starting();
        let (mut left, mut foreign) = (Vec::new(), Vec::new());
        let mut has_ended = false;
        let Ok(children) = ProcDir(own).children() else {
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
                    killed.0.remove(&pid);
                }
                // A process of another user cannot be killed, but its children may be ours.
                Ok(None) if sys::kill(pid, 0) == Err(Errno::EPERM) => foreign.push(pid),
                Ok(None) => left.push(pid),
                Err(_) => {}
            }
        }
        hanging = left.iter().copied().filter(|pid| killed.hangs(*pid)).collect();
        left.retain(|pid| !hanging.contains(pid));
        let is_new = |pid: &i32| !killed.0.contains_key(pid);
        let new: Vec<i32> = left.iter().chain(&foreign).copied().filter(is_new).collect();
        if !new.is_empty() {
            killed.add(stop_and_kill(&new));
            return ScanResult::Progress;
        }
        if left.is_empty() && !has_ended && !may_come {
            return ScanResult::Empty;
        }
        std::thread::sleep(PAUSE);
        if has_ended { ScanResult::Progress } else { ScanResult::Same }
    });
    hanging
}

/// Waits for children that have ended, except these. Returns true if no child is left at all, which
/// needs no list of children.
pub(crate) fn has_reaped_all(except: &HashSet<i32>) -> bool {
    let ended = || sys::ended_child().filter(|pid| !except.contains(pid));
    while ended().is_some_and(|pid| matches!(sys::wait_for(pid, false), Ok(Some(_)))) {}
    sys::has_no_children()
}

/// Kills the processes returned by `find`, except these, until two scans in a row certainly find
/// none. Blocks. Returns the processes that the kernel does not let die, as [`empty`] does.
pub(crate) fn kill_found(
    except: &HashSet<i32>,
    mut find: impl FnMut() -> (Vec<ProcessEntry>, bool),
) -> HashSet<i32> {
    let (mut nothing, mut clean) = (false, false);
    let (mut seen, mut killed) = (HashSet::new(), Killed::default());
    let mut hanging = HashSet::new();
    until_empty(Instant::now, || {
        let (mut found, is_certain) = find();
        hanging = found.iter().map(|it| it.pid).filter(|pid| killed.hangs(*pid)).collect();
        found.retain(|it| !except.contains(&it.pid) && !hanging.contains(&it.pid));
        let pids: Vec<i32> = found.iter().map(|process| process.pid).collect();
        killed.add(stop_and_kill(&pids));
        let before = std::mem::replace(&mut nothing, pids.is_empty() && !sys::is_starting());
        let was_clean = std::mem::replace(&mut clean, nothing && is_certain);
        if was_clean && clean {
            return ScanResult::Empty; // two scans without processes
        }
        let new = found.iter().filter(|process| seen.insert((process.pid, process.started)));
        let has_new = new.count() > 0;
        std::thread::sleep(PAUSE);
        if has_new || before != nothing { ScanResult::Progress } else { ScanResult::Same }
    });
    hanging
}

/// Makes this process the parent of orphans. Returns false where the system lacks subreapers or
/// lists of children.
pub(crate) fn become_subreaper() -> bool {
    lists_children() && sys::become_subreaper(true)
}

/// Children of this process before it started any, as after an `exec`.
pub struct EarlierChildren(HashSet<i32>);

/// Makes this process the parent of the orphans among its descendants, where the system allows.
pub fn adopt_orphans() -> EarlierChildren {
    become_subreaper();
    EarlierChildren(
        ProcDir(std::process::id().cast_signed())
            .children()
            .unwrap_or_default()
            .into_iter()
            .collect(),
    )
}

/// Kills all later children of this process, and the orphans that it adopts meanwhile. Blocks.
pub fn kill_children(except: &EarlierChildren) {
    let _ = kill_all_except(&except.0);
}

/// Kills a process and all its descendants.
pub fn kill_subtree(pid: i32) {
    stop_and_kill(&[pid]);
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
        kill_found(&HashSet::new(), || (Vec::new(), looks.next().expect("another look")));
        assert_eq!(looks.len(), 1);
    }
}
