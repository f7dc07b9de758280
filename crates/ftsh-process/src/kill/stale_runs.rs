//! Processes left by earlier starts of a run whose shells are gone. The tag identifies these
//! processes.

use std::collections::{HashMap, HashSet};
use std::io;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::kill_tree::kill_found;
use crate::procs::{ProcDir, ProcessEntry, TagLookup, by_parent};
use crate::tag::ScopeTag;
use ftsh_sys as sys;

/// Intervals of the checks for the end of processes after SIGTERM: short at first, then growing.
const FIRST_INTERVAL: Duration = Duration::from_millis(1);
const MAX_INTERVAL: Duration = Duration::from_millis(40);
/// Time after which a program that is still being loaded counts as hanging. Its tag cannot be read.
const LOADING_TIMEOUT: Duration = Duration::from_secs(1);
/// Time limit for repeating a failed scan.
const READ_TIMEOUT: Duration = Duration::from_secs(2);

/// Kills the processes tagged by these runs and their descendants, except this process and its
/// ancestors. Sends SIGTERM, and SIGKILL after the grace period. Waits for the end of the processes
/// and returns the ids of those still alive. Processes of other users are not found, nor are
/// orphans without the tag.
///
/// # Errors
///
/// The list of processes cannot be read, so some processes may be left.
pub fn kill_stale_runs(runs: &[String], grace: Duration) -> io::Result<Vec<i32>> {
    if runs.is_empty() {
        return Ok(Vec::new());
    }
    let finder = Finder::new(runs);
    let start = Instant::now();
    let mut asked = HashSet::new();
    let mut is_clean = false;
    loop {
        let found = finder.find()?;
        if found.processes.is_empty() {
            // The list may miss a process that forks or ends during the scan.
            if is_clean && (found.is_certain || start.elapsed() >= LOADING_TIMEOUT) {
                return Ok(Vec::new());
            }
            is_clean = true;
        } else {
            is_clean = false;
            for process in &found.processes {
                let is_new = asked.insert((process.pid, process.started));
                if is_new && !found.nested.contains(&process.pid) {
                    // A stopped process handles SIGTERM only after SIGCONT.
                    for signal in [libc::SIGTERM, libc::SIGCONT] {
                        let _ = sys::kill(process.pid, signal);
                    }
                }
            }
        }
        let left = grace.saturating_sub(start.elapsed());
        if left.is_zero() && !is_clean {
            break;
        }
        await_any_end(&found.processes, left);
    }
    let _ = kill_found(&HashSet::new(), || match finder.look() {
        Ok(found) => (found.processes, found.is_certain),
        Err(_) => (Vec::new(), false),
    });
    Ok(finder.find()?.processes.iter().map(|process| process.pid).collect())
}

/// Waits until a process of the list has ended, at most for `most`.
fn await_any_end(processes: &[ProcessEntry], most: Duration) {
    let start = Instant::now();
    let lives = |it: &ProcessEntry| match ProcDir(it.pid).entry() {
        Ok(now) => now.is_some_and(|now| !now.ended && it.started == now.started),
        Err(_) => true, // checked again
    };
    let mut pause = FIRST_INTERVAL;
    loop {
        sleep(pause.min(most));
        pause = (2 * pause).min(MAX_INTERVAL);
        if processes.is_empty() || start.elapsed() >= most || !processes.iter().all(lives) {
            return;
        }
    }
}

/// Scanner for the processes of given runs.
struct Finder<'a> {
    runs: HashSet<&'a str>,
}

/// Result of a scan.
struct FoundProcesses {
    processes: Vec<ProcessEntry>,
    /// Processes started by a nested shell that is still alive. The nested shell ends them after
    /// SIGTERM.
    nested: HashSet<i32>,
    /// True if the tag of every process was read.
    is_certain: bool,
}

impl<'a> Finder<'a> {
    fn new(runs: &'a [String]) -> Self {
        Self { runs: runs.iter().map(String::as_str).collect() }
    }

