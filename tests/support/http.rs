//! A server of HTTP with answers in a given order.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::SystemTime;

/// Answer: a status, and lines of its header, which may depend on the time of the request.
pub(crate) type Answer = (u16, fn() -> String);

/// Server of HTTP that ends after its last answer.
pub(crate) struct Server {
    pub url: String,
    thread: JoinHandle<Vec<SystemTime>>,
}

impl Server {
    /// Starts a server with these answers.
    pub(crate) fn start(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/", listener.local_addr().expect("an address"));
        let thread = std::thread::spawn(move || {
            let serve = |(status, header): Answer| {
                let (stream, _) = listener.accept().expect("a client");
                let time = SystemTime::now();
                answer(&stream, status, &header());
                time
            };
            answers.into_iter().map(serve).collect()
        });
        Self { url, thread }
    }

    /// Returns the times of the requests, after the last one.
    pub(crate) fn times(self) -> Vec<SystemTime> {
        self.thread.join().expect("answers to all")
    }
}

fn answer(mut stream: &TcpStream, status: u16, header: &str) {
    let lines = BufReader::new(stream).lines();
    // The request ends with an empty line.
    let _ = lines.map_while(Result::ok).find(String::is_empty);
    let body = format!("body {status}\n");
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status} x\r\n{header}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
    .expect("a client that reads");
}
