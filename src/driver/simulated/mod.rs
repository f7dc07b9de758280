//! A modelled world in virtual time: commands that take as long as their model says, and cost
//! nothing. The same script, model and seed give the same run.

mod descriptors;
mod model;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::time::Duration;

use bstr::{BString, ByteSlice};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

pub use model::{Call, Model};

use self::descriptors::Descriptors;
use crate::driver::Driver;
use crate::machine::effect::{Action, ProcessId, Query, Run, ScopeId};
use crate::machine::event::{Reply, SpawnError, SpawnErrorKind, Status};
use crate::machine::outcome::Human;
use crate::machine::{Effect, Event, Time};
use crate::syntax::ast::FileTest;

type Command = Box<dyn FnMut(&Call, &mut ChaCha8Rng) -> Model>;

/// A modelled world.
pub struct Simulated {
    now: Time,
    rng: ChaCha8Rng,
    commands: HashMap<BString, Command>,
    descriptors: Descriptors,
    parents: HashMap<ScopeId, ScopeId>,
    processes: HashMap<ProcessId, Process>,
    terminating: HashSet<ScopeId>,
    future: BTreeMap<(Time, u64), Happening>,
    events: VecDeque<Event>,
    count: u64,
    trace: Vec<String>,
    starts: Vec<Time>,
}

/// A command in progress, or what a command left behind.
struct Process {
    scope: ScopeId,
    name: String,
    run: Option<Run>,
    model: Model,
}

enum Happening {
    /// The command ends by itself.
    Ends(ProcessId),
    /// It obeys SIGTERM.
    Obeys(ProcessId),
    /// The shell gets a signal.
    Signal(i32),
}

impl Simulated {
    /// An empty world: no commands, no files.
    pub fn new(seed: u64) -> Self {
        Self {
            now: Time::START,
            rng: ChaCha8Rng::seed_from_u64(seed),
            commands: HashMap::new(),
            descriptors: Descriptors::default(),
            parents: HashMap::new(),
            processes: HashMap::new(),
            terminating: HashSet::new(),
            future: BTreeMap::new(),
            events: VecDeque::new(),
            count: 0,
            trace: Vec::new(),
            starts: Vec::new(),
        }
    }

    /// Models the command `name`.
    #[must_use]
    pub fn command(
        mut self,
        name: &str,
        model: impl FnMut(&Call, &mut ChaCha8Rng) -> Model + 'static,
    ) -> Self {
        self.commands.insert(name.into(), Box::new(model));
        self
    }

    /// Adds a file.
    #[must_use]
    pub fn file(mut self, path: &str, content: &str) -> Self {
        self.descriptors.files.insert(path.into(), content.into());
        self
    }

    /// Sends the shell a signal when the time comes.
    #[must_use]
    pub fn signal_at(mut self, at: Duration, signal: i32) -> Self {
        self.schedule(Time::after(at), Happening::Signal(signal));
        self
    }

    /// What commands wrote to descriptor 1 of the shell.
    pub fn stdout(&self) -> String {
        self.descriptors.stdout.to_string()
    }

    /// What commands wrote to descriptor 2 of the shell.
    pub fn stderr(&self) -> String {
        self.descriptors.stderr.to_string()
    }

    /// The content of a file, if it exists.
    pub fn content(&self, path: &str) -> Option<String> {
        self.descriptors.files.get(path.as_bytes().as_bstr()).map(ToString::to_string)
    }

    /// What happened, a line each: when, and what.
    pub fn trace(&self) -> String {
        self.trace.join("\n")
    }

    /// When programs started.
    pub fn starts(&self) -> &[Time] {
        &self.starts
    }

    /// The names of the commands that still run.
    pub fn running(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.processes.values().map(|process| &*process.name).collect();
        names.sort_unstable();
        names
    }

    fn note(&mut self, what: &str) {
        self.trace.push(format!("{:>10} {what}", Human(self.now.elapsed()).to_string()));
    }

