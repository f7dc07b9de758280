//! Slurm with four nodes on this machine, for one test.
//!
//! Each node is a PID namespace. When its first process is killed, all other processes are killed
//! too, as after the crash of a machine. All daemons end with the thread that started them. The
//! thread and what it starts have a network of their own.

use std::fmt::Write;
use std::fs::{self, File, Permissions};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::{Pid, Uid};
use tempfile::TempDir;

use super::network::Network;
use super::processes::Survivor;
use super::skipped::skipped;
use super::{FTSH, Ftsh};

/// Number of nodes.
pub(crate) const NODES: usize = 4;
/// Time limit for a change of state. Slurm looks every 30 s for jobs whose `srun` is gone, and ends
/// them after another 20 s ([`Slurm::end_inactive_jobs`]).
const TIMEOUT: Duration = Duration::from_secs(120);
/// Port of the controller, in a network that has no other user. Ports of the nodes follow.
pub(crate) const FIRST_PORT: u16 = 20_000;
/// Command that runs a program as the first process of a PID namespace, with which all other
/// processes end.
const SPACE: [&str; 5] = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
/// Daemons of a node.
const OF_THE_NODE: [&str; 2] = ["slurmd", "slurmstepd"];

/// Running Slurm.
pub(crate) struct Slurm {
    directory: TempDir,
    munged: Daemon,
    controller: Option<Daemon>,
    nodes: Vec<Option<Daemon>>,
    _network: Network,
}

impl Slurm {
    /// Starts Slurm, or prints the reason and returns `None` if Slurm cannot run.
    pub(crate) fn start() -> Option<Self> {
        Self::with(|_| None)
    }

    /// Starts Slurm with nodes, counted from 1, that have this program in place of the shell.
    pub(crate) fn with(instead: impl Fn(usize) -> Option<&'static str>) -> Option<Self> {
        let network = match network() {
            Ok(network) => network,
            Err(needs) => {
                skipped(&needs);
                return None;
            }
        };
        let directory = TempDir::new().expect("a directory");
        let place = directory.path();
        write_key(place);
        fs::create_dir(place.join("state")).expect("a directory");
        // On a real cluster, the head cannot find processes on nodes by their marks.
        let prolog = place.join("prolog");
        fs::write(&prolog, "#!/bin/sh\necho unset FTSH_SCOPE\n").expect("a file");
        fs::set_permissions(prolog, Permissions::from_mode(0o755)).expect("a program");
        fs::write(place.join("slurm.conf"), configuration(place)).expect("a file");
        let socket = format!("--socket={}/munge.sock", place.display());
        let file = |name: &str| format!("--{name}-file={}", place.join(name).display());
        let munged = Daemon::start(
            place,
            &["munged", "--foreground", "--force", "--num-threads=2", &socket],
            &["key", "pid", "log", "seed"].map(file),
        );
        let socket = place.join("munge.sock");
        let nodes = Vec::new();
        let mut slurm = Self { directory, munged, controller: None, nodes, _network: network };
        slurm.wait("munged", || socket.exists());
        slurm.start_controller();
        // Commands of Slurm take long to notice a controller that does not listen.
        let listens = || TcpStream::connect((Ipv4Addr::LOCALHOST, FIRST_PORT)).is_ok();
        slurm.wait("the controller", listens);
        for number in 1..=NODES {
            slurm.nodes.push(None);
            slurm.start_node(number, instead(number));
        }
        slurm.wait_for_nodes(NODES);
        Some(slurm)
    }

    /// Creates a run of a script that uses this Slurm.
    pub(crate) fn script(&self, text: &str) -> Ftsh {
        Ftsh::script(text)
            .env("SLURM_CONF", self.configuration())
            .env("PATH", std::env::var_os("PATH").expect("a path"))
            .limit(Duration::from_secs(120))
            .bound()
    }

    /// Starts the controller.
    pub(crate) fn start_controller(&mut self) {
        let place = self.directory.path();
        self.controller = Some(Daemon::start(place, &["slurmctld", "-D"], &[]));
    }

