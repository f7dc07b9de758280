//! Both sides of a conversation in virtual time. The connection is slow, interrupted or broken, the
//! clocks differ, and the processes are stopped at times.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Duration;

use proptest::prelude::*;

use super::{identity, line, nonce, record};
use crate::{
    Branch, Frames, Head, HeadOutput, Hello, Lease, NodeLine, StoreId, Stream, ToHead, ToNode,
    frame,
};
use ftsh_machine::control::{Controller, Order};
use ftsh_machine::event::{Blame, Reply, Returned};
use ftsh_machine::packed::PackedBranch;
use ftsh_machine::{Config, Effect, Event, Machine, Output as Polled, Time};
use ftsh_syntax::parse;

/// True time, in nanoseconds.
type Moment = u64;

const SECOND: Moment = 1_000_000_000;

pub(super) fn branch() -> Branch {
    static PACKED: OnceLock<PackedBranch> = OnceLock::new();
    let pack = || {
        let script = parse("script", "forall x in a; end").expect("a script");
        let mut machine = Machine::new(&script, Vec::new(), Vec::new(), Config::default(), 1);
        machine.pack_branches();
        let done = |operation, reply| Event::Done { operation, result: Ok(reply) };
        // Branches are packed at their start.
        loop {
            match machine.poll_output() {
                Polled::Effect(Effect::Query { operation, .. }) => {
                    machine.handle_event(Time::START, done(operation, Reply::Text("/".into())));
                }
                Polled::Effect(Effect::Open { operation, .. }) => {
                    machine.handle_event(Time::START, done(operation, Reply::Truth(true)));
                }
                Polled::Effect(_) => {}
                Polled::Timeout(due) if due == Time::START => {}
                Polled::Timeout(_) | Polled::Finished(_) => break,
            }
        }
        machine.take_packed().swap_remove(0).1.expect("a branch")
    };
    let packed = PACKED.get_or_init(pack).clone();
    Branch {
        identity: identity(b"program"),
        packed,
        child_env: Vec::new(),
        store: StoreId::default(),
    }
}

/// Clock with an earlier start and a drift in units of 1/10000.
#[derive(Clone, Copy, Debug)]
struct Clock {
    offset: u64,
    drift: i64,
}

impl Clock {
    fn rate(self) -> u128 {
        u128::try_from(10_000 + self.drift).expect("it goes on")
    }

    fn at(self, moment: Moment) -> Duration {
        let elapsed = u128::from(moment) * self.rate() / 10_000;
        Duration::from_nanos(self.offset + u64::try_from(elapsed).expect("not as long"))
    }

    /// Returns the first moment at which the clock shows a time.
    fn moment(self, says: Duration) -> Moment {
        let elapsed = says.as_nanos().saturating_sub(self.offset.into());
        let moment = elapsed.saturating_mul(10_000).div_ceil(self.rate());
        Moment::try_from(moment).unwrap_or(Moment::MAX)
    }
}

/// Start and end of an interval.
type Window = (Moment, Moment);

#[derive(Clone, Debug)]
struct Circumstances {
    lease: Duration,
    grace: Duration,
    head: Clock,
    node: Clock,
    /// Delays of consecutive messages, to the node and from the node.
    delays: [Vec<Moment>; 2],
    /// Numbers of bytes that arrive together.
    pieces: Vec<usize>,
    /// Intervals without delivery; messages arrive afterwards.
    partitions: Vec<Window>,
    /// Moments of a permanent cut, to the node and from the node.
    cuts: [Option<Moment>; 2],
    /// True if each side detects its cut.
    tells: [bool; 2],
    /// Intervals in which a side is stopped.
    head_sleeps: Vec<Window>,
    node_sleeps: Vec<Window>,
    /// Duration of the branch, and the time from a request to its end.
    takes: Moment,
    dies_in: Moment,
    /// Moment at which the head ends the branch.
    ends: Option<Moment>,
}

#[derive(Debug)]
enum News {
    /// Bytes to the node; empty at the end.
    ToNode(Vec<u8>),
    Output(Vec<u8>),
    Errors(Vec<u8>),
    /// Both output streams of the node are closed.
    Closed,
    /// The branch ends.
    Dies,
    /// The head ends the branch.
    End,
}

