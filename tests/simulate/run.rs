//! One program in one world: what happens, and which promise is broken.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use ftsh::backoff::{Kind, Policy};
use ftsh::machine::record::Level;
use ftsh::machine::{Config, Effect, Machine, Outcome, Output, Time};

use crate::dice::Dice;
use crate::oracle::{Oracles, Violation};
use crate::program::{Program, SCRIPT, generate};
use crate::world::{Faulty, Told};

/// How many outputs a machine may have before it is told to end, and then again.
const MOST_OUTPUTS: usize = 20_000;
/// The same for time.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
const SIGTERM: i32 = 15;

/// What happened.
#[derive(Default)]
pub struct Ran {
    /// A line for each effect and event, if they were asked for.
    pub trace: Vec<String>,
    /// What stands for the trace.
    pub digest: u64,
    pub violation: Option<Violation>,
    /// How many commands were started.
    pub commands: usize,
    /// How many faults there were, by kind.
    pub faults: BTreeMap<&'static str, usize>,
    keeps: bool,
    outputs: usize,
    patience: bool,
}

/// The program of a seed.
pub fn program(seed: u64) -> Program {
    generate(Dice::new(seed))
}

/// Runs the program twice: it must keep every promise, and do the same at another log level.
pub fn check(program: &Program, seed: u64) -> Ran {
    let mut first = run(program, seed, Level::STRUCTURES, false);
    if first.violation.is_none() {
        let level = [Level::NOTHING, Level::FAILURES, Level::COMMANDS, Level::PROCESSES];
        let level = level[seed as usize % level.len()];
        let second = run(program, seed, level, false);
        if second.digest != first.digest {
            first.violation = Some(difference(program, seed, level));
        }
    }
    first
}

/// The first line in which two runs differ.
fn difference(program: &Program, seed: u64, level: Level) -> Violation {
    let first = run(program, seed, Level::STRUCTURES, true).trace;
    let second = run(program, seed, level, true).trace;
    let lines = first.iter().zip(&second).find(|(one, other)| one != other);
    let what = match lines {
        Some((one, other)) => format!("at log level {}:\n{other}\ninstead of\n{one}", level.0),
        None => format!("{} lines, and {} at level {}", first.len(), second.len(), level.0),
    };
    Violation { oracle: "determinism", what }
}

/// Runs the program once.
pub fn run(program: &Program, seed: u64, level: Level, keeps: bool) -> Ran {
    let mut ran = Ran { keeps, ..Ran::default() };
    let result = catch_unwind(AssertUnwindSafe(|| ran.run(program, seed, level)));
    ran.violation = match result {
        Ok(result) => result.err(),
        Err(_) => Some(Violation { oracle: "panics", what: "see above".into() }),
    };
    ran
}

fn config(dice: &mut Dice, log_level: Level) -> Config {
    let seconds = Duration::from_secs;
    let quick = Policy { from: Duration::from_millis(100), ..Policy::new(Kind::Full) };
    Config {
        pid: 42,
        backoff: if dice.chance(0.5) { Policy::default() } else { quick },
        kill_timeout: seconds(if dice.chance(0.5) { 7 } else { 0 }),
        kill_strong: dice.chance(0.8),
        unset_is_empty: dice.chance(0.5),
        deadline: dice.chance(0.3).then(|| Time::after(dice.time(seconds(200)))),
        log_level,
        ..Config::default()
    }
}

impl Ran {
    fn run(&mut self, program: &Program, seed: u64, level: Level) -> Result<(), Violation> {
        // Another sequence than that which made the program.
        let mut dice = Dice::new(!seed);
        let (script, library, promises) = program.texts();
        let script = ftsh::syntax::parse(SCRIPT, &script).map_err(|errors| Violation {
            oracle: "syntax",
            what: format!("{:?}\n{script}", errors.errors),
        })?;
        let config = config(&mut dice, level);
        let mut oracles = (level == Level::STRUCTURES).then(|| Oracles::new(&promises, &config));
        let environment = vec![("HOME".into(), "/home".into()), ("ENV".into(), "1".into())];
        let args = vec![SCRIPT.into(), "first".into(), "second one".into()];
        let mut machine = Machine::new(&script, args, environment, config, dice.seed());
        let mut world = Faulty::new(&mut dice, &library);
        let outcome = self.drive(&mut machine, &mut world, oracles.as_mut())?;
        self.note(world.now(), &outcome);
        self.faults = std::mem::take(&mut world.faults.happened);
        world.calm_down();
        self.let_go(&mut machine, &mut world, oracles.as_mut())
    }

