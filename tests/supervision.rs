//! Killed shells, with each method of finding processes: no process is left.

use std::fs::Permissions;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, Uid, chown};

use crate::support::processes::{MARK, marked};
use crate::support::rounds::{self, Round, rounds, timed};
use crate::support::run::Running;
use crate::support::skipped::skipped;
use crate::support::terminal::User;
use crate::support::{Ftsh, WAYS};

/// Twenty daemons that ignore SIGTERM.
const DAEMONS: &str = "
    forall i in 1 .to. 20
        sh -c 'trap \"\" TERM; setsid sh -c \"echo r >> ready; sleep 60; :\" & sleep 60; :'
    end";

/// Time limit for the end of all processes.
const SOON: Duration = Duration::from_millis(200);

/// Supervisor and interpreter.
pub(crate) fn shells(run: &Running) -> (i32, i32) {
    let supervisor = run.pid().as_raw();
    (supervisor, child_of(supervisor))
}

/// Returns the only child of a process.
pub(crate) fn child_of(pid: i32) -> i32 {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    children.expect("a list of children").trim().parse().expect("one child")
}

pub(crate) fn is_stopped(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") T "))
}

pub(crate) fn send(pid: i32, signal: Signal) {
    kill(Pid::from_raw(pid), signal).expect("it lives");
}

/// Returns the time until no process is left after `action`.
fn after(
    round: Round,
    script: &str,
    ready: usize,
    action: impl Fn(&Running),
) -> (Duration, Running) {
    let run = round.command(script).session().start();
    run.until_lines("ready", ready);
    let start = Instant::now();
    action(&run);
    run.until_gone("everything gone");
    (start.elapsed(), run)
}

fn killing(end: Signal, action: impl Fn(&Running) + Sync) {
    for way in WAYS.into_iter().chain(["ps"]) {
        // Without a subreaper, a scan of all processes is needed.
        let most = if matches!(way, "1" | "ps") { SOON * 5 } else { SOON };
        timed("everything gone", most, &[way], |round| {
            let (elapsed, run) = after(round, DAEMONS, 20, &action);
            run.wait().killed_by(end).nothing_left();
            elapsed
        });
    }
}

#[test]
fn nothing_outlives_a_killed_supervisor() {
    killing(Signal::SIGKILL, |run| send(shells(run).0, Signal::SIGKILL));
}

#[test]
fn nothing_outlives_a_killed_interpreter() {
    killing(Signal::SIGKILL, |run| send(shells(run).1, Signal::SIGKILL));
}

#[test]
fn nothing_of_this_user_outlives_a_kill_below_a_process_of_another_user() {
    if !Uid::effective().is_root() {
        return skipped("root, who makes a set-uid program");
    }
    let text = "./rooted --reuid 0 unshare --fork setpriv --reuid 65534 \
                sh -c 'trap \"\" TERM; echo r > ready; sleep 60; :'";
    let run = Ftsh::command(text).file("rooted", "").file("ready", "").unprivileged();
    let program = run.path("rooted");
    fs::copy("/usr/bin/setpriv", &program).expect("a copy");
    fs::set_permissions(&program, Permissions::from_mode(0o4755)).expect("permissions");
    chown(&run.path("ready"), Some(Uid::from_raw(65534)), None).expect("another owner");
    let run = run.session().start();
    run.until_lines("ready", 1);
    send(shells(&run).1, Signal::SIGKILL);
    run.until_gone("everything gone");
    run.wait().killed_by(Signal::SIGKILL).nothing_left();
}

#[test]
fn nothing_outlives_a_killed_group() {
    killing(Signal::SIGKILL, |run| run.signal_group(Signal::SIGKILL));
}

