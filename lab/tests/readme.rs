//! Tables of README.md, generated from the results of commands by the templates of `tables.txt`.
//!
//! A table stands between a line with `generated: NAME` and a line with `end of generated`.
//! `just tables` writes the tables.

use std::fs;

use serde_json::Value;

use crate::support::printed;

const README: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
const TEMPLATES: &str = include_str!("tables.txt");
const END: &str = "<!-- end of generated -->";

/// Tables of texts, and of a run in real time.
const TEXTS: [&str; 5] =
    ["| article |", "| scenario |", "| live, one run |", "| clause |", "| crate |"];

/// Template of a table.
struct Template {
    name: &'static str,
    /// `seconds` or `minutes`, if the commands take so long.
    duration: &'static str,
    lines: Vec<&'static str>,
}

impl Template {
    fn all() -> impl Iterator<Item = Self> {
        TEMPLATES.split("\n# ").skip(1).map(|part| {
            let mut lines = part.trim_end().lines();
            let head = lines.next().unwrap_or_default();
            let (name, duration) = head.split_once(": ").unwrap_or((head, ""));
            Self { name, duration, lines: lines.collect() }
        })
    }

    fn commands(&self) -> impl Iterator<Item = &'static str> {
        self.lines.iter().filter_map(|line| line.strip_prefix("$ "))
    }

    /// Runs the commands and returns the table.
    fn generate(&self) -> String {
        let mut lines = self.lines.iter().filter(|line| line.starts_with('|'));
        let Some(head) = lines.next() else { return self.sample() };
        let columns = &cells(head)[1..];
        let rows: Vec<_> = self.commands().flat_map(|command| rows(command, columns)).collect();
        let mut table = format!("{head}\n|{}\n", "---|".repeat(columns.len() + 1));
        let mut above = Vec::new();
        for line in lines {
            let mut line = cells(line);
            let label = line.remove(0);
            let values = line.remove(0);
            if !line.is_empty() {
                above = line;
            }
            table += &format!("| {label} |");
            for (at, column) in columns.iter().enumerate() {
                let template = above.get(at).or(above.first().filter(|_| above.len() == 1));
                let template = template.expect("a cell for each column").replace('^', column);
                let cell = match values {
                    "" => template,
                    _ => filled(&template, &selected(&rows, &values.replace('^', column))),
                };
                table += &if cell.is_empty() { " |".to_owned() } else { format!(" {cell} |") };
            }
            table.push('\n');
        }
        table
    }

    /// Returns the output of a command up to its last table.
    fn sample(&self) -> String {
        let command = self.commands().next().expect("a command");
        let output = printed(&words(command));
        let (shown, _) = output.split_once("\n\nThe worst run").expect("a rehearsal");
        format!("```text\n{shown}\n\n…\n```\n")
    }
}

fn cells(line: &str) -> Vec<&str> {
    line.trim_matches('|').split('|').map(str::trim).collect()
}

/// Splits a command line; quotes are single.
fn words(line: &str) -> Vec<&str> {
    let parts = line.split('\'').enumerate();
    let words = parts.flat_map(|(at, part)| match at % 2 {
        0 => part.split_whitespace().collect(),
        _ => vec![part],
    });
    words.collect()
}

/// Returns the results of a command, for each column if the command names the column.
fn rows(command: &str, columns: &[&str]) -> Vec<Value> {
    let columns = if command.contains('^') { columns } else { &[""] };
    let rows = columns.iter().flat_map(|column| {
        let command = command.replace('^', column);
        let text = printed(&[&words(&command)[..], &["--json"]].concat());
        let row = |line: &str| {
            let mut row: Value = serde_json::from_str(line).expect("an object a line");
            row["run"] = (*column).into();
            row
        };
        text.lines().map(row).collect::<Vec<_>>()
    });
    rows.collect()
}

