//! Repeatability: the same script, seed and events give the same effects, at any log level.

use ftsh_machine::driver::{self, Driver};
use ftsh_machine::record::Level;
use ftsh_machine::{Config, Effect, Event, Machine, Outcome, Time};
use ftsh_sim::{Model, Simulated};

/// World that records effects, except log records.
struct Recorder {
    world: Simulated,
    effects: Vec<String>,
}

impl Driver for Recorder {
    fn now(&self) -> Time {
        self.world.now()
    }

    fn perform(&mut self, effect: Effect) {
        if !matches!(effect, Effect::Log(_)) {
            self.effects.push(format!("{effect:?}"));
        }
        self.world.perform(effect);
    }

    fn wait(&mut self, until: Time) -> Option<Event> {
        self.world.wait(until)
    }
}

fn run(script: &str, log_level: Level) -> (Vec<String>, Outcome) {
    let script = ftsh_syntax::parse("script", script).expect("valid");
    let config = Config { log_level, ..Config::default() };
    let mut machine = Machine::new(&script, vec!["script".into()], Vec::new(), config, 7);
    let world = Simulated::new(1)
        .command("ok", |_, _| Model::succeeds())
        .command("fail", |_, _| Model::fails(1));
    let mut recorder = Recorder { world, effects: Vec::new() };
    let outcome = driver::run(&mut machine, &mut recorder);
    (recorder.effects, outcome)
}

#[track_caller]
fn repeats(script: &str) {
    let first = run(script, Level::NOTHING);
    for level in [0, 10, 20, 30, 40].map(Level) {
        assert_eq!(run(script, level), first, "at log level {}", level.0);
    }
}

#[test]
fn buffers_of_exported_variables_are_requested_in_order() {
    repeats("for v in a b c d e f g h; echo $v -> $v; end; export a b c d e f g h; ok");
}

#[test]
fn buffers_of_a_branch_are_dropped_in_order() {
    repeats("forall i in 1 2 3; for v in a b c d e f; echo $v -> $v; end; end; ok");
    repeats(
        "for v in a b c d e f; echo $v -> $v; end; forall i in 1 2; ok; end; \
         unset a b c d e f; forall i in 1; ok; end",
    );
}

#[test]
fn the_first_of_equally_near_names_is_suggested() {
    for _ in 0..4 {
        let functions = ["worb", "word", "wora", "worf", "worc", "wore"];
        let functions = functions.map(|name| format!("function {name}; ok; end\n")).concat();
        let (_, outcome) = run(&format!("worz\n{functions}"), Level::NOTHING);
        let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
        assert!(failure.message.contains("`wora`"), "{failure}");
    }
}

#[test]
fn logging_changes_no_turn() {
    repeats(
        "forall i in 1 2 3 4
             a=$i; b=$a .add. 1
             if $i .mod. 2 .eql. 0; c=$b; d=$c; end
             try 2 times backoff full; e=$b; ok; f=$e; fail; catch; g=1; ok; end
             ok
         end",
    );
}
