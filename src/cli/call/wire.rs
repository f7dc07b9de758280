//! Packets over one TCP connection between a head and its job, which both know a one-time word.
//!
//! The word never crosses the network. Each side proves with a digest of two random numbers that it
//! knows the word. Each packet ends with a digest of its number and its content, so a packet that was
//! changed, repeated or inserted on the way breaks the connection. The content is readable.

use std::ffi::OsStr;
use std::fmt;
use std::hash::Hasher;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{KeepAlive, TcpKeepIdle, TcpUserTimeout};
use siphasher::sip128::{Hasher128, SipHasher24};

use crate::cli::messages::usage;
use ftsh_process::random;
use ftsh_syntax::slug::Slug;
use ftsh_sys::os_error::plain;

/// Maximum time of a greeting at the head, which greets one connection after the other.
const HEAD_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum time for connecting, and of a greeting on a node. The head may greet strangers before.
const NODE_TIMEOUT: Duration = Duration::from_secs(60);
/// Time without an answer after which the connection is broken, in milliseconds.
const SILENCE: u32 = 90_000;
/// Time without packets after which the system probes the connection, in seconds.
const PROBE_AFTER: u32 = 30;

type Key = [u8; 16];

/// Labels of digests: the proof and the packets of each side.
const HEAD: [&[u8]; 2] = [b"head proof", b"head packet"];
const NODE: [&[u8]; 2] = [b"node proof", b"node packet"];

/// Returns the digest of some parts. Only the last part has a variable length.
fn digest(key: &Key, parts: [&[u8]; 3]) -> Key {
    let mut hasher = SipHasher24::new_with_key(key);
    for part in parts {
        hasher.write(part);
    }
    hasher.finish128().as_bytes()
}

fn new_key() -> io::Result<Key> {
    Ok((u128::from(random()?) << 64 | u128::from(random()?)).to_be_bytes())
}

/// Address of a head with the one-time word, written as `IP:PORT/WORD`.
pub(super) struct Home {
    pub address: SocketAddr,
    word: Key,
}

impl fmt::Display for Home {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}/{:032x}", self.address, u128::from_be_bytes(self.word))
    }
}

impl Home {
    pub(super) fn new(address: SocketAddr) -> io::Result<Self> {
        Ok(Self { address, word: new_key()? })
    }

    /// Parses a home, or the content of the file after `@`.
    pub(super) fn read(text: &OsStr) -> Result<Self> {
        let mut text = text.to_string_lossy().into_owned();
        if let Some(file) = text.strip_prefix('@') {
            text = std::fs::read_to_string(file)
                .map_err(|error| anyhow!("can't read `{file}`: {}", plain(&error)))?;
        }
        let parse = |(address, word): (&str, &str)| {
            let word = u128::from_str_radix(word, 16).ok()?.to_be_bytes();
            Some(Self { address: address.parse().ok()?, word })
        };
        // The message does not show the text, which is secret.
        let message = "`--call-home` needs the value of `FTSH_CALL_HOME`, or `@FILE`";
        let home = text.trim().split_once('/').and_then(parse);
        home.ok_or_else(|| usage(Slug::OptionValue, message))
    }

    /// Calls the head. Returns none if the head is gone or has had a call.
    pub(super) fn call(&self) -> Result<Option<(Half, Half)>> {
        match TcpStream::connect_timeout(&self.address, NODE_TIMEOUT) {
            Ok(stream) => Ok(self.greet(stream, NODE, HEAD, NODE_TIMEOUT).ok()),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(None),
            Err(error) => Err(anyhow!("can't connect to {}: {}", self.address, plain(&error))),
        }
    }

    /// Greets a connection at the head. Returns halves for sending and receiving.
    pub(super) fn accept(&self, stream: TcpStream) -> io::Result<(Half, Half)> {
        self.greet(stream, HEAD, NODE, HEAD_TIMEOUT)
    }

    fn greet(
        &self,
        mut stream: TcpStream,
        ours: [&[u8]; 2],
        theirs: [&[u8]; 2],
        timeout: Duration,
    ) -> io::Result<(Half, Half)> {
        stream.set_nodelay(true)?;
        let until = Instant::now() + timeout;
        let receive = |stream: &mut TcpStream| {
            let mut bytes = Key::default();
            for byte in bytes.chunks_mut(1) {
                // No time left is an error.
                stream.set_read_timeout(Some(until.saturating_duration_since(Instant::now())))?;
                stream.read_exact(byte)?;
            }
            Ok::<_, io::Error>(bytes)
        };
        // The connection breaks soon after the other machine is gone.
        setsockopt(&stream, KeepAlive, &true)?;
        setsockopt(&stream, TcpKeepIdle, &PROBE_AFTER)?;
        setsockopt(&stream, TcpUserTimeout, &SILENCE)?;
        let nonce = new_key()?;
        stream.write_all(&nonce)?;
        let mut nonces = [nonce, receive(&mut stream)?];
        if ours == NODE {
            nonces.reverse();
        }
        let key = |label| digest(&self.word, [&nonces[0], &nonces[1], label]);
        stream.write_all(&key(ours[0]))?;
        if receive(&mut stream)? != key(theirs[0]) {
            return Err(ErrorKind::PermissionDenied.into());
        }
        stream.set_read_timeout(None)?;
        let sender = Half { stream: stream.try_clone()?, key: key(ours[1]), count: 0 };
        Ok((sender, Half { stream, key: key(theirs[1]), count: 0 }))
    }
}

