use ftsh_machine::event::CommandStatus;
use ftsh_machine::record::Level;
use ftsh_machine::time::Deadline;
use ftsh_machine::{Config, Effect, Event, Machine, Outcome, Output, Time};
use ftsh_syntax::backoff::{Policy, PolicyKind};
use insta::assert_snapshot;

use super::{seconds, world};

fn exponential() -> super::World {
    world().config(|config| config.backoff = Policy::new(PolicyKind::Exponential))
}

fn starts(ran: &super::Ran, command: &str) -> usize {
    ran.world.trace().lines().filter(|line| line.contains(&format!("run {command}"))).count()
}

#[test]
fn a_try_repeats_until_it_succeeds() {
    let mut left = 3;
    let ran = exponential()
        .model(|simulated| {
            simulated.command("flaky", move |_, _| {
                left -= 1;
                if left > 0 { ftsh_sim::Model::fails(1) } else { ftsh_sim::Model::succeeds() }
            })
        })
        .logging(Level::STRUCTURES)
        .run("try for 1 hour\n flaky\nend\necho $0 done")
        .succeeds()
        .prints("script done\n")
        .takes(3.0);
    assert_eq!(starts(&ran, "flaky"), 3);
}

#[test]
fn accepted_statuses_are_successes() {
    let questions = "if .yes. (accept 2 fail 2); echo yes; end
if .succeeds. (accept 2 fail 3); echo no; end";
    exponential().run(questions).succeeds().prints("yes\n");
    exponential().run("try 3 times; accept 1,2 fail 2; end; echo $status").succeeds().prints("2\n");
    exponential().run("try 3 times; accept 1,2 fail 4; end").fails("exit", 4).takes(3.0);
    // A limit is no status.
    exponential().run("try for 1 second; accept 124 hang; end").fails("timeout", 124).takes(1.0);
}

#[test]
fn a_head_without_a_value_fails_its_own_try() {
    let ran = exponential()
        .run(
            "try 3 times\n ok\n try $x times\n hang\n catch\n echo $attempt $error_kind\n end\nend",
        )
        .succeeds()
        .prints("0 expression\n")
        .takes(0.0);
    assert_eq!(starts(&ran, "hang"), 0);
    // Commands of the head are limited by the enclosing limits, not by the limit of the `try`.
    exponential()
        .run("function f; hang; return 1; end\ntry for 5 seconds\n try f() times; ok; end\nend")
        .fails("timeout", 124)
        .takes(5.0);
    // Each outer attempt evaluates the head again.
    let ran =
        exponential().run("try 3 times\n try for $v\n hang\n end\nend").fails("expression", 1);
    assert_eq!(ran.elapsed, seconds(3.0));
}

#[test]
fn every_zero_leaves_the_delays_of_the_policy() {
    exponential().run("try 3 times every 0 seconds; fail 2; end").fails("exit", 2).takes(3.0);
    exponential().run("n=0; try 3 times every $n seconds; fail 2; end").fails("exit", 2).takes(3.0);
}

#[test]
fn three_days_or_a_hundred_times_take_no_time_to_test() {
    let ran = exponential()
        .run("try for 3 days or 100 times backoff exponential to 1 h\nfail 9\nend")
        .fails("exit", 9);
    // 1 + 2 + … + 2048 s, then one hour each; the last attempt comes before the deadline.
    assert!(ran.elapsed <= seconds(3.0 * 86400.0));
    assert_eq!(starts(&ran, "fail"), 1 + 12 + 70 + 1);
}

#[test]
fn every_spelling_of_limits_counts_the_same() {
    for limits in [
        "3 times",
        "for 3 times",
        "for 1 day or 3 times",
        "1 day 3 times",
        "3 times 1 day",
        "for 3 times or 1 day",
        "3 times or 24 hours",
        "(1 .add. 2) times",
        "$n times",
    ] {
        let ran = exponential().run(&format!("n=3; try {limits}; fail; end")).fails("exit", 1);
        assert_eq!(starts(&ran, "fail"), 3, "{limits}");
    }
    assert_eq!(starts(&exponential().run("try; fail; end"), "fail"), 1);
}

