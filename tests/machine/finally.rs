//! `finally` groups: executed once after every end of a `try`, after its processes, within a time
//! limit.

use std::time::Duration;

use ftsh_machine::driver::{self, Driver};
use ftsh_machine::effect::{Action, Effect};
use ftsh_machine::record::Level;
use ftsh_machine::time::Deadline;
use ftsh_machine::{Event, Machine, Outcome, Time};
use ftsh_sim::{Model, Simulated};

use super::{World, seconds, world};

fn cleaning() -> World {
    world().config(|config| config.kill_timeout = Duration::from_secs(10))
}

#[test]
fn finally_runs_after_every_end() {
    let left = |body: &str| {
        format!(
            "for n in 1; try 2 times backoff none\n{body}\nfinally; echo f$error_kind; end; end"
        )
    };
    world().run(&left("ok")).succeeds().prints("f\n");
    world().run(&left("fail 3")).fails("exit", 3).prints("fexit\n");
    world().run(&left("fail 3\ncatch; echo c")).succeeds().prints("c\nfexit\n");
    world().run(&left("fail 3\ncatch; fail 4")).fails("exit", 4).prints("fexit\n");
    world().run(&left("break")).succeeds().prints("f\n");
    world().run(&left("continue")).succeeds().prints("f\n");
    world().run(&left("return")).succeeds().prints("f\n");
    world().run(&left("exit")).succeeds().prints("f\n");
    let ran = world().run(&left("exit 7")).prints("f\n");
    assert_eq!(ran.outcome, Outcome::Exited(7));
    world().run(&left("giveup")).fails("giveup", 1).prints("fgiveup\n");
    world()
        .run("try $x times; ok; finally; echo $error_kind; end")
        .fails("expression", 1)
        .prints("expression\n");
    world()
        .run("try for 3 seconds; hang; finally; work 9; echo $error_kind; end")
        .fails("timeout", 124)
        .prints("timeout\n")
        .takes(12.0);
}

#[test]
fn its_own_failure_replaces_success_only() {
    world().run("try; ok; finally; fail 5; end; echo no").fails("exit", 5).prints("");
    world().run("try; fail 4; finally; fail 5; end").fails("exit", 4);
    world().run("for n in 1 2; try; break; finally; fail 5; end; end").fails("exit", 5);
    world().run("try; return 4; finally; fail 5; end").fails("exit", 5);
    world().run("function f; try; return 4; finally; fail 5; end; end; f").fails("exit", 5);
    let ran = world().run("try; exit 4; finally; fail 5; end");
    assert_eq!(ran.outcome, Outcome::Exited(4));
    world().run("function f; exit; end; try; ok; finally; f; end").fails("failure", 1);
}

#[test]
fn canceled_tries_clean_up_from_the_inside_out() {
    let script = "try for 2 seconds or 1 time\n\
                  forall n in 1 2; try; try; hang; finally; work $n; echo in$n; end; finally; echo out$n$error_kind; end; end\n\
                  finally; echo last; end";
    cleaning()
        .run(script)
        .fails("timeout", 124)
        .prints("in1\nout1timeout\nin2\nout2timeout\nlast\n")
        .takes(4.0);
    let script = "forall n in 1 2; try; if $n .eql. 1; sleep 1; failure; end; hang; finally; echo $n $error_kind; end; end";
    cleaning().run(script).fails("failure", 1).prints("1 failure\n2 canceled\n").takes(1.0);
}

#[test]
fn the_groups_of_a_cancellation_share_half_of_the_time_to_kill() {
    // SIGTERM at 2 s, SIGKILL at 7 s. The groups have five seconds, and no time is left for their
    // remaining processes.
    let script = "try for 2 seconds or 1 time; try; stubborn; finally; echo a; stubborn; end; end";
    cleaning().run(script).fails("timeout", 124).prints("a\n").takes(12.0);
    // Commands that end on SIGTERM leave the second half to the kill.
    let script = "try for 2 seconds or 1 time; try; hang; finally; stubborn; end; end";
    cleaning().run(script).fails("timeout", 124).takes(12.0);
    let script = "try for 2 seconds or 1 time; try; try; hang; finally; work 3; echo a; end; finally; work 3; echo b; end; end";
    cleaning().run(script).fails("timeout", 124).prints("a\n").takes(7.0);
}

