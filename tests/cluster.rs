//! Branches on other machines. A program named `ssh` plays the machines and runs everything here.

use std::fs;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::Ftsh;
use crate::support::run::Finished;

/// Program in the place of `ssh`.
pub(crate) const SSH: &str = include_str!("support/ssh");
/// Program in the place of an `ssh` whose connection can break.
const CUT_OFF: &str = include_str!("support/ssh-cut-off");

/// Returns a run whose `ssh` stays on this machine. Leftover processes are found by a variable of
/// their environment.
pub(crate) fn with_ssh(run: Ftsh) -> Ftsh {
    let run = run.program("bin/ssh", SSH);
    let path = std::env::var("PATH").expect("a path");
    let path = format!("{}:{path}", run.path("bin").display());
    run.env("PATH", path)
}

fn script(text: &str) -> Ftsh {
    with_ssh(Ftsh::script(text))
}

#[test]
fn branches_run_elsewhere_and_print_here() {
    script(
        "y=outside\nfunction f; return $1 .add. 1; end\n\
         forall x in 1 2 3 on ssh \"h1 h2*2\" output grouped in order\n\
         z=f($x)\necho $x $y $z\nsh -c 'echo error $0 >&2' $x\nend",
    )
    .stdout("1 outside 2\n2 outside 3\n3 outside 4\n")
    .stderr("error 1")
    .stderr("error 3")
    .success()
    .nothing_left();
}

#[test]
fn output_of_any_size_and_content_arrives_unchanged() {
    let run =
        script("forall x in a on ssh h\nseq 200000\nprintf '\\0\\377\\036ftsh:'\nend").success();
    let mut expected: Vec<u8> =
        (1..=200_000).flat_map(|it| format!("{it}\n").into_bytes()).collect();
    expected.extend(b"\0\xff\x1eftsh:");
    assert!(run.stdout == expected, "{} bytes", run.stdout.len());
}

#[test]
fn failures_keep_their_places_and_codes() {
    script("forall x in a b on ssh \"h*2\"\nsh -c 'exit 7'\nend")
        .stderr("script.ftsh:")
        .failure(7)
        .nothing_left();
    let run = script(
        "try 3 times every 1 ms\nforall x in a on ssh h\necho $attempt >> times\nfalse\nend\nend",
    )
    .failure(1);
    assert_eq!(run.read("times"), "1\n2\n3\n");
    script("try\nforall x in a b keep going on ssh \"h*2\"\nfalse\nend\ncatch\necho $error_kind $failed\nend")
        .stdout("exit a b\n")
        .success();
}

#[test]
fn a_limit_leaves_nothing_anywhere() {
    let run = script(
        "try for 3 seconds or 1 time\nforall x in a b c on ssh \"h*3\"\n\
         sh -c 'setsid sleep 1000 & echo r >> ready; exec sleep 1000'\nend\nend",
    )
    .failure(124);
    run.nothing_left();
    assert_eq!(run.read("ready").lines().count(), 3);
    assert!(run.within(Duration::from_secs(8)), "{}", run.story());
}

#[test]
fn a_signal_leaves_nothing_anywhere_and_cleans_up_there() {
    let run = script(
        "forall x in a b c on ssh \"h*3\"\ntry\n\
         sh -c 'setsid sleep 1000 & echo r >> ready; exec sleep 1000'\n\
         finally\necho cleaned $x >> cleaned\nend\nend",
    )
    .start();
    run.until_lines("ready", 3);
    run.signal(Signal::SIGTERM);
    let finished = run.wait();
    finished.killed_by(Signal::SIGTERM).nothing_left();
    let mut cleaned: Vec<_> = finished.read("cleaned").lines().map(ToOwned::to_owned).collect();
    cleaned.sort();
    assert_eq!(cleaned, ["cleaned a", "cleaned b", "cleaned c"]);
}

#[test]
fn a_failure_cancels_the_others_wherever_they_are() {
    let run = script(
        "forall x in a b on ssh \"h*2\"\nif $x .eq. a\nsh -c 'echo r >> ready; exec sleep 1000'\n\
         else\nwhile .not. .succeeds. (test -s ready)\nsleep 10 ms\nend\nfalse\nend\nend",
    )
    .failure(1);
    run.nothing_left();
}

#[test]
fn a_dead_head_leaves_nothing_anywhere() {
    let run = script(
        "forall x in a b on ssh \"h*2\"\n\
         sh -c 'setsid sleep 1000 & echo r >> ready; exec sleep 1000'\nend",
    )
    .start();
    run.until_lines("ready", 2);
    run.signal(Signal::SIGKILL);
    // The daemon does not delay the end.
    run.until_gone("the end of all");
    run.wait().killed_by(Signal::SIGKILL);
}

