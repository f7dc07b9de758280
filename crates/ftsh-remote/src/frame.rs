//! How messages are laid out between a head and a node.

use std::marker::PhantomData;

use bstr::ByteSlice;
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// How each begins. Whatever changes in what they hold is another program, which the first one says.
const MARK: &[u8; 8] = b"\x1eftsh 1\n";
/// What the mark begins with in every version.
const NAME: &[u8] = b"\x1eftsh ";
/// How much is kept of what is no message.
const MAX_PREAMBLE: usize = 4096;
/// The mark, the length of what it holds, a checksum.
const HEAD: usize = MARK.len() + 4 + 4;
/// What a message can hold: variables that are used as files travel whole.
const LONGEST: usize = 1 << 30;

/// What can't be read as a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("what came isn't what was sent")]
pub struct BadFrame;

/// A message as bytes; none if it is too long.
pub fn frame(message: &impl Serialize) -> Option<Vec<u8>> {
    let content = postcard::to_allocvec(message).ok().filter(|it| it.len() <= LONGEST)?;
    let mut bytes = Vec::with_capacity(HEAD + content.len());
    bytes.extend(MARK);
    bytes.extend((content.len() as u32).to_le_bytes());
    bytes.extend(crc32fast::hash(&content).to_le_bytes());
    bytes.extend(content);
    Some(bytes)
}

/// Reads messages as they come in, in whatever pieces.
#[derive(Debug)]
pub struct Frames<Message> {
    bytes: Vec<u8>,
    /// The last of what was skipped.
    preamble: Vec<u8>,
    message: PhantomData<Message>,
}

impl<Message> Default for Frames<Message> {
    fn default() -> Self {
        Self { bytes: Vec::new(), preamble: Vec::new(), message: PhantomData }
    }
}

impl<Message: DeserializeOwned> Frames<Message> {
    /// Takes what has come.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next message, if all of it is there.
    pub fn message(&mut self) -> Result<Option<Message>, BadFrame> {
        let begins = self.bytes.windows(MARK.len()).position(|bytes| bytes == MARK);
        let Some(begins) = begins else {
            // The end may be the beginning of a mark.
            let preamble = self.bytes.len().saturating_sub(MARK.len() - 1);
            if self.bytes.find(NAME).is_some_and(|begins| begins < preamble) {
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
        if length > LONGEST {
            return Err(BadFrame);
        }
        let Some(content) = self.bytes.get(HEAD..HEAD + length) else { return Ok(None) };
        if crc32fast::hash(content) != checksum {
            return Err(BadFrame);
        }
        let message = postcard::from_bytes(content).map_err(|_| BadFrame)?;
        self.bytes.drain(..HEAD + length);
        Ok(Some(message))
    }

    /// The last of what has come that is no message.
    pub fn preamble(&self) -> Vec<u8> {
        [&self.preamble[..], &self.bytes].concat()
    }

    fn skip(&mut self, length: usize) {
        self.preamble.extend(self.bytes.drain(..length));
        let old = self.preamble.len().saturating_sub(MAX_PREAMBLE);
        self.preamble.drain(..old);
    }

    /// What has come after the last message.
    pub fn into_rest(self) -> Vec<u8> {
        self.bytes
    }
}