#[test]
fn processes_of_a_group_end_before_the_next_group() {
    // The command ends two seconds after SIGTERM.
    let late = |simulated: Simulated| {
        simulated.command("late", |_, _| Model {
            terminates_after: Some(seconds(2.0)),
            ..Model::succeeds().leaves_a_daemon()
        })
    };
    let script = "try for 2 seconds or 1 time; try; try; hang; finally; late; end\n\
                  finally; echo $elapsed; end; end";
    cleaning().model(late).run(script).fails("timeout", 124).prints("4\n").takes(4.0);
}

#[test]
fn a_limit_inside_a_group_cancels_only_what_is_inside() {
    let inner =
        "try for 1 second or 1 time; try; hang; finally; echo inner; end; catch; echo caught; end";
    let script =
        format!("try for 2 seconds or 1 time; try; hang; finally; {inner}; echo outer; end; end");
    cleaning().run(&script).fails("timeout", 124).prints("inner\ncaught\nouter\n").takes(3.0);
}

#[test]
fn a_second_signal_cuts_finally_short() {
    let script = "try; hang; finally; echo $error_kind; work 3; echo end; end; echo no";
    let signal = |world: World, at: f64| world.model(|model| model.signal_at(seconds(at), 15));
    let ran = signal(cleaning(), 1.0).run(script).prints("canceled\nend\n").takes(4.0);
    assert_eq!(ran.outcome, Outcome::Interrupted(15));
    let ran = signal(signal(cleaning(), 1.0), 2.0).run(script).prints("canceled\n").takes(2.0);
    assert_eq!(ran.outcome, Outcome::Interrupted(15));
}

#[test]
fn the_log_says_that_a_running_group_continues() {
    let script = "try for 2 seconds or 1 time; try; fail; finally; work 3; echo end; end; end";
    let ran = cleaning().logging(Level::FAILURES).run(script).prints("end\n").takes(3.0);
    let trace = ran.world.trace();
    assert_eq!(trace.matches("FinallyContinues { time: ").count(), 1, "{trace}");
    let script = "try for 9 seconds or 1 time; try; fail; finally; work 3; echo end; end; end";
    let ran = cleaning().logging(Level::FAILURES).run(script).prints("end\n").takes(3.0);
    assert!(!ran.world.trace().contains("FinallyContinues"), "{}", ran.world.trace());
}

#[test]
fn without_time_to_kill_none_runs_and_the_log_says_so() {
    let world =
        world().config(|config| config.kill_timeout = Duration::ZERO).logging(Level::FAILURES);
    let ran = world
        .run("try for 1 second or 1 time; try; hang; finally; echo no; end; end")
        .prints("")
        .takes(1.0);
    assert!(ran.world.trace().contains("FinallyCut { begun: false }"), "{}", ran.world.trace());
}

#[test]
fn commands_see_their_limit() {
    let canceled = "try for 2 seconds or 1 time; try; hang; finally; show; try for 1 hour; show; end; end; end";
    check_limits(canceled, [7.0, 7.0]);
    // A group in progress continues for its share after the enclosing limit.
    let begun = "try for 2 seconds or 1 time; try; ok; finally; show; forall n in 1; try for 1 hour; show; end; end; hang; end; end";
    check_limits(begun, [7.0, 7.0]);
    let own = "try for 2 seconds or 1 time; try; ok; finally; try for 1 second; show; end; work 3; show; hang; end; end";
    check_limits(own, [1.0, 7.0]);
}

/// Compares the limits reported by `show` in a script with these moments, in seconds.
fn check_limits(script: &str, limits: [f64; 2]) {
    let received = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = std::sync::Arc::clone(&received);
    cleaning()
        .model(|model| {
            model.command("show", move |call, _| {
                seen.lock().expect("not poisoned").push(call.deadline);
                Model::succeeds()
            })
        })
        .run(script)
        .fails("timeout", 124);
    let limits = limits.map(|limit| Deadline::at(Time::after(seconds(limit))));
    assert_eq!(*received.lock().expect("not poisoned"), limits);
}

