//! Requests of HTTP by blocking code: `http://` natively, `https://` by curl.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ftsh_sys::os_error::plain;
use nix::sys::memfd::{MFdFlags, memfd_create};

use super::courier::Request;

/// Program for `https://`.
pub(crate) const CURL: &str = "curl";

const NATIVE: &str = "http://";
const SECURE: &str = "https://";
const AGENT: &str = concat!("User-Agent: ftsh/", env!("CARGO_PKG_VERSION"));

/// Address of a server, with a path and a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Url {
    /// Scheme and server, which may contain a password.
    pub origin: String,
    pub path: String,
    /// Empty, or begins with a question mark.
    query: String,
}

impl Url {
    /// Text that [`parse`](Self::parse) accepts, for messages.
    pub(crate) const FORM: &str = "a URL, like `https://host/path`; only `https://` takes a user";

    /// Parses a URL with the scheme `http` or `https`. Its fragment is dropped.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.split('#').next()?;
        let server = [NATIVE, SECURE].into_iter().find_map(|it| text.strip_prefix(it))?;
        let is_odd = |c: char| c.is_control() || c.is_whitespace();
        if server.is_empty() || server.starts_with(['/', '?', ':']) || text.contains(is_odd) {
            return None;
        }
        let path = text.len() - server.len() + server.find(['/', '?']).unwrap_or(server.len());
        let (origin, rest) = text.split_at(path);
        let (path, query) = rest.split_at(rest.find('?').unwrap_or(rest.len()));
        let is_fit = origin.starts_with(SECURE) || !origin.contains('@');
        is_fit.then(|| Self { origin: origin.into(), path: path.into(), query: query.into() })
    }

    /// Returns the URL with a longer path and one more parameter in its query.
    pub(crate) fn with(&self, path: &str, parameter: &str) -> Self {
        let Self { origin, path: start, query } = self.clone();
        let sign = if query.is_empty() { '?' } else { '&' };
        let path = format!("{}{path}", start.trim_end_matches('/'));
        Self { origin, path, query: format!("{query}{sign}{parameter}") }
    }

    /// Returns scheme and server for people, without a user and a password.
    pub(crate) fn shown(&self) -> String {
        let server = self.origin.rsplit_once('@');
        server.map_or_else(|| self.origin.clone(), |(_, server)| format!("{SECURE}{server}"))
    }

    /// Returns the whole URL. It may contain a secret.
    pub(crate) fn text(&self) -> String {
        format!("{}{}{}", self.origin, self.path, self.query)
    }

    /// True if curl sends the requests.
    pub(crate) fn is_secure(&self) -> bool {
        self.origin.starts_with(SECURE)
    }
}

/// Sends a request, `POST` if there is a body. Fails unless the answer is a success.
pub(super) fn send(request: &Request, until: Instant) -> Result<(), String> {
    let by = if request.url.is_secure() { by_curl } else { natively };
    match by(request, until) {
        Ok(200..=299) => Ok(()),
        Ok(status) => Err(format!("the server answered {status}")),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            Err("no answer in time".into())
        }
        Err(error) => Err(plain(&error)),
    }
}

/// Returns the time that is left.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// Connects to the first of the addresses that accepts. Each one gets an equal part of the time left.
fn connect(addresses: &[SocketAddr], until: Instant) -> io::Result<TcpStream> {
    let mut stream = Err(ErrorKind::NotFound.into());
    for (address, remaining) in addresses.iter().zip((1..=addresses.len() as u32).rev()) {
        stream = TcpStream::connect_timeout(address, left(until)? / remaining);
        if stream.is_ok() {
            break;
        }
    }
    stream
}

