//! A service that gets slower the more it has to do at once, asked by real scripts.

use std::collections::VecDeque;
use std::time::Duration;

use ftsh_machine::Time;
use ftsh_machine::event::CommandStatus;
use ftsh_sim::{Call, Model};
use rand_distr::{Distribution, Exp1};

use super::{Agenda, Commands, Program};
use crate::scenario::overload::{Course, Setting, Work};

/// The service in the course of time: it is stopped for a while, and then works on what came
/// meanwhile, whoever still waits for that.
#[derive(Debug)]
pub struct Service {
    setting: Setting,
    work: Work<Program>,
    stopped: bool,
    /// Connections that the stopped service has to accept.
    backlog: VecDeque<Program>,
    /// Which request each client waits for.
    waiting: Vec<Option<Program>>,
    /// Whether each client's last request was answered, if it has asked for anything.
    answered: Vec<Option<bool>>,
    /// Alarms for an end that was expected before something else came have an older number.
    expectation: u64,
    /// What happened.
    pub course: Course,
    /// How many times clients have given up what they asked for.
    pub given_up: u64,
}

/// What the service wants to be woken for.
#[derive(Clone, Copy, Debug)]
pub enum Alarm {
    /// It may be done with its oldest request.
    Done(u64),
    /// It stops.
    Stop,
    /// It goes on.
    Continue,
    /// A second is over.
    Second,
}

impl Service {
    /// A service that nobody has asked for anything.
    pub fn new(setting: Setting) -> Self {
        let clients = setting.clients;
        Self {
            work: Work::new(setting.slowness),
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

    /// A client needs nothing for a while.
    fn think(&mut self, client: usize, agenda: &mut Agenda<Alarm>) -> Model {
        self.given_up += u64::from(self.answered[client] == Some(false));
        self.answered[client] = None;
        let part: f64 = Exp1.sample(&mut agenda.random);
        Model::succeeds().takes(self.setting.think.mul_f64(part))
    }

    fn request(&mut self, program: Program, agenda: &mut Agenda<Alarm>) -> Model {
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

    fn serve(&mut self, agenda: &mut Agenda<Alarm>) {
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

    fn expect(&mut self, agenda: &mut Agenda<Alarm>) {
        self.expectation += 1;
        if let Some(at) = self.work.next() {
            agenda.wake(Time::after(at), Alarm::Done(self.expectation));
        }
    }
}

impl Commands for Service {
    type Alarm = Alarm;

    fn start(
        &mut self,
        program: Program,
        call: &Call,
        agenda: &mut Agenda<Alarm>,
    ) -> Option<Model> {
        match call.words {
            [name] if *name == "think" => Some(self.think(program.client, agenda)),
            [name] if *name == "request" => Some(self.request(program, agenda)),
            _ => None,
        }
    }

    fn cut_short(&mut self, program: Program, agenda: &mut Agenda<Alarm>) {
        // The service doesn't know, and works on it all the same.
        if self.waiting[program.client].take_if(|waited| *waited == program).is_some() {
            self.course.second(agenda.now().elapsed()).timeouts += 1;
        }
    }

    fn alarm(&mut self, alarm: Alarm, agenda: &mut Agenda<Alarm>) {
        let now = agenda.now();
        match alarm {
            Alarm::Done(number) if number == self.expectation && !self.stopped => {
                self.serve(agenda);
            }
            Alarm::Done(_) => {}
            Alarm::Stop => self.stopped = true,
            Alarm::Continue => {
                self.stopped = false;
                self.serve(agenda);
                for program in std::mem::take(&mut self.backlog) {
                    self.work.begin(now.elapsed(), program);
                }
                self.expect(agenda);
            }
            Alarm::Second => {
                let before = now.elapsed().saturating_sub(Duration::from_secs(1));
                self.course.second(before).concurrency = self.work.concurrency();
                self.course.peak = self.work.peak;
                agenda.wake(now + Duration::from_secs(1), Alarm::Second);
            }
        }
    }
}
