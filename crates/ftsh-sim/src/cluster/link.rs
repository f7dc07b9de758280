//! Messages between a head and a node.

use std::collections::VecDeque;

use ftsh_machine::Time;
use ftsh_machine::packed::BranchFiles;
use ftsh_remote::Stream;

/// Direction of a connection, which delays messages and keeps their order.
#[derive(Debug)]
pub(super) struct Link<T> {
    in_transit: VecDeque<(Time, T)>,
}

/// Message from a node.
#[derive(Clone, Debug)]
pub(super) enum FromNode {
    Bytes(Stream, Vec<u8>),
    /// The node's shell has ended.
    End,
}

/// Message from a head.
#[derive(Clone, Debug)]
pub(super) enum FromHead {
    Bytes(Vec<u8>),
    /// The head has closed the connection.
    End,
}

/// Model of the contents of a branch's files.
pub(super) const CONTENTS: &[u8] = b"contents of the files";

/// Returns the names of modelled files, which the modelled file system does not have.
pub(super) fn modelled_files() -> BranchFiles {
    BranchFiles { takes: vec!["taken".into()], gives: vec!["given".into()] }
}

impl<T> Default for Link<T> {
    fn default() -> Self {
        Self { in_transit: VecDeque::new() }
    }
}

impl<T> Link<T> {
    /// Sends a message that arrives at the given time, or after the last message.
    pub(super) fn send(&mut self, arrives: Time, message: T) {
        let last = self.in_transit.back().map_or(Time::START, |(at, _)| *at);
        self.in_transit.push_back((arrives.max(last), message));
    }

    /// Returns the arrival of the next message.
    pub(super) fn next(&self) -> Time {
        self.in_transit.front().map_or(Time::NEVER, |(at, _)| *at)
    }

    /// Removes the next message that has arrived.
    pub(super) fn take(&mut self, now: Time) -> Option<T> {
        if self.next() > now {
            return None;
        }
        self.in_transit.pop_front().map(|(_, message)| message)
    }

    /// Drops all messages.
    pub(super) fn clear(&mut self) {
        self.in_transit.clear();
    }
}
