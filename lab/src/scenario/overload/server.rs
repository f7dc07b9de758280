//! A server that slows down under load, for simulation and live run.

use std::collections::VecDeque;
use std::time::Duration;

/// Response time of the server: `base` up to `limit` concurrent requests, then base·factor^((c −
/// limit)/divisor) for c requests. The constants come from the server of an article on the interval
/// between retried requests.
#[derive(Clone, Copy, Debug)]
pub struct Slowness {
    /// Response time with few requests.
    pub base: Duration,
    /// Maximum number of few requests.
    pub limit: f64,
    /// Growth …
    pub factor: f64,
    /// … for this number of further requests.
    pub divisor: f64,
}

impl Slowness {
    /// Returns the duration of a request at this concurrency.
    pub fn delay(&self, concurrency: usize) -> Duration {
        let over = (concurrency as f64 - self.limit).max(0.0);
        let seconds = self.base.as_secs_f64() * self.factor.powf(over / self.divisor);
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }
}

/// Requests in progress. A request is done once it is as old as the delay for the *present* number
/// of requests, as in the article's server, which checks every 50 ms. The server does not notice
/// that a client has given up.
#[derive(Debug)]
pub struct ServerWork<T> {
    slowness: Slowness,
    /// Requests with the times of their arrival, oldest first.
    requests: VecDeque<(Duration, T)>,
    /// Maximum number so far.
    pub peak: usize,
}

impl<T> ServerWork<T> {
    /// Creates a server without requests.
    pub fn new(slowness: Slowness) -> Self {
        Self { slowness, requests: VecDeque::new(), peak: 0 }
    }

    /// Returns the number of requests in progress.
    pub fn concurrency(&self) -> usize {
        self.requests.len()
    }

    /// Adds a request.
    pub fn begin(&mut self, now: Duration, request: T) {
        self.requests.push_back((now, request));
        self.peak = self.peak.max(self.requests.len());
    }

    /// Returns the time at which the oldest request will be done without further changes.
    pub fn next(&self) -> Option<Duration> {
        let (since, _) = self.requests.front()?;
        Some(since.saturating_add(self.slowness.delay(self.requests.len())))
    }

    /// Removes and returns a finished request. Others may be done as well after the call.
    pub fn done(&mut self, now: Duration) -> Option<T> {
        if self.next()? > now {
            return None;
        }
        self.requests.pop_front().map(|(_, request)| request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOWNESS: Slowness =
        Slowness { base: Duration::from_millis(100), limit: 30.0, factor: 1.05, divisor: 15.0 };

    #[test]
    fn the_delays_are_those_of_the_article() {
        // The article's server printed concurrency: 1040, last delay: 2.671444385s, and others.
        assert_eq!(SLOWNESS.delay(10), Duration::from_millis(100));
        assert_eq!(SLOWNESS.delay(30), Duration::from_millis(100));
        for (concurrency, seconds) in [(1040, 2.671), (1599, 16.459), (2231, 128.58)] {
            let delay = SLOWNESS.delay(concurrency).as_secs_f64();
            assert!((delay / seconds - 1.0).abs() < 1e-2, "{concurrency}: {delay}");
        }
        assert_eq!(SLOWNESS.delay(1_000_000), Duration::MAX);
    }

    #[test]
    fn those_in_progress_speed_up_when_others_are_done() {
        let mut work = ServerWork::new(SLOWNESS);
        for request in 0..45 {
            work.begin(Duration::ZERO, request);
        }
        assert_eq!(work.next(), Some(Duration::from_millis(105)));
        assert_eq!(work.done(Duration::from_millis(104)), None);
        let done: Vec<_> = std::iter::from_fn(|| work.done(Duration::from_millis(105))).collect();
        assert_eq!((done.len(), work.concurrency(), work.peak), (45, 0, 45));
    }
}
