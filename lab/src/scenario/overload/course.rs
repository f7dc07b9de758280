//! Course of an overload.

use std::time::Duration;

/// Course of an overload by seconds.
#[derive(Clone, Debug)]
pub struct OverloadCourse {
    /// Time of the server's stop.
    pub stopped: Duration,
    /// Time of the server's continuation.
    pub resumed: Duration,
    /// Counts for each second.
    pub seconds: Vec<Second>,
    /// Maximum number of requests in progress.
    pub peak: usize,
    /// Time of each client's first answer after the continuation.
    pub back: Vec<Option<Duration>>,
    /// Number of each client's answers in the last [`WINDOW`] seconds.
    pub lately: Vec<u64>,
    /// Events of the simulation, or requests of the live run.
    pub events: u64,
}

/// Counts of a second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Second {
    /// Requests begun.
    pub requests: u64,
    /// Requests answered in time.
    pub answers: u64,
    /// Requests not answered in time.
    pub timeouts: u64,
    /// Requests in progress at the end of the second.
    pub concurrency: usize,
}

/// Length of a window in seconds.
pub const WINDOW: usize = 10;

/// Part of the earlier goodput at which the server counts as recovered.
const ENOUGH: f64 = 0.9;

impl OverloadCourse {
    /// Creates an empty course of length `time`.
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

    /// Returns the second of a moment; later moments count for the last second.
    pub fn second(&mut self, at: Duration) -> &mut Second {
        let last = self.seconds.len() - 1;
        &mut self.seconds[(at.as_secs() as usize).min(last)]
    }

    /// Adds an answer to a client.
    pub fn answered(&mut self, client: usize, at: Duration) {
        self.second(at).answers += 1;
        if at >= self.resumed {
            self.back[client].get_or_insert(at);
        }
        if at.as_secs() as usize + WINDOW >= self.seconds.len() {
            self.lately[client] += 1;
        }
    }

    /// Returns the answers per second in a window.
    fn goodput(&self, from: usize, to: usize) -> f64 {
        let seconds = self.seconds.get(from..to).unwrap_or_default();
        let answers: u64 = seconds.iter().map(|second| second.answers).sum();
        answers as f64 / seconds.len().max(1) as f64
    }

    /// Returns the answers per second before the stop, without the first second, which has none.
    pub fn before(&self) -> f64 {
        self.goodput(1, self.stopped.as_secs() as usize)
    }

    /// Returns the answers per second at the end.
    pub fn after(&self) -> f64 {
        let end = self.seconds.len();
        self.goodput(end.saturating_sub(WINDOW), end)
    }

    /// Returns the rate of answers that counts as recovery: [`ENOUGH`] of the earlier rate, minus
    /// three standard deviations of both.
    fn enough(&self) -> f64 {
        let (before, window) = (self.before(), WINDOW as f64);
        let seconds = (self.stopped.as_secs_f64() - 1.0).max(1.0);
        let deviation = (before / window + before / seconds).sqrt();
        (ENOUGH * before - 3.0 * deviation).max(before / 4.0)
    }

    /// True if the server has recovered at the end.
    pub fn recovers(&self) -> bool {
        self.after() >= self.enough()
    }

    /// Returns the time from the continuation to the first whole window with a recovered rate.
    pub fn recovery(&self) -> Option<Duration> {
        let resumed = self.resumed.as_secs() as usize;
        let mut starts = resumed..=self.seconds.len().saturating_sub(WINDOW);
        let start = starts.find(|at| self.goodput(*at, at + WINDOW) >= self.enough())?;
        Some(Duration::from_secs((start - resumed) as u64))
    }

    /// Returns the time from the continuation until `part` of the selected clients had an answer.
    pub fn part_back(&self, part: f64, of: impl Fn(usize) -> bool) -> Option<Duration> {
        let mut back: Vec<_> = (0..self.back.len())
            .filter(|client| of(*client))
            .map(|client| self.back[client].unwrap_or(Duration::MAX))
            .collect();
        back.sort_unstable();
        let at = ((back.len() as f64 * part).ceil() as usize).clamp(1, back.len().max(1)) - 1;
        back.get(at).filter(|at| **at < Duration::MAX).map(|at| at.saturating_sub(self.resumed))
    }

    /// Returns the share of the clients with an answer since the continuation.
    pub fn served(&self, by: Duration) -> f64 {
        let served = self.back.iter().filter(|at| at.is_some_and(|at| at <= by)).count();
        served as f64 / self.back.len().max(1) as f64
    }

    /// Returns the number of requests begun during the stop.
    pub fn requests_stopped(&self) -> u64 {
        let (from, to) = (self.stopped.as_secs() as usize, self.resumed.as_secs() as usize);
        self.seconds.get(from..to).unwrap_or_default().iter().map(|it| it.requests).sum()
    }
}
