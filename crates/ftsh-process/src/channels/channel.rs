//! One channel, from the point of view of one shell.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::clock::ChannelClock;
use super::file::{ChannelDirectory, ChannelFile, ChannelFileError};
use super::file_watch::FileWatch;
use super::idle_turn::{IdleTurn, MAX_COUNTED};
use super::locks::{ATTEMPTS, Bytes, PROBE, count, count_up_to, find, first, waiters};
use super::member::{ChannelWaiter, Decision, HeldPass};
use super::outer_passes::OuterPasses;
use super::wait::{Wait, WaitReason, Waited};
use ftsh_machine::channels::state::{ChannelVerdict, Inside};
use ftsh_machine::channels::stored::Stored;
use ftsh_machine::channels::{Admission, Claim, Moment, Passed, Rules};
use ftsh_machine::effect::{Entry, OperationId, PassId};

/// First interval between two checks by the next waiter: other shells may have been killed. The
/// intervals grow.
const FIRST_INTERVAL: Duration = Duration::from_millis(20);
/// Interval after the kernel has reported that another process closed the file.
const AFTER_CLOSE_INTERVAL: Duration = Duration::from_millis(1);
/// Longest interval.
const MAX_INTERVAL: Duration = Duration::from_secs(1);
/// Interval where the kernel does not report changes.
const UNWATCHED_INTERVAL: Duration = Duration::from_millis(20);
/// Time limit for updating the file at the end of a shell.
const FINISH_TIMEOUT: Duration = Duration::from_millis(50);

/// Channel in use.
pub(super) struct OpenChannel {
    name: Arc<str>,
    file: Arc<ChannelFile>,
    /// Text last read from the file, with its parsed form.
    known: Option<(Vec<u8>, Stored)>,
    /// Waiters in the order of their arrival.
    waiting: VecDeque<ChannelWaiter>,
    inside: HashMap<PassId, HeldPass>,
    /// Ended attempts that the file does not show yet.
    leaving: Vec<(HeldPass, Passed)>,
    /// Watch for changes while the first waiter belongs to this shell.
    watch: Option<Arc<FileWatch>>,
    look: Duration,
    /// Turn that earlier waiters of other shells leave unused.
    idle_turn: IdleTurn,
}

/// Result of advancing a channel.
#[derive(Default)]
pub(super) struct Advanced {
    pub answers: Vec<(Entry, Result<Admission, ChannelFileError>)>,
    pub queued: Vec<OperationId>,
    pub wait: Option<Wait>,
    pub note: Option<String>,
    pub spent: Option<Arc<FileWatch>>,
}

impl OpenChannel {
    /// Opens the file of a channel.
    pub(super) fn open(
        directory: &ChannelDirectory,
        name: &Arc<str>,
    ) -> Result<Self, ChannelFileError> {
        let file = Arc::new(ChannelFile::open(directory, name)?);
        Ok(Self {
            name: name.clone(),
            file,
            known: None,
            waiting: VecDeque::new(),
            inside: HashMap::new(),
            leaving: Vec::new(),
            watch: None,
            look: FIRST_INTERVAL,
            idle_turn: IdleTurn::default(),
        })
    }

    /// True if a shell around this one holds a pass.
    pub(super) fn is_inside(&self, outer_passes: &OuterPasses) -> bool {
        outer_passes.is_inside(&self.name, &self.file)
    }

    pub(super) fn number(&self, pass: PassId) -> Option<u64> {
        self.inside.get(&pass).map(|pass| pass.number)
    }

    /// Adds a waiter.
    pub(super) fn enter(&mut self, entry: Entry) {
        self.waiting.push_back(ChannelWaiter::new(entry));
    }

    /// Removes a waiter from the queue.
    pub(super) fn give_up(&mut self, operation: OperationId) {
        let at = self.waiting.iter().position(|waiter| waiter.entry.operation == operation);
        if let Some(waiter) = at.and_then(|at| self.waiting.remove(at)) {
            waiter.give_up(&self.file);
        }
    }

    /// Removes all waiters from the queue of all shells. They join its end at the next `advance`.
    pub(super) fn leave_queues(&mut self) {
        for waiter in &mut self.waiting {
            waiter.give_up(&self.file);
            waiter.drop_number();
        }
    }

