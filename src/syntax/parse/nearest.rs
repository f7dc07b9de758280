//! What someone may have meant.

use std::cmp::Reverse;

/// The one of `known` that `word` is most likely a misspelling of.
pub(super) fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let most = 1 + word.len() / 4;
    known
        .into_iter()
        .map(|name| (distance(word, name), name))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, name)| (*distance, Reverse(common_start(word, name))))
        .map(|(_, name)| name)
}

fn common_start(a: &str, b: &str) -> usize {
    a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count()
}

/// Damerau and Levenshtein's distance, restricted to transpositions of neighbours: the number of
/// characters to insert, delete, replace or swap.
pub(super) fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    let mut previous = None;
    for (i, c) in from.chars().enumerate() {
        let mut next = vec![i + 1];
        for (j, d) in to.iter().enumerate() {
            let mut cost = (row[j] + usize::from(c != *d)).min(row[j + 1] + 1).min(next[j] + 1);
            if j > 0 && previous == Some(*d) && to[j - 1] == c {
                cost = cost.min(before[j - 1] + 1);
            }
            next.push(cost);
        }
        before = row;
        row = next;
        previous = Some(c);
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swapped_neighbours_are_one_mistake() {
        assert_eq!(distance("minutse", "minutes"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(nearest("minutse", ["seconds", "minutes"]), Some("minutes"));
        assert_eq!(nearest(".ad.", [".and.", ".add."]), Some(".add."));
        assert_eq!(nearest("fortnights", ["seconds", "minutes"]), None);
    }
}
