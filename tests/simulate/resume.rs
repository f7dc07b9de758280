//! Runs whose shell dies and that another shell resumes. A resumed run must do the same as a run
//! whose shell is only notified that all its processes are dead.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use bstr::BString;
use ftsh_journal::{Beginning, Recorder, Started, Writer, read, replay};
use ftsh_machine::driver::Driver;
use ftsh_machine::effect::{Effect, OperationId};
use ftsh_machine::record::{Level, LogRecord};
use ftsh_machine::time::Deadline;
use ftsh_machine::{Config, Event, Machine, Outcome, Output, Time};
use ftsh_syntax::Script;

use crate::dice::Dice;
use crate::oracle::Violation;
use crate::oracle::elsewhere::one_after_the_other;
use crate::tape::Memory;
use crate::world::{Faulty, Shared};

/// Maximum number of steps before a run is interrupted, and again before the test fails.
const MOST: usize = 3_000;
const SIGTERM: i32 = 15;

type Recording<'a> = Recorder<'a, Shared, Memory>;

/// Parameters of a run.
pub(crate) struct Run<'a> {
    pub script: &'a Script,
    pub library: &'a str,
    pub durations: &'a str,
    pub arguments: &'a [BString],
    pub environment: &'a [(BString, BString)],
    pub config: Config,
    pub choices: u64,
    pub seed: u64,
}

/// A run in progress.
struct Life {
    shared: Shared,
    memory: Memory,
    writer: Rc<RefCell<Writer<Memory>>>,
    machine: Machine,
    trace: Vec<String>,
    /// Requests whose answers nobody reads.
    abandoned: BTreeSet<OperationId>,
    outputs: usize,
    end_requested: bool,
    /// True if the run continues in the next shell.
    is_suspended: bool,
}

/// Progress of a run.
enum Came {
    /// The run waits until this time.
    Waits(Time),
    Over(Outcome),
}

fn violation(what: impl Into<String>) -> Violation {
    Violation { oracle: "resuming", what: what.into() }
}

impl Run<'_> {
    fn world(&self) -> Faulty {
        Faulty::new(&mut Dice::new(self.seed), self.library, self.durations).without_restarts()
    }

    fn begin(&self) -> Life {
        let Self { script, arguments, environment, config, choices, .. } = self;
        let memory = Memory::default();
        let beginning =
            Beginning::new(script, arguments, environment, config, *choices, Duration::ZERO);
        let writer = Writer::begin(memory.clone(), self.seed, beginning).expect("memory");
        let (arguments, environment) = (arguments.to_vec(), environment.to_vec());
        Life {
            shared: Shared::new(self.world()),
            memory,
            writer: Rc::new(RefCell::new(writer)),
            machine: Machine::new(script, arguments, environment, config.clone(), *choices),
            trace: Vec::new(),
            abandoned: BTreeSet::new(),
            outputs: 0,
            end_requested: false,
            is_suspended: false,
        }
    }

    /// Compares a run whose shell dies at its `cut`th wait with an uninterrupted one. The shell
    /// then dies repeatedly.
    pub(crate) fn judge(&self, dice: &mut Dice) -> Result<(), Violation> {
        let cut = dice.number(1, 40);
        let later =
            if dice.chance(0.5) { Duration::ZERO } else { dice.time(Duration::from_secs(300)) };
        let level = *dice.pick(&[Level::NOTHING, Level::STRUCTURES, Level::PROCESSES]);
        let mut there = self.begin();
        let mut shared = there.shared.clone();
        let mut recorder = there.record(&mut shared);
        let Came::Waits(until) = there.live(&mut recorder, None, cut)? else { return Ok(()) };
        there.writer.borrow_mut().commit().expect("memory");
        let is_comparable = there.shared.with(|world| world.is_delivered());
        if there.is_suspended {
            return self.chain(dice, level);
        }
        there.trace.clear();
        there.shared.with(|world| world.end_processes(later));
        there.outputs = 0;
        let expected = there.live(&mut recorder, Some(until), usize::MAX)?;
        drop(recorder);

        let mut other = self.begin();
        let mut shared = other.shared.clone();
        let mut recorder = other.record(&mut shared);
        other.live(&mut recorder, None, cut)?;
        other.writer.borrow_mut().commit().expect("memory");
        drop(recorder);
        other.trace.clear();
        let mut recorder = other.resume(&mut shared, later, level)?;
        let came = other.live(&mut recorder, Some(Time::START), usize::MAX)?;
        if is_comparable {
            compare(&there.trace, &other.trace)?;
            if let (Came::Over(there), Came::Over(here)) = (&expected, &came)
                && there != here
            {
                return Err(violation(format!("{here:?} instead of {there:?}")));
            }
        }
        drop(recorder);
        self.chain(dice, level)
    }

    /// Kills the shell repeatedly; the run must still end.
    fn chain(&self, dice: &mut Dice, level: Level) -> Result<(), Violation> {
        let mut life = self.begin();
        for start in 0..12 {
            let mut shared = life.shared.clone();
            let first = (start > 0).then_some(Time::START);
            let later = dice.time(Duration::from_secs(60));
            let mut recorder = match first {
                None => life.record(&mut shared),
                Some(_) => life.resume(&mut shared, later, level)?,
            };
            let came = life.live(&mut recorder, first, dice.number(1, 15))?;
            if let Came::Over(outcome) = came
                && recorder.end(&outcome).expect("memory")
            {
                return life.judge(&outcome);
            }
            // The last entries may not be on the disk.
            if dice.chance(0.5) {
                life.writer.borrow_mut().commit().expect("memory");
            }
        }
        Ok(())
    }
}