    /// Records the end of an attempt.
    pub(super) fn leave(&mut self, pass: PassId, passed: Passed) {
        if let Some(pass) = self.inside.remove(&pass) {
            self.leaving.push((pass, passed));
        }
    }

    /// Advances the channel as far as possible without waiting.
    pub(super) fn advance(
        &mut self,
        directory: &ChannelDirectory,
        clock: &ChannelClock,
        waited: Option<Waited>,
    ) -> Advanced {
        let mut advanced = Advanced::default();
        match waited {
            Some(Waited::Happened { closed: true }) => self.look = AFTER_CLOSE_INTERVAL,
            Some(Waited::Nothing) => self.look = (self.look * 2).min(MAX_INTERVAL),
            Some(Waited::Happened { closed: false }) | None => {}
        }
        if let Err(reason) = self.try_advance(directory, clock, &mut advanced) {
            advanced.answers.extend(self.fail(reason));
        }
        if self.waiting.is_empty() {
            advanced.spent = self.watch.take();
        }
        advanced
    }

    fn try_advance(
        &mut self,
        directory: &ChannelDirectory,
        clock: &ChannelClock,
        advanced: &mut Advanced,
    ) -> Result<(), ChannelFileError> {
        if self.waiting.is_empty() && self.leaving.is_empty() {
            return Ok(());
        }
        let locked = loop {
            let locked = self.file.try_lock().map_err(|error| self.file.error_here(error))?;
            let Some(locked) = locked else {
                advanced.queued = self.newly_queued();
                advanced.wait = Some(self.wait(WaitReason::Busy, Duration::MAX));
                return Ok(());
            };
            if self.file.is_there() {
                break locked;
            }
            // The file was removed. Other shells that arrive now create another file.
            self.file = Arc::new(ChannelFile::open(directory, &self.name)?);
            (self.known, self.watch) = (None, None);
            self.waiting.iter_mut().for_each(ChannelWaiter::drop_number);
        };
        let now = clock.now();
        let result = self.change(clock, now, advanced);
        let reason = result.map_err(|error| self.file.error_here(error))?;
        let Some(reason) = reason else { return Ok(()) };
        let most = match reason {
            WaitReason::Change(until) => self.listen(until, now),
            WaitReason::Others(before) => {
                let count =
                    self.count_earlier(before).map_err(|error| self.file.error_here(error))?;
                self.idle_turn.next_check(count)
            }
            WaitReason::Busy => Duration::MAX,
        };
        drop(locked);
        advanced.queued = self.newly_queued();
        advanced.wait = Some(self.wait(reason, most));
        Ok(())
    }

    /// Performs all changes that are possible now, with the file locked. Returns the reason why the
    /// first waiter has to wait.
    fn change(
        &mut self,
        clock: &ChannelClock,
        now: Moment,
        advanced: &mut Advanced,
    ) -> io::Result<Option<WaitReason>> {
        let text = self.file.read()?;
        let (mut stored, before) = match self.known.take() {
            Some((known, stored)) if known == text => (stored.clone(), Some(stored)),
            _ => match Stored::read(&text, &clock.name, now) {
                Ok(stored) => (stored.clone(), Some(stored).filter(|_| !text.is_empty())),
                Err(damaged) => {
                    advanced.note = Some(self.file.set_aside(&text, damaged));
                    (Stored::new(now), None)
                }
            },
        };
        for (pass, passed) in std::mem::take(&mut self.leaving) {
            stored.state.leave(&pass.rules, passed, pass.probe, now);
            if Arc::ptr_eq(&pass.file, &self.file) {
                stored.inside = stored.inside.saturating_sub(1);
            }
            pass.release();
        }
        let mut answers = Vec::new();
        let decided = self.decide(&mut stored, now, &mut answers).and_then(|reason| {
            if before.as_ref() == Some(&stored) {
                return Ok((text, reason));
            }
            let text = stored.write(&clock.name);
            self.file.write(&text)?;
            Ok((text, reason))
        });
        match decided {
            Ok((text, reason)) => {
                self.known = Some((text, stored));
                let answers = answers.into_iter().map(|(entry, admission)| (entry, Ok(admission)));
                advanced.answers.extend(answers);
                Ok(reason)
            }
            Err(error) => {
                // A change that cannot be written down has not happened.
                for (entry, admission) in answers {
                    match self.inside.remove(&entry.pass) {
                        Some(pass) => {
                            pass.release();
                            self.waiting.push_back(ChannelWaiter::new(entry));
                        }
                        None => advanced.answers.push((entry, Ok(admission))),
                    }
                }
                Err(error)
            }
        }
    }

