//! Report of a storm, as text and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use crate::fault::CommandFault;

/// Width of a command in the text, at most.
const MAX_WIDTH: usize = 44;

/// Result of a storm.
#[derive(Clone, Debug)]
pub struct StormReport {
    /// Number of runs.
    pub runs: u64,
    /// Real time of all runs.
    pub took: Duration,
    /// Commands, in the order of the script.
    pub commands: Vec<CommandReport>,
    /// Parts that vary by themselves and were not compared completely.
    pub left_out: Vec<String>,
    /// Programs that talked to others for real.
    pub unmodelled: Vec<String>,
}

/// Result for a command.
#[derive(Clone, Debug)]
pub struct CommandReport {
    /// Line of the script, from 1.
    pub line: u32,
    /// Text for people.
    pub text: String,
    /// Results of the faults.
    pub findings: Vec<Finding>,
}

/// Result for a fault of a command.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The fault.
    pub fault: CommandFault,
    /// Decision.
    pub verdict: FaultVerdict,
    /// Difference from the undisturbed run, for people.
    pub difference: Option<String>,
    /// Line of the command that cannot be repeated.
    pub cause: Option<u32>,
}

/// Decision about a disturbed run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultVerdict {
    /// The run ended as the undisturbed one.
    Repeatable,
    /// The script went another way, and did not repeat the command.
    Handled,
    /// The run ended in another way than the undisturbed one.
    NotRepeatable,
    /// The fault did not take place, because the run went another way before.
    Skipped,
}

impl FaultVerdict {
    /// Returns the name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Repeatable => "repeatable",
            Self::Handled => "handled",
            Self::NotRepeatable => "not repeatable",
            Self::Skipped => "skipped",
        }
    }
}

impl StormReport {
    /// Returns true if each command can be repeated.
    pub fn is_repeatable(&self) -> bool {
        self.groups().is_empty()
    }

    /// Returns the findings of commands that cannot be repeated, with the line of the fault, by the
    /// line of the cause.
    fn groups(&self) -> BTreeMap<u32, Vec<(u32, &Finding)>> {
        let mut groups: BTreeMap<u32, Vec<(u32, &Finding)>> = BTreeMap::new();
        for command in &self.commands {
            for finding in
                command.findings.iter().filter(|it| it.verdict == FaultVerdict::NotRepeatable)
            {
                let cause = finding.cause.unwrap_or(command.line);
                groups.entry(cause).or_default().push((command.line, finding));
            }
        }
        groups
    }

    /// Returns the report as text.
    pub fn text(&self) -> String {
        let groups = self.groups();
        let mut rows: Vec<(u32, String, String)> = Vec::new();
        for (line, findings) in &groups {
            rows.push((
                *line,
                self.command_text(*line),
                format!("not repeatable: {}", words(*line, findings)),
            ));
        }
        for command in self.commands.iter().filter(|it| !groups.contains_key(&it.line)) {
            let handled = command.findings.iter().find(|it| it.verdict == FaultVerdict::Handled);
            if let Some(Finding { fault, difference, .. }) = handled {
                let difference = difference.as_deref().unwrap_or_default();
                let text = format!("handled: after {} {difference}", fault.phrase());
                rows.push((command.line, command.text.clone(), text));
            }
        }
        rows.sort();
        rows.dedup();
        let lines = rows.iter().map(|(line, ..)| line.to_string().len()).max().unwrap_or(0);
        let width = rows.iter().map(|(_, text, _)| short(text).width()).max().unwrap_or(0);
        let mut text = String::new();
        for (line, command, result) in &rows {
            let command = short(command);
            let blanks = " ".repeat(width - command.width());
            let _ = writeln!(text, "line {line:<lines$}  {command}{blanks}  {result}");
        }
        let total = self.commands.len();
        let bad = self.commands.iter().filter(|it| groups.contains_key(&it.line)).count();
        let count = format!("{} of {total} command{}", total - bad, plural(total));
        let runs = format!("{} run{}", self.runs, plural(self.runs as usize));
        let bear = if total - bad == 1 && total == 1 { "bears" } else { "bear" };
        let _ = writeln!(
            text,
            "{count} {bear} every fault; {runs} in {:.0} s",
            self.took.as_secs_f64()
        );
        if !self.left_out.is_empty() {
            let names: Vec<_> = self.left_out.iter().map(|name| named(name)).collect();
            let _ = writeln!(text, "left out, since it varies by itself: {}", names.join(", "));
        }
        if !self.unmodelled.is_empty() {
            let names = self.unmodelled.join(", ");
            let first = &self.unmodelled[0];
            let _ = writeln!(
                text,
                "ran for real: {names}; `--command '{first} takes 1 s'` is a model instead"
            );
        }
        text
    }

    /// Returns the report as JSON, the same for the same seed.
    pub fn json(&self) -> Value {
        let finding = |it: &Finding| {
            json!({
                "fault": it.fault.name(),
                "verdict": it.verdict.name(),
                "difference": it.difference,
                "cause": it.cause,
            })
        };
        let command = |it: &CommandReport| {
            let faults: Vec<_> = it.findings.iter().map(finding).collect();
            json!({ "line": it.line, "command": it.text, "faults": faults })
        };
        json!({
            "runs": self.runs,
            "left_out": self.left_out,
            "unmodelled": self.unmodelled,
            "commands": self.commands.iter().map(command).collect::<Vec<_>>(),
        })
    }

    fn command_text(&self, line: u32) -> String {
        let found = self.commands.iter().find(|command| command.line == line);
        found.map(|command| command.text.clone()).unwrap_or_default()
    }
}

/// Describes the findings of a command in words: its own faults, or else the first one of another
/// command, and the difference.
fn words(line: u32, findings: &[(u32, &Finding)]) -> String {
    let (own, others): (Vec<_>, Vec<_>) = findings.iter().partition(|(at, _)| *at == line);
    let shown = if own.is_empty() { &others[..others.len().min(1)] } else { &own[..] };
    let mut faults: Vec<String> = Vec::new();
    for (at, finding) in shown {
        let place = if *at == line { String::new() } else { format!(" in line {at}") };
        let fault = format!("{}{place}", finding.fault.phrase());
        if !faults.contains(&fault) {
            faults.push(fault);
        }
    }
    let difference = shown.first().and_then(|(_, finding)| finding.difference.as_deref());
    format!("after {} {}", faults.join(" or "), difference.unwrap_or_default())
}

/// Returns a text that fits into a column.
fn short(text: &str) -> String {
    let mut short = String::new();
    for character in text.chars() {
        if short.width() + 2 > MAX_WIDTH {
            return short + "…";
        }
        short.push(character);
    }
    short
}

fn named(name: &str) -> String {
    if name.is_empty() { "the output".into() } else { format!("`{name}`") }
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}
