//! Real `sshd` on a port of this machine, with keys of its own, for one test.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::Uid;
use tempfile::TempDir;

use super::Ftsh;
use super::processes::MARK;
use super::run;
use super::skipped::skipped;

/// Command that mounts the empty directory required by root's `sshd`, invisibly to others, and then
/// runs its arguments.
const WITH_EMPTY: &str = "mount -t tmpfs none /run && mkdir -m 755 /run/sshd && exec \"$0\" \"$@\"";
/// Directories of programs that the `PATH` of users may lack.
const SYSTEM: [&str; 3] = ["/usr/sbin", "/usr/local/sbin", "/sbin"];
/// Time limit for the start of the server.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Server, which ends with the test, or with the thread that runs the test.
pub(crate) struct Sshd {
    directory: TempDir,
    child: Child,
}

impl Sshd {
    /// Starts a server with these additional lines in its configuration, or prints the reason and
    /// returns `None` without an `sshd`.
    pub(crate) fn start(more: &str) -> Option<Self> {
        let needed = ["sshd", "ssh", "ssh-keygen"];
        if let Some(name) = needed.into_iter().find(|name| find(name).is_none()) {
            skipped(name);
            return None;
        }
        let sshd = find("sshd").expect("it was there");
        let directory = TempDir::new().expect("a directory");
        for key in ["host", "user"] {
            let mut generate = Command::new("ssh-keygen");
            generate.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(directory.path().join(key));
            assert!(generate.status().expect("ssh-keygen").success(), "keys");
        }
        // Another process may take a port before the server does.
        let child = (0..5).find_map(|_| serve(&sshd, directory.path(), free_port(), more));
        let log = || read(&directory.path().join("log"));
        let child = child.unwrap_or_else(|| panic!("no sshd: {}", log()));
        Some(Self { directory, child })
    }

    /// Creates a run whose `ssh` reaches this server under any name except `refused`, where no
    /// server listens.
    ///
    /// These lines come first in the configuration of the client.
    pub(crate) fn reached_by(&self, run: Ftsh, first: &str) -> Ftsh {
        let directory = self.directory.path();
        let port = read(&directory.join("port"));
        let known = format!("node {}", read(&directory.join("host.pub")));
        fs::write(directory.join("known"), known).expect("a file");
        let shown = directory.display();
        let configuration = format!(
            "{first}\nHost refused\nPort 1\nHost *\nHostName 127.0.0.1\nPort {port}\nHostKeyAlias node\n\
             UserKnownHostsFile {shown}/known\nGlobalKnownHostsFile none\nIdentityFile {shown}/user\n\
             IdentitiesOnly yes\nSendEnv {MARK}\n",
        );
        let path = std::env::var("PATH").expect("a path");
        let ssh = find("ssh").expect("it was there").display().to_string();
        let run = run.file("ssh_config", configuration);
        let wrapper =
            format!("#!/bin/sh\nexec {ssh} -F {} \"$@\"\n", run.path("ssh_config").display());
        let path = format!("{}:{path}", run.path("bin").display());
        run.program("bin/ssh", &wrapper).env("PATH", path).bound()
    }

    /// Returns the port of the server.
    pub(crate) fn port(&self) -> String {
        read(&self.directory.path().join("port"))
    }

    /// Returns the log of the server.
    pub(crate) fn log(&self) -> String {
        read(&self.directory.path().join("log"))
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        // Connections have processes of their own, which end with their users.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the number of a port that nothing uses now.
fn free_port() -> u16 {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    free.local_addr().expect("its number").port()
}

/// Starts the server. Returns none if it ends, as it does if another process has the port.
fn serve(sshd: &Path, directory: &Path, port: u16, more: &str) -> Option<Child> {
    let shown = directory.display();
    let configuration = format!(
        "{more}\nListenAddress 127.0.0.1\nPort {port}\nHostKey {shown}/host\nPidFile none\n\
         AuthorizedKeysFile {shown}/user.pub\nStrictModes no\nUsePAM no\nPermitRootLogin yes\n\
         PasswordAuthentication no\nPrintMotd no\nPrintLastLog no\nAcceptEnv {MARK}\n\
         SetEnv HOME={shown}/home SHLVL=2\n",
    );
    fs::write(directory.join("sshd_config"), configuration).expect("a file");
    fs::write(directory.join("port"), port.to_string()).expect("a file");
    let mut command = command(sshd);
    command.args(["-D", "-f"]).arg(directory.join("sshd_config"));
    command.arg("-E").arg(directory.join("log")).stdin(Stdio::null());
    // SAFETY: async-signal-safe.
    unsafe {
        command.pre_exec(|| set_pdeathsig(Signal::SIGKILL).map_err(Into::into));
    }
    let mut child = command.spawn().expect("sshd");
    let started = Instant::now();
    // A connection could lead to another process with the port.
    let listens = format!("Server listening on {} port {port}.", Ipv4Addr::LOCALHOST);
    while !read(&directory.join("log")).contains(&listens) {
        if child.try_wait().expect("a child").is_some() {
            return None;
        }
        assert!(started.elapsed() < TIMEOUT, "no sshd: {}", read(&directory.join("log")));
        thread::sleep(Duration::from_millis(5));
    }
    Some(child)
}

/// Returns the command of the server.
fn command(sshd: &Path) -> Command {
    if !Uid::effective().is_root() {
        return run::command(sshd);
    }
    let mut command = run::command("unshare");
    command.args(["--mount", "sh", "-c", WITH_EMPTY]).arg(sshd);
    command
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let along = std::env::split_paths(&path).chain(SYSTEM.map(PathBuf::from));
    along.map(|directory| directory.join(program)).find(|file| file.is_file())
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_default()
}

#[test]
fn a_port_of_another_process_is_not_taken_for_the_server() {
    let Some(sshd) = Sshd::start("") else { return };
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = taken.local_addr().expect("its number").port();
    let program = find("sshd").expect("it has started");
    assert!(serve(&program, sshd.directory.path(), port, "").is_none(), "{}", sshd.log());
}
