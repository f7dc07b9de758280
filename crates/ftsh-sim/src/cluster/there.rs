//! Shell on a node: a model of `ftsh --branch`, with the node's own clock.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bstr::BString;

use super::clock::NodeClock;
use super::link::{CONTENTS, FromHead, FromNode, Link, modelled_files};
use super::local::{Here, Local};
use crate::{Due, Shell, World};
use ftsh_machine::control::{Controller, Order};
use ftsh_machine::packed::{BranchEnd, BranchFiles, EndedBranch};
use ftsh_machine::{Event, Machine, Output, Time};
use ftsh_remote::{
    Branch, BranchRecord, ERRORS_MARK, Frames, Go, Hello, Lease, MessageTooLong, NodeLine, Nonce,
    Stream, ToHead, ToNode, frame,
};

const SIGTERM: i32 = 15;
/// Delay of channel events, since attempts that enter a channel and fail at once must take time.
const CHANNEL_DELAY: Duration = Duration::from_millis(1);
/// Maximum number of steps at one moment before time passes.
const MAX_STEPS: usize = 1000;

/// Shell on a node.
pub(super) struct There {
    phase: BranchPhase,
    /// Nonce of this start.
    start: Nonce,
    /// Messages on their way from the head.
    pub inbox: Link<FromHead>,
    /// Decoder of the head's messages.
    frames: Frames<ToNode>,
    messages: Vec<FromNode>,
    /// True if the shell refuses each branch.
    refuses: bool,
    /// True once the branch has begun.
    pub has_begun: bool,
    /// Index of the attempt, once the branch has begun.
    pub attempt: Option<usize>,
    /// Result of the branch, once reported.
    pub ended: Option<EndedBranch>,
    /// Output of the branch.
    pub printed: [BString; 2],
}

enum BranchPhase {
    Greeting,
    /// The branch takes files, of which these bytes have arrived.
    Taking(Box<Branch>, Vec<u8>),
    Ready(Box<ReadyBranch>),
    Running(Box<StartedBranch>),
    Over,
}

/// Branch that can begin.
struct ReadyBranch {
    machine: Machine,
    kill_timeout: Duration,
    /// Time of packing, on the clock of the run.
    at: Duration,
    /// Time at which the node was ready, on the node's clock.
    ready: Duration,
    gives_files: bool,
}

/// Branch that runs.
struct StartedBranch {
    machine: Machine,
    shell: Shell,
    lease: Lease,
    nonce: Nonce,
    /// Start of the branch, on the clock of the run and on the node's clock.
    began: (Duration, Duration),
    future: BTreeMap<(Time, u64), Due>,
    /// Events for the machine, each with its time on the node's clock.
    events: VecDeque<(Duration, Event)>,
    /// Next timeout of the machine, on the clock of the run.
    until: Time,
    /// Number of consecutive turns without an idle moment.
    busy: u32,
    /// End of the rest after a busy turn, on the clock of the run.
    rests_until: Time,
    is_interrupted: bool,
    gives_files: bool,
}

/// Progress of a branch.
#[derive(PartialEq)]
enum BranchProgress {
    Running,
    Ended,
    /// All processes of the branch were killed.
    Killed,
}

impl There {
    /// Creates a shell that has just started. `refuses` makes the shell refuse its branch.
    pub(super) fn new(hello: Hello, start: Nonce, refuses: bool) -> Self {
        let mut this = Self {
            phase: BranchPhase::Greeting,
            start,
            inbox: Link::default(),
            frames: Frames::default(),
            messages: vec![FromNode::Bytes(Stream::Errors, ERRORS_MARK.into())],
            refuses,
            has_begun: false,
            attempt: None,
            ended: None,
            printed: Default::default(),
        };
        this.send(&ToHead::Hello(hello));
        this
    }

    /// Removes the messages to send.
    pub(super) fn take_messages(&mut self) -> Vec<FromNode> {
        std::mem::take(&mut self.messages)
    }

    fn is_running(&self) -> bool {
        matches!(self.phase, BranchPhase::Running(_))
    }

