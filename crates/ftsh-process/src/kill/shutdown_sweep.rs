//! Cleanup after a dead shell, performed by the other of its two processes.
//!
//! All processes are killed at once, except clients of a batch system or of another machine. A
//! killed client would leave its remote work running, or a job in the queue forever. The standard
//! input of clients ends with the shell, and they exit soon afterwards.

use std::collections::HashSet;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::kill_tree::{has_reaped_all, kill_all_except, kill_found, stop_and_kill};
use crate::procs::{ProcDir, ProcessEntry, ProcessScanner, Scan, TagLookup, has_proc};
use crate::tag::{ScopeTag, Tagger};
use ftsh_sys as sys;

/// Highest byte of the numbers of scopes with clients. The machine numbers its scopes from 1.
pub const CLIENTS: u64 = 0x5a << 56;
const HIGHEST: u64 = 0xff << 56;

/// Time for clients to exit by themselves: more than the 30 s that a kill timeout has by default.
/// Remote branches are killed earlier, unless configured otherwise.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(35);
/// Time for clients to exit after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(5);
/// Time limit for repeating a failed scan.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// Method to find the processes of a dead shell.
pub(crate) enum ShutdownSweep {
    /// Children of this subreaper, except these.
    Children(HashSet<i32>),
    /// These commands and all processes tagged by the run, without a subreaper.
    Tagged(Tagger, Vec<i32>),
}

impl ShutdownSweep {
    /// Kills all processes except clients. Blocks. Returns the processes that cannot be killed,
    /// which it gives up on after a while.
    pub(crate) fn kill(&self) -> HashSet<i32> {
        let clients = self.clients();
        match self {
            Self::Children(except) => kill_all_except(&(except | &clients)),
            Self::Tagged(tagger, commands) => {
                let commands = commands.iter().copied().filter(|pid| !clients.contains(pid));
                stop_and_kill(&commands.collect::<Vec<_>>());
                kill_tagged(tagger, &HashSet::new(), |tag| !is_client(tag))
            }
        }
    }

    /// Waits for the end of clients, whose standard input must be closed, and kills those still
    /// alive. Blocks. `given_up` cannot be killed.
    pub(crate) fn await_clients(&self, given_up: &HashSet<i32>) {
        let clients = self.clients();
        if !clients.is_empty() {
            await_end(clients, || self.clients());
        }
        // Also kills orphans of clients that ended meanwhile.
        match self {
            Self::Children(except) => kill_all_except(&(except | given_up)),
            Self::Tagged(tagger, _) => kill_tagged(tagger, given_up, |_| true),
        };
    }

    /// Returns the clients. A failed scan is repeated until `READ_TIMEOUT`: a missed client would
    /// be killed.
    fn clients(&self) -> HashSet<i32> {
        let start = Instant::now();
        loop {
            let (clients, is_listed) = self.look();
            if is_listed || start.elapsed() >= READ_TIMEOUT || !has_proc() {
                return clients;
            }
            sleep(PAUSE);
        }
    }

    /// Returns the clients, and true if the list of processes was read.
    fn look(&self) -> (HashSet<i32>, bool) {
        match self {
            Self::Children(except) => {
                let Ok(mut pids) = ProcDir(std::process::id() as i32).children() else {
                    return (HashSet::new(), has_reaped_all(except));
                };
                pids.retain(|pid| !except.contains(pid));
                let mut is_listed = true;
                pids.retain(|&pid| {
                    let tagged = ProcDir(pid).tag_by(ScopeTag::innermost);
                    is_listed &= tagged != TagLookup::Unreadable;
                    tagged.ours().as_ref().is_some_and(is_client)
                        // Reaps an ended client, which would otherwise count as alive.
                        && !matches!(sys::wait_for(pid, false), Ok(Some(_)))
                });
                (pids.into_iter().collect(), is_listed)
            }
            Self::Tagged(tagger, _) => {
                let scan = ProcessScanner::new(tagger.clone()).scan();
                let clients = meant(scan.processes, is_client);
                (clients.map(|process| process.pid).collect(), scan.is_listed)
            }
        }
    }
}

