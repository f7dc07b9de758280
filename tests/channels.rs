//! Channels of real shells, and `--channels`.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::Path;
use std::time::Duration;

use ftsh_machine::channels::stored::MAX_NUMBER;
use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::Ftsh;
use crate::support::run::Running;

/// Returns a run with channels in a directory of the test's own.
fn script(text: &str) -> Ftsh {
    Ftsh::script(text).env("FTSH_CHANNELS", "channels")
}

/// Returns the lines of a file that several processes append to.
fn lines(run: &Running, name: &str) -> Vec<String> {
    let text = fs::read_to_string(run.directory().join(name)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Returns the maximum number of attempts inside, by lines `+` and `-`.
fn most_at_once(lines: &[String]) -> i32 {
    let mut inside = 0;
    let count = |line: &String| {
        inside += if line.starts_with('+') { 1 } else { -1 };
        inside
    };
    lines.iter().map(count).max().unwrap_or_default()
}

#[test]
fn two_hundred_shells_share_four_places() {
    const SHELLS: usize = 200;
    let each = "channel door at most 4
        try through door
            echo + >> log
            /bin/true
            echo - >> log
        end";
    let all = format!("forall i in 1 .to. {SHELLS}\n ftsh each.ftsh\nend");
    let finished = script(&all).file("each.ftsh", each).limit(Duration::from_secs(120)).success();
    let text = finished.read("log");
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 2 * SHELLS, "nobody starves");
    let most = most_at_once(&lines);
    assert!((1..=4).contains(&most), "{most} at once");
    finished.check_health();
}

#[test]
fn killed_shells_leave_their_places_to_others() {
    const SHELLS: usize = 24;
    const KILLED: usize = 8;
    // The process known to the user, and the interpreter, which is the command's parent.
    let each = "channel door at most 2
        try through door
            sh -c 'echo $PPID >> log; until test -e go.$PPID; do sleep 0.005; done'
        end";
    let all = format!("forall i in 1 .to. {SHELLS} keep going\n ftsh each.ftsh\nend");
    let run = script(&all).file("each.ftsh", each).options(["-l", "0"]).start();
    let mut done = HashSet::new();
    let mut killed = 0;
    while done.len() < SHELLS {
        run.until("somebody else is inside", |run| {
            lines(run, "log").iter().any(|line| !done.contains(line))
        });
        for holder in lines(&run, "log") {
            if !done.insert(holder.clone()) {
                continue;
            }
            if killed < KILLED {
                killed += 1;
                let pid = Pid::from_raw(holder.parse().expect("a process id"));
                kill(pid, Signal::SIGKILL).expect("it is there");
            } else {
                fs::write(run.directory().join(format!("go.{holder}")), "").expect("a file");
            }
        }
    }
    let directory = run.directory().join("channels");
    let finished = run.wait();
    finished.expect_code(137);
    finished.nothing_left();
    let list = Ftsh::new().arg("--channels").env("FTSH_CHANNELS", &directory).success().text();
    let row: Vec<&str> = list.lines().nth(1).unwrap_or_default().split_whitespace().collect();
    assert_eq!(row, ["door", "0/2", "0", "-", "0", "-"], "{list}");
}

#[test]
fn a_stopped_shell_delays_no_other_shell() {
    pass_a_shell_stopped_by(Signal::SIGTSTP);
}

/// SIGSTOP acts like a debugger or a paused container: the shell cannot leave the queue.
#[test]
fn a_frozen_shell_delays_no_other_shell() {
    pass_a_shell_stopped_by(Signal::SIGSTOP);
}

/// Returns true if a shell changes the text of a channel.
fn is_text_locked(path: &Path) -> bool {
    let file = fs::File::open(path).expect("a channel");
    // SAFETY: the structure is plain data, for which zero is valid.
    let mut request: libc::flock = unsafe { std::mem::zeroed() };
    request.l_type = libc::F_WRLCK as i16;
    (request.l_start, request.l_len) = (3 * MAX_NUMBER as i64, 1);
    fcntl(&file, FcntlArg::F_OFD_GETLK(&mut request)).expect("a file");
    request.l_type != libc::F_UNLCK as i16
}

fn pass_a_shell_stopped_by(signal: Signal) {
    let shared = tempfile::tempdir().expect("a directory");
    let come = || {
        let text = "channel door at most 1
            try through door
                echo inside
                sh -c 'until test -e go; do sleep 0.005; done'
            end";
        let run = Ftsh::script(text).options(["-l", "20"]);
        run.env("FTSH_CHANNELS", shared.path().join("channels")).start()
    };
    let go = |run: &Running| fs::write(run.directory().join("go"), "").expect("a file");
    let first = come();
    first.until("a place", Running::has_output);
    let [stopped, last] = [0, 1].map(|_| {
        let run = come();
        run.until("its turn", |run| run.errors().contains("waits for channel"));
        run
    });
    let send = |sent| match signal {
        Signal::SIGTSTP => stopped.signal_group(sent),
        _ => stopped.processes().iter().for_each(|it| {
            kill(Pid::from_raw(it.pid), sent).expect("it is there");
        }),
    };
    let is_stopped = |pid: i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" T"))
    };
    loop {
        send(signal);
        stopped.until("a stop", |run| run.processes().iter().all(|it| is_stopped(it.pid)));
        // A shell that is frozen while it changes the text holds up all others.
        if !is_text_locked(&shared.path().join("channels/door")) {
            break;
        }
        send(Signal::SIGCONT);
    }
    go(&first);
    first.wait().expect_code(0);
    last.until("a place", Running::has_output);
    assert!(!stopped.has_output());
    send(Signal::SIGCONT);
    go(&last);
    last.wait().expect_code(0);
    stopped.until("a place", Running::has_output);
    go(&stopped);
    stopped.wait().expect_code(0);
}