/// Returns the row for each combination of values.
fn selected<'r>(rows: &'r [Value], values: &str) -> Vec<&'r Value> {
    let mut groups = vec![rows.iter().collect::<Vec<_>>()];
    for value in values.split(", ") {
        let (key, alternatives) = value.split_once('=').expect("KEY=VALUE");
        let part = |group: &Vec<&'r Value>, text: &str| {
            group.iter().copied().filter(|row| plain(&row[key]) == text).collect()
        };
        groups = groups
            .iter()
            .flat_map(|group| alternatives.split('/').map(|text| part(group, text)))
            .collect();
    }
    let one = |group: Vec<&'r Value>| match group[..] {
        [row] => row,
        _ => panic!("{} rows have {values}", group.len()),
    };
    groups.into_iter().map(one).collect()
}

/// Replaces each `{KEY:DECIMALS}` by a value of the rows.
fn filled(template: &str, rows: &[&Value]) -> String {
    let mut parts = template.split('{');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (key, after) = part.split_once('}').expect("a key ends with `}`");
        let (key, decimals) = match key.split_once(':') {
            Some((key, decimals)) => (key, Some(decimals.parse().expect("a number"))),
            None => (key, None),
        };
        let values: Vec<_> = rows.iter().map(|row| shown(&row[key], decimals)).collect();
        text += &values.join(" → ");
        // A unit needs a value.
        text += if text.is_empty() { "" } else { after };
    }
    text
}

/// Returns a value as templates name it.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.as_f64().map_or_else(|| other.to_string(), |number| number.to_string()),
    }
}

/// Returns a value as people read it; by default with one decimal below 10.
fn shown(value: &Value, decimals: Option<usize>) -> String {
    let Some(number) = value.as_f64() else {
        return plain(value);
    };
    if let Some(decimals) = decimals {
        return format!("{number:.decimals$}");
    }
    if number < 9.95 {
        return format!("{number:.1}").trim_end_matches(".0").to_owned();
    }
    let mut digits = format!("{:.0}", number.round());
    for at in (1..digits.len())
        .rev()
        .filter(|at| (digits.len() - at).is_multiple_of(3))
        .collect::<Vec<_>>()
    {
        digits.insert(at, ',');
    }
    digits
}

/// Generates the tables whose commands take this long, and compares or writes them.
fn compare(duration: &str) {
    let readme = fs::read_to_string(README).expect("a document");
    let mut generated = readme.clone();
    for template in Template::all().filter(|template| template.duration == duration) {
        let mark = format!("<!-- generated: {} -->\n", template.name);
        let (before, after) = generated.split_once(&mark).expect(&mark);
        let (_, after) = after.split_once(END).expect("an end of each table");
        generated = format!("{before}{mark}{}{END}{after}", template.generate());
    }
    if std::env::var_os("FTSH_TEST_GENERATE").is_some() {
        return fs::write(README, generated).expect("a document to write");
    }
    let differs = |(shown, printed): &(&str, &str)| shown != printed;
    let stale: Vec<_> = readme.lines().zip(generated.lines()).filter(differs).collect();
    assert!(readme == generated, "shown and printed, run `just tables`: {stale:#?}");
}

#[test]
fn tables_are_those_of_commands() {
    compare("");
}

#[test]
#[ignore = "slow: `.ci/run` includes it"]
fn tables_are_those_of_commands_that_take_seconds() {
    compare("seconds");
}

#[test]
#[ignore = "slow: takes minutes"]
fn tables_are_those_of_commands_that_take_minutes_by_hand() {
    compare("minutes");
}

#[test]
fn each_table_is_generated_or_a_text() {
    let readme = fs::read_to_string(README).expect("a document");
    let outside = readme.split(END).filter_map(|part| part.split("<!-- generated: ").next());
    let lines: Vec<_> = outside.flat_map(str::lines).collect();
    let heads = lines.windows(2).filter(|pair| pair[1].starts_with("|---")).map(|pair| pair[0]);
    let numbers: Vec<_> =
        heads.filter(|head| !TEXTS.iter().any(|it| head.starts_with(it))).collect();
    assert!(numbers.is_empty(), "no template generates {numbers:?}");
}
