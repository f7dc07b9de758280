use ftsh_machine::driver::{self, Driver};
use ftsh_machine::event::Reply;
use ftsh_machine::time::Deadline;
use ftsh_machine::{Effect, Event, Machine, Outcome, Output, Time};
use ftsh_sim::Simulated;

use super::{World, seconds, world};

/// Session in a simulated world.
struct Session {
    machine: Machine,
    world: Simulated,
}

impl World {
    fn session(self) -> Session {
        let parsed = ftsh_syntax::parse("session", "").expect("an empty script");
        let args = ["ftsh"].map(Into::into).to_vec();
        let mut machine = Machine::new(&parsed, args, Vec::new(), self.config, 7);
        let mut world = self.simulated;
        assert_eq!(driver::run(&mut machine, &mut world), Outcome::Succeeded);
        Session { machine, world }
    }
}

impl Session {
    fn says(&mut self, script: &str) -> Outcome {
        let parsed = ftsh_syntax::parse("session", script)
            .unwrap_or_else(|errors| panic!("{script}\n{:#?}", errors.errors));
        self.machine.run_next(&parsed);
        driver::run(&mut self.machine, &mut self.world)
    }

    #[track_caller]
    fn prints(&mut self, script: &str, expected: &str) {
        let before = self.world.stdout().len();
        assert_eq!(self.says(script), Outcome::Succeeded, "{}", self.world.trace());
        assert_eq!(&self.world.stdout()[before..], expected, "{script}");
    }

    #[track_caller]
    fn fails(&mut self, script: &str, kind: &str) {
        match self.says(script) {
            Outcome::Failed(failure) => assert_eq!(failure.kind.name(), kind, "{failure}"),
            other => panic!("{other:?}\n{}", self.world.trace()),
        }
    }

    fn elapsed(&self) -> f64 {
        self.world.now().elapsed().as_secs_f64()
    }
}

#[test]
fn a_session_keeps_variables_and_functions() {
    let mut session = world().session();
    session.prints("a=1\nfunction f; echo $a $1; end", "");
    session.prints("f x", "1 x\n");
    session.prints("function f; echo new $1; end; f y", "new y\n");
    session.prints("umask; umask 077", "0022\n");
    session.prints("umask", "0077\n");
    session.prints("echo $a -> b; a=2; unset nothing", "");
    session.prints("f $a", "new 2\n");
    session.prints("echo $0 $#", "ftsh 0\n");
}

#[test]
fn sessions_keep_effects_before_a_failure() {
    let mut session = world().session();
    session.fails("a=1; fail 3; a=2", "exit");
    session.prints("echo $a", "1\n");
    session.fails("function f; shift; A=9 g; end\nfunction g; fail; end\nf x", "exit");
    session.prints("echo $# ${A:-unset}", "0 unset\n");
    session.fails("forall x in 1 2; a=3; fail; end", "exit");
    session.prints("echo $a", "1\n");
}

#[test]
fn sessions_explain_the_last_failure() {
    let mut session = world().session();
    session.fails("echo $error", "expression");
    session.fails("fail 7", "exit");
    session.prints("echo $error_kind $error_code", "exit 7\n");
    session.prints("echo $error_line $error_command", "1 fail 7\n");
}

#[test]
fn output_in_a_variable_outlives_its_statement() {
    let mut session = world().session();
    session.prints("echo text -> v", "");
    session.prints("ok", "");
    session.prints("echo $v", "text\n");
    session.prints("cat -< v", "text\n");
}

#[test]
fn processes_of_successful_statements_belong_to_the_session() {
    let mut session = world().session();
    session.prints("daemon", "");
    session.fails("fail", "exit");
    session.fails("try; daemon; fail; end", "exit");
    session.fails("daemon; fail", "exit");
    session.prints("try; daemon; end", "");
    assert_eq!(session.world.running(), ["daemon", "daemon"]);
    assert_eq!(session.says("exit 3"), Outcome::Exited(3));
    assert!(session.machine.exit_requested());
    assert_eq!(session.world.running(), ["daemon", "daemon"]);
}

#[test]
fn only_exit_leaves() {
    let mut session = world().session();
    for script in ["ok", "return", "forall x in 1 2; exit; end", "ok | exit"] {
        session.says(script);
        assert!(!session.machine.exit_requested(), "{script}");
    }
    session.fails("exit many", "usage");
    assert!(!session.machine.exit_requested());
    for script in ["exit", "exit 0", "function f; exit; end; f; hang", "try; exit 1; end"] {
        session.says(script);
        assert!(session.machine.exit_requested(), "{script}");
    }
}