#[test]
fn nothing_outlives_a_timeout_that_kills() {
    for kill in [&["-s", "KILL", "0.3"][..], &["-k", "0.1", "0.2"]] {
        rounds(&["0", "pidfd", "1", "ps"], |round| {
            // Earlier and later: while commands run, or while they start.
            let before = 20 * (round.number % 5);
            let daemon = "sh -c 'trap \"\" TERM; setsid sleep 60 & sleep 60; :'";
            let run = round.command(&format!("sleep {before} ms; {daemon}")).session();
            let run = run.through([&["timeout"], kill].concat()).start();
            run.until_gone("everything gone");
            run.wait().nothing_left();
        });
    }
}

#[test]
fn nothing_outlives_an_interpreter_that_panics() {
    // A panic ends the process by this signal.
    killing(Signal::SIGABRT, |run| send(shells(run).1, Signal::SIGABRT));
}

#[test]
fn nothing_outlives_an_interpreter_that_was_stopped_and_killed() {
    killing(Signal::SIGKILL, |run| {
        let (_, interpreter) = shells(run);
        send(interpreter, Signal::SIGSTOP);
        run.until("a stopped interpreter", |_| is_stopped(interpreter));
        send(interpreter, Signal::SIGKILL);
    });
}

#[test]
fn nothing_outlives_a_supervisor_that_was_killed_while_its_interpreter_was_stopped() {
    killing(Signal::SIGKILL, |run| {
        let (supervisor, interpreter) = shells(run);
        send(interpreter, Signal::SIGSTOP);
        run.until("a stopped interpreter", |_| is_stopped(interpreter));
        send(supervisor, Signal::SIGKILL);
    });
}

/// From linux/fcntl.h.
const F_SETSIG: i32 = 10;

/// File lease on a program. While the lease is held, opening or executing the file blocks.
struct Held(File);

impl Held {
    fn new(path: &Path) -> Self {
        let this = Self(File::open(path).expect("a file"));
        // A signal without effect reports a process that wants the file.
        this.control(F_SETSIG, libc::SIGURG);
        this.control(libc::F_SETLEASE, libc::F_WRLCK);
        this
    }

    fn is_wanted(&self) -> bool {
        self.control(libc::F_GETLEASE, 0) != libc::F_WRLCK
    }

    fn control(&self, command: i32, argument: i32) -> i32 {
        // SAFETY: a plain call on an open descriptor.
        let result = unsafe { libc::fcntl(self.0.as_raw_fd(), command, argument) };
        assert!(result >= 0, "{}", io::Error::last_os_error());
        result
    }
}

#[test]
fn nothing_outlives_a_kill_during_the_start_of_a_program() {
    rounds(&WAYS, |round| {
        let run = round.command("./late 60");
        let late = run.path("late");
        // Written by another process: a child forked by another thread could hold it open for
        // writing.
        let copied = Command::new("cp").arg("/bin/sleep").arg(&late).status();
        assert!(copied.expect("a command").success());
        let held = Held::new(&late);
        let run = run.session().start();
        run.until("a program that begins", |_| held.is_wanted());
        let (supervisor, interpreter) = shells(&run);
        send(interpreter, Signal::SIGKILL);
        // Long enough for two empty scans and an orderly end.
        let start = Instant::now();
        while run.processes().iter().any(|it| it.pid == supervisor)
            && start.elapsed() < Duration::from_millis(50)
        {
            thread::sleep(Duration::from_millis(1));
        }
        drop(held);
        run.until_gone("everything gone");
        run.wait().killed_by(Signal::SIGKILL).nothing_left();
    });
}

#[test]
fn a_signal_to_the_shell_ends_a_stopped_interpreter() {
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT] {
        let run = Ftsh::command("sh -c 'echo r > ready; exec sleep 60'").session().start();
        run.until_lines("ready", 1);
        let (_, interpreter) = shells(&run);
        send(interpreter, Signal::SIGSTOP);
        run.until("a stopped interpreter", |_| is_stopped(interpreter));
        run.signal(signal);
        run.wait().killed_by(signal).nothing_left();
    }
}

