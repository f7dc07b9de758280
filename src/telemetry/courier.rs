//! A process that sends requests of HTTP, so that a server which does not answer delays nothing.
//!
//! The courier starts before the shell splits in two, and belongs to no command. Both processes of the
//! shell hold its socket, on which each packet is a request. A full socket drops requests. When the last
//! holder ends without a last request, the courier sends the will, which came with the first one.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::socket::{
    AddressFamily, MsgFlags, Shutdown, SockFlag, SockType, recv, send, shutdown, socketpair,
};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;

use super::http::{self, Url};
use ftsh_process::start_detached;

/// Longest time for a request, and for all requests after the end of the shell.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(2);
/// [`TIMEOUT`] without the time for the report about failed requests.
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
    /// Number of things in the body, for messages about a failure.
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
}

impl Courier {
    /// Starts a courier. Must be called while there is one thread.
    pub(crate) fn start() -> io::Result<Self> {
        let (family, kind) = (AddressFamily::Unix, SockType::SeqPacket);
        let (ours, theirs) = socketpair(family, kind, None, SockFlag::SOCK_CLOEXEC)?;
        let socket = ftsh_sys::move_up(ours)?;
        let pid = start_detached(c"ftsh-courier", &[theirs.as_fd()], || serve(&theirs))?;
        Ok(Self { socket, pid: Pid::from_raw(pid) })
    }

    /// Sends a request without blocking. Returns false if the request was dropped.
    pub(crate) fn send(&self, kind: RequestKind, request: &Request) -> bool {
        let packet = format!("{}{}", char::from(kind as u8), request.encode());
        packet.len() <= MAX_REQUEST && send(self.socket.as_raw_fd(), packet.as_bytes(), NOW).is_ok()
    }

    /// Waits for the end of the courier, until a time. Returns the reasons of failures, each with the
    /// number of things that were not delivered. No process can send more requests.
    pub(crate) fn finish(&self, until: Instant) -> Vec<(u64, String)> {
        let _ = shutdown(self.socket.as_raw_fd(), Shutdown::Write);
        let mut failures = Vec::new();
        let mut bytes = vec![0; MAX_REQUEST];
        loop {
            let left = until.saturating_duration_since(Instant::now()).as_millis();
            if !is_ready(&self.socket, libc::POLLIN, left as u16) {
                failures.push((1, "no answer in time".into()));
                let _ = kill(self.pid, Signal::SIGKILL);
                break;
            }
            let Some(text) = receive(&self.socket, &mut bytes) else { break };
            let (count, reason) = text.split_once(' ').unwrap_or_default();
            failures.push((count.parse().unwrap_or(1), reason.into()));
        }
        // The process has closed its socket, or was killed.
        let _ = waitpid(self.pid, None);
        failures
    }
}

/// True if an event of a socket is there, or comes in time.
fn is_ready(socket: &OwnedFd, event: i16, milliseconds: u16) -> bool {
    let polled = PollFd::new(socket.as_fd(), PollFlags::from_bits_retain(event));
    poll(&mut [polled], PollTimeout::from(milliseconds)) != Ok(0)
}

/// Returns the next packet. Returns none after the last one.
fn receive<'b>(socket: &OwnedFd, bytes: &'b mut [u8]) -> Option<&'b str> {
    let length = recv(socket.as_raw_fd(), bytes, MsgFlags::empty()).ok().filter(|it| *it > 0)?;
    std::str::from_utf8(&bytes[..length]).ok()
}

/// Sends requests until the end of the shell.
fn serve(socket: &OwnedFd) {
    // Curl gets these in place of the descriptors that were closed.
    let _null = [(); 3].map(|()| OpenOptions::new().read(true).write(true).open("/dev/null"));
    // Signals to all processes of a service or a container end the shell first.
    let _ = SigSet::all().thread_block();
    let mut bytes = vec![0; MAX_REQUEST];
    let (mut will, mut end) = (None, None);
    // The shell lived at the time `since`.
    let mut deliver = |request: &Request, since: Instant| {
        let until = since + LIMIT;
        if is_ready(socket, libc::POLLRDHUP, 0) {
            end.get_or_insert(until);
        }
        if let Err(why) = http::send(request, end.unwrap_or(until)) {
            let failure = format!("{} {}: {why}", request.count, request.url.shown());
            let _ = send(socket.as_raw_fd(), failure.as_bytes(), NOW);
        }
        if is_ready(socket, libc::POLLRDHUP, 0) {
            end.get_or_insert(until);
        }
    };
    while let Some(text) = receive(socket, &mut bytes) {
        let since = Instant::now();
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
        deliver(&request, since);
    }
    if let Some(will) = will {
        deliver(&will, Instant::now());
    }
}
