//! Progress of the processes of one scope.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use super::reading::{ProcessReader, ProcessWork};

/// Part of the time since the last progress that is too little processor time for progress.
///
/// Some programs wait by polling. A database behind a lock polls ten times a second, which takes less
/// than 0.05 % of a processor, and three times as much on a busy machine.
const IDLE_PART: u32 = 200;

/// Time of which [`IDLE_PART`] is too little processor time in any case, unless the time of `stalled`
/// is shorter. A single poll may take long.
const WINDOW: Duration = Duration::from_secs(1);

/// Progress of the processes of a scope, up to the last sample.
pub(super) struct Progress {
    /// Last time at which progress was seen, or at which there was no process.
    last: Instant,
    /// Processor time since then.
    ran: Duration,
    /// Time of the last sample.
    sampled: Instant,
    /// Maximum time between two samples that counts.
    most: Duration,
    /// Least time for which processor time is judged.
    window: Duration,
    work: BTreeMap<i32, ProcessWork>,
    /// Bytes of sockets at the last sample without other progress.
    sockets: Option<HashMap<u64, u64>>,
    /// Set when no process could be read.
    is_unreadable: bool,
}

impl Progress {
    /// Begins to observe a scope for the time of `stalled`.
    pub(super) fn new(now: Instant, time: Duration) -> Self {
        Self {
            last: now,
            ran: Duration::ZERO,
            sampled: now,
            most: time / 2,
            window: WINDOW.min(time / 2),
            work: BTreeMap::new(),
            sockets: None,
            is_unreadable: false,
        }
    }

    /// Adds a sample of these processes. `None` stands for processes that cannot be listed.
    pub(super) fn add(
        &mut self,
        now: Instant,
        family: Option<&[i32]>,
        reader: &mut dyn ProcessReader,
    ) {
        // The shell was stopped meanwhile, and perhaps the processes with it.
        let gap = now.saturating_duration_since(std::mem::replace(&mut self.sampled, now));
        self.last += gap.saturating_sub(self.most);
        let Some(family) = family else { return self.cannot_read(now) };
        let work = family.iter().filter_map(|&pid| Some((pid, reader.work(pid)?)));
        let work = work.collect::<BTreeMap<_, _>>();
        let is_read = |work: &ProcessWork| work.cpu.is_some() || work.bytes.is_some();
        if !work.is_empty() && !work.values().any(is_read) {
            return self.cannot_read(now);
        }
        let before = std::mem::replace(&mut self.work, work);
        let mut progresses = self.work.is_empty();
        match ran_between(&before, &self.work) {
            Some(ran) => {
                self.ran += ran;
                let time = now.saturating_duration_since(self.last).max(self.window);
                progresses |= self.ran > time / IDLE_PART;
            }
            None => progresses = true,
        }
        if !progresses {
            let sockets = reader.sockets(family);
            progresses = self.sockets.as_ref().is_some_and(|before| *before != sockets);
            self.sockets = Some(sockets);
        }
        if progresses {
            (self.last, self.ran) = (now, Duration::ZERO);
        }
    }

    fn cannot_read(&mut self, now: Instant) {
        (self.last, self.ran, self.is_unreadable) = (now, Duration::ZERO, true);
    }

    /// Returns true once after the processes could not be read.
    pub(super) fn take_unreadable(&mut self) -> bool {
        std::mem::take(&mut self.is_unreadable)
    }

    /// Returns the time at which the scope counts as stalled, unless progress is seen before.
    pub(super) fn stalls_at(&self, after: Duration) -> Option<Instant> {
        self.last.checked_add(after)
    }
}

