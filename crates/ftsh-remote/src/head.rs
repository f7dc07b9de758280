//! The head's side of one conversation with a node: what to say, what to make of what is heard, and when to
//! take the branch for gone. It does nothing itself and has no clock: whoever has the connection tells it what
//! comes and what time it is.

use std::collections::VecDeque;
use std::time::Duration;

use bstr::ByteSlice;
use serde::Serialize;

use super::frame::{Frames, frame};
use super::lease::Lease;
use super::listen::{Listener, Piece};
use super::nonce::Nonce;
use super::record::Record;
use super::{Branch, Go, Hello, ToHead, ToNode};
use ftsh_machine::Time;
use ftsh_machine::event::{Blame, Returned};

/// A node that is there answers sooner, or isn't used; besides it has [`PACE`] for what it is sent.
const PATIENCE: Duration = Duration::from_secs(60);
/// A connection carries so many bytes in a second at least.
pub(super) const PACE: usize = 1 << 17;
/// Bytes that are kept of the messages before *hello*.
const MAX_PREAMBLE: usize = 4096;

/// A conversation.
#[derive(Debug)]
pub struct Head {
    branch: Branch,
    nonce: Nonce,
    lease: Duration,
    /// How long after a grant the branch is gone for certain.
    gone_after: Duration,
    packed: Time,
    phase: Phase,
    /// Messages of engine, login or node before the branch began, on standard error.
    preamble: Vec<u8>,
    outputs: VecDeque<Output>,
}

#[derive(Debug)]
enum Phase {
    /// Nobody is there yet, and if somebody could be that should say something, it is until then or never.
    Called {
        frames: Frames<ToHead>,
        until: Time,
    },
    /// A node has the branch, and answers until then or not at all.
    Offered {
        frames: Frames<ToHead>,
        node: String,
        until: Time,
    },
    Begun(Box<Begun>),
    Over,
}

/// A branch that has been told to begin.
#[derive(Debug)]
struct Begun {
    node: String,
    /// When it was last given time.
    granted: Time,
    listener: Listener,
    record: Option<Record>,
    /// Why nothing more will be heard, if that is so.
    closed: Option<String>,
    /// Whether nothing of the node's is left, as the engine knows for certain.
    is_gone: bool,
}

/// Which of its streams a branch has printed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Descriptor 1.
    Output,
    /// Descriptor 2.
    Errors,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// These bytes are to be written to the node's standard input.
    Write(Vec<u8>),
    /// The branch begins on this machine. What is written next tells it to.
    Placed(String),
    /// The branch has printed that.
    Printed(Stream, Vec<u8>),
    /// It is over: nothing comes after that, and the connection is to be closed if it is open.
    Returned(Returned),
}

impl Head {
    /// A conversation about a branch that was packed now, before anybody is there. The nonce is new.
    pub fn new(branch: Branch, nonce: Nonce, lease: Duration, now: Time) -> Self {
        // What the node has to kill in, which is more than this shell has inside its supervisor.
        let kill_timeout = branch.packed.settings.kill_timeout;
        Self {
            branch,
            nonce,
            lease,
            gone_after: Lease::gone_after(lease, kill_timeout),
            packed: now,
            phase: Phase::Called { frames: Frames::default(), until: Time::NEVER },
            preamble: Vec::new(),
            outputs: VecDeque::new(),
        }
    }

    /// What is to run the branch has begun to run on a node by now, and is sent so many bytes before it can say
    /// *hello*.
    pub fn called(&mut self, now: Time, bytes: usize) {
        if let Phase::Called { until, .. } = &mut self.phase
            && *until == Time::NEVER
        {
            *until = patience(now, bytes);
        }
    }

    /// The next thing to be done.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Head::handle_timeout`] is due; [`Time::NEVER`] if it isn't.
    pub fn next_timeout(&self) -> Time {
        match &self.phase {
            Phase::Over => Time::NEVER,
            Phase::Called { until, .. } | Phase::Offered { until, .. } => *until,
            Phase::Begun(begun) => begun.granted + self.gone_after,
        }
    }

    /// Whether the branch was told to begin.
    pub fn has_begun(&self) -> bool {
        matches!(self.phase, Phase::Begun(_))
    }

