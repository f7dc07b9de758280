//! What a shell that has died leaves behind, as the other of its two processes finds it.
//!
//! All is killed at once, but for clients: those of a batch system or of another machine. Killed, they would leave
//! there what they have begun, and a place taken in the batch system for good. Their input ends with the
//! shell, and they by themselves soon after.

use std::collections::HashSet;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::super::marks::{self, Mark, Marker};
use super::kill_tree;
use super::list::{self, Process};
use super::scanner::{Scan, Scanner};
use ftsh_sys as sys;

/// Scopes hold clients whose number's highest byte is this one's. The machine counts from 1.
pub const CLIENTS: u64 = 0x5a << 56;
const HIGHEST: u64 = 0xff << 56;

/// What obeys nothing is killed elsewhere before this time has passed, unless another one was asked for.
const PATIENCE: Duration = Duration::from_secs(35);
/// How long clients have that are asked to end.
const GRACE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(5);

/// What is left.
pub enum Remains {
    /// The children of this process, to which orphans come, but for these.
    Children(HashSet<i32>),
    /// These commands and what carries a mark, where orphans don't come to us.
    Marked(Marker, Vec<i32>),
}

impl Remains {
    /// Kills all but clients. Blocks; gives up on what can't be killed after some seconds.
    pub fn kill(&self) {
        match self {
            Self::Children(except) => kill_tree::empty(&(except | &self.clients())),
            Self::Marked(marker, commands) => {
                let clients = self.clients();
                let commands = commands.iter().copied().filter(|pid| !clients.contains(pid));
                kill_tree::stop_and_kill(&commands.collect::<Vec<_>>());
                empty_marked(marker, |mark| !is_client(mark));
            }
        }
    }

    /// Waits for clients, whose input has to be over; kills those that don't end. Blocks.
    pub fn outlast_clients(&self) {
        let clients = self.clients();
        if !clients.is_empty() {
            outlast(clients, || self.clients());
        }
        // Also what has come to us from clients that have ended meanwhile.
        match self {
            Self::Children(except) => kill_tree::empty(except),
            Self::Marked(marker, _) => empty_marked(marker, |_| true),
        }
    }

    fn clients(&self) -> HashSet<i32> {
        match self {
            Self::Children(except) => {
                let children = list::children(std::process::id() as i32).unwrap_or_default();
                let lives = |pid: &i32| !matches!(sys::wait_for(*pid, false), Ok(Some(_)));
                let is_client = |pid: &i32| {
                    let marked = list::mark_by(*pid, marks::innermost);
                    marked.ours().as_ref().is_some_and(is_client)
                };
                let others = children.into_iter().filter(|pid| !except.contains(pid));
                others.filter(|pid| is_client(pid) && lives(pid)).collect()
            }
            Self::Marked(marker, _) => {
                let found = marked(&mut Scanner::new(marker.clone()), is_client).0.into_iter();
                found.map(|process| process.pid).collect()
            }
        }
    }
}

fn is_client(mark: &Mark) -> bool {
    mark.scope.0 & HIGHEST == CLIENTS && mark.depth == 0
}

fn empty_marked(marker: &Marker, is_meant: impl Fn(&Mark) -> bool) {
    let mut scanner = Scanner::new(marker.clone());
    kill_tree::empty_found(|| marked(&mut scanner, &is_meant));
}

/// The processes with such a mark, and whether it is certain that there are no others.
fn marked(scanner: &mut Scanner, is_meant: impl Fn(&Mark) -> bool) -> (Vec<Process>, bool) {
    let own = std::process::id() as i32;
    let Scan { processes, is_certain, .. } = scanner.scan();
    let is_one = |(process, mark): &(Process, Option<Mark>)| {
        process.pid != own && mark.as_ref().is_some_and(&is_meant)
    };
    let found = processes.into_iter().filter(is_one).map(|(process, _)| process);
    (found.collect(), is_certain)
}

/// Waits until none is left, and asks those to end that wait themselves.
fn outlast(clients: HashSet<i32>, mut find: impl FnMut() -> HashSet<i32>) {
    // What has no process of its own at work has begun nothing: it may be in a queue, for long.
    let (idle, begun): (HashSet<i32>, HashSet<i32>) =
        clients.into_iter().partition(|&pid| list::children(pid).is_ok_and(|it| it.is_empty()));
    ask(&idle);
    until(PATIENCE, || find().is_disjoint(&begun));
    ask(&find());
    until(GRACE, || find().is_empty());
}

fn ask(clients: &HashSet<i32>) {
    for &pid in clients {
        let _ = sys::kill(pid, libc::SIGTERM);
    }
}

/// Waits for this, but no longer than so.
fn until(limit: Duration, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() && start.elapsed() < limit {
        sleep(PAUSE);
    }
}
