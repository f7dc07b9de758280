//! Cleanup after a dead shell, performed by the other of its two processes.
//!
//! All processes are killed at once, except clients of a batch system or of another machine. A
//! killed client would leave its remote work running, or a job in the queue forever. The standard
//! input of clients ends with the shell, and they exit soon afterwards.

use std::collections::HashSet;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::super::marks::{self, Mark, Marker};
use super::kill_tree;
use super::list::{self, Marked, Process};
use super::scanner::{Scan, Scanner};
use ftsh_sys as sys;

/// Highest byte of the numbers of scopes with clients. The machine numbers its scopes from 1.
pub const CLIENTS: u64 = 0x5a << 56;
const HIGHEST: u64 = 0xff << 56;

/// Time for clients to exit by themselves. Remote branches are killed earlier, unless configured
/// otherwise.
const PATIENCE: Duration = Duration::from_secs(35);
/// Time for clients to exit after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(5);
/// Time limit for repeating a failed scan.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// Method to find the processes of a dead shell.
pub enum Remains {
    /// Children of this subreaper, except these.
    Children(HashSet<i32>),
    /// These commands and all processes tagged by the run, without a subreaper.
    Marked(Marker, Vec<i32>),
}

impl Remains {
    /// Kills all processes except clients. Blocks; gives up on processes that cannot be killed
    /// after some seconds.
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

    /// Waits for the end of clients, whose standard input must be closed, and kills those still
    /// alive. Blocks.
    pub fn outlast_clients(&self) {
        let clients = self.clients();
        if !clients.is_empty() {
            outlast(clients, || self.clients());
        }
        // Also kills orphans of clients that ended meanwhile.
        match self {
            Self::Children(except) => kill_tree::empty(except),
            Self::Marked(marker, _) => empty_marked(marker, |_| true),
        }
    }

    /// Returns the clients. A failed scan is repeated until `READ_TIMEOUT`: a missed client would
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

    /// Returns the clients, and true if the list of processes was read.
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

/// Returns the processes whose tag is accepted, and true if no further process may exist.
fn marked(scanner: &mut Scanner, is_meant: impl Fn(&Mark) -> bool) -> (Vec<Process>, bool) {
    let Scan { processes, is_certain, .. } = scanner.scan();
    (meant(processes, is_meant).collect(), is_certain)
}

/// Returns the processes whose tag is accepted, except this process.
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

/// Waits until no client is left. Sends SIGTERM at once to clients that only wait, to the others
/// after `PATIENCE`.
fn outlast(clients: HashSet<i32>, mut find: impl FnMut() -> HashSet<i32>) {
    // A client without a child process has started nothing: it may wait in a queue for long.
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

/// Waits until a condition holds, at most for `limit`.
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

    /// Starts a process with a tag and waits until the tag can be read.
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
            // With a subreaper, the scan may have reaped the process already.
            let _ = other.wait();
            assert!(client.try_wait().expect("a child").is_none(), "the client was killed");
            client.kill().expect("a child");
            client.wait().expect("a child");
        }
    }
}
