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

/// Decision about a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommandVerdict {
    /// The command bears every fault.
    Repeatable,
    /// The command cannot be repeated.
    NotRepeatable,
    /// A run with a fault of the command failed the comparison because of another line, if known.
    NotJudged(Option<u32>),
}

impl CommandVerdict {
    /// Returns the name in JSON.
    fn name(self) -> &'static str {
        match self {
            Self::Repeatable => "repeatable",
            Self::NotRepeatable => "not repeatable",
            Self::NotJudged(_) => "not judged",
        }
    }
}

impl StormReport {
    /// Returns false if a command cannot be repeated.
    pub fn is_repeatable(&self) -> bool {
        self.groups().is_empty()
    }

    /// Returns the decisions about all commands, in order. Text and JSON count by them.
    fn verdicts(&self) -> Vec<CommandVerdict> {
        let groups = self.groups();
        let verdict = |command: &CommandReport| {
            let is = |verdict| move |it: &&Finding| it.verdict == verdict;
            let findings = &command.findings;
            let other = findings.iter().find(is(FaultVerdict::NotRepeatable));
            match other {
                _ if groups.contains_key(&command.line) => CommandVerdict::NotRepeatable,
                Some(other) => CommandVerdict::NotJudged(other.cause),
                None if findings.iter().all(|it| is(FaultVerdict::Skipped)(&it)) => {
                    CommandVerdict::NotJudged(None)
                }
                None => CommandVerdict::Repeatable,
            }
        };
        self.commands.iter().map(verdict).collect()
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
        let verdicts = self.verdicts();
        for (command, verdict) in self.commands.iter().zip(&verdicts) {
            let text = match verdict {
                CommandVerdict::NotRepeatable => continue,
                CommandVerdict::NotJudged(Some(line)) => {
                    format!("not judged: line {line} is in the way")
                }
                CommandVerdict::NotJudged(None) => {
                    "not judged: the run went another way before its faults".to_owned()
                }
                CommandVerdict::Repeatable => {
                    let mut findings = command.findings.iter();
                    let handled = findings.find(|it| it.verdict == FaultVerdict::Handled);
                    let Some(Finding { fault, difference, .. }) = handled else { continue };
                    let difference = difference.as_deref().unwrap_or_default();
                    format!("handled: after {} {difference}", fault.phrase())
                }
            };
            rows.push((command.line, command.text.clone(), text));
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
        let good = verdicts.iter().filter(|it| **it == CommandVerdict::Repeatable).count();
        let unjudged =
            verdicts.iter().filter(|it| matches!(it, CommandVerdict::NotJudged(_))).count();
        let bear = if total == 1 { "bears" } else { "bear" };
        let _ = write!(text, "{good} of {total} command{} {bear} every fault; ", plural(total));
        if unjudged > 0 {
            let _ = write!(text, "{unjudged} could not be judged; ");
        }
        let (runs, took) = (self.runs, self.took.as_secs_f64());
        let _ = writeln!(text, "{runs} run{} in {took:.0} s", plural(runs as usize));
        if !self.left_out.is_empty() {
            let names: Vec<_> = self.left_out.iter().map(|name| named(name)).collect();
            let _ = writeln!(text, "compared without the parts that vary: {}", names.join(", "));
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
        let command = |(it, verdict): (&CommandReport, CommandVerdict)| {
            let faults: Vec<_> = it.findings.iter().map(finding).collect();
            let (line, verdict) = (it.line, verdict.name());
            json!({ "line": line, "command": it.text, "verdict": verdict, "faults": faults })
        };
        let commands: Vec<_> = self.commands.iter().zip(self.verdicts()).map(command).collect();
        json!({
            "runs": self.runs,
            "left_out": self.left_out,
            "unmodelled": self.unmodelled,
            "commands": commands,
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