fn receive(stream: &mut TcpStream) -> io::Result<Key> {
    let mut bytes = Key::default();
    stream.read_exact(&mut bytes).map(|()| bytes)
}

/// Kind of a packet. Each packet also has the number of a stream, as descriptors are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketKind {
    /// Bytes of a stream; none at its end.
    Data,
    /// Confirmation that the reader of a stream has taken one packet.
    Credit,
    /// End of the reader of a stream.
    Closed,
    /// End of the command. The number is the exit status.
    Ended,
}

/// One direction of a connection.
pub(super) struct Half {
    stream: TcpStream,
    key: Key,
    /// Number of packets so far.
    count: u64,
}

impl Half {
    fn seal(&mut self, header: [u8; 4], content: &[u8]) -> Key {
        self.count += 1;
        digest(&self.key, [&self.count.to_be_bytes(), &header, content])
    }

    /// Sends a packet of less than 64 KiB. Blocks while the network accepts nothing.
    pub(super) fn send(&mut self, kind: PacketKind, number: u8, content: &[u8]) -> io::Result<()> {
        let [high, low] = (content.len() as u16).to_be_bytes();
        let header = [kind as u8, number, high, low];
        let seal = self.seal(header, content);
        self.stream.write_all(&[&header[..], content, &seal].concat())
    }

    pub(super) fn receive(&mut self) -> io::Result<(PacketKind, u8, Vec<u8>)> {
        let mut header = [0; 4];
        self.stream.read_exact(&mut header)?;
        let [kind, number, high, low] = header;
        let mut content = vec![0; u16::from_be_bytes([high, low]).into()];
        self.stream.read_exact(&mut content)?;
        let is_sealed = receive(&mut self.stream)? == self.seal(header, &content);
        let kinds = [PacketKind::Data, PacketKind::Credit, PacketKind::Closed, PacketKind::Ended];
        let kind = kinds.into_iter().find(|it| is_sealed && *it as u8 == kind);
        Ok((kind.ok_or(ErrorKind::InvalidData)?, number, content))
    }

    /// Ends this direction. The other side first receives all packets.
    pub(super) fn close(&self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};
    use std::thread::{scope, sleep, spawn};

    use super::*;

    /// Returns the halves of both ends of a connection, after the call of a stranger.
    fn joined() -> ((Half, Half), (Half, Half)) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let home = Home::new(listener.local_addr().expect("an address")).expect("a word");
        let same = Home::read(OsStr::new(&format!("{home}\n"))).expect("the home");
        let stranger = Home::new(home.address).expect("a word");
        let accept = || home.accept(listener.accept().expect("a connection").0);
        let call = |home: &Home| home.call().expect("a connection");
        scope(|scope| {
            let node = scope.spawn(|| (call(&stranger), call(&same)));
            assert!(accept().is_err());
            let head = accept().expect("a greeting");
            let (stranger, node) = node.join().expect("no panic");
            assert!(stranger.is_none());
            (head, node.expect("a greeting"))
        })
    }

    #[test]
    fn packets_arrive_both_ways() {
        let (mut head, mut node) = joined();
        head.0.send(PacketKind::Data, 0, &[7; 1 << 10]).expect("sent");
        head.0.send(PacketKind::Closed, 2, &[]).expect("sent");
        node.0.send(PacketKind::Ended, 255, &[]).expect("sent");
        assert_eq!(node.1.receive().expect("a packet"), (PacketKind::Data, 0, vec![7; 1 << 10]));
        assert_eq!(node.1.receive().expect("a packet"), (PacketKind::Closed, 2, vec![]));
        assert_eq!(head.1.receive().expect("a packet"), (PacketKind::Ended, 255, vec![]));
        head.0.close();
        assert!(node.1.receive().is_err());
    }

    #[test]
    fn a_greeting_that_drips_is_given_up() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let home = Home::new(listener.local_addr().expect("an address")).expect("a word");
        let mut stranger = TcpStream::connect(home.address).expect("a connection");
        let dripping = spawn(move || {
            while stranger.write_all(&[7]).is_ok() {
                sleep(Duration::from_millis(100));
            }
        });
        let error = home.accept(listener.accept().expect("a connection").0).err();
        // The end of all bytes of a greeting would be a wrong proof.
        assert_ne!(error.map(|error| error.kind()), Some(ErrorKind::PermissionDenied));
        dripping.join().expect("no panic");
    }

    #[test]
    fn a_repeated_or_changed_packet_breaks_the_connection() {
        let (mut head, mut node) = joined();
        head.0.send(PacketKind::Ended, 0, &[]).expect("sent");
        head.0.count = 0;
        head.0.send(PacketKind::Ended, 0, &[]).expect("sent");
        assert_eq!(node.1.receive().expect("a packet"), (PacketKind::Ended, 0, vec![]));
        assert!(node.1.receive().is_err());
        let (mut head, mut node) = joined();
        head.0.key[0] ^= 1;
        head.0.send(PacketKind::Ended, 0, &[]).expect("sent");
        assert!(node.1.receive().is_err());
    }

    #[test]
    fn a_home_is_an_address_and_a_word() {
        for text in ["", "127.0.0.1:1", "/0", "127.0.0.1:1/", "127.0.0.1:1/x", "127.0.0.1/1", "@"] {
            assert!(Home::read(OsStr::new(text)).is_err(), "{text}");
        }
        assert!(Home::read(OsStr::new("[::1]:80/00ff")).is_ok());
    }
}