    /// Starts the controller without its previous state.
    pub(crate) fn start_empty_controller(&mut self) {
        let place = self.directory.path();
        self.controller = Some(Daemon::start(place, &["slurmctld", "-D", "-c"], &[]));
    }

    /// Closes the partition to new jobs, until the controller starts again.
    pub(crate) fn close(&self) {
        self.ask(&["scontrol", "update", "PartitionName=p", "State=DOWN"]);
    }

    /// Kills the controller.
    pub(crate) fn kill_controller(&mut self) {
        self.controller = None;
    }

    /// Ends the controller as an administrator does; the controller saves its state.
    pub(crate) fn stop_controller(&mut self) {
        if let Some(mut controller) = self.controller.take() {
            controller.stop();
        }
    }

    /// Makes the next controller end jobs whose `srun` does not answer for this long.
    pub(crate) fn end_inactive_jobs(&self, limit: Duration) {
        let file = self.directory.path().join("slurm.conf");
        let text = fs::read_to_string(&file).expect("a file");
        let setting = format!("InactiveLimit={}", limit.as_secs());
        assert!(text.contains("InactiveLimit=0"), "{text}");
        fs::write(file, text.replace("InactiveLimit=0", &setting)).expect("a file");
    }

    /// Starts a node, with a program in place of the shell.
    pub(crate) fn start_node(&mut self, number: usize, instead: Option<&str>) {
        let mount = instead.map(|instead| format!("mount --bind {instead} {FTSH} && "));
        let line = format!("{}exec slurmd -D -N node{number}", mount.unwrap_or_default());
        let daemon = Daemon::start(self.directory.path(), &["sh", "-c", &line], &[]);
        self.nodes[number - 1] = Some(daemon);
    }

    /// Kills a node with all of its processes.
    pub(crate) fn kill_node(&mut self, number: usize) {
        self.nodes[number - 1] = None;
    }

    /// Cuts a node off: its daemons stop, and other processes continue.
    pub(crate) fn cut_off(&self, number: usize) {
        for process in self.processes(number).iter().filter(|it| is_slurm(it)) {
            kill(Pid::from_raw(process.pid), Signal::SIGSTOP).expect("a process");
        }
    }

    /// Returns the processes on a node that do not belong to Slurm.
    pub(crate) fn running_on(&self, number: usize) -> Vec<Survivor> {
        let mut processes = self.processes(number);
        processes.retain(|it| !is_slurm(it));
        processes
    }

    /// Returns the processes on all live nodes that do not belong to Slurm.
    pub(crate) fn running(&self) -> Vec<Survivor> {
        (1..=NODES).flat_map(|number| self.running_on(number)).collect()
    }

    /// Checks that no job is left after Slurm's cleanup, and no process on any node.
    pub(crate) fn nothing_left(&self) {
        let running = self.running();
        assert!(running.is_empty(), "left running on nodes: {running:?}");
        let why = || format!("jobs are left in the queue:\n{}{}", self.jobs(), self.state());
        self.wait_or(why, || self.jobs().is_empty());
    }

    /// Returns the jobs in the queue, one per line.
    pub(crate) fn jobs(&self) -> String {
        self.ask(&["squeue", "--noheader"])
    }

    /// Waits until this many nodes are usable.
    pub(crate) fn wait_for_nodes(&self, count: usize) {
        let idle = ["sinfo", "--noheader", "--states=idle,alloc,mix", "--format=%D"];
        self.wait_or(
            || self.state(),
            || {
                let answer = self.ask(&idle);
                let numbers =
                    answer.split_whitespace().filter_map(|word| word.parse::<usize>().ok());
                numbers.sum::<usize>() == count
            },
        );
    }

    /// Waits until a condition holds.
    pub(crate) fn wait(&self, what: &str, holds: impl FnMut() -> bool) {
        self.wait_or(|| what.into(), holds);
    }

