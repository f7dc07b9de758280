//! A server that gets slower the more it has to do at once, simulated and real alike.

use std::collections::VecDeque;
use std::time::Duration;

/// How long the server takes: `base` up to `limit` requests at once, then
/// base·factor^((c − limit)/divisor) for c of them. From an article on the interval between retried
/// requests, whose server has these constants.
#[derive(Clone, Copy, Debug)]
pub struct Slowness {
    /// With few requests.
    pub base: Duration,
    /// So many are few.
    pub limit: f64,
    /// By what it grows …
    pub factor: f64,
    /// … with so many requests more.
    pub divisor: f64,
}

impl Slowness {
    /// How long a request takes while there are so many.
    pub fn delay(&self, concurrency: usize) -> Duration {
        let over = (concurrency as f64 - self.limit).max(0.0);
        let seconds = self.base.as_secs_f64() * self.factor.powf(over / self.divisor);
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }
}

/// The requests in progress. A request is done when it is as old as the delay that goes with the
/// number of them *then*: so in the article's server, which looks again every 50 ms. Whether its
/// client still waits for the answer, a server like this doesn't know.
#[derive(Debug)]
pub struct Work<T> {
    slowness: Slowness,
    /// The oldest first, each with the time of its arrival.
    requests: VecDeque<(Duration, T)>,
    /// The most there ever were.
    pub peak: usize,
}

impl<T> Work<T> {
    /// Nothing to do.
    pub fn new(slowness: Slowness) -> Self {
        Self { slowness, requests: VecDeque::new(), peak: 0 }
    }

    /// How many requests are in progress.
    pub fn concurrency(&self) -> usize {
        self.requests.len()
    }

    /// A request arrives.
    pub fn begin(&mut self, now: Duration, request: T) {
        self.requests.push_back((now, request));
        self.peak = self.peak.max(self.requests.len());
    }

    /// When the oldest will be done, if nothing else comes before.
    pub fn next(&self) -> Option<Duration> {
        let (since, _) = self.requests.front()?;
        Some(since.saturating_add(self.slowness.delay(self.requests.len())))
    }

    /// A request that is done. Ask again, since the others may be done now, too.
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
        // Its server printed concurrency: 1040, last delay: 2.671444385s, and others.
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
        let mut work = Work::new(SLOWNESS);
        for request in 0..45 {
            work.begin(Duration::ZERO, request);
        }
        assert_eq!(work.next(), Some(Duration::from_millis(105)));
        assert_eq!(work.done(Duration::from_millis(104)), None);
        let done: Vec<_> = std::iter::from_fn(|| work.done(Duration::from_millis(105))).collect();
        assert_eq!((done.len(), work.concurrency(), work.peak), (45, 0, 45));
    }
}
