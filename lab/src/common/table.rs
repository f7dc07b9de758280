//! Typed tables: text of 80 columns for people, CSV and JSON for programs.

use serde_json::{Map, json};

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Text.
    Text(String),
    /// A count.
    Count(u64),
    /// A measurement, with the number of decimals shown to people.
    Number(f64, usize),
    /// Yes or no.
    Flag(bool),
    /// No measurement.
    Missing,
}

/// A column.
#[derive(Clone, Debug)]
pub struct Column {
    /// Name for programs, with the unit: `time_ms`.
    pub key: &'static str,
    /// Name for people with the unit below: `time` / `ms`.
    pub head: [&'static str; 2],
    /// True if people see the column.
    pub shown: bool,
}

impl Column {
    /// Creates a column for people and programs.
    pub fn new(key: &'static str, head: &'static str, unit: &'static str) -> Self {
        Self { key, head: [head, unit], shown: true }
    }

    /// Creates a column for programs only.
    pub fn hidden(key: &'static str) -> Self {
        Self { key, head: ["", ""], shown: false }
    }
}

/// A table.
#[derive(Clone, Debug)]
pub struct ReportTable {
    /// Name for programs.
    pub name: &'static str,
    /// Title for people, in a line above the table.
    pub title: String,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows, with a value for each column.
    pub rows: Vec<Vec<Cell>>,
    /// True if people see the table only by its name.
    pub is_long: bool,
    /// Number of rows at the top and at the bottom that people see without the name of the table.
    pub shown: Option<(usize, usize)>,
}

/// Maximum width of text.
pub(super) const WIDTH: usize = 80;

/// Space between columns.
const GAP: usize = 2;

impl ReportTable {
    /// Creates a table without rows.
    pub fn new(name: &'static str, title: impl Into<String>, columns: Vec<Column>) -> Self {
        Self { name, title: title.into(), columns, rows: Vec::new(), is_long: false, shown: None }
    }

    /// Adds a row.
    pub fn push(&mut self, row: Vec<Cell>) {
        debug_assert_eq!(row.len(), self.columns.len(), "a value per column of {}", self.name);
        self.rows.push(row);
    }

    /// Renders the table for people, without the middle of many rows.
    pub fn brief(&self) -> String {
        let (top, bottom) = self.shown.unwrap_or((usize::MAX, 0));
        let Some(left_out @ 1..) = self.rows.len().checked_sub(top.saturating_add(bottom)) else {
            return self.text();
        };
        let mut table = self.clone();
        table.rows.drain(top..top + left_out);
        let noun = if left_out == 1 { "row" } else { "rows" };
        let place = if bottom > 0 { " in the middle" } else { "" };
        format!("{}{left_out} more {noun}{place}: --table {}\n", table.text(), self.name)
    }

