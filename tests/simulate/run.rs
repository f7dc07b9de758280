//! One program in one world: its events, and the promises that it breaks.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use ftsh_machine::durations::estimate::{Sample, SampleKind};
use ftsh_machine::durations::history::line;
use ftsh_machine::learned_limits;
use ftsh_machine::record::Level;
use ftsh_machine::time::Deadline;
use ftsh_machine::{Config, Effect, Machine, Outcome, Output, Time};
use ftsh_syntax::Script;
use ftsh_syntax::backoff::{Policy, PolicyKind};

use crate::coverage::constructs;
use crate::dice::Dice;
use crate::oracle::{Judged, Oracles, Violation};
use crate::program::{Program, Promises, SCRIPT, generate};
use crate::resume;
use crate::tape::Tape;
use crate::traces::{Traced, context};
use crate::world::{Faulty, WaitResult};

/// Maximum number of outputs before a machine is interrupted, and again before the test fails.
const MOST_OUTPUTS: usize = 2_000;
/// Maximum time, with the same meaning.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
const SIGTERM: i32 = 15;

/// Result of a run.
#[derive(Default)]
pub(crate) struct Ran {
    /// A line for each effect and event, if requested.
    pub trace: Vec<String>,
    /// Hash of the trace.
    pub digest: u64,
    pub violation: Option<Violation>,
    /// Number of commands that were started.
    pub commands: usize,
    /// Number of faults by kind.
    pub faults: BTreeMap<&'static str, usize>,
    /// Number of judgments of each oracle.
    pub judged: Judged,
    /// Constructs on executed lines.
    pub constructs: BTreeSet<String>,
    lines: BTreeSet<u32>,
    keeps: bool,
    outputs: usize,
    is_interrupted: bool,
    /// Outputs of the machine since its last event.
    late: Duration,
    traced: Option<Traced>,
}

/// Number of worlds for each program, because parsing takes longer than running.
pub(crate) const WORLDS: u64 = 4;

/// Returns the program of a seed. The same seed makes the world.
pub(crate) fn program(seed: u64) -> Program {
    generate(Dice::new(seed / WORLDS))
}

/// A parsed program. Parsing is most of the work in a short run.
struct Ready {
    script: Script,
    library: String,
    /// Durations of earlier attempts, as the text of a history.
    durations: String,
    promises: Promises,
}

impl Ready {
    fn new(program: &Program) -> Result<Self, Violation> {
        let (script, library, promises) = program.texts();
        let script = program.parse(&script).map_err(|errors| Violation {
            oracle: "syntax",
            what: format!("{:?}\n{script}", errors.errors),
        })?;
        let durations = durations(&script);
        Ok(Self { script, library, durations, promises })
    }
}

/// Returns durations of earlier attempts: many, as many as needed, and too few.
fn durations(script: &Script) -> String {
    let limits = learned_limits(script).into_iter().enumerate();
    let samples = limits.flat_map(|(index, limit)| {
        let count = [60, 10, 9, 60][index % 4];
        let scale = [1, 5, 9][index % 3];
        (0..count).map(move |at| {
            let length = Duration::from_millis(scale * (20 + 15 * (at * 7 % 11)));
            line(limit.key, Sample { length, kind: SampleKind::Success })
        })
    });
    samples.collect()
}

/// Runs a program in all its worlds, and checks every promise in each.
pub(crate) fn check_all(number: u64, mut found: impl FnMut(u64, Ran)) {
    let seeds = number * WORLDS..(number + 1) * WORLDS;
    match Ready::new(&program(seeds.start)) {
        Ok(ready) => seeds.for_each(|seed| found(seed, check_ready(&ready, seed))),
        Err(violation) => found(seeds.start, violation.into()),
    }
}

/// Runs a program in one world.
pub(crate) fn check(program: &Program, seed: u64) -> Ran {
    with(program, |ready| check_ready(ready, seed))
}

/// Runs the program, twice in one of its worlds, because the log level must not change a run.
fn check_ready(ready: &Ready, seed: u64) -> Ran {
    let mut first = run(ready, seed, Level::STRUCTURES, false);
    first.constructs = constructs(&ready.script, &first.lines);
    if first.violation.is_none() && seed % WORLDS == 1 {
        first.violation = resumed(ready, seed).err();
    }
    if first.violation.is_none() && seed.is_multiple_of(WORLDS) {
        let level = [Level::NOTHING, Level::FAILURES, Level::COMMANDS, Level::PROCESSES];
        let level = level[(seed / WORLDS) as usize % level.len()];
        first.compare(ready, seed, level);
    }
    if first.violation.is_none() && seed % WORLDS >= 2 {
        first.compare(ready, seed, Level::SPANS);
    }
    first
}