#[test]
fn the_work_of_a_dead_node_moves_to_others() {
    // The connection breaks, with all of the node's connections.
    let text = "forall x in a b on ssh \"h1 h2 h3\" retry lost 2 times\n\
                echo $x >> begun\n\
                if $x .eq. a .and. .not. .exists. died\n\
                touch died\nsh -c 'kill -9 $(cat node.h1); sleep 1000'\nend\nend";
    let run = script(text).options(["-t", "6", "--lease", "1s", "-l", "20"]).run();
    run.nothing_left();
    let story = run.story();
    // The lease and the full kill timeout, which the node has too.
    assert!(run.elapsed > Duration::from_secs(7), "{story}");
    assert!(story.contains("is unknown: the connection to it ended"), "{story}");
    assert_eq!(run.read("begun").lines().count(), 3, "{story}");
}

#[test]
fn unreachable_hosts_are_avoided() {
    let run = script("forall x in 1 .to. 6 on ssh \"down h*2\"\necho $x >> done\nend")
        .options(["-l", "10"])
        .success();
    assert_eq!(run.read("done").lines().count(), 6);
    run.expect_stderr("down did not run the branch: ssh: connect to host down");
    // The only host: limits hold, and the report names the reason.
    script("try for 2 seconds\nforall x in a on ssh down\ntrue\nend\nend")
        .stderr("connect to host down")
        .failure(124);
}

#[test]
fn results_and_the_summary_name_the_machines() {
    let text = "forall x in 1 .to. 6 keep going on ssh \"down h1 h2*2\"\necho $x >> done\nend\n\
                forall x in here\ntrue\nend";
    for file in ["r", "r.tsv"] {
        let run = script(text).options(["-l", "0", "--summary", "--results", file]).success();
        let results = run.read(file);
        let of = |host: &str| match file {
            "r" => results.matches(&format!(",\"node\":\"{host}\"}}\n")).count(),
            _ => results.matches(&format!("\t{host}\t")).count(),
        };
        assert_eq!(results.matches("\"node\"").count(), if file == "r" { 6 } else { 0 });
        assert_eq!((of(":"), of("down")), (usize::from(file != "r"), 0), "{results}");
        assert_eq!(of("h1") + of("h2"), 6, "{results}");
        run.expect_stderr(
            "\n  machines  2 used, 1 avoided for a while\n    down: no branch, avoided ",
        );
        run.expect_stderr(" refused): ssh: connect to host down port 22: Connection refused\n");
        for host in ["h1", "h2"] {
            let branches = of(host);
            let noun = if branches == 1 { "branch" } else { "branches" };
            run.expect_stderr(&format!("\n    {host}: {branches} {noun}\n"));
        }
    }
}

#[test]
fn a_lost_branch_counts_on_both_machines() {
    let text = "forall x in a on ssh \"h1 h2\" retry lost 2 times\n\
                if .not. .exists. died\ntouch died\nsh -c 'kill -9 $(cat node.h1); sleep 1000'\nend\nend";
    let options = ["-l", "0", "-t", "3", "--lease", "1s", "--summary", "--results=r"];
    let run = script(text).options(options).success();
    run.expect_stderr("\n    h1: 1 branch, avoided once (1 lost)\n    h2: 1 branch\n");
    assert!(run.read("r").contains(",\"node\":\"h2\"}"), "{}", run.story());
}

#[test]
fn an_impossible_branch_fails_at_once() {
    for (on, message) in [
        ("ssh ''", "expected a list of hosts"),
        ("ssh 'h*0'", "`h*0` needs a number of places"),
        ("slurm '-n 2'", "a branch is one task on one node"),
        ("slurm '--mem=4G --label'", "the streams of a branch are connected to this shell"),
        ("slurm --version", "the branch would not run"),
        ("slurm 'mem=4G'", "`mem=4G` is not an option of `srun`"),
    ] {
        // Errors known in advance are reported before anything runs.
        script(&format!("echo begun\nforall x in a on {on}\ntrue\nend")).refused(&[message]);
        let whole = on.replace('\'', "");
        if whole != "ssh " {
            script("echo begun").options(["--on", &whole]).refused(&["--on", message]);
        }
        let late = format!("forall x in a on {}\ntrue\nend", on.replacen(' ', " $empty", 1));
        script(&format!("empty=''\n{late}")).stderr(message).failure(75);
    }
    let empty = script("forall x in a on slurm\ntrue\nend").env("PATH", "/nowhere");
    empty.stderr("slurm did not run the branch: ").failure(75);
    script("try 1 time atomic\nforall x in a on ssh h\ntrue\nend\nend")
        .stderr("a branch inside an atomic attempt cannot run on another machine")
        .failure(75);
}

