//! Identity of a command across runs.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::{Deserialize, Serialize};

/// Identity of a command across runs: its place in the script and its repetition there.
///
/// Branches run in any order, so their commands are told apart by their words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CommandId {
    /// Line of the script, from 1.
    pub line: u32,
    /// Hash of the words; none if the words vary from run to run.
    pub words: Option<u64>,
    /// Number of earlier commands with the same line and words.
    pub repetition: u32,
}

/// Counter of commands, which gives each its identity.
#[derive(Debug, Default)]
pub(crate) struct CommandCounter(BTreeMap<(u32, Option<u64>), u32>);

impl CommandCounter {
    /// Returns the identities of the next command, with and without its words.
    pub(crate) fn next(&mut self, line: u32, words: u64) -> [CommandId; 2] {
        [Some(words), None].map(|words| {
            let count = self.0.entry((line, words)).or_default();
            *count += 1;
            CommandId { line, words, repetition: *count - 1 }
        })
    }
}

/// Returns the hash of the words of a command, the same in each process.
pub(crate) fn hash(words: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    words.hash(&mut hasher);
    hasher.finish()
}
