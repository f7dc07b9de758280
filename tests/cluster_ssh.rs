//! Branches sent by a real `ssh` to a real `sshd` on this machine.

use nix::sys::signal::Signal;

use crate::support::Ftsh;
use crate::support::run::Running;
use crate::support::sshd::Sshd;

/// Command that kills the server process of a branch's connection.
const CUT: &str = "p=$$; until read -r comm < /proc/$p/comm && test $comm = sshd; do \
                   set -- $(cat /proc/$p/stat); p=$4; done; kill -9 $p";

#[test]
fn branches_run_on_hosts_and_their_output_arrives_at_once() {
    let Some(sshd) = Sshd::start("") else { return };
    let text =
        "forall x in a b on ssh \"h1 h2\"\necho $x\nwhile .not. .exists. go\nsleep 10 ms\nend\nend";
    let run = sshd.reached_by(Ftsh::script(text), "").options(["-l", "30"]).start();
    run.until("output", Running::has_output);
    std::fs::write(run.directory().join("go"), "").expect("a file");
    let finished = run.wait();
    finished.expect_code(0);
    finished.nothing_left();
    let mut lines: Vec<_> = finished.text().lines().map(ToOwned::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["a", "b"]);
    finished.expect_stderr("branch begins on h1");
    finished.expect_stderr("branch begins on h2");
}

#[test]
fn failures_keep_their_kinds() {
    let Some(sshd) = Sshd::start("") else { return };
    let ends = [
        ("sh -c 'exit 7'", 7, "exited with 7"),
        ("sh -c 'kill -TERM $$'", 143, "SIGTERM"),
        ("no-such-program", 127, "no-such-program"),
        ("exit 255", 255, ""),
        ("with sh -c 'setsid sleep 100 & sleep 100'\nsh -c 'exit 9'\nend", 9, "exited with 9"),
        ("with sh -c 'exit 8'\nsh -c 'setsid sleep 100 & sleep 100'\nend", 8, "exited with 8"),
        ("try for 1 second or 1 time\nsleep 100\nend", 124, "script.ftsh:3"),
    ];
    for (body, code, message) in ends {
        let text = format!("forall x in a on ssh h\n{body}\nend");
        sshd.reached_by(Ftsh::script(text), "").stderr(message).failure(code).nothing_left();
    }
}

#[test]
fn a_limit_and_a_signal_leave_nothing() {
    let Some(sshd) = Sshd::start("") else { return };
    let body = "sh -c 'setsid sleep 1000 & echo r >> ready; exec sleep 1000'";
    let text =
        format!("try for 4 seconds or 1 time\nforall x in a b on ssh \"h*2\"\n{body}\nend\nend");
    let finished = sshd.reached_by(Ftsh::script(text), "").failure(124);
    finished.nothing_left();
    assert_eq!(finished.read("ready").lines().count(), 2);
    let text = format!("forall x in a b on ssh \"h*2\"\n{body}\nend");
    let run = sshd.reached_by(Ftsh::script(text), "").start();
    run.until_lines("ready", 2);
    run.signal(Signal::SIGTERM);
    run.wait().killed_by(Signal::SIGTERM).nothing_left();
}

#[test]
fn a_dead_head_leaves_nothing() {
    let Some(sshd) = Sshd::start("") else { return };
    let text = "forall x in a b on ssh \"h*2\"\n\
                sh -c 'setsid sleep 1000 & echo r >> ready; exec sleep 1000'\nend";
    let run = sshd.reached_by(Ftsh::script(text), "").start();
    run.until_lines("ready", 2);
    run.signal(Signal::SIGKILL);
    run.until_gone("the end of all");
    run.wait().killed_by(Signal::SIGKILL);
}

#[test]
fn a_broken_connection_loses_the_branch_and_allows_another_attempt() {
    let Some(sshd) = Sshd::start("") else { return };
    let text = format!(
        "forall x in a on ssh \"h1 h2\" retry lost 1 time\n\
         echo $x >> begun\n\
         if .exists. daemon\nsh -c 'kill -0 $(cat daemon) && echo left > left; true'\n\
         else\nsh -c 'setsid sleep 1000 & echo $! > daemon; {CUT}; sleep 1000'\nend\nend"
    );
    let run = sshd.reached_by(Ftsh::script(text), "");
    let finished = run.options(["-t", "0.5", "--lease", "2s", "-l", "20"]).success();
    finished.nothing_left();
    finished.expect_stderr("the result of the branch on h1 is unknown: the connection to it ended");
    assert_eq!(finished.read("begun"), "a\na\n");
    assert!(!finished.directory.path().join("left").exists(), "{}", finished.story());
}

#[test]
fn a_host_that_refuses_leaves_the_work_to_others() {
    let Some(sshd) = Sshd::start("") else { return };
    let text = "forall x in a b c d on ssh \"refused h*2\"\necho $x\nend";
    let finished = sshd.reached_by(Ftsh::script(text), "").success();
    assert_eq!(finished.text().lines().count(), 4);
    finished.expect_stderr("Connection refused");
    // A good host is found behind others, and no host is asked twice before.
    let text = "forall x in a on ssh \"bad1 bad2 bad3 bad4 good\"\necho $x\nend";
    let run = sshd.reached_by(Ftsh::script(text), "Host bad*\nPort 1").options(["-l", "10"]);
    let finished = run.stdout("a\n").success();
    assert_eq!(finished.errors().matches("Connection refused").count(), 4, "{}", finished.story());
}

#[test]
fn a_server_with_few_connections_is_not_overloaded() {
    let Some(sshd) = Sshd::start("MaxStartups 1") else { return };
    let text = "forall x in 1 .to. 6 on ssh \"h1*3 h2*3\"\necho $x\nend";
    let finished = sshd.reached_by(Ftsh::script(text), "").success();
    assert_eq!(finished.text().lines().count(), 6);
    assert!(sshd.log().contains("MaxStartups"), "{}", sshd.log());
}

#[test]
fn the_program_can_be_sent_along() {
    let Some(sshd) = Sshd::start("") else { return };
    let text = "forall x in a b c on ssh \"h1 h2*2\"\nsh -c 'readlink /proc/$PPID/exe'\nend";
    let finished = sshd.reached_by(Ftsh::script(text), "").options(["--ship"]).success();
    finished.nothing_left();
    let text = finished.text();
    let gone = text.lines().filter(|line| line.ends_with(" (deleted)")).count();
    assert_eq!(gone, 3, "{text}");
}

#[test]
fn a_sent_program_is_removed_after_a_broken_connection() {
    let Some(sshd) = Sshd::start("") else { return };
    let text = format!(
        "forall x in a on ssh \"h1 h2\" retry lost 1 time\n\
         if .not. .exists. daemon\nsh -c 'setsid sleep 1000 & echo $! > daemon; {CUT}; sleep 1000'\n\
         end\nend"
    );
    let run = sshd.reached_by(Ftsh::script(text), "");
    run.options(["--ship", "-t", "0.5", "--lease", "2s"]).success().nothing_left();
}