#[test]
fn shells_inside_an_attempt_take_no_second_place() {
    let inner = "channel door at most 1\ntry for 1 minute through door\n echo $0\nend";
    let outer = "channel door at most 1
        mkdir elsewhere
        try 1 time through door
            ftsh inner.ftsh
            cd elsewhere
            ftsh -c 'ftsh ../inner.ftsh'
            try 1 time through door
                ftsh ../inner.ftsh
            end
        end";
    let expected = "inner.ftsh\n../inner.ftsh\n../inner.ftsh\n";
    script(outer).file("inner.ftsh", inner).stdout(expected).success();
}

#[test]
fn shells_beside_an_attempt_wait_for_their_turn() {
    let inner = "channel door at most 1; try for 100 ms through door; echo never; end";
    let outer = format!(
        "channel door at most 1
        try 1 time through door
            env FTSH_INSIDE= ftsh -l 0 -c '{inner}'
        end"
    );
    script(&outer).stdout("").failure(124);
    // For a process that outlives the attempt, the variable is no longer valid.
    let daemon = "until test -e left; do sleep 0.005; done; ftsh -l 0 late.ftsh; echo $? > code";
    let outer = format!(
        "channel door at most 1
        try 1 time through door
            sh -c '( {daemon} ) > /dev/null 2>&1 &'
        end
        try 1 time through door
            echo > left
            sh -c 'until test -s code; do sleep 0.005; done; cat code'
        end"
    );
    script(&outer).file("late.ftsh", inner).stdout("124\n").success();
}

#[test]
fn a_breaker_is_opened_by_others() {
    let shared = tempfile::tempdir().expect("a directory");
    let channels = shared.path().join("channels");
    let with = |body: &str| {
        let text = format!(
            "channel server breaker 3 failures 1 hour\ntry 3 times every 10 ms through server\n{body}\nend"
        );
        Ftsh::script(text).env("FTSH_CHANNELS", &channels)
    };
    with("false").failure(1);
    let refused = with("echo never").stdout("").failure(75);
    refused.expect_stderr("server");
    let list = Ftsh::new().arg("--channels").env("FTSH_CHANNELS", &channels).success().text();
    assert!(list.contains("3         open for "), "{list}");
}

#[test]
fn a_wait_for_a_channel_ends_at_once() {
    let each = "channel door at most 1; try through door; echo x >> log; /bin/sleep 1000; end";
    let all = "forall i in 1 .to. 20\n ftsh each.ftsh\nend";
    let run = script(all).file("each.ftsh", each).start();
    run.until_lines("log", 1);
    run.signal(Signal::SIGTERM);
    run.wait().killed_by(Signal::SIGTERM).nothing_left();
}

#[test]
fn a_damaged_file_is_saved_and_reported_once() {
    let through =
        "channel door at most 1\ntry through door; true; end\ntry through door; true; end";
    let shell = script(through);
    make_private(&shell.path("channels"));
    fs::write(shell.path("channels/door"), "no channel").expect("a file");
    let finished = shell.success();
    let errors = finished.errors();
    assert_eq!(errors.matches("damaged").count(), 2, "a line that names the copy: {errors}");
    assert_eq!(finished.read("channels/door.damaged"), "no channel");
}

/// Returns a run of `--channels` with a directory of the test's own.
fn lists() -> Ftsh {
    Ftsh::new().arg("--channels").env("FTSH_CHANNELS", "channels")
}

fn make_private(path: &Path) {
    fs::DirBuilder::new().mode(0o700).create(path).expect("a directory");
}

#[test]
fn without_channels_there_are_none() {
    let shell = lists();
    let path = shell.path("channels");
    let finished = shell.success();
    assert_eq!(finished.text(), format!("no channels in {}\n", path.display()));
    assert!(!path.exists(), "looking makes nothing");
}

#[test]
fn a_damaged_channel_is_listed() {
    let shell = lists();
    make_private(&shell.path("channels"));
    fs::write(shell.path("channels/mirror"), "{").expect("a file");
    fs::write(shell.path("channels/.hidden"), "{").expect("a file");
    let finished = shell.failure(1);
    let text = finished.text();
    assert_eq!(text.lines().nth(1), Some("mirror   damaged: not JSON"), "{text}");
    assert_eq!(text.lines().count(), 2, "{text}");
}

#[test]
fn an_unsafe_directory_is_refused() {
    let shell = lists();
    symlink("/tmp", shell.path("channels")).expect("a link");
    let finished = shell.stdout("").failure(2);
    finished
        .one_line()
        .expect_stderr("channels: it is not a directory; set FTSH_CHANNELS to another directory");
}