    fn schedule(&mut self, at: Time, happening: Happening) {
        self.count += 1;
        self.future.insert((at, self.count), happening);
    }

    fn start(&mut self, run: Run) {
        let input = match self.descriptors.input(&run) {
            Ok(Some(input)) => input,
            // It reads a pipe that is still written to: it runs when the writer is done.
            Ok(None) => return self.descriptors.waiting.push(run),
            Err(message) => {
                let error = SpawnError { kind: SpawnErrorKind::Redirect, message };
                return self.events.push_back(Event::SpawnFailed { process: run.process, error });
            }
        };
        let (name, model) = match &run.action {
            Action::Print(text) => ("echo".to_owned(), Model::succeeds().prints(text.clone())),
            Action::ReadLine => return self.read_line(&run, &input),
            Action::Program { words, overrides, environment } => {
                let name = words[0].to_string();
                let call = Call { words, environment, overrides, input, now: self.now };
                match self.commands.get_mut(&words[0]) {
                    Some(command) => (name, command(&call, &mut self.rng)),
                    None => {
                        let message = format!("`{name}` was not found");
                        let error = SpawnError { kind: SpawnErrorKind::NotFound, message };
                        let process = run.process;
                        return self.events.push_back(Event::SpawnFailed { process, error });
                    }
                }
            }
        };
        if let Action::Program { words, .. } = &run.action {
            self.starts.push(self.now);
            self.note(&format!("run {}", bstr::join(" ", words).as_bstr()));
        }
        let process = run.process;
        if let Some(takes) = model.takes {
            self.schedule(self.now + takes, Happening::Ends(process));
        }
        self.processes.insert(process, Process { scope: run.scope, name, run: Some(run), model });
    }

    fn read_line(&mut self, run: &Run, input: &BString) {
        let (line, ended) = match input.split_once_str("\n") {
            Some((line, _)) => (BString::from(line), false),
            None => (input.clone(), true),
        };
        let status = Status::Exited(i32::from(ended));
        self.descriptors.consumed(run, line.len() + 1);
        self.events.push_back(Event::Exited { process: run.process, status, line: Some(line) });
    }

    fn end(&mut self, id: ProcessId, status: Status) {
        let Some(mut process) = self.processes.remove(&id) else { return };
        if let Some(run) = process.run.take() {
            self.descriptors.output(&run, &process.model);
            if process.name != "echo" {
                self.note(&format!("end {} {status:?}", process.name));
            }
            self.events.push_back(Event::Exited { process: id, status, line: None });
            if process.model.leaves && status == Status::Exited(0) {
                self.processes.insert(id, process);
            }
        }
        self.check_emptied();
        self.start_waiting();
    }

    fn start_waiting(&mut self) {
        for run in std::mem::take(&mut self.descriptors.waiting) {
            self.start(run);
        }
    }

    fn is_within(&self, scope: ScopeId, outer: ScopeId) -> bool {
        let mut next = Some(scope);
        while let Some(scope) = next {
            if scope == outer {
                return true;
            }
            next = self.parents.get(&scope).copied();
        }
        outer == ScopeId::SCRIPT
    }

    fn members(&self, scope: ScopeId) -> Vec<ProcessId> {
        let members =
            self.processes.iter().filter(|(_, process)| self.is_within(process.scope, scope));
        let mut members: Vec<ProcessId> = members.map(|(id, _)| *id).collect();
        members.sort_unstable();
        members
    }

    fn check_emptied(&mut self) {
        let mut emptied: Vec<ScopeId> = self.terminating.iter().copied().collect();
        emptied.retain(|scope| self.members(*scope).is_empty());
        emptied.sort_unstable();
        for scope in emptied {
            self.terminating.remove(&scope);
            self.events.push_back(Event::Emptied { scope });
        }
    }