    /// Admits or refuses waiters in the order of their arrival, and gives numbers to the others.
    /// Returns the reason why the first of them has to wait.
    fn decide(
        &mut self,
        stored: &mut Stored,
        now: Moment,
        answers: &mut Vec<(Entry, Admission)>,
    ) -> io::Result<Option<WaitReason>> {
        let mut first = None;
        let mut at = 0;
        while let Some(mut waiter) = self.waiting.remove(at) {
            match self.fate(&mut waiter, stored, now, first.is_some()) {
                Ok(Decision::Waits(reason)) => {
                    self.waiting.insert(at, waiter);
                    at += 1;
                    if first.is_none() {
                        first = Some(reason);
                        at = self.numbered().max(at);
                    }
                }
                Ok(Decision::Refused(refusal)) => {
                    waiter.give_up(&self.file);
                    answers.push((waiter.entry, refusal));
                }
                Ok(Decision::Admitted(pass)) => {
                    waiter.give_up(&self.file);
                    self.inside.insert(waiter.entry.pass, pass);
                    answers.push((waiter.entry, Admission::Admitted));
                }
                Err(error) => {
                    self.waiting.insert(at, waiter);
                    return Err(error);
                }
            }
        }
        Ok(first)
    }

    /// Returns the length of the part of the queue in which waiters have numbers.
    fn numbered(&self) -> usize {
        self.waiting.iter().rposition(ChannelWaiter::has_number).map_or(0, |last| last + 1)
    }

    /// Decides about a waiter. If an earlier one waits, a waiter whose rules allow waiting waits
    /// too.
    fn fate(
        &mut self,
        waiter: &mut ChannelWaiter,
        stored: &mut Stored,
        now: Moment,
        is_held_up: bool,
    ) -> io::Result<Decision> {
        let (rules, claim) = (waiter.entry.rules.clone(), waiter.entry.claim);
        if rules.may_wait() {
            let is_behind = is_held_up || waiter.is_behind_others(&self.file, stored)?;
            if is_behind {
                let own = waiter.number(&self.file, stored)?;
                let before = waiters(stored.first.min(own)..own);
                if is_held_up || !self.may_pass(before, &rules, stored, now)? {
                    return Ok(Decision::Waits(WaitReason::Others(before)));
                }
                stored.first = own;
            }
            if !is_held_up {
                self.idle_turn.reset();
            }
        }
        if stored.rules != *rules {
            stored.rules = Rules::clone(&rules);
        }
        let verdict = self.verdict(&rules, claim, stored, now)?;
        let until = match verdict {
            ChannelVerdict::Refused(refusal) => return Ok(Decision::Refused(refusal)),
            ChannelVerdict::Admitted { probe } => {
                return Ok(Decision::Admitted(HeldPass::take(waiter, probe, &self.file, stored)?));
            }
            ChannelVerdict::Full => None,
            ChannelVerdict::NotBefore(moment) => Some(moment),
        };
        // A waiter that was passed over and continues has its turn again.
        stored.first = stored.first.min(waiter.number(&self.file, stored)?);
        Ok(Decision::Waits(WaitReason::Change(until)))
    }

    /// True if the waiters with the numbers `before` have left their turn unused for too long.
    fn may_pass(
        &mut self,
        before: Bytes,
        rules: &Rules,
        stored: &Stored,
        now: Moment,
    ) -> io::Result<bool> {
        // The rules and the claim of the head are unknown. Most likely, its rules are the stored ones; a
        // first attempt is refused least often, so it is most likely to have to wait.
        for rules in [rules, &stored.rules] {
            let verdict = self.verdict(rules, Claim::First, &mut stored.clone(), now)?;
            if matches!(verdict, ChannelVerdict::Full | ChannelVerdict::NotBefore(_)) {
                self.idle_turn.reset();
                return Ok(false);
            }
        }
        let Some(head) = first(self.file.as_fd(), before)? else { return Ok(true) };
        let count = self.count_earlier(before)?;
        Ok(self.idle_turn.is_over(head, count, Instant::now()))
    }

