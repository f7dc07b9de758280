//! State of a dispatched branch: the head's side, the node's side, and the connection.

use std::time::Duration;

use super::link::{CONTENTS, FromHead, FromNode, Link};
use super::node::{Fault, SimulatedNode};
use super::there::There;
use ftsh_machine::Time;
use ftsh_machine::effect::{Dispatch, IoId, ProcessId, ScopeId, TaskId};
use ftsh_machine::event::Blame;
use ftsh_machine::packed::PackedValue;
use ftsh_remote::{Head, Stream, TransferProgress};

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
    /// Shells of the job: mostly one.
    pub starts: Vec<There>,
    pub to_head: Link<FromNode>,
    /// Repeated messages to the head.
    pub copies: Link<FromNode>,
    /// Time of the submission.
    pub sent: Time,
    /// Time at which the node dies with the branch.
    pub dies: Time,
    /// Time at which the engine reports the end of the branch without a report of the node.
    pub given_up: Time,
    pub fault: Option<Fault>,
    /// Bytes of the files that the branch gives, while they arrive.
    pub gifts: Option<Vec<u8>>,
    /// True once the connection carries no bytes in either direction.
    pub is_severed: bool,
}

impl SimulatedJob {
    /// Creates the job of a branch that is sent now. The engine detects an unreachable node after
    /// `notice`.
    pub(super) fn new(
        number: usize,
        dispatch: &Dispatch,
        head: Head,
        (index, node): (usize, &SimulatedNode),
        mut starts: Vec<There>,
        fault: Option<Fault>,
        (now, notice): (Time, Duration),
    ) -> Self {
        if matches!(fault, Some(Fault::Swallows(_))) {
            starts.iter_mut().for_each(There::die);
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
            starts,
            to_head: Link::default(),
            copies: Link::default(),
            sent: now,
            dies: node.death_after(now),
            given_up: swallowed.min(noticed),
            fault,
            gifts: None,
            is_severed: false,
        }
    }

    /// Passes a message of the node to the head, or to the files that arrive.
    pub(super) fn receive(&mut self, now: Time, message: FromNode) {
        match (message, &mut self.gifts) {
            (FromNode::Bytes(Stream::Output, bytes), Some(gifts)) => {
                let is_new = gifts.len() < CONTENTS.len();
                gifts.extend(bytes);
                if is_new && gifts.len() >= CONTENTS.len() {
                    let is_whole = gifts.starts_with(CONTENTS);
                    let progress =
                        if is_whole { TransferProgress::Arrived } else { TransferProgress::Cut };
                    self.head.on_progress(now, progress);
                }
            }
            (FromNode::Bytes(Stream::Output, bytes), None) => self.head.on_stdout(now, &bytes),
            (FromNode::Bytes(Stream::Errors, bytes), _) => self.head.on_stderr(now, &bytes),
            (FromNode::End, gifts) => {
                if gifts.as_ref().is_some_and(|gifts| gifts.len() < CONTENTS.len()) {
                    self.head.on_progress(now, TransferProgress::Cut);
                }
                self.head.closed("", Blame::Node);
            }
        }
    }

    /// Returns the time of the next work.
    pub(super) fn next_due(&self, node: &SimulatedNode) -> Time {
        let alive = self.starts.iter().filter(|start| !start.is_over());
        let there = alive.map(|start| start.next_due(node.clock).min(self.dies)).min();
        let here = if self.awaited == ExpectedEvent::Delivered {
            Time::NEVER
        } else {
            let messages = self.to_head.next().min(self.copies.next());
            messages.min(self.head.next_timeout()).min(self.given_up)
        };
        there.unwrap_or(Time::NEVER).min(here)
    }

    /// Breaks the connection, and drops the bytes on their way to the head.
    pub(super) fn sever(&mut self) {
        self.is_severed = true;
        self.to_head.clear();
        self.copies.clear();
    }

    /// Sends a message to the node.
    pub(super) fn send_to_node(&mut self, now: Time, node: &SimulatedNode, mut message: FromHead) {
        if self.is_severed {
            return;
        }
        let mut later = Duration::ZERO;
        match (self.fault, &mut message) {
            (Some(Fault::Deaf(after)), FromHead::Bytes(_)) if now >= self.sent + after => return,
            (Some(Fault::Steals(after)), FromHead::Bytes(bytes)) if now >= self.sent + after => {
                bytes.remove(0);
                self.fault = None;
            }
            (Some(Fault::StartsTwice(by)), _) => later = by,
            _ => {}
        }
        for (start, later) in self.starts.iter_mut().zip([Duration::ZERO, later]) {
            start.inbox.send(node.reached(now + node.latency + later), message.clone());
        }
    }

    /// Sends a message to the head.
    pub(super) fn send_to_head(&mut self, now: Time, node: &SimulatedNode, message: FromNode) {
        if self.is_severed {
            return;
        }
        let message = match (self.fault, message) {
            (Some(Fault::Drops(dropped, after)), FromNode::Bytes(stream, _))
                if stream == dropped && now >= self.sent + after =>
            {
                return;
            }
            (Some(Fault::Joins(stream)), FromNode::Bytes(_, bytes)) => {
                FromNode::Bytes(stream, bytes)
            }
            (_, message) => message,
        };
        let arrives = now + node.latency;
        if let Some(Fault::Repeats(after)) = self.fault {
            self.copies.send(node.reached(arrives + after), message.clone());
        }
        self.to_head.send(node.reached(arrives), message);
    }

    /// True once neither head nor node needs the job.
    pub(super) fn is_over(&self) -> bool {
        self.awaited == ExpectedEvent::Delivered && self.starts.iter().all(There::is_over)
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
