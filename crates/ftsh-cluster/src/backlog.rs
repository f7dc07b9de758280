//! Output of a branch that is not yet printed: the newest part in memory, the rest in an unnamed
//! file.
//!
//! The driver reads the connection even while printing is slow. An engine may stop both streams of
//! a node if the driver does not read one stream. On the other stream, the node requests more time.

use std::collections::VecDeque;
use std::io;

use ftsh_process::SpillingLog;
use ftsh_remote::Stream;

/// Unprinted output, in the order of arrival.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    log: SpillingLog,
    /// Offset of the first unprinted byte in the log.
    at: u64,
    /// Runs of bytes on the same stream, each with its length.
    runs: VecDeque<(Stream, u64)>,
}

impl Backlog {
    /// True if no output is waiting.
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Appends output of the branch.
    pub(crate) fn push(&mut self, stream: Stream, bytes: &[u8]) {
        self.log.append(bytes);
        match self.runs.back_mut() {
            Some((last, length)) if *last == stream => *length += bytes.len() as u64,
            _ => self.runs.push_back((stream, bytes.len() as u64)),
        }
    }

    /// Removes the first bytes, all on one stream and at most `limit`. An error discards all
    /// output.
    pub(crate) fn pop(&mut self, limit: usize) -> io::Result<Option<(Stream, Vec<u8>)>> {
        let Some((stream, length)) = self.runs.front_mut() else { return Ok(None) };
        let (stream, mut bytes) = (*stream, vec![0; limit.min(*length as usize)]);
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
    fn output_keeps_order_and_stream() {
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
        while let Some((stream, bytes)) = backlog.pop(4096).expect("readable output") {
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
