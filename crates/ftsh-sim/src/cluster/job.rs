//! One branch that was sent: the head's side of it, the node's, and what is between.

use std::time::Duration;

use super::link::{Said, Told, Way};
use super::node::{Fault, Node};
use super::there::There;
use ftsh_machine::Time;
use ftsh_machine::effect::{Dispatch, IoId, ProcessId, ScopeId, TaskId};
use ftsh_machine::packed::PackedValue;
use ftsh_remote::Head;

/// Names of tables that the machine doesn't give.
const OWN: u64 = 0x5a << 56;

/// What the machine waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// What becomes of the branch.
    End,
    /// Only that nothing is left of it.
    Nothing,
    /// It knows that it is over, or is gone itself.
    Told,
}

/// A branch that was sent.
pub struct Job {
    pub process: ProcessId,
    pub task: TaskId,
    pub scope: ScopeId,
    /// Its word, for people.
    pub word: String,
    /// Where it prints.
    pub io: IoId,
    pub head: Head,
    pub awaited: Awaited,
    /// Its node, among all.
    pub node: usize,
    pub there: There,
    pub to_node: Way<Told>,
    pub to_head: Way<Said>,
    /// When the node dies with it.
    pub dies: Time,
    /// When the engine says that it is over, though nobody has told it.
    pub given_up: Time,
    pub fault: Option<Fault>,
    /// Whether nothing comes through any more, either way.
    pub is_severed: bool,
    /// What became of it on the node, if it has begun there.
    pub attempt: Option<usize>,
}

impl Job {
    /// One that is sent to a node now, of which the engine notices so late that it can't be reached.
    pub fn new(
        number: usize,
        dispatch: &Dispatch,
        head: Head,
        (index, node): (usize, &Node),
        mut there: There,
        fault: Option<Fault>,
        (now, notice): (Time, Duration),
    ) -> Self {
        if matches!(fault, Some(Fault::Swallows(_))) {
            there.die();
        }
        let swallowed = match fault {
            Some(Fault::Swallows(after)) => now + after,
            _ => Time::NEVER,
        };
        let noticed = node.death_noticed(now, notice).min(node.absence_noticed(now, notice));
        Self {
            process: dispatch.process,
            task: dispatch.task,
            scope: dispatch.scope,
            word: word(dispatch),
            io: IoId(OWN | number as u64),
            head,
            awaited: Awaited::End,
            node: index,
            there,
            to_node: Way::default(),
            to_head: Way::default(),
            dies: node.death_after(now),
            given_up: swallowed.min(noticed),
            fault,
            is_severed: false,
            attempt: None,
        }
    }

    /// When something is to be done for it.
    pub fn next_due(&self, node: &Node) -> Time {
        let there = if self.there.is_over() {
            Time::NEVER
        } else {
            self.there.next_due(node.clock).min(self.to_node.next()).min(self.dies)
        };
        let here = if self.awaited == Awaited::Told {
            Time::NEVER
        } else {
            self.to_head.next().min(self.head.next_timeout()).min(self.given_up)
        };
        there.min(here)
    }

    /// Nothing more comes through.
    pub fn sever(&mut self) {
        self.is_severed = true;
        self.to_head.lose();
    }

    /// The node is told something.
    pub fn tell(&mut self, now: Time, node: &Node, told: Told) {
        let is_unheard = self.fault == Some(Fault::Silent) && matches!(told, Told::Bytes(_));
        if !self.is_severed && !is_unheard {
            self.to_node.send(node.reached(now + node.latency), told);
        }
    }

    /// The head is told something.
    pub fn say(&mut self, now: Time, node: &Node, said: Said) {
        if !self.is_severed {
            self.to_head.send(node.reached(now + node.latency), said);
        }
    }

    /// Whether nobody needs to know of it any more.
    pub fn is_over(&self) -> bool {
        self.awaited == Awaited::Told && self.there.is_over()
    }

    /// It begins: what goes wrong with it later is known by now.
    pub fn begins(&mut self, now: Time, node: &Node, notice: Duration) {
        let fault = match self.fault {
            Some(Fault::Lies(after) | Fault::Breaks(after)) => now + after,
            _ => Time::NEVER,
        };
        // Only of its death is the engine certain.
        self.given_up = fault.min(node.death_noticed(now, notice));
    }
}

fn word(dispatch: &Dispatch) -> String {
    match &dispatch.branch.word {
        PackedValue::Text(text) => text.to_string(),
        PackedValue::Integer(number) => number.to_string(),
        other => format!("{other:?}"),
    }
}