#[test]
fn commands_receive_their_kill_timeout() {
    let seen = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let note = std::rc::Rc::clone(&seen);
    let model = move |simulated: Simulated| {
        simulated.command("see", move |call, _| {
            note.borrow_mut().push((call.words[1].to_string(), call.grace.map(|it| it.as_secs())));
            Model::succeeds()
        })
    };
    let script = "see before
        try for 9 seconds or 1 time
            forall x in a
                try
                    try 1 time; see inside; end
                    see stage | ok
                    hang
                catch
                    ok
                finally
                    see cleaning
                end
            end
        catch
            see after
        end
        try; ok; finally; see usual; end";
    cleaning().model(model).run(script).succeeds().takes(9.0);
    let expected = [
        ("before", None),
        ("inside", Some(5)),
        ("stage", Some(5)),
        ("cleaning", Some(5)),
        ("after", None),
        ("usual", Some(5)),
    ];
    assert_eq!(seen.take(), expected.map(|(name, grace)| (name.to_owned(), grace)));
}

/// Sends a signal at `at` seconds.
fn signaled(at: f64) -> impl FnOnce(Simulated) -> Simulated {
    move |model| model.signal_at(seconds(at), 15)
}

#[test]
fn a_group_in_progress_has_its_share_after_the_cut() {
    let limited = "try for 2 seconds or 1 time; try; ok; finally; work 4; echo f; end; echo no\n\
                   catch; echo c$error_kind; end";
    cleaning().run(limited).succeeds().prints("f\nctimeout\n").takes(4.0);
    let limited = "try 1 time each 2 seconds; try; ok; finally; work 4; echo f; end; echo no\n\
                   catch; echo c; end";
    cleaning().run(limited).succeeds().prints("f\nc\n").takes(4.0);
    let alone = "try; ok; finally; work 4; echo f; end; echo no";
    let ran = cleaning().model(signaled(1.0)).run(alone).prints("f\n").takes(4.0);
    assert_eq!(ran.outcome, Outcome::Interrupted(15));
    let run = |config: &mut ftsh_machine::Config| {
        config.deadline = Deadline::at(Time::after(seconds(1.0)));
    };
    cleaning().config(run).run(alone).fails("timeout", 124).prints("f\n").takes(4.0);
}

/// World that delivers no timeout before a moment, like a stopped shell.
struct Stopped {
    world: Simulated,
    until: Time,
}

impl Driver for Stopped {
    fn now(&self) -> Time {
        self.world.now()
    }

    fn perform(&mut self, effect: Effect) {
        self.world.perform(effect);
    }

    fn wait(&mut self, until: Time) -> Option<Event> {
        self.world.wait(until.max(self.until))
    }
}

#[test]
fn the_share_of_a_group_in_progress_counts_from_a_late_cut() {
    // Both moments have passed at 20 s. The share of the group comes first, and the group is in
    // progress at the cut.
    let run = |length: f64| {
        let script = format!(
            "try for 3 seconds or 1 time\n\
             hang | try; sleep 2; finally; work {length}; echo f; end\n\
             catch; echo c; end"
        );
        let World { simulated, config, .. } = cleaning();
        let script = ftsh_syntax::parse("script", &script).expect("a script");
        let mut machine = Machine::new(&script, vec!["script".into()], Vec::new(), config, 7);
        let mut stopped = Stopped { world: simulated, until: Time::after(seconds(20.0)) };
        let outcome = driver::run(&mut machine, &mut stopped);
        let elapsed = stopped.now().elapsed();
        super::Ran { outcome, world: stopped.world, elapsed }
    };
    run(4.0).succeeds().prints("f\nc\n").takes(24.0);
    let ran = run(6.0).succeeds().prints("c\n").takes(25.0);
    assert!(ran.world.trace().contains("FinallyCut { begun: true }"), "{}", ran.world.trace());
}

/// World with a signal during the write of a canceled branch's output.
struct Signaled {
    world: Simulated,
    /// Next event.
    signal: Option<Event>,
    /// Number of writes of held output so far.
    writes: usize,
}

impl Driver for Signaled {
    fn now(&self) -> Time {
        self.world.now()
    }

