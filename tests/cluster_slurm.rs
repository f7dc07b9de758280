//! Branches on the nodes of a real Slurm, where installed.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::panic::catch_unwind;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::unistd::Uid;

use crate::branch_files::nothing_hidden;
use crate::support::slurm::{FIRST_PORT, NODES, Slurm};

/// Command that leaves a daemon behind, reports its start, and continues.
const STAYS: &str = "sh -c '(setsid sleep 1000 &); echo r >> ready; exec sleep 1000'";

#[test]
fn ports_of_other_programs_are_free_for_a_cluster() {
    let ports = (FIRST_PORT + 1..).take(NODES);
    // Another program may hold a port already.
    let _held: Vec<_> =
        ports.map(|port| TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))).collect();
    let Some(slurm) = Slurm::start() else { return };
    slurm.script("forall x in a on slurm\necho $x\nend").stdout("a\n").success().nothing_left();
    slurm.nothing_left();
}

#[test]
fn a_daemon_that_cannot_start_is_reported_at_once() {
    let instead = |number| (number == 2).then_some("/nonexistent");
    let panic = match catch_unwind(|| Slurm::with(instead)) {
        Ok(slurm) => return assert!(slurm.is_none(), "the nodes have started"),
        Err(panic) => *panic.downcast::<String>().expect("a text"),
    };
    assert!(panic.contains("slurmd -D -N node2` has ended: Exited("), "{panic}");
    assert!(panic.contains("mount: "), "its log is shown: {panic}");
}

#[test]
fn tests_say_what_they_lack() {
    let test = "cluster_slurm::an_impossible_request_fails_at_once";
    let mut tests = Command::new(std::env::current_exe().expect("a program"));
    let output = tests.args(["--exact", test]).env("PATH", "/nonexistent").output();
    let output = output.expect("the tests run");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.starts_with("skipped: "), "{output:?}");
    let needs = if Uid::effective().is_root() { " needs slurmd\n" } else { " needs root, " };
    assert!(errors.contains(needs), "{errors}");
}

#[test]
fn branches_end_on_nodes_as_on_this_machine() {
    let Some(slurm) = Slurm::start() else { return };
    let text = "forall x in 1 .to. 8 on slurm output grouped in order\n\
                echo $x\nsh -c 'echo $0 $WORD $(pwd) >> places; echo error $0 >&2' $x\nseq 3\nend";
    let run = slurm.script(text).env("WORD", "word").success();
    run.nothing_left();
    let expected = (1..=8).map(|x| format!("{x}\n1\n2\n3\n")).collect::<Vec<_>>().concat();
    run.expect_stdout(expected.as_bytes());
    run.expect_stderr("error 8");
    let place = run.directory.path().canonicalize().expect("a directory");
    let places = run.read("places");
    for x in 1..=8 {
        assert!(places.contains(&format!("{x} word {}\n", place.display())), "{places}");
    }
    slurm.nothing_left();
    slurm
        .script("forall x in a b on slurm\nsh -c 'exit 7'\nend")
        .stderr("script.ftsh:")
        .failure(7)
        .nothing_left();
    slurm
        .script(
            "try\nforall x in a b keep going on slurm\nnosuchprogram\nend\ncatch\n\
             echo $error_kind $error_code $failed\nend",
        )
        .stdout("notfound 127 a b\n")
        .success();
    slurm
        .script("forall x in a on slurm '--partition=nosuch'\ntrue\nend")
        .stderr("artition")
        .failure(75);
    slurm.nothing_left();
}

