//! Nearest known name, for "did you mean …?".

use std::cmp::Reverse;

/// Maximum length of a name; a longer name is no misspelling.
const MAX_LENGTH: usize = 32;

/// Returns the known name nearest to `name`, unless every known name is too different.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = name.chars().count();
    if length > MAX_LENGTH {
        return None;
    }
    // A third of the letters may differ, and at least one. A single letter would be near to every
    // name.
    let most = if length < 2 { 0 } else { (length / 3).max(1) };
    known
        .into_iter()
        // The edit distance is at least the difference of the lengths.
        .filter(|candidate| candidate.chars().count().abs_diff(length) <= most)
        .map(|candidate| (strsim::osa_distance(name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= most && *distance < candidate.len())
        .min_by_key(|(distance, candidate)| {
            let common = candidate.bytes().zip(name.bytes()).take_while(|(a, b)| a == b).count();
            // People leave letters out more often than they add letters.
            let shorter = Reverse(is_part(name, candidate));
            (*distance, shorter, candidate.len().abs_diff(name.len()), Reverse(common))
        })
        .map(|(_, candidate)| candidate)
}

/// Returns the known name that differs from `name` by one slip of the fingers: two letters swapped, or
/// one letter after the first wrong, missing or superfluous in a name of at least four. A machine has
/// so many names that more differences would be a guess.
pub fn slip<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let sorted = |name: &str| {
        let mut letters: Vec<char> = name.chars().collect();
        letters.sort_unstable();
        letters
    };
    let is_slip = |candidate: &&str| {
        let begins_alike = name.len() > 3 && name.chars().next() == candidate.chars().next();
        candidate.len().abs_diff(name.len()) <= 1
            && strsim::osa_distance(name, candidate) == 1
            && (begins_alike || sorted(name) == sorted(candidate))
    };
    nearest(name, known.into_iter().filter(is_slip))
}

/// Returns true if `candidate` contains the letters of `name` in the same order.
fn is_part(name: &str, candidate: &str) -> bool {
    let mut letters = candidate.chars();
    name.chars().all(|letter| letters.any(|other| other == letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspellings_are_recognized() {
        let units = crate::duration::Unit::names;
        assert_eq!(nearest("minutse", units()), Some("minutes"));
        assert_eq!(nearest("secnods", units()), Some("seconds"));
        assert_eq!(nearest("hous", units()), Some("hours"));
        assert_eq!(nearest("tims", ["time", "times"]), Some("times"));
        assert_eq!(nearest(".ad.", [".and.", ".add."]), Some(".add."));
        assert_eq!(nearest("fortnights", units()), None);
        assert_eq!(nearest("x", units()), None);
        assert_eq!(nearest(&"minutes".repeat(1000), units()), None);
    }

    #[test]
    fn a_slip_is_one_difference() {
        let programs = ["git", "rustc", "rsync", "ls", "grog"];
        let slip = |name| slip(name, programs);
        assert_eq!(["gti", "rsnyc", "rync"].map(slip), [Some("git"), Some("rsync"), Some("rsync")]);
        assert_eq!(["gtt", "restic", "lx", "git", "prog", ""].map(slip), [None; 6]);
    }
}
