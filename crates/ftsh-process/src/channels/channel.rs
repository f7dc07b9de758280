//! One channel, from the point of view of one shell.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::around::Around;
use super::clock::Clock;
use super::directory::Directory;
use super::error::Unusable;
use super::file::ChannelFile;
use super::idle_turn::{self, IdleTurn};
use super::locks::{self, ATTEMPTS, PROBE};
use super::member::{Fate, Pass, Waiter};
use super::wait::{Reason, Wait, Waited};
use super::watch::Watch;
use ftsh_machine::channels::{
    Admission, ChannelVerdict, Claim, Inside, Moment, Passed, Rules, Stored,
};
use ftsh_machine::effect::{Entry, OperationId, PassId};

/// First interval between two checks by the next waiter: other shells may have been killed. The
/// intervals grow.
const FIRST_LOOK: Duration = Duration::from_millis(20);
/// Interval after the kernel has reported that another process closed the file.
const SOON: Duration = Duration::from_millis(1);
/// Longest interval.
const RARELY: Duration = Duration::from_secs(1);
/// Interval where the kernel does not report changes.
const OFTEN: Duration = Duration::from_millis(20);
/// Time limit for updating the file at the end of a shell.
const LAST_WORDS: Duration = Duration::from_millis(50);

/// Channel in use.
pub struct Channel {
    name: Arc<str>,
    file: Arc<ChannelFile>,
    /// Text last read from the file, with its parsed form.
    known: Option<(Vec<u8>, Stored)>,
    /// Waiters in the order of their arrival.
    waiting: VecDeque<Waiter>,
    inside: HashMap<PassId, Pass>,
    /// Ended attempts that the file does not show yet.
    leaving: Vec<(Pass, Passed)>,
    /// Watch for changes while the first waiter belongs to this shell.
    watch: Option<Arc<Watch>>,
    look: Duration,
    /// Turn that earlier waiters of other shells leave unused.
    idle_turn: IdleTurn,
}

/// Result of advancing a channel.
#[derive(Default)]
pub struct Advanced {
    pub answers: Vec<(Entry, Result<Admission, Unusable>)>,
    pub queued: Vec<OperationId>,
    pub wait: Option<Wait>,
    pub note: Option<String>,
    pub spent: Option<Arc<Watch>>,
}

impl Channel {
    /// Opens the file of a channel.
    pub fn open(directory: &Directory, name: &Arc<str>) -> Result<Self, Unusable> {
        let file = Arc::new(ChannelFile::open(directory, name)?);
        Ok(Self {
            name: name.clone(),
            file,
            known: None,
            waiting: VecDeque::new(),
            inside: HashMap::new(),
            leaving: Vec::new(),
            watch: None,
            look: FIRST_LOOK,
            idle_turn: IdleTurn::default(),
        })
    }

    /// True if a shell around this one holds a pass.
    pub fn is_inside(&self, around: &Around) -> bool {
        around.is_inside(&self.name, &self.file)
    }

    /// Returns the number of a pass.
    pub fn number(&self, pass: PassId) -> Option<u64> {
        self.inside.get(&pass).map(|pass| pass.number)
    }

    /// Adds a waiter.
    pub fn enter(&mut self, entry: Entry) {
        self.waiting.push_back(Waiter::new(entry));
    }

    /// Removes a waiter from the queue.
    pub fn give_up(&mut self, operation: OperationId) {
        let at = self.waiting.iter().position(|waiter| waiter.entry.operation == operation);
        if let Some(waiter) = at.and_then(|at| self.waiting.remove(at)) {
            waiter.give_up(&self.file);
        }
    }

    /// Removes all waiters from the queue of all shells. They join its end at the next `advance`.
    pub fn step_aside(&mut self) {
        for waiter in &mut self.waiting {
            waiter.give_up(&self.file);
            waiter.begin_anew();
        }
    }

    /// Records the end of an attempt.
    pub fn leave(&mut self, pass: PassId, passed: Passed) {
        if let Some(pass) = self.inside.remove(&pass) {
            self.leaving.push((pass, passed));
        }
    }