#[test]
fn files_travel_to_nodes_and_back() {
    let Some(slurm) = Slurm::start() else { return };
    // The branches run at the same time: they need more processors than a node has.
    let text = "forall x in 1 .to. 8 on slurm takes lib large gives out/$x\n\
                mkdir out\nsh -c 'cat lib/deep/list large; echo $0' $x > out/$x\n\
                echo $x >> lib/deep/list\n\
                sh -c 'echo $SLURMD_NODENAME $(ls); echo >> \"$HERE/done\"\n\
                until [ $(wc -l < \"$HERE/done\") = 8 ]; do sleep 0.02; done'\nend";
    let large = (0..300_000).map(|number| format!("{number}\n")).collect::<Vec<_>>().concat();
    let run = slurm.script(text).file("lib/deep/list", "list\n").file("large", &large);
    let here = run.path("");
    let run = run.env("HERE", here).success();
    run.nothing_left();
    for x in 1..=8 {
        let given = run.read(&format!("out/{x}"));
        assert!(given == format!("list\n{large}{x}\n"), "{x}: {} bytes", given.len());
    }
    assert_eq!(run.read("lib/deep/list"), "list\n");
    let printed = run.text();
    let places = printed.lines().map(|line| line.split_once(' ').expect("a node and its files"));
    for (node, files) in places.clone() {
        assert_eq!(files, "large lib out", "on {node}");
    }
    let nodes = places.map(|(node, _)| node).collect::<BTreeSet<_>>();
    assert!(nodes.len() > 1, "{printed}");
    nothing_hidden(&run);
    // The process that removes the files of a node ends a moment after the last branch.
    slurm.wait("something is left on nodes", || slurm.running().is_empty());
    slurm.nothing_left();
}

/// Options of `srun` that start several tasks or number their output.
#[test]
fn a_branch_runs_once_with_any_options_of_srun() {
    let Some(slurm) = Slurm::start() else { return };
    let text = "forall x in a on slurm '-n 1 --ntasks-per-node=2 -D /tmp'\necho $x >> effects\necho $x\nend";
    let run = slurm.script(text).env("SLURM_LABELIO", "1").env("SLURM_NTASKS", "2");
    let run = run.env("SLURM_NNODES", "2").env("SLURM_STDINMODE", "none").stdout("a\n").success();
    assert_eq!(run.read("effects"), "a\n");
    slurm.nothing_left();
}

#[test]
#[ignore = "slow: `.ci/run` includes it"]
fn the_program_can_be_sent_to_nodes_without_it() {
    // The file in its place is not a program.
    let Some(slurm) = Slurm::with(|_| Some("/etc/hostname")) else { return };
    let text = "forall x in a b c on slurm\nsh -c 'readlink /proc/$PPID/exe'\nend";
    let run = slurm.script(text).options(["--ship"]).success();
    run.nothing_left();
    let text = run.text();
    assert_eq!(text.lines().filter(|line| line.ends_with(" (deleted)")).count(), 3, "{text}");
    slurm.nothing_left();
    // Without the file, the nodes refuse branches.
    let text = "try for 5 seconds or 1 time\nforall x in a on slurm\ntrue\nend\nend";
    slurm.script(text).stderr("execve(): ").failure(124).nothing_left();
    slurm.nothing_left();
}

#[test]
fn one_good_node_is_found_among_others() {
    let bad = |number| (number < NODES).then_some("/bin/false");
    let Some(slurm) = Slurm::with(bad) else { return };
    let text = "forall x in a b on slurm\nsh -c 'echo $SLURMD_NODENAME'\nend";
    let run = slurm.script(text).options(["-l", "20"]).stdout("node4\nnode4\n").success();
    for node in ["node1", "node2", "node3"] {
        let refusals = run.errors().matches(&format!("{node} did not run the branch")).count();
        assert!(refusals <= 2, "once for each branch: {}", run.story());
    }
    slurm.nothing_left();
}

#[test]
fn an_impossible_request_fails_at_once() {
    let Some(slurm) = Slurm::start() else { return };
    for (options, message) in [
        ("--mem=999G", "Requested node configuration is not available"),
        ("--nodelist=nosuch", "Invalid node name specified"),
    ] {
        let text = format!("try for 1 minute\nforall x in a on slurm '{options}'\ntrue\nend\nend");
        let run = slurm.script(&text).options(["-l", "10"]).start();
        run.until(message, |run| run.errors().contains(message));
        run.signal(Signal::SIGTERM);
        let finished = run.wait();
        assert!(finished.errors().matches(message).count() <= 3, "{}", finished.story());
        let text = format!("forall x in a on slurm '{options}'\ntrue\nend");
        slurm.script(&text).stderr(message).failure(75);
    }
    slurm.nothing_left();
}