fn is_client(tag: &ScopeTag) -> bool {
    tag.scope.0 & HIGHEST == CLIENTS && tag.depth == 0
}

fn kill_tagged(
    tagger: &Tagger,
    except: &HashSet<i32>,
    is_meant: impl Fn(&ScopeTag) -> bool,
) -> HashSet<i32> {
    let mut scanner = ProcessScanner::new(tagger.clone());
    kill_found(except, || tagged(&mut scanner, &is_meant))
}

/// Returns the processes whose tag is accepted, and true if no further process may exist.
fn tagged(
    scanner: &mut ProcessScanner,
    is_meant: impl Fn(&ScopeTag) -> bool,
) -> (Vec<ProcessEntry>, bool) {
    let Scan { processes, is_certain, .. } = scanner.scan();
    (meant(processes, is_meant).collect(), is_certain)
}

/// Returns the processes whose tag is accepted, except this process.
fn meant(
    processes: Vec<(ProcessEntry, Option<ScopeTag>)>,
    is_meant: impl Fn(&ScopeTag) -> bool,
) -> impl Iterator<Item = ProcessEntry> {
    let own = std::process::id() as i32;
    let is_one = move |(process, tag): &(ProcessEntry, Option<ScopeTag>)| {
        process.pid != own && tag.as_ref().is_some_and(&is_meant)
    };
    processes.into_iter().filter(is_one).map(|(process, _)| process)
}

/// Waits until no client is left. Sends SIGTERM at once to clients that only wait, to the others
/// after `CLIENT_TIMEOUT`.
fn await_end(clients: HashSet<i32>, mut find: impl FnMut() -> HashSet<i32>) {
    // A client without a child process has started nothing: it may wait in a queue for long.
    let (idle, begun): (HashSet<i32>, HashSet<i32>) =
        clients.into_iter().partition(|&pid| ProcDir(pid).children().is_ok_and(|it| it.is_empty()));
    send_sigterm(&idle);
    until(CLIENT_TIMEOUT, || find().is_disjoint(&begun));
    send_sigterm(&find());
    until(GRACE, || find().is_empty());
}

fn send_sigterm(clients: &HashSet<i32>) {
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

    use crate::few_descriptors::{is_alone, none_for};
    use ftsh_machine::effect::ScopeId;

    use super::*;

    /// Starts a process with a tag and waits until the tag can be read.
    fn start(tagger: &Tagger, scope: u64) -> Child {
        let child = Command::new("sleep")
            .arg("1000")
            .env(ScopeTag::VARIABLE, tagger.value(ScopeId(scope), "").to_string())
            .stdin(Stdio::null())
            .spawn()
            .expect("sleep runs");
        while ProcDir(child.id() as i32).tag(tagger).is_open() {
            sleep(PAUSE);
        }
        child
    }

    #[test]
    fn unreadable_clients_are_not_killed() {
        const NAME: &str = concat!(module_path!(), "::unreadable_clients_are_not_killed");
        if !is_alone(NAME) {
            return;
        }
        let tagger = Tagger::new().expect("random numbers");
        for adopts in [true, false] {
            let (mut client, mut other) = (start(&tagger, CLIENTS | 1), start(&tagger, 1));
            let shutdown_sweep = if adopts {
                ShutdownSweep::Children(HashSet::new())
            } else {
                ShutdownSweep::Tagged(tagger.clone(), Vec::new())
            };
            none_for(Duration::from_millis(200), || drop(shutdown_sweep.kill()));
            // With a subreaper, the scan may have reaped the process already.
            let _ = other.wait();
            assert!(client.try_wait().expect("a child").is_none(), "the client was killed");
            client.kill().expect("a child");
            client.wait().expect("a child");
        }
    }
}