    fn perform(&mut self, effect: Effect) {
        if matches!(&effect, Effect::Run(run) if matches!(run.action, Action::Copy)) {
            self.writes += 1;
            self.signal = (self.writes == 1).then_some(Event::Interrupted(15));
        }
        self.world.perform(effect);
    }

    fn wait(&mut self, until: Time) -> Option<Event> {
        self.signal.take().or_else(|| self.world.wait(until))
    }
}

#[test]
fn a_group_that_was_cut_short_is_not_waited_for() {
    // At 7 s the share of the group is over, and its output is written when the signal arrives.
    let script = "try for 2 seconds or 1 time; forall a in 1; try; ok; finally\n\
                  forall n in 1 output grouped; echo x; hang; end; end; end; end";
    let parsed = ftsh_syntax::parse("script", script).expect("a script");
    let World { simulated, config, .. } = cleaning();
    let mut machine = Machine::new(&parsed, vec!["script".into()], Vec::new(), config, 7);
    let mut signaled = Signaled { world: simulated, signal: None, writes: 0 };
    let outcome = driver::run(&mut machine, &mut signaled);
    let elapsed = signaled.now().elapsed();
    let ran = super::Ran { outcome, world: signaled.world, elapsed }.prints("x\nx\n").takes(7.0);
    assert_eq!(ran.outcome, Outcome::Interrupted(15));
    assert!(ran.world.stderr().contains("part of it may be above"), "{}", ran.world.stderr());
}

#[test]
fn branches_that_fail_one_after_the_other_finish_their_groups() {
    let script = "forall n in 1 4; try; fail $n; finally; work $n; echo $n; end; end";
    cleaning().run(script).fails("exit", 1).prints("1\n4\n").takes(4.0);
    let enough = "forall n in 1 4 at least 1; try; ok; finally; work $n; echo $n; end; end";
    cleaning().run(enough).succeeds().prints("1\n4\n").takes(4.0);
    // The hanging branch is ended at once, and its own group follows those in progress.
    let limited = "try for 2 seconds or 1 time\n\
                   forall n in 1 2; try; if $n .eql. 2; stubborn; end\n\
                   finally; work 3; echo $n; end; end\n\
                   catch; echo c; end";
    let ran = cleaning().run(limited).succeeds().prints("1\n2\nc\n").takes(10.0);
    let trace = ran.world.trace();
    let killed = trace.lines().find(|line| line.contains("kill stubborn")).expect("killed");
    assert!(killed.trim_start().starts_with('7'), "{trace}");
}

#[test]
fn outer_work_is_cut_after_a_group_in_progress() {
    // The outer groups have their time afterwards.
    let script = "try for 2 seconds or 1 time; try; try; ok; finally; work 4; echo in; end; echo no\n\
                  finally; work 4; echo out; end; catch; echo c; end";
    cleaning().run(script).succeeds().prints("in\nout\nc\n").takes(8.0);
    // A new group of a canceled `try` is also in progress at a further cancellation.
    let script = "try for 3 seconds or 1 time; try for 2 seconds or 1 time\n\
                  try; hang; finally; work 4; echo f; end; catch; echo no; end; echo no\n\
                  catch; echo c; end";
    cleaning().run(script).succeeds().prints("f\nc\n").takes(6.0);
    let ran = cleaning().model(signaled(3.0)).run(script).prints("f\n").takes(6.0);
    assert_eq!(ran.outcome, Outcome::Interrupted(15));
    // The same applies to a group in an inner branch, or in a stage of a pipeline.
    let script = "try for 2 seconds or 1 time; forall a in 1; forall b in 1 2\n\
                  try; ok; finally; work 4; echo $b; end; end; echo no; end; catch; echo c; end";
    cleaning().run(script).succeeds().prints("1\n2\nc\n").takes(4.0);
    let script = "try for 2 seconds or 1 time; ok | try; ok; finally; work 4; echo f; end\n\
                  catch; echo c; end";
    cleaning().run(script).succeeds().prints("f\nc\n").takes(4.0);
}

