//! Words of a `forall` that need not run, by `once in`.

use std::collections::BTreeMap;
use std::sync::Arc;

use bstr::{BString, ByteSlice};

use crate::effect::{Query, Umask, WordFile};
use crate::outputs::{escape_field, unescape_field};

/// Words that are recorded in a file, and words that the loop has begun.
#[derive(Debug)]
pub(crate) struct Once {
    path: BString,
    umask: Umask,
    /// Number of bytes of the file that were read.
    read: u64,
    /// Each word with the index of its branch, or without an index if the file already contained
    /// the word.
    known: BTreeMap<BString, Option<u64>>,
    repetitions: Arc<BTreeMap<u64, u64>>,
}

/// Result of the search for a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The word is to run.
    New,
    /// The file has the word.
    Recorded,
    /// The list contains the word at a lower index.
    Repeated,
}

impl Once {
    /// Returns the query that reads a file.
    pub(crate) fn reading(path: BString, umask: Umask) -> Query {
        Query::RecordedWords(Box::new(WordFile { path, umask, from: 0, line: None }))
    }

    /// Creates the state of a file with this content.
    pub(crate) fn new(path: BString, umask: Umask, content: &[u8]) -> Self {
        let mut once =
            Self { path, umask, read: 0, known: BTreeMap::new(), repetitions: Arc::default() };
        once.learn(0, content);
        once
    }

    /// Returns the query that appends a word, and the number of bytes read before.
    pub(crate) fn recording(&self, word: &[u8]) -> (Query, u64) {
        let (path, umask, from) = (self.path.clone(), self.umask, self.read);
        let line = Some(escape_field(word).into());
        (Query::RecordedWords(Box::new(WordFile { path, umask, from, line })), from)
    }

    /// Adds the words in the part of the file that begins at an offset. Another shell may have recorded
    /// words.
    pub(crate) fn learn(&mut self, from: u64, part: &[u8]) {
        self.read = self.read.max(from + part.len() as u64);
        for word in part.lines().filter_map(unescape_field) {
            self.known.entry(word).or_default();
        }
    }

    /// Decides about the word at an index of the list.
    pub(crate) fn find(&mut self, word: &[u8], place: u64) -> Place {
        match self.known.get(word.as_bstr()) {
            None => {
                self.known.insert(word.into(), Some(place));
                Place::New
            }
            Some(None) => Place::Recorded,
            Some(Some(first)) => {
                Arc::make_mut(&mut self.repetitions).insert(place, *first);
                Place::Repeated
            }
        }
    }

    /// Returns the number of repeated words.
    pub(crate) fn repeated(&self) -> u64 {
        self.repetitions.len() as u64
    }

    /// Returns the indices of repeated words, with the index at which the word stands first.
    pub(crate) fn repetitions(&self) -> Arc<BTreeMap<u64, u64>> {
        Arc::clone(&self.repetitions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_runs_unless_it_is_recorded_or_begun() {
        let mut once = Once::new("f".into(), None, b"a b\nc\\n\n\n\\xff\nx?\\?\n");
        let words: [&[u8]; 8] = [b"a b", b"c\n", b"", b"\xff", b"x", b"x?", b"x", b"a b"];
        let places = words.iter().enumerate().map(|(at, word)| once.find(word, at as u64));
        let expected = [
            Place::Recorded,
            Place::Recorded,
            Place::Recorded,
            Place::Recorded,
            Place::New,
            Place::New,
            Place::Repeated,
            Place::Recorded,
        ];
        assert_eq!(places.collect::<Vec<_>>(), expected);
        assert_eq!(*once.repetitions(), BTreeMap::from([(6, 4)]));
    }

    #[test]
    fn words_of_another_shell_are_learned() {
        let mut once = Once::new("f".into(), None, b"a\n");
        let (_, from) = once.recording(b"b");
        assert_eq!(from, 2);
        once.learn(from, b"c\nb\n");
        assert_eq!(once.find(b"c", 0), Place::Recorded);
        assert_eq!(once.recording(b"d").1, 6);
    }
}