/// Runs the program with shells that die.
fn resumed(ready: &Ready, seed: u64) -> Result<(), Violation> {
    let mut dice = Dice::new(!seed);
    let config = Config { deadline: Deadline::NONE, ..config(&mut dice, Level::NOTHING) };
    let run = resume::Run {
        script: &ready.script,
        library: &ready.library,
        durations: &ready.durations,
        arguments: &[SCRIPT.into(), "first".into(), "second one".into()],
        environment: &[("HOME".into(), "/home".into()), ("ENV".into(), "1".into())],
        config,
        choices: dice.seed(),
        seed,
    };
    let result = catch_unwind(AssertUnwindSafe(|| run.judge(&mut dice)));
    result.unwrap_or_else(|_| Err(Violation { oracle: "panics", what: "see above".into() }))
}

/// Runs the program once with a complete trace.
pub(crate) fn trace(program: &Program, seed: u64) -> Ran {
    with(program, |ready| run(ready, seed, Level::STRUCTURES, true))
}

fn with(program: &Program, run: impl FnOnce(&Ready) -> Ran) -> Ran {
    match Ready::new(program) {
        Ok(ready) => run(&ready),
        Err(violation) => violation.into(),
    }
}

impl From<Violation> for Ran {
    fn from(violation: Violation) -> Self {
        Self { violation: Some(violation), ..Self::default() }
    }
}

/// Returns the first line in which two runs differ, apart from log records.
fn difference(ready: &Ready, seed: u64, level: Level) -> Violation {
    let trace = |level| {
        let mut lines = run(ready, seed, level, true).trace;
        lines.retain(|line| !line.contains(" Log(Record "));
        lines
    };
    let (first, second) = (trace(Level::STRUCTURES), trace(level));
    let lines = first.iter().zip(&second).find(|(one, other)| one != other);
    let what = match lines {
        Some((one, other)) => format!("at log level {}:\n{other}\ninstead of\n{one}", level.0),
        None => format!("{} lines, and {} at level {}", first.len(), second.len(), level.0),
    };
    Violation { oracle: "determinism", what }
}

fn run(ready: &Ready, seed: u64, level: Level, keeps: bool) -> Ran {
    let mut ran = Ran { keeps, ..Ran::default() };
    let result = catch_unwind(AssertUnwindSafe(|| ran.run(ready, seed, level)));
    ran.violation = match result {
        Ok(result) => result.err(),
        Err(_) => Some(Violation { oracle: "panics", what: "see above".into() }),
    };
    ran
}

fn config(dice: &mut Dice, log_level: Level) -> Config {
    let seconds = Duration::from_secs;
    let quick = Policy { from: Duration::from_millis(100), ..Policy::new(PolicyKind::Full) };
    Config {
        pid: 42,
        backoff: if dice.chance(0.5) { Policy::default() } else { quick },
        kill_timeout: seconds(if dice.chance(0.5) { 7 } else { 0 }),
        kill_strong: dice.chance(0.8),
        unset_is_empty: dice.chance(0.5),
        passing_input: dice.chance(0.5),
        deadline: dice.chance(0.3).then(|| Time::after(dice.time(seconds(200)))).into(),
        log_level,
        ..Config::default()
    }
}

impl Ran {
    /// Compares the run with another one at another level of the log.
    fn compare(&mut self, ready: &Ready, seed: u64, level: Level) {
        let second = run(ready, seed, level, false);
        self.violation = second
            .violation
            .or_else(|| (second.digest != self.digest).then(|| difference(ready, seed, level)));
    }

    fn run(&mut self, ready: &Ready, seed: u64, level: Level) -> Result<(), Violation> {
        let Ready { script, library, durations, promises } = ready;
        // The world uses another sequence than the program.
        let mut dice = Dice::new(!seed);
        let config = Config { trace: context(seed), ..config(&mut dice, level) };
        self.traced = Traced::new(seed).filter(|_| level == Level::SPANS);
        let mut oracles =
            (level == Level::STRUCTURES).then(|| Oracles::new(script, promises, &config));
        let environment = vec![("HOME".into(), "/home".into()), ("ENV".into(), "1".into())];
        let args = vec![SCRIPT.into(), "first".into(), "second one".into()];
        let choices = dice.seed();
        let mut tape = Tape::new(script, &args, &environment, &config, choices);
        let mut machine = Machine::new(script, args, environment, config, choices);
        let mut world = Faulty::new(&mut dice, library, durations);
        let outcome = self.drive(&mut machine, &mut world, oracles.as_mut(), Some(&mut tape));
        self.judged = oracles.as_ref().map(Oracles::judged).unwrap_or_default();
        let outcome = outcome?;
        let traced = self.traced.take();
        tape.judge(&mut Dice::new(seed.rotate_left(1)), world.now(), &outcome, traced)?;
        self.note(world.now(), &outcome);
        self.faults = std::mem::take(&mut world.faults.happened);
        world.calm_down();
        self.let_go(&mut machine, &mut world, oracles.as_mut())
    }