#[test]
fn a_whole_run_can_be_sent_with_its_inner_branches() {
    let text = "forall x in a b\nforall y in 1 2\necho $x$y >> all\nend\nend";
    let run = script(text).options(["--on", "ssh h*2", "-l", "30"]).success();
    let mut all: Vec<_> = run.read("all").lines().map(ToOwned::to_owned).collect();
    all.sort();
    assert_eq!(all, ["a1", "a2", "b1", "b2"]);
    assert_eq!(run.story().matches("branch begins on h").count(), 2);
    script("forall x in a\ntrue\nend").env("FTSH_ON", "nosuch").refused(&["FTSH_ON", "slurm"]);
}

#[test]
fn a_local_engine_process_may_end_by_itself() {
    // The engine has no branch left, and takes a while to end.
    let slow = "#!/bin/sh\nexec 2> /dev/null\ntrap 'sleep 0.5; echo over > over; exit' TERM\n\
                echo r >> ready\nwhile :; do sleep 0.01; done\n";
    let run = script("forall x in a on ssh h\ntrue\nend").program("bin/ssh", slow).start();
    run.until_lines("ready", 1);
    run.signal(Signal::SIGTERM);
    let finished = run.wait();
    finished.killed_by(Signal::SIGTERM).nothing_left();
    assert_eq!(finished.read("over"), "over\n");
    assert!(finished.within(Duration::from_secs(5)), "{}", finished.story());
}

#[test]
fn a_bound_run_ends_with_its_thread() {
    let text = "forall x in a on ssh h\nsh -c 'echo r >> ready; exec sleep 1000'\nend";
    let begin = || {
        let run = script(text).bound().start();
        run.until_lines("ready", 1);
        run
    };
    let run = std::thread::spawn(begin).join().expect("a run");
    run.until_gone("the end of all");
    run.wait().killed_by(Signal::SIGKILL);
}

/// Returns the names in the directory of a program that was sent along.
fn sent_to(directory: &Path) -> Vec<String> {
    let names = fs::read_dir(directory).expect("a directory").filter_map(Result::ok);
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with("ftsh.")).collect()
}

/// Script that prints the program that started it, and descriptors that lead there.
const TELL: &str = "sh -c 'readlink /proc/$PPID/exe; ls -l /proc/self/fd | grep -c deleted; true'";

#[test]
fn a_sent_program_leaves_nothing() {
    let text = format!("forall x in a b on ssh \"h*2\" output grouped\n{TELL}\nend");
    for how in [script(&text).options(["--ship"]), script(&text).env("FTSH_SHIP", "1")] {
        let run = how.success();
        run.nothing_left();
        let (text, directory) = (run.text(), run.directory.path());
        let place = format!("{}/ftsh.", directory.display());
        let lines: Vec<_> = text.lines().collect();
        let is_sent = |line: &str| line.starts_with(&place) && line.ends_with(" (deleted)");
        assert!(matches!(lines[..], [a, "0", b, "0"] if is_sent(a) && is_sent(b)), "{text}");
        assert_eq!(sent_to(directory), Vec::<String>::new());
    }
}

#[test]
fn a_partly_sent_program_is_removed_with_the_head() {
    let run = script("forall x in a on ssh h\ntrue\nend").options(["--ship"]);
    let run = run
        .program("bin/head", "#!/bin/sh\necho r >> \"${0%/*}/../ready\"\nexec sleep 1000\n")
        .start();
    run.until_lines("ready", 1);
    assert_eq!(sent_to(run.directory()), Vec::<String>::new());
    run.signal(Signal::SIGKILL);
    run.until_gone("the end of all");
    run.wait().killed_by(Signal::SIGKILL);
}