#[test]
fn a_script_of_any_name_runs_once() {
    // The kernel keeps 15 bytes of a name. Some names are cut inside a character, others are not
    // UTF-8 at all.
    for name in [
        "проверка-почты.ftsh",
        "sauvegarde-été.ftsh",
        "sauvegarde-\\351t\\351.ftsh",
        "\\377",
        "a b  c = d.ftsh",
        "a\\nb",
    ] {
        let script = format!(
            "#!{}\necho ran >> log; sh -c 'cmp /proc/$1/comm /proc/$PPID/comm' sh $$",
            crate::support::FTSH
        );
        let start = "n=$(printf \"$1\"); cp prog \"$n\"; exec \"./$n\"";
        let finished = Ftsh::command(&format!("sh -c '{start}' sh '{name}'"))
            .program("prog", &script)
            .limit(Duration::from_secs(20))
            .success();
        assert_eq!(finished.read("log"), "ran\n", "{name}: {}", finished.story());
    }
}

#[test]
fn nothing_outlives_a_shell_at_a_terminal_without_job_control() {
    for round in 0..rounds::count() {
        let mark = format!("{MARK}={}-stopped-{round}", std::process::id());
        let (name, value) = mark.split_once('=').expect("a mark has a value");
        let script = "sh -c 'setsid sleep 60 & echo \"ready.\"; sleep 60'";
        let variables = [(name, value), ("TERM", "dumb")];
        let wrapper = "\"$@\"; echo over.";
        let mut user =
            User::start(&["-c", &format!("echo $$.; {script}")], &variables, 80, Some(wrapper));
        let supervisor = user.sees(".").trim().parse().expect("a process id");
        user.sees("ready.");
        let interpreter = child_of(supervisor);
        send(interpreter, Signal::SIGSTOP);
        user.awaits("a stopped interpreter", |_| is_stopped(interpreter));
        send(supervisor, Signal::SIGKILL);
        user.sees("over.");
        let others = || marked(&mark).into_iter().filter(|it| !it.command.starts_with("bash"));
        user.awaits("everything gone", |_| others().count() == 0);
    }
}

#[test]
fn nothing_outlives_a_nested_shell_that_was_killed() {
    rounds(&WAYS, |round| {
        let inner = "ftsh -c \"sh -c 'trap : TERM; setsid sleep 60 & echo r >> ready; sleep 60'\"";
        let script = format!("try 1 time; {inner}; catch; echo $error_kind $error_code; end");
        let (_, run) = after(round, &script, 1, |run| {
            let nested = run.processes().into_iter().filter(|process| {
                process.command.contains(" -c sh -c ") && process.pid != run.pid().as_raw()
            });
            let nested: Vec<i32> = nested.map(|process| process.pid).collect();
            // The first of them was started by the outer shell.
            send(*nested.iter().min().expect("a nested shell"), Signal::SIGKILL);
        });
        let finished = run.wait();
        finished.expect_code(0);
        assert_eq!(finished.text(), "signal 137\n", "{}", finished.story());
        finished.nothing_left();
    });
}

#[test]
fn a_program_that_replaces_the_shell_has_the_state_of_a_command() {
    // The C library ignores its signals 32 and 33 in the programs that tests start.
    let look = r"grep -E '^Sig(Blk|Ign|Cgt|Pnd)' /proc/self/status | sed 's/[0-9a-f]\{2\}\(.\{7\}\)$/--\1/'; ls /proc/self/fd";
    let shell = |script| Ftsh::script(script).file("look", look);
    let (command, replacement) = (shell("sh look").run(), shell("exec sh look").run());
    assert!(command.text().contains("SigBlk:"));
    assert_eq!(command.text(), replacement.text());
    let replacement = shell("exec sh look").blocking_all().run();
    assert_eq!(command.text(), replacement.text(), "all signals blocked at the start");
}