    /// Repeats a scan that fails, until `READ_TIMEOUT`.
    fn find(&self) -> io::Result<FoundProcesses> {
        let start = Instant::now();
        loop {
            match self.look() {
                Err(_) if start.elapsed() < READ_TIMEOUT => sleep(MAX_INTERVAL),
                result => return result,
            }
        }
    }

    fn look(&self) -> io::Result<FoundProcesses> {
        // This process and its ancestors are never killed.
        let own: HashSet<i32> =
            ProcDir(std::process::id() as i32).ancestry()?.into_iter().collect();
        let mut all = ProcessEntry::all()?;
        all.retain(|it| !it.ended);
        let mut is_certain = true;
        let mut tagged = HashMap::new();
        for process in all.iter().filter(|it| !own.contains(&it.pid)) {
            let find = |value: &[u8]| ScopeTag::find(value, |run| self.runs.contains(run));
            match ProcDir(process.pid).tag_by(find) {
                TagLookup::Ours(tag) => drop(tagged.insert(process.pid, tag)),
                TagLookup::Absent => {}
                TagLookup::Unclear => is_certain = false,
                TagLookup::Unreadable => {
                    return Err(io::Error::other("a process cannot be examined"));
                }
            }
        }
        let lives = |shell| tagged.get(&shell).is_some_and(|it| it.depth == 0);
        let is_nested = |pid: &i32| tagged.get(pid).and_then(|it| it.shell).is_some_and(lives);
        let nested = tagged.keys().copied().filter(is_nested).collect();
        // Descendants belong to the run even without the tag.
        let children = by_parent(&all);
        let mut found: HashSet<i32> = tagged.keys().copied().collect();
        let mut stack: Vec<i32> = tagged.into_keys().collect();
        while let Some(pid) = stack.pop() {
            let of_it = children.get(&pid).into_iter().flatten().copied();
            let new = of_it.filter(|pid| !own.contains(pid) && found.insert(*pid));
            stack.extend(new.collect::<Vec<_>>());
        }
        let processes = all.into_iter().filter(|it| found.contains(&it.pid)).collect();
        Ok(FoundProcesses { processes, nested, is_certain })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{BufRead, BufReader};
    use std::process::{Child, Command, Stdio};

    use super::*;

    use crate::few_descriptors::{is_alone, none_during, none_for};

    const LONG: Duration = Duration::from_secs(20);
    const NOBODY: [i32; 0] = [];

    /// Returns a unique name of a run.
    fn run(name: &str) -> String {
        format!("{}-{name}", std::process::id())
    }

    /// Starts a script tagged by a run, and waits for its first line of output. Returns that line
    /// and the process.
    fn start(run: &str, script: &str) -> (String, Child) {
        let mut child = Command::new("sh")
            .args(["-c", script])
            .env(ScopeTag::VARIABLE, format!("{run}.3;t=5/1"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh runs");
        let mut line = String::new();
        let output = child.stdout.take().expect("a pipe");
        BufReader::new(output).read_line(&mut line).expect("it says something");
        (line.trim().to_owned(), child)
    }

    fn lives(pid: i32) -> bool {
        ProcDir(pid).entry().expect("readable").is_some_and(|it| !it.ended)
    }

    fn pid_of(line: &str) -> i32 {
        line.parse().expect("a number")
    }

    #[test]
    fn only_processes_of_the_runs_are_killed() {
        let (ours, other) = (run("ours"), run("other"));
        let daemon = "setsid sleep 1000 >/dev/null 2>&1 & echo $!";
        let stubborn = "trap '' TERM; echo $$; exec >/dev/null; while :; do sleep 0.01; done";
        // Its own tag is removed.
        let bare =
            "env -i setsid sh -c 'echo $$; exec sleep 1000 >/dev/null' & exec >/dev/null; wait";
        let stopped = "echo $$; exec >/dev/null; kill -STOP $$; sleep 1000";
        let mut children = Vec::new();
        let mut pids = Vec::new();
        for script in [daemon, stubborn, bare, stopped] {
            let (pid, child) = start(&ours, script);
            pids.push(pid_of(&pid));
            children.push(child);
        }
        let (pid, child) = start(&format!("{other}.1,{ours}"), daemon);
        pids.push(pid_of(&pid));
        children.push(child);
        let (neighbour, child) = start(&other, daemon);
        children.push(child);
        let began = Instant::now();
        let names = [run("unknown"), ours];
        assert_eq!(kill_stale_runs(&names, Duration::from_millis(100)).expect("readable"), NOBODY);
        assert!(began.elapsed() < LONG);
        assert!(!pids.iter().any(|pid| lives(*pid)), "{pids:?}");
        assert!(lives(pid_of(&neighbour)), "another run's was ended");
        assert_eq!(kill_stale_runs(&[other], LONG).expect("readable"), NOBODY);
        assert!(!lives(pid_of(&neighbour)) && began.elapsed() < LONG);
        for mut child in children {
            child.wait().expect("it has ended");
        }
    }

    #[test]
    fn processes_of_a_living_nested_shell_are_left_to_it() {
        let place = tempfile::tempdir().expect("a directory");
        let ours = run("outer");
        // Each shell creates a file when it handles SIGTERM.
        let inner =
            "trap \"echo >asked; exit\" TERM; echo; exec >/dev/null; while :; do sleep 0.01; done";
        let script = format!(
            "cd {}; trap 'kill -KILL $!; echo >ended; exit' TERM; \
             FTSH_SCOPE={ours}.3,$$-x.0 sh -c '{inner}' & exec >/dev/null; wait",
            place.path().display()
        );
        let (_, mut shell) = start(&ours, &script);
        assert_eq!(kill_stale_runs(&[ours], LONG).expect("readable"), NOBODY);
        shell.wait().expect("it has ended");
        let is_there = |name: &str| fs::exists(place.path().join(name)).expect("a directory");
        assert!(is_there("ended") && !is_there("asked"));
    }

    #[test]
    fn unreadable_processes_are_not_gone() {
        const NAME: &str = concat!(module_path!(), "::unreadable_processes_are_not_gone");
        let ours = run("unread");
        if !is_alone(NAME) {
            return;
        }
        let (left, mut child) = start(&ours, "setsid sleep 1000 >/dev/null 2>&1 & echo $!");
        let end = || kill_stale_runs(std::slice::from_ref(&ours), LONG);
        none_during(end).expect_err("nothing is known");
        assert!(lives(pid_of(&left)));
        assert_eq!(end().expect("readable"), NOBODY);
        assert!(!lives(pid_of(&left)));
        child.wait().expect("it has ended");
    }

    #[test]
    fn a_start_inside_a_stale_run_survives() {
        const INSIDE: &str = "FTSH_TEST_INSIDE";
        if let Ok(ours) = std::env::var(INSIDE) {
            // Unreadable processes count neither as ended nor as foreign.
            let end = || kill_stale_runs(std::slice::from_ref(&ours), LONG);
            let ended = none_for(Duration::from_millis(200), end);
            assert_eq!(ended.expect("readable by then"), NOBODY);
            assert_eq!(kill_stale_runs(&[ours], LONG).expect("readable"), NOBODY);
            return;
        }
        let ours = run("around");
        let program = std::env::current_exe().expect("a test has a program");
        let name = concat!(module_path!(), "::a_start_inside_a_stale_run_survives");
        let name = name.split_once("::").map_or(name, |(_crate, rest)| rest);
        let (left, mut child) = start(&ours, "setsid sleep 1000 >/dev/null 2>&1 & echo $!");
        // A waiting shell runs between the leftover process and this one.
        let status = Command::new("sh")
            .args(["-c", "\"$@\"; exit $?", "sh"])
            .arg(&program)
            .args(["--exact", name])
            .env(INSIDE, &ours)
            .env(ScopeTag::VARIABLE, format!("{ours}.0"))
            .stdout(Stdio::null())
            .status()
            .expect("a test can start itself");
        assert!(status.success(), "{status}");
        assert!(!lives(pid_of(&left)));
        child.wait().expect("it has ended");
    }
}
