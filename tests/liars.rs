//! Carriers that lie: whatever they say and do, no branch counts as successful that has not
//! succeeded, no branch runs twice at once, and nothing is left.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::run::{Finished, command};
use crate::support::slurm::wait_or;
use crate::support::{FTSH, Ftsh, has};

/// Machines of the carrier, outside of all processes of a shell.
struct Machines {
    process: Child,
    /// Sessions of all jobs, also after the removal of the directory.
    sessions: File,
    jobs: PathBuf,
}

impl Machines {
    fn start(run: &Ftsh) -> Self {
        let program = run.path("machines-start");
        let directory = program.parent().expect("the directory of the run").to_owned();
        for folder in ["jobs", "canceled", "links", "locks"] {
            fs::create_dir(directory.join(folder)).expect("a directory");
        }
        let sessions = File::create_new(directory.join("sessions")).expect("a file");
        let process = command(&program)
            .arg(FTSH)
            .current_dir(&directory)
            .stdin(Stdio::null())
            .spawn()
            .expect("machines");
        Self { process, sessions, jobs: directory.join("jobs") }
    }

    fn sessions(&self) -> BTreeSet<String> {
        let path = format!("/proc/self/fd/{}", self.sessions.as_raw_fd());
        fs::read_to_string(path).expect("sessions").lines().map(ToOwned::to_owned).collect()
    }

    /// Returns the commands of the processes that run on the machines.
    fn processes(&self) -> Vec<String> {
        let sessions = self.sessions();
        let processes = fs::read_dir("/proc").expect("processes").flatten();
        let in_session = processes.filter_map(|process| {
            let stat = fs::read_to_string(process.path().join("stat")).ok()?;
            let (command, rest) = stat.rsplit_once(") ")?;
            let fields: Vec<_> = rest.split(' ').collect();
            let runs = fields[0] != "Z" && sessions.contains(fields[3]);
            runs.then(|| format!("{command} {}", fields[0]))
        });
        in_session.collect()
    }

    /// Waits until nothing of an ended run is left.
    fn until_gone(&self, run: &Finished) {
        let jobs = || -> Vec<_> {
            let entries = fs::read_dir(&self.jobs).into_iter().flatten().flatten();
            entries.map(|entry| entry.file_name()).collect()
        };
        let why = || {
            let (processes, jobs) = (self.processes(), jobs());
            let names: Vec<_> = jobs.iter().filter_map(|job| job.to_str()).collect();
            let said = lines(run, "lies").join("\n") + "\n" + &run.errors();
            let is_said = |line: &&str| names.iter().any(|job| line.contains(job));
            let said: Vec<&str> = said.lines().filter(is_said).collect();
            format!("left on the machines: {processes:?} of {jobs:?}\n{}", said.join("\n"))
        };
        wait_or(why, || jobs().is_empty() && self.processes().is_empty());
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        for session in self.sessions() {
            let _ = Command::new("pkill").args(["-KILL", "-s", &session]).status();
        }
    }
}

/// Returns the lines of a file of the run; none if the file is missing.
fn lines(run: &Finished, name: &str) -> Vec<String> {
    let text = fs::read_to_string(run.directory.path().join(name)).unwrap_or_default();
    text.lines().map(ToOwned::to_owned).collect()
}

/// Returns a run of branches by a carrier with the lies of a seed.
fn script(branches: usize, at_once: usize, seed: u64) -> (Machines, Ftsh) {
    let text = format!(
        "try\nforall x in 1 .to. {branches} keep going at most {at_once} on liar {seed} \
         retry lost 20 times\n./work $x\nend\ncatch\nend"
    );
    let run = Ftsh::script(text)
        .program("bin/ftsh-carry-liar", include_str!("support/ftsh-carry-liar"))
        .program("machines-start", include_str!("support/ftsh-liars-machines"))
        .program("work", include_str!("support/liars-work"))
        .fifo("machines")
        .options(["--results", "results", "-t", "1", "--lease", "2s", "-l", "10"])
        .limit(Duration::from_secs(900));
    let path = format!("{}:{}", run.path("bin").display(), std::env::var("PATH").expect("a path"));
    (Machines::start(&run), run.env("PATH", path))
}

/// Runs branches by a carrier with the lies of a seed, and compares the results with the truth.
fn lies(branches: usize, at_once: usize, seed: u64) {
    if !has("flock") {
        return;
    }
    let (machines, run) = script(branches, at_once, seed);
    let run = run.start();
    // A second start that nobody hears of ends by itself, and so do its pipes.
    run.until_gone("the end of all");
    let run = run.wait();
    let story = || format!("seed {seed}: {}\n{}", lines(&run, "lies").join("\n"), run.story());
    run.expect_code(0);
    run.nothing_left();
    machines.until_gone(&run);
    assert!(lines(&run, "together").is_empty(), "two at once: {}", story());
    let results = lines(&run, "results");
    assert_eq!(results.len(), branches, "{}", story());
    let ended: BTreeSet<_> = lines(&run, "ended").into_iter().collect();
    let printed = run.text();
    let printed: BTreeSet<_> = printed.lines().collect();
    let mut known = 0;
    for result in results {
        let result: Value = serde_json::from_str(&result).expect("JSON");
        let word = result["word"].as_str().expect("a word");
        let outcome = result["outcome"].as_str().expect("an outcome");
        let status = result["status"].as_u64().expect("a status");
        match outcome {
            "succeeded" | "exit" => {
                known += 1;
                let claim = format!("{word} {status}");
                assert!(ended.contains(&claim), "it is not true that {claim}: {}", story());
                let output = format!("output of {word}");
                assert!(printed.contains(&*output), "{output} is missing: {}", story());
            }
            // Nothing is claimed, or that a signal has ended the command.
            "lost" | "engine" | "signal" => {}
            other => panic!("{word} is {other}: {}", story()),
        }
    }
    assert!(known > branches / 2, "only {known} results are known: {}", story());
}

#[test]
fn lies_are_not_believed() {
    lies(30, 10, 1);
}

/// Only the machines and the canceled jobs are left to end.
#[test]
fn a_killed_shell_leaves_nothing_with_a_liar() {
    if !has("flock") {
        return;
    }
    let (machines, run) = script(12, 12, 2);
    let run = run.start();
    run.until_lines("ended", 2);
    run.signal(Signal::SIGKILL);
    run.until_gone("the end of all");
    let run = run.wait();
    run.nothing_left();
    machines.until_gone(&run);
    assert!(lines(&run, "together").is_empty(), "{}", run.story());
}

#[test]
#[ignore = "slow: `.ci/run` includes it"]
fn three_hundred_lies_are_not_believed() {
    lies(300, 30, u64::from(std::process::id()));
}
