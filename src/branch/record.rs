//! What comes back of a branch: how it ended.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::nonce::Nonce;
use crate::machine::packed::{BranchEnd, EndedBranch, PackedFailure, Text};
use crate::machine::{Failure, failure};
use crate::syntax::Source;

/// How a line of the node's begins, before the nonce. No terminal shows it, and no text has it.
const MARK: &str = "\x1eftsh:";
/// What stands for a record after the nonce.
const RECORD: char = 'r';
/// More isn't told of a failure's branches and output.
const LONGEST: usize = 1 << 22;

/// How a branch ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// How, and after how many attempts.
    pub ended: EndedBranch,
    /// The machine that it ran on.
    pub node: String,
    /// When it began there, since 1970.
    pub began: Duration,
    /// How long it took, until nothing of it was left.
    pub elapsed: Duration,
}

/// How a node's line begins that a head takes for its own.
pub fn prefix(nonce: &Nonce) -> String {
    format!("{MARK}{nonce}:")
}

impl Record {
    /// The line that tells it.
    pub fn to_line(&self, nonce: &Nonce) -> String {
        let mut content = postcard::to_allocvec(self).unwrap_or_default();
        if content.len() > LONGEST {
            content = postcard::to_allocvec(&self.clone().shortened()).unwrap_or_default();
        }
        let mut line = format!("{}{RECORD}{:08x}", prefix(nonce), crc32fast::hash(&content));
        for byte in content {
            // Writing to a string can't fail.
            let _ = write!(line, "{byte:02x}");
        }
        line.push('\n');
        line
    }

    /// What a line tells between the prefix and its end, if it is a record and whole.
    pub fn read(line: &[u8]) -> Option<Self> {
        let (kind, rest) = line.split_first()?;
        if char::from(*kind) != RECORD || rest.len() % 2 != 0 {
            return None;
        }
        let digit = |byte: &u8| Some(char::from(*byte).to_digit(16)? as u8);
        let byte = |pair: &[u8]| Some(digit(pair.first()?)? << 4 | digit(pair.get(1)?)?);
        let bytes: Vec<u8> = rest.chunks(2).map(byte).collect::<Option<_>>()?;
        let (checksum, content) = bytes.split_first_chunk::<4>()?;
        if u32::from_be_bytes(*checksum) != crc32fast::hash(content) {
            return None;
        }
        postcard::from_bytes(content).ok()
    }

    /// The failure that it tells of, if it does, in the texts that the branch went with and its own.
    pub fn failure(&self, texts: &[Text]) -> Option<Arc<Failure>> {
        let (BranchEnd::Failed { failure: packed, .. } | BranchEnd::OutOfTime(packed)) =
            &self.ended.end
        else {
            return None;
        };
        let texts = texts.iter().chain(&self.ended.texts);
        let sources: Vec<_> =
            texts.map(|it| Arc::new(Source::new(&it.name, it.text.as_str()))).collect();
        failure(packed.clone(), &sources)
    }

    /// Without what can be long.
    fn shortened(mut self) -> Self {
        if let BranchEnd::Failed { failure, .. } | BranchEnd::OutOfTime(failure) =
            &mut self.ended.end
        {
            for failure in failure {
                let PackedFailure { branches, output, .. } = failure;
                *output = None;
                if let Some(branches) = branches {
                    (branches.succeeded, branches.others) = (None, None);
                }
            }
        }
        for text in &mut self.ended.texts {
            text.text.clear();
        }
        self
    }
}
