//! The commands of a rehearsed script: those that have a model do as it says, the others succeed at
//! once.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use bstr::BString;
use ftsh_machine::event::CommandStatus;
use ftsh_machine::outcome::Outcome;
use ftsh_machine::record::LogRecord;
use ftsh_machine::{Failure, Time};
use ftsh_sim::{Call, Model as Course};
use rand::RngExt;

use super::model::{Fails, Model, last_name};
use super::tries::Tries;
use crate::common::{Random, random};
use crate::world::{Agenda, Commands, Program};

/// What becomes of the commands and their scripts in the course of time.
pub struct Stage<'m> {
    models: &'m [Model],
    servers: Vec<Server>,
    running: HashMap<Program, Running>,
    /// What came of each model's commands.
    pub uses: Vec<Use>,
    /// What came of the commands without a model, by their names.
    pub others: BTreeMap<BString, Use>,
    /// How each client's script ended, if it did.
    pub endings: Vec<Option<Ending>>,
    /// What came of the tries, if the shells log as much.
    pub tries: Tries,
    /// When commands started, in seconds, and of which model they are.
    pub starts: Option<Vec<(f32, usize)>>,
}

/// How a script ended, and when.
#[derive(Clone, Debug)]
pub struct Ending {
    /// When.
    pub at: Time,
    /// Whether it succeeded.
    pub success: bool,
    /// The script's exit status.
    pub code: i32,
    /// The failure that ended it.
    pub failure: Option<Box<Failure>>,
}

/// What came of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Use {
    /// How often it was started.
    pub starts: u64,
    /// How often it failed by itself.
    pub failed: u64,
    /// How often it was ended, since a limit had passed or nobody needed it any more.
    pub cut: u64,
    /// How long its runs took together.
    pub time: Duration,
    /// The most runs at once.
    pub at_once: u64,
    /// The most starts in one second.
    pub a_second: u64,
    running: u64,
    second: (u64, u64),
}

/// What a model's commands ask, whoever runs them.
struct Server {
    random: Random,
    /// From when to when all runs fail, in order.
    down: Vec<(Time, Time)>,
    /// How many runs have begun.
    begun: u64,
    in_place: usize,
    waiting: VecDeque<Program>,
}

struct Running {
    model: Option<usize>,
    name: BString,
    since: Time,
    /// Whether it has one of its server's places.
    in_place: bool,
}

/// What a run will come to, if it isn't cut short.
struct Fate {
    /// None is for ever.
    takes: Option<Duration>,
    fails: bool,
}

impl Server {
    fn new(model: &Model, mut random: Random) -> Self {
        let mut down = Vec::new();
        for outage in &model.down {
            let from = Time::after(outage.from.draw(&mut random));
            down.push((from, from + outage.lasts.draw(&mut random)));
        }
        down.sort_unstable();
        Self { random, down, begun: 0, in_place: 0, waiting: VecDeque::new() }
    }

    /// What becomes of a run that begins now.
    fn fate(&mut self, model: &Model, now: Time) -> Fate {
        let [hangs, fails] = [(); 2].map(|()| self.random.random::<f64>());
        let takes = model.takes.map_or(Duration::ZERO, |takes| takes.draw(&mut self.random));
        let failing = model.failing.map(|takes| takes.draw(&mut self.random));
        self.begun += 1;
        if self.down.iter().any(|(from, until)| (*from..*until).contains(&now)) {
            return Fate { takes: Some(failing.unwrap_or_default()), fails: true };
        }
        let fails = match model.fails {
            Fails::Never => false,
            Fails::Always => true,
            Fails::Chance(chance) => fails < chance,
            Fails::First(times) => self.begun <= times,
        };
        let takes = match failing {
            _ if hangs < model.hangs => None,
            Some(failing) if fails => Some(failing),
            _ => Some(takes),
        };
        // What is going on when it goes down fails then.
        let end = takes.map_or(Time::NEVER, |takes| now + takes);
        match self.down.iter().find(|(from, until)| now < *from && *from < end && from < until) {
            Some((from, _)) => Fate { takes: Some(*from - now), fails: true },
            None => Fate { takes, fails },
        }
    }
}

impl<'m> Stage<'m> {
    /// Nothing has begun. `place` sets the models' random choices apart from those of other trials.
    pub fn new(models: &'m [Model], clients: usize, seed: u64, place: &[u64]) -> Self {
        let server =
            |(number, model)| Server::new(model, random(seed, &[place, &[number as u64]].concat()));
        Self {
            models,
            servers: models.iter().enumerate().map(server).collect(),
            running: HashMap::new(),
            uses: vec![Use::default(); models.len()],
            others: BTreeMap::new(),
            endings: vec![None; clients],
            tries: Tries::default(),
            starts: None,
        }
    }

    /// What each client whose script isn't over is running, by name.
    pub fn unfinished(&self) -> BTreeSet<(usize, &BString)> {
        let left = self.running.iter().map(|(program, it)| (program.client, &it.name));
        left.filter(|(client, _)| self.endings[*client].is_none()).collect()
    }

