//! The rows of a picture, each in another one.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Bar, Row};

/// More rows than this are no picture.
pub const MOST_ROWS: usize = 2_000;

/// Rows, by number. What happens again is told in the row that it has already, so that branches and
/// tries in a loop have one each.
#[derive(Debug, Default)]
pub struct Rows {
    all: Vec<Inner>,
    known: BTreeMap<(Option<usize>, String), Vec<usize>>,
    /// How many there would be more.
    pub left_out: usize,
}

#[derive(Debug)]
struct Inner {
    label: String,
    children: Vec<usize>,
    /// Whether something goes on that it is of.
    is_busy: bool,
    bars: Vec<Bar>,
    limits: Vec<Duration>,
}

impl Rows {
    /// A row in another one, for something that begins; none if there are too many.
    pub fn begin(&mut self, parent: Option<usize>, label: String) -> Option<usize> {
        let known = self.known.entry((parent, label.clone())).or_default();
        if let Some(idle) = known.iter().copied().find(|row| !self.all[*row].is_busy) {
            self.all[idle].is_busy = true;
            return Some(idle);
        }
        let row = self.all.len();
        if row >= MOST_ROWS {
            self.left_out += 1;
            return None;
        }
        known.push(row);
        let (children, bars, limits) = (Vec::new(), Vec::new(), Vec::new());
        self.all.push(Inner { label, children, is_busy: true, bars, limits });
        if let Some(parent) = parent {
            self.all[parent].children.push(row);
        }
        Some(row)
    }

    /// What the row is of has ended.
    pub fn end(&mut self, row: usize) {
        self.all[row].is_busy = false;
    }

    pub fn push(&mut self, row: usize, bar: Bar) {
        self.all[row].bars.push(bar);
    }

    pub fn limit(&mut self, row: usize, at: Duration) {
        self.all[row].limits.push(at);
    }

    pub fn label(&self, row: usize) -> &str {
        &self.all[row].label
    }

    /// All rows below those that they are in, and their bars in the order in which they are drawn: what is
    /// inside something comes after it.
    pub fn in_order(self) -> Vec<Row> {
        let mut rows: Vec<Option<Inner>> = self.all.into_iter().map(Some).collect();
        let mut ordered: Vec<Row> = Vec::with_capacity(rows.len());
        // What is to be done, with its depth: a row, or the end of one that begins at this place.
        let mut todo = vec![(0, Ok(0))];
        while let Some((depth, next)) = todo.pop() {
            match next {
                Ok(row) => {
                    let Some(Inner { label, children, mut bars, limits, .. }) =
                        rows.get_mut(row).and_then(Option::take)
                    else {
                        continue;
                    };
                    bars.sort_by_key(|bar| (bar.kind as u8, bar.from, std::cmp::Reverse(bar.to)));
                    todo.push((depth, Err(ordered.len())));
                    todo.extend(children.into_iter().rev().map(|child| (depth + 1, Ok(child))));
                    ordered.push(Row { label, depth, inner: 0, bars, limits });
                }
                Err(place) => ordered[place].inner = ordered.len() - place - 1,
            }
        }
        ordered
    }
}