    /// Whether it has returned.
    pub fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over)
    }

    /// The machine, if there is one.
    pub fn node(&self) -> Option<&str> {
        match &self.phase {
            Phase::Offered { node, .. } => Some(node),
            Phase::Begun(begun) => Some(&begun.node),
            Phase::Called { .. } | Phase::Over => None,
        }
    }

    /// Returns the last messages of engine, login or node before the branch began, those on standard error first.
    pub fn preamble(&self) -> String {
        let printed = match &self.phase {
            Phase::Called { frames, .. } => frames.preamble(),
            _ => Vec::new(),
        };
        let said = [self.preamble.to_str_lossy(), printed.to_str_lossy()];
        let said = said.map(|said| said.trim().to_owned());
        said.into_iter().filter(|said| !said.is_empty()).collect::<Vec<_>>().join("\n")
    }

    /// Handles bytes from the node's standard output. Bytes have to be passed on before timeouts are handled: a head
    /// that was stopped has much to read before it gives up.
    pub fn on_stdout(&mut self, now: Time, bytes: &[u8]) {
        match &mut self.phase {
            Phase::Called { frames, .. } | Phase::Offered { frames, .. } => {
                frames.push(bytes);
                self.converse(now);
            }
            Phase::Begun(_) => self.print(Stream::Output, bytes.to_vec()),
            Phase::Over => {}
        }
    }

    /// Handles bytes from the node's standard error. This stream has to be read even while the output of the branch
    /// is not taken, since requests for more time come there.
    pub fn on_stderr(&mut self, now: Time, bytes: &[u8]) {
        let Phase::Begun(begun) = &mut self.phase else {
            return self.keep_preamble(bytes);
        };
        for piece in begun.listener.hear(bytes) {
            match piece {
                // What comes after the record isn't the branch's.
                Piece::Printed(_) if begun.record.is_some() => {}
                Piece::Printed(bytes) => {
                    self.outputs.push_back(Output::Printed(Stream::Errors, bytes));
                }
                Piece::Record(record) => begun.record = Some(*record),
                Piece::TooLate => {
                    let Some(lease) = begun.record.is_none().then_some(self.lease) else {
                        continue;
                    };
                    let why = format!(
                        "the way there and back takes longer than the lease of {} s: `--lease` makes that longer",
                        lease.as_secs()
                    );
                    let node = Some(begun.node.clone());
                    return self.over(Returned::NotBegun { node, why, blame: Blame::Node });
                }
                Piece::Request(_) if begun.record.is_some() || begun.closed.is_some() => {}
                Piece::Request(request) => {
                    begun.granted = now;
                    self.outputs.push_back(say(&ToNode::Lease(request.at)));
                }
            }
        }
    }

    /// Both streams are at their end. `said` is what the engine has to say of that, if anything, and
    /// `blame` what is to be done about it if the branch hasn't begun.
    pub fn closed(&mut self, said: &str, blame: Blame) {
        match &mut self.phase {
            Phase::Called { .. } => {
                // The last line tells most.
                let preamble = self.preamble();
                let last = preamble.lines().next_back().unwrap_or_default();
                let why = match (last, said) {
                    ("", "") => "the connection ended before a shell there said anything",
                    ("", said) => said,
                    (last, "") => last,
                    (last, said) => &with(said, last),
                };
                self.not_begun(why, blame);
            }
            Phase::Offered { .. } => {
                let why = with("the connection to it ended before the branch began", said);
                self.not_begun(&why, Blame::Node);
            }
            Phase::Begun(begun) => {
                let rest = begun.listener.end();
                if begun.record.is_none() && !rest.is_empty() {
                    self.outputs.push_back(Output::Printed(Stream::Errors, rest));
                }
                let why = with("the connection to it ended without a word of its end", said);
                begun.closed.get_or_insert(why);
                self.conclude();
            }
            Phase::Over => {}
        }
    }

    /// The engine knows for certain that nothing of the node's shell, nor of what it has started, is left:
    /// there is no need to wait for the end of the lease once the connection is closed.
    pub fn gone(&mut self) {
        if let Phase::Begun(begun) = &mut self.phase {
            begun.is_gone = true;
            self.conclude();
        }
    }

    /// The branch is to end, as by this signal. If it hasn't begun, it won't.
    pub fn end(&mut self, signal: i32) {
        match &self.phase {
            Phase::Called { .. } | Phase::Offered { .. } => {
                self.not_begun("it isn't wanted any more", Blame::Request);
            }
            Phase::Begun(begun) if begun.closed.is_none() && begun.record.is_none() => {
                self.outputs.push_back(say(&ToNode::End(signal)));
            }
            Phase::Begun(_) | Phase::Over => {}
        }
    }

    /// It is later.
    pub fn handle_timeout(&mut self, now: Time) {
        if now < self.next_timeout() {
            return;
        }
        match &mut self.phase {
            Phase::Called { .. } => {
                self.not_begun("no shell there says that it is there", Blame::Node);
            }
            Phase::Offered { .. } => {
                self.not_begun("the shell there doesn't answer", Blame::Node);
            }
            Phase::Begun(begun) => {
                begun.is_gone = true;
                let silence = self.gone_after.as_secs();
                let why = || format!("it hasn't been heard of for {silence} s");
                begun.closed.get_or_insert_with(why);
                self.conclude();
            }
            Phase::Over => {}
        }
    }

    /// Before the branch begins.
    fn converse(&mut self, now: Time) {
        loop {
            let (Phase::Called { frames, .. } | Phase::Offered { frames, .. }) = &mut self.phase
            else {
                return;
            };
            let message = frames.message();
            match (message, self.node()) {
                (Ok(None), _) => return,
                (Ok(Some(ToHead::Hello(hello))), None) => self.greeted(now, hello),
                (Ok(Some(ToHead::Ready)), Some(_)) => self.begin(now),
                (Ok(Some(ToHead::Refused(why))), _) => self.not_begun(&why, Blame::Node),
                (Ok(Some(_)) | Err(_), _) => {
                    let why = "the shell there says what this one doesn't understand: it may be \
                               another version of ftsh";
                    self.not_begun(why, Blame::Node);
                }
            }
        }
    }

    fn greeted(&mut self, now: Time, hello: Hello) {
        let Phase::Called { frames, .. } = &mut self.phase else { return };
        let frames = std::mem::take(frames);
        let bytes = frame(&Offer::Branch(&self.branch));
        let until = patience(now, bytes.as_ref().map_or(0, Vec::len));
        self.phase = Phase::Offered { frames, node: hello.node, until };
        let ours = &self.branch.identity;
        if hello.identity != *ours {
            let why = format!(
                "there is ftsh {}, and this is {ours}: `--ship` sends this one along",
                hello.identity
            );
            return self.not_begun(&why, Blame::Node);
        }
        match bytes {
            Some(bytes) => self.outputs.push_back(Output::Write(bytes)),
            None => self.not_begun("its variables are too long to be sent", Blame::Request),
        }
    }

    fn begin(&mut self, now: Time) {
        let Phase::Offered { frames, node, .. } = std::mem::replace(&mut self.phase, Phase::Over)
        else {
            return;
        };
        let (nonce, lease, waited) = (self.nonce, self.lease, now - self.packed);
        self.outputs.push_back(Output::Placed(node.clone()));
        self.outputs.push_back(say(&ToNode::Go(Go { nonce, waited, lease })));
        self.phase = Phase::Begun(Box::new(Begun {
            node,
            granted: now,
            listener: Listener::new(&self.nonce),
            record: None,
            closed: None,
            is_gone: false,
        }));
        self.print(Stream::Output, frames.into_rest());
    }

    fn print(&mut self, stream: Stream, bytes: Vec<u8>) {
        if !bytes.is_empty() {
            self.outputs.push_back(Output::Printed(stream, bytes));
        }
    }

    fn keep_preamble(&mut self, bytes: &[u8]) {
        self.preamble.extend_from_slice(bytes);
        let old = self.preamble.len().saturating_sub(MAX_PREAMBLE);
        self.preamble.drain(..old);
    }

    fn not_begun(&mut self, why: &str, blame: Blame) {
        let node = self.node().map(ToOwned::to_owned);
        self.over(Returned::NotBegun { node, why: why.into(), blame });
    }

    /// Ends a branch that has begun, if all that will be known of it is known.
    fn conclude(&mut self) {
        let Phase::Begun(begun) = &mut self.phase else { return };
        let Some(why) = &begun.closed else { return };
        let returned = match begun.record.take() {
            Some(Record { ended, node, elapsed, .. }) => {
                Returned::Ended { node, elapsed, ended: Box::new(ended) }
            }
            None if begun.is_gone => {
                Returned::Lost { node: Some(begun.node.clone()), why: why.clone() }
            }
            None => return,
        };
        self.over(returned);
    }

    fn over(&mut self, returned: Returned) {
        self.phase = Phase::Over;
        self.outputs.push_back(Output::Returned(returned));
    }
}

/// Until when an answer is to come to so many bytes.
fn patience(now: Time, bytes: usize) -> Time {
    now + PATIENCE + Duration::from_secs((bytes / PACE) as u64)
}

/// [`ToNode::Branch`], of a branch that stays here.
#[derive(Serialize)]
enum Offer<'a> {
    Branch(&'a Branch),
}

fn say(message: &ToNode) -> Output {
    Output::Write(frame(message).unwrap_or_default())
}

fn with(what: &str, said: &str) -> String {
    if said.is_empty() { what.into() } else { format!("{what}: {said}") }
}