    /// Runs a session that unsets all variables, so that nothing is held any more.
    fn let_go(
        &mut self,
        machine: &mut Machine,
        world: &mut Faulty,
        mut oracles: Option<&mut Oracles>,
    ) -> Result<(), Violation> {
        let names = machine.variables().into_iter().map(|(name, _)| name.to_string());
        let text = format!("unset {}", names.collect::<Vec<_>>().join(" "));
        machine.run_next(&ftsh_syntax::parse("session", &text).expect("names"));
        let outcome = self.drive(machine, world, oracles.as_deref_mut(), None)?;
        if outcome != Outcome::Succeeded {
            return Ok(()); // its deadline has passed: it holds what it held
        }
        if !world.channels_are_quiet() {
            let what = "a place is taken when the run is over".into();
            return Err(Violation { oracle: "channels", what });
        }
        oracles.map_or(Ok(()), Oracles::end)
    }

    fn drive(
        &mut self,
        machine: &mut Machine,
        world: &mut Faulty,
        mut oracles: Option<&mut Oracles>,
        mut tape: Option<&mut Tape>,
    ) -> Result<Outcome, Violation> {
        if let Some(tape) = &mut tape {
            tape.tell(world.now(), None);
        }
        machine.handle_timeout(world.now());
        loop {
            let output = machine.poll_output();
            // Another log level has other log records.
            if !matches!(output, Output::Effect(Effect::Log(_))) {
                self.hurry(world)?;
            }
            let until = match output {
                Output::Effect(effect) => {
                    if let Some(oracles) = &mut oracles {
                        oracles.effect(world.now(), &effect)?;
                    }
                    if let Some(tape) = &mut tape {
                        tape.perform(&effect);
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
            if let Some(tape) = &mut tape {
                tape.wait(world.now());
            }
            // All outputs of the machine at one time are performed at that time.
            world.spend(std::mem::take(&mut self.late));
            match world.wait(until) {
                WaitResult::Event(event) => {
                    if let Some(tape) = &mut tape {
                        tape.tell(world.now(), Some(&event));
                    }
                    self.note(world.now(), &event);
                    if let Some(oracles) = &mut oracles {
                        oracles.event(world.now(), &event)?;
                    }
                    machine.handle_event(world.now(), event);
                }
                WaitResult::Nothing => {
                    if let Some(tape) = &mut tape {
                        tape.tell(world.now(), None);
                    }
                    machine.handle_timeout(world.now());
                }
                WaitResult::Never if world.is_busy() && !self.is_interrupted => {
                    self.interrupt(world);
                }
                WaitResult::Never => {
                    let status = machine.status(usize::MAX, world.now());
                    let what = format!("waits for ever: {:#?}", status.tasks);
                    return Err(Violation { oracle: "never stuck", what });
                }
            }
        }
    }

    fn perform(&mut self, world: &mut Faulty, effect: Effect) {
        if let Some(traced) = &mut self.traced {
            traced.perform(&effect);
        }
        if let Effect::Log(record) = &effect {
            if &*record.file == SCRIPT {
                self.lines.insert(record.line);
            }
            if self.keeps {
                self.trace.push(format!("{:?}        {effect:?}", world.now().elapsed()));
            }
        } else {
            self.commands += usize::from(matches!(effect, Effect::Run(_)));
            self.note(world.now(), &effect);
        }
        world.perform(effect);
    }

    /// Interrupts an endless run.
    fn hurry(&mut self, world: &mut Faulty) -> Result<(), Violation> {
        self.outputs += 1;
        let too_long = self.outputs > MOST_OUTPUTS || world.now().elapsed() > LONGEST;
        if !too_long {
            return Ok(());
        }
        // Thousands of branches end one by one.
        if self.is_interrupted && self.outputs > 10 * MOST_OUTPUTS {
            return Err(Violation { oracle: "never stuck", what: "SIGTERM doesn't end it".into() });
        }
        if !self.is_interrupted {
            self.interrupt(world);
        } else if self.outputs > 2 * MOST_OUTPUTS {
            // Only a limit may end the run.
            self.late += Duration::from_millis(1);
        }
        Ok(())
    }

    fn interrupt(&mut self, world: &mut Faulty) {
        self.is_interrupted = true;
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
    oracles.look(&status, machine.in_progress(), outcome, &world.alive(), world.attempts())
}