#[test]
fn computed_values_reach_their_clauses() {
    let head = "for $a seconds or $b times each $c seconds \
                backoff proportional from $d seconds to $e seconds by $f jitter $g%";
    let values = "a=1000; b=5; c=2; d=3; e=20; f=4; g=0";
    world()
        .run(&format!("{values}\ntry {head}; hang; end"))
        .fails("timeout", 124)
        .takes(5.0 * 2.0 + 3.0 + 12.0 + 20.0 + 20.0);
    world()
        .run(&format!("{values}; a=20\ntry {head}; hang; end"))
        .fails("timeout", 124)
        .takes(20.0);
    let script = "a=10; b=3; c=2\ntry $b times each $c seconds every $a seconds; hang; end";
    world().run(script).fails("timeout", 124).takes(22.0);
}

#[test]
fn delays_double_up_to_the_cap() {
    let ran = exponential()
        .config(|config| config.backoff.to = seconds(5.0))
        .run("try 6 times; fail; end")
        .fails("exit", 1)
        .takes(1.0 + 2.0 + 4.0 + 5.0 + 5.0);
    assert!(ran.message().ends_with("6 attempts in 17 s"), "{}", ran.message());
}

#[test]
fn a_deadline_cuts_a_command_short() {
    let ran = world().run("try for 5 seconds\n  ok\n  hang\nend").fails("timeout", 124).takes(5.0);
    assert_snapshot!(ran.message(), @"script:3: `hang` ran out of time after 5 s");
    let ran = world().run("try for 5 seconds\n  work 4\n  hang\nend");
    assert_snapshot!(ran.message(), @"script:3: `hang` ran out of time after 1 s, at the end of 5 s");
    assert!(ran.world.running().is_empty());
}

#[test]
fn a_deadline_cuts_a_loop_that_runs_nothing() {
    let script = "n=0\ntry for 2 seconds\nwhile true; n=$n .add. 1; sleep 10ms; end\nend";
    world().run(script).fails("timeout", 124).takes(2.0);
}

#[test]
fn the_enclosing_deadline_wins() {
    let ran = world().run("try for 2 seconds; try for 1 hour; hang; end; end");
    ran.fails("timeout", 124).takes(2.0);
    let script = "try for 3 seconds; try for 1 second; hang; end; catch; echo $error_kind; end";
    let ran = exponential().run(script).succeeds().prints("timeout\n");
    assert!(ran.elapsed <= seconds(3.0));
}

#[test]
fn catch_runs_under_the_enclosing_deadline() {
    let script =
        "try for 10 seconds\n try for 1 second\n hang\n catch\n work 3\n echo saved\n end\nend";
    world().run(script).succeeds().prints("saved\n").takes(4.0);
    let script = "try for 2 seconds\n try for 1 second\n hang\n catch\n hang\n end\nend";
    world().run(script).fails("timeout", 124).takes(2.0);
}

#[test]
fn the_last_attempt_comes_before_the_deadline() {
    for seed in 0..20 {
        let ran = exponential()
            .config(|config| config.pid = seed)
            .logging(Level::STRUCTURES)
            .run("try for 10 seconds; fail; end")
            .fails("exit", 1);
        // At 0, 1, 3 and 7 s, and once more before 10 s.
        assert_eq!(starts(&ran, "fail"), 5);
        assert!(ran.elapsed > seconds(7.0) && ran.elapsed < seconds(10.0));
    }
}

#[test]
fn every_spaces_the_starts_and_fails_when_none_fits() {
    world().run("try for 10 seconds every 4 seconds; slowfail 1; end").fails("exit", 1).takes(9.0);
    world().run("try for 10 seconds every 6 seconds; slowfail 1; end").fails("exit", 1).takes(7.0);
    world().run("try 3 times every 2 seconds; slowfail 5; end").fails("exit", 1).takes(15.0);
}

#[test]
fn each_limits_one_attempt() {
    let ran = exponential().run("try 3 times each 2 seconds; hang; end").fails("timeout", 124);
    let ran = ran.takes(2.0 + 1.0 + 2.0 + 2.0 + 2.0);
    assert_eq!(starts(&ran, "hang"), 3);
}

#[test]
fn while_decides_about_further_attempts() {
    let script =
        "try 5 times while $error_code .eql. 75\n if $attempt .lt. 3\n fail 75\n end\n fail 3\nend";
    let ran = exponential().run(script).fails("exit", 3);
    assert_eq!(starts(&ran, "fail"), 3);
}

