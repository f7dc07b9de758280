//! What a branch has printed and nobody has read yet: the last of it in memory, the rest in a file without a name.
//!
//! It is taken from the connection however long that lasts: what carries both of a node's streams may stop both
//! when one isn't read, and the node asks for time on the other.

use std::collections::VecDeque;
use std::io;

use ftsh_process::SpillingLog;
use ftsh_remote::Stream;

/// What is to be printed, in the order in which it came.
#[derive(Debug, Default)]
pub struct Backlog {
    log: SpillingLog,
    /// The place of what comes first.
    at: u64,
    /// On which stream how much of it was printed.
    runs: VecDeque<(Stream, u64)>,
}

impl Backlog {
    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Something was printed.
    pub fn push(&mut self, stream: Stream, bytes: &[u8]) {
        self.log.append(bytes);
        match self.runs.back_mut() {
            Some((last, length)) if *last == stream => *length += bytes.len() as u64,
            _ => self.runs.push_back((stream, bytes.len() as u64)),
        }
    }

    /// What comes first, all on one stream, up to this size. After an error nothing is there any more.
    pub fn pop(&mut self, most: usize) -> io::Result<Option<(Stream, Vec<u8>)>> {
        let Some((stream, length)) = self.runs.front_mut() else { return Ok(None) };
        let (stream, mut bytes) = (*stream, vec![0; most.min(*length as usize)]);
        let read = self.log.read(self.at, &mut bytes).inspect_err(|_| self.runs.clear())?;
        bytes.truncate(read);
        self.at += read as u64;
        self.log.forget_before(self.at);
        if let Some((_, length)) = self.runs.front_mut() {
            *length -= read as u64;
            if *length == 0 {
                self.runs.pop_front();
            }
        }
        Ok(Some((stream, bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_comes_out_as_it_went_in() {
        let mut backlog = Backlog::default();
        let pieces = [
            (Stream::Output, vec![b'a'; 10]),
            (Stream::Output, vec![b'b'; 1_000_000]),
            (Stream::Errors, vec![b'c'; 700_000]),
            (Stream::Output, vec![b'd'; 3]),
        ];
        for (stream, bytes) in &pieces {
            backlog.push(*stream, bytes);
        }
        let mut found: Vec<(Stream, Vec<u8>)> = Vec::new();
        while let Some((stream, bytes)) = backlog.pop(4096).expect("it is there") {
            assert!((1..=4096).contains(&bytes.len()));
            match found.last_mut() {
                Some((last, all)) if *last == stream => all.extend(bytes),
                _ => found.push((stream, bytes)),
            }
        }
        let [(_, a), (_, b), ..] = &pieces;
        assert!(found[0] == (Stream::Output, [a.clone(), b.clone()].concat()));
        assert!(found[1..] == pieces[2..]);
        assert!(backlog.is_empty());
    }
}