    /// Renders the table for people with at most `WIDTH` columns; long words are wrapped.
    pub fn text(&self) -> String {
        let shown: Vec<_> = (0..self.columns.len()).filter(|at| self.columns[*at].shown).collect();
        let head = |line: usize| -> Vec<_> {
            shown.iter().map(|at| self.columns[*at].head[line].to_owned()).collect()
        };
        let mut lines: Vec<Vec<String>> = vec![head(0), head(1)];
        lines.retain(|line| line.iter().any(|cell| !cell.is_empty()));
        let heads = lines.len();
        for row in &self.rows {
            lines.push(shown.iter().filter_map(|at| row.get(*at)).map(Cell::shown).collect());
        }
        let is_text: Vec<_> = shown
            .iter()
            .map(|at| self.rows.iter().any(|row| matches!(row.get(*at), Some(Cell::Text(_)))))
            .collect();
        let mut widths: Vec<_> = (0..shown.len())
            .map(|at| {
                lines.iter().filter_map(|line| line.get(at)).map(|it| it.chars().count()).max()
            })
            .map(Option::unwrap_or_default)
            .collect();
        let total = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
        if total > WIDTH
            && let Some(widest) =
                (0..widths.len()).filter(|at| is_text[*at]).max_by_key(|at| widths[*at])
        {
            widths[widest] = widths[widest].saturating_sub(total - WIDTH).max(8);
        }
        let mut text = String::new();
        for line in textwrap::wrap(&self.title, WIDTH) {
            text += &format!("{line}\n");
        }
        for (index, line) in lines.iter().enumerate() {
            let cells: Vec<Vec<_>> = line
                .iter()
                .zip(&widths)
                .map(|(cell, width)| textwrap::wrap(cell, *width))
                .collect();
            for part in 0..cells.iter().map(Vec::len).max().unwrap_or_default() {
                let mut shown = String::new();
                for ((cell, width), is_text) in cells.iter().zip(&widths).zip(&is_text) {
                    let cell = cell.get(part).map_or("", |cell| cell);
                    if !shown.is_empty() {
                        shown += &" ".repeat(GAP);
                    }
                    shown += &if *is_text {
                        format!("{cell:<width$}")
                    } else {
                        format!("{cell:>width$}")
                    };
                }
                text += &format!("{}\n", shown.trim_end());
            }
            if index + 1 == heads {
                let rule = widths.iter().map(|width| "-".repeat(*width)).collect::<Vec<_>>();
                text += &format!("{}\n", rule.join(&" ".repeat(GAP)));
            }
        }
        text
    }

    /// Renders the table for programs: a line of names, then a line per row.
    pub fn csv(&self) -> Result<String, csv::Error> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(self.columns.iter().map(|column| column.key))?;
        for row in &self.rows {
            writer.write_record(row.iter().map(Cell::plain))?;
        }
        let bytes = writer.into_inner().map_err(csv::IntoInnerError::into_error)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Renders the table for programs: a JSON object per line with the table's name.
    pub fn json(&self) -> String {
        let mut text = String::new();
        for row in &self.rows {
            let mut object = Map::from_iter([("table".to_owned(), json!(self.name))]);
            for (column, value) in self.columns.iter().zip(row) {
                object.insert(column.key.to_owned(), value.json());
            }
            text += &format!("{}\n", serde_json::Value::Object(object));
        }
        text
    }
}

impl Cell {
    /// Creates a cell for a measurement.
    pub fn number(value: f64) -> Self {
        let decimals = match value.abs() {
            0.0 | 100.0.. => 0,
            10.0.. => 1,
            1.0.. => 2,
            _ => 3,
        };
        Self::Number(value, decimals)
    }

    fn shown(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Count(count) => count.to_string(),
            Self::Number(number, _) if !number.is_finite() => "-".into(),
            Self::Number(number, decimals) => format!("{number:.decimals$}"),
            Self::Flag(flag) => if *flag { "yes" } else { "no" }.into(),
            Self::Missing => "-".into(),
        }
    }

    fn plain(&self) -> String {
        match self {
            Self::Number(number, _) if number.is_finite() => rounded(*number).to_string(),
            Self::Number(..) | Self::Missing => String::new(),
            Self::Flag(flag) => flag.to_string(),
            other => other.shown(),
        }
    }

    fn json(&self) -> serde_json::Value {
        match self {
            Self::Text(text) => json!(text),
            Self::Count(count) => json!(count),
            Self::Number(number, _) if number.is_finite() => json!(rounded(*number)),
            Self::Number(..) | Self::Missing => serde_json::Value::Null,
            Self::Flag(flag) => json!(flag),
        }
    }
}

/// Rounds to nine digits; the rest is noise of binary fractions.
fn rounded(number: f64) -> f64 {
    format!("{number:.8e}").parse().unwrap_or(number)
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<usize> for Cell {
    fn from(count: usize) -> Self {
        Self::Count(count as u64)
    }
}

impl From<u64> for Cell {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<Option<f64>> for Cell {
    fn from(number: Option<f64>) -> Self {
        number.map_or(Self::Missing, Self::number)
    }
}
