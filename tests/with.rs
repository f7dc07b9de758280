//! `with` and real processes: nothing of the command outlives the group, and nothing of the group the
//! command.

use std::net::{Ipv4Addr, TcpListener};
use std::{fs, thread};

use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};
use rand::rngs::ChaCha8Rng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use crate::cookbook::Recipe;
use crate::resuming::{VICTIMS, again, killed};
use crate::support::run::Running;
use crate::support::sshd::Sshd;
use crate::support::{Ftsh, has, rounds};

/// Command that does not end by SIGTERM and leaves a daemon, and the start of a group that waits for
/// both.
const BESIDE: &str =
    "with sh -c 'trap : TERM; setsid sleep 60 & echo $$ $! > begun; sleep 60; sleep 60'
    while ! test -s begun; sleep 0.01 s; end
";

/// Command that writes the processes of [`BESIDE`] that are alive to a file.
const WHO_IS_ALIVE: &str =
    "sh -c 'for p in $(cat begun); do ! kill -0 $p 2> killed || echo $p >> alive; done'";

#[test]
fn the_command_ends_with_its_group() {
    let check = |script: &str, code: Option<i32>| {
        let script = format!("try\n{script}\nfinally\n{WHO_IS_ALIVE}\nend");
        let finished = Ftsh::script(&script).options(["-t", "0.1"]).run();
        assert_eq!(
            finished.status.and_then(|it| it.code()),
            code,
            "{script}\n{}",
            finished.story()
        );
        assert!(!finished.directory.path().join("alive").exists(), "{script}");
        finished.nothing_left();
    };
    for (group, code) in [
        ("sh -c true", Some(0)),
        ("sh -c 'exit 3'", Some(3)),
        ("exit 4", Some(4)),
        ("exit", Some(0)),
        ("kill -TERM $$; sleep 60", None),
        ("limit 50 ms -- sleep 60", Some(124)),
    ] {
        check(&format!("{BESIDE}{group}\nend"), code);
    }
    check(&format!("limit 1 s\n{BESIDE}sleep 60\nend\nend"), Some(124));
    check(&format!("for i in 1 2\n{BESIDE}break\nend\nend"), Some(0));
}

#[test]
fn the_group_ends_with_its_command() {
    for (command, code) in [
        ("sh -c 'exit 7'", 7),
        ("sh -c '(setsid sleep 60 &)'", 1),
        ("sh -c 'kill -9 $$'", 137),
        ("f", 5),
    ] {
        let script = format!(
            "function f; sleep 0.1; return 5; end
             with {command}; sh -c '(setsid sleep 60 &); sleep 60'; end"
        );
        Ftsh::script(script).failure(code).nothing_left();
    }
}

#[test]
fn a_command_that_cannot_start_fails_before_the_group() {
    for (command, code, error) in [
        ("nosuchprogram", 127, "nosuchprogram"),
        ("sleep 60 < missing", 1, "missing"),
        ("sleep 60 > missing/file", 1, "missing/file"),
        ("true | sleep 60 > missing/file", 1, "missing/file"),
        ("f > missing/file", 1, "missing/file"),
    ] {
        let script = format!("function f; sleep 60; end\nwith {command}; echo never; end");
        Ftsh::script(script).stdout("").stderr(error).failure(code).nothing_left();
    }
}

#[test]
fn a_command_that_waits_for_its_group_does_not_hold_it_up() {
    let script = "with cat < fifo > copy
        echo text > fifo
        while ! test -s copy; sleep 0.01 s; end
    end";
    let run = Ftsh::script(script);
    mkfifo(&run.path("fifo"), Mode::S_IRWXU).expect("a pipe");
    // The command may end before its group.
    let finished = run.run();
    finished.nothing_left();
    assert_eq!(finished.read("copy"), "text\n");
}

#[test]
fn the_command_is_a_branch_in_log_and_timeline() {
    let script = "with sh -c 'echo >> ready; exec sleep 60'
        while ! test -s ready; sleep 0.01 s; end
        echo in
    end";
    let finished = Ftsh::script(script).options(["-f", "log", "-l", "30", "--journal=j"]).success();
    let log = finished.read("log");
    let name = "with=sh -c 'echo >> ready; exec sleep 60'";
    assert!(log.contains(&format!("with: {name}")), "{log}");
    assert!(log.contains("canceled"), "{log}");
    let journal = finished.directory.path().join("j");
    let timeline = Ftsh::new().arg("--timeline").arg(journal).success().text();
    assert!(timeline.contains("with=sh -c"), "{timeline}");
    assert!(timeline.contains("group, line 2"), "{timeline}");
    let script = "with sh -c 'echo no luck >&2; exit 3'; sleep 60; end";
    Ftsh::script(script).stderr("no luck").stderr("with=sh -c").failure(3).nothing_left();
}

#[test]
fn a_lost_run_begins_both_again() {
    for victim in VICTIMS {
        let script = "try 2 times backoff none
            with sh -c 'echo >> commands; sleep 60'
                while ! sh -c 'test $(cat commands 2> /dev/null | wc -l) -ge $0' $attempt
                    sleep 0.01 s
                end
                STAYS
            end
        end
        sh -c 'wc -l < commands'";
        let before = killed(crate::resuming::recorded(script), victim);
        again(before).stdout("2\n").success().nothing_left();
    }
}