#[test]
fn giveup_ends_the_innermost_try_only() {
    let script = "try 2 times backoff none\n try 9 times\n  giveup it is hopeless\n end\nend";
    let ran = world().run(script).fails("giveup", 1);
    assert_snapshot!(ran.message(), @"script:3: it is hopeless, 2 attempts in 0 ms");
}

#[test]
fn a_giveup_passes_through_forany_and_forall() {
    let ran = world().run("try 5 times; forany x in a b c; echo $x; giveup; end; end");
    assert_eq!(ran.fails("giveup", 1).world.stdout().lines().count(), 1);
    let ran = world().run("try 5 times; forall x in a b; giveup; end; end").fails("giveup", 1);
    assert!(!ran.message().contains("attempts"));
}

#[test]
fn the_kind_is_timeout_only_if_the_limit_cut_the_attempt() {
    exponential().run("try for 3 seconds; fail 4; end").fails("exit", 4);
    exponential().run("try 5 times; try for 1 second; hang; end; end").fails("timeout", 124);
}

#[test]
fn a_script_sees_its_attempt_and_its_time() {
    let script = "try for 10 seconds or 3 times backoff fixed from 2 seconds\n echo $attempt $elapsed $remaining\n fail\nend";
    world().run(script).fails("exit", 1).prints("1 0 10\n2 2 8\n3 4 6\n");
    world().run("try 1 time; echo \"[$remaining]\"; end").succeeds().prints("[]\n");
    world()
        .run("try 2 times backoff none; env FTSH_ATTEMPT; fail; end")
        .prints("FTSH_ATTEMPT=1\nFTSH_ATTEMPT=2\n");
}

#[test]
fn catch_and_finally_see_their_own_attempt() {
    for (script, printed) in [
        ("limit 1 s; ok; finally; echo $attempt $elapsed; end", "1 0\n"),
        ("limit 2 s; hang; catch; echo $attempt $elapsed; finally; echo $elapsed; end", "1 2\n2\n"),
        ("sleep 1 s; limit 9 s; sleep 1 s; limit 2 s; hang; catch; echo $elapsed; end; end", "2\n"),
        (
            "try 2 times; sleep 1 s; limit 2 s; hang; catch; echo $attempt $elapsed; end; end",
            "1 3\n",
        ),
        (
            "try $x times; ok; catch; echo $attempt $elapsed; finally; echo $attempt; end",
            "0 0\n0\n",
        ),
        (
            "try 1 time; try $x times; ok; finally; echo $attempt; end; catch; echo $attempt; end",
            "0\n1\n",
        ),
        ("limit $x; ok; catch; echo $attempt $error_kind; end", "0 expression\n"),
        ("try 1 time; sleep 1 s; limit $x; ok; catch; echo $attempt $elapsed; end; end", "1 1\n"),
    ] {
        world().run(script).succeeds().prints(printed);
    }
}

#[test]
fn catch_sees_the_failure() {
    let script =
        "try\n fail 7\ncatch\n echo $error_kind $error_code $error_command $error_line\nend";
    world().run(script).succeeds().prints("exit 7 fail 7 2\n");
    let script = "try; failure disk full; catch; echo $error; end";
    world().run(script).succeeds().prints("disk full\n");
    let script = "try 2 times backoff none; fail 3; catch; echo $error; end";
    let ran = world().run(script).succeeds();
    assert_snapshot!(ran.world.stdout().trim(), @"`fail 3` exited with 3, 2 attempts in 0 ms");
}

#[test]
fn a_script_may_use_these_names_for_itself() {
    let script = "attempt=mine; error=own; try; echo $attempt; fail; catch; echo $error; end";
    world().run(script).succeeds().prints("mine\nown\n");
    let script = "try 1 time; echo $attempt; end";
    world().env("attempt", "outer").run(script).succeeds().prints("1\n");
}