    /// Counts the waiters of other shells with these numbers, up to a maximum.
    fn count_earlier(&self, before: Bytes) -> io::Result<u64> {
        count_up_to(MAX_COUNTED, self.file.as_fd(), before)
    }

    /// Applies the rules to an attempt whose turn it is, and updates the state.
    fn verdict(
        &self,
        rules: &Rules,
        claim: Claim,
        stored: &mut Stored,
        now: Moment,
    ) -> io::Result<ChannelVerdict> {
        let may_be_open = rules.breaker.is_some_and(|it| it.failures <= stored.state.failures());
        let probing = may_be_open && self.is_probed()?;
        let mut inside = Inside { attempts: stored.inside, probing };
        let mut verdict = stored.state.admit(rules, claim, inside, now);
        if verdict == ChannelVerdict::Full {
            // Some of them may have been killed.
            stored.inside = self.inside.len() as u64 + count(self.file.as_fd(), ATTEMPTS)?;
            inside.attempts = stored.inside;
            verdict = stored.state.admit(rules, claim, inside, now);
        }
        Ok(verdict)
    }

    /// True if a probe of the open breaker holds a pass.
    fn is_probed(&self) -> io::Result<bool> {
        let is_ours = self.inside.values().any(|pass| pass.probe);
        Ok(is_ours || find(self.file.as_fd(), PROBE)?.is_some())
    }

    /// Watches the file for changes, for the first waiter. Returns the longest time to wait.
    fn listen(&mut self, until: Option<Moment>, now: Moment) -> Duration {
        match &self.watch {
            // The file was just read. Only the end of another process needs a further check, since
            // it changes nothing in the file.
            Some(watch) if watch.take().closed => self.look = AFTER_CLOSE_INTERVAL,
            Some(_) => {}
            None => {
                self.watch = FileWatch::of(self.file.path()).map(Arc::new);
                self.look = FIRST_INTERVAL;
            }
        }
        let look = if self.watch.is_some() { self.look } else { UNWATCHED_INTERVAL };
        until.map_or(look, |until| until.saturating_sub(now).min(look))
    }

    fn wait(&self, reason: WaitReason, most: Duration) -> Wait {
        Wait { reason, file: self.file.clone(), watch: self.watch.clone(), most }
    }

    /// Returns the waiters whose wait has not been reported yet.
    fn newly_queued(&mut self) -> Vec<OperationId> {
        let queue_reported = self
            .waiting
            .iter()
            .rposition(|waiter| waiter.queue_reported)
            .map_or(0, |last| last + 1);
        let new = self.waiting.iter_mut().skip(queue_reported).map(|waiter| {
            waiter.queue_reported = true;
            waiter.entry.operation
        });
        new.collect()
    }

    /// Fails all waiters for one reason.
    pub(super) fn fail(
        &mut self,
        reason: ChannelFileError,
    ) -> Vec<(Entry, Result<Admission, ChannelFileError>)> {
        for (pass, _) in self.leaving.drain(..) {
            pass.release();
        }
        let mut reason = Some(reason);
        let mut failed = Vec::new();
        for waiter in std::mem::take(&mut self.waiting) {
            waiter.give_up(&self.file);
            // The first waiter gets the full reason.
            let gone = || self.file.error_here(io::ErrorKind::Other.into());
            failed.push((waiter.entry, Err(reason.take().unwrap_or_else(gone))));
        }
        self.known = None;
        failed
    }

    /// Releases all locks, as the kernel does when the last descriptor is closed.
    #[cfg(test)]
    pub(super) fn lose_locks(&self) {
        super::locks::unlock(self.file.as_fd(), super::locks::ALL)
            .expect("locks can be given back");
    }

    /// Records the end of all attempts in the file, if possible within a short time.
    pub(super) fn finish(&mut self, directory: &ChannelDirectory, clock: &ChannelClock) {
        for waiter in std::mem::take(&mut self.waiting) {
            waiter.give_up(&self.file);
        }
        let left = self.inside.drain().map(|(_, pass)| (pass, Passed::Neither));
        self.leaving.extend(left);
        let begun = Instant::now();
        while !self.leaving.is_empty() && begun.elapsed() < FINISH_TIMEOUT {
            if self.advance(directory, clock, None).wait.is_some() {
                std::thread::sleep(AFTER_CLOSE_INTERVAL);
            }
        }
    }
}
