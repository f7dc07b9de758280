//! Monitor that speaks the protocol of healthchecks, on 127.0.0.1.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Request that the monitor received.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ping {
    pub method: String,
    /// Path and query.
    pub target: String,
    pub body: String,
}

impl Ping {
    /// Returns the end of the path: empty for a success, or `start`, `fail`, `log`.
    pub(crate) fn kind(&self) -> &str {
        let path = self.target.split('?').next().unwrap_or_default();
        path.strip_prefix("/ping").expect("the path of the check").trim_start_matches('/')
    }

    /// Returns the id of the run.
    pub(crate) fn run(&self) -> &str {
        self.target.split_once("rid=").expect("the id of the run").1
    }
}

/// Monitor in progress, which lasts as long as the tests.
pub(crate) struct Monitor {
    pub url: String,
    pings: Arc<Mutex<Vec<Ping>>>,
}

impl Monitor {
    /// Starts a monitor that answers with this status.
    pub(crate) fn answering(status: u16) -> Self {
        Self::answering_after(0, status)
    }

    /// Starts a monitor that leaves the first requests without an answer.
    pub(crate) fn answering_after(silent: usize, status: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/ping", listener.local_addr().expect("an address"));
        let pings = Arc::new(Mutex::default());
        let received = Arc::clone(&pings);
        std::thread::spawn(move || {
            let mut held = Vec::new();
            for stream in listener.incoming().flatten() {
                // A client may be killed at any moment.
                let Some(ping) = receive(&stream) else { continue };
                lock(&received).push(ping);
                if held.len() < silent {
                    held.push(stream);
                } else {
                    let _ = write!(&stream, "HTTP/1.1 {status} x\r\nContent-Length: 0\r\n\r\n");
                }
            }
        });
        Self { url, pings }
    }

    /// Starts a monitor that accepts all pings.
    pub(crate) fn start() -> Self {
        Self::answering(200)
    }

    /// Returns the pings so far.
    pub(crate) fn pings(&self) -> Vec<Ping> {
        lock(&self.pings).clone()
    }

    /// Returns the kinds of the pings so far, which name one run.
    pub(crate) fn kinds(&self) -> Vec<String> {
        let pings = self.pings();
        for ping in &pings {
            assert!(is_uuid(ping.run()) && ping.run() == pings[0].run(), "{pings:?}");
            assert_eq!(ping.method, if ping.body.is_empty() { "GET" } else { "POST" });
        }
        pings.iter().map(|ping| ping.kind().to_owned()).collect()
    }

    /// Returns the body of the last ping.
    pub(crate) fn report(&self) -> String {
        self.pings().pop().expect("a ping").body
    }
}

fn lock(pings: &Mutex<Vec<Ping>>) -> MutexGuard<'_, Vec<Ping>> {
    pings.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the request of a client, which is complete.
fn receive(stream: &TcpStream) -> Option<Ping> {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let length = lines.iter().find_map(|line| line.strip_prefix("Content-Length: "))?;
    let mut body = vec![0; length.parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    let mut words = lines[0].split(' ').map(str::to_owned);
    let (method, target) = (words.next()?, words.next()?);
    Some(Ping { method, target, body: String::from_utf8(body).ok()? })
}

fn is_uuid(text: &str) -> bool {
    let lengths: Vec<_> = text.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12] && text.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
}
