//! Nested rows of a drawing.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Bar, Row};

/// Maximum number of rows.
pub(super) const MAX_ROWS: usize = 2_000;

/// Rows by index. Repeated work uses the same row again, so branches and tries in a loop have one
/// row each.
#[derive(Debug, Default)]
pub(super) struct Rows {
    all: Vec<Inner>,
    known: BTreeMap<(Option<usize>, String), Vec<usize>>,
    /// Number of rows that did not fit.
    pub left_out: usize,
}

#[derive(Debug)]
struct Inner {
    label: String,
    children: Vec<usize>,
    /// True while work of the row is in progress.
    is_busy: bool,
    bars: Vec<Bar>,
    limits: Vec<Duration>,
}

impl Rows {
    /// Returns a row inside another one for work that begins; none if the drawing is full.
    pub(super) fn begin(&mut self, parent: Option<usize>, label: String) -> Option<usize> {
        let known = self.known.entry((parent, label.clone())).or_default();
        if let Some(idle) = known.iter().copied().find(|row| !self.all[*row].is_busy) {
            self.all[idle].is_busy = true;
            return Some(idle);
        }
        let row = self.all.len();
        if row >= MAX_ROWS {
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

    /// Marks the end of the work of a row.
    pub(super) fn end(&mut self, row: usize) {
        self.all[row].is_busy = false;
    }

    pub(super) fn push(&mut self, row: usize, bar: Bar) {
        self.all[row].bars.push(bar);
    }

    pub(super) fn limit(&mut self, row: usize, at: Duration) {
        self.all[row].limits.push(at);
    }

    pub(super) fn label(&self, row: usize) -> &str {
        &self.all[row].label
    }

    /// Returns all rows, each before its inner rows. Bars are in drawing order, outer before inner.
    pub(super) fn in_order(self) -> Vec<Row> {
        let mut rows: Vec<Option<Inner>> = self.all.into_iter().map(Some).collect();
        let mut ordered: Vec<Row> = Vec::with_capacity(rows.len());
        // Pending steps with their depth: a row, or the end of the row at this index.
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
