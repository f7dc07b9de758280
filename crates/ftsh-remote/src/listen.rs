//! Separation of a branch's standard error from the lines of the node.

use bstr::ByteSlice;

use super::line::{NodeLine, prefix};
use super::nonce::Nonce;

/// Maximum length of a node's line.
const MAX_LINE: usize = 1 << 24;

/// Part of the received bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Output of the branch.
    Printed(Vec<u8>),
    /// Line of the node.
    Line(NodeLine),
}

/// Decoder of a node's standard error.
///
/// Output of the branch is returned at once, except for bytes that may begin a line of the node. A
/// damaged line is dropped, since only the node knows the prefix.
#[derive(Debug)]
pub struct Listener {
    prefix: Vec<u8>,
    /// Number of bytes of the prefix that match the last received bytes.
    matched: usize,
    /// Bytes of the node's line after the prefix, if a line has begun.
    line: Option<Vec<u8>>,
    /// True after the end of the output, which only files follow.
    has_ended: bool,
}

impl Listener {
    /// Creates a decoder of lines with a nonce.
    pub fn new(nonce: &Nonce) -> Self {
        Self { prefix: prefix(nonce).into_bytes(), matched: 0, line: None, has_ended: false }
    }

    /// Decodes received bytes.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut printed = Vec::new();
        let mut rest = bytes;
        loop {
            if self.has_ended {
                printed.extend_from_slice(rest);
                break;
            }
            if self.line.is_none() && self.matched == 0 {
                // Fast path: nearly all bytes are output.
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

    /// Returns the bytes that were held back, at the end of the stream.
    pub fn end(&mut self) -> Vec<u8> {
        self.line = None;
        self.prefix[..std::mem::take(&mut self.matched)].to_vec()
    }

    fn take(&mut self, byte: u8, printed: &mut Vec<u8>, pieces: &mut Vec<Piece>) {
        let Some(line) = &mut self.line else { return self.search(byte, printed) };
        if byte == b'\n' {
            let line = NodeLine::decode(line);
            self.line = None;
            self.has_ended = line == Some(NodeLine::OutputEnded);
            flush(printed, pieces);
            pieces.extend(line.map(Piece::Line));
        } else if byte.is_ascii_alphanumeric() && line.len() < MAX_LINE {
            line.push(byte);
        } else {
            self.line = None;
            self.search(byte, printed);
        }
    }

    /// Handles a byte outside of the node's lines.
    fn search(&mut self, byte: u8, printed: &mut Vec<u8>) {
        if byte != self.prefix[self.matched] {
            // The first byte of the prefix is unique: no held byte can begin another prefix.
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
