//! What is on its way between a head and a node.

use std::collections::VecDeque;

use ftsh_machine::Time;
use ftsh_remote::Stream;

/// One direction of a connection: what is sent comes later, in its order.
#[derive(Debug)]
pub struct Way<T> {
    under_way: VecDeque<(Time, T)>,
}

/// What comes from a node.
#[derive(Debug)]
pub enum Said {
    Bytes(Stream, Vec<u8>),
    /// The shell there has ended.
    End,
}

/// What comes from a head.
#[derive(Debug)]
pub enum Told {
    Bytes(Vec<u8>),
    /// Nothing more comes.
    End,
}

impl<T> Default for Way<T> {
    fn default() -> Self {
        Self { under_way: VecDeque::new() }
    }
}

impl<T> Way<T> {
    /// Something is sent that would be there at this moment.
    pub fn send(&mut self, arrives: Time, what: T) {
        let last = self.under_way.back().map_or(Time::START, |(at, _)| *at);
        self.under_way.push_back((arrives.max(last), what));
    }

    /// When the next thing is there.
    pub fn next(&self) -> Time {
        self.under_way.front().map_or(Time::NEVER, |(at, _)| *at)
    }

    /// What is there by now.
    pub fn take(&mut self, now: Time) -> Option<T> {
        if self.next() > now {
            return None;
        }
        self.under_way.pop_front().map(|(_, what)| what)
    }

    /// Nothing of it comes any more.
    pub fn lose(&mut self) {
        self.under_way.clear();
    }
}
