//! Branches on a simulated cluster with many faults.

use std::time::Duration;

use ftsh_machine::driver::{self, Driver};
use ftsh_machine::packed::BranchEnd;
use ftsh_machine::{Config, FailureKind, Machine, Outcome, Time};
use ftsh_sim::Simulated;
use ftsh_sim::cluster::{Clustered, Fault, NodeClock, SimulatedCluster, SimulatedNode};
use ftsh_syntax::parse;
use insta::assert_snapshot;

use super::{seconds, world};

/// Time that branches continue without contact to their head.
const LEASE: Duration = Duration::from_secs(60);

fn at(seconds: u64) -> Time {
    Time::after(Duration::from_secs(seconds))
}

/// Returns two nodes with one place each.
fn nodes() -> Vec<SimulatedNode> {
    ["n1", "n2"].map(|name| SimulatedNode::new(name, 1)).into()
}

fn cluster(nodes: Vec<SimulatedNode>) -> SimulatedCluster {
    SimulatedCluster::new(LEASE, nodes)
}

/// Run on a cluster.
struct Ran {
    there: Clustered,
    outcome: Outcome,
}

fn run(cluster: SimulatedCluster, script: &str) -> Ran {
    run_in(world().simulated, cluster, script)
}

fn run_in(world: Simulated, cluster: SimulatedCluster, script: &str) -> Ran {
    let script = parse("script", script).expect("a script");
    let config = Config { kill_timeout: seconds(5.0), ..Config::default() };
    let mut machine = Machine::new(&script, vec!["script".into()], Vec::new(), config, 7);
    let mut there = Clustered { world, cluster };
    let outcome = driver::run(&mut machine, &mut there);
    let is_left = there.cluster.attempts().iter().any(|it| it.over.is_none());
    assert!(!is_left, "something is left:\n{}", there.world.trace());
    Ran { there, outcome }
}

impl Ran {
    fn kind(&self) -> Option<FailureKind> {
        match &self.outcome {
            Outcome::Failed(failure) => Some(failure.kind),
            _ => None,
        }
    }

    fn message(&self) -> String {
        match &self.outcome {
            Outcome::Failed(failure) => failure.message.clone(),
            other => format!("{other:?}"),
        }
    }

    /// Returns the history of the branches on nodes, in seconds.
    fn attempts(&self) -> String {
        let attempts = self.there.cluster.attempts().iter().map(|it| {
            let until = it.over.map_or(f64::INFINITY, |over| over.elapsed().as_secs_f64());
            let end = match &it.ended {
                None => "says nothing".to_owned(),
                Some(ended) => match &ended.end {
                    BranchEnd::Failed { failure, .. } | BranchEnd::OutOfTime(failure) => {
                        failure[0].failure.message.clone()
                    }
                    end => format!("{end:?}"),
                },
            };
            format!("{} {:.3} to {until:.3}: {end}", it.node, it.began.elapsed().as_secs_f64())
        });
        attempts.collect::<Vec<_>>().join("\n")
    }
}