    /// Waits until a condition holds. Fails after the time limit, and as soon as a daemon has ended.
    fn wait_or(&self, why: impl Fn() -> String, mut holds: impl FnMut() -> bool) {
        let nodes = self.nodes.iter().flatten();
        let daemons: Vec<_> = nodes.chain(&self.controller).chain([&self.munged]).collect();
        wait_or(why, || {
            let ended: Vec<_> = daemons.iter().filter_map(|daemon| daemon.ended()).collect();
            assert!(ended.is_empty(), "{}\n{}", ended.join("\n"), self.errors());
            holds()
        });
    }

    /// Returns the state of the nodes, and the errors that the daemons have logged.
    fn state(&self) -> String {
        format!("{}{}", self.ask(&["sinfo", "--long", "--Node"]), self.errors())
    }

    /// Returns the errors in the logs of the daemons.
    fn errors(&self) -> String {
        let nodes = (1..=NODES).map(|number| format!("node{number}.log"));
        let mut errors = String::new();
        for name in nodes.chain(["slurmctld.log".into(), "log".into()]) {
            let log = fs::read_to_string(self.directory.path().join(&name)).unwrap_or_default();
            for line in log.lines().filter(|line| line.contains("error") || name == "log") {
                let _ = writeln!(errors, "{name}: {line}");
            }
        }
        errors
    }

    /// Returns the output of a command of Slurm.
    pub(crate) fn ask(&self, words: &[&str]) -> String {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).env("SLURM_CONF", self.configuration());
        let output = command.output().expect("a command of Slurm's");
        String::from_utf8_lossy(&output.stdout).into()
    }

    fn configuration(&self) -> PathBuf {
        self.directory.path().join("slurm.conf")
    }

    fn processes(&self, number: usize) -> Vec<Survivor> {
        let space = |pid: i32| fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
        let first = self.nodes[number - 1].as_ref().and_then(Daemon::first);
        let Some(own) = first.and_then(space) else { return Vec::new() };
        let entries = fs::read_dir("/proc").expect("processes").flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let mut processes = Vec::new();
        for pid in pids.filter(|pid| space(*pid).as_ref() == Some(&own)) {
            let read = |file| fs::read_to_string(format!("/proc/{pid}/{file}"));
            let Ok(command) = read("comm") else { continue };
            // A zombie has no memory.
            if read("statm").is_ok_and(|memory| !memory.starts_with("0 ")) {
                processes.push(Survivor { pid, command: command.trim_end().into() });
            }
        }
        processes
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        self.nodes.clear();
        self.controller = None;
        self.munged.end();
    }
}

fn is_slurm(process: &Survivor) -> bool {
    OF_THE_NODE.iter().any(|name| process.command.starts_with(name))
}

/// Waits until a condition holds.
pub(crate) fn wait(what: &str, holds: impl FnMut() -> bool) {
    wait_or(|| what.into(), holds);
}

/// Waits until a condition holds, and fails with this explanation after the time limit.
pub(crate) fn wait_or(why: impl Fn() -> String, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < TIMEOUT, "not within {TIMEOUT:?}: {}", why());
        thread::sleep(Duration::from_millis(20));
    }
}

