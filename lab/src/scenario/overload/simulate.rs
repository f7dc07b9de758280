//! The overload in virtual time.

use std::collections::VecDeque;
use std::time::Duration;

use ftsh_machine::Time;
use ftsh_syntax::backoff::{Backoff, last_attempt};
use rand_distr::{Distribution, Exp1};

use super::OverloadSettings;
use super::course::OverloadCourse;
use super::server::ServerWork;
use crate::common::{ClientCrowd, Random};
use crate::world::Events;

enum OverloadEvent {
    /// A client sends its next request.
    Request(usize),
    /// A client times out on this request.
    Timeout(RequestTicket),
    /// The oldest request may be done.
    Done(u64),
    /// The server stops.
    Stop,
    /// The server continues.
    Continue,
    /// A second is over.
    Second,
}

/// Identity of a client's request.
#[derive(Clone, Copy, PartialEq, Eq)]
struct RequestTicket {
    client: usize,
    number: u64,
}

struct SimulatedClient {
    /// Number of requests sent.
    requests: u64,
    waits: bool,
    /// True if the client has made its last attempt before the deadline.
    last: bool,
    /// Delays since the last answer, and their start.
    trouble: Option<(Backoff, Duration)>,
}

struct Simulation<'s> {
    setting: &'s OverloadSettings,
    crowd: &'s ClientCrowd,
    random: Random,
    events: Events<OverloadEvent>,
    clients: Vec<SimulatedClient>,
    work: ServerWork<RequestTicket>,
    stopped: bool,
    /// Connections with requests that the stopped server has not accepted yet.
    backlog: VecDeque<RequestTicket>,
    /// Generation of alarms. Alarms of an older generation are out of date.
    expectation: u64,
    course: OverloadCourse,
}

/// Simulates a crowd in an overload.
pub fn simulate(setting: &OverloadSettings, crowd: &ClientCrowd, random: Random) -> OverloadCourse {
    let client = || SimulatedClient { requests: 0, waits: false, last: false, trouble: None };
    let mut simulation = Simulation {
        setting,
        crowd,
        random,
        events: Events::new(),
        clients: (0..setting.clients).map(|_| client()).collect(),
        work: ServerWork::new(setting.slowness),
        stopped: false,
        backlog: VecDeque::new(),
        expectation: 0,
        course: setting.course(),
    };
    simulation.run();
    simulation.course
}

impl Simulation<'_> {
    fn run(&mut self) {
        let at = Time::after;
        let setting = self.setting;
        self.events.schedule(at(setting.before), OverloadEvent::Stop);
        self.events.schedule(at(setting.resumed()), OverloadEvent::Continue);
        self.events.schedule(at(Duration::from_secs(1)), OverloadEvent::Second);
        for client in 0..self.clients.len() {
            self.think(client);
        }
        while let Some(happening) = self.events.next(at(setting.end())) {
            self.course.events += 1;
            match happening {
                OverloadEvent::Request(client) => self.request(client),
                OverloadEvent::Timeout(ticket) => self.time_out(ticket),
                OverloadEvent::Done(number) if number == self.expectation && !self.stopped => {
                    self.serve();
                }
                OverloadEvent::Done(_) => {}
                OverloadEvent::Stop => self.stopped = true,
                OverloadEvent::Continue => {
                    self.stopped = false;
                    self.serve();
                    let now = self.now();
                    for ticket in std::mem::take(&mut self.backlog) {
                        self.work.begin(now, ticket);
                    }
                    self.expect();
                }
                OverloadEvent::Second => {
                    let now = self.now();
                    let before = now.saturating_sub(Duration::from_secs(1));
                    self.course.second(before).concurrency = self.work.concurrency();
                    self.events.schedule(at(now + Duration::from_secs(1)), OverloadEvent::Second);
                }
            }
        }
        self.course.peak = self.work.peak;
    }

    fn now(&self) -> Duration {
        self.events.now().elapsed()
    }

    fn schedule_in(&mut self, delay: Duration, happening: OverloadEvent) {
        self.events.schedule(self.events.now() + delay, happening);
    }

    /// Starts the idle time of a client.
    fn think(&mut self, client: usize) {
        let part: f64 = Exp1.sample(&mut self.random);
        self.schedule_in(self.setting.think.mul_f64(part), OverloadEvent::Request(client));
    }

    fn request(&mut self, client: usize) {
        let now = self.now();
        self.course.second(now).requests += 1;
        let it = &mut self.clients[client];
        it.requests += 1;
        it.waits = true;
        let ticket = RequestTicket { client, number: it.requests };
        self.schedule_in(self.setting.timeout, OverloadEvent::Timeout(ticket));
        if !self.stopped {
            self.work.begin(now, ticket);
            self.expect();
        } else if self.backlog.len() < self.setting.backlog as usize {
            self.backlog.push_back(ticket);
        }
    }

    fn time_out(&mut self, ticket: RequestTicket) {
        let it = &mut self.clients[ticket.client];
        if !it.waits || it.requests != ticket.number {
            return;
        }
        it.waits = false;
        let now = self.events.now().elapsed();
        let policy = self.crowd.policy(ticket.client);
        let (backoff, since) =
            it.trouble.get_or_insert_with(|| (Backoff::new(policy.clone()), now));
        let delay = backoff.next_delay(now.saturating_sub(*since), &mut self.random);
        self.course.second(now).timeouts += 1;
        let mut delay = delay;
        if let Some(deadline) = self.setting.deadline {
            let left = deadline.by.saturating_sub(now);
            if let Some(last) = last_attempt(delay, left, &mut self.random) {
                if !deadline.last_attempt || it.last {
                    return;
                }
                it.last = true;
                delay = last;
            }
        }
        self.schedule_in(delay, OverloadEvent::Request(ticket.client));
    }

    /// Answers all finished requests.
    fn serve(&mut self) {
        let now = self.now();
        while let Some(ticket) = self.work.done(now) {
            let it = &mut self.clients[ticket.client];
            if it.waits && it.requests == ticket.number {
                it.waits = false;
                it.trouble = None;
                self.course.answered(ticket.client, now);
                self.think(ticket.client);
            }
        }
        self.expect();
    }

    fn expect(&mut self) {
        self.expectation += 1;
        if let Some(at) = self.work.next() {
            self.events.schedule(Time::after(at), OverloadEvent::Done(self.expectation));
        }
    }
}
