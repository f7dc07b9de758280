//! Binary layout of the messages between a head and a node.

use std::marker::PhantomData;

use bstr::ByteSlice;
use postcard::ser_flavors::Size;
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// First bytes of each message. A different layout of the content means a different program, which
/// the message *hello* reports.
const MARK: &[u8; 8] = b"\x1eftsh 2\n";
/// First bytes of the mark in all versions.
pub(super) const FRAME_NAME: &[u8] = b"\x1eftsh ";
/// Maximum number of bytes kept of text before a message.
const MAX_PREAMBLE: usize = 4096;
/// Length of the mark, the length field and the checksum.
const HEADER_LENGTH: usize = MARK.len() + 4 + 4;
/// Maximum length of a content, in bytes. Variables that are used as files travel in one message.
const MAX_CONTENT: usize = 1 << 30;

/// Bytes that are no valid message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("what came isn't what was sent")]
pub struct BadFrame;

/// A message that cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a message is longer than {} MiB", MAX_CONTENT >> 20)]
pub struct MessageTooLong;

/// Returns a message as bytes.
pub fn frame(message: &impl Serialize) -> Result<Vec<u8>, MessageTooLong> {
    // Measured first: the memory may not hold a message that is too long.
    match postcard::serialize_with_flavor(message, Size::default()) {
        Ok(length) if length <= MAX_CONTENT => {}
        _ => return Err(MessageTooLong),
    }
    let content = postcard::to_allocvec(message).map_err(|_| MessageTooLong)?;
    let mut bytes = Vec::with_capacity(HEADER_LENGTH + content.len());
    bytes.extend(MARK);
    bytes.extend((content.len() as u32).to_le_bytes());
    bytes.extend(crc32fast::hash(&content).to_le_bytes());
    bytes.extend(content);
    Ok(bytes)
}

/// Decoder of messages that arrive in arbitrary pieces.
#[derive(Debug)]
pub struct Frames<Message> {
    bytes: Vec<u8>,
    /// Last skipped bytes.
    preamble: Vec<u8>,
    message: PhantomData<Message>,
}

impl<Message> Default for Frames<Message> {
    fn default() -> Self {
        Self { bytes: Vec::new(), preamble: Vec::new(), message: PhantomData }
    }
}

impl<Message: DeserializeOwned> Frames<Message> {
    /// Appends received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Decodes the next message. Returns none while the message is incomplete.
    pub fn message(&mut self) -> Result<Option<Message>, BadFrame> {
        let begins = self.bytes.windows(MARK.len()).position(|bytes| bytes == MARK);
        let Some(begins) = begins else {
            // The last bytes may be the beginning of a mark.
            let preamble = self.bytes.len().saturating_sub(MARK.len() - 1);
            if self.bytes.find(FRAME_NAME).is_some_and(|begins| begins < preamble) {
                return Err(BadFrame);
            }
            self.skip(preamble);
            return Ok(None);
        };
        self.skip(begins);
        let number = |at: usize| {
            let bytes = self.bytes.get(at..at + 4)?;
            Some(u32::from_le_bytes(bytes.try_into().ok()?))
        };
        let (Some(length), Some(checksum)) = (number(MARK.len()), number(MARK.len() + 4)) else {
            return Ok(None);
        };
        let length = length as usize;
        if length > MAX_CONTENT {
            return Err(BadFrame);
        }
        let Some(content) = self.bytes.get(HEADER_LENGTH..HEADER_LENGTH + length) else {
            return Ok(None);
        };
        if crc32fast::hash(content) != checksum {
            return Err(BadFrame);
        }
        let message = postcard::from_bytes(content).map_err(|_| BadFrame)?;
        self.bytes.drain(..HEADER_LENGTH + length);
        Ok(Some(message))
    }

    /// Returns the last received bytes that belong to no message.
    pub fn preamble(&self) -> Vec<u8> {
        [&self.preamble[..], &self.bytes].concat()
    }

    fn skip(&mut self, length: usize) {
        self.preamble.extend(self.bytes.drain(..length));
        let old = self.preamble.len().saturating_sub(MAX_PREAMBLE);
        self.preamble.drain(..old);
    }

    /// Returns the bytes after the last message.
    pub fn into_rest(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use serde::Serializer;

    use super::*;

    /// A message of so many MiB.
    struct Mebibytes(usize);

    impl Serialize for Mebibytes {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_seq(std::iter::repeat_n("x".repeat(1 << 20), self.0))
        }
    }

    #[test]
    fn a_message_that_is_too_long_is_an_error() {
        assert!(frame(&Mebibytes(3)).is_ok_and(|bytes| bytes.len() > 3 << 20));
        let error = frame(&Mebibytes(1 << 10)).expect_err("too long");
        assert_eq!(error.to_string(), "a message is longer than 1024 MiB");
    }
}
