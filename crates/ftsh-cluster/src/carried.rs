//! State of one branch's job, as a carrier reports the job on descriptor 3.

use std::time::Duration;

use super::engines::Notice;
use ftsh_machine::Time;
use ftsh_process::NotedJob;

/// Time after a submission at which the log says what is waited for, and a list must show the job.
/// A carrier may report a job as queued before the queue has the job.
const SILENCE: Duration = Duration::from_secs(60);
/// Maximum length of a line.
const MAX_LINE: usize = 4096;

/// Job of a branch that a carrier runs.
#[derive(Debug)]
pub(super) struct Carried {
    /// The job, until it is canceled or has ended.
    pub job: Option<NotedJob>,
    /// True once the carrier has said that the job waits in a queue.
    pub is_queued: bool,
    /// The carrier's name of the node.
    pub node: Option<String>,
    /// Bytes of a line that is not complete.
    line: Vec<u8>,
    /// Time at which silence is reported; none once anything is known of the job.
    pub silent_at: Option<Time>,
    /// Time from which a list must show the job: that of the first list that shows the job, if any.
    pub listed_from: Time,
    /// Number of bytes that the node reads before the node can answer.
    pub sent_along: usize,
}

impl Carried {
    /// Creates the state of a job that is submitted now.
    pub(super) fn new(job: Option<NotedJob>, now: Time, sent_along: usize) -> Self {
        let (line, at) = (Vec::new(), now + SILENCE);
        let (silent_at, listed_from) = (Some(at), at);
        Self { job, is_queued: false, node: None, line, silent_at, listed_from, sent_along }
    }

    /// Returns true once, when nothing has been heard of the job for long.
    pub(super) fn take_silence(&mut self, now: Time) -> bool {
        self.silent_at.take_if(|at| *at <= now).is_some()
    }

    /// Returns the complete lines with a meaning among these bytes and earlier ones.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Vec<Notice> {
        let mut notices = Vec::new();
        for &byte in bytes {
            if byte == b'\n' {
                notices.extend(Notice::parse(&std::mem::take(&mut self.line)));
            } else if self.line.len() < MAX_LINE {
                self.line.push(byte);
            }
        }
        for notice in &notices {
            self.silent_at = None;
            match notice {
                Notice::Queued => self.is_queued = true,
                Notice::Node(name) => self.node = Some(name.clone()),
                Notice::Refused { .. } => {}
            }
        }
        notices
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_arrive_in_pieces_and_end_the_silence() {
        let at = |seconds| Time::after(Duration::from_secs(seconds));
        let mut carried = Carried::new(None, at(1), 0);
        assert!(carried.read(b"a line of tomorrow\nqueu").is_empty() && !carried.is_queued);
        assert!(!carried.take_silence(at(60)) && carried.take_silence(at(61)));
        assert!(!carried.take_silence(at(1000)), "once");
        let mut carried = Carried::new(None, at(1), 0);
        carried.read(b"queu");
        assert_eq!(carried.read(b"ed 7\nnode n1\n").len(), 2);
        assert!(carried.is_queued && carried.node.as_deref() == Some("n1"));
        assert!(!carried.take_silence(at(61)));
        assert!(carried.read(&vec![b'x'; MAX_LINE * 2]).is_empty());
        assert_eq!(carried.line.len(), MAX_LINE);
    }
}