#[derive(Debug)]
enum Node {
    /// The node waits for the branch and for *go*.
    Waits(Frames<ToNode>),
    Runs(Box<Lease>),
    Dead,
}

struct World {
    is: Circumstances,
    now: Moment,
    queue: BTreeMap<(Moment, usize), News>,
    sent: usize,
    /// Last arrival in each direction: to the node, and from the node.
    last: [Moment; 2],
    head: Head,
    node: Node,
    asked: Duration,
    /// True once the branch has begun on the node.
    has_begun: bool,
    printed: Vec<u8>,
    returned: Option<(Moment, Returned)>,
}

fn awake(windows: &[Window], mut moment: Moment) -> Moment {
    let mut again = true;
    while again {
        again = false;
        for (from, until) in windows {
            if (*from..*until).contains(&moment) {
                (moment, again) = (*until, true);
            }
        }
    }
    moment
}

impl World {
    fn new(is: Circumstances) -> Self {
        let now = Time::after(is.head.at(0));
        let mut sent = branch();
        sent.packed.config.kill_timeout = is.grace;
        let head = Head::new(sent, nonce(), is.lease, now);
        let mut world = Self {
            head,
            is,
            now: 0,
            queue: BTreeMap::new(),
            sent: 0,
            last: [0; 2],
            node: Node::Waits(Frames::default()),
            asked: Duration::ZERO,
            has_begun: false,
            printed: Vec::new(),
            returned: None,
        };
        let node = "n".to_owned();
        let hello = ToHead::Hello(Hello { identity: branch().identity, node });
        world.node_says(&frame(&hello).expect("short"), News::Output);
        let [to_node, to_head] = world.is.cuts;
        if let Some(moment) = to_node.filter(|_| world.is.tells[0]) {
            world.schedule(moment, News::ToNode(Vec::new()));
        }
        if let Some(moment) = to_head.filter(|_| world.is.tells[1]) {
            world.schedule(moment, News::Closed);
        }
        if let Some(moment) = world.is.ends {
            world.schedule(moment, News::End);
        }
        world
    }

    fn schedule(&mut self, moment: Moment, news: News) {
        self.sent += 1;
        self.queue.insert((moment, self.sent), news);
    }

    /// Returns the arrival of a message that is sent now; none after a cut.
    fn arrival(&mut self, direction: usize) -> Option<Moment> {
        let delays = &self.is.delays[direction];
        let delay = delays[self.sent % delays.len()];
        let arrives = awake(&self.is.partitions, self.now + delay).max(self.last[direction]);
        self.last[direction] = arrives;
        let is_cut = self.is.cuts[direction].is_some_and(|cut| arrives >= cut);
        (!is_cut).then_some(arrives)
    }