    /// True once the shell has ended.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.phase, BranchPhase::Over)
    }

    /// Returns the time of the next work.
    pub(super) fn next_due(&self, clock: NodeClock) -> Time {
        let it = match &self.phase {
            BranchPhase::Running(it) => it,
            BranchPhase::Greeting | BranchPhase::Taking(..) | BranchPhase::Ready(_) => {
                return self.inbox.next();
            }
            BranchPhase::Over => return Time::NEVER,
        };
        let own = it.future.first_key_value().map_or(it.until, |(key, _)| key.0.min(it.until));
        let shown = |at: Time| at.elapsed().saturating_sub(it.began.0).saturating_add(it.began.1);
        let next_event = it.events.front().map_or(Duration::MAX, |(at, _)| *at);
        let due = shown(own).min(next_event).max(shown(it.rests_until));
        clock.moment(due.min(it.lease.next_timeout())).min(self.inbox.next())
    }

    /// Handles an event of a channel at a time of the node's clock.
    pub(super) fn on_channel_event(&mut self, shown: Duration, event: Event) {
        if let BranchPhase::Running(it) = &mut self.phase {
            it.events.push_back((shown.saturating_add(CHANNEL_DELAY), event));
        }
    }

    /// Handles bytes from the head.
    pub(super) fn on_bytes<W: World>(&mut self, bytes: &[u8], here: &mut Here<W>) {
        if let BranchPhase::Running(it) = &mut self.phase {
            it.lease.on_bytes(here.shown(), bytes);
            return self.advance(here);
        }
        self.frames.push(bytes);
        while !self.is_over() && !self.is_running() {
            if let BranchPhase::Taking(_, contents) = &mut self.phase {
                contents.extend(std::mem::take(&mut self.frames).into_rest());
                if contents.len() < CONTENTS.len() {
                    return;
                }
                let phase = std::mem::replace(&mut self.phase, BranchPhase::Over);
                let BranchPhase::Taking(branch, contents) = phase else { return };
                if contents != CONTENTS {
                    return self.end();
                }
                self.make_ready(*branch, here);
            }
            match self.frames.message() {
                Ok(None) => return,
                Ok(Some(message)) => self.on_message(message, here),
                Err(_) => self.end(),
            }
        }
    }

    /// Handles the end of the head's messages.
    pub(super) fn on_close<W: World>(&mut self, here: &mut Here<W>) {
        match &mut self.phase {
            BranchPhase::Running(it) => {
                it.lease.on_closed();
                self.advance(here);
            }
            BranchPhase::Greeting | BranchPhase::Taking(..) | BranchPhase::Ready(_) => self.end(),
            BranchPhase::Over => {}
        }
    }

    /// Ends the shell with its node, without a message.
    pub(super) fn die(&mut self) {
        self.phase = BranchPhase::Over;
        self.messages.clear();
    }

    /// Handles a message before the branch begins.
    fn on_message<W: World>(&mut self, message: ToNode, here: &mut Here<W>) {
        match (message, std::mem::replace(&mut self.phase, BranchPhase::Over)) {
            (ToNode::Branch(branch), BranchPhase::Greeting)
                if !branch.packed.files.takes.is_empty() =>
            {
                self.send(&ToHead::Wants(vec![0]));
                self.phase = BranchPhase::Taking(branch, Vec::new());
            }
            (ToNode::Branch(branch), BranchPhase::Greeting) => self.make_ready(*branch, here),
            (ToNode::Go(go), BranchPhase::Ready(prepared)) if go.start == self.start => {
                self.begin(&go, *prepared, here);
            }
            _ => self.end(),
        }
    }

    fn make_ready<W: World>(&mut self, branch: Branch, here: &mut Here<W>) {
        match self.prepare(branch, here.shown()) {
            Ok(prepared) => {
                self.phase = BranchPhase::Ready(Box::new(prepared));
                self.send(&ToHead::Ready(self.start));
            }
            Err(why) => {
                self.send(&ToHead::Refused(why));
                self.end();
            }
        }
    }

    fn prepare(&self, mut branch: Branch, ready: Duration) -> Result<ReadyBranch, String> {
        if self.refuses {
            return Err("its disk is full".into());
        }
        let (at, kill_timeout) = (branch.packed.at, branch.packed.config.kill_timeout);
        let gives_files = !branch.packed.files.gives.is_empty();
        if branch.packed.files == modelled_files() {
            branch.packed.files = BranchFiles::default();
        }
        let machine = Machine::of_branch(branch.packed, at).map_err(|error| error.to_string())?;
        Ok(ReadyBranch { machine, kill_timeout, at: at.elapsed(), ready, gives_files })
    }

    fn begin<W: World>(&mut self, go: &Go, prepared: ReadyBranch, here: &mut Here<W>) {
        let ReadyBranch { machine, kill_timeout, at, ready, gives_files } = prepared;
        let lease = Lease::new(go, std::mem::take(&mut self.frames), kill_timeout, ready);
        let shown = here.shown();
        if lease.has_passed(shown) {
            self.messages
                .push(FromNode::Bytes(Stream::Errors, NodeLine::TooLate.encode(&go.nonce).into()));
            return self.end();
        }
        self.has_begun = true;
        self.phase = BranchPhase::Running(Box::new(StartedBranch {
            machine,
            shell: Shell::default(),
            lease,
            nonce: go.nonce,
            began: (at + go.waited, shown),
            future: BTreeMap::new(),
            events: VecDeque::new(),
            until: Time::after(at + go.waited),
            busy: 0,
            rests_until: Time::START,
            is_interrupted: false,
            gives_files,
        }));
        self.advance(here);
    }

    /// Handles all due work.
    pub(super) fn advance<W: World>(&mut self, here: &mut Here<W>) {
        let BranchPhase::Running(it) = &mut self.phase else { return };
        it.shell.swap_files(here.files);
        let progress = it.apply_orders(here.shown(), &mut self.messages);
        let progress = if progress == BranchProgress::Running { it.work(here) } else { progress };
        it.shell.swap_files(here.files);
        let streams = [Stream::Output, Stream::Errors].into_iter().zip(&mut self.printed);
        for ((stream, all), bytes) in streams.zip(it.shell.take_printed()) {
            if !bytes.is_empty() && progress != BranchProgress::Killed {
                all.extend_from_slice(&bytes);
                self.messages.push(FromNode::Bytes(stream, bytes.into()));
            }
        }
        if progress == BranchProgress::Ended
            && let Some(ended) = it.machine.branch_ended_with()
        {
            let elapsed = here.shown().saturating_sub(it.began.1);
            let (node, began) = (here.node.into(), it.began.1);
            let record =
                BranchRecord { ended: ended.clone(), node, began, elapsed, no_gifts: None };
            let end = NodeLine::OutputEnded.encode(&it.nonce);
            self.messages.push(FromNode::Bytes(Stream::Output, end.into()));
            if it.gives_files && ended.end == BranchEnd::Succeeded {
                let halves = CONTENTS.chunks(CONTENTS.len() / 2 + 1);
                self.messages.extend(halves.map(|it| FromNode::Bytes(Stream::Output, it.to_vec())));
            }
            let record = NodeLine::Record(Box::new(record)).encode(&it.nonce);
            self.messages.push(FromNode::Bytes(Stream::Errors, record.into()));
            self.ended = Some(ended);
        }
        if progress != BranchProgress::Running {
            self.end();
        }
    }

    fn send(&mut self, message: &ToHead) {
        match frame(message) {
            Ok(bytes) => self.messages.push(FromNode::Bytes(Stream::Output, bytes)),
            Err(MessageTooLong) => self.end(),
        }
    }

    fn end(&mut self) {
        self.phase = BranchPhase::Over;
        self.messages.push(FromNode::End);
    }
}