    fn of(&mut self, running: &Running) -> &mut Use {
        match running.model {
            Some(model) => &mut self.uses[model],
            None => self.others.entry(running.name.clone()).or_default(),
        }
    }

    /// A run with a place begins to do what its server does.
    fn serve(&mut self, program: Program, number: usize, agenda: &mut Agenda<Done>) {
        self.servers[number].in_place += 1;
        if let Some(running) = self.running.get_mut(&program) {
            running.in_place = true;
        }
        let model = &self.models[number];
        let fate = self.servers[number].fate(model, agenda.now());
        if let Some(takes) = fate.takes {
            let status = status(model, fate.fails);
            agenda.wake(agenda.now() + takes, Done(program, status));
        }
    }

    /// A run is over; the next may have its place.
    fn leave(&mut self, program: Program, agenda: &mut Agenda<Done>, note: impl FnOnce(&mut Use)) {
        let Some(running) = self.running.remove(&program) else { return };
        let now = agenda.now();
        let of = self.of(&running);
        of.running -= 1;
        of.time += now - running.since;
        note(of);
        let Some(number) = running.model else { return };
        let server = &mut self.servers[number];
        if !running.in_place {
            server.waiting.retain(|waiting| *waiting != program);
            return;
        }
        server.in_place -= 1;
        if let Some(next) = server.waiting.pop_front() {
            self.serve(next, number, agenda);
        }
    }
}

fn status(model: &Model, fails: bool) -> CommandStatus {
    CommandStatus::Exited(if fails { model.status } else { 0 })
}

/// A run with a place is done.
#[derive(Clone, Copy, Debug)]
pub struct Done(Program, CommandStatus);

impl Commands for Stage<'_> {
    type Alarm = Done;

    fn start(
        &mut self,
        program: Program,
        call: &Call,
        agenda: &mut Agenda<Done>,
    ) -> Option<Course> {
        let now = agenda.now();
        let model = self.models.iter().position(|model| model.is_about(call.words));
        let name = BString::from(last_name(&call.words[0]));
        if let (Some(starts), Some(model)) = (&mut self.starts, model) {
            starts.push((now.elapsed().as_secs_f32(), model));
        }
        let is_false = name == "false";
        let running = Running { model, name, since: now, in_place: false };
        self.of(&running).begin(now);
        self.running.insert(program, running);
        let Some(number) = model else {
            return Some(if is_false { Course::fails(1) } else { Course::succeeds() });
        };
        let model = &self.models[number];
        let mut course = Course::succeeds();
        match model.places {
            None => {
                let fate = self.servers[number].fate(model, now);
                (course.takes, course.status) = (fate.takes, status(model, fate.fails));
            }
            Some(places) => {
                course = Course::hangs();
                if self.servers[number].in_place < places {
                    self.serve(program, number, agenda);
                } else {
                    self.servers[number].waiting.push_back(program);
                }
            }
        }
        if let Some(text) =
            model.prints.as_ref().filter(|_| course.status == CommandStatus::Exited(0))
        {
            course = course.prints(text.clone());
        }
        Some(if model.is_stubborn { course.stubborn() } else { course })
    }

    fn cut_short(&mut self, program: Program, agenda: &mut Agenda<Done>) {
        self.leave(program, agenda, |of| of.cut += 1);
    }

    fn alarm(&mut self, Done(program, status): Done, agenda: &mut Agenda<Done>) {
        // Otherwise it was cut short.
        if self.running.contains_key(&program) {
            agenda.end(program, status);
        }
    }

    fn ended(&mut self, program: Program, status: CommandStatus, agenda: &mut Agenda<Done>) {
        let fails = u64::from(status != CommandStatus::Exited(0));
        self.leave(program, agenda, |of| of.failed += fails);
    }

    fn log(&mut self, client: usize, record: &LogRecord) {
        self.tries.add(client, record);
    }

    fn finished(&mut self, client: usize, outcome: Outcome, now: Time) {
        let code = i32::from(outcome.exit_code());
        let failure = match outcome {
            Outcome::Failed(failure) => Some(failure),
            Outcome::Succeeded | Outcome::Exited(_) | Outcome::Interrupted(_) => None,
        };
        self.endings[client] = Some(Ending { at: now, success: code == 0, code, failure });
    }
}

impl Use {
    fn begin(&mut self, now: Time) {
        self.starts += 1;
        self.running += 1;
        self.at_once = self.at_once.max(self.running);
        let second = now.elapsed().as_secs();
        self.second = (second, if self.second.0 == second { self.second.1 + 1 } else { 1 });
        self.a_second = self.a_second.max(self.second.1);
    }

    /// Adds what came of the same command in another trial.
    pub fn add(&mut self, other: &Self) {
        self.starts += other.starts;
        self.failed += other.failed;
        self.cut += other.cut;
        self.time += other.time;
        self.at_once = self.at_once.max(other.at_once);
        self.a_second = self.a_second.max(other.a_second);
    }
}
