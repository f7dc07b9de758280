//! Lines of a node among the output of its branch. Each has a mark with the nonce, a checksum, and
//! bytes as hexadecimal digits.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::nonce::Nonce;
use ftsh_machine::packed::{EndedBranch, PackedFailure};
use ftsh_syntax::Source;

/// First bytes of each line, before the nonce. No terminal displays the first byte, and no text
/// contains the byte.
const MARK: &str = "\x1eftsh:";
/// Maximum length of a record with the branches and outputs of failures.
const MAX_RECORD: usize = 1 << 22;

/// Line of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NodeLine {
    /// Result of the branch.
    Record(Box<BranchRecord>),
    /// Request for more time, with the time of the request on the node's clock. The answer repeats
    /// the time, and the head does not interpret the time.
    Request(Duration),
    /// End of the branch's standard output, on that stream.
    OutputEnded,
    /// *Go* came after the end of the lease: the branch does not begin.
    TooLate,
}

/// Result of a branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchRecord {
    /// Result and number of attempts.
    pub ended: EndedBranch,
    /// Node that the branch ran on.
    pub node: String,
    /// Start of the branch on the node, since 1970.
    pub began: Duration,
    /// Time from the start until no process of the branch was left.
    pub elapsed: Duration,
    /// Reason why a successful branch cannot give its files.
    pub no_gifts: Option<String>,
}

impl NodeLine {
    /// Encodes the line. All lines but a record are short: a single write succeeds completely or not
    /// at all.
    pub fn encode(mut self, nonce: &Nonce) -> String {
        let mut content = postcard::to_allocvec(&self).unwrap_or_default();
        if let Self::Record(record) = &mut self
            && content.len() > MAX_RECORD
        {
            record.shorten();
            content = postcard::to_allocvec(&self).unwrap_or_default();
        }
        let mut line = format!("{}{:08x}", prefix(nonce), crc32fast::hash(&content));
        for byte in content {
            // Writing to a string cannot fail.
            let _ = write!(line, "{byte:02x}");
        }
        line.push('\n');
        line
    }

    /// Decodes a line without prefix and line break. Returns none if the line is damaged.
    pub(crate) fn decode(line: &[u8]) -> Option<Self> {
        if !line.len().is_multiple_of(2) {
            return None;
        }
        let digit = |byte: &u8| Some(char::from(*byte).to_digit(16)? as u8);
        let byte = |pair: &[u8]| Some(digit(pair.first()?)? << 4 | digit(pair.get(1)?)?);
        let bytes: Vec<u8> = line.chunks(2).map(byte).collect::<Option<_>>()?;
        let (expected, content) = bytes.split_first_chunk::<4>()?;
        let is_whole = u32::from_be_bytes(*expected) == crc32fast::hash(content);
        is_whole.then(|| postcard::from_bytes(content).ok()).flatten()
    }
}

impl BranchRecord {
    /// Removes the parts that may be long.
    fn shorten(&mut self) {
        self.ended.spans.shorten();
        for PackedFailure { failure, .. } in self.ended.end.failures_mut() {
            (failure.errors, failure.output) = (None, None);
            failure.branches = failure.branches.as_ref().map(|it| Arc::new(it.without_words()));
        }
        for text in &mut self.ended.texts {
            *text = Arc::new(Source::new(text.name(), ""));
        }
    }
}

/// Returns the first bytes of a node's line.
pub(crate) fn prefix(nonce: &Nonce) -> String {
    format!("{MARK}{nonce}:")
}
