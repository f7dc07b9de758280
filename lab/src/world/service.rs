//! A service that slows down under load, used by real scripts.

use std::collections::VecDeque;
use std::time::Duration;

use ftsh_machine::Time;
use ftsh_machine::event::CommandStatus;
use ftsh_sim::{Call, Model};
use rand_distr::{Distribution, Exp1};

use super::{Agenda, CommandModels, RunningProgram};
use crate::scenario::overload::{OverloadCourse, OverloadSettings, ServerWork};

/// State of the service over time. The service is stopped for a while. Then it works on all
/// requests that arrived meanwhile, even if their clients have given up.
#[derive(Debug)]
pub struct Service {
    setting: OverloadSettings,
    work: ServerWork<RunningProgram>,
    stopped: bool,
    /// Connections that the stopped service has not accepted yet.
    backlog: VecDeque<RunningProgram>,
    /// Pending request of each client.
    waiting: Vec<Option<RunningProgram>>,
    /// Result of each client's last request, if there was one: true if answered.
    answered: Vec<Option<bool>>,
    /// Generation of alarms. Alarms of an older generation are out of date.
    expectation: u64,
    /// Course of the overload.
    pub course: OverloadCourse,
    /// Number of requests that clients gave up.
    pub given_up: u64,
}

/// Alarms of the service.
#[derive(Clone, Copy, Debug)]
pub enum ServiceAlarm {
    /// The oldest request may be done.
    Done(u64),
    /// The service stops.
    Stop,
    /// The service continues.
    Continue,
    /// A second is over.
    Second,
}

impl Service {
    /// Creates a service without requests.
    pub fn new(setting: OverloadSettings) -> Self {
        let clients = setting.clients;
        Self {
            work: ServerWork::new(setting.slowness),
            stopped: false,
            backlog: VecDeque::new(),
            waiting: vec![None; clients],
            answered: vec![None; clients],
            expectation: 0,
            course: setting.course(),
            given_up: 0,
            setting,
        }
    }

    /// Starts the idle time of a client.
    fn think(&mut self, client: usize, agenda: &mut Agenda<ServiceAlarm>) -> Model {
        self.given_up += u64::from(self.answered[client] == Some(false));
        self.answered[client] = None;
        let part: f64 = Exp1.sample(&mut agenda.random);
        Model::succeeds().takes(self.setting.think.mul_f64(part))
    }

    fn request(&mut self, program: RunningProgram, agenda: &mut Agenda<ServiceAlarm>) -> Model {
        let now = agenda.now().elapsed();
        self.course.second(now).requests += 1;
        self.waiting[program.client] = Some(program);
        self.answered[program.client] = Some(false);
        if !self.stopped {
            self.work.begin(now, program);
            self.expect(agenda);
        } else if self.backlog.len() < self.setting.backlog as usize {
            self.backlog.push_back(program);
        }
        Model::hangs()
    }

    fn serve(&mut self, agenda: &mut Agenda<ServiceAlarm>) {
        let now = agenda.now().elapsed();
        while let Some(program) = self.work.done(now) {
            let client = program.client;
            if self.waiting[client].take_if(|waited| *waited == program).is_some() {
                self.answered[client] = Some(true);
                self.course.answered(client, now);
                agenda.end(program, CommandStatus::Exited(0));
            }
        }
        self.expect(agenda);
    }

    fn expect(&mut self, agenda: &mut Agenda<ServiceAlarm>) {
        self.expectation += 1;
        if let Some(at) = self.work.next() {
            agenda.wake(Time::after(at), ServiceAlarm::Done(self.expectation));
        }
    }
}

impl CommandModels for Service {
    type Alarm = ServiceAlarm;

    fn start(
        &mut self,
        program: RunningProgram,
        call: &Call,
        agenda: &mut Agenda<ServiceAlarm>,
    ) -> Option<Model> {
        match call.words {
            [name] if *name == "think" => Some(self.think(program.client, agenda)),
            [name] if *name == "request" => Some(self.request(program, agenda)),
            _ => None,
        }
    }

    fn cut_short(&mut self, program: RunningProgram, agenda: &mut Agenda<ServiceAlarm>) {
        // The service does not notice, and continues its work.
        if self.waiting[program.client].take_if(|waited| *waited == program).is_some() {
            self.course.second(agenda.now().elapsed()).timeouts += 1;
        }
    }

    fn alarm(&mut self, alarm: ServiceAlarm, agenda: &mut Agenda<ServiceAlarm>) {
        let now = agenda.now();
        match alarm {
            ServiceAlarm::Done(number) if number == self.expectation && !self.stopped => {
                self.serve(agenda);
            }
            ServiceAlarm::Done(_) => {}
            ServiceAlarm::Stop => self.stopped = true,
            ServiceAlarm::Continue => {
                self.stopped = false;
                self.serve(agenda);
                for program in std::mem::take(&mut self.backlog) {
                    self.work.begin(now.elapsed(), program);
                }
                self.expect(agenda);
            }
            ServiceAlarm::Second => {
                let before = now.elapsed().saturating_sub(Duration::from_secs(1));
                self.course.second(before).concurrency = self.work.concurrency();
                self.course.peak = self.work.peak;
                agenda.wake(now + Duration::from_secs(1), ServiceAlarm::Second);
            }
        }
    }
}
