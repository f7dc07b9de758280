//! A queue of batch jobs on a host whose file descriptors can run out.

use std::collections::VecDeque;
use std::time::Duration;

use ftsh_machine::Time;
use ftsh_machine::event::CommandStatus;
use ftsh_sim::{Call, Model};

use super::{Agenda, CommandModels, RunningProgram};

/// Parameters of the host and its queue.
#[derive(Clone, Debug)]
pub struct Host {
    /// Number of descriptors.
    pub descriptors: u64,
    /// Number of descriptors in other use.
    pub in_use: u64,
    /// Number of descriptors that a submission holds.
    pub per_submission: u64,
    /// Maximum rate of accepted jobs, per second.
    pub rate: f64,
    /// Duration of a submission without others.
    pub alone: Duration,
    /// Time until the queue returns after a crash.
    pub restart: Duration,
    /// Time of a submission to notice that the queue is down.
    pub refusal: Duration,
    /// Duration of a query of the descriptor table.
    pub look: Duration,
}

/// State of the host over time. Submissions in progress share the queue evenly. When no descriptors
/// are left for a new one, the queue crashes and all submissions fail.
#[derive(Debug)]
pub struct JobQueue {
    host: Host,
    /// Submissions in progress in the order of their start, which is also that of their ends, each
    /// with its total service at its end.
    submissions: VecDeque<(RunningProgram, f64)>,
    /// Service received by a submission that was present from the beginning, in jobs.
    served: f64,
    /// Time of the last update of the service.
    since: Time,
    /// Generation of alarms. Alarms of an older generation are out of date.
    expectation: u64,
    down_until: Option<Time>,
    /// Counts of the results.
    pub counts: SubmissionCounts,
    /// Number of accepted jobs of each client.
    pub by_client: Vec<u64>,
    /// Samples of the free descriptors: seconds and number.
    pub samples: Vec<(f64, f64)>,
}

/// Counts of submissions.
#[derive(Clone, Copy, Debug, Default)]
pub struct SubmissionCounts {
    /// Jobs that the queue accepted.
    pub jobs: u64,
    /// Submissions that failed because the queue crashed or was down.
    pub failures: u64,
    /// Number of crashes of the queue.
    pub crashes: u64,
    /// Number of queries of the descriptors.
    pub looks: u64,
    /// Submissions begun.
    pub submissions: u64,
}

impl SubmissionCounts {
    /// Returns the number of queries without a submission.
    pub fn deferrals(&self) -> u64 {
        self.looks.saturating_sub(self.submissions)
    }
}

/// Alarms of the queue.
#[derive(Clone, Copy, Debug)]
pub enum QueueAlarm {
    /// The oldest submission may be done.
    Served(u64),
    /// A sample of the descriptors is due, repeatedly with this interval.
    Sample(Duration),
}

impl JobQueue {
    /// Creates a host without submissions.
    pub fn new(host: Host) -> Self {
        Self {
            host,
            submissions: VecDeque::new(),
            served: 0.0,
            since: Time::START,
            expectation: 0,
            down_until: None,
            counts: SubmissionCounts::default(),
            by_client: Vec::new(),
            samples: Vec::new(),
        }
    }

    fn used(&self) -> u64 {
        self.host.in_use + self.host.per_submission * self.submissions.len() as u64
    }

    /// Returns the rate of each submission in jobs per second.
    fn speed(&self) -> f64 {
        let alone = 1.0 / self.host.alone.as_secs_f64();
        alone.min(self.host.rate / self.submissions.len().max(1) as f64)
    }

    /// Advances the service to the present. Must precede the arrival or the end of a submission.
    fn serve(&mut self, now: Time) {
        self.served += (now - self.since).as_secs_f64() * self.speed();
        self.since = now;
    }

    fn expect(&mut self, agenda: &mut Agenda<QueueAlarm>) {
        self.expectation += 1;
        if let Some((_, target)) = self.submissions.front() {
            let left = (target - self.served).max(0.0) / self.speed();
            agenda.wake(
                agenda.now() + Duration::from_secs_f64(left),
                QueueAlarm::Served(self.expectation),
            );
        }
    }

    fn submit(&mut self, program: RunningProgram, agenda: &mut Agenda<QueueAlarm>) -> Model {
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

    /// Returns the content of `/proc/sys/fs/file-nr`: allocated, unused and maximum descriptors.
    fn table(&self) -> [u64; 3] {
        [self.used(), 0, self.host.descriptors]
    }
}

/// Noise of binary fractions, in jobs.
const NOISE: f64 = 1e-8;

impl CommandModels for JobQueue {
    type Alarm = QueueAlarm;

    fn start(
        &mut self,
        program: RunningProgram,
        call: &Call,
        agenda: &mut Agenda<QueueAlarm>,
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

    fn cut_short(&mut self, program: RunningProgram, agenda: &mut Agenda<QueueAlarm>) {
        if let Some(place) = self.submissions.iter().position(|(it, _)| *it == program) {
            self.serve(agenda.now());
            self.submissions.remove(place);
            self.counts.failures += 1;
            self.expect(agenda);
        }
    }

    fn alarm(&mut self, alarm: QueueAlarm, agenda: &mut Agenda<QueueAlarm>) {
        let now = agenda.now();
        match alarm {
            QueueAlarm::Served(expectation) if expectation == self.expectation => {
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
            QueueAlarm::Served(_) => {}
            QueueAlarm::Sample(distance) => {
                let free = self.host.descriptors.saturating_sub(self.used());
                self.samples.push((now.elapsed().as_secs_f64(), free as f64));
                agenda.wake(now + distance, alarm);
            }
        }
    }
}