/// Returns the processor time between two samples; `None` if processes appeared, ended or moved
/// bytes, which is progress.
fn ran_between(
    before: &BTreeMap<i32, ProcessWork>,
    now: &BTreeMap<i32, ProcessWork>,
) -> Option<Duration> {
    if !before.keys().eq(now.keys()) {
        return None;
    }
    let mut ran = Duration::ZERO;
    for (before, now) in before.values().zip(now.values()) {
        if before.bytes != now.bytes {
            return None;
        }
        match (before.cpu, now.cpu) {
            // A smaller time belongs to another process with the same id.
            (Some(before), Some(now)) => ran += now.checked_sub(before)?,
            (None, None) => {}
            (Some(_), None) | (None, Some(_)) => return None,
        }
    }
    Some(ran)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::reading::Fake;

    const SECOND: Duration = Duration::from_secs(1);

    impl Fake {
        fn set(&mut self, pid: i32, cpu: u64, bytes: u64) {
            let cpu = Some(Duration::from_micros(cpu));
            self.work.insert(pid, ProcessWork { cpu, bytes: Some(bytes) });
        }

        /// Adds a sample, and returns true if the scope makes progress.
        fn sample(&mut self, progress: &mut Progress, now: Instant) -> bool {
            let pids: Vec<i32> = self.work.keys().copied().collect();
            progress.add(now, Some(&pids), self);
            progress.last == now
        }
    }

    #[test]
    fn work_above_half_a_percent_is_progress() {
        let start = Instant::now();
        let (mut fake, mut progress) = (Fake::default(), Progress::new(start, 4 * SECOND));
        fake.set(7, 0, 0);
        assert!(fake.sample(&mut progress, start + SECOND), "a process appeared");
        fake.set(7, 5000, 0);
        assert!(!fake.sample(&mut progress, start + 2 * SECOND), "5 ms of 1 s is idle");
        fake.set(7, 10_001, 0);
        assert!(fake.sample(&mut progress, start + 3 * SECOND));
        fake.set(7, 10_001, 1);
        assert!(fake.sample(&mut progress, start + 4 * SECOND), "a byte");
        assert!(!fake.sample(&mut progress, start + 5 * SECOND));
        assert_eq!(progress.stalls_at(2 * SECOND), Some(start + 6 * SECOND));
        fake.work.clear();
        assert!(fake.sample(&mut progress, start + 6 * SECOND), "the process ended");
        assert!(fake.sample(&mut progress, start + 9 * SECOND), "there is no process");
    }

    #[test]
    fn polls_are_no_progress() {
        let start = Instant::now();
        let (mut fake, mut progress) = (Fake::default(), Progress::new(start, 2 * SECOND));
        fake.set(7, 0, 0);
        fake.sample(&mut progress, start);
        // A poll of 250 µs every 100 ms, one of which takes ten times as long.
        let found = (1..=8).any(|quarter: u32| {
            let slow = if quarter < 2 { 0 } else { 2250 };
            fake.set(7, 625 * u64::from(quarter) + slow, 0);
            fake.sample(&mut progress, start + quarter * SECOND / 4)
        });
        assert!(!found);
        let found = (9..=12).any(|quarter: u32| {
            fake.set(7, 7250 + 4000 * u64::from(quarter - 8), 0);
            fake.sample(&mut progress, start + quarter * SECOND / 4)
        });
        assert!(found, "work");
    }

    #[test]
    fn idle_times_of_processes_add_up() {
        let start = Instant::now();
        let (mut fake, mut progress) = (Fake::default(), Progress::new(start, 4 * SECOND));
        for pid in 1..=4 {
            fake.set(pid, 0, 0);
        }
        fake.sample(&mut progress, start + SECOND);
        for pid in 1..=4 {
            fake.set(pid, 1500, 0);
        }
        assert!(fake.sample(&mut progress, start + 2 * SECOND));
    }

    #[test]
    fn time_in_which_the_shell_was_stopped_is_no_stall() {
        let start = Instant::now();
        let (mut fake, mut progress) = (Fake::default(), Progress::new(start, 4 * SECOND));
        fake.set(7, 0, 0);
        fake.sample(&mut progress, start + SECOND);
        fake.sample(&mut progress, start + 1000 * SECOND);
        assert_eq!(progress.stalls_at(4 * SECOND), Some(start + 1002 * SECOND));
        for second in 1001..=1002 {
            fake.sample(&mut progress, start + second * SECOND);
        }
        assert_eq!(progress.stalls_at(4 * SECOND), Some(start + 1002 * SECOND));
    }

    #[test]
    fn bytes_over_the_network_are_progress() {
        let start = Instant::now();
        let (mut fake, mut progress) = (Fake::default(), Progress::new(start, 4 * SECOND));
        fake.set(7, 0, 0);
        fake.sample(&mut progress, start + SECOND);
        fake.sockets.insert(99, 5);
        assert!(!fake.sample(&mut progress, start + 2 * SECOND), "the first look at sockets");
        fake.sockets.insert(99, 6);
        assert!(fake.sample(&mut progress, start + 3 * SECOND));
        assert!(!fake.sample(&mut progress, start + 4 * SECOND));
    }

    #[test]
    fn unreadable_processes_count_as_progressing() {
        let start = Instant::now();
        let (mut fake, mut progress) = (Fake::default(), Progress::new(start, 4 * SECOND));
        fake.work.insert(7, ProcessWork::default());
        assert!(fake.sample(&mut progress, start + SECOND));
        assert!(fake.sample(&mut progress, start + 2 * SECOND));
        assert!(progress.take_unreadable() && !progress.take_unreadable());
        // Another process can be read, so the first one is left out.
        fake.set(8, 0, 0);
        fake.sample(&mut progress, start + 3 * SECOND);
        assert!(!fake.sample(&mut progress, start + 4 * SECOND));
        // A process that ended after it was listed is no unreadable process.
        fake.work.clear();
        progress.add(start + 5 * SECOND, Some(&[7, 8]), &mut fake);
        assert!(progress.last == start + 5 * SECOND && !progress.take_unreadable());
        progress.add(start + 5 * SECOND, None, &mut fake);
        assert_eq!(progress.last, start + 5 * SECOND);
    }
}