#[test]
fn a_limit_that_passes_in_a_group_in_progress_undoes_no_cut_around_it() {
    // The signal arrives at 1 s, the limit of the attempt passes at 3 s, and the group ends at 4 s.
    let attempt = "try 2 times backoff none each 3 seconds; try; ok; finally; work 4; echo f; end\n\
                   echo no; catch; echo no; end; echo no";
    for script in [
        attempt.to_owned(),
        format!("forall n in 1; {attempt}; end; echo no"),
        format!("ok | forall n in 1; {attempt}; end; echo no"),
        format!("try; {attempt}; catch; echo no; end; echo no"),
    ] {
        let ran = cleaning().model(signaled(1.0)).run(&script).prints("f\n").takes(4.0);
        assert_eq!(ran.outcome, Outcome::Interrupted(15), "{script}");
    }
    // A branch canceled by the failure of another branch has no next attempt either.
    let script = format!("forall n in 1 2; if $n .eql. 2; sleep 1; failure; end; {attempt}; end");
    cleaning().run(&script).fails("failure", 1).prints("f\n").takes(4.0);
}

#[test]
fn a_further_cut_gives_a_group_no_more_time() {
    // The share of the group of `1` counts from 1 s, that of the other one from 3 s.
    let script = |words| {
        format!(
            "try for 3 seconds or 1 time; forall n in {words}\n\
             if $n .eql. 1; try for 1 second or 1 time; try; hang; finally; work 9; end; end\n\
             else; try; ok; finally; work 7; echo f; end; end\n\
             end; catch; echo c; end"
        )
    };
    let check = |words, output, end| {
        let ran = cleaning().run(&script(words)).succeeds().prints(output).takes(end);
        let trace = ran.world.trace();
        assert_eq!(trace.matches("FinallyCut { begun: true }").count(), 1, "{trace}");
    };
    check("1", "c\n", 6.0);
    check("1 2", "f\nc\n", 7.0);
    // A group within its time is followed by the cut as before.
    let script = script("1 2").replace("work 9", "work 4; echo in");
    cleaning().run(&script).succeeds().prints("in\nf\nc\n").takes(7.0);
}

#[test]
fn tries_in_a_group_in_progress_go_on_within_its_share() {
    let retried = |most: u32| {
        format!(
            "try for 2 seconds or 1 time; try; ok; finally; n=0; try for 1 hour every 1 second\n\
             n=$n .add. 1; if $n .lt. {most}; failure; end; end; echo $n; end; catch; echo c; end"
        )
    };
    cleaning().run(&retried(5)).succeeds().prints("5\nc\n").takes(4.0);
    cleaning().run(&retried(50)).succeeds().prints("c\n").takes(6.0);
    // A limit after the enclosing limit counts now.
    let own = "try for 2 seconds or 1 time; try; ok; finally\n\
               ok | try for 3 seconds or 1 time; hang; catch; echo own; end; end\n\
               catch; echo c; end";
    cleaning().run(own).succeeds().prints("own\nc\n").takes(3.0);
}

#[test]
fn a_group_in_progress_has_to_end_and_the_log_says_so_at_every_level() {
    let check = |ran: &super::Ran| {
        let trace = ran.world.trace();
        assert_eq!(trace.matches("FinallyCut { begun: true }").count(), 1, "{trace}");
    };
    let world = || cleaning().logging(Level::NOTHING);
    let limited = "try for 2 seconds or 1 time; try; ok; finally; hang; end; catch; echo c; end";
    check(&world().run(limited).succeeds().prints("c\n").takes(7.0));
    let nested = "try for 2 seconds or 1 time; try; ok; finally\n\
                  try; hang; finally; echo in; end; end; catch; echo c; end";
    check(&world().run(nested).succeeds().prints("in\nc\n").takes(7.0));
    let branch = "try for 2 seconds or 1 time; forall n in 1; try; ok; finally; hang; end; end\n\
                  catch; echo c; end";
    check(&world().run(branch).succeeds().prints("c\n").takes(7.0));
    let alone = "try; ok; finally; hang; end";
    check(&world().model(signaled(1.0)).run(alone).prints("").takes(6.0));
    // A second signal shortens the share; without time to kill there is no share.
    let twice = world().model(signaled(1.0)).model(signaled(2.0));
    check(&twice.run(alone).prints("").takes(2.0));
    let zero = world().config(|config| config.kill_timeout = Duration::ZERO);
    check(&zero.run(limited).succeeds().prints("c\n").takes(2.0));
}