    fn node_says(&mut self, bytes: &[u8], news: fn(Vec<u8>) -> News) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let length = self.is.pieces[self.sent % self.is.pieces.len()].clamp(1, rest.len());
            let (piece, later) = rest.split_at(length);
            rest = later;
            self.sent += 1;
            if let Some(arrives) = self.arrival(1) {
                self.schedule(arrives, news(piece.to_vec()));
            }
        }
    }

    fn head_says(&mut self, bytes: Vec<u8>) {
        if let Some(arrives) = self.arrival(0) {
            self.schedule(arrives, News::ToNode(bytes));
        }
    }

    fn head_timer(&self) -> Moment {
        match self.head.next_timeout() {
            Time::NEVER => Moment::MAX,
            time => awake(&self.is.head_sleeps, self.is.head.moment(time.elapsed()).max(self.now)),
        }
    }

    fn node_timer(&self) -> Moment {
        match &self.node {
            Node::Runs(lease) => {
                let moment = self.is.node.moment(lease.next_timeout());
                awake(&self.is.node_sleeps, moment.max(self.now))
            }
            Node::Waits(_) | Node::Dead => Moment::MAX,
        }
    }

    /// Runs until no event is left.
    fn run(&mut self) {
        loop {
            let queued = self.queue.first_key_value().map_or(Moment::MAX, |((at, _), _)| *at);
            let (head, node) = (self.head_timer(), self.node_timer());
            let next = queued.min(head).min(node);
            if next == Moment::MAX {
                return;
            }
            self.now = next;
            // Arrived messages come before timeouts.
            if queued == next {
                self.deliver();
            } else if node == next {
                self.node_acts();
            } else {
                self.head.handle_timeout(Time::after(self.is.head.at(next)));
                self.head_acts();
            }
        }
    }

    fn deliver(&mut self) {
        let Some(((_, number), news)) = self.queue.pop_first() else { return };
        let is_node = matches!(news, News::ToNode(_) | News::Dies);
        let sleeps = if is_node { &self.is.node_sleeps } else { &self.is.head_sleeps };
        let moment = awake(sleeps, self.now);
        if moment > self.now {
            self.queue.insert((moment, number), news);
            return;
        }
        let now = Time::after(self.is.head.at(self.now));
        match news {
            News::ToNode(bytes) => self.node_receives(&bytes),
            News::Dies => self.die(true),
            News::Output(bytes) => self.head.on_stdout(now, &bytes),
            News::Errors(bytes) => self.head.on_stderr(now, &bytes),
            News::Closed => self.head.closed("", Blame::Engine),
            News::End => self.head.end(15),
        }
        if !is_node {
            self.head_acts();
        }
    }

    fn head_acts(&mut self) {
        while let Some(output) = self.head.poll_output() {
            match output {
                HeadOutput::Write(bytes) => self.head_says(bytes),
                HeadOutput::Placed(_) | HeadOutput::Recorded => {}
                HeadOutput::Printed(Stream::Output, _) => panic!("nothing is printed there"),
                HeadOutput::Offer(_)
                | HeadOutput::Send(_)
                | HeadOutput::Receive(_)
                | HeadOutput::Place => panic!("the branch has no files"),
                HeadOutput::Printed(Stream::Errors, bytes) => self.printed.extend(bytes),
                HeadOutput::Returned(returned) => {
                    assert!(self.returned.is_none(), "twice");
                    self.check(&returned);
                    self.returned = Some((self.now, returned));
                    self.head_says(Vec::new());
                }
            }
        }
    }

    /// Checks that no branch runs after the head has reported its end.
    fn check(&self, returned: &Returned) {
        let Node::Runs(lease) = &self.node else { return };
        let begins_anew = !matches!(returned, Returned::Ended { .. });
        assert!(begins_anew, "it lives, and was said to have ended");
        // A stopped node does nothing, and its lease is over when the node continues.
        let wakes = awake(&self.is.node_sleeps, self.now);
        let is_over = self.is.node.at(wakes) >= lease.last_moment();
        assert!(wakes > self.now && is_over, "it lives: {returned:?}");
    }

    fn node_receives(&mut self, bytes: &[u8]) {
        let now = self.is.node.at(self.now);
        match &mut self.node {
            Node::Dead => {}
            Node::Waits(_) if bytes.is_empty() => self.node = Node::Dead,
            Node::Waits(frames) => {
                frames.push(bytes);
                while let Node::Waits(frames) = &mut self.node {
                    match frames.message().expect("whole") {
                        None => return,
                        Some(ToNode::Branch(_)) => {
                            self.asked = now;
                            let ready = frame(&ToHead::Ready(nonce())).expect("short");
                            self.node_says(&ready, News::Output);
                        }
                        Some(ToNode::Go(go)) => {
                            let returned = self.returned.as_ref().map(|(_, returned)| returned);
                            let not_begun = matches!(returned, Some(Returned::NotBegun { .. }));
                            assert!(!not_begun, "it begins, and was said not to have");
                            let frames = std::mem::take(frames);
                            let lease = Lease::new(&go, frames, self.is.grace, self.asked);
                            if lease.has_passed(now) {
                                self.node = Node::Dead;
                                return;
                            }
                            self.has_begun = true;
                            self.node = Node::Runs(Box::new(lease));
                            self.schedule(self.now.saturating_add(self.is.takes), News::Dies);
                            self.node_acts();
                        }
                        Some(message) => panic!("{message:?}"),
                    }
                }
            }
            Node::Runs(lease) => {
                if bytes.is_empty() {
                    lease.on_closed();
                } else {
                    lease.on_bytes(now, bytes);
                }
                self.node_acts();
            }
        }
    }

    fn node_acts(&mut self) {
        let now = self.is.node.at(self.now);
        let Node::Runs(lease) = &mut self.node else { return };
        lease.handle_timeout(now);
        let orders: Vec<_> = std::iter::from_fn(|| lease.next_order()).collect();
        for order in orders {
            match order {
                Order::Say(line) => self.node_says(line.as_bytes(), News::Errors),
                Order::Interrupt(_) | Order::Finish => {
                    self.schedule(self.now.saturating_add(self.is.dies_in), News::Dies);
                }
                Order::Kill => self.die(false),
            }
        }
    }

    fn die(&mut self, tells: bool) {
        if !matches!(std::mem::replace(&mut self.node, Node::Dead), Node::Runs(_)) {
            return;
        }
        if tells {
            self.node_says(NodeLine::OutputEnded.encode(&nonce()).as_bytes(), News::Output);
            self.node_says(line(record("end")).as_bytes(), News::Errors);
        }
        if let Some(arrives) = self.arrival(1) {
            self.schedule(arrives, News::Closed);
        }
    }
}

