//! CPU use of waiting shells, which is close to zero for every kind of wait.

use std::fs;
use std::path::Path;
use std::time::Duration;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::support::run::Running;
use crate::support::terminal::User;
use crate::support::{Ftsh, WAYS};

/// Length of an observation window, and number of windows: one window without work is enough.
const WINDOW: Duration = Duration::from_millis(400);
const WINDOWS: usize = 4;
/// Inverse share of a processor that a spinning loop exceeds, even on a busy machine.
const SHARE: u32 = 20;
/// Maximum number of wake-ups in a window. A status line that counts tenths of seconds causes
/// wake-ups, and so does the check if other processes may write.
const WAKES: u64 = 6;

/// Returns the CPU time used by a process and its descendants, and their number of waits.
fn used(pid: i32) -> (Duration, u64) {
    let mut used = (Duration::ZERO, 0);
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return used };
    for thread in threads.flatten() {
        let file = |name: &str| fs::read_to_string(thread.path().join(name)).unwrap_or_default();
        let first = |text: &str| text.split_whitespace().next().and_then(|it| it.parse().ok());
        used.0 += Duration::from_nanos(first(&file("schedstat")).unwrap_or(0));
        let status = file("status");
        let waits = status.lines().find_map(|it| it.strip_prefix("voluntary_ctxt_switches:"));
        used.1 += waits.and_then(first).unwrap_or(0);
        for child in file("children").split_whitespace().filter_map(|it| it.parse().ok()) {
            let (time, waits) = self::used(child);
            used = (used.0 + time, used.1 + waits);
        }
    }
    used
}

/// Observes these processes side by side, each with its name.
fn cost_nothing(all: &[(String, i32)]) {
    let mut least = vec![(Duration::MAX, u64::MAX); all.len()];
    for _ in 0..WINDOWS {
        let before: Vec<_> = all.iter().map(|(_, pid)| used(*pid)).collect();
        std::thread::sleep(WINDOW);
        for (((what, pid), least), before) in all.iter().zip(&mut least).zip(before) {
            let after = used(*pid);
            assert!(after.0 > Duration::ZERO, "{what} is gone");
            least.0 = least.0.min(after.0.saturating_sub(before.0));
            least.1 = least.1.min(after.1.saturating_sub(before.1));
        }
    }
    for ((what, _), (time, wakes)) in all.iter().zip(least) {
        assert!(time <= WINDOW / SHARE, "{what}: {time:?} of {WINDOW:?}");
        assert!(wakes <= WAKES, "{what}: woke up {wakes} times in {WINDOW:?}");
    }
}

/// Returns scripts with each kind of wait. Each reports its start first.
fn waits(place: &Path) -> Vec<String> {
    let fifo = place.join("fifo");
    if !fifo.exists() {
        mkfifo(&fifo, Mode::S_IRWXU).expect("a fifo");
    }
    [
        "try for 1 day every 1 hour; failure; end".to_owned(),
        "sleep 1000 seconds".into(),
        "/bin/sleep 1000".into(),
        "/bin/sleep 1000 | /bin/cat".into(),
        "/bin/sleep 1000 -> output".into(),
        "forall x in 1 2; /bin/sleep 1000; end".into(),
        "forall x in 1 2; try for 1 day every 1 hour; failure; end; end".into(),
        "sh -c '/bin/sleep 1000 &'; /bin/sleep 1000".into(),
        format!("cat < {}", fifo.display()),
    ]
    .map(|script| format!("echo rea''dy; {script}"))
    .into()
}

