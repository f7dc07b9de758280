//! Network of one test.

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use nix::sched::{CloneFlags, setns, unshare};

/// Address that means nothing elsewhere. The C library takes a network whose only address is
/// 127.0.0.1 for none, and resolves no name in it.
const ADDRESS: &str = "192.0.2.1/32";

/// Script that kills the other processes of its network when its input ends, until there are none.
/// A zombie has no network.
const KEEPER: &str = "cat
while :; do
    left=
    for process in /proc/[0-9]*; do
        id=${process#/proc/}
        test $id != $$ && test $process/ns/net -ef /proc/$$/ns/net && kill -9 $id && left=yes
    done
    test $left || exit
done";

/// Network with all ports free and nothing but the loopback interface, for this thread and the
/// processes that the thread starts.
///
/// The processes are killed when the value is dropped or this process is killed. The network is
/// gone with them.
pub(crate) struct Network {
    others: File,
    keeper: Child,
    /// Other threads are not in the network.
    _thread: PhantomData<*const ()>,
}

impl Network {
    /// Enters a new network.
    pub(crate) fn enter() -> io::Result<Self> {
        let others = File::open("/proc/thread-self/ns/net")?;
        unshare(CloneFlags::CLONE_NEWNET)?;
        // An interrupting key reaches the tests alone.
        let mut keeper = Command::new("sh");
        keeper.args(["-c", KEEPER]).process_group(0).stdin(Stdio::piped()).stdout(Stdio::null());
        let keeper = keeper.stderr(Stdio::null()).spawn()?;
        let network = Self { others, keeper, _thread: PhantomData };
        for words in [&["link", "set", "lo", "up"][..], &["address", "add", ADDRESS, "dev", "lo"]] {
            let status = Command::new("ip").args(words).stdin(Stdio::null()).status()?;
            if !status.success() {
                return Err(io::Error::other(format!("`ip {}` failed", words.join(" "))));
            }
        }
        Ok(network)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // The keeper would kill the tests if their main thread stayed in the network.
        if setns(&self.others, CloneFlags::CLONE_NEWNET).is_ok() {
            drop(self.keeper.stdin.take());
            let _ = self.keeper.wait();
        }
    }
}

#[test]
fn the_processes_of_a_network_end_with_it() {
    use std::os::unix::process::ExitStatusExt;

    let Ok(network) = Network::enter() else {
        return super::skipped::skipped("root, ip and a namespace of the network");
    };
    let mut process = Command::new("sleep").arg("60").spawn().expect("a process");
    drop(network);
    assert_eq!(process.wait().expect("an end").signal(), Some(libc::SIGKILL));
}
