//! Tells what a branch prints on standard error from what its node says there.

use bstr::ByteSlice;

use super::line::{self, prefix};
use super::nonce::Nonce;
use super::record::Record;
use super::request::Request;

/// A node's line is never longer than that.
const LONGEST: usize = 1 << 24;

/// What was heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// What the branch has printed.
    Printed(Vec<u8>),
    /// How it ended.
    Record(Box<Record>),
    /// That the node asks for more time.
    Request(Request),
    /// That it doesn't begin.
    TooLate,
}

impl Piece {
    /// What a line of the node's tells.
    fn of(line: &[u8]) -> Option<Self> {
        let (kind, content) = line::read(line)?;
        match kind {
            line::RECORD => postcard::from_bytes(&content).ok().map(Box::new).map(Self::Record),
            line::TOO_LATE => Some(Self::TooLate),
            line::REQUEST => postcard::from_bytes(&content).ok().map(Self::Request),
            _ => None,
        }
    }
}

/// Listens to a node's standard error, as it comes. What the branch prints is passed on at once, but for
/// what may be the beginning of a line of the node's. A line that isn't whole is dropped: nobody else
/// knows how it begins.
#[derive(Debug)]
pub struct Listener {
    prefix: Vec<u8>,
    /// How much of the prefix has come last.
    matched: usize,
    /// What has come of the node's line after the prefix, if one has begun.
    line: Option<Vec<u8>>,
}

impl Listener {
    /// A listener for lines with this nonce.
    pub fn new(nonce: &Nonce) -> Self {
        Self { prefix: prefix(nonce).into_bytes(), matched: 0, line: None }
    }

    /// What these bytes have to say.
    pub fn hear(&mut self, bytes: &[u8]) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut printed = Vec::new();
        let mut rest = bytes;
        loop {
            if self.line.is_none() && self.matched == 0 {
                // Nearly all there is.
                let begins = rest.find_byte(self.prefix[0]).unwrap_or(rest.len());
                printed.extend_from_slice(&rest[..begins]);
                rest = &rest[begins..];
            }
            let Some((byte, after)) = rest.split_first() else { break };
            rest = after;
            self.take(*byte, &mut printed, &mut pieces);
        }
        flush(&mut printed, &mut pieces);
        pieces
    }

    /// What was held back, when nothing more comes.
    pub fn end(&mut self) -> Vec<u8> {
        self.line = None;
        self.prefix[..std::mem::take(&mut self.matched)].to_vec()
    }

    fn take(&mut self, byte: u8, printed: &mut Vec<u8>, pieces: &mut Vec<Piece>) {
        let Some(line) = &mut self.line else { return self.search(byte, printed) };
        if byte == b'\n' {
            let told = Piece::of(line);
            self.line = None;
            flush(printed, pieces);
            pieces.extend(told);
        } else if byte.is_ascii_alphanumeric() && line.len() < LONGEST {
            line.push(byte);
        } else {
            self.line = None;
            self.search(byte, printed);
        }
    }

    /// A byte outside of the node's lines.
    fn search(&mut self, byte: u8, printed: &mut Vec<u8>) {
        if byte != self.prefix[self.matched] {
            // Its first byte is there only once: nothing of what was held can be another beginning.
            printed.extend_from_slice(&self.prefix[..self.matched]);
            self.matched = 0;
        }
        if byte == self.prefix[self.matched] {
            self.matched += 1;
        } else {
            printed.push(byte);
        }
        if self.matched == self.prefix.len() {
            self.matched = 0;
            self.line = Some(Vec::new());
        }
    }
}

fn flush(printed: &mut Vec<u8>, pieces: &mut Vec<Piece>) {
    if !printed.is_empty() {
        pieces.push(Piece::Printed(std::mem::take(printed)));
    }
}