    fn answer(&self, directory: Option<&BString>, query: &Query) -> Result<Reply, String> {
        let absolute = |path: &BString| -> BString {
            match directory {
                Some(directory) if !path.starts_with(b"/") => format!("{directory}/{path}").into(),
                _ => path.clone(),
            }
        };
        let file = |path: &BString| self.descriptors.files.get(&absolute(path));
        match query {
            Query::Test(FileTest::Directory, _) => Ok(Reply::Truth(false)),
            Query::Test(_, path) => Ok(Reply::Truth(file(path).is_some())),
            Query::Buffer(buffer) => Ok(Reply::Text(self.descriptors.buffer(*buffer))),
            Query::Glob(pattern) => {
                let mut names: Vec<BString> = self.descriptors.files.keys().cloned().collect();
                names.retain(|name| model::matches(pattern, name));
                names.sort();
                Ok(Reply::Words(names))
            }
            Query::Directory(path) if *path == "." => Ok(Reply::Text("/".into())),
            Query::Directory(path) => Ok(Reply::Text(absolute(path))),
            Query::Home(user) => Ok(Reply::Text(format!("/home/{user}").into())),
            Query::File(path) => match file(path) {
                Some(content) => Ok(Reply::Text(content.clone())),
                None => Err(format!("{path}: no such file")),
            },
        }
    }
}

impl Driver for Simulated {
    fn now(&self) -> Time {
        self.now
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Run(run) | Effect::Exec(run) => self.start(*run),
            Effect::Open { operation, io, base, redirects, .. } => {
                let result = self.descriptors.open(io, base, &redirects);
                let result = result.map(|()| Reply::Truth(true));
                self.events.push_back(Event::Done { operation, result });
            }
            Effect::Query { operation, directory, query } => {
                let result = self.answer(directory.as_deref(), &query);
                self.events.push_back(Event::Done { operation, result });
            }
            Effect::Abandon(_) => {}
            Effect::OpenScope { scope, parent } => {
                self.parents.insert(scope, parent);
            }
            Effect::Terminate(scope) => {
                for id in self.members(scope) {
                    let Some(process) = self.processes.get(&id) else { continue };
                    let name = process.name.clone();
                    if let Some(after) = process.model.obeys {
                        self.schedule(self.now + after, Happening::Obeys(id));
                    }
                    self.note(&format!("terminate {name}"));
                }
                self.descriptors.waiting.retain(|run| {
                    let mut next = Some(run.scope);
                    while next.is_some_and(|inner| inner != scope) {
                        next = next.and_then(|inner| self.parents.get(&inner).copied());
                    }
                    next.is_none()
                });
                self.terminating.insert(scope);
                self.check_emptied();
            }
            Effect::Kill { scope, .. } => {
                for id in self.members(scope) {
                    if let Some(process) = self.processes.remove(&id) {
                        self.note(&format!("kill {}", process.name));
                    }
                }
                self.check_emptied();
            }
            Effect::HandOver { scope, into } => {
                for process in self.processes.values_mut() {
                    if process.scope == scope {
                        process.scope = into;
                    }
                }
            }
            Effect::CloseIo(io) => {
                if self.descriptors.close(io) {
                    self.start_waiting();
                }
            }
            Effect::DropBuffer(buffer) => self.descriptors.drop_buffer(buffer),
            Effect::Log(record) => self.note(&format!("{}: {:?}", record.line, record.event)),
        }
    }

    fn wait(&mut self, until: Time) -> Option<Event> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            let next = self.future.first_entry().filter(|entry| entry.key().0 <= until);
            let Some(next) = next else {
                assert!(until != Time::NEVER, "nothing will ever happen again");
                self.now = self.now.max(until);
                return None;
            };
            self.now = self.now.max(next.key().0);
            match next.remove() {
                Happening::Ends(id) => {
                    let status = self.processes.get(&id).map(|process| process.model.status);
                    if let Some(status) = status {
                        self.end(id, status);
                    }
                }
                Happening::Obeys(id) => self.end(id, Status::Signaled(15)),
                Happening::Signal(signal) => return Some(Event::Interrupted(signal)),
            }
        }
    }
}
