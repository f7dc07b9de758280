//! The overload in virtual time.

use std::collections::VecDeque;
use std::time::Duration;

use ftsh_machine::Time;
use ftsh_syntax::backoff::{Backoff, last_attempt};
use rand_distr::{Distribution, Exp1};

use super::Setting;
use super::course::Course;
use super::server::Work;
use crate::common::{Crowd, Random};
use crate::world::Events;

enum Happening {
    /// A client sends its next request.
    Request(usize),
    /// A client has waited long enough for an answer to this request.
    Timeout(Ticket),
    /// The server may be done with its oldest request.
    Done(u64),
    /// The server stops.
    Stop,
    /// It goes on.
    Continue,
    /// A second is over.
    Second,
}

/// A client's request, by number.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Ticket {
    client: usize,
    number: u64,
}

struct Client {
    /// How many requests it has sent.
    requests: u64,
    waits: bool,
    /// Whether it has made the last attempt that its deadline allows.
    last: bool,
    /// The delays since the last answer, and since when.
    trouble: Option<(Backoff, Duration)>,
}

struct Simulation<'s> {
    setting: &'s Setting,
    crowd: &'s Crowd,
    random: Random,
    events: Events<Happening>,
    clients: Vec<Client>,
    work: Work<Ticket>,
    stopped: bool,
    /// Connections that the stopped server has to accept, with their requests.
    backlog: VecDeque<Ticket>,
    /// Alarms for an end that was expected before something else came have an older number.
    expectation: u64,
    course: Course,
}

/// Lets a crowd go through an overload.
pub fn simulate(setting: &Setting, crowd: &Crowd, random: Random) -> Course {
    let client = || Client { requests: 0, waits: false, last: false, trouble: None };
    let mut simulation = Simulation {
        setting,
        crowd,
        random,
        events: Events::new(),
        clients: (0..setting.clients).map(|_| client()).collect(),
        work: Work::new(setting.slowness),
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
        self.events.schedule(at(setting.before), Happening::Stop);
        self.events.schedule(at(setting.resumed()), Happening::Continue);
        self.events.schedule(at(Duration::from_secs(1)), Happening::Second);
        for client in 0..self.clients.len() {
            self.think(client);
        }
        while let Some(happening) = self.events.next(at(setting.end())) {
            self.course.events += 1;
            match happening {
                Happening::Request(client) => self.request(client),
                Happening::Timeout(ticket) => self.time_out(ticket),
                Happening::Done(number) if number == self.expectation && !self.stopped => {
                    self.serve();
                }
                Happening::Done(_) => {}
                Happening::Stop => self.stopped = true,
                Happening::Continue => {
                    self.stopped = false;
                    self.serve();
                    let now = self.now();
                    for ticket in std::mem::take(&mut self.backlog) {
                        self.work.begin(now, ticket);
                    }
                    self.expect();
                }
                Happening::Second => {
                    let now = self.now();
                    let before = now.saturating_sub(Duration::from_secs(1));
                    self.course.second(before).concurrency = self.work.concurrency();
                    self.events.schedule(at(now + Duration::from_secs(1)), Happening::Second);
                }
            }
        }
        self.course.peak = self.work.peak;
    }

    fn now(&self) -> Duration {
        self.events.now().elapsed()
    }

    fn schedule_in(&mut self, delay: Duration, happening: Happening) {
        self.events.schedule(self.events.now() + delay, happening);
    }

    /// A client needs nothing for a while.
    fn think(&mut self, client: usize) {
        let part: f64 = Exp1.sample(&mut self.random);
        self.schedule_in(self.setting.think.mul_f64(part), Happening::Request(client));
    }

    fn request(&mut self, client: usize) {
        let now = self.now();
        self.course.second(now).requests += 1;
        let it = &mut self.clients[client];
        it.requests += 1;
        it.waits = true;
        let ticket = Ticket { client, number: it.requests };
        self.schedule_in(self.setting.timeout, Happening::Timeout(ticket));
        if !self.stopped {
            self.work.begin(now, ticket);
            self.expect();
        } else if self.backlog.len() < self.setting.backlog as usize {
            self.backlog.push_back(ticket);
        }
    }

    fn time_out(&mut self, ticket: Ticket) {
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
        self.schedule_in(delay, Happening::Request(ticket.client));
    }

    /// The server answers what it is done with.
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
            self.events.schedule(Time::after(at), Happening::Done(self.expectation));
        }
    }
}