#[test]
fn a_limit_must_make_sense() {
    for script in [
        "n=0; try $n times; ok; end",
        "n=x; try $n seconds; ok; end",
        "n=0; try for $n hours; ok; end",
    ] {
        world().run(script).fails("expression", 1);
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let trace = || world().run("try 6 times; forany x in a b c d; fail $x; end; end").world.trace();
    assert_eq!(trace(), trace());
}

#[test]
fn a_run_has_a_trace() {
    let ran =
        exponential().logging(Level::NOTHING).run("try for 1 minute or 3 times\n  fail 1\nend");
    assert_snapshot!(ran.world.trace(), @r"
          0 ms run fail 1
          0 ms end fail Exited(1)
           1 s run fail 1
           1 s end fail Exited(1)
           3 s run fail 1
           3 s end fail Exited(1)
    ");
}

#[test]
fn a_deadline_cuts_a_loop_that_only_fails_and_logs() {
    let script = "try for 1 second; forany n in 1 .to. 1000000000; failure; end; end";
    let parsed = ftsh_syntax::parse("script", script).expect("valid");
    let config = ftsh_machine::Config { log_level: Level::FAILURES, ..Default::default() };
    let mut machine = ftsh_machine::Machine::new(&parsed, vec![], vec![], config, 1);
    let mut outputs = 0;
    while let ftsh_machine::Output::Effect(_) = machine.poll_output() {
        outputs += 1;
        assert!(outputs < 100_000, "the machine must look at the clock");
    }
}

#[test]
fn nothing_runs_after_the_deadline_of_the_run() {
    let late = |config: &mut Config| config.deadline = Deadline::at(Time::START);
    world().config(late).run("echo late; ok").fails("timeout", 124).prints("");
}

#[test]
fn attempts_delays_and_kills_are_in_the_trace() {
    let ran = exponential()
        .config(|config| config.kill_timeout = seconds(4.0))
        .logging(Level::STRUCTURES)
        .run("try for 1 minute each 10 seconds\n  stubborn\ncatch\n  ok\nend")
        .succeeds();
    assert_snapshot!(ran.world.trace(), @r#"
         0 ms 1: Attempt { number: 1, until: Some(Time(60s)), each: Some(Time(10s)) }
         0 ms 2: CommandStarted("stubborn")
         0 ms run stubborn
         10 s 2: CommandFailed(Failure { kind: Timeout, code: 124, errno: None, slug: Timeout, message: "`stubborn` ran out of time after 10 s, by `each` at line 1", command: "stubborn", elapsed: Some(10s), source: Source("script"), line: 2, tries: [], trace: Trace { steps: [], left_out: 0 }, earlier: None, branches: None, printed: None, errors: None, output: None })
         10 s terminate stubborn
         14 s kill stubborn
         14 s 1: Delay { delay: 1s, attempt: 2, last: false }
         15 s 1: Attempt { number: 2, until: Some(Time(60s)), each: Some(Time(25s)) }
         15 s 2: CommandStarted("stubborn")
         15 s run stubborn
         25 s 2: CommandFailed(Failure { kind: Timeout, code: 124, errno: None, slug: Timeout, message: "`stubborn` ran out of time after 10 s, by `each` at line 1", command: "stubborn", elapsed: Some(10s), source: Source("script"), line: 2, tries: [], trace: Trace { steps: [], left_out: 0 }, earlier: None, branches: None, printed: None, errors: None, output: None })
         25 s terminate stubborn
         29 s kill stubborn
         29 s 1: Delay { delay: 2s, attempt: 3, last: false }
         31 s 1: Attempt { number: 3, until: Some(Time(60s)), each: Some(Time(41s)) }
         31 s 2: CommandStarted("stubborn")
         31 s run stubborn
         41 s 2: CommandFailed(Failure { kind: Timeout, code: 124, errno: None, slug: Timeout, message: "`stubborn` ran out of time after 10 s, by `each` at line 1", command: "stubborn", elapsed: Some(10s), source: Source("script"), line: 2, tries: [], trace: Trace { steps: [], left_out: 0 }, earlier: None, branches: None, printed: None, errors: None, output: None })
         41 s terminate stubborn
         45 s kill stubborn
         45 s 1: Delay { delay: 4s, attempt: 4, last: false }
         49 s 1: Attempt { number: 4, until: Some(Time(60s)), each: Some(Time(59s)) }
         49 s 2: CommandStarted("stubborn")
         49 s run stubborn
         59 s 2: CommandFailed(Failure { kind: Timeout, code: 124, errno: None, slug: Timeout, message: "`stubborn` ran out of time after 10 s, by `each` at line 1", command: "stubborn", elapsed: Some(10s), source: Source("script"), line: 2, tries: [], trace: Trace { steps: [], left_out: 0 }, earlier: None, branches: None, printed: None, errors: None, output: None })
         59 s terminate stubborn
    1 min 3 s kill stubborn
    1 min 3 s 1: TryFailed { failure: Failure { kind: Timeout, code: 124, errno: None, slug: Timeout, message: "`stubborn` ran out of time after 10 s, by `each` at line 1", command: "stubborn", elapsed: Some(10s), source: Source("script"), line: 2, tries: [TrySummary { file: "script", line: 1, attempts: 4, elapsed: 63s }], trace: Trace { steps: [], left_out: 0 }, earlier: None, branches: None, printed: None, errors: None, output: None }, attempts: 4, elapsed: 63s }
    1 min 3 s 3: Catch
    1 min 3 s 4: CommandStarted("ok")
    1 min 3 s run ok
    1 min 3 s end ok Exited(0)
    1 min 3 s 4: CommandSucceeded { command: "ok", elapsed: 0ns, status: 0 }
    "#);
}

#[test]
fn a_delay_that_outlasts_the_limit_is_no_attempt() {
    // The final message has the failure, not the limit: no attempt was cut short.
    let script = "try for 10 seconds backoff fixed from 4 s; fail 7; end";
    let script = ftsh_syntax::parse("script", script).expect("valid");
    let mut machine = Machine::new(&script, Vec::new(), Vec::new(), Config::default(), 1);
    let mut commands = 0;
    let outcome = loop {
        match machine.poll_output() {
            Output::Effect(Effect::Run(run)) => {
                commands += 1;
                let (process, status) = (run.process, CommandStatus::Exited(7));
                let event = Event::Exited { process, status, line: None, reader_gone: false };
                machine.handle_event(Time::START, event);
            }
            Output::Effect(Effect::Terminate(scope)) => {
                machine.handle_event(Time::START, Event::Emptied { scope });
            }
            Output::Effect(_) => {}
            // The machine sleeps for a minute instead of four seconds.
            Output::Timeout(until) => machine.handle_timeout(until + seconds(60.0)),
            Output::Finished(outcome) => break outcome,
        }
    };
    let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
    assert_eq!((commands, failure.kind.name(), failure.tries[0].attempts), (1, "exit", 1));
}

#[test]
fn deferrals_are_no_attempts_and_end_on_time() {
    let ran = exponential()
        .logging(Level::STRUCTURES)
        .run("n=0\ntry for 1 hour or 2 times\n n=$n .add. 1\n if $n .lt. 9\n defer 1 minute\n end\n if $n .eq. 9\n failure\n end\nend\necho $n")
        .succeeds()
        .prints("10\n");
    // Eight deferrals, and the first delay of the policy.
    assert!(ran.elapsed >= seconds(8.0 * 60.0 + 1.0), "{:?}", ran.elapsed);
    assert!(ran.elapsed <= seconds(8.0 * 90.0 + 1.0), "{:?}", ran.elapsed);
}

#[test]
fn a_deferral_beyond_the_deadline_fails_at_once() {
    exponential().run("try for 1 minute\n defer 1 minute\nend").fails("deferred", 75).takes(0.0);
    // The random delay lies before the deadline.
    for limit in 61..90 {
        let script = format!(
            "n=0\ntry for {limit} seconds\n n=$n .add. 1\n if $n .eq. 1\n defer 1 minute\n end\nend"
        );
        let ran = exponential().run(&script).succeeds();
        let (least, most) = (seconds(60.0), seconds(f64::from(limit)));
        assert!(ran.elapsed >= least && ran.elapsed < most, "{limit}: {:?}", ran.elapsed);
    }
    // The same applies to an outer deadline.
    exponential()
        .run("try for 1 minute\n try 5 times\n defer 2 minutes\n catch\n echo $error_kind\n end\nend")
        .prints("deferred\n")
        .takes(0.0);
}

#[test]
fn a_deferral_is_for_the_innermost_try() {
    let found = "if $n .eq. 1\n defer 1 minute busy\n end";
    for inside in [
        format!("forany x in a b\n {found}\n end"),
        format!("forall x in a b\n {found}\n end"),
        format!("forall x in a b keep going\n {found}\n end"),
        format!("forany x in a b hedge after 1 s\n {found}\n end"),
        "f $n\n".into(),
        "if .succeeds. (f $n)\n ok\n end".into(),
    ] {
        let script = format!(
            "function f\n n=$1\n {found}\nend\nn=0\ntry for 1 hour or 1 time\n n=$n .add. 1\n {inside}\nend\necho $n"
        );
        let ran = exponential().run(&script).succeeds().prints("2\n");
        assert!(ran.elapsed >= seconds(60.0), "{inside}: {:?}", ran.elapsed);
    }
    exponential().run("defer 1 minute busy").fails("deferred", 75).takes(0.0);
    // Another failure after a deferral leads to the usual delay.
    exponential()
        .run("try 2 times\n forall x in a b keep going\n if $x .eq. a\n defer 1 hour\n end\n failure\n end\nend")
        .fails("deferred", 75)
        .takes(1.0);
    // A deferral passed on is an ordinary failure.
    exponential()
        .run("try 2 times\n try for 1 second\n defer 1 hour\n catch\n failure\n end\nend")
        .fails("deferred", 75);
}

#[test]
fn a_deferral_by_no_time_repeats_the_attempt_at_once() {
    let script = "n=0\ntry for 1 hour or 1 time\n n=$n + 1\n if $n < 4\n defer 0 seconds\n end\nend\necho $n";
    exponential().run(script).succeeds().prints("4\n").takes(0.0);
}

#[test]
fn a_deferral_needs_a_time() {
    for wrong in ["defer", "defer busy", "defer -1"] {
        exponential().run(&format!("try 2 times\n {wrong}\nend")).fails("usage", 2).takes(1.0);
    }
}

#[test]
fn the_first_long_delay_is_logged_with_failures() {
    let quiet = |script: &str| {
        let trace = world().logging(Level::FAILURES).run(script).world.trace();
        let is_logged = |line: &&str| line.contains("Delay {") || line.contains("Deferred {");
        trace.lines().filter(is_logged).map(str::trim).collect::<Vec<_>>().join("\n")
    };
    // Once for each `try`, including the inner `try`.
    let script = "for n in 1 2\n try 2 times every 1 minute\n  try 4 times backoff exponential \
                  from 20 s to 1 h by 2\n   fail\n  catch\n  ok\n  failure\n  end\n catch\n end\nend";
    assert_snapshot!(quiet(script), @r"
    1 min 3: Delay { delay: 80s, attempt: 4, last: false }
    3 min 20 s 3: Delay { delay: 80s, attempt: 4, last: false }
    5 min 40 s 3: Delay { delay: 80s, attempt: 4, last: false }
    8 min 3: Delay { delay: 80s, attempt: 4, last: false }
    ");
    let logged = quiet("try 3 times every 61 seconds; fail; end");
    assert_snapshot!(logged, @"0 ms 1: Delay { delay: 61s, attempt: 2, last: false }");
    assert_eq!(quiet("try 3 times every 1 minute; fail; end"), "");
    let script = "try 2 times\n if $elapsed .lt. 100\n  defer 90\n end\n fail\nend";
    assert_snapshot!(quiet(script), @"0 ms 1: Deferred { delay: 97.100824366s, attempt: 1 }");
}

#[test]
fn the_quietest_log_has_only_the_end_of_the_run() {
    let quiet = |script: &str| {
        let trace = world().logging(Level::ENDING).run(script).world.trace();
        let is_logged =
            |line: &&str| ["Failed(", "TryFailed", "EndedBy"].iter().any(|it| line.contains(it));
        let logged = |line: &str| line.split(", errno").next().unwrap_or(line).to_owned();
        trace.lines().map(str::trim).filter(is_logged).map(logged).collect::<Vec<_>>().join("\n")
    };
    let recovered = "try 3 times every 1 hour\n if $attempt .lt. 3\n  fail 1\n end\nend\n\
                     try\n fail 2\ncatch\n ok\nend\nforany n in 3 4 0; fail $n; end\n\
                     if .succeeds. (fail 5)\n ok\nend\n";
    assert_eq!(quiet(recovered), "");
    let logged = [
        &format!("{recovered}fail 6"),
        &format!("{recovered}try 2 times every 1 hour; fail 7; end"),
        "try; fail 8; catch; failure; end",
        "forall n in 1 2; work $n; fail $n; end",
        "forany n in 1 2 in order hedge after 1 s; try; fail $n; finally; work 2; end; end",
    ]
    .map(quiet);
    assert_snapshot!(logged.join("\n"), @r"
    2 h 15: CommandFailed(Failure { kind: Exit, code: 6
    3 h 15: TryFailed { failure: Failure { kind: Exit, code: 7
    0 ms 1: EndedBy(Failure { kind: Exit, code: 8
    1 s 1: CommandFailed(Failure { kind: Exit, code: 1
    3 s 1: EndedBy(Failure { kind: Exit, code: 2
    ");
}