#[test]
fn a_limit_leaves_nothing_on_any_node() {
    let Some(slurm) = Slurm::start() else { return };
    let text =
        format!("try for 10 seconds or 1 time\nforall x in 1 .to. 20 on slurm\n{STAYS}\nend\nend");
    let run = slurm.script(&text).failure(124);
    run.nothing_left();
    assert_eq!(run.read("ready").lines().count(), 16, "the others waited in the queue");
    // For a branch without a record, the report would quote the engine.
    assert!(!run.errors().contains("srun: "), "{}", run.errors());
    slurm.nothing_left();
}

#[test]
fn a_signal_leaves_nothing_on_any_node() {
    let Some(slurm) = Slurm::start() else { return };
    let text = format!(
        "forall x in 1 .to. 20 on slurm\ntry\n{STAYS}\nfinally\necho cleaned >> cleaned\nend\nend"
    );
    let run = slurm.script(&text).start();
    run.until_lines("ready", 16);
    run.signal(Signal::SIGTERM);
    let finished = run.wait();
    finished.killed_by(Signal::SIGTERM).nothing_left();
    assert_eq!(finished.read("cleaned").lines().count(), 16);
    slurm.nothing_left();
}

#[test]
#[ignore = "slow: `.ci/run` includes it"]
fn a_dead_head_leaves_nothing_on_any_node() {
    let Some(slurm) = Slurm::start() else { return };
    let text = format!("forall x in 1 .to. 20 on slurm\n{STAYS}\nend");
    for (supervisor, interpreter) in [(true, true), (false, true), (true, false)] {
        let run = slurm.script(&text).start();
        run.until_lines("ready", 16);
        let killed =
            [run.interpreter().filter(|_| interpreter), Some(run.pid()).filter(|_| supervisor)];
        for process in killed.into_iter().flatten() {
            nix::sys::signal::kill(process, Signal::SIGKILL).expect("a process");
        }
        run.until_gone("the end of all");
        // A queued job may still get a node, where it finds no head and ends.
        slurm.wait("something is left on nodes", || slurm.running().is_empty());
        slurm.nothing_left();
        let finished = run.wait();
        finished.killed_by(Signal::SIGKILL);
        assert_eq!(finished.read("ready").lines().count(), 16, "one began without its head");
    }
}

#[test]
fn a_node_that_is_cut_off_empties_itself_before_the_branch_runs_again() {
    let Some(slurm) = Slurm::start() else { return };
    // All processes of the branch hold the lock, including daemons.
    let text = "forall x in a on slurm retry lost 2 times\n\
                sh -c 'exec 9> lock; flock -n 9 || echo taken >> taken; (setsid sleep 1000 &)\n\
                if test -s begun; then exit; fi; echo $SLURMD_NODENAME >> begun; exec sleep 1000'\n\
                end";
    let run = slurm.script(text).options(["-t", "1", "--lease", "5s", "-l", "20"]).start();
    run.until_lines("begun", 1);
    let name = std::fs::read_to_string(run.directory().join("begun")).expect("a node");
    let number = name.trim().trim_start_matches("node").parse().expect("its number");
    assert!(!slurm.running_on(number).is_empty());
    slurm.cut_off(number);
    let finished = run.wait();
    finished.expect_code(0);
    finished.expect_stderr("is unknown: it hasn't been heard of for");
    assert!(!finished.directory.path().join("taken").exists(), "{}", finished.story());
    assert!(slurm.running().is_empty());
}

#[test]
#[ignore = "slow: `.ci/run` includes it"]
fn an_unavailable_controller_is_queried_again() {
    let Some(mut slurm) = Slurm::start() else { return };
    slurm.kill_controller();
    let run = slurm.script("forall x in a b on slurm\necho $x >> done\nend").options(["-l", "10"]);
    let run = run.start();
    run.until("a refusal", |run| run.errors().contains("slurm did not run the branch"));
    slurm.start_controller();
    let finished = run.wait();
    finished.expect_code(0);
    assert_eq!(finished.read("done").lines().count(), 2);
    slurm.nothing_left();
    slurm.kill_controller();
    slurm
        .script("try for 3 seconds\nforall x in a on slurm\ntrue\nend\nend")
        .takes(2000, 15_000)
        .failure(124)
        .nothing_left();
}

