//! Killing process trees for certain.
//!
//! Processes are stopped from the top down before any is killed: a stopped process starts no other
//! one, and its list of children stays as it is.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use nix::errno::Errno;

use super::super::marks::Marker;
use super::super::sys;
use super::list::{self, Process};
use super::scanner::Scanner;

/// A tree that forks while it is walked is walked again, at most so often.
const PASSES: usize = 10;

/// How long to go on with what doesn't end, from the last time that anything else was found: on a
/// busy machine a single look may take as long.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(2);

/// Kills these processes and all their descendants; says which there were.
pub fn stop_and_kill(roots: &[i32]) -> Vec<i32> {
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
        let tree = if lists_children { None } else { Some(list::by_parent(&list::all())) };
        let mut next = 0;
        while let Some(&pid) = found.get(next) {
            next += 1;
            let children = match &tree {
                None => list::children(pid),
                Some(tree) => tree.get(&pid).cloned().unwrap_or_default(),
            };
            for child in children {
                add(child, &mut found, &mut seen);
            }
        }
        if found.len() == before {
            break;
        }
    }
    found
}

/// Kills everything that comes to this process as a child, but for these. Blocks; gives up on what
/// can't be killed after some seconds.
pub fn empty(except: &HashSet<i32>) {
    let own = std::process::id() as i32;
    let mut progress = Instant::now();
    let mut killed = HashSet::new();
    while progress.elapsed() < PATIENCE {
        let mut left = Vec::new();
        let mut may_change = sys::is_starting();
        for pid in list::children(own).into_iter().filter(|pid| !except.contains(pid)) {
            match sys::wait_for(pid, false) {
                // Its own children came to us, perhaps after the list was made.
                Ok(Some(_)) => {
                    may_change = true;
                    killed.remove(&pid);
                    progress = Instant::now();
                }
                // Nobody may kill another user's.
                Ok(None) if sys::kill(pid, 0) != Err(Errno::EPERM) => left.push(pid),
                _ => {}
            }
        }
        if left.is_empty() && !may_change {
            return;
        }
        let new: Vec<i32> = left.into_iter().filter(|pid| !killed.contains(pid)).collect();
        if new.is_empty() {
            std::thread::sleep(PAUSE);
        } else {
            killed.extend(stop_and_kill(&new));
            progress = Instant::now();
        }
    }
}

/// Kills everything that carries a key's mark, where orphans don't come to us. Blocks.
pub fn empty_marked(marker: &Marker) {
    let mut scanner = Scanner::new(marker.clone());
    let own = std::process::id() as i32;
    let mut progress = Instant::now();
    let mut clean = false;
    let mut killed = HashSet::new();
    while progress.elapsed() < PATIENCE {
        let all = scanner.scan().into_iter();
        let found = all.filter(|(process, mark)| mark.is_some() && process.pid != own);
        let found: Vec<Process> = found.map(|(process, _)| process).collect();
        let pids: Vec<i32> = found.iter().map(|process| process.pid).collect();
        stop_and_kill(&pids);
        let was_clean = std::mem::replace(&mut clean, pids.is_empty() && !sys::is_starting());
        if was_clean && clean {
            return; // twice nothing
        }
        let new = found.iter().filter(|process| killed.insert((process.pid, process.started)));
        if new.count() > 0 || was_clean != clean {
            progress = Instant::now();
        }
        std::thread::sleep(PAUSE);
    }
}