impl StartedBranch {
    /// Converts a time of the node's clock to the clock of the run.
    fn now(&self, shown: Duration) -> Time {
        Time::after(self.began.0.saturating_add(shown.saturating_sub(self.began.1)))
    }

    /// Applies the orders of the lease.
    fn apply_orders(&mut self, shown: Duration, messages: &mut Vec<FromNode>) -> BranchProgress {
        self.lease.handle_timeout(shown);
        while let Some(order) = self.lease.next_order() {
            let signal = match order {
                Order::Say(text) => {
                    messages.push(FromNode::Bytes(Stream::Errors, text.into()));
                    continue;
                }
                Order::Kill => return BranchProgress::Killed,
                Order::Finish if self.is_interrupted => continue,
                Order::Finish => SIGTERM,
                Order::Interrupt(signal) => signal,
            };
            self.is_interrupted = true;
            self.events.push_front((shown, Event::Interrupted(signal)));
        }
        BranchProgress::Running
    }

    /// Runs the machine until the machine waits.
    fn work<W: World>(&mut self, here: &mut Here<W>) -> BranchProgress {
        let now = self.now(here.shown());
        if now < self.rests_until {
            return BranchProgress::Running;
        }
        let (mut is_time_passed, mut is_spent) = (false, true);
        for _ in 0..MAX_STEPS {
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
                Output::Finished(_) => return BranchProgress::Ended,
                Output::Timeout(until) => {
                    let shown = here.shown();
                    let next_event = || {
                        let is_there = self.events.front().is_some_and(|(at, _)| *at <= shown);
                        if is_there {
                            self.events.pop_front().map(|(_, event)| event)
                        } else {
                            None
                        }
                    };
                    if let Some(event) = self.shell.poll_event().or_else(next_event) {
                        self.machine.handle_event(now, event);
                    } else if until <= now && !is_time_passed {
                        is_time_passed = true;
                        self.machine.handle_timeout(now);
                    } else {
                        self.until = until;
                        is_spent = false;
                        break;
                    }
                }
            }
        }
        // Computation takes time, as do attempts that fail at once and follow each other without a
        // pause.
        if is_spent || self.until <= now {
            self.busy += 1;
            self.rests_until = now + Duration::from_millis(1 << (4 * self.busy).min(16));
            self.until = self.rests_until;
        } else {
            self.busy = 0;
        }
        BranchProgress::Running
    }
}
