//! Watched scopes, and the times of their samples.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use super::sampler::{SampleReport, Sampler, Target, interval};
use ftsh_machine::effect::{ScopeId, Watch};

/// Time after which the loop looks again for a sample that is still being taken, or tries again to
/// start the thread.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);

/// Watched scopes.
#[derive(Default)]
pub(crate) struct ScopeWatches {
    watched: BTreeMap<ScopeId, (Watch, Instant)>,
    /// Time of the next sample.
    due: Option<Instant>,
    /// Present interval of samples.
    interval: Option<Duration>,
    sampler: Option<Sampler>,
    /// Set after the first report about processes that cannot be read.
    has_reported: bool,
}

impl ScopeWatches {
    pub(crate) fn begin(&mut self, scope: ScopeId, watch: Watch, now: Instant) {
        self.watched.insert(scope, (watch, now));
        let interval = interval(watch);
        let due = now + interval;
        self.due = Some(self.due.map_or(due, |before| before.min(due)));
        self.interval = Some(self.interval.map_or(interval, |before| before.min(interval)));
    }

    /// Stops watching these scopes.
    pub(crate) fn end(&mut self, scopes: &[ScopeId]) {
        for scope in scopes {
            self.watched.remove(scope);
        }
        if self.watched.is_empty() {
            (self.due, self.interval) = (None, None);
        }
    }

    /// Returns true if no scope is watched.
    pub(crate) fn is_empty(&self) -> bool {
        self.watched.is_empty()
    }

    /// Returns the watched scopes.
    pub(crate) fn scopes(&self) -> Vec<ScopeId> {
        self.watched.keys().copied().collect()
    }

    /// Returns the time of the next sample.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Takes the reports of the last sample, without those about scopes and conditions that are not
    /// watched any more.
    pub(crate) fn take_reports(&mut self) -> Vec<SampleReport> {
        let Some(sampled) = self.sampler.as_ref().and_then(Sampler::take) else {
            return Vec::new();
        };
        if !self.is_empty() {
            (self.due, self.interval) = (Some(sampled.next), Some(sampled.interval));
        }
        let mut reports = sampled.reports;
        reports.retain(|report| self.is_wanted(report));
        reports
    }

    fn is_wanted(&mut self, report: &SampleReport) -> bool {
        match report {
            SampleReport::Unreadable(_) => !std::mem::replace(&mut self.has_reported, true),
            SampleReport::Stalled(scope) => {
                let watch = self.watched.get_mut(scope).map(|(watch, _)| watch);
                watch.and_then(|watch| watch.stalled.take()).is_some()
            }
            SampleReport::OverMemory(scope, _) => {
                let watch = self.watched.get_mut(scope).map(|(watch, _)| watch);
                watch.and_then(|watch| watch.memory.take()).is_some()
            }
        }
    }

    /// Returns true if a sample can be taken now. Otherwise sets the time of the next look.
    pub(crate) fn is_sample_due(&mut self, now: Instant) -> bool {
        // Scopes whose conditions have all been reported need no further samples.
        self.watched.retain(|_, (watch, _)| !watch.is_empty());
        self.end(&[]);
        if self.watched.is_empty() || self.due.is_none_or(|due| due > now) {
            return false;
        }
        let is_busy = self.sampler.as_ref().is_some_and(Sampler::is_busy);
        if is_busy {
            self.due = Some(now + RETRY_INTERVAL);
        }
        !is_busy
    }

    /// Requests a sample. `roots` are the processes from which those of each scope descend. On the
    /// first call, returns the descriptor that reports news.
    pub(crate) fn sample(
        &mut self,
        now: Instant,
        mut roots: BTreeMap<ScopeId, Vec<i32>>,
    ) -> io::Result<Option<BorrowedFd<'_>>> {
        let planned = now + self.interval.unwrap_or(RETRY_INTERVAL);
        let is_new = self.sampler.is_none();
        if is_new {
            self.due = Some(now + RETRY_INTERVAL);
            self.sampler = Some(Sampler::start()?);
        }
        let targets = self.watched.iter().map(|(&scope, &(watch, since))| {
            let roots = roots.remove(&scope).unwrap_or_default();
            Target { scope, watch, since, roots }
        });
        let targets = targets.collect();
        self.due = Some(planned);
        let Some(sampler) = &self.sampler else { return Ok(None) };
        sampler.request(targets, planned);
        Ok(is_new.then(|| sampler.readiness()))
    }
}