    /// Advances the channel as far as possible without waiting.
    pub fn advance(
        &mut self,
        directory: &Directory,
        clock: &Clock,
        waited: Option<Waited>,
    ) -> Advanced {
        let mut advanced = Advanced::default();
        match waited {
            Some(Waited::Happened { closed: true }) => self.look = SOON,
            Some(Waited::Nothing) => self.look = (self.look * 2).min(RARELY),
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
        directory: &Directory,
        clock: &Clock,
        advanced: &mut Advanced,
    ) -> Result<(), Unusable> {
        if self.waiting.is_empty() && self.leaving.is_empty() {
            return Ok(());
        }
        let locked = loop {
            let locked = self.file.try_lock().map_err(|error| self.file.trouble(error))?;
            let Some(locked) = locked else {
                advanced.queued = self.newly_queued();
                advanced.wait = Some(self.wait(Reason::Busy, Duration::MAX));
                return Ok(());
            };
            if self.file.is_there() {
                break locked;
            }
            // The file was removed. Other shells that arrive now create another file.
            self.file = Arc::new(ChannelFile::open(directory, &self.name)?);
            (self.known, self.watch) = (None, None);
            self.waiting.iter_mut().for_each(Waiter::begin_anew);
        };
        let now = clock.now();
        let result = self.change(clock, now, advanced);
        let reason = result.map_err(|error| self.file.trouble(error))?;
        let Some(reason) = reason else { return Ok(()) };
        let most = match reason {
            Reason::Change(until) => self.listen(until, now),
            Reason::Others(before) => {
                let count = self.count_earlier(before).map_err(|error| self.file.trouble(error))?;
                self.idle_turn.next_check(count)
            }
            Reason::Busy => Duration::MAX,
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
        clock: &Clock,
        now: Moment,
        advanced: &mut Advanced,
    ) -> io::Result<Option<Reason>> {
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
                            self.waiting.push_back(Waiter::new(entry));
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
    ) -> io::Result<Option<Reason>> {
        let mut first = None;
        let mut at = 0;
        while let Some(mut waiter) = self.waiting.remove(at) {
            match self.fate(&mut waiter, stored, now, first.is_some()) {
                Ok(Fate::Waits(reason)) => {
                    self.waiting.insert(at, waiter);
                    at += 1;
                    if first.is_none() {
                        first = Some(reason);
                        at = self.numbered().max(at);
                    }
                }
                Ok(Fate::Refused(refusal)) => {
                    waiter.give_up(&self.file);
                    answers.push((waiter.entry, refusal));
                }
                Ok(Fate::Admitted(pass)) => {
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
        self.waiting.iter().rposition(Waiter::has_number).map_or(0, |last| last + 1)
    }

    /// Decides about a waiter. If an earlier one waits, a waiter whose rules allow waiting waits
    /// too.
    fn fate(
        &mut self,
        waiter: &mut Waiter,
        stored: &mut Stored,
        now: Moment,
        is_held_up: bool,
    ) -> io::Result<Fate> {
        let (rules, claim) = (waiter.entry.rules.clone(), waiter.entry.claim);
        if rules.may_wait() {
            let is_behind = is_held_up || waiter.is_behind_others(&self.file, stored)?;
            if is_behind {
                let own = waiter.number(&self.file, stored)?;
                let before = locks::waiters(stored.first.min(own)..own);
                if is_held_up || !self.may_pass(before, &rules, stored, now)? {
                    return Ok(Fate::Waits(Reason::Others(before)));
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
            ChannelVerdict::Refused(refusal) => return Ok(Fate::Refused(refusal)),
            ChannelVerdict::Admitted { probe } => {
                return Ok(Fate::Admitted(Pass::take(waiter, probe, &self.file, stored)?));
            }
            ChannelVerdict::Full => None,
            ChannelVerdict::NotBefore(moment) => Some(moment),
        };
        // A waiter that was passed over and continues has its turn again.
        stored.first = stored.first.min(waiter.number(&self.file, stored)?);
        Ok(Fate::Waits(Reason::Change(until)))
    }

    /// True if the waiters with the numbers `before` have left their turn unused for too long.
    fn may_pass(
        &mut self,
        before: locks::Bytes,
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
        let Some(head) = locks::first(self.file.as_fd(), before)? else { return Ok(true) };
        let count = self.count_earlier(before)?;
        Ok(self.idle_turn.is_over(head, count, Instant::now()))
    }

    /// Counts the waiters of other shells with these numbers, up to a maximum.
    fn count_earlier(&self, before: locks::Bytes) -> io::Result<u64> {
        locks::count_up_to(idle_turn::MAX_COUNTED, self.file.as_fd(), before)
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
            stored.inside = self.inside.len() as u64 + locks::count(self.file.as_fd(), ATTEMPTS)?;
            inside.attempts = stored.inside;
            verdict = stored.state.admit(rules, claim, inside, now);
        }
        Ok(verdict)
    }

    /// True if a probe of the open breaker holds a pass.
    fn is_probed(&self) -> io::Result<bool> {
        let is_ours = self.inside.values().any(|pass| pass.probe);
        Ok(is_ours || locks::find(self.file.as_fd(), PROBE)?.is_some())
    }

    /// Watches the file for changes, for the first waiter. Returns the longest time to wait.
    fn listen(&mut self, until: Option<Moment>, now: Moment) -> Duration {
        match &self.watch {
            // The file was just read. Only the end of another process needs a further check, since
            // it changes nothing in the file.
            Some(watch) if watch.take().closed => self.look = SOON,
            Some(_) => {}
            None => {
                self.watch = Watch::of(self.file.path()).map(Arc::new);
                self.look = FIRST_LOOK;
            }
        }
        let look = if self.watch.is_some() { self.look } else { OFTEN };
        until.map_or(look, |until| until.saturating_sub(now).min(look))
    }

    fn wait(&self, reason: Reason, most: Duration) -> Wait {
        Wait { reason, file: self.file.clone(), watch: self.watch.clone(), most }
    }

    /// Returns the waiters whose wait has not been reported yet.
    fn newly_queued(&mut self) -> Vec<OperationId> {
        let told = self.waiting.iter().rposition(|waiter| waiter.told).map_or(0, |last| last + 1);
        let new = self.waiting.iter_mut().skip(told).map(|waiter| {
            waiter.told = true;
            waiter.entry.operation
        });
        new.collect()
    }

    /// Fails all waiters for one reason.
    pub fn fail(&mut self, reason: Unusable) -> Vec<(Entry, Result<Admission, Unusable>)> {
        for (pass, _) in self.leaving.drain(..) {
            pass.release();
        }
        let mut reason = Some(reason);
        let mut failed = Vec::new();
        for waiter in std::mem::take(&mut self.waiting) {
            waiter.give_up(&self.file);
            // The first waiter gets the full reason.
            let gone = || self.file.trouble(io::ErrorKind::Other.into());
            failed.push((waiter.entry, Err(reason.take().unwrap_or_else(gone))));
        }
        self.known = None;
        failed
    }

    /// Releases all locks, as the kernel does when the last descriptor is closed.
    #[cfg(test)]
    pub fn lose_locks(&self) {
        locks::unlock(self.file.as_fd(), locks::ALL).expect("locks can be given back");
    }

    /// Records the end of all attempts in the file, if possible within a short time.
    pub fn finish(&mut self, directory: &Directory, clock: &Clock) {
        for waiter in std::mem::take(&mut self.waiting) {
            waiter.give_up(&self.file);
        }
        let left = self.inside.drain().map(|(_, pass)| (pass, Passed::Neither));
        self.leaving.extend(left);
        let begun = Instant::now();
        while !self.leaving.is_empty() && begun.elapsed() < LAST_WORDS {
            if self.advance(directory, clock, None).wait.is_some() {
                std::thread::sleep(SOON);
            }
        }
    }
}
