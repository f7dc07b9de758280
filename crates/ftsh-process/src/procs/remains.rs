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
use super::list::{self, Marked, Process};
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
/// Time for which a look that fails is repeated.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

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

    /// Returns the clients. A look that fails is repeated for a while: a client that it missed would
    /// be killed.
    fn clients(&self) -> HashSet<i32> {
        let start = Instant::now();
        loop {
            let (clients, is_listed) = self.look();
            if is_listed || start.elapsed() >= READ_TIMEOUT || !list::has_proc() {
                return clients;
            }
            sleep(PAUSE);
        }
    }

    /// Returns the clients, and true if the system could read which processes are.
    fn look(&self) -> (HashSet<i32>, bool) {
        match self {
            Self::Children(except) => {
                let Ok(mut pids) = list::children(std::process::id() as i32) else {
                    return (HashSet::new(), false);
                };
                pids.retain(|pid| !except.contains(pid));
                let mut is_listed = true;
                pids.retain(|&pid| {
                    let marked = list::mark_by(pid, marks::innermost);
                    is_listed &= marked != Marked::Unreadable;
                    marked.ours().as_ref().is_some_and(is_client)
                        && !matches!(sys::wait_for(pid, false), Ok(Some(_)))
                });
                (pids.into_iter().collect(), is_listed)
            }
            Self::Marked(marker, _) => {
                let scan = Scanner::new(marker.clone()).scan();
                let clients = meant(scan.processes, is_client);
                (clients.map(|process| process.pid).collect(), scan.is_listed)
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
    let Scan { processes, is_certain, .. } = scanner.scan();
    (meant(processes, is_meant).collect(), is_certain)
}

/// Returns the processes with such a mark, but for this process.
fn meant(
    processes: Vec<(Process, Option<Mark>)>,
    is_meant: impl Fn(&Mark) -> bool,
) -> impl Iterator<Item = Process> {
    let own = std::process::id() as i32;
    let is_one = move |(process, mark): &(Process, Option<Mark>)| {
        process.pid != own && mark.as_ref().is_some_and(&is_meant)
    };
    processes.into_iter().filter(is_one).map(|(process, _)| process)
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

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use ftsh_machine::effect::ScopeId;

    use super::*;
    use crate::procs::few_descriptors;

    /// A process that carries this mark once the mark can be read.
    fn start(marker: &Marker, scope: u64) -> Child {
        let child = Command::new("sleep")
            .arg("1000")
            .env(marks::VARIABLE, marker.value(ScopeId(scope), "").to_string())
            .stdin(Stdio::null())
            .spawn()
            .expect("sleep runs");
        while list::mark(child.id() as i32, marker).is_open() {
            sleep(PAUSE);
        }
        child
    }

    #[test]
    fn clients_that_cannot_be_read_are_not_killed() {
        const NAME: &str = concat!(module_path!(), "::clients_that_cannot_be_read_are_not_killed");
        if !few_descriptors::is_alone(NAME) {
            return;
        }
        let marker = Marker::new().expect("random numbers");
        for adopts in [true, false] {
            let (mut client, mut other) = (start(&marker, CLIENTS | 1), start(&marker, 1));
            let remains = if adopts {
                Remains::Children(HashSet::new())
            } else {
                Remains::Marked(marker.clone(), Vec::new())
            };
            few_descriptors::none_for(Duration::from_millis(200), || remains.kill());
            // In the first case the look has waited for it already.
            let _ = other.wait();
            assert!(client.try_wait().expect("a child").is_none(), "the client was killed");
            client.kill().expect("a child");
            client.wait().expect("a child");
        }
    }
}