/// Processes to kill.
const KILLED: [&str; 4] = ["supervisor", "interpreter", "command", "group"];

/// Files that show how far a run is.
const EVENTS: [&str; 3] = ["script.ftsh", "command", "group"];

#[test]
fn nothing_outlives_a_kill_of_any_process() {
    let all = rounds::count() * 16;
    thread::scope(|scope| {
        for half in 0..2 {
            scope.spawn(move || (half..all).step_by(2).for_each(survive));
        }
    });
}

fn survive(number: usize) {
    let mut random = ChaCha8Rng::seed_from_u64(number as u64);
    let script = "try 2 times backoff none
        with sh -c 'trap : TERM; (setsid sleep 60 &); echo $$ > command; sleep 60; sleep 60'
            sh -c '(setsid sleep 60 &); echo $$ > group; sleep 60 & wait'
        finally
            sh -c '(setsid sleep 60 &)'
        end
    end";
    let run = Ftsh::script(script).options(["-t", "0.1"]).start();
    let event = *EVENTS.choose(&mut random).expect("an event");
    run.until_lines(event, 1);
    let signal = *[Signal::SIGKILL, Signal::SIGTERM].choose(&mut random).expect("a signal");
    let killed = *KILLED.choose(&mut random).expect("a process");
    let pid = match killed {
        "interpreter" => run.interpreter(),
        "command" | "group" => pid_in(&run, killed),
        _ => None,
    };
    // A process of an earlier attempt may be gone.
    let _ = kill(pid.unwrap_or(run.pid()), signal);
    // The command catches SIGTERM.
    let fails = killed == "group" || killed == "command" && signal == Signal::SIGKILL;
    if fails && random.random() {
        run.until("another attempt", |run| pid_in(run, killed) != pid || run.has_ended());
        let _ = kill(run.pid(), Signal::SIGTERM);
    } else if pid.is_some() && pid != run.interpreter() {
        let _ = kill(run.pid(), Signal::SIGTERM);
    }
    run.until_gone(&format!("kill {number}: {signal} to {killed} after {event}"));
    run.wait().nothing_left();
}

fn pid_in(run: &Running, file: &str) -> Option<Pid> {
    let text = fs::read_to_string(run.directory().join(file)).ok()?;
    text.trim().parse().ok().map(Pid::from_raw)
}

/// Returns a port that nothing uses now.
fn free_port() -> u16 {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    free.local_addr().expect("its number").port()
}

#[test]
fn a_test_against_a_real_database() {
    if !["initdb", "postgres", "pg_isready", "psql"].into_iter().all(has) {
        return;
    }
    let run = |command: &str| {
        // The server does not run as root.
        let recipe = Recipe::of("A test against a real database", Ftsh::new().unprivileged());
        recipe.args(&["--", "sh", "-c", command])
    };
    let query = "psql -qAt -d postgres -c 'select 6 * 7'";
    let finished = run(query).stdout("42\n").success();
    let left = fs::read_dir(finished.directory.path()).expect("a directory");
    let names: Vec<_> = left.map(|it| it.expect("a file").file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().starts_with("tmp")), "{names:?}");
    run(&format!("{query} > out; exit 3")).failure(3);
    // A session that would outlive the test.
    run("psql -qAt -d postgres -c 'select pg_sleep(60)' & exit 4").failure(4);
    run("kill -9 $(head -n 1 \"$PGHOST/data/postmaster.pid\"); sleep 60").failure(137);
}

#[test]
fn a_web_server() {
    if !["python3", "curl"].into_iter().all(has) {
        return;
    }
    let port = free_port();
    let script = format!(
        "echo page > page
        with python3 -m http.server --bind 127.0.0.1 {port} >& requests
            try for 30 seconds every 10 ms -- curl -sSf http://127.0.0.1:{port}/page
        end
        if curl -s http://127.0.0.1:{port}/page > again; failure \"it is still there\"; end"
    );
    Ftsh::script(script).stdout("page\n").success().nothing_left();
}

#[test]
fn a_tunnel() {
    let Some(sshd) = Sshd::start("") else { return };
    // Through the tunnel, the server greets.
    let script = "args port server
    with ssh -N -o ExitOnForwardFailure=yes -L \"127.0.0.1:$port:127.0.0.1:$server\" node
        try for 30 seconds every 10 ms
            timeout 5 bash -c 'read -r line < \"/dev/tcp/127.0.0.1/$0\" && echo \"$line\"' \"$port\" -> line
        end
        echo $line
    end
    if bash -c ': < \"/dev/tcp/127.0.0.1/$0\"' \"$port\" 2> closed; failure open; end";
    let run = |server: &str| {
        let run = Ftsh::script(script).arg(free_port().to_string()).arg(server);
        sshd.reached_by(run, "")
    };
    let finished = run(&sshd.port()).success();
    assert!(finished.text().starts_with("SSH-2.0"), "{}", finished.text());
    finished.nothing_left();
    // A tunnel to nowhere, and one that cannot begin.
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = taken.local_addr().expect("its number").port().to_string();
    let refused = Ftsh::script(script).arg(&port).arg(sshd.port());
    sshd.reached_by(refused, "").stdout("").failure(255).nothing_left();
}
