//! What happened in the course of an overload.

use std::time::Duration;

/// What happened, second by second.
#[derive(Clone, Debug)]
pub struct Course {
    /// When the server was stopped.
    pub stopped: Duration,
    /// When it was continued.
    pub resumed: Duration,
    /// What happened in each second.
    pub seconds: Vec<Second>,
    /// The most requests in progress at once.
    pub peak: usize,
    /// When each client had its first answer since the server was continued.
    pub back: Vec<Option<Duration>>,
    /// How many answers each client had in the last [`WINDOW`] seconds.
    pub lately: Vec<u64>,
    /// Events of the simulation, or requests of the live run.
    pub events: u64,
}

/// What happened in a second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Second {
    /// Requests begun.
    pub requests: u64,
    /// Requests answered in time.
    pub answers: u64,
    /// Requests not answered in time.
    pub timeouts: u64,
    /// The requests in progress at its end.
    pub concurrency: usize,
}

/// How many seconds are looked at together.
pub const WINDOW: usize = 10;

/// This much of the goodput before means that the server is back.
const ENOUGH: f64 = 0.9;

impl Course {
    /// A course of `time`, in which nothing happened yet.
    pub fn new(clients: usize, stopped: Duration, resumed: Duration, time: Duration) -> Self {
        Self {
            stopped,
            resumed,
            seconds: vec![Second::default(); time.as_secs_f64().ceil().max(1.0) as usize],
            peak: 0,
            back: vec![None; clients],
            lately: vec![0; clients],
            events: 0,
        }
    }

    /// The second of a moment; what comes after the end counts for the last.
    pub fn second(&mut self, at: Duration) -> &mut Second {
        let last = self.seconds.len() - 1;
        &mut self.seconds[(at.as_secs() as usize).min(last)]
    }

    /// A client has its answer.
    pub fn answered(&mut self, client: usize, at: Duration) {
        self.second(at).answers += 1;
        if at >= self.resumed {
            self.back[client].get_or_insert(at);
        }
        if at.as_secs() as usize + WINDOW >= self.seconds.len() {
            self.lately[client] += 1;
        }
    }

    /// Answers a second in some seconds.
    fn goodput(&self, from: usize, to: usize) -> f64 {
        let seconds = self.seconds.get(from..to).unwrap_or_default();
        let answers: u64 = seconds.iter().map(|second| second.answers).sum();
        answers as f64 / seconds.len().max(1) as f64
    }

    /// Answers a second before the server was stopped, without the first second, in which none can
    /// be.
    pub fn before(&self) -> f64 {
        self.goodput(1, self.stopped.as_secs() as usize)
    }

    /// Answers a second in the end.
    pub fn after(&self) -> f64 {
        let end = self.seconds.len();
        self.goodput(end.saturating_sub(WINDOW), end)
    }

    /// So many answers a second in a window are as many as before, nearly: [`ENOUGH`] of them, less
    /// three standard deviations, since they come by chance, now as before.
    fn enough(&self) -> f64 {
        let (before, window) = (self.before(), WINDOW as f64);
        let seconds = (self.stopped.as_secs_f64() - 1.0).max(1.0);
        let deviation = (before / window + before / seconds).sqrt();
        (ENOUGH * before - 3.0 * deviation).max(before / 4.0)
    }

    /// Whether all is well in the end.
    pub fn recovers(&self) -> bool {
        self.after() >= self.enough()
    }

    /// How long after it was continued the server gave as many answers as before, nearly, for the
    /// first time in a whole window.
    pub fn recovery(&self) -> Option<Duration> {
        let resumed = self.resumed.as_secs() as usize;
        let mut starts = resumed..=self.seconds.len().saturating_sub(WINDOW);
        let start = starts.find(|at| self.goodput(*at, at + WINDOW) >= self.enough())?;
        Some(Duration::from_secs((start - resumed) as u64))
    }

    /// How long after the server was continued this part of some clients had an answer.
    pub fn part_back(&self, part: f64, of: impl Fn(usize) -> bool) -> Option<Duration> {
        let mut back: Vec<_> = (0..self.back.len())
            .filter(|client| of(*client))
            .map(|client| self.back[client].unwrap_or(Duration::MAX))
            .collect();
        back.sort_unstable();
        let at = ((back.len() as f64 * part).ceil() as usize).clamp(1, back.len().max(1)) - 1;
        back.get(at).filter(|at| **at < Duration::MAX).map(|at| at.saturating_sub(self.resumed))
    }

    /// The share of the clients that had an answer by then, since the server was continued.
    pub fn served(&self, by: Duration) -> f64 {
        let served = self.back.iter().filter(|at| at.is_some_and(|at| at <= by)).count();
        served as f64 / self.back.len().max(1) as f64
    }

    /// Requests begun while the server was stopped.
    pub fn requests_stopped(&self) -> u64 {
        let (from, to) = (self.stopped.as_secs() as usize, self.resumed.as_secs() as usize);
        self.seconds.get(from..to).unwrap_or_default().iter().map(|it| it.requests).sum()
    }
}
