//! The head's side of one conversation with a node.
//!
//! The conversation performs no input or output and has no clock. The owner of the connection
//! passes received bytes and the time, and performs the outputs.

use std::collections::VecDeque;
use std::time::Duration;

use bstr::ByteSlice;
use serde::Serialize;

use super::files::{GiftState, TransferProgress};
use super::frame::{FRAME_NAME, Frames, MessageTooLong, frame};
use super::lease::Lease;
use super::line::{BranchRecord, NodeLine};
use super::listen::{Listener, Piece};
use super::nonce::Nonce;
use super::{Branch, ERRORS_MARK, Go, Hello, ToHead, ToNode};
use ftsh_machine::Time;
use ftsh_machine::event::{Blame, Returned};
use ftsh_machine::packed::BranchEnd;

/// Time for a node's answer, besides the time for the transfer of the bytes sent to the node.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Lowest expected throughput of a connection, in bytes per second.
pub(super) const MIN_BYTES_PER_SECOND: usize = 1 << 17;
/// Maximum number of bytes kept of the messages before *hello*.
const MAX_PREAMBLE: usize = 4096;

/// Conversation with a node about one branch.
#[derive(Debug)]
pub struct Head {
    branch: Branch,
    nonce: Nonce,
    lease: Duration,
    /// Time after a grant at which the branch is certainly gone.
    gone_after: Duration,
    packed: Time,
    phase: HeadPhase,
    /// Messages of engine, login or node before the branch began, on standard error.
    preamble: Vec<u8>,
    /// Time from the first message on one stream to that on the other, if the streams are checked.
    streams_within: Option<Duration>,
    /// True once the mark of standard error has come on that stream.
    has_errors: bool,
    outputs: VecDeque<HeadOutput>,
}

#[derive(Debug)]
enum HeadPhase {
    /// No node has answered yet. The node must send *hello* before `until`, and its mark on standard
    /// error if the streams are checked.
    Waiting {
        frames: Frames<ToHead>,
        hello: Option<Hello>,
        until: Time,
    },
    /// A node has received the branch, and must answer before `until`.
    Offered {
        frames: Frames<ToHead>,
        node: String,
        until: Time,
    },
    Begun(Box<Begun>),
    Over,
}

/// Branch that was started by *go*.
#[derive(Debug)]
struct Begun {
    node: String,
    /// Time of the last grant, or of a later movement of files.
    granted: Time,
    /// Time of the last request, on the node's clock.
    asked: Duration,
    /// Decoders of standard output and standard error.
    listeners: [Listener; 2],
    /// True once all of the standard output has arrived.
    has_output: bool,
    record: Option<BranchRecord>,
    /// Reason for the end of the connection, if the connection has ended.
    closed: Option<String>,
    /// True if the engine knows for certain that no process is left on the node.
    is_gone: bool,
    gifts: GiftState,
}

/// Stream that a branch prints on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Descriptor 1.
    Output,
    /// Descriptor 2.
    Errors,
}

/// Request to the owner of the connection.
#[derive(Clone, Debug, PartialEq)]
pub enum HeadOutput {
    /// Write the bytes to the node's standard input.
    Write(Vec<u8>),
    /// List the files that the branch takes, and write the bytes and the list.
    Offer(Vec<u8>),
    /// Write the contents of the files with these indexes.
    Send(Vec<u32>),
    /// Receive the files that the branch gives. They begin with these bytes, and the next bytes of
    /// the node's standard output belong to them.
    Receive(Vec<u8>),
    /// Move the files that have arrived to their places.
    Place,
    /// The branch begins on the named node. The next bytes to write start the branch.
    Placed(String),
    /// The branch has printed the bytes.
    Printed(Stream, Vec<u8>),
    /// The result is known, and the engine's command can end.
    Recorded,
    /// The conversation is over. No output follows, and the owner closes the connection.
    Returned(Returned),
}

impl Head {
    /// Creates the conversation about a branch that was packed now. The nonce must be new.
    pub fn new(branch: Branch, nonce: Nonce, lease: Duration, now: Time) -> Self {
        // Kill timeout of the node, which is longer than the time of this shell inside its
        // supervisor.
        let kill_timeout = branch.packed.config.kill_timeout;
        Self {
            branch,
            nonce,
            lease,
            gone_after: Lease::gone_after(lease, kill_timeout),
            packed: now,
            phase: HeadPhase::Waiting {
                frames: Frames::default(),
                hello: None,
                until: Time::NEVER,
            },
            preamble: Vec::new(),
            streams_within: None,
            has_errors: false,
            outputs: VecDeque::new(),
        }
    }

