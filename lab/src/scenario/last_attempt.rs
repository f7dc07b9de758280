//! Share of clients that succeed by a deadline, with and without the shell's rule of a last attempt
//! in the remaining time.

use std::collections::BTreeMap;

use crate::common::{Axis, Cell, ClientCrowd, Column, Panel, PlotSeries, ReportTable, SeriesStyle};

/// Lengths of outages with a column, in thousandths of the deadline, and the names of the columns
/// for programs and people.
pub type OutageColumn = (u32, &'static str, &'static str);

/// Results of a crowd under one of the rules.
#[derive(Clone, Debug)]
pub struct DeadlineShares {
    /// Number of the crowd.
    pub crowd: usize,
    /// True if clients make a last attempt.
    pub last_attempt: bool,
    /// Percentage of clients that succeed, by the length of the outage in thousandths of the
    /// deadline.
    pub shares: BTreeMap<u32, f64>,
}

/// Returns each crowd without the rule and with the rule.
pub fn cases(crowds: &[ClientCrowd]) -> Vec<(usize, bool)> {
    (0..crowds.len()).flat_map(|crowd| [(crowd, false), (crowd, true)]).collect()
}

/// Creates a table of some lengths, with a row per crowd and rule.
pub fn table(
    title: String,
    lengths: &[OutageColumn],
    crowds: &[ClientCrowd],
    labels: &[String],
    fates: &[DeadlineShares],
) -> ReportTable {
    let mut columns =
        vec![Column::new("policy", "policy", ""), Column::new("last_attempt", "last", "attempt")];
    columns.extend(lengths.iter().map(|(_, key, head)| Column::new(key, head, "")));
    columns.push(Column::hidden("backoff"));
    let mut table = ReportTable::new("deadline", title, columns);
    for DeadlineShares { crowd, last_attempt, shares } in fates {
        let mut row = vec![labels[*crowd].as_str().into(), Cell::Flag(*last_attempt)];
        let share = |(length, ..): &OutageColumn| shares.get(length).map(|it| Cell::Number(*it, 1));
        row.extend(lengths.iter().map(|length| share(length).unwrap_or(Cell::Missing)));
        row.push(crowds[*crowd].to_string().into());
        table.push(row);
    }
    table
}

/// Maximum number of lines in the picture.
const LINES: usize = 4;

/// Draws the shares of the first crowds over all lengths.
pub fn panel(title: String, share: &str, labels: &[String], fates: &[DeadlineShares]) -> Panel {
    let line = |fate: &DeadlineShares| PlotSeries {
        name: format!("{}{}", labels[fate.crowd], if fate.last_attempt { "" } else { ", without" }),
        points: fate.shares.iter().map(|(at, share)| (f64::from(*at) / 10.0, *share)).collect(),
        style: if fate.last_attempt { SeriesStyle::Line } else { SeriesStyle::Dashes },
        color: fate.crowd,
    };
    Panel {
        title,
        x: Axis::linear("length of the outage, % of the deadline").between(50.0, 100.0),
        y: Axis::linear(share).between(0.0, 100.0),
        series: fates.iter().filter(|fate| fate.crowd < LINES).map(line).collect(),
    }
}
