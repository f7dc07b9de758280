//! Who succeeds by a deadline, with and without the shell's rule of a last attempt in the time left.

use std::collections::BTreeMap;

use crate::common::{Axis, Column, Crowd, Panel, Series, Style, Table, Value};

/// How long an outage lasts that is to have a column, in thousandths of the deadline, and the
/// column's names for programs and for people.
pub type Length = (u32, &'static str, &'static str);

/// What became of a crowd under one of the rules.
#[derive(Clone, Debug)]
pub struct Fate {
    /// The crowd's number.
    pub crowd: usize,
    /// Whether clients make a last attempt.
    pub last_attempt: bool,
    /// The percentage that succeeds, by how long the outage lasts in thousandths of the deadline.
    pub shares: BTreeMap<u32, f64>,
}

/// Each crowd without the rule and with it.
pub fn cases(crowds: &[Crowd]) -> Vec<(usize, bool)> {
    (0..crowds.len()).flat_map(|crowd| [(crowd, false), (crowd, true)]).collect()
}

/// The table of some lengths, a row per crowd and rule.
pub fn table(
    title: String,
    lengths: &[Length],
    crowds: &[Crowd],
    labels: &[String],
    fates: &[Fate],
) -> Table {
    let mut columns =
        vec![Column::new("policy", "policy", ""), Column::new("last_attempt", "last", "attempt")];
    columns.extend(lengths.iter().map(|(_, key, head)| Column::new(key, head, "")));
    columns.push(Column::hidden("backoff"));
    let mut table = Table::new("deadline", title, columns);
    for Fate { crowd, last_attempt, shares } in fates {
        let mut row = vec![labels[*crowd].as_str().into(), Value::Flag(*last_attempt)];
        let share = |(length, ..): &Length| shares.get(length).map(|it| Value::Number(*it, 1));
        row.extend(lengths.iter().map(|length| share(length).unwrap_or(Value::Missing)));
        row.push(crowds[*crowd].to_string().into());
        table.push(row);
    }
    table
}

/// Lines in the picture: more can't be told apart.
const LINES: usize = 4;

/// The shares of the first crowds over all lengths.
pub fn panel(title: String, share: &str, labels: &[String], fates: &[Fate]) -> Panel {
    let line = |fate: &Fate| Series {
        name: format!("{}{}", labels[fate.crowd], if fate.last_attempt { "" } else { ", without" }),
        points: fate.shares.iter().map(|(at, share)| (f64::from(*at) / 10.0, *share)).collect(),
        style: if fate.last_attempt { Style::Line } else { Style::Dashes },
        color: fate.crowd,
    };
    Panel {
        title,
        x: Axis::linear("length of the outage, % of the deadline").between(50.0, 100.0),
        y: Axis::linear(share).between(0.0, 100.0),
        series: fates.iter().filter(|fate| fate.crowd < LINES).map(line).collect(),
    }
}
