//! A process that sends requests of HTTP, so that a server which does not answer delays nothing.
//!
//! The courier starts before the shell splits in two, and belongs to no command. Both processes of the
//! shell hold its socket, on which each packet is a request. A full socket drops requests. When the last
//! holder ends without a last request, the courier sends the will, which came with the first one.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, kill, killpg};
use nix::sys::socket::{
    AddressFamily, MsgFlags, Shutdown, SockFlag, SockType, recv, send, shutdown, socketpair,
};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;

use super::http::{self, Url};
use ftsh_process::start_detached;

/// Longest wait for requests at the end of the shell.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(2);
/// Time for a report about failed requests.
pub(super) const REPORT_TIME: Duration = Duration::from_millis(100);
/// Longest time for a request.
const LIMIT: Duration = Duration::from_millis(1900);
/// Maximum size of a request in bytes. A socket accepts more.
pub(crate) const MAX_REQUEST: usize = 160 * 1024;

const NOW: MsgFlags = MsgFlags::MSG_DONTWAIT.union(MsgFlags::MSG_NOSIGNAL);

/// A request, `POST` if there is a body.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub url: Url,
    /// Lines of the header.
    pub headers: Vec<String>,
    pub body: String,
    /// Number of things in the body.
    pub count: u64,
}

/// Position of a request among those of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestKind {
    /// The body is the will, and is not sent.
    First = b'f' as isize,
    Between = b'b' as isize,
    /// The will is void.
    Last = b'l' as isize,
}

impl Request {
    pub(crate) fn encode(&self) -> String {
        let headers = self.headers.iter().map(|it| format!("{it}\n")).collect::<Vec<_>>().concat();
        format!("{} {}\n{headers}\n{}", self.count, self.url.text(), self.body)
    }

    fn decode(text: &str) -> Option<Self> {
        let (head, body) = text.split_once("\n\n")?;
        let mut lines = head.lines();
        let (count, url) = lines.next()?.split_once(' ')?;
        let (count, url) = (count.parse().ok()?, Url::parse(url)?);
        Some(Self { url, headers: lines.map(Into::into).collect(), body: body.into(), count })
    }
}

/// Connection to a courier.
#[derive(Debug)]
pub(crate) struct Courier {
    socket: OwnedFd,
    pid: Pid,
    /// Number of things that were sent to the courier and not delivered.
    undelivered: &'static AtomicU64,
}

impl Courier {
    /// Starts a courier. Must be called while there is one thread.
    pub(crate) fn start() -> io::Result<Self> {
        let (family, kind) = (AddressFamily::Unix, SockType::SeqPacket);
        let (ours, theirs) = socketpair(family, kind, None, SockFlag::SOCK_CLOEXEC)?;
        let (socket, undelivered) = (ftsh_sys::move_up(ours)?, ftsh_sys::shared_number()?);
        let work = || serve(&theirs, undelivered);
        let pid = start_detached(c"ftsh-courier", &[theirs.as_fd()], work)?;
        Ok(Self { socket, pid: Pid::from_raw(pid), undelivered })
    }

    /// Sends a request without blocking. Returns false if the request was dropped. A courier that has
    /// ended delivers nothing.
    pub(crate) fn send(&self, kind: RequestKind, request: &Request) -> bool {
        let packet = format!("{}{}", char::from(kind as u8), request.encode());
        let is_sent = packet.len() <= MAX_REQUEST
            && send(self.socket.as_raw_fd(), packet.as_bytes(), NOW) != Err(Errno::EAGAIN);
        self.undelivered.fetch_add(if is_sent { request.count } else { 0 }, Ordering::SeqCst);
        is_sent
    }

    /// Waits for the end of the courier, until a time. Returns the number of things that were sent to
    /// the courier and not delivered, and the reasons. No process can send more requests.
    pub(crate) fn finish(&self, until: Instant) -> (u64, Vec<String>) {
        let _ = shutdown(self.socket.as_raw_fd(), Shutdown::Write);
        let mut failures = Vec::new();
        let mut bytes = vec![0; MAX_REQUEST];
        loop {
            let left = until.saturating_duration_since(Instant::now()).as_millis();
            let polled = PollFd::new(self.socket.as_fd(), PollFlags::POLLIN);
            if poll(&mut [polled], PollTimeout::from(left as u16)) == Ok(0) {
                failures.push("no answer in time".into());
                // Its group contains curl, and may not exist yet.
                let _ = killpg(self.pid, Signal::SIGKILL);
                let _ = kill(self.pid, Signal::SIGKILL);
                break;
            }
            let Some(reason) = receive(&self.socket, &mut bytes) else { break };
            failures.push(reason.into());
        }
        // The process has closed its socket, or was killed.
        let _ = waitpid(self.pid, None);
        let undelivered = self.undelivered.load(Ordering::SeqCst);
        if undelivered > 0 && failures.is_empty() {
            failures.push("the sender has ended".into());
        }
        (undelivered, failures)
    }
}

/// Returns the next packet. Returns none after the last one.
fn receive<'b>(socket: &OwnedFd, bytes: &'b mut [u8]) -> Option<&'b str> {
    let length = recv(socket.as_raw_fd(), bytes, MsgFlags::empty()).ok().filter(|it| *it > 0)?;
    std::str::from_utf8(&bytes[..length]).ok()
}

/// Sends requests until the end of the shell.
fn serve(socket: &OwnedFd, undelivered: &AtomicU64) {
    // Curl gets these in place of the descriptors that were closed.
    let _null = [(); 3].map(|()| OpenOptions::new().read(true).write(true).open("/dev/null"));
    // Signals to all processes of a service or a container end the shell first.
    let _ = SigSet::all().thread_block();
    let mut bytes = vec![0; MAX_REQUEST];
    let mut will = None;
    let deliver = |request: &Request| match http::send(request, Instant::now() + LIMIT) {
        Ok(()) => _ = undelivered.fetch_sub(request.count, Ordering::SeqCst),
        Err(why) => {
            let failure = format!("{}: {why}", request.url.shown());
            let _ = send(socket.as_raw_fd(), failure.as_bytes(), NOW);
        }
    };
    while let Some(text) = receive(socket, &mut bytes) {
        let kind = text.as_bytes()[0];
        let Some(mut request) = Request::decode(&text[1..]) else { continue };
        if kind != RequestKind::Between as u8 {
            let body = if kind == RequestKind::First as u8 {
                std::mem::take(&mut request.body)
            } else {
                String::new()
            };
            will = Request::decode(&body);
        }
        deliver(&request);
    }
    if let Some(will) = will {
        deliver(&will);
    }
}
