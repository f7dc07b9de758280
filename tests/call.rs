//! `--answer` and `--call-home`: jobs of queues without streams. `queue` plays the queue.

use nix::sys::signal::Signal;

use crate::support::Ftsh;
use crate::support::run::{Finished, Running};

const QUEUE: &str = include_str!("carriers/queue");

/// Returns a run of a command as a job that the queue starts in this mode.
fn job(mode: &str, command: &[&str]) -> Ftsh {
    let words = ["--answer", "--", "./queue", mode];
    Ftsh::new().program("queue", QUEUE).args(words).args(command)
}

/// Returns a run of a command of a job, inside a command line of `sh`. `JOB` stands for the head.
fn piped(line: &str, mode: &str, command: &str) -> Ftsh {
    let head = format!("ftsh --answer -- ./queue {mode} sh -c '{command}'");
    let line = format!("#!/bin/sh\n{}\n", line.replace("JOB", &head));
    Ftsh::command("./line").program("queue", QUEUE).program("line", &line)
}

/// Waits until head and job have ended.
fn ended(run: Running) -> Finished {
    run.until_gone("head and job");
    run.wait()
}

#[test]
fn streams_and_the_status_travel() {
    // More than the window of a stream.
    let input: Vec<u8> = (0..1_000_000_u32).map(|it| (it ^ (it >> 8)) as u8).collect();
    let command = ["sh", "-c", "cat; echo \"$1\" >&2; exit 7", "sh", "a  b"];
    for mode in ["once", "stays"] {
        let run = ended(job(mode, &command).stdin(&input).start());
        run.expect_code(7);
        assert!(run.stdout == input, "{} bytes", run.stdout.len());
        run.expect_stderr("queued a job\n");
        run.expect_stderr("a  b\n");
        assert_eq!((&*run.read("statuses"), &*run.read("job.out")), ("7\n", ""));
    }
}

#[test]
fn output_arrives_before_the_end_of_the_input() {
    let command = ["sh", "-c", "read x; echo \"got $x\"; cat; echo end"];
    let mut run = job("once", &command).stdin_stays_open().start();
    run.write(b"one\n");
    run.until("the answer", Running::has_output);
    run.write(b"two\n");
    run.close_input();
    let run = ended(run);
    run.expect_stdout(b"got one\ntwo\nend\n");
    run.expect_code(0);
}

#[test]
fn only_the_first_call_runs_the_command() {
    let command = ["sh", "-c", "echo b >> begun; until [ -e second ]; do sleep 0.01; done"];
    let run = ended(job("twice", &command).start());
    run.expect_code(0);
    assert_eq!((&*run.read("begun"), &*run.read("statuses")), ("b\n", "0\n0\n"));
    assert!(run.read("job.out").contains("no coordinator waits for this call at 127.0.0.1:"));
}

#[test]
fn a_stranger_is_no_job() {
    let run = ended(job("stranger", &["echo", "hi"]).start());
    run.expect_stdout(b"hi\n");
    assert!(!run.directory.path().join("stranger").exists());
    assert!(run.read("statuses").ends_with("\n0\n"), "{}", run.read("statuses"));
}

#[test]
fn silent_strangers_do_not_hold_the_job_up() {
    let run = job("silent", &["echo", "hi"]).start();
    run.until_lines("home", 1);
    let home = std::fs::read_to_string(run.directory().join("home")).expect("a file");
    let (address, _) = home.split_once('/').expect("an address");
    let strangers = [(); 2].map(|()| std::net::TcpStream::connect(address).expect("a connection"));
    std::fs::write(run.directory().join("connected"), "").expect("a file");
    let run = ended(run);
    run.expect_stdout(b"hi\n");
    drop(strangers);
}

#[test]
fn the_word_may_be_in_a_file_and_does_not_reach_the_command() {
    let command = ["sh", "-c", "echo \"${FTSH_CALL_HOME-unset}\""];
    for mode in ["once", "file"] {
        ended(job(mode, &command).start()).expect_stdout(b"unset\n");
    }
}

#[test]
fn the_end_of_the_head_ends_the_command() {
    // The command and its daemon ignore the first signal.
    let command = ["sh", "-c", "trap '' TERM; setsid sleep 1000 & echo up; sleep 1000; sleep 1000"];
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let run = job("once", &command).env("FTSH_KILL_TIMEOUT", "1").start();
        run.until("the command", Running::has_output);
        run.signal(signal);
        ended(run).killed_by(signal);
    }
}

