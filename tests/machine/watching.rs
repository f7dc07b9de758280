//! The clauses `stalled` and `memory` of `try`, and `while free` and `while load` of `forall`.

use std::time::Duration;

use ftsh_machine::driver::Driver;
use ftsh_machine::outcome::{FailureKind, KindAndCode};
use ftsh_machine::packed::BranchEnd;
use ftsh_machine::record::LogEvent;
use ftsh_machine::{Outcome, Time};
use ftsh_sim::{Model, Simulated};
use ftsh_syntax::backoff::{Policy, PolicyKind};

use super::elsewhere::first_branch;
use super::resuming::{End, run};
use super::{Ran, World, seconds, world};

/// Returns a world with `freeze SECONDS`, which then makes no progress, and `grow SECONDS`, which
/// then has 3 GB.
fn watched() -> World {
    world().config(|config| config.backoff = Policy::new(PolicyKind::Exponential)).model(models)
}

fn models(world: Simulated) -> Simulated {
    let number = |call: &ftsh_sim::Call| call.words[1].to_string().parse().unwrap_or(1.0);
    world
        .command("freeze", move |call, _| Model::hangs().stalls_after(seconds(number(call))))
        .command("grow", move |call, _| Model::hangs().grows(seconds(number(call)), 3_000_000_000))
        .command("nap", move |call, _| {
            Model::succeeds().takes(seconds(number(call))).stalls_after(Duration::ZERO)
        })
}

