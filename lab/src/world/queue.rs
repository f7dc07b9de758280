//! A queue of batch jobs on a host whose file descriptors can run out.

use std::collections::VecDeque;
use std::time::Duration;

use ftsh_machine::Time;
use ftsh_machine::event::CommandStatus;
use ftsh_sim::{Call, Model};

use super::{Agenda, Commands, Program};

/// What is known of the host and its queue.
#[derive(Clone, Debug)]
pub struct Host {
    /// How many descriptors there are.
    pub descriptors: u64,
    /// How many of them others use.
    pub in_use: u64,
    /// How many a submission holds while it is in progress.
    pub per_submission: u64,
    /// How many jobs a second the queue accepts at most.
    pub rate: f64,
    /// How long a submission takes when it is alone.
    pub alone: Duration,
    /// How long the queue takes to come back when it has crashed.
    pub restart: Duration,
    /// How long a submission takes to find that the queue is down.
    pub refusal: Duration,
    /// How long looking at the table of descriptors takes.
    pub look: Duration,
}

/// The host in the course of time. Submissions in progress share the queue evenly; when there are
/// no descriptors left for one more, the queue crashes and all of them fail.
#[derive(Debug)]
pub struct Queue {
    host: Host,
    /// The submissions in progress in the order in which they began, which is that in which they
    /// end, each with the share of service it will have had by then.
    submissions: VecDeque<(Program, f64)>,
    /// How much service each submission had that is here from the beginning on, in jobs.
    served: f64,
    /// Since when that is so.
    since: Time,
    /// Alarms for an end that was expected before something else came have an older number.
    expectation: u64,
    down_until: Option<Time>,
    /// What came of it.
    pub counts: Counts,
    /// The jobs that were accepted of each client.
    pub by_client: Vec<u64>,
    /// The free descriptors at regular moments: seconds and how many.
    pub samples: Vec<(f64, f64)>,
}

/// What came of all submissions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Jobs that the queue accepted.
    pub jobs: u64,
    /// Submissions that failed, because the queue crashed or was down.
    pub failures: u64,
    /// How often the queue crashed.
    pub crashes: u64,
    /// How often a client looked at the descriptors.
    pub looks: u64,
    /// Submissions begun.
    pub submissions: u64,
}

impl Counts {
    /// How often a client looked and then submitted nothing.
    pub fn deferrals(&self) -> u64 {
        self.looks.saturating_sub(self.submissions)
    }
}

/// What the queue wants to be woken for.
#[derive(Clone, Copy, Debug)]
pub enum Alarm {
    /// The oldest submission may be served.
    Served(u64),
    /// The descriptors are to be counted, again and again with this distance.
    Sample(Duration),
}

impl Queue {
    /// A host without submissions.
    pub fn new(host: Host) -> Self {
        Self {
            host,
            submissions: VecDeque::new(),
            served: 0.0,
            since: Time::START,
            expectation: 0,
            down_until: None,
            counts: Counts::default(),
            by_client: Vec::new(),
            samples: Vec::new(),
        }
    }

    fn used(&self) -> u64 {
        self.host.in_use + self.host.per_submission * self.submissions.len() as u64
    }

    /// The jobs a second that each submission is served at.
    fn speed(&self) -> f64 {
        let alone = 1.0 / self.host.alone.as_secs_f64();
        alone.min(self.host.rate / self.submissions.len().max(1) as f64)
    }

    /// Counts the service up to now; to be called before submissions come or go.
    fn serve(&mut self, now: Time) {
        self.served += (now - self.since).as_secs_f64() * self.speed();
        self.since = now;
    }

    fn expect(&mut self, agenda: &mut Agenda<Alarm>) {
        self.expectation += 1;
        if let Some((_, target)) = self.submissions.front() {
            let left = (target - self.served).max(0.0) / self.speed();
            agenda.wake(
                agenda.now() + Duration::from_secs_f64(left),
                Alarm::Served(self.expectation),
            );
        }
    }

    fn submit(&mut self, program: Program, agenda: &mut Agenda<Alarm>) -> Model {
        let now = agenda.now();
        self.counts.submissions += 1;
        let refused = Model::fails(1).takes(self.host.refusal);
        if self.down_until.is_some_and(|until| now < until) {
            self.counts.failures += 1;
            return refused;
        }
        self.serve(now);
        if self.used() + self.host.per_submission > self.host.descriptors {
            self.counts.crashes += 1;
            self.counts.failures += 1 + self.submissions.len() as u64;
            self.down_until = Some(now + self.host.restart);
            for (program, _) in self.submissions.drain(..) {
                agenda.end(program, CommandStatus::Exited(1));
            }
            self.expect(agenda);
            return refused;
        }
        self.submissions.push_back((program, self.served + 1.0));
        self.expect(agenda);
        Model::hangs()
    }

    /// `/proc/sys/fs/file-nr`: how many descriptors are in use, unused but kept, and possible.
    fn table(&self) -> [u64; 3] {
        [self.used(), 0, self.host.descriptors]
    }
}

/// A hundred-millionth of a job is noise of fractions.
const NOISE: f64 = 1e-8;

impl Commands for Queue {
    type Alarm = Alarm;

    fn start(
        &mut self,
        program: Program,
        call: &Call,
        agenda: &mut Agenda<Alarm>,
    ) -> Option<Model> {
        match call.words {
            [name, _job] if *name == "condor_submit" => Some(self.submit(program, agenda)),
            [name, option, field, file]
                if *name == "cut" && *option == "-f" && *file == "/proc/sys/fs/file-nr" =>
            {
                let field: usize = field.to_string().parse().ok()?;
                let value = self.table().get(field.checked_sub(1)?).copied()?;
                self.counts.looks += u64::from(field == 1);
                Some(Model::succeeds().takes(self.host.look).prints(format!("{value}\n")))
            }
            _ => None,
        }
    }

    fn cut_short(&mut self, program: Program, agenda: &mut Agenda<Alarm>) {
        if let Some(place) = self.submissions.iter().position(|(it, _)| *it == program) {
            self.serve(agenda.now());
            self.submissions.remove(place);
            self.counts.failures += 1;
            self.expect(agenda);
        }
    }

    fn alarm(&mut self, alarm: Alarm, agenda: &mut Agenda<Alarm>) {
        let now = agenda.now();
        match alarm {
            Alarm::Served(expectation) if expectation == self.expectation => {
                self.serve(now);
                while let Some((program, target)) = self.submissions.front()
                    && *target <= self.served + NOISE
                {
                    agenda.end(*program, CommandStatus::Exited(0));
                    let client = program.client;
                    if self.by_client.len() <= client {
                        self.by_client.resize(client + 1, 0);
                    }
                    self.by_client[client] += 1;
                    self.submissions.pop_front();
                    self.counts.jobs += 1;
                }
                self.expect(agenda);
            }
            Alarm::Served(_) => {}
            Alarm::Sample(distance) => {
                let free = self.host.descriptors.saturating_sub(self.used());
                self.samples.push((now.elapsed().as_secs_f64(), free as f64));
                agenda.wake(now + distance, alarm);
            }
        }
    }
}