fn clock() -> impl Strategy<Value = Clock> {
    // Largest drift of a clock under correction.
    (0..1_000_000 * SECOND, -833_i64..=833).prop_map(|(offset, drift)| Clock { offset, drift })
}

fn windows() -> impl Strategy<Value = Vec<Window>> {
    let window = (0..200 * SECOND, 0..150 * SECOND);
    proptest::collection::vec(window.prop_map(|(from, length)| (from, from + length)), 0..3)
}

fn delays() -> impl Strategy<Value = Vec<Moment>> {
    let delay = prop_oneof![4 => 0..SECOND / 10, 1 => 0..60 * SECOND];
    proptest::collection::vec(delay, 1..9)
}

/// Generates a short duration, or a duration longer than all others.
fn length(most: Moment) -> impl Strategy<Value = Moment> {
    prop_oneof![0..most, Just(10_000 * SECOND)]
}

prop_compose! {
    fn circumstances()(
        lease in 1_u64..60,
        grace in 0_u64..30,
        (head, node) in (clock(), clock()),
        delays in [delays(), delays()],
        pieces in proptest::collection::vec(1_usize..200, 1..5),
        partitions in windows(),
        cuts in proptest::array::uniform2(proptest::option::of(0..200 * SECOND)),
        tells in any::<[bool; 2]>(),
        (head_sleeps, node_sleeps) in (windows(), windows()),
        (takes, dies_in) in (length(400 * SECOND), length(SECOND)),
        ends in proptest::option::of(0..300 * SECOND),
    ) -> Circumstances {
        let (lease, grace) = (Duration::from_secs(lease), Duration::from_secs(grace));
        Circumstances {
            lease, grace, head, node, delays, pieces, partitions, cuts, tells,
            head_sleeps, node_sleeps, takes, dies_in, ends,
        }
    }
}

/// Generates a usable connection.
fn good() -> impl Strategy<Value = Circumstances> {
    let delays = || proptest::collection::vec(0..SECOND / 4, 1..9);
    (circumstances(), [delays(), delays()], 0..100 * SECOND).prop_map(|(is, delays, leases)| {
        Circumstances {
            lease: is.lease.max(Duration::from_secs(2)),
            takes: leases * is.lease.as_secs(),
            delays,
            partitions: Vec::new(),
            cuts: [None; 2],
            head_sleeps: Vec::new(),
            node_sleeps: Vec::new(),
            ends: None,
            ..is
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// The world has all assertions: no branch is alive after its end, and no rejected branch
    /// begins.
    #[test]
    fn no_branch_lives_that_is_taken_for_gone(is in circumstances()) {
        let mut world = World::new(is.clone());
        world.run();
        let never_answers = world.returned.is_none();
        // A node that never answered may still wait in a queue.
        prop_assert!(!never_answers || !world.has_begun, "{:?}", is);
        prop_assert!(!never_answers || world.head.next_timeout() == Time::NEVER);
    }
}

proptest! {
    #[test]
    fn a_branch_with_a_good_connection_ends_by_itself(is in good()) {
        let mut world = World::new(is.clone());
        world.run();
        let Some((at, Returned::Ended { ended, .. })) = &world.returned else {
            return Err(TestCaseError::fail(format!("{:?}", world.returned)));
        };
        prop_assert_eq!(&**ended, &record("end").ended);
        prop_assert!(*at >= is.takes);
        prop_assert_eq!(world.printed, Vec::<u8>::new());
    }
}
