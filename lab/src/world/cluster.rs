//! A cluster: machines with places, and an engine that puts each job on a free place. Some machines
//! are black holes, which fail each job at once, and are therefore free most often.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bstr::{BString, ByteSlice};
use ftsh_machine::effect::{Dispatch, Environment, ProcessId};
use ftsh_machine::event::{Blame, CommandStatus, Returned};
use ftsh_machine::outcome::Retry;
use ftsh_machine::packed::{BranchEnd, EndedBranch, PackedFailure, PackedValue};
use ftsh_machine::record::spans::RemoteSpans;
use ftsh_machine::{Event, Failure, FailureKind, Time};
use ftsh_sim::{Call, Model};
use rand::RngExt;

use super::{Agenda, CommandModels, RunningProgram};

/// Parameters of the cluster.
#[derive(Clone, Debug)]
pub struct ClusterSettings {
    /// Number of jobs.
    pub jobs: u64,
    /// Number of jobs submitted at once.
    pub most: u64,
    /// Number of machines.
    pub nodes: usize,
    /// Number of machines that fail each job.
    pub holes: usize,
    /// Number of jobs that a machine runs at once.
    pub places: u32,
    /// Mean duration of a job; durations are uniform from half of the mean to one and a half.
    pub job: Duration,
    /// Time until a job fails in a hole.
    pub failing: Duration,
    /// Duration of a query of the places.
    pub look: Duration,
}

/// State of the cluster over time.
#[derive(Debug)]
pub struct ClusterModel {
    setting: ClusterSettings,
    /// Free places of each machine; the holes come first.
    free: Vec<u32>,
    /// Jobs that wait for a place, in order of arrival.
    waiting: VecDeque<SubmittedJob>,
    running: BTreeMap<u64, RunningJob>,
    count: u64,
    /// Counts of the results.
    pub counts: JobCounts,
}

/// Counts of jobs.
#[derive(Clone, Debug, Default)]
pub struct JobCounts {
    /// Number of starts of each job, by its name.
    pub attempts: BTreeMap<BString, u64>,
    /// Number of starts in holes.
    pub in_holes: u64,
    /// Times in seconds at which jobs were done, ascending.
    pub done: Vec<f64>,
}

/// A submitted job.
#[derive(Debug)]
struct SubmittedJob {
    whose: Whose,
    name: BString,
    /// Machines that the job must avoid.
    avoid: Vec<String>,
}

/// Receiver of the end of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    /// A command of a script.
    Command(RunningProgram),
    /// A shell that has dispatched a branch.
    Branch { client: usize, process: ProcessId },
}

#[derive(Debug)]
struct RunningJob {
    whose: Whose,
    node: usize,
    since: Time,
}

/// End of a job.
#[derive(Clone, Debug)]
pub struct JobEnd(u64);

impl ClusterModel {
    /// Creates a cluster with all places free.
    pub fn new(setting: ClusterSettings) -> Self {
        Self {
            free: vec![setting.places; setting.nodes],
            setting,
            waiting: VecDeque::new(),
            running: BTreeMap::new(),
            count: 0,
            counts: JobCounts::default(),
        }
    }

    fn is_hole(&self, node: usize) -> bool {
        node < self.setting.holes
    }

    fn submit(&mut self, job: SubmittedJob, agenda: &mut Agenda<JobEnd>) {
        self.waiting.push_back(job);
        self.place(agenda);
    }

    /// Assigns waiting jobs to free places that suit them.
    fn place(&mut self, agenda: &mut Agenda<JobEnd>) {
        let mut at = 0;
        while at < self.waiting.len() && self.free.iter().any(|free| *free > 0) {
            let avoid = &self.waiting[at].avoid;
            let may = |node: usize| avoid.is_empty() || !avoid.contains(&name(node));
            let free = self.free.iter().enumerate().filter(|(node, _)| may(*node));
            let all: u32 = free.clone().map(|(_, free)| *free).sum();
            if all == 0 {
                at += 1;
                continue;
            }
            let mut chosen = agenda.random.random_range(0..all);
            let node = free.into_iter().find(|(_, free)| {
                let here = chosen < **free;
                chosen = chosen.saturating_sub(**free);
                here
            });
            let Some((node, _)) = node else { return };
            if let Some(job) = self.waiting.remove(at) {
                self.begin(job, node, agenda);
            }
        }
    }

    fn begin(&mut self, job: SubmittedJob, node: usize, agenda: &mut Agenda<JobEnd>) {
        self.free[node] -= 1;
        self.counts.in_holes += u64::from(self.is_hole(node));
        *self.counts.attempts.entry(job.name).or_default() += 1;
        let takes = if self.is_hole(node) {
            self.setting.failing
        } else {
            self.setting.job.mul_f64(0.5 + agenda.random.random::<f64>())
        };
        if let Whose::Branch { client, process } = job.whose {
            agenda.send(client, Event::Placed { process, node: name(node) });
        }
        self.running.insert(self.count, RunningJob { whose: job.whose, node, since: agenda.now() });
        agenda.wake(agenda.now() + takes, JobEnd(self.count));
        self.count += 1;
    }