#[test]
fn an_interrupt_cancels_the_statement_alone() {
    for (index, script) in [
        "hang",
        "try for 1 hour; fail; end",
        "forall x in 1 .to. 100; hang; end",
        "sleep 1000",
        "while true; work 0.3; end",
        "ok | hang | cat",
        "daemon; hang",
        "try 5 times; forall x in a b; try for 1 day; hang; end; end; catch; hang; end",
    ]
    .into_iter()
    .enumerate()
    {
        let signal = 2 + index as i32 % 2;
        let simulated = |it: Simulated| it.signal_at(seconds(2.0), signal);
        let mut session = world().model(simulated).session();
        session.prints("daemon; a=1", "");
        assert_eq!(session.says(script), Outcome::Interrupted(signal), "{script}");
        assert!((session.elapsed() - 2.0).abs() < 1e-6, "{script}");
        assert_eq!(session.world.running(), ["daemon"], "{script}");
        session.prints("work 5; echo $a", "1\n");
        assert!((session.elapsed() - 7.0).abs() < 1e-6, "{script}");
        session.prints("try for 1 minute; work 1; end", "");
    }
}

#[test]
fn a_second_interrupt_cuts_the_grace_period_short() {
    for script in ["stubborn", "try for 10 seconds; stubborn; end"] {
        let simulated = |it: Simulated| it.signal_at(seconds(2.0), 2).signal_at(seconds(3.0), 2);
        let mut session = world().model(simulated).session();
        assert_eq!(session.says(script), Outcome::Interrupted(2));
        assert!((session.elapsed() - 3.0).abs() < 1e-6, "{script} {}", session.elapsed());
        assert!(session.world.running().is_empty(), "{script}");
        session.prints("work 40", "");
    }
}

#[test]
fn a_signal_to_end_ends_the_session() {
    for script in ["hang", "stubborn", "sleep 1000"] {
        for signals in [&[(2.0, 15)][..], &[(1.0, 2), (2.0, 1), (2.5, 2)]] {
            let simulated = |it: Simulated| {
                signals.iter().fold(it, |it, (at, signal)| it.signal_at(seconds(*at), *signal))
            };
            let mut session = world().model(simulated).session();
            session.prints("daemon", "");
            let outcome = session.says(script);
            if script == "stubborn" || signals.len() == 1 {
                let signal = signals[signals.len() / 2].1;
                assert_eq!(outcome, Outcome::Interrupted(signal), "{script}");
                assert!(session.world.running().is_empty(), "{script}");
            }
        }
    }
}

#[test]
fn signals_between_statements_end_running_processes() {
    let mut session = world().session();
    session.prints("daemon", "");
    let nothing = ftsh_syntax::parse("session", "").expect("an empty script");
    session.machine.run_next(&nothing);
    session.machine.handle_event(session.world.now(), Event::Interrupted(15));
    let outcome = driver::run(&mut session.machine, &mut session.world);
    assert_eq!(outcome, Outcome::Interrupted(15));
    assert!(session.world.running().is_empty());
}

#[test]
fn the_deadline_of_a_session_cuts_its_statement_short() {
    let ends = |config: &mut ftsh_machine::Config| {
        config.deadline = Deadline::at(ftsh_machine::Time::after(seconds(10.0)));
    };
    let mut session = world().config(ends).session();
    session.prints("work 4; daemon", "");
    session.fails("work 40", "timeout");
    assert!((session.elapsed() - 10.0).abs() < 1e-6);
    assert!(session.machine.deadline().is_past(session.world.now()));
    assert!(session.world.running().is_empty());
}

#[test]
fn nothing_is_in_progress_after_a_statement() {
    let mut session = world().session();
    let before = session.machine.in_progress();
    for script in [
        "echo a -> v",
        "fail 3",
        "v=$nothing",
        "try for 1 second; try; sleep 5; end; end",
        "try for 1 second; forall i in 1 2; try; sleep 5; end; end; end",
        "forall i in 1 2; try 2 times; if $i .eql. 1; failure; end; sleep 5; end; end",
        "forall i in 1 2; try; exit 1; end; end",
        "function g; try; return; end; end\ng",
    ] {
        session.says(script);
        assert_eq!(session.machine.in_progress(), before, "{script}");
    }
}

/// Returns the number of buffers dropped by a script after another script created one.
fn dropped_by(text: &str) -> usize {
    let mut session = world().session();
    session.prints("echo a -> v; forall i in 1 2; ok; end", "");
    let parsed = ftsh_syntax::parse("session", text).expect("a script");
    session.machine.run_next(&parsed);
    let mut dropped = 0;
    loop {
        match session.machine.poll_output() {
            Output::Effect(Effect::Open { operation, .. }) => {
                let result = Ok(Reply::Truth(true));
                let event = Event::Done { operation, result };
                session.machine.handle_event(Time::START, event);
            }
            Output::Effect(effect) => {
                dropped += usize::from(matches!(effect, Effect::DropBuffer(_)));
            }
            Output::Timeout(now) => session.machine.handle_timeout(now),
            Output::Finished(_) => return dropped,
        }
    }
}

#[test]
fn unset_buffers_are_dropped() {
    assert_eq!(dropped_by("unset v"), 1);
    // One stage of a pipeline drops the value, while the other stage still has it.
    assert_eq!(dropped_by("function f; v=; end; function g; w=1; end; f | g"), 1);
}