    /// Goes on with a session that unsets all variables, so that nothing is held any more.
    fn let_go(
        &mut self,
        machine: &mut Machine,
        world: &mut Faulty,
        mut oracles: Option<&mut Oracles>,
    ) -> Result<(), Violation> {
        let names = machine.variables().into_iter().map(|(name, _)| name.to_string());
        let text = format!("unset {}", names.collect::<Vec<_>>().join(" "));
        machine.go_on(&ftsh::syntax::parse("session", &text).expect("names"));
        self.drive(machine, world, oracles.as_deref_mut())?;
        oracles.map_or(Ok(()), Oracles::end)
    }

    fn drive(
        &mut self,
        machine: &mut Machine,
        world: &mut Faulty,
        mut oracles: Option<&mut Oracles>,
    ) -> Result<Outcome, Violation> {
        machine.handle_timeout(world.now());
        loop {
            self.hurry(world)?;
            let until = match machine.poll_output() {
                Output::Effect(effect) => {
                    if let Some(oracles) = &mut oracles {
                        oracles.effect(world.now(), &effect)?;
                    }
                    self.perform(world, effect);
                    continue;
                }
                Output::Timeout(until) => until,
                Output::Finished(outcome) => {
                    look(machine, world, oracles, Some(&outcome))?;
                    return Ok(outcome);
                }
            };
            look(machine, world, oracles.as_deref_mut(), None)?;
            match world.wait(until) {
                Told::Event(event) => {
                    self.note(world.now(), &event);
                    if let Some(oracles) = &mut oracles {
                        oracles.event(world.now(), &event)?;
                    }
                    machine.handle_event(world.now(), event);
                }
                Told::Nothing => machine.handle_timeout(world.now()),
                Told::Never if world.is_busy() && !self.patience => self.interrupt(world),
                Told::Never => {
                    let status = machine.status(usize::MAX, world.now());
                    let what = format!("waits for ever: {:#?}", status.tasks);
                    return Err(Violation { oracle: "never stuck", what });
                }
            }
        }
    }

    fn perform(&mut self, world: &mut Faulty, effect: Effect) {
        if !matches!(effect, Effect::Log(_)) {
            self.commands += usize::from(matches!(effect, Effect::Run(_)));
            self.note(world.now(), &effect);
        } else if self.keeps {
            self.trace.push(format!("{:?}        {effect:?}", world.now().elapsed()));
        }
        world.perform(effect);
    }

    /// Ends what has no end.
    fn hurry(&mut self, world: &mut Faulty) -> Result<(), Violation> {
        self.outputs += 1;
        let too_long = self.outputs > MOST_OUTPUTS || world.now().elapsed() > LONGEST;
        if !too_long {
            return Ok(());
        }
        if self.patience && self.outputs > 2 * MOST_OUTPUTS {
            return Err(Violation { oracle: "never stuck", what: "SIGTERM doesn't end it".into() });
        }
        if !self.patience {
            self.interrupt(world);
        }
        Ok(())
    }

    fn interrupt(&mut self, world: &mut Faulty) {
        self.patience = true;
        world.interrupt(SIGTERM);
    }

    fn note(&mut self, now: Time, what: &impl Debug) {
        let line = format!("{:?} {what:?}", now.elapsed());
        let mut hasher = DefaultHasher::new();
        (self.digest, &line).hash(&mut hasher);
        self.digest = hasher.finish();
        if self.keeps {
            self.trace.push(line);
        }
    }
}

fn look(
    machine: &Machine,
    world: &Faulty,
    oracles: Option<&mut Oracles>,
    outcome: Option<&Outcome>,
) -> Result<(), Violation> {
    let Some(oracles) = oracles else { return Ok(()) };
    let status = machine.status(usize::MAX, world.now());
    oracles.look(&status, machine.in_progress(), outcome, &world.alive())
}
