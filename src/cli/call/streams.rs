//! Three streams over one connection. Each stream has a window of packets, so a slow reader holds up
//! only its stream, and neither side keeps more than a window of each stream in memory.

use std::io::{Error, ErrorKind, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, spawn};

use super::wire::{Half, PacketKind};
use crate::cli::messages::print_message;
use ftsh_syntax::slug::Slug;
use ftsh_sys::os_error::plain;

/// Maximum number of bytes in a packet.
const MAX_DATA: usize = 1 << 15;
/// Maximum number of packets of a stream that its reader has not taken.
const WINDOW: usize = 8;

/// Pieces of a stream for the thread that writes them.
pub(super) type Sink = Option<Sender<Vec<u8>>>;

/// Sending side of a connection.
pub(super) struct Streams {
    sender: Mutex<Half>,
    /// Number of packets that may be sent of each stream. None after the end of its reader.
    credits: Mutex<[Option<usize>; 3]>,
    changed: Condvar,
    /// True when content of a stream was lost.
    has_failed: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Streams {
    /// Creates the streams of a connection. They live as long as the process.
    pub(super) fn new(sender: Half) -> &'static Self {
        let (sender, credits) = (Mutex::new(sender), Mutex::new([Some(WINDOW); 3]));
        let (changed, has_failed) = (Condvar::new(), AtomicBool::new(false));
        Box::leak(Box::new(Self { sender, credits, changed, has_failed }))
    }

    /// Returns true if content of a stream was lost.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::SeqCst)
    }

    fn fail(&self, slug: Slug, verb: &str, stream: u8, error: &Error) {
        self.has_failed.store(true, Ordering::SeqCst);
        let name = ["input", "output", "error"][usize::from(stream)];
        print_message(slug, format!("can't {verb} standard {name}: {}", plain(error)));
    }

    /// Sends a packet. Returns none if the connection is broken.
    pub(super) fn send(&self, kind: PacketKind, number: u8, content: &[u8]) -> Option<()> {
        lock(&self.sender).send(kind, number, content).ok()
    }

    /// Sends the exit status, and ends the sending side.
    pub(super) fn end(&self, code: u8) {
        self.send(PacketKind::Ended, code, &[]);
        lock(&self.sender).close();
    }

    /// Takes the right to send a packet. Returns none if the stream has no reader any more.
    fn take_credit(&self, stream: u8) -> Option<()> {
        let stream = usize::from(stream);
        let credits = self.changed.wait_while(lock(&self.credits), |it| it[stream] == Some(0));
        credits.unwrap_or_else(PoisonError::into_inner)[stream].as_mut().map(|credit| *credit -= 1)
    }

    /// Sends all that can be read and then the end, in a thread of its own.
    pub(super) fn carry(
        &'static self,
        stream: u8,
        mut from: impl Read + Send + 'static,
    ) -> JoinHandle<()> {
        let mut room = vec![0; MAX_DATA];
        spawn(move || {
            while self.take_credit(stream).is_some() {
                let read = loop {
                    match from.read(&mut room) {
                        Err(error) if error.kind() == ErrorKind::Interrupted => {}
                        // A closed stream is empty.
                        Err(error) if error.raw_os_error() == Some(libc::EBADF) => break 0,
                        Err(error) => {
                            self.fail(Slug::System, "read", stream, &error);
                            // The end of the stream alone would look like the end of its content.
                            return self.end(1);
                        }
                        Ok(read) => break read,
                    }
                };
                if self.send(PacketKind::Data, stream, &room[..read]).is_none() || read == 0 {
                    break;
                }
            }
        })
    }

    /// Writes all pieces of the sink, in a thread of its own. Drops the writer at the end.
    pub(super) fn deliver(
        &'static self,
        stream: u8,
        mut to: impl Write + Send + 'static,
    ) -> (Sink, JoinHandle<()>) {
        let (sink, pieces) = channel::<Vec<u8>>();
        let thread = spawn(move || {
            for piece in pieces.iter().take_while(|piece| !piece.is_empty()) {
                if let Err(error) = to.write_all(&piece).and_then(|()| to.flush()) {
                    if error.kind() != ErrorKind::BrokenPipe {
                        self.fail(Slug::Output, "write to", stream, &error);
                    }
                    self.send(PacketKind::Closed, stream, &[]);
                    break;
                }
                self.send(PacketKind::Credit, stream, &[]);
            }
        });
        (Some(sink), thread)
    }

    /// Receives until the command ends. Returns no status if the connection breaks before.
    pub(super) fn receive(&self, mut receiver: Half, sinks: [Sink; 3]) -> (Option<u8>, [Sink; 3]) {
        let status = loop {
            let Ok((kind, number, content)) = receiver.receive() else { break None };
            let stream = usize::from(number) % sinks.len();
            let credit = &mut lock(&self.credits)[stream];
            match kind {
                // Nobody takes pieces after the end of the stream's reader.
                PacketKind::Data => drop(sinks[stream].as_ref().map(|sink| sink.send(content))),
                PacketKind::Credit => *credit = credit.map(|credit| credit + 1),
                PacketKind::Closed => *credit = None,
                PacketKind::Ended => break Some(number),
            }
            self.changed.notify_all();
        };
        // The threads of sent streams end.
        *lock(&self.credits) = [None; 3];
        self.changed.notify_all();
        (status, sinks)
    }
}
