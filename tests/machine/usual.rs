//! `each usual or D` and `hedge after usual or D`.

use std::time::Duration;

use ftsh_machine::driver::Driver;
use ftsh_machine::durations::estimate::{Sample, SampleKind};
use ftsh_machine::durations::history::{DurationHistory, line};
use ftsh_machine::learned_limits;
use ftsh_machine::packed::BranchEnd;
use ftsh_sim::{Model, Simulated};

use super::elsewhere::first_branch;
use super::resuming::{self, End};
use super::{Ran, World, seconds, world};

/// Returns the text of a history of the first limit of a script, with a success of each length.
fn history(script: &str, lengths: &[f64]) -> String {
    let key = learned_limits(&ftsh_syntax::parse("script", script).expect("a script"))[0].key;
    let sample = |length: &f64| Sample { length: seconds(*length), kind: SampleKind::Success };
    lengths.iter().map(|length| line(key, sample(length))).collect()
}

/// Returns a world in which the script has run before, with attempts of these lengths.
fn after(script: &str, lengths: &[f64]) -> World {
    let history = history(script, lengths);
    world().model(|world| world.durations(&history))
}

/// Returns the samples of the only limit, in seconds with their kinds.
fn samples(ran: &Ran, script: &str) -> Vec<(f64, SampleKind)> {
    let key = learned_limits(&ftsh_syntax::parse("script", script).expect("a script"))[0].key;
    let history =
        DurationHistory::parse(ran.world.recorded_durations().as_bytes()).expect("a history");
    let samples = history.samples(key).into_iter();
    samples.map(|sample| (sample.length.as_secs_f64(), sample.kind)).collect()
}

const HANGS: &str = "try 2 times each usual or 20 minutes backoff none; hang; end";

#[test]
fn the_bound_holds_until_there_are_ten_durations() {
    let script = HANGS;
    let ran = after(script, &[10.0; 9]).run(script).fails("timeout", 124).takes(2400.0);
    assert_eq!(samples(&ran, script).len(), 9, "a cut at the bound teaches nothing");
}

#[test]
fn the_limit_is_a_multiple_of_earlier_durations_and_grows() {
    let script = HANGS;
    // Ten durations have a factor of 4.
    let ran = after(script, &[10.0; 10]).run(script).fails("timeout", 124).takes(40.0 + 160.0);
    let cut = |length| (length, SampleKind::Cut);
    assert_eq!(samples(&ran, script)[10..], [cut(80.0), cut(320.0)]);
    // 50 have a factor of 3.
    after(script, &[10.0; 50]).run(script).takes(30.0 + 120.0);
}

#[test]
fn the_limit_is_between_a_second_and_the_bound() {
    let script = HANGS;
    after(script, &[0.01; 50]).run(script).takes(1.0 + 4.0);
    after(script, &[300.0; 50]).run(script).takes(900.0 + 1200.0);
    after(script, &[9999.0; 50]).run(script).takes(2400.0);
}

#[test]
fn a_shorter_success_shows_that_an_attempt_hung() {
    let hangs_once = |world: Simulated| {
        let mut count = 0;
        world.command("some", move |_, _| {
            count += 1;
            if count == 1 { Model::hangs() } else { Model::succeeds().takes(seconds(7.0)) }
        })
    };
    let script = "try 3 times each usual or 20 minutes backoff none; some; end";
    let ran = after(script, &[10.0; 50]).model(hangs_once).run(script).succeeds().takes(37.0);
    let expected = [(60.0, SampleKind::Hang), (7.0, SampleKind::Success)];
    assert_eq!(samples(&ran, script)[50..], expected);
}

#[test]
fn work_that_became_slower_succeeds_with_a_longer_limit() {
    let script = "try 3 times each usual or 20 minutes backoff none; work 100; end";
    let ran = after(script, &[20.0; 50]).run(script).succeeds().takes(60.0 + 100.0);
    let expected = [(120.0, SampleKind::Cut), (100.0, SampleKind::Success)];
    assert_eq!(samples(&ran, script)[50..], expected);
    // The first limit of the next run is long enough.
    let recorded = ran.world.recorded_durations();
    world().model(|world| world.durations(&recorded)).run(script).succeeds().takes(100.0);
}

