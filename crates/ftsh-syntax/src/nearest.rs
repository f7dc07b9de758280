//! Did you mean …?

use std::cmp::Reverse;

/// Longer names than this are no slips of the pen.
const LONGEST: usize = 32;

/// The known name that `name` was most likely meant to be, if any is near enough.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = name.chars().count();
    if length > LONGEST {
        return None;
    }
    // A third of the letters may be wrong, and one in any case; but a single letter is like
    // everything.
    let most = if length < 2 { 0 } else { (length / 3).max(1) };
    known
        .into_iter()
        // The distance is no smaller than that.
        .filter(|candidate| candidate.chars().count().abs_diff(length) <= most)
        .map(|candidate| (strsim::osa_distance(name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= most && *distance < candidate.len())
        .min_by_key(|(distance, candidate)| {
            let common = candidate.bytes().zip(name.bytes()).take_while(|(a, b)| a == b).count();
            // Letters are left out more often than added.
            let shorter = Reverse(is_part(name, candidate));
            (*distance, shorter, candidate.len().abs_diff(name.len()), Reverse(common))
        })
        .map(|(_, candidate)| candidate)
}

/// Whether the letters of `name` come in this order in `candidate`.
fn is_part(name: &str, candidate: &str) -> bool {
    let mut letters = candidate.chars();
    name.chars().all(|letter| letters.any(|other| other == letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognized() {
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
}
