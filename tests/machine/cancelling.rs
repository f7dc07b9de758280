use ftsh_machine::effect::Effect;
use ftsh_machine::record::Level;
use ftsh_machine::time::Deadline;
use ftsh_machine::{Config, Event, Machine, Outcome, Output, Time};

use super::{seconds, world};

#[test]
fn commands_that_ignore_sigterm_are_killed() {
    let ran = world().run("try for 1 second; stubborn; end").fails("timeout", 124).takes(31.0);
    assert!(ran.world.trace().contains("kill stubborn"));
}

#[test]
fn outer_deadlines_cut_inner_cleanups() {
    let ran = world()
        .config(|config| config.kill_timeout = seconds(5.0))
        .run("try for 3 seconds; try for 1 second; stubborn; end; end");
    ran.fails("timeout", 124).takes(6.0);
}

#[test]
fn the_next_attempt_waits_for_the_end_of_the_last() {
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
fn processes_of_failed_attempts_are_killed() {
    let ran = world().run("try; daemon; fail; catch; ok; end").succeeds();
    assert!(ran.world.running().is_empty());
}

#[test]
fn processes_of_successful_scripts_are_kept() {
    let ran = world().run("try; daemon; end; ok").succeeds();
    assert_eq!(ran.world.running(), ["daemon"]);
}

#[test]
fn a_success_with_no_leftovers_leaves_only_what_is_kept() {
    for body in [
        "try no leftovers; daemon; end",
        "limit 1 hour no leftovers; daemon; end",
        "try atomic no leftovers; daemon; end > f",
        "try 2 times; limit 1 hour no leftovers; forall n in 1 2; daemon; end; end; end",
        "for n in 1; try no leftovers; daemon; break; end; end",
        "function f; try no leftovers; daemon; return; end; end; f",
    ] {
        let ran = world().logging(Level::ENDING).run(&format!("{body}; ok")).succeeds();
        assert!(ran.world.running().is_empty(), "{body}");
        let trace = ran.world.trace();
        assert!(trace.contains("no leftovers: ends daemon"), "{trace}");
        assert!(trace.find("terminate daemon") < trace.find("run ok"), "{trace}");
    }
    for body in ["try no leftovers; keep daemon; end", "daemon; try no leftovers; ok; end"] {
        let ran = world().run(body).succeeds();
        assert_eq!(ran.world.running(), ["daemon"], "{body}");
        let ran = world().config(|config| config.no_leftovers = true).run(body).succeeds();
        assert!(ran.world.running().is_empty(), "{body}");
    }
    let ran = world().run("try no leftovers; ok; end").succeeds();
    assert!(!ran.world.trace().contains("no leftovers"));
    world().run("try no leftovers; exec ok; end").fails("failure", 1);
}

#[test]
fn a_daemon_of_an_enclosing_scope_outlives_a_failed_attempt() {
    let ran = world().run("daemon; try; fail; catch; ok; end").succeeds();
    assert_eq!(ran.world.running(), ["daemon"]);
}

#[test]
fn processes_of_failed_scripts_are_killed() {
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
fn only_signaled_runs_give_up_on_unkillable_processes() {
    // Kills of a scope whose command never ends, with these signals at seconds.
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
    // The attempt was being emptied when the signal arrived.
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
