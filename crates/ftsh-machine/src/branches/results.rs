//! Words of a `forall` with their results, listed on demand.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::items::Items;
use crate::outcome::{BranchWords, UnknownWords};
use crate::values::{List, Value};

/// Element of `$failed_errors` for a branch that was canceled.
const CANCELED: &[u8] = b"canceled";

/// Element of `$failed_errors` for a word whose branch did not begin.
const NEVER_BEGAN: &[u8] = b"never began";

/// Words of a `forall` by result, listed on demand.
#[derive(Debug)]
pub(crate) struct TalliedWords {
    /// List of the loop.
    pub items: Items,
    /// Number of words that were begun or skipped.
    pub started: u64,
    /// Indices of the words that succeeded.
    pub succeeded: Places,
    /// Indices of repeated words, with the index at which the word stands first.
    pub repeated: Arc<BTreeMap<u64, u64>>,
    /// Failures of the branches.
    pub errors: Arc<BranchErrors>,
}

impl TalliedWords {
    /// Calls `visit` for each word with its index, or with the index at which the word stands first.
    fn each_place(&self, mut visit: impl FnMut(u64, Value)) {
        let mut items = self.items.clone();
        items.rewind(0);
        let mut place = 0;
        while let Some(word) = items.next() {
            visit(self.repeated.get(&place).copied().unwrap_or(place), word);
            place += 1;
        }
    }
}

impl BranchWords for TalliedWords {
    fn each(&self, succeeded: bool, visit: &mut dyn FnMut(&[u8])) -> Result<(), UnknownWords> {
        self.each_place(|place, word| {
            if self.succeeded.contains(place) == succeeded {
                visit(&word.text().unwrap_or_default());
            }
        });
        Ok(())
    }

    fn each_error(&self, visit: &mut dyn FnMut(&[u8])) -> Result<(), UnknownWords> {
        if self.errors.is_incomplete {
            return Err(UnknownWords::TooLong);
        }
        let errors: BTreeMap<u64, usize> =
            self.errors.places.iter().enumerate().map(|(index, place)| (*place, index)).collect();
        self.each_place(|place, _| {
            if self.succeeded.contains(place) {
                return;
            }
            let error = errors.get(&place).and_then(|index| self.errors.texts.get(*index));
            visit(match error {
                Some(error) => error,
                None if place < self.started => CANCELED,
                None => NEVER_BEGAN,
            });
        });
        Ok(())
    }
}

/// Failures of branches, as texts for people.
#[derive(Clone, Debug, Default)]
pub(crate) struct BranchErrors {
    /// Indices of the words in the list, in the order of the failures.
    places: Vec<u64>,
    texts: List,
    /// Set when the texts have become too long for a list.
    is_incomplete: bool,
}

impl BranchErrors {
    /// Adds the failure of the branch of a word.
    pub(crate) fn push(&mut self, place: u64, text: &str) {
        match self.texts.push(text.as_bytes()) {
            Ok(()) => self.places.push(place),
            Err(_) => self.is_incomplete = true,
        }
    }
}

/// Set of indices in a list, stored as ranges from start to end. There are usually few ranges.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    ranges: BTreeMap<u64, u64>,
    /// Number of indices.
    pub count: u64,
}

impl Places {
    /// Returns true if the set has an index.
    pub(crate) fn contains(&self, place: u64) -> bool {
        self.ranges.range(..=place).next_back().is_some_and(|(_, end)| place < *end)
    }

    /// Adds an index.
    pub(crate) fn insert(&mut self, place: u64) {
        if self.contains(place) {
            return;
        }
        self.count += 1;
        let end = self.ranges.remove(&(place + 1)).unwrap_or(place + 1);
        match self.ranges.range_mut(..place).next_back() {
            Some((_, before)) if *before == place => *before = end,
            _ => _ = self.ranges.insert(place, end),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn places_are_stored_as_ranges() {
        let mut places = Places::default();
        let mut set = BTreeSet::new();
        for place in [5, 3, 4, 9, 0, 1, 7, 8, 4, 6, 2] {
            places.insert(place);
            set.insert(place);
            assert!((0..12).all(|place| places.contains(place) == set.contains(&place)));
            assert_eq!(places.count, set.len() as u64);
        }
        assert_eq!(places.ranges, BTreeMap::from([(0, 10)]));
    }
}