    fn free_places(&self) -> u32 {
        self.free.iter().sum()
    }
}

impl CommandModels for ClusterModel {
    type Alarm = JobEnd;

    fn environment(&self) -> Environment {
        let variable = |name: &str, value: u64| (name.into(), value.to_string().into());
        vec![variable("most", self.setting.most), variable("places", self.setting.places.into())]
    }

    fn start(
        &mut self,
        program: RunningProgram,
        call: &Call,
        agenda: &mut Agenda<JobEnd>,
    ) -> Option<Model> {
        let words: Vec<_> = call.words.iter().map(|word| word.as_bytes()).collect();
        match words[..] {
            [b"ls", b"jobs"] => {
                let names: Vec<_> = (1..=self.setting.jobs).map(|job| job.to_string()).collect();
                Some(Model::succeeds().prints(names.join("\n") + "\n"))
            }
            [b"srun", b"work", job] => {
                let whose = Whose::Command(program);
                self.submit(SubmittedJob { whose, name: job.into(), avoid: Vec::new() }, agenda);
                Some(Model::hangs())
            }
            // Allocated, idle, others, all.
            [b"sinfo", b"--noheader", b"--format=%C"] => {
                let all = self.setting.places * self.setting.nodes as u32;
                let idle = self.free_places();
                let line = format!("{}/{idle}/0/{all}\n", all - idle);
                Some(Model::succeeds().takes(self.setting.look).prints(line))
            }
            [b"cut", b"-d", b"/", b"-f", field] => {
                let field: usize = field.to_str().ok()?.parse().ok()?;
                let value = call.input.trim_ascii().split_str("/").nth(field.checked_sub(1)?)?;
                Some(Model::succeeds().consumes().prints([value, b"\n"].concat()))
            }
            _ => None,
        }
    }

    fn dispatch(&mut self, client: usize, dispatch: Dispatch, agenda: &mut Agenda<JobEnd>) {
        let Dispatch { process, avoid, branch, .. } = dispatch;
        if (0..self.setting.nodes).all(|node| avoid.contains(&name(node))) {
            let why = "Requested node configuration is not available".into();
            let returned = Returned::NotBegun { node: None, why, blame: Blame::Exclusion };
            return agenda.send(client, Event::Returned { process, returned });
        }
        let name = match &branch.word {
            PackedValue::Text(text) => text.clone(),
            PackedValue::Integer(number) => number.to_string().into(),
            _ => BString::default(),
        };
        self.submit(SubmittedJob { whose: Whose::Branch { client, process }, name, avoid }, agenda);
    }

    fn cut_short(&mut self, program: RunningProgram, agenda: &mut Agenda<JobEnd>) {
        let whose = Whose::Command(program);
        self.waiting.retain(|job| job.whose != whose);
        let job = self.running.iter().find(|(_, job)| job.whose == whose).map(|(job, _)| *job);
        if let Some(job) = job.and_then(|job| self.running.remove(&job)) {
            self.free[job.node] += 1;
            self.place(agenda);
        }
    }

    fn alarm(&mut self, JobEnd(job): JobEnd, agenda: &mut Agenda<JobEnd>) {
        // Otherwise the job was canceled.
        let Some(RunningJob { whose, node, since }) = self.running.remove(&job) else { return };
        let now = agenda.now();
        let succeeds = !self.is_hole(node);
        if succeeds {
            self.counts.done.push(now.elapsed().as_secs_f64());
        }
        match whose {
            Whose::Command(program) => {
                agenda.end(program, CommandStatus::Exited(i32::from(!succeeds)));
            }
            Whose::Branch { client, process } => {
                let end = if succeeds { BranchEnd::Succeeded } else { failed() };
                let spans = RemoteSpans::default();
                let ended = Box::new(EndedBranch { end, attempts: 0, texts: Vec::new(), spans });
                let returned = Returned::Ended { node: name(node), elapsed: now - since, ended };
                agenda.send(client, Event::Returned { process, returned });
            }
        }
        self.free[node] += 1;
        self.place(agenda);
    }
}

/// Returns the name of a machine.
fn name(node: usize) -> String {
    format!("n{}", node + 1)
}

/// Returns the end of a branch whose command exits with 1.
fn failed() -> BranchEnd {
    let failure = Failure::new(FailureKind::Exit, 1, "`work` exited with 1".into(), "work".into());
    let failure = vec![PackedFailure { failure: Failure { line: 1, ..failure }, text: 0 }];
    BranchEnd::Failed { failure, again: Retry::AsUsual }
}