fn message(ran: &Ran) -> &str {
    match &ran.outcome {
        Outcome::Failed(failure) => &failure.message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_attempt_without_progress_fails() {
    let ran = watched().run("try 2 times stalled 2 minutes\n freeze 60\nend");
    let ran = ran.fails("stalled", 124).takes(2.0 * 180.0 + 1.0);
    assert_eq!(message(&ran), "`freeze 60` made no progress for 2 min");
    watched()
        .run("try for 1 hour stalled 1 minute\n hang\nend")
        .fails("timeout", 124)
        .takes(3600.0);
}

#[test]
fn any_process_that_works_keeps_the_attempt() {
    watched()
        .run("try stalled 10 s\n forall x in 1 2; work 60; freeze 1; end\nend")
        .fails("stalled", 124)
        .takes(71.0);
    // The start of a process is progress.
    watched().run("try stalled 10 s\n nap 9\n nap 9\n nap 9\nend").succeeds().takes(27.0);
    watched().run("try stalled 10 s\n nap 9\n nap 11\nend").fails("stalled", 124).takes(19.0);
}

#[test]
fn time_without_a_process_does_not_count() {
    watched().run("try stalled 1 s\n sleep 60\n nap 0.9\nend").succeeds().takes(60.9);
    watched()
        .run("try stalled 1 s\n try 2 times every 1 minute; fail; end\nend")
        .fails("exit", 1)
        .takes(60.0);
}

#[test]
fn an_attempt_with_too_much_memory_fails() {
    let ran = watched().run("try memory 2 GB\n grow 5\nend").fails("memory", 137).takes(5.0);
    let text = "`grow 5` used 3 GB of memory, more than 2 GB; \
                the largest process is `grow` with 3 GB";
    assert_eq!(message(&ran), text);
    let script = "try 2 times memory 5 GB\n forall x in 1 2; grow $x; end\ncatch\n \
                  echo $error_kind\nend";
    watched().run(script).succeeds().prints("memory\n").takes(5.0);
    watched()
        .run("try 9 times memory 2 GB while $error_kind .ne. memory\n grow 5\nend")
        .fails("memory", 137)
        .takes(5.0);
    watched().run("try for 1 minute memory 3 GB\n grow 5\nend").fails("timeout", 124).takes(60.0);
}

#[test]
fn values_of_the_clauses_are_computed() {
    watched().run("n=2; try memory ($n .mul. 0.5) GiB\n grow 5\nend").fails("memory", 137);
    watched().run("n=1.5GiB; try memory $n\n grow 5\nend").fails("memory", 137);
    watched().run("n='2 seconds'; try stalled $n\n freeze 1\nend").fails("stalled", 124).takes(3.0);
    watched().run("n=much; try memory $n\n grow 5\nend").fails("expression", 1);
    watched().run("n=0; try memory $n GB\n grow 5\nend").fails("expression", 1);
    watched().run("n=0; try stalled $n s\n grow 5\nend").fails("expression", 1);
}

#[test]
fn a_limit_takes_both_clauses() {
    let script = "limit 1 hour stalled 1 minute memory 2 GB\n freeze 5\nend";
    watched().run(script).fails("stalled", 124).takes(65.0);
    let script = "limit 1 hour stalled 1 minute memory 2 GB\n grow 5\nend";
    watched().run(script).fails("memory", 137).takes(5.0);
}

#[test]
fn the_inner_of_two_conditions_comes_first() {
    let script = "try 3 times stalled 10 s\n try stalled 5 s\n freeze 0\n catch\n echo inner\n end\n \
                  nap 9\nend";
    watched().run(script).succeeds().prints("inner\n").takes(14.0);
    let script = "try stalled 5 s\n try 3 times stalled 10 s\n freeze 0\n end\ncatch\n echo outer\n\
                  end";
    watched().run(script).succeeds().prints("outer\n").takes(5.0);
}

#[test]
fn daemons_of_an_attempt_count() {
    let daemon = |world: Simulated| {
        world.command("daemon", |_, _| {
            Model::succeeds().leaves_a_daemon().grows(Duration::ZERO, 3_000_000_000)
        })
    };
    watched().model(daemon).run("try memory 2 GB\n daemon\n work 5\nend").fails("memory", 137);
    // After the attempt, its daemon belongs to the script.
    watched().model(daemon).run("try memory 4 GB\n daemon\nend\nwork 5").succeeds();
}

#[test]
fn a_resumed_run_watches_its_scopes_again() {
    let lost = |script: &str| run(watched(), &[(2.0, End::For(seconds(60.0)))], script).0;
    let again = "try 2 times backoff none";
    // The attempt of the outer `try` began before the end of the shell.
    let script = format!("try stalled 1 minute\n{again}\n freeze 5\n end\nend");
    lost(&script).fails("stalled", 124).takes(62.0 + 65.0);
    let script = format!("try memory 2 GB\n{again}\n grow 5\n end\nend");
    lost(&script).fails("memory", 137).takes(62.0 + 5.0);
    // The branches belong to a watched scope.
    let script =
        format!("try stalled 1 minute\nforall x in 5 9\n{again}\n freeze $x\nend\nend\nend");
    lost(&script).fails("stalled", 124).takes(62.0 + 69.0);
    // An attempt that begins after the resumption is watched as in a first run.
    let script = "try 2 times stalled 1 minute backoff none\n freeze 5\nend";
    lost(script).fails("stalled", 124).takes(62.0 + 65.0);
    // A scope that ended before is not watched.
    let script = format!("try stalled 1 s\n ok\nend\n{again}\n work 5\nend");
    lost(&script).succeeds().takes(62.0 + 5.0);
}

/// Runs the first branch of a script on another machine. Returns the end and its time.
fn remote(script: &str) -> (BranchEnd, Duration) {
    let (end, world) = first_branch(script, models(Simulated::new(1)), models(Simulated::new(1)));
    (end, world.now().elapsed())
}

fn reason(end: &BranchEnd) -> KindAndCode {
    let BranchEnd::Failed { failure, .. } = end else { panic!("{end:?}") };
    failure[0].failure.reason()
}

#[test]
fn conditions_travel_with_branches() {
    let script = "try stalled 1 minute\n try stalled 5 s memory 4 GB\n forall x in a\n \
                  freeze 10\n end\n end\nend";
    let (end, elapsed) = remote(script);
    assert_eq!(reason(&end), (FailureKind::Stalled, 124));
    assert_eq!(elapsed, seconds(15.0));
    let (end, _) = remote("try memory 2 GB\n forall x in a\n grow 10\n end\nend");
    assert_eq!(reason(&end), (FailureKind::Memory, 137));
}

#[test]
fn branches_wait_for_memory() {
    let scarce = |from: f64, to: f64| {
        move |now: Time| {
            let is_scarce = (from..to).contains(&now.elapsed().as_secs_f64());
            (if is_scarce { 1_000_000_000 } else { 3_000_000_000 }, 4.0)
        }
    };
    let script = "forall x in 1 2 3 while free 2 GB\n work 10\nend";
    let ran = watched().model(|world| world.resources(scarce(0.0, 5.0))).run(script);
    // The first branch begins at once, the others after 5 seconds.
    assert_eq!(ran.succeeds().takes(15.0).world.starts(), [0.0, 5.0, 5.0].map(time));
    let ran = watched().model(|world| world.resources(scarce(0.0, 0.0))).run(script);
    ran.succeeds().takes(10.0);
    // The loop goes on waiting when no branch runs.
    let ran = watched().model(|world| world.resources(scarce(0.0, 25.0))).run(script);
    ran.succeeds().takes(35.0);
    let limited = format!("try for 20 seconds\n {script}\nend");
    let ran = watched().model(|world| world.resources(scarce(0.0, 100.0))).run(&limited);
    ran.fails("timeout", 124).takes(20.0);
}

#[test]
fn a_wait_for_resources_is_logged_once() {
    let scarce = |now: Time| {
        let at = now.elapsed().as_secs_f64();
        // Two waits: of the second branch, and of the third one.
        let is_scarce = (0.0..5.0).contains(&at) || (12.0..20.0).contains(&at);
        (if is_scarce { 1_000_000_000 } else { 3_000_000_000 }, 4.0)
    };
    let script = "forall x in 1 2 3 at most 2 while free 2 GB\n work 12\nend";
    let world = watched().model(|world| world.resources(scarce));
    let (ran, log) = run(world, &[], script);
    ran.succeeds().takes(32.0);
    let waits = |it: &&LogEvent| {
        matches!(it, LogEvent::ResourcesAwaited { .. } | LogEvent::ResourcesAvailable { .. })
    };
    let log: Vec<_> = log.iter().filter(waits).map(|it| format!("{it:?}")).collect();
    let missing = "1 GB of memory available instead of 2 GB";
    assert_eq!(
        log,
        [
            format!("ResourcesAwaited {{ missing: \"{missing}\" }}"),
            "ResourcesAvailable { waited: 5s }".into(),
            format!("ResourcesAwaited {{ missing: \"{missing}\" }}"),
            "ResourcesAvailable { waited: 8s }".into(),
        ]
    );
}

fn time(at: f64) -> Time {
    Time::after(seconds(at))
}

#[test]
fn branches_wait_for_a_lower_load() {
    let busy = |now: Time| (0, if now.elapsed() < seconds(3.0) { 8.6 } else { 8.5 });
    let script = "n=8.5\nforall x in 1 2 at most 2 while load $n\n work 10\nend";
    watched().model(|world| world.resources(busy)).run(script).succeeds().takes(13.0);
    for bad in ["0", "-1", "much"] {
        let script = format!("n={bad}\nforall x in 1 2 while load $n\n work 10\nend");
        watched().run(&script).fails("expression", 1);
    }
    watched().run("n=much\nforall x in 1 while free $n\n work 10\nend").fails("expression", 1);
    // After a failure no branch is waited for.
    let script = "forall x in 1 2 3 while load 1\n work 2\n fail\nend";
    watched().model(|world| world.resources(|_| (0, 2.0))).run(script).fails("exit", 1).takes(2.0);
}
