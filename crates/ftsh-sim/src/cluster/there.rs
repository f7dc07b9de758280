//! The shell on a node: what `ftsh --branch` does, in a modelled world and on the node's own clock.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bstr::BString;

use super::clock::Clock;
use super::link::Said;
use super::local::{Here, Local};
use crate::{Due, Shell, World};
use ftsh_machine::control::{Order, Overseer};
use ftsh_machine::packed::EndedBranch;
use ftsh_machine::record::Level;
use ftsh_machine::secrets::Secrets;
use ftsh_machine::{Event, Machine, Output, Time};
use ftsh_remote::{
    Branch, Frames, Go, Hello, Lease, Nonce, Record, Stream, ToHead, ToNode, frame, too_late,
};

const SIGTERM: i32 = 15;
/// What channels say takes its way: attempts that begin through one and fail at once take time.
const WORD: Duration = Duration::from_millis(1);
/// So much may happen at one moment before time passes.
const MOST_AT_ONCE: usize = 1000;

/// A shell on a node, as far as it has come.
pub struct There {
    phase: Phase,
    /// What has come of the head's and isn't read.
    frames: Frames<ToNode>,
    said: Vec<Said>,
    /// Whether it takes no branch.
    refuses: bool,
    /// Whether the branch has begun.
    pub has_begun: bool,
    /// How the branch has ended, if it has told that.
    pub ended: Option<EndedBranch>,
    /// What it has printed.
    pub printed: [BString; 2],
}

enum Phase {
    Greeting,
    Ready(Box<Prepared>),
    Running(Box<Running>),
    Over,
}

/// A branch that can begin.
struct Prepared {
    machine: Machine,
    kill_timeout: Duration,
    /// When it was packed, on the clock of its run.
    at: Duration,
    /// When it was ready, by the node's clock.
    ready: Duration,
}

/// A branch in progress.
struct Running {
    machine: Machine,
    shell: Shell,
    lease: Lease,
    nonce: Nonce,
    /// What the clock of the run and that of the node showed when it began.
    began: (Duration, Duration),
    future: BTreeMap<(Time, u64), Due>,
    /// What it is told, and when, by the node's clock.
    told: VecDeque<(Duration, Event)>,
    /// When the machine wants to hear of the time, on the clock of the run.
    until: Time,
    /// How often it was busy all the time, one time after the other.
    busy: u32,
    /// Until when it does nothing, on the clock of the run: it was busy all the time.
    rests_until: Time,
    is_interrupted: bool,
}

/// How far a branch has come.
#[derive(PartialEq)]
enum Came {
    On,
    ToItsEnd,
    /// All of it was killed.
    Killed,
}

impl There {
    /// A shell that has been started on a node, and may refuse what it gets there.
    pub fn new(hello: Hello, refuses: bool) -> Self {
        let (phase, frames) = (Phase::Greeting, Frames::default());
        let (said, ended, printed) = (Vec::new(), None, Default::default());
        let has_begun = false;
        let mut this = Self { phase, frames, said, refuses, has_begun, ended, printed };
        this.say(&ToHead::Hello(hello));
        this
    }

    /// What it has said since this was asked last.
    pub fn take_said(&mut self) -> Vec<Said> {
        std::mem::take(&mut self.said)
    }

    fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running(_))
    }

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over)
    }

    /// When something is to be done.
    pub fn next_due(&self, clock: Clock) -> Time {
        let Phase::Running(it) = &self.phase else { return Time::NEVER };
        let own = it.future.first_key_value().map_or(it.until, |(key, _)| key.0.min(it.until));
        let shown = |at: Time| at.elapsed().saturating_sub(it.began.0).saturating_add(it.began.1);
        let told = it.told.front().map_or(Duration::MAX, |(at, _)| *at);
        let due = shown(own).min(told).max(shown(it.rests_until));
        clock.moment(due.min(it.lease.next_timeout()))
    }

    /// A channel says something, at this moment of the node's clock.
    pub fn told(&mut self, shown: Duration, event: Event) {
        if let Phase::Running(it) = &mut self.phase {
            it.told.push_back((shown.saturating_add(WORD), event));
        }
    }

    /// These bytes have come from the head.
    pub fn hear<W: World>(&mut self, bytes: &[u8], here: &mut Here<W>) {
        if let Phase::Running(it) = &mut self.phase {
            it.lease.hear(here.shown(), bytes);
            return self.go_on(here);
        }
        self.frames.push(bytes);
        while !self.is_over() && !self.is_running() {
            match self.frames.message() {
                Ok(None) => return,
                Ok(Some(message)) => self.answer(message, here),
                Err(_) => self.end(),
            }
        }
    }

    /// Nothing more comes from the head.
    pub fn left<W: World>(&mut self, here: &mut Here<W>) {
        match &mut self.phase {
            Phase::Running(it) => {
                it.lease.left();
                self.go_on(here);
            }
            Phase::Greeting | Phase::Ready(_) => self.end(),
            Phase::Over => {}
        }
    }

    /// The node dies, and says nothing more.
    pub fn die(&mut self) {
        self.phase = Phase::Over;
        self.said.clear();
    }

    /// Before the branch begins.
    fn answer<W: World>(&mut self, message: ToNode, here: &mut Here<W>) {
        match (message, std::mem::replace(&mut self.phase, Phase::Over)) {
            (ToNode::Branch(branch), Phase::Greeting) => {
                match self.prepare(*branch, here.shown()) {
                    Ok(prepared) => {
                        self.phase = Phase::Ready(Box::new(prepared));
                        self.say(&ToHead::Ready);
                    }
                    Err(why) => {
                        self.say(&ToHead::Refused(why));
                        self.end();
                    }
                }
            }
            (ToNode::Go(go), Phase::Ready(prepared)) => self.begin(&go, *prepared, here),
            _ => self.end(),
        }
    }

    fn prepare(&self, branch: Branch, ready: Duration) -> Result<Prepared, String> {
        if self.refuses {
            return Err("its disk is full".into());
        }
        let (at, kill_timeout) = (branch.packed.at, branch.packed.settings.kill_timeout);
        let (level, secrets) = (Level::NOTHING, Secrets::default());
        let machine = Machine::of_branch(branch.packed, level, secrets, Time::after(at))
            .map_err(|error| error.to_string())?;
        Ok(Prepared { machine, kill_timeout, at, ready })
    }

    fn begin<W: World>(&mut self, go: &Go, prepared: Prepared, here: &mut Here<W>) {
        let Prepared { machine, kill_timeout, at, ready } = prepared;
        let lease = Lease::new(go, std::mem::take(&mut self.frames), kill_timeout, ready);
        let shown = here.shown();
        if lease.has_passed(shown) {
            self.said.push(Said::Bytes(Stream::Errors, too_late(&go.nonce).into()));
            return self.end();
        }
        self.has_begun = true;
        self.phase = Phase::Running(Box::new(Running {
            machine,
            shell: Shell::default(),
            lease,
            nonce: go.nonce,
            began: (at + go.waited, shown),
            future: BTreeMap::new(),
            told: VecDeque::new(),
            until: Time::after(at + go.waited),
            busy: 0,
            rests_until: Time::START,
            is_interrupted: false,
        }));
        self.go_on(here);
    }

    /// Does what is to be done by now.
    pub fn go_on<W: World>(&mut self, here: &mut Here<W>) {
        let Phase::Running(it) = &mut self.phase else { return };
        it.shell.swap_files(here.files);
        let came = it.obey(here.shown(), &mut self.said);
        let came = if came == Came::On { it.work(here) } else { came };
        it.shell.swap_files(here.files);
        let streams = [Stream::Output, Stream::Errors].into_iter().zip(&mut self.printed);
        for ((stream, all), bytes) in streams.zip(it.shell.take_printed()) {
            if !bytes.is_empty() && came != Came::Killed {
                all.extend_from_slice(&bytes);
                self.said.push(Said::Bytes(stream, bytes.into()));
            }
        }
        if came == Came::ToItsEnd
            && let Some(ended) = it.machine.branch_ended_with()
        {
            let elapsed = here.shown().saturating_sub(it.began.1);
            let (node, began) = (here.node.into(), it.began.1);
            let record = Record { ended: ended.clone(), node, began, elapsed };
            self.said.push(Said::Bytes(Stream::Errors, record.to_line(&it.nonce).into()));
            self.ended = Some(ended);
        }
        if came != Came::On {
            self.end();
        }
    }

    fn say(&mut self, message: &ToHead) {
        self.said.push(Said::Bytes(Stream::Output, frame(message).unwrap_or_default()));
    }

    fn end(&mut self) {
        self.phase = Phase::Over;
        self.said.push(Said::End);
    }
}

impl Running {
    /// The clock of the run.
    fn now(&self, shown: Duration) -> Time {
        Time::after(self.began.0.saturating_add(shown.saturating_sub(self.began.1)))
    }

    /// Does what the head says, or what follows if it says nothing.
    fn obey(&mut self, shown: Duration, said: &mut Vec<Said>) -> Came {
        self.lease.handle_timeout(shown);
        while let Some(order) = self.lease.next_order() {
            let signal = match order {
                Order::Say(text) => {
                    said.push(Said::Bytes(Stream::Errors, text.into()));
                    continue;
                }
                Order::Kill => return Came::Killed,
                Order::Finish if self.is_interrupted => continue,
                Order::Finish => SIGTERM,
                Order::Interrupt(signal) => signal,
            };
            self.is_interrupted = true;
            self.told.push_front((shown, Event::Interrupted(signal)));
        }
        Came::On
    }

    /// Lets the machine do all that it does now.
    fn work<W: World>(&mut self, here: &mut Here<W>) -> Came {
        let now = self.now(here.shown());
        if now < self.rests_until {
            return Came::On;
        }
        let (mut is_told, mut is_spent) = (false, true);
        for _ in 0..MOST_AT_ONCE {
            while let Some(due) = self.future.first_entry().filter(|due| due.key().0 <= now) {
                let due = due.remove();
                let mut local = Local { here, now, future: &mut self.future };
                self.shell.handle(due, &mut local);
            }
            match self.machine.poll_output() {
                Output::Effect(effect) => {
                    let mut local = Local { here, now, future: &mut self.future };
                    self.shell.perform(effect, &mut local);
                }
                Output::Finished(_) => return Came::ToItsEnd,
                Output::Timeout(until) => {
                    let shown = here.shown();
                    let told = || {
                        let is_there = self.told.front().is_some_and(|(at, _)| *at <= shown);
                        if is_there { self.told.pop_front().map(|(_, event)| event) } else { None }
                    };
                    if let Some(event) = self.shell.poll_event().or_else(told) {
                        self.machine.handle_event(now, event);
                    } else if until <= now && !is_told {
                        is_told = true;
                        self.machine.handle_timeout(now);
                    } else {
                        self.until = until;
                        is_spent = false;
                        break;
                    }
                }
            }
        }
        // Computing takes its time, as do attempts that fail at once and follow each other without a pause.
        if is_spent || self.until <= now {
            self.busy += 1;
            self.rests_until = now + Duration::from_millis(1 << (4 * self.busy).min(16));
            self.until = self.rests_until;
        } else {
            self.busy = 0;
        }
        Came::On
    }
}