/// A blocked signal would wait for the kill timeout.
#[test]
fn signals_reach_the_command() {
    let run = job("once", &["sh", "-c", "echo up; exec sleep 1000"]);
    let run = run.env("FTSH_KILL_TIMEOUT", "1000").start();
    run.until("the command", Running::has_output);
    run.signal(Signal::SIGTERM);
    let run = ended(run);
    assert_eq!(run.read("statuses"), "143\n");
}

#[test]
fn the_end_of_the_job_ends_the_head() {
    let run = ended(job("once", &["sh", "-c", "kill -9 $PPID; cat"]).stdin_stays_open().start());
    run.expect_code(75);
    run.expect_stderr("the connection to the job is broken");
    // The queue ends the command.
    let run = ended(job("once", &["sh", "-c", "kill -TERM $PPID; sleep 1000"]).start());
    run.expect_code(143);
}

#[test]
fn what_the_command_leaves_behind_is_killed() {
    let run = ended(job("once", &["sh", "-c", "setsid sleep 1000 & echo up"]).start());
    run.expect_stdout(b"up\n");
    run.expect_code(0);
}

#[test]
fn a_job_that_never_calls_is_waited_for() {
    let run = job("never", &["true"]).start();
    run.until_lines("waiting", 1);
    run.until("the listener", |run| run.processes().len() == 1);
    run.signal(Signal::SIGTERM);
    ended(run).killed_by(Signal::SIGTERM);
}

#[test]
fn a_failed_submission_ends_the_head() {
    let run = ended(job("fails", &["true"]).start());
    run.expect_code(3);
    assert!(run.stderr.ends_with(b"there is no such queue\n"), "{}", run.story());
    Ftsh::new().args(["--answer", "--", "./none"]).refused(&["can't run `./none`"]);
    Ftsh::new().args(["--answer"]).refused(&["need a command after `--`"]);
    let everywhere = ["--answer", "0.0.0.0", "--", "true"];
    Ftsh::new().args(everywhere).refused(&["no job can call 0.0.0.0"]);
    Ftsh::new().args(["--answer", "here", "--", "true"]).refused(&["'here'", "invalid IP address"]);
}

#[test]
fn a_call_without_a_head_runs_nothing() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let home = format!("{address}/{}", "0".repeat(32));
    Ftsh::new()
        .args(["--call-home", &home, "--", "touch", "ran"])
        .stderr("so nothing was run")
        .success()
        .nothing_left();
    for home in ["", "127.0.0.1:1", "/00", "@none"] {
        Ftsh::new().args(["--call-home", home, "--", "true"]).failure(2);
    }
}

#[test]
fn a_missing_command_is_reported() {
    let run = ended(job("once", &["./none"]).stdin("unread").start());
    run.expect_code(127);
    run.expect_stderr("ftsh: can't run `./none`: ");
}

#[test]
fn lost_streams_are_reported() {
    let run = ended(piped("JOB > /dev/full", "once", "echo lost").start());
    run.expect_code(1);
    run.expect_stderr("can't write to standard output: no space left on device [output]");
    let run = ended(piped("JOB > /dev/full", "once", "echo lost; exit 7").start());
    run.expect_code(7);
    // The input of the command does not end before the command.
    let run = ended(piped("JOB < /", "once", "cat; touch complete").start());
    run.expect_stderr("can't read standard input: is a directory");
    run.expect_code(143);
    assert!(!run.directory.path().join("complete").exists());
    // A closed stream has no content.
    ended(piped("JOB <&-", "once", "cat").start()).expect_code(0);
}

#[test]
fn readers_are_independent() {
    // The end of a reader ends the writer.
    let run = ended(piped("JOB | head -n 1", "once", "yes").start());
    run.expect_stdout(b"y\n");
    // The reader of one stream waits for the other stream.
    let reader = "JOB 2>errors | { until grep -q full errors; do sleep 0.01; done; wc -c; }";
    let writer = "head -c 3000000 /dev/zero & \
                  until grep -q State:.S /proc/$!/status; do sleep 0.01; done; echo full >&2; wait";
    ended(piped(reader, "once", writer).start()).expect_stdout(b"3000000\n");
    // The end of the reader of standard input ends the writer.
    let run = ended(piped("yes | JOB", "once", "read x; echo $x").start());
    run.expect_stdout(b"y\n");
}