    /// Returns the branch.
    pub fn branch(&self) -> &Branch {
        &self.branch
    }

    /// Starts the time limit for *hello*, as the engine has started its command on a node. The node
    /// reads `bytes` bytes first.
    pub fn expect_hello(&mut self, now: Time, bytes: usize) {
        if let HeadPhase::Waiting { until, .. } = &mut self.phase
            && *until == Time::NEVER
        {
            *until = answer_deadline(now, bytes);
        }
    }

    /// Refuses an engine that joins the streams of the node, or drops one: the other stream must
    /// follow within this time. Without this check, a branch would be lost later, at the end of its
    /// lease.
    pub fn check_streams(&mut self, within: Duration) {
        self.streams_within = Some(within);
    }

    /// Ends a conversation about a branch that the engine refuses, unless the branch has begun.
    pub fn refuse(&mut self, why: &str, blame: Blame) {
        if matches!(self.phase, HeadPhase::Waiting { .. } | HeadPhase::Offered { .. }) {
            self.return_not_begun(why, blame);
        }
    }

    /// Removes the next output.
    pub fn poll_output(&mut self) -> Option<HeadOutput> {
        self.outputs.pop_front()
    }

    /// Returns the time at which [`Head::handle_timeout`] is due, or [`Time::NEVER`].
    pub fn next_timeout(&self) -> Time {
        match &self.phase {
            HeadPhase::Over => Time::NEVER,
            HeadPhase::Waiting { until, .. } | HeadPhase::Offered { until, .. } => *until,
            HeadPhase::Begun(begun) => begun.granted + self.gone_after,
        }
    }

    /// True once the branch was started.
    pub fn has_begun(&self) -> bool {
        matches!(self.phase, HeadPhase::Begun(_))
    }

    /// True once the result was reported.
    pub fn is_over(&self) -> bool {
        matches!(self.phase, HeadPhase::Over)
    }

    /// Returns the name of the node, once known.
    pub fn node(&self) -> Option<&str> {
        match &self.phase {
            HeadPhase::Offered { node, .. } => Some(node),
            HeadPhase::Begun(begun) => Some(&begun.node),
            HeadPhase::Waiting { .. } | HeadPhase::Over => None,
        }
    }

    /// Returns the last messages of engine, login or node before the branch began. Messages on
    /// standard error come first.
    pub fn preamble(&self) -> String {
        let printed = match &self.phase {
            HeadPhase::Waiting { frames, .. } => frames.preamble(),
            _ => Vec::new(),
        };
        let message = [self.preamble.to_str_lossy(), printed.to_str_lossy()];
        let message = message.map(|message| message.trim().to_owned());
        message.into_iter().filter(|message| !message.is_empty()).collect::<Vec<_>>().join("\n")
    }

    /// Handles bytes from the node's standard output. Received bytes must be passed before timeouts
    /// are handled, as a head that was stopped may have many bytes to read.
    pub fn on_stdout(&mut self, now: Time, bytes: &[u8]) {
        match &mut self.phase {
            HeadPhase::Waiting { frames, .. } | HeadPhase::Offered { frames, .. } => {
                frames.push(bytes);
                if self.streams_within.is_some() && frames.preamble().contains_str(ERRORS_MARK) {
                    return self.return_not_begun(JOINED, Blame::Request);
                }
                self.read_messages(now);
            }
            HeadPhase::Begun(begun) => {
                let (mut ends, mut files) = (false, Vec::new());
                for piece in begun.listeners[0].push(bytes) {
                    match piece {
                        // Nothing after the end of the output is output.
                        Piece::Printed(bytes) if begun.has_output => files = bytes,
                        Piece::Printed(bytes) => {
                            self.outputs.push_back(HeadOutput::Printed(Stream::Output, bytes));
                        }
                        Piece::Line(NodeLine::OutputEnded) => {
                            (ends, begun.has_output) = (true, true);
                        }
                        Piece::Line(_) => {}
                    }
                }
                if ends && begun.gifts == GiftState::Coming {
                    self.outputs.push_back(HeadOutput::Receive(files));
                }
                self.conclude();
            }
            HeadPhase::Over => {}
        }
    }