fn compare(there: &[String], here: &[String]) -> Result<(), Violation> {
    let difference = there.iter().zip(here).position(|(there, here)| there != here);
    let at = match difference {
        Some(at) => at,
        None if there.len() == here.len() => return Ok(()),
        None => there.len().min(here.len()),
    };
    let nothing = "nothing".to_owned();
    let line = |trace: &[String]| trace.get(at).unwrap_or(&nothing).clone();
    let before = there[at.saturating_sub(25)..at].join("\n");
    Err(violation(format!("{before}\n---\n{}\ninstead of\n{}", line(here), line(there))))
}

impl Life {
    fn record<'a>(&self, shared: &'a mut Shared) -> Recording<'a> {
        Recorder::new(shared, Rc::clone(&self.writer), Deadline::NONE).expect("memory")
    }

    /// Resumes the run in another shell.
    fn resume<'a>(
        &mut self,
        shared: &'a mut Shared,
        later: Duration,
        level: Level,
    ) -> Result<Recording<'a>, Violation> {
        let bytes = self.memory.bytes();
        let journal = read(&bytes).map_err(|error| violation(error.to_string()))?;
        let replayed = replay(&journal, level, |_: &LogRecord| ());
        let replayed = replayed.map_err(|error| violation(error.to_string()))?;
        let writer = Writer::resume(self.memory.clone(), &journal, &replayed).expect("memory");
        self.writer = Rc::new(RefCell::new(writer));
        shared.with(|world| world.replace_shell(later));
        let started = Started { elapsed: shared.now().elapsed(), ..crate::tape::started() };
        self.writer.borrow_mut().start(started);
        (self.outputs, self.end_requested, self.is_suspended) = (0, false, false);
        let (machine, world) = replayed.go_on();
        self.machine = machine;
        Ok(Recorder::resume(shared, Rc::clone(&self.writer), world, Deadline::NONE)
            .expect("memory"))
    }

    /// Continues up to a number of waits. Given a moment, waits at once.
    fn live(
        &mut self,
        recorder: &mut Recording,
        first: Option<Time>,
        waits: usize,
    ) -> Result<Came, Violation> {
        match first {
            Some(until) if !self.machine.is_finished() => self.wait(recorder, until)?,
            Some(_) => {}
            None => self.machine.handle_timeout(recorder.now()),
        }
        let mut waited = 0;
        loop {
            match self.machine.poll_output() {
                // Another log level has other log records.
                Output::Effect(effect @ Effect::Log(_)) => recorder.perform(effect),
                Output::Effect(effect) => {
                    self.hurry()?;
                    if let Effect::Abandon(operation) = effect {
                        self.abandoned.insert(operation);
                    }
                    self.note(&effect);
                    recorder.perform(effect);
                }
                Output::Timeout(until) => {
                    self.hurry()?;
                    recorder.watch(&self.machine);
                    waited += 1;
                    if waited >= waits {
                        return Ok(Came::Waits(until));
                    }
                    self.wait(recorder, until)?;
                }
                Output::Finished(outcome) => return Ok(Came::Over(outcome)),
            }
        }
    }

    fn wait(&mut self, recorder: &mut Recording, until: Time) -> Result<(), Violation> {
        let event = recorder.wait(until);
        self.shared.with(|world| one_after_the_other(world.attempts())).map_err(violation)?;
        if event.is_none() && *self.shared.is_over.borrow() && until == Time::NEVER {
            let is_busy = self.shared.with(|world| world.is_busy());
            if !is_busy || self.end_requested {
                let status = self.machine.status(usize::MAX, recorder.now());
                let from = self.trace.len().saturating_sub(25);
                let trace = self.trace[from..].join("\n");
                return Err(violation(format!("{trace}\nwaits for ever: {:?}", status.tasks)));
            }
            self.end();
        }
        match event {
            Some(event) => {
                self.is_suspended |= matches!(event, Event::Suspended(_));
                let is_read = !matches!(
                    &event,
                    Event::Done { operation, .. } if self.abandoned.contains(operation)
                );
                if is_read {
                    self.note(&event);
                }
                self.machine.handle_event(recorder.now(), event);
            }
            None => self.machine.handle_timeout(recorder.now()),
        }
        Ok(())
    }

    fn hurry(&mut self) -> Result<(), Violation> {
        self.outputs += 1;
        if self.outputs > MOST && !self.end_requested {
            self.end();
        }
        let is_stuck = self.outputs > 2 * MOST;
        if is_stuck { Err(violation("SIGTERM doesn't end it")) } else { Ok(()) }
    }

    fn end(&mut self) {
        self.end_requested = true;
        self.shared.with(|world| world.interrupt(SIGTERM));
    }

    fn note(&mut self, what: &impl std::fmt::Debug) {
        self.trace.push(format!("{:?} {what:?}", self.shared.now().elapsed()));
    }

    /// Replays the whole run.
    fn judge(&self, outcome: &Outcome) -> Result<(), Violation> {
        let journal = read(&self.memory.bytes()).map_err(|error| violation(error.to_string()))?;
        let again = replay(&journal, Level::NOTHING, |_: &LogRecord| ());
        let again = again.map_err(|error| violation(error.to_string()))?;
        if again.outcome.as_ref() == Some(outcome) {
            return Ok(());
        }
        Err(violation(format!("{:?} instead of {outcome:?}", again.outcome)))
    }
}