#[test]
fn jobs_forgotten_by_a_killed_controller_are_sent_again() {
    let Some(mut slurm) = Slurm::start() else { return };
    slurm.close();
    let text = "forall x in 1 2 3 on slurm\necho $x >> done\nend";
    let run = slurm.script(text).options(["-l", "10"]).limit(Duration::from_secs(60)).start();
    slurm.wait("jobs in the queue", || slurm.jobs().lines().count() == 3);
    slurm.kill_controller();
    slurm.start_empty_controller();
    let finished = run.wait();
    finished.expect_code(0);
    finished.expect_stderr("slurm did not run the branch: it has forgotten job ");
    finished.nothing_left();
    assert_eq!(finished.read("done").lines().count(), 3);
    slurm.nothing_left();
}

/// Returns the number of branches: `FTSH_TEST_BRANCHES`, or 150.
fn branches() -> usize {
    let count = std::env::var("FTSH_TEST_BRANCHES").ok();
    count.map_or(150, |text| text.parse().expect("a number of branches"))
}

#[test]
#[ignore = "slow: `.ci/run` includes it"]
fn all_branches_succeed_despite_failing_nodes_and_controller() {
    // On the last node, every branch fails at once.
    let black_hole = |number| (number == NODES).then_some("/bin/false");
    let Some(mut slurm) = Slurm::with(black_hole) else { return };
    let count = branches();
    // A branch holds a lock while any process of it is left.
    let text = format!(
        "forall x in 1 .to. {count} at most 24 on slurm retry lost 3 times\n\
         sh -c 'exec 9> locks/$0; flock -n 9 || echo $0 >> overlaps; (setsid sleep 0.3 &)\n\
         if test -e held_by_$SLURMD_NODENAME; then echo $0 >> held; exec sleep 1000; fi\n\
         sleep 0.2; echo $0 $SLURMD_NODENAME >> effects' $x\nend"
    );
    let run = slurm.script(&text).options(["-t", "2", "--lease", "20s", "-l", "20"]);
    let run = run.file("locks/empty", "").limit(Duration::from_secs(900)).start();
    run.until_lines("effects", count / 5);
    // All places of a node are taken when it dies.
    std::fs::write(run.directory().join("held_by_node1"), "").expect("a file");
    run.until_lines("held", 4);
    slurm.kill_node(1);
    run.until_lines("effects", count / 2);
    slurm.stop_controller();
    // A controller that stops can lose the end of a job, whose `srun` is gone then.
    slurm.end_inactive_jobs(Duration::from_secs(20));
    slurm.start_controller();
    let finished = run.wait();
    finished.expect_code(0);
    let effects = finished.read("effects");
    let mut places = BTreeMap::<usize, Vec<&str>>::new();
    for line in effects.lines() {
        let (x, node) = line.split_once(' ').expect("a branch and its node");
        places.entry(x.parse().expect("a branch")).or_default().push(node);
    }
    assert!(places.keys().copied().eq(1..=count), "{effects}");
    let overlaps = finished.directory.path().join("overlaps");
    assert!(!overlaps.exists(), "two at once: {}", finished.story());
    // A branch that ran twice was in doubt: its node died before it could report the result.
    for (x, nodes) in places.iter().filter(|(_, nodes)| nodes.len() > 1) {
        assert!(nodes.contains(&"node1"), "branch {x} was done on {nodes:?}: {}", finished.story());
    }
    let story = finished.errors();
    let lost = story.matches("is unknown: ").count();
    assert!((4..=4 * 3).contains(&lost), "{lost} were lost: {story}");
    for x in finished.read("held").lines().map(|x| x.parse::<usize>().expect("a branch")) {
        assert!(places[&x].iter().any(|node| *node != "node1"), "branch {x}: {story}");
    }
    let refused = story.lines().filter(|line| line.contains("node4")).count();
    assert!(refused < count / 3, "the black hole had {refused} of {count}: {story}");
    let _ = writeln!(
        io::stderr(),
        "{count} branches in {:?}: {lost} lost, {refused} refused by one node",
        finished.elapsed
    );
    finished.nothing_left();
    slurm.nothing_left();
}
