//! Commands of a rehearsed script. Commands with a model follow their model; the others succeed at
//! once.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use bstr::BString;
use ftsh_machine::event::CommandStatus;
use ftsh_machine::outcome::Outcome;
use ftsh_machine::record::LogRecord;
use ftsh_machine::{Failure, Time};
use ftsh_models::{CommandModel, ModelState, last_name};
use ftsh_sim::{Call, Model as SimModel};

use super::tries::TryStatistics;
use crate::common::{Random, random};
use crate::world::{Agenda, CommandModels, RunningProgram};

/// State of commands and scripts over time.
pub(super) struct RehearsalStage<'m> {
    models: &'m [CommandModel],
    servers: Vec<ModelServer>,
    running: HashMap<RunningProgram, RunningCommand>,
    /// Counts of each model's commands.
    pub uses: Vec<CommandCounts>,
    /// Counts of the commands without a model, by name.
    pub others: BTreeMap<BString, CommandCounts>,
    /// End of each client's script.
    pub endings: Vec<Option<ScriptEnd>>,
    /// Counts of the tries, if the shells log enough.
    pub tries: TryStatistics,
    /// Starts of commands: seconds and number of the model.
    pub starts: Option<Vec<(f32, usize)>>,
}

/// End of a script.
#[derive(Clone, Debug)]
pub struct ScriptEnd {
    /// Time of the end.
    pub at: Time,
    /// True if the script succeeded.
    pub success: bool,
    /// Exit status of the script.
    pub code: i32,
    /// Failure that ended the script.
    pub failure: Option<Box<Failure>>,
}

/// Counts of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CommandCounts {
    /// Number of starts.
    pub starts: u64,
    /// Number of failures by itself.
    pub failed: u64,
    /// Number of cancellations.
    pub cut: u64,
    /// Total duration of the runs.
    pub time: Duration,
    /// Maximum number of concurrent runs.
    pub at_once: u64,
    /// Maximum number of starts in one second.
    pub a_second: u64,
    running: u64,
    second: (u64, u64),
}

/// State shared by all commands of a model.
struct ModelServer {
    state: ModelState<Random>,
    in_place: usize,
    waiting: VecDeque<RunningProgram>,
}

struct RunningCommand {
    model: Option<usize>,
    name: BString,
    since: Time,
    /// True if the run holds one of the places.
    in_place: bool,
}

impl<'m> RehearsalStage<'m> {
    /// Creates a stage without runs. `place` separates random choices from those of other trials.
    pub(super) fn new(
        models: &'m [CommandModel],
        clients: usize,
        seed: u64,
        place: &[u64],
    ) -> Self {
        let server = |(number, model)| {
            let random = random(seed, &[place, &[number as u64]].concat());
            let state = ModelState::new(model, random);
            ModelServer { state, in_place: 0, waiting: VecDeque::new() }
        };
        Self {
            models,
            servers: models.iter().enumerate().map(server).collect(),
            running: HashMap::new(),
            uses: vec![CommandCounts::default(); models.len()],
            others: BTreeMap::new(),
            endings: vec![None; clients],
            tries: TryStatistics::default(),
            starts: None,
        }
    }

    /// Returns the commands in progress of each client whose script is not over, by name.
    pub(super) fn unfinished(&self) -> BTreeSet<(usize, &BString)> {
        let left = self.running.iter().map(|(program, it)| (program.client, &it.name));
        left.filter(|(client, _)| self.endings[*client].is_none()).collect()
    }

    fn of(&mut self, running: &RunningCommand) -> &mut CommandCounts {
        match running.model {
            Some(model) => &mut self.uses[model],
            None => self.others.entry(running.name.clone()).or_default(),
        }
    }

    /// Starts a run that holds a place.
    fn serve(&mut self, program: RunningProgram, number: usize, agenda: &mut Agenda<Done>) {
        self.servers[number].in_place += 1;
        if let Some(running) = self.running.get_mut(&program) {
            running.in_place = true;
        }
        let model = &self.models[number];
        let fate = self.servers[number].state.next_run(model, agenda.now());
        if let Some(takes) = fate.takes {
            let status = status(model, fate.fails);
            agenda.wake(agenda.now() + takes, Done(program, status));
        }
    }

    /// Ends a run and passes its place on.
    fn leave(
        &mut self,
        program: RunningProgram,
        agenda: &mut Agenda<Done>,
        note: impl FnOnce(&mut CommandCounts),
    ) {
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

fn status(model: &CommandModel, fails: bool) -> CommandStatus {
    CommandStatus::Exited(if fails { model.status } else { 0 })
}

/// End of a run that holds a place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done(RunningProgram, CommandStatus);

impl CommandModels for RehearsalStage<'_> {
    type Alarm = Done;

    fn start(
        &mut self,
        program: RunningProgram,
        call: &Call,
        agenda: &mut Agenda<Done>,
    ) -> Option<SimModel> {
        let now = agenda.now();
        let model = self.models.iter().position(|model| model.applies_to(call.words));
        let name = BString::from(last_name(&call.words[0]));
        if let (Some(starts), Some(model)) = (&mut self.starts, model) {
            starts.push((now.elapsed().as_secs_f32(), model));
        }
        let is_false = name == "false";
        let running = RunningCommand { model, name, since: now, in_place: false };
        self.of(&running).begin(now);
        self.running.insert(program, running);
        let Some(number) = model else {
            return Some(if is_false { SimModel::fails(1) } else { SimModel::succeeds() });
        };
        let model = &self.models[number];
        let mut course = SimModel::succeeds();
        match model.places {
            None => {
                let fate = self.servers[number].state.next_run(model, now);
                (course.takes, course.status) = (fate.takes, status(model, fate.fails));
            }
            Some(places) => {
                course = SimModel::hangs();
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

    fn cut_short(&mut self, program: RunningProgram, agenda: &mut Agenda<Done>) {
        self.leave(program, agenda, |of| of.cut += 1);
    }

    fn alarm(&mut self, Done(program, status): Done, agenda: &mut Agenda<Done>) {
        // Otherwise the run was canceled.
        if self.running.contains_key(&program) {
            agenda.end(program, status);
        }
    }

    fn ended(&mut self, program: RunningProgram, status: CommandStatus, agenda: &mut Agenda<Done>) {
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
        self.endings[client] = Some(ScriptEnd { at: now, success: code == 0, code, failure });
    }
}

impl CommandCounts {
    fn begin(&mut self, now: Time) {
        self.starts += 1;
        self.running += 1;
        self.at_once = self.at_once.max(self.running);
        let second = now.elapsed().as_secs();
        self.second = (second, if self.second.0 == second { self.second.1 + 1 } else { 1 });
        self.a_second = self.a_second.max(self.second.1);
    }

    /// Adds the counts of another trial.
    pub fn add(&mut self, other: &Self) {
        self.starts += other.starts;
        self.failed += other.failed;
        self.cut += other.cut;
        self.time += other.time;
        self.at_once = self.at_once.max(other.at_once);
        self.a_second = self.a_second.max(other.a_second);
    }
}