    /// Handles bytes from the node's standard error. The driver must read this stream even while
    /// the output of the branch is not taken, since the stream carries the requests for more time.
    pub fn on_stderr(&mut self, now: Time, bytes: &[u8]) {
        let HeadPhase::Begun(begun) = &mut self.phase else {
            return self.on_preamble(now, bytes);
        };
        for piece in begun.listeners[1].push(bytes) {
            match piece {
                // Nothing after the record belongs to the branch.
                _ if begun.record.is_some() => {}
                Piece::Printed(bytes) => {
                    self.outputs.push_back(HeadOutput::Printed(Stream::Errors, bytes));
                }
                Piece::Line(NodeLine::Record(record)) => {
                    begun.record = Some(*record);
                    self.outputs.push_back(HeadOutput::Recorded);
                }
                Piece::Line(NodeLine::TooLate) => {
                    let why = format!(
                        "the way there and back takes longer than the lease of {} s: `--lease` makes that longer",
                        self.lease.as_secs()
                    );
                    let node = Some(begun.node.clone());
                    return self.over(Returned::NotBegun { node, why, blame: Blame::Node });
                }
                Piece::Line(NodeLine::OutputEnded) => {}
                // A repeated request says nothing of the node's present state.
                Piece::Line(NodeLine::Request(asked))
                    if begun.closed.is_some() || asked <= begun.asked => {}
                Piece::Line(NodeLine::Request(asked)) => {
                    (begun.granted, begun.asked) = (now, asked);
                    match frame(&ToNode::Lease(asked)) {
                        Ok(bytes) => self.outputs.push_back(HeadOutput::Write(bytes)),
                        Err(error) => return self.closed(&error.to_string(), Blame::Request),
                    }
                }
            }
        }
    }

    /// Handles the end of both streams. `message` is the message of the engine, perhaps empty.
    /// `blame` is the cause if the branch has not begun.
    pub fn closed(&mut self, message: &str, blame: Blame) {
        match &mut self.phase {
            HeadPhase::Waiting { .. } => {
                // The last line is the most specific.
                let preamble = self.preamble();
                let last = preamble.lines().next_back().unwrap_or_default();
                let why = match (last, message) {
                    ("", "") => "the connection ended before a shell there said anything",
                    ("", message) => message,
                    (last, "") => last,
                    (last, message) => &with_detail(message, last),
                };
                self.return_not_begun(why, blame);
            }
            HeadPhase::Offered { .. } => {
                let why =
                    with_detail("the connection to it ended before the branch began", message);
                self.return_not_begun(&why, Blame::Node);
            }
            HeadPhase::Begun(begun) => {
                let rest = begun.listeners[1].end();
                if begun.record.is_none() && !rest.is_empty() {
                    self.outputs.push_back(HeadOutput::Printed(Stream::Errors, rest));
                }
                let why =
                    with_detail("the connection to it ended without a word of its end", message);
                begun.closed.get_or_insert(why);
                self.conclude();
            }
            HeadPhase::Over => {}
        }
    }

    /// Handles the progress of the branch's files.
    pub fn on_progress(&mut self, now: Time, progress: TransferProgress) {
        match (&mut self.phase, progress) {
            (HeadPhase::Offered { until, .. }, TransferProgress::Listed(bytes)) => {
                *until = answer_deadline(now, bytes as usize);
            }
            (HeadPhase::Offered { node, .. }, TransferProgress::Failed(why)) => {
                let node = Some(node.clone());
                self.over(Returned::Files { node, why });
            }
            // A slow link or disk is not silent.
            (HeadPhase::Offered { until, .. }, TransferProgress::Moved) => {
                *until = (*until).max(now + ANSWER_TIMEOUT);
            }
            (HeadPhase::Begun(begun), TransferProgress::Moved) => begun.granted = now,
            (HeadPhase::Begun(begun), progress) => {
                begun.gifts = GiftState::after(progress);
                self.conclude();
            }
            _ => {}
        }
    }

    /// True once the node has reported the result.
    pub fn has_record(&self) -> bool {
        matches!(&self.phase, HeadPhase::Begun(begun) if begun.record.is_some())
    }

    /// Records that the engine knows for certain that no process of the branch is left. The head
    /// then need not wait for the end of the lease after the connection is closed.
    pub fn gone(&mut self) {
        if let HeadPhase::Begun(begun) = &mut self.phase {
            begun.is_gone = true;
            self.conclude();
        }
    }

    /// Requests the end of the branch, as a signal would. A branch that has not begun is canceled.
    pub fn end(&mut self, signal: i32) {
        match &self.phase {
            HeadPhase::Waiting { .. } | HeadPhase::Offered { .. } => {
                self.return_not_begun("it isn't wanted any more", Blame::Request);
            }
            HeadPhase::Begun(begun) if begun.closed.is_none() && begun.record.is_none() => {
                match frame(&ToNode::End(signal)) {
                    Ok(bytes) => self.outputs.push_back(HeadOutput::Write(bytes)),
                    // Without the message, the branch is as good as cut off.
                    Err(error) => self.closed(&error.to_string(), Blame::Request),
                }
            }
            HeadPhase::Begun(_) | HeadPhase::Over => {}
        }
    }