#[test]
fn branches_run_on_nodes_and_print_on_the_head() {
    let script = "y=3\nforall x in a b c on slurm output grouped in order\nwork $y\necho $x\nend";
    let ran = run(cluster(nodes()), script);
    assert_eq!((ran.kind(), ran.there.world.stdout()), (None, "a\nb\nc\n".into()));
    assert_snapshot!(ran.attempts(), @"
    n1 0.004 to 3.004: Succeeded
    n2 0.004 to 3.004: Succeeded
    n1 3.009 to 6.009: Succeeded
    ");
    assert_snapshot!(ran.there.world.trace(), @r#"
     4 ms run work 3
     4 ms n1: begins "a"
     4 ms run work 3
     4 ms n2: begins "b"
    3.0 s n1: end work Exited(0)
    3.0 s n1: is over "a"
    3.0 s n2: end work Exited(0)
    3.0 s n2: is over "b"
    3.0 s run work 3
    3.0 s n1: begins "c"
    6.0 s n1: end work Exited(0)
    6.0 s n1: is over "c"
    "#);
}

#[test]
fn failures_come_back_unchanged() {
    let ran = run(cluster(nodes()), "forall x in a on ssh h\ntry 2 times\nfail 7\nend\nend");
    assert_eq!(ran.outcome.exit_code(), 7);
    assert_snapshot!(ran.attempts(), @"n1 0.004 to 1.495: `fail 7` exited with 7");
}

#[test]
fn the_trace_of_a_failure_comes_back() {
    let script = "function f\nfail 7\nend\nforall x in a on ssh h\nf\nend";
    let ran = run(cluster(nodes()), script);
    let Outcome::Failed(failure) = &ran.outcome else { panic!("{:?}", ran.outcome) };
    let steps = failure.trace.steps().iter().map(|step| step.brief("script"));
    assert_eq!(steps.collect::<Vec<_>>(), ["called at line 5", "x=a"]);
}

#[test]
fn words_of_branches_that_succeeded_elsewhere_run_once() {
    let script = "forall x in a b c keep going once in done on slurm\n\
                  work 1\nif $x == b\nfail 3\nend\nend";
    let first = run(cluster(nodes()), script);
    assert_eq!(first.outcome.exit_code(), 3);
    assert_eq!(first.there.world.content("done").as_deref(), Some("a\nc\n"));
    // Another run sends only the rest.
    let recorded = world().simulated.file("done", "a\nc\n");
    let second = run_in(recorded, cluster(nodes()), script);
    assert_snapshot!(second.attempts(), @"n1 0.004 to 1.004: `fail 3` exited with 3");
    assert_eq!(second.there.world.content("done").as_deref(), Some("a\nc\n"));
}

#[test]
fn a_lost_branch_is_recorded_when_its_success_is_known() {
    let mut first = true;
    let lying = cluster(nodes())
        .faults(move |_| std::mem::take(&mut first).then_some(Fault::Lies(Duration::from_secs(2))));
    let script = "forall x in a once in done on slurm retry lost 1 time\nwork 10\nend";
    let ran = run(lying, script);
    assert_eq!((ran.kind(), ran.there.cluster.attempts().len()), (None, 2));
    assert_eq!(ran.there.world.content("done").as_deref(), Some("a\n"));
}

#[test]
fn branches_elsewhere_inherit_the_signal() {
    let script = "try for 3 seconds or 1 time signal INT\nforall x in a on slurm\ndeaf\nend\nend";
    let ran = run(cluster(nodes()), script);
    let trace = ran.there.world.trace();
    let signals: Vec<&str> = trace
        .lines()
        .filter(|line| line.contains("signal") || line.contains("terminate"))
        .filter_map(|line| line.split_once(": ").map(|it| it.1))
        .collect();
    assert_eq!(signals, ["signal INT deaf", "terminate deaf"], "{trace}");
}

#[test]
fn only_a_record_is_a_success() {
    let lying = || {
        let mut first = true;
        cluster(nodes()).faults(move |_| {
            std::mem::take(&mut first).then_some(Fault::Lies(Duration::from_secs(2)))
        })
    };
    let ran = run(lying(), "forall x in a on slurm\nhang\nend");
    assert_snapshot!(ran.message(), @"the result of the branch on n1 is unknown: the connection to it ended without a word of its end");
    assert_snapshot!(ran.attempts(), @"n1 0.004 to 60.002: Canceled(15)");
    // The branch may still do its work, with an unknown result.
    let ran = run(lying(), "forall x in a on slurm retry lost 1 time\nwork 10\nend");
    assert_eq!(ran.kind(), None);
    assert_snapshot!(ran.attempts(), @"
    n1 0.004 to 10.004: Succeeded
    n2 79.007 to 89.007: Succeeded
    ");
}

#[test]
fn the_next_attempt_waits_for_the_lease_the_kill_timeout_and_a_fifth() {
    let script = "forall x in a on slurm retry lost 1 time\nif .not. .exists. /begun\necho > /begun\nwork 100\nend\nend";
    // The node dies permanently.
    let [first, second] =
        [SimulatedNode::new("n1", 1).dead(at(10), Time::NEVER), SimulatedNode::new("n2", 1)];
    assert_snapshot!(run(cluster(vec![first, second]), script).attempts(), @"
    n1 0.004 to 10.000: says nothing
    n2 79.007 to 79.007: Succeeded
    ");
    // The branch continues without contact for its lease, measured by its own slow clock.
    let slow = NodeClock::new(12, 13);
    let first = SimulatedNode::new("n1", 1).cut_off(at(30), at(1000)).clock(slow);
    let stubborn = script.replace("work 100", "stubborn");
    let ran =
        run(cluster(vec![first, SimulatedNode::new("n2", 1)]), &script.replace("work 100", "hang"));
    assert_snapshot!(ran.attempts(), @"
    n1 0.004 to 86.669: Canceled(15)
    n2 100.674 to 100.674: Succeeded
    ");
    let first = SimulatedNode::new("n1", 1).cut_off(at(30), at(1000)).clock(slow);
    let ran = run(cluster(vec![first, SimulatedNode::new("n2", 1)]), &stubborn);
    assert_snapshot!(ran.attempts(), @"
    n1 0.004 to 92.085: says nothing
    n2 100.674 to 100.674: Succeeded
    ");
}

#[test]
fn short_disconnections_are_no_loss() {
    let first = SimulatedNode::new("n1", 1).cut_off(at(10), at(40));
    let ran = run(cluster(vec![first]), "forall x in a on slurm\nwork 20\necho $x\nend");
    assert_eq!((ran.kind(), ran.there.world.stdout()), (None, "a\n".into()));
    assert_snapshot!(ran.attempts(), @"n1 0.004 to 20.004: Succeeded");
}

#[test]
fn branches_that_have_not_begun_are_sent_again() {
    let swallows = [Duration::from_secs(100), Duration::MAX].map(Fault::Swallows);
    for fault in [Fault::Refuses, Fault::Deaf(Duration::ZERO)].into_iter().chain(swallows) {
        let faulty = cluster(nodes()).faults(move |node| (node == "n1").then_some(fault));
        let ran = run(faulty, "forall x in a on slurm\nwork 1\nend");
        assert_eq!(ran.kind(), None, "{fault:?}");
        let nodes: Vec<_> = ran.there.cluster.attempts().iter().map(|it| &it.node).collect();
        assert_eq!(nodes, ["n2"], "{fault:?}");
    }
}

#[test]
fn bad_machines_hide_none_that_is_not_known_yet() {
    for (on, bad) in [("slurm", 2), ("slurm", 3), ("ssh h", 2), ("ssh h", 3)] {
        for fault in [Fault::Refuses, Fault::Swallows(Duration::ZERO)] {
            let nodes = ["n1", "n2", "n3", "n4"];
            let first = nodes[bad];
            let is_bad = move |node: &str| nodes[..bad].contains(&node);
            let nodes = nodes.map(|name| SimulatedNode::new(name, 1)).into();
            let faulty = cluster(nodes).faults(move |node| is_bad(node).then_some(fault));
            let ran = run(faulty, &format!("forall x in a on {on}\nwork 1\nend"));
            let attempts = ran.there.cluster.attempts().iter();
            let nodes: Vec<_> = attempts.map(|it| it.node.as_str()).collect();
            assert_eq!((ran.kind(), nodes), (None, vec![first]), "{on} {bad} {fault:?}");
            // No machine is used twice while there are others.
            assert!(ran.there.now() < at(10), "{on} {bad} {fault:?}: {:?}", ran.there.now());
        }
    }
}

#[test]
fn a_branch_that_is_refused_goes_at_once_to_a_machine_that_takes_others() {
    let nodes = ["n1", "n2", "n3", "n4"].map(|name| SimulatedNode::new(name, 1)).into();
    let faulty = cluster(nodes).faults(|node| (node != "n4").then_some(Fault::Refuses));
    let script = "forall x in a b c d on ssh h\nwork 1\nend";
    let ran = run(faulty, script);
    assert_snapshot!(ran.attempts(), @"
    n4 0.004 to 1.004: Succeeded
    n4 1.009 to 2.009: Succeeded
    n4 2.014 to 3.014: Succeeded
    n4 3.019 to 4.019: Succeeded
    ");
}

#[test]
fn a_branch_waits_for_a_place_no_longer_than_others_are_avoided() {
    // The second node refuses once, and the first node is busy for an hour.
    for on in ["slurm", "ssh h"] {
        let mut refusals = 1;
        let faulty = cluster(nodes()).faults(move |node| {
            let refuses = node == "n2" && refusals > 0;
            refusals -= i32::from(refuses);
            refuses.then_some(Fault::Refuses)
        });
        let script = format!("forall x in 3600 1 on {on}\nwork $x\nend");
        let ran = run(faulty, &script);
        let expected = "n1 0.004 to 3600.004: Succeeded\nn2 120.007 to 121.007: Succeeded";
        assert_eq!(ran.attempts(), expected, "{on}");
    }
}

#[test]
fn an_engine_that_is_down_is_asked_again_within_limits() {
    let script = "try for 5 minutes\nforall x in 1 .to. 4 on slurm\nwork 1\nend\nend";
    let ran = run(cluster(nodes()).engine_down(at(0), at(100)), script);
    assert_eq!(ran.kind(), None);
    assert_snapshot!(ran.attempts(), @"
    n1 108.057 to 109.057: Succeeded
    n2 108.060 to 109.060: Succeeded
    n1 109.062 to 110.062: Succeeded
    n2 109.065 to 110.065: Succeeded
    ");
    let ran = run(cluster(nodes()).engine_down(at(0), at(1000)), script);
    assert_eq!((ran.kind(), ran.there.now()), (Some(FailureKind::Timeout), at(300)));
}

#[test]
fn late_orders_to_begin_are_ignored() {
    // The round trip takes longer than a lease.
    let far = SimulatedNode::new("n1", 1).far(Duration::from_secs(2));
    let there = |nodes| SimulatedCluster::new(Duration::from_secs(3), nodes);
    let script = "forall x in a on slurm\nwork 1\nend";
    let ran = run(there(vec![far]), script);
    assert_eq!((ran.kind(), ran.attempts()), (Some(FailureKind::Engine), String::new()));
    assert_snapshot!(ran.message(), @"slurm did not run the branch: the way there and back takes longer than the lease of 3 s: `--lease` makes that longer");
    let far = SimulatedNode::new("n1", 2).far(Duration::from_secs(2));
    let ran = run(there(vec![far, SimulatedNode::new("n2", 1)]), script);
    assert_eq!(ran.kind(), None);
    assert_snapshot!(ran.attempts(), @"n2 10.004 to 11.004: Succeeded");
}

#[test]
fn a_limit_leaves_the_words_that_did_not_succeed_elsewhere() {
    let script = "try for 10 seconds or 1 time\nforall x in a b c d on slurm keep going\n\
                  if $x .eq. a; ok; else; stubborn; end\nend\n\
                  catch\necho $succeeded / lost $failed\nend";
    let ran = run(cluster(nodes()), script);
    assert_eq!((ran.kind(), ran.there.world.stdout()), (None, "a / lost b c d\n".into()));
}

#[test]
fn canceled_branches_end_before_the_script_continues() {
    // The commands ignore SIGTERM.
    let script =
        "try for 3 seconds or 1 time\nforall x in a b on slurm\nstubborn\nend\ncatch\nok\nend";
    let ran = run(cluster(nodes()), script);
    assert_snapshot!(ran.attempts(), @"
    n1 0.004 to 8.001: Canceled(15)
    n2 0.004 to 8.001: Canceled(15)
    ");
    assert_snapshot!(ran.there.world.trace(), @r#"
     4 ms run stubborn
     4 ms n1: begins "a"
     4 ms run stubborn
     4 ms n2: begins "b"
    3.0 s n1: terminate stubborn
    3.0 s n2: terminate stubborn
    8.0 s n1: kill stubborn
    8.0 s n1: is over "a"
    8.0 s n2: kill stubborn
    8.0 s n2: is over "b"
    8.0 s run ok
    8.0 s end ok Exited(0)
    "#);
    // A failure cancels the others; one of them cannot be reached.
    let nodes =
        vec![SimulatedNode::new("n1", 1).cut_off(at(5), Time::NEVER), SimulatedNode::new("n2", 1)];
    let script =
        "try\nforall x in a b on slurm\nif $x .eq. b\nslowfail 10\nend\nhang\nend\ncatch\nok\nend";
    let ran = run(cluster(nodes), script);
    assert_snapshot!(ran.attempts(), @"
    n1 0.004 to 60.002: Canceled(15)
    n2 0.004 to 10.004: `slowfail 10` exited with 1
    ");
    let last = ran.there.world.starts().last().copied();
    assert_eq!(last.map(|at| at.elapsed().as_secs()), Some(79));
}

#[test]
fn a_node_that_comes_back_is_used_again() {
    let node = SimulatedNode::new("n1", 1).dead(at(10), at(200));
    let ran = run(cluster(vec![node]), "forall x in a on ssh h retry lost 1 time\nwork 20\nend");
    assert_snapshot!(ran.attempts(), @"
    n1 0.004 to 10.000: says nothing
    n1 200.004 to 220.004: Succeeded
    ");
}