#[test]
fn a_run_learns_from_its_own_attempts() {
    let script = "for n in 1 .to. 10; try each usual or 20 minutes; work 5; end; end
        function f
          try each usual or 20 minutes; work 5; end
        end
        try 1 time each usual or 20 minutes; hang; end";
    // Another function and another head have durations of their own.
    let ran = world().run(script).fails("timeout", 124).takes(50.0 + 1200.0);
    assert_eq!(samples(&ran, script), [(5.0, SampleKind::Success); 10]);
    let script = "for n in 1 .to. 11
        try each usual or 20 minutes
          if $n .eql. 11; hang; end
          work 5
        end
      end";
    world().run(script).fails("timeout", 124).takes(50.0 + 20.0);
}

#[test]
fn failures_and_outer_limits_teach_nothing() {
    let script = "try for 25 seconds each usual or 20 minutes backoff none
        slowfail 5
      end";
    let ran = after(script, &[20.0; 50]).run(script);
    assert_eq!(samples(&ran, script).len(), 50);
    let script = "try for 25 seconds each usual or 20 minutes; hang; end";
    let ran = after(script, &[20.0; 50]).run(script).fails("timeout", 124).takes(25.0);
    assert_eq!(samples(&ran, script).len(), 50);
}

#[test]
fn a_sourced_file_has_durations_of_its_own() {
    let file = "try 1 time each usual or 20 minutes; hang; end";
    let key = history(file, &[10.0; 50]);
    let script = "source /lib/a";
    let with = |world: Simulated| world.file("/lib/a", file);
    // The script's record is another one.
    let ran = world().model(|world| with(world.durations(&key))).run(script);
    ran.fails("timeout", 124).takes(1200.0);
    let learns = "for n in 1 .to. 12
        m=$n
        source /lib/b
      end";
    let file = "try 1 time each usual or 20 minutes; if $m .eql. 12; hang; end; work 5; end";
    let ran = world().model(|world| world.file("/lib/b", file)).run(learns);
    let ran = ran.fails("timeout", 124);
    assert_eq!(ran.elapsed, Duration::from_millis(55_000 + 19_875), "{:?}", ran.elapsed);
}

#[test]
fn a_hedge_begins_when_most_words_would_have_succeeded() {
    let script = "forany n in 1 2 in order hedge after usual or 1 hour
        if $n .eql. 1; hang; end
        work 3
      end";
    let ran = after(script, &[2.0; 50]).run(script).succeeds().takes(2.0 + 3.0);
    assert_eq!(samples(&ran, script)[50..], [(3.0, SampleKind::Success)]);
    after(script, &[2.0; 9]).run(script).succeeds().takes(3600.0 + 3.0);
    // A delay has no shortest value.
    after(script, &[0.01; 50]).run(script).succeeds().takes(0.01 + 3.0);
}

#[test]
fn attempts_in_progress_at_a_resume_are_no_samples() {
    let ends = [(5.0, End::For(seconds(1.0)))];
    // Lost with its command, or continued by the next shell.
    for (work, lengths) in [("work 9", vec![9.0, 3.0]), ("sleep 9 s", vec![3.0])] {
        let script = format!(
            "for n in 1 2; try 2 times each usual or 1 hour backoff none
            if $n .eql. 1; {work}; else; work 3; end
          end; end"
        );
        let (ran, _) = resuming::run(world(), &ends, &script);
        let samples = samples(&ran.succeeds(), &script);
        let expected = lengths.into_iter().map(|length| (length, SampleKind::Success));
        assert_eq!(samples, expected.collect::<Vec<_>>(), "{work}");
    }
}

#[test]
fn branches_on_other_machines_use_the_bound() {
    let script = "forall x in a\n try 1 time each usual or 1 minute\n work 50\n end\nend";
    // Ten durations have a factor of 4.
    after(script, &[10.0; 10]).run(script).fails("timeout", 124).takes(40.0);
    let [here, there] = [(); 2].map(|()| after(script, &[10.0; 10]).simulated);
    let (end, there) = first_branch(script, here, there);
    assert_eq!(end, BranchEnd::Succeeded);
    assert_eq!(there.now().elapsed(), seconds(50.0));
    // The durations of the other machine stay as they are.
    assert_eq!(there.recorded_durations(), history(script, &[10.0; 10]));
    // A sourced file is read there, but its durations are not.
    let script = "forall x in a; for n in 1 .to. 12; m=$n; source /lib/b; end; end";
    let file = "try 1 time each usual or 20 minutes; if $m .eql. 12; hang; end; work 5; end";
    let [here, there] = [(); 2].map(|()| world().simulated.file("/lib/b", file));
    let (_, there) = first_branch(script, here, there);
    assert_eq!(there.now().elapsed(), seconds(55.0 + 1200.0));
}