    /// Handles the passage of time.
    pub fn handle_timeout(&mut self, now: Time) {
        if now < self.next_timeout() {
            return;
        }
        match &mut self.phase {
            HeadPhase::Waiting { hello: Some(_), .. } => {
                self.return_not_begun(&dropped("standard error"), Blame::Engine);
            }
            HeadPhase::Waiting { .. } if self.has_errors => {
                self.return_not_begun(&dropped("standard output"), Blame::Engine);
            }
            HeadPhase::Waiting { .. } => {
                self.return_not_begun("no shell there says that it is there", Blame::Node);
            }
            HeadPhase::Offered { .. } => {
                self.return_not_begun("the shell there doesn't answer", Blame::Node);
            }
            HeadPhase::Begun(begun) => {
                begun.is_gone = true;
                match begun.gifts {
                    // A file system here may not answer.
                    GiftState::Coming | GiftState::Moving => begun.gifts = GiftState::Cut,
                    // The files that are whole still move to their places.
                    GiftState::Arrived => begun.granted = now,
                    GiftState::Placed | GiftState::Cut | GiftState::Failed(_) => {}
                }
                let silence = self.gone_after.as_secs();
                let why = || format!("it hasn't been heard of for {silence} s");
                begun.closed.get_or_insert_with(why);
                self.conclude();
            }
            HeadPhase::Over => {}
        }
    }

    /// Handles the messages before the branch begins.
    fn read_messages(&mut self, now: Time) {
        loop {
            let (HeadPhase::Waiting { frames, .. } | HeadPhase::Offered { frames, .. }) =
                &mut self.phase
            else {
                return;
            };
            let message = frames.message();
            match (message, self.node()) {
                (Ok(None), _) => return,
                (Ok(Some(ToHead::Hello(hello))), None) => self.on_hello(now, hello),
                (Ok(Some(ToHead::Ready(start))), Some(_)) => self.begin(now, start),
                (Ok(Some(ToHead::Wants(files))), Some(_)) => {
                    self.outputs.push_back(HeadOutput::Send(files));
                }
                (Ok(Some(ToHead::Refused(why))), _) => self.return_not_begun(&why, Blame::Node),
                (Ok(Some(_)) | Err(_), _) => {
                    let why = "the shell there says what this one doesn't understand: it may be \
                               another version of ftsh";
                    self.return_not_begun(why, Blame::Node);
                }
            }
        }
    }

    fn on_hello(&mut self, now: Time, greeting: Hello) {
        let HeadPhase::Waiting { frames, hello, until } = &mut self.phase else { return };
        if let Some(within) = self.streams_within.filter(|_| !self.has_errors) {
            (*hello, *until) = (Some(greeting), now + within);
            return;
        }
        let hello = greeting;
        let frames = std::mem::take(frames);
        let bytes = frame(&Offer::Branch(&self.branch));
        let takes_files = !self.branch.packed.files.takes.is_empty();
        // The node cannot answer before the files are listed.
        let until = if takes_files {
            Time::NEVER
        } else {
            answer_deadline(now, bytes.as_ref().map_or(0, Vec::len))
        };
        self.phase = HeadPhase::Offered { frames, node: hello.node, until };
        let ours = &self.branch.identity;
        if hello.identity != *ours {
            let why = format!(
                "there is ftsh {}, and this is {ours}: `--ship` sends this one along",
                hello.identity
            );
            return self.return_not_begun(&why, Blame::Node);
        }
        match bytes {
            Ok(bytes) if takes_files => self.outputs.push_back(HeadOutput::Offer(bytes)),
            Ok(bytes) => self.outputs.push_back(HeadOutput::Write(bytes)),
            Err(MessageTooLong) => {
                self.return_not_begun("its variables are too long to be sent", Blame::Request);
            }
        }
    }

    fn begin(&mut self, now: Time, start: Nonce) {
        let HeadPhase::Offered { frames, node, .. } =
            std::mem::replace(&mut self.phase, HeadPhase::Over)
        else {
            return;
        };
        let (nonce, lease, waited) = (self.nonce, self.lease, now - self.packed);
        let go = match frame(&ToNode::Go(Go { nonce, start, waited, lease })) {
            Ok(go) => go,
            Err(error) => return self.return_not_begun(&error.to_string(), Blame::Request),
        };
        self.outputs.push_back(HeadOutput::Placed(node.clone()));
        self.outputs.push_back(HeadOutput::Write(go));
        self.phase = HeadPhase::Begun(Box::new(Begun {
            node,
            granted: now,
            asked: Duration::ZERO,
            listeners: [(); 2].map(|()| Listener::new(&self.nonce)),
            has_output: false,
            record: None,
            closed: None,
            is_gone: false,
            gifts: GiftState::of(&self.branch.packed.files),
        }));
        self.on_stdout(now, &frames.into_rest());
    }

