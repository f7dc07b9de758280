//! State of a dispatched branch: the head's side, the node's side, and the connection.

use std::time::Duration;

use super::link::{FromHead, FromNode, Link};
use super::node::{Fault, SimulatedNode};
use super::there::There;
use ftsh_machine::Time;
use ftsh_machine::effect::{Dispatch, IoId, ProcessId, ScopeId, TaskId};
use ftsh_machine::packed::PackedValue;
use ftsh_remote::Head;

/// First id of descriptor tables, outside of the machine's ids.
const FIRST_TABLE: u64 = 0x5a << 56;

/// Event that the machine waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExpectedEvent {
    /// Result of the branch.
    End,
    /// Only the end of the branch.
    Nothing,
    /// None: the result was delivered, or the machine is dead.
    Delivered,
}

/// Dispatched branch.
pub(super) struct SimulatedJob {
    pub process: ProcessId,
    pub task: TaskId,
    pub scope: ScopeId,
    /// Word of the branch, for people.
    pub word: String,
    /// Descriptors that the output goes to.
    pub io: IoId,
    pub head: Head,
    pub awaited: ExpectedEvent,
    /// Index of the node.
    pub node: usize,
    pub there: There,
    pub to_node: Link<FromHead>,
    pub to_head: Link<FromNode>,
    /// Time at which the node dies with the branch.
    pub dies: Time,
    /// Time at which the engine reports the end of the branch without a report of the node.
    pub given_up: Time,
    pub fault: Option<Fault>,
    /// True once the connection carries no bytes in either direction.
    pub is_severed: bool,
    /// Index of the attempt, once the branch has begun on the node.
    pub attempt: Option<usize>,
}

impl SimulatedJob {
    /// Creates the job of a branch that is sent now. The engine detects an unreachable node after
    /// `notice`.
    pub(super) fn new(
        number: usize,
        dispatch: &Dispatch,
        head: Head,
        (index, node): (usize, &SimulatedNode),
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
            io: IoId(FIRST_TABLE | number as u64),
            head,
            awaited: ExpectedEvent::End,
            node: index,
            there,
            to_node: Link::default(),
            to_head: Link::default(),
            dies: node.death_after(now),
            given_up: swallowed.min(noticed),
            fault,
            is_severed: false,
            attempt: None,
        }
    }

    /// Returns the time of the next work.
    pub(super) fn next_due(&self, node: &SimulatedNode) -> Time {
        let there = if self.there.is_over() {
            Time::NEVER
        } else {
            self.there.next_due(node.clock).min(self.to_node.next()).min(self.dies)
        };
        let here = if self.awaited == ExpectedEvent::Delivered {
            Time::NEVER
        } else {
            self.to_head.next().min(self.head.next_timeout()).min(self.given_up)
        };
        there.min(here)
    }

    /// Breaks the connection, and drops the bytes on their way to the head.
    pub(super) fn sever(&mut self) {
        self.is_severed = true;
        self.to_head.clear();
    }

    /// Sends a message to the node.
    pub(super) fn send_to_node(&mut self, now: Time, node: &SimulatedNode, message: FromHead) {
        let is_dropped = self.fault == Some(Fault::Silent) && matches!(message, FromHead::Bytes(_));
        if !self.is_severed && !is_dropped {
            self.to_node.send(node.reached(now + node.latency), message);
        }
    }

    /// Sends a message to the head.
    pub(super) fn send_to_head(&mut self, now: Time, node: &SimulatedNode, message: FromNode) {
        if !self.is_severed {
            self.to_head.send(node.reached(now + node.latency), message);
        }
    }

    /// True once neither head nor node needs the job.
    pub(super) fn is_over(&self) -> bool {
        self.awaited == ExpectedEvent::Delivered && self.there.is_over()
    }

    /// Plans the faults of a branch that begins.
    pub(super) fn begins(&mut self, now: Time, node: &SimulatedNode, notice: Duration) {
        let fault = match self.fault {
            Some(Fault::Lies(after) | Fault::Breaks(after)) => now + after,
            _ => Time::NEVER,
        };
        // Of the faults, the engine detects only the death of the node.
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