/// Enters a network for Slurm, or returns what Slurm needs and this machine or this user lacks.
fn network() -> Result<Network, String> {
    if !Uid::effective().is_root() {
        return Err("root, who starts Slurm".into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = |name: &str| std::env::split_paths(&path).any(|it| it.join(name).exists());
    let needed = ["slurmd", "slurmctld", "munged", "srun", "squeue", "unshare", "ip"];
    if let Some(name) = needed.into_iter().find(|name| !is_there(name)) {
        return Err(name.into());
    }
    let tried = Command::new(SPACE[0]).args(&SPACE[1..]).arg("true").stderr(Stdio::null()).status();
    match tried {
        Ok(status) if status.success() => {}
        _ => return Err("a namespace of processes for each node".into()),
    }
    Network::enter().map_err(|error| format!("a namespace of the network: {error}"))
}

fn write_key(place: &Path) {
    use std::io::{Read, Write};
    let mut key = [0; 1024];
    let mut chance = File::open("/dev/urandom").expect("random numbers");
    chance.read_exact(&mut key).expect("random numbers");
    let mut file =
        fs::OpenOptions::new().create_new(true).write(true).mode(0o600).open(place.join("key"));
    file.as_mut().expect("a file").write_all(&key).expect("a key");
}

fn configuration(place: &Path) -> String {
    let place = place.display();
    let mut text = format!(
        "ClusterName=test\n\
         SlurmctldHost=localhost(127.0.0.1)\n\
         SlurmctldPort={FIRST_PORT}\n\
         SlurmUser=root\n\
         SlurmdUser=root\n\
         AuthType=auth/munge\n\
         AuthInfo=socket={place}/munge.sock\n\
         StateSaveLocation={place}/state\n\
         SlurmdSpoolDir={place}/spool.%n\n\
         SlurmctldPidFile={place}/slurmctld.pid\n\
         SlurmdPidFile={place}/%n.pid\n\
         SlurmctldLogFile={place}/slurmctld.log\n\
         SlurmdLogFile={place}/%n.log\n\
         SwitchType=switch/none\n\
         MpiDefault=none\n\
         ProctrackType=proctrack/linuxproc\n\
         TaskPlugin=task/none\n\
         TaskProlog={place}/prolog\n\
         JobAcctGatherType=jobacct_gather/none\n\
         SelectType=select/cons_tres\n\
         SelectTypeParameters=CR_Core\n\
         SchedulerParameters=sched_interval=1,sched_min_interval=0,bf_interval=1\n\
         SlurmdParameters=config_overrides\n\
         ReturnToService=2\n\
         SlurmctldTimeout=10\n\
         SlurmdTimeout=10\n\
         InactiveLimit=0\n\
         KillWait=2\n\
         PropagateResourceLimits=NONE\n"
    );
    for (number, port) in (1..=NODES).zip(FIRST_PORT + 1..) {
        let node = format!("NodeName=node{number} NodeHostname=localhost NodeAddr=127.0.0.1");
        let _ = writeln!(text, "{node} Port={port} CPUs=4 RealMemory=1000");
    }
    text + "PartitionName=p Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO\n"
}

/// Process that ends with the thread that started it, with all descendants.
struct Daemon {
    child: Child,
    /// Command, for people.
    command: String,
}

impl Daemon {
    fn start(place: &Path, words: &[&str], more: &[String]) -> Self {
        let mut command = super::run::command(SPACE[0]);
        command
            .args(&SPACE[1..])
            .args(words)
            .args(more)
            .env("SLURM_CONF", place.join("slurm.conf"));
        let log =
            File::options().create(true).append(true).open(place.join("log")).expect("a file");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        // SAFETY: a system call without memory.
        unsafe { command.pre_exec(|| Ok(set_pdeathsig(Signal::SIGKILL)?)) };
        Self { child: command.spawn().expect("a daemon"), command: words.join(" ") }
    }

    /// Returns the end of the daemon for people, if it has ended.
    fn ended(&self) -> Option<String> {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        let status = waitid(Id::Pid(Pid::from_raw(self.child.id() as i32)), flags);
        match status.expect("a child") {
            WaitStatus::StillAlive => None,
            ended => Some(format!("`{}` has ended: {ended:?}", self.command)),
        }
    }

    /// Returns the first process of the namespace.
    fn first(&self) -> Option<i32> {
        let pid = self.child.id();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
        children.split_whitespace().next()?.parse().ok()
    }

    fn stop(&mut self) {
        if let Some(first) = self.first() {
            kill(Pid::from_raw(first), Signal::SIGTERM).expect("a process");
            wait("the end of a daemon", || self.ended().is_some());
        }
    }

    fn end(&mut self) {
        // When this has been waited for, all in its space has been killed, too.
        match self.first() {
            Some(first) => drop(kill(Pid::from_raw(first), Signal::SIGKILL)),
            None => drop(self.child.kill()),
        }
        let _ = self.child.wait();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.end();
    }
}