    /// Handles bytes on standard error before the branch begins.
    fn on_preamble(&mut self, now: Time, bytes: &[u8]) {
        self.preamble.extend_from_slice(bytes);
        if self.streams_within.is_some() && self.preamble.contains_str(FRAME_NAME) {
            return self.return_not_begun(JOINED, Blame::Request);
        }
        if let Some(at) = self.preamble.find(ERRORS_MARK) {
            self.preamble.drain(at..at + ERRORS_MARK.len());
            self.has_errors = true;
            match (&mut self.phase, self.streams_within) {
                (HeadPhase::Waiting { hello: hello @ Some(_), .. }, _) => {
                    if let Some(hello) = hello.take() {
                        self.on_hello(now, hello);
                    }
                }
                (HeadPhase::Waiting { until, .. }, Some(within)) => {
                    *until = (*until).min(now + within);
                }
                _ => {}
            }
        }
        let old = self.preamble.len().saturating_sub(MAX_PREAMBLE);
        self.preamble.drain(..old);
    }

    fn return_not_begun(&mut self, why: &str, blame: Blame) {
        let node = self.node().map(ToOwned::to_owned);
        self.over(Returned::NotBegun { node, why: why.into(), blame });
    }

    /// Reports the result of a branch that has begun, once the result is final.
    fn conclude(&mut self) {
        let HeadPhase::Begun(begun) = &mut self.phase else { return };
        let Some(why) = &begun.closed else { return };
        let gives = |record: &BranchRecord| {
            record.no_gifts.is_none() && record.ended.end == BranchEnd::Succeeded
        };
        if begun.has_output && begun.record.as_ref().is_some_and(gives) {
            match begun.gifts {
                GiftState::Coming | GiftState::Moving => return,
                GiftState::Arrived => {
                    begun.gifts = GiftState::Moving;
                    return self.outputs.push_back(HeadOutput::Place);
                }
                GiftState::Placed | GiftState::Cut | GiftState::Failed(_) => {}
            }
        }
        // A result counts only with all of the output, and a success with all of the files.
        let is_whole = |record: &mut BranchRecord| {
            begun.has_output && !(gives(record) && begun.gifts == GiftState::Cut)
        };
        let returned = match begun.record.take_if(is_whole) {
            Some(record) => {
                let BranchRecord { ended, node, elapsed, no_gifts, .. } = record;
                let why = match &begun.gifts {
                    GiftState::Failed(why) => no_gifts.or_else(|| Some(why.clone())),
                    _ => no_gifts,
                };
                match why {
                    Some(why) => Returned::Files { node: Some(node), why },
                    None => Returned::Ended { node, elapsed, ended: Box::new(ended) },
                }
            }
            None if begun.is_gone => {
                let why = match &begun.record {
                    Some(_) if begun.has_output => "its files did not arrive whole".into(),
                    Some(_) => dropped("the end of standard output"),
                    None => why.clone(),
                };
                Returned::Lost { node: Some(begun.node.clone()), why }
            }
            None => return,
        };
        self.over(returned);
    }

    fn over(&mut self, returned: Returned) {
        self.phase = HeadPhase::Over;
        self.outputs.push_back(HeadOutput::Returned(returned));
    }
}

/// Reason to refuse an engine that sends both streams of the node on one stream.
const JOINED: &str = "it joins standard output and standard error of the node, which have to \
                      arrive apart";

/// Returns the reason to refuse an engine that loses a stream of the node.
fn dropped(stream: &str) -> String {
    format!("{stream} of the node does not arrive")
}

/// Returns the deadline for the answer to a number of bytes.
fn answer_deadline(now: Time, bytes: usize) -> Time {
    now + ANSWER_TIMEOUT + Duration::from_secs((bytes / MIN_BYTES_PER_SECOND) as u64)
}

/// Borrowed form of [`ToNode::Branch`].
#[derive(Serialize)]
enum Offer<'a> {
    Branch(&'a Branch),
}

fn with_detail(what: &str, message: &str) -> String {
    if message.is_empty() { what.into() } else { format!("{what}: {message}") }
}