/// Returns the status of the answer.
fn natively(request: &Request, until: Instant) -> io::Result<u16> {
    let Request { url, headers, body, .. } = request;
    let server = &url.origin[NATIVE.len()..];
    let has_port = server.rsplit(':').next().is_some_and(|it| it.parse::<u16>().is_ok());
    let address = if has_port { server.to_owned() } else { format!("{server}:80") };
    let stream = connect(&address.to_socket_addrs()?.collect::<Vec<_>>(), until)?;
    let (method, target) =
        (if body.is_empty() { "GET" } else { "POST" }, url.text().split_off(url.origin.len()));
    let slash = if target.starts_with('/') { "" } else { "/" };
    let headers: Vec<_> = headers.iter().map(|header| format!("{header}\r\n")).collect();
    let (headers, length) = (headers.concat(), body.len());
    stream.set_write_timeout(Some(left(until)?))?;
    (&stream).write_all(
        format!(
            "{method} {slash}{target} HTTP/1.1\r\nHost: {server}\r\n{AGENT}\r\n{headers}\
             Connection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .as_bytes(),
    )?;
    stream.set_read_timeout(Some(left(until)?))?;
    let line = BufReader::new(stream.take(1024)).split(b'\n').next().transpose()?;
    let line = String::from_utf8_lossy(line.as_deref().unwrap_or_default());
    let words = line.strip_prefix("HTTP/").map(str::split_whitespace);
    let status = words.and_then(|mut words| words.nth(1)?.parse().ok());
    status.ok_or_else(|| io::Error::other("the answer is not one of HTTP"))
}

/// Returns the status of the answer. URL, headers and body are not in the arguments, which all users
/// can read.
fn by_curl(request: &Request, until: Instant) -> io::Result<u16> {
    let quoted = |it: &str| it.replace('\\', "\\\\").replace('"', "\\\"");
    let time = left(until)?.as_secs_f32();
    let mut config = format!("max-time = {time}\nurl = \"{}\"\n", quoted(&request.url.text()));
    config += "globoff\nsilent\nshow-error\noutput = /dev/null\nwrite-out = \"%{http_code}\"\n";
    // Curl would wait for an answer to `Expect`.
    for header in request.headers.iter().map(String::as_str).chain([AGENT, "Expect:"]) {
        config += &format!("header = \"{}\"\n", quoted(header));
    }
    // The body could be too long for a line of the configuration.
    let mut body = File::from(memfd_create(c"body", MFdFlags::empty())?);
    if !request.body.is_empty() {
        body.write_all(request.body.as_bytes())?;
        config += &format!("data-binary = \"@/proc/self/fd/{}\"\n", body.as_raw_fd());
    }
    let mut command = Command::new(CURL);
    command.args(["-q", "-K", "-"]).stdin(Stdio::piped());
    let started = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = started.map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            io::Error::other("`curl`, which sends to https://, is not installed")
        }
        _ => error,
    })?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(config.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    match String::from_utf8_lossy(&output.stdout).parse() {
        // The rest of an answer may be lost.
        Ok(status) if output.status.success() || matches!(status, 200..=299) => Ok(status),
        _ => {
            let errors = String::from_utf8_lossy(&output.stderr);
            Err(io::Error::other(errors.lines().next().unwrap_or("curl failed").to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use nix::sys::socket::{Backlog, listen};

    use super::*;

    #[test]
    fn answers_may_be_odd() {
        for (answer, expected) in [
            (&b"HTTP/1.1 200 OK\r\n\r\n"[..], Ok(())),
            (b"HTTP/1.1 200\r\n\r\n", Ok(())),
            (b"HTTP/1.0  204 gut f\xfcr Sie\r\n\r\n", Ok(())),
            (b"HTTP/1.1 503 x\r\n\r\n", Err("the server answered 503".to_owned())),
            (b"SSH-2.0\r\n", Err("the answer is not one of HTTP".to_owned())),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let url = format!("http://{}", listener.local_addr().expect("an address"));
            let url = Url::parse(&url).expect("a URL");
            let request = Request { url, headers: Vec::new(), body: String::new(), count: 1 };
            let server = std::thread::spawn(move || {
                let mut stream = listener.accept().expect("a client").0;
                let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
                lines.find(String::is_empty).expect("a whole request");
                stream.write_all(answer).expect("a reader");
            });
            let until = Instant::now() + Duration::from_secs(60);
            assert_eq!(send(&request, until), expected, "{}", answer.escape_ascii());
            server.join().expect("a server");
        }
    }

    #[test]
    fn each_address_gets_time() {
        let hanging = TcpListener::bind("127.0.0.1:0").expect("a port");
        listen(&hanging, Backlog::new(0).expect("a number")).expect("a listener");
        let hangs = hanging.local_addr().expect("an address");
        // Fills the queue, so that further connections wait.
        let brief = Duration::from_millis(100);
        let connections = (0..10).map(|_| TcpStream::connect_timeout(&hangs, brief));
        let queued: Vec<_> = connections.take_while(Result::is_ok).collect();
        assert!(queued.len() < 10);
        let good = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = good.local_addr().expect("an address");
        let until = Instant::now() + Duration::from_secs(2);
        let stream = connect(&[hangs, address], until).expect("a connection");
        assert_eq!(stream.peer_addr().expect("an address"), address);
    }

    #[test]
    fn urls_have_parts() {
        let with = |text| Url::parse(text).map(|url| url.with("/fail", "a=b").text());
        assert_eq!(with("http://h").as_deref(), Some("http://h/fail?a=b"));
        assert_eq!(with("http://[::1]:80/p/?c#f").as_deref(), Some("http://[::1]:80/p/fail?c&a=b"));
        assert_eq!(with("https://u:p@h?c=1").as_deref(), Some("https://u:p@h/fail?c=1&a=b"));
        let shown = |text| Url::parse(text).map(|url| url.shown());
        assert_eq!(shown("https://u:p@q@h:1/x@y?c=1").as_deref(), Some("https://h:1"));
        assert_eq!(shown("http://h/x@y").as_deref(), Some("http://h"));
        for text in
            ["", "h", "ftp://h", "http://", "http:///p", "https://?q", "http://h/ p", "http://h\n"]
        {
            assert_eq!(with(text), None, "{text:?}");
        }
        assert_eq!(with("http://u:p@h/"), None);
    }
}