#[test]
fn a_script_that_waits_costs_nothing() {
    let place = tempfile::tempdir().expect("a directory");
    let mut all: Vec<(String, Running)> = Vec::new();
    for script in waits(place.path()) {
        for way in WAYS {
            let run = Ftsh::command(&script).options(["-l", "0"]).in_way(way);
            all.push((format!("{script} in way {way}"), run.start()));
        }
    }
    let lock = format!("--lock={}", place.path().join("lock").display());
    let first = Ftsh::command("echo ready; /bin/sleep 1000").options([&lock]).start();
    first.until("the lock", Running::has_output);
    let second = Ftsh::command("echo wrong").options([&*lock, "--lock-wait=1000s", "-l", "20"]);
    let second = second.start();
    second.until("its turn", |run| run.errors().contains("waiting"));
    let through = "channel door at most 1; try through door; echo rea''dy; /bin/sleep 1000; end";
    let door = || {
        let run = Ftsh::command(through).options(["-l", "20"]);
        run.env("FTSH_CHANNELS", place.path().join("channels")).start()
    };
    let inside = door();
    inside.until("a place", Running::has_output);
    let outside = [door(), door()];
    for run in &outside {
        run.until("its turn", |run| run.errors().contains("waits for channel"));
    }
    for (_, run) in &all {
        run.until("a beginning", Running::has_output);
    }
    let others = outside.into_iter().map(|run| ("who waits for a channel".into(), run));
    all.extend(others);
    all.push(("who is in a channel".into(), inside));
    all.push(("who holds the lock".into(), first));
    all.push(("who waits for the lock".into(), second));
    let pids: Vec<_> = all.iter().map(|(what, run)| (what.clone(), run.pid().as_raw())).collect();
    cost_nothing(&pids);
}

/// Returns the number of reads by a process and its descendants.
fn reads(pid: i32) -> u64 {
    let file = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let text = file("io");
    let own = text.lines().find_map(|line| line.strip_prefix("syscr: ")?.parse::<u64>().ok());
    let children = file(&format!("task/{pid}/children"));
    let children = children.split_whitespace().filter_map(|it| it.parse().ok()).map(reads);
    own.unwrap_or(0) + children.sum::<u64>()
}

#[test]
fn a_slowly_ending_process_is_watched_without_full_scans() {
    // The machine has more processes than the shell may read.
    const MOST: u64 = 50;
    let others = format!("forall i in 1 .to. {}; /bin/sleep 1000; end", 2 * MOST);
    let others = Ftsh::command(&others).start();
    others.until("others", |run| run.processes().len() as u64 > 2 * MOST);
    let script = "try 1 time; sh -c 'setsid sh stubborn & read it < ready; echo $it; exit 1'; end";
    let all = WAYS.map(|way| {
        let run = Ftsh::command(script).options(["-t", "1000"]).fifo("ready");
        let run = run.file("stubborn", "trap '' TERM\necho ready > ready\nexec /bin/sleep 1000\n");
        (way, run.in_way(way).start())
    });
    for (_, run) in &all {
        run.until("a daemon", Running::has_output);
    }
    for (way, run) in &all {
        run.until(&format!("less than {MOST} reads in {WINDOW:?} in way {way}"), |run| {
            let before = reads(run.pid().as_raw());
            std::thread::sleep(WINDOW);
            reads(run.pid().as_raw()).saturating_sub(before) < MOST
        });
        assert!(run.processes().len() >= 2, "the daemon is gone in way {way}");
    }
}

#[test]
fn an_idle_terminal_costs_nothing() {
    let place = tempfile::tempdir().expect("a directory");
    let home = place.path().to_str().expect("a name");
    let mut all = Vec::new();
    let mut start = |what: String, arguments: &[&str], term, typed: &[&str], sign: &str| {
        let variables = [("HOME", home), ("XDG_STATE_HOME", ""), ("TERM", term)];
        let mut user = User::start(arguments, &variables, 80, None);
        if arguments.is_empty() {
            user.sees("Ctrl-D leaves");
            user.sees("> ");
        }
        for line in typed {
            user.types(&format!("{line}\r"));
        }
        user.sees(sign);
        all.push((format!("{what} with TERM={term}"), user));
    };
    for term in ["xterm", "dumb"] {
        for typed in [&[][..], &["echo do''ne"], &["try"], &["try 1 time; failure; catch; end"]] {
            let sign = if typed.is_empty() { "" } else { "> " };
            start(format!("a prompt after {typed:?}"), &[], term, typed, sign);
        }
        for script in waits(place.path()) {
            start(script.clone(), &["-l", "0", "-c", &script], term, &[], "ready");
            start(script.clone(), &["-c", &script], term, &[], "ready");
            start(format!("{script} at a prompt"), &[], term, &[&script], "ready\r\n");
        }
    }
    let pids: Vec<_> = all.iter().map(|(what, user)| (what.clone(), user.pid())).collect();
    cost_nothing(&pids);
}
