use ftsh_machine::effect::Effect;
use ftsh_machine::time::Deadline;
use ftsh_machine::{Config, Event, Machine, Outcome, Output, Time};

use super::{seconds, world};

#[test]
fn what_ignores_sigterm_is_killed_after_the_grace_period() {
    let ran = world().run("try for 1 second; stubborn; end").fails("timeout", 124).takes(31.0);
    assert!(ran.world.trace().contains("kill stubborn"));
}

#[test]
fn the_outer_deadline_cuts_the_cleaning_up_of_an_inner_one() {
    let ran = world()
        .config(|config| config.kill_timeout = seconds(5.0))
        .run("try for 3 seconds; try for 1 second; stubborn; end; end");
    ran.fails("timeout", 124).takes(6.0);
}

#[test]
fn the_next_attempt_waits_until_the_last_one_is_gone() {
    let script = "try 2 times each 1 second backoff none; stubborn; end";
    let ran = world().run(script).fails("timeout", 124).takes(62.0);
    let trace = ran.world.trace();
    let order: Vec<&str> =
        trace.lines().map(|line| line.trim_start().splitn(3, ' ').last().unwrap_or("")).collect();
    assert!(
        order.iter().position(|line| line.contains("kill"))
            < order.iter().rposition(|line| line.contains("run"))
    );
}

#[test]
fn what_a_failed_attempt_left_behind_goes() {
    let ran = world().run("try; daemon; fail; catch; ok; end").succeeds();
    assert!(ran.world.running().is_empty());
}

#[test]
fn what_a_successful_script_left_behind_stays() {
    let ran = world().run("try; daemon; end; ok").succeeds();
    assert_eq!(ran.world.running(), ["daemon"]);
}

#[test]
fn a_daemon_of_an_enclosing_scope_outlives_a_failed_attempt() {
    let ran = world().run("daemon; try; fail; catch; ok; end").succeeds();
    assert_eq!(ran.world.running(), ["daemon"]);
}

#[test]
fn what_a_failed_script_left_behind_goes() {
    let ran = world().run("daemon; fail 3").fails("exit", 3);
    assert!(ran.world.running().is_empty());
    let ran = world().run("try; daemon; exit 4; end");
    assert_eq!(ran.outcome, Outcome::Exited(4));
    assert!(ran.world.running().is_empty());
}

#[test]
fn a_signal_ends_everything() {
    for script in [
        "hang",
        "try for 1 hour; fail; end",
        "forall x in 1 .to. 100; hang; end",
        "sleep 1000",
        "ok | hang | cat",
        "try 5 times; forall x in a b; try for 1 day; hang; end; end; catch; hang; end",
    ] {
        let ran = world().model(|simulated| simulated.signal_at(seconds(2.0), 15)).run(script);
        assert_eq!(ran.outcome, Outcome::Interrupted(15), "{script}");
        assert_eq!(ran.elapsed, seconds(2.0), "{script}");
        assert!(ran.world.running().is_empty(), "{script}");
    }
}

#[test]
fn a_second_signal_cuts_the_grace_period_short() {
    let ran = world()
        .model(|simulated| simulated.signal_at(seconds(2.0), 2).signal_at(seconds(3.0), 2))
        .run("stubborn");
    assert_eq!(ran.outcome, Outcome::Interrupted(2));
    assert_eq!(ran.elapsed, seconds(3.0));
}

#[test]
fn only_a_run_that_was_told_to_end_gives_up_on_what_cannot_be_killed() {
    // How a scope whose command never ends is killed, with these events at seconds.
    let kills = |text: &str, signals: &[f64]| {
        let script = ftsh_syntax::parse("script", text).expect("valid");
        let config = Config { kill_timeout: seconds(5.0), ..Config::default() };
        let mut machine = Machine::new(&script, vec!["s".into()], vec![], config, 1);
        let mut kills = Vec::new();
        for second in 0..30 {
            let now = Time::after(seconds(f64::from(second)));
            loop {
                match machine.poll_output() {
                    Output::Effect(Effect::Kill { strong, .. }) => kills.push((second, strong)),
                    Output::Effect(_) => {}
                    _ => break,
                }
            }
            machine.handle_timeout(now);
            if signals.contains(&f64::from(second)) {
                machine.handle_event(now, Event::Interrupted(15));
            }
        }
        kills
    };
    assert_eq!(kills("try for 2 seconds; hang; end", &[]), [(8, true)]);
    assert_eq!(kills("hang", &[3.0]), [(9, false)]);
    assert_eq!(kills("hang", &[3.0, 4.0]), [(5, false), (9, false)]);
    // The attempt was being emptied when the run was told to end.
    let both = [(8, true), (10, false)];
    assert_eq!(kills("try for 2 seconds; hang; end", &[4.0]), both);
}

#[test]
fn no_command_runs_after_a_signal() {
    let ran = world()
        .model(|simulated| simulated.signal_at(seconds(1.0), 1))
        .run("try; hang; catch; echo caught; end; echo after");
    assert_eq!(ran.world.stdout(), "");
}

#[test]
fn the_run_has_a_deadline_of_its_own() {
    let deadline = ftsh_machine::Time::after(seconds(4.0));
    let ran = world()
        .config(|config| config.deadline = Deadline::at(deadline))
        .run("try for 1 day; hang; catch; hang; end");
    let ran = ran.fails("timeout", 124).takes(4.0);
    assert!(ran.world.running().is_empty());
}

#[test]
fn a_signal_just_after_the_deadline_leaves_the_commands_their_grace() {
    let deadline = ftsh_machine::Time::after(seconds(4.0));
    let signals = |count: u32| {
        world()
            .config(|config| {
                config.deadline = Deadline::at(deadline);
                config.kill_timeout = seconds(5.0);
            })
            .model(|simulated| {
                (1..=count).fold(simulated, |simulated, n| {
                    simulated.signal_at(seconds(4.0 + f64::from(n)), 15)
                })
            })
            .run("stubborn")
    };
    assert_eq!((signals(1).outcome, signals(1).elapsed), (Outcome::Interrupted(15), seconds(9.0)));
    assert_eq!((signals(2).outcome, signals(2).elapsed), (Outcome::Interrupted(15), seconds(6.0)));
}