#[test]
fn a_program_that_cannot_run_is_reported() {
    let real = "/usr/bin/head";
    let foreign =
        format!("#!/bin/sh\nprintf '#!/nowhere\\n'\nexec {real} -c $(($2 - 11)) /dev/zero\n");
    for (head, message) in [
        ("#!/bin/sh\n", "ftsh was sent and did not arrive whole in "),
        (foreign.as_str(), "ftsh was sent and cannot be executed in "),
    ] {
        let run = script("forall x in a on ssh h\ntrue\nend").options(["--ship", "-l", "10"]);
        let run = run.program("bin/head", head).start();
        run.until(message, |run| run.errors().contains(message));
        run.signal(Signal::SIGTERM);
        let finished = run.wait();
        finished.killed_by(Signal::SIGTERM).nothing_left();
        assert_eq!(sent_to(finished.directory.path()), Vec::<String>::new());
    }
}

/// Returns the peak memory of a process, in bytes.
fn most_memory(process: Pid) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("its size");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
}

#[test]
fn unread_output_uses_no_memory() {
    const SIZE: u64 = 256 << 20;
    let text = format!(
        "forall x in a on ssh h\nsh -c 'head -c {SIZE} /dev/zero; echo r >> printed'\nend |\n\
         sh -c 'while ! test -e go; do sleep 0.01; done; wc -c'"
    );
    let run = script(&text).start();
    run.until_lines("printed", 1);
    let memory = most_memory(run.interpreter().expect("it is there"));
    assert!(memory < SIZE / 2, "{memory} bytes");
    fs::write(run.directory().join("go"), "").expect("a file");
    let finished = run.wait();
    finished.expect_code(0);
    finished.expect_stdout(format!("{SIZE}\n").as_bytes());
}

#[test]
fn the_head_waits_only_for_living_engines() {
    let run = Ftsh::script("forall x in a on ssh h\ntrue\nend");
    let path = format!("{}:/usr/bin:/bin", run.path("bin").display());
    let run = run.program("bin/ssh", "#!/bin/sh\necho r >> ready\nexec sleep 1000\n");
    let run = run.env("PATH", path).start();
    run.until_lines("ready", 1);
    run.signal(Signal::SIGTERM);
    let finished = run.wait();
    finished.killed_by(Signal::SIGTERM).nothing_left();
    assert!(finished.within(Duration::from_secs(9)), "{}", finished.story());
}

#[test]
fn no_output_is_lost_while_unread() {
    script("forall x in 1 .to. 4 output tagged on ssh \"h*4\"\nseq 30000\nend | sh -c 'sleep 1; wc -l'")
        .stdout("120000\n")
        .success();
}

/// Script that runs forever the first time, ignores signals, and later reports if it still runs.
const STUBBORN: &str = "trap '' TERM
if [ -e pid ]; then
    kill -0 $(cat pid) 2> /dev/null && echo overlap
    exit 0
fi
echo $$ > pid
echo r >> ready
while :; do sleep 0.05; done
";

const AGAIN: &str = "try 2 times every 1 ms\nforall x in a on ssh h\nsh job\nend\nend";
const RECORDED: [&str; 5] = ["--journal=j", "-t", "2", "--lease", "1s"];

fn next_start(finished: Finished) -> Ftsh {
    let path = finished.directory.path().join("bin");
    let path = format!("{}:{}", path.display(), std::env::var("PATH").expect("a path"));
    Ftsh::after(finished).env("PATH", path).options(RECORDED).arg("script.ftsh")
}

/// No process is left that could instruct a node, or learn of its end.
#[test]
fn a_resumed_head_waits_for_earlier_branches() {
    for text in ["forall x in a on ssh h retry lost 1 time\nsh job\nend", AGAIN] {
        let run = script(text).program("bin/ssh", CUT_OFF).file("job", STUBBORN);
        let run = run.options(RECORDED).start();
        run.until_lines("ready", 1);
        let interpreter = run.interpreter().expect("an interpreter");
        kill(run.pid(), Signal::SIGKILL).expect("it lives");
        // Without its head, the branch may have ended already.
        let _ = kill(interpreter, Signal::SIGKILL);
        let finished = run.leave();
        finished.killed_by(Signal::SIGKILL);
        let again = next_start(finished).stderr("may go on there for ").success();
        assert_eq!(again.text(), "");
        again.nothing_left();
    }
}

#[test]
fn a_resumed_head_waits_for_nothing_after_an_orderly_end() {
    let run = script(AGAIN).file("job", STUBBORN.replace("trap '' TERM\n", ""));
    let run = run.options(RECORDED).start();
    run.until_lines("ready", 1);
    run.signal(Signal::SIGTERM);
    let finished = run.wait();
    finished.killed_by(Signal::SIGTERM).nothing_left();
    let again = next_start(finished).success();
    assert!(!again.errors().contains("may go on"), "{}", again.story());
}
