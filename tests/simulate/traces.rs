//! Spans of a run: they nest, count what the summary counts, and are the same from the journal.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;

use ftsh::log::Summary;
use ftsh::telemetry::Spans;
use ftsh_journal::{Journal, replay};
use ftsh_machine::effect::{Action, Effect};
use ftsh_machine::record::spans::{TRACEPARENT, TraceContext};
use ftsh_machine::record::{Level, LogEvent, LogRecord};
use ftsh_machine::{Outcome, Time};

use crate::oracle::Violation;
use crate::program::SCRIPT;
use crate::run::WORLDS;
use crate::spans::{SpanRow, check};

const PID: u32 = 42;

/// Variable with a file that receives the spans, a run in a line.
const FILE: &str = "FTSH_SIMULATE_SPANS";

/// Observer of a run with a trace.
pub(crate) struct Traced {
    context: TraceContext,
    spans: Spans,
    summary: Summary,
    finished: Vec<String>,
    /// Base names of programs by the value of `TRACEPARENT`.
    programs: BTreeMap<String, String>,
}

/// Returns the context of the run of a seed, if the run has a trace.
pub(crate) fn context(seed: u64) -> Option<TraceContext> {
    TraceContext::new(seed, None).filter(|_| seed % WORLDS >= 2)
}

impl Traced {
    pub(crate) fn new(seed: u64) -> Option<Self> {
        let context = context(seed)?;
        let spans = Spans::new(context, SCRIPT, PID);
        let (summary, finished, programs) = (Summary::default(), Vec::new(), BTreeMap::new());
        Some(Self { context, spans, summary, finished, programs })
    }

    pub(crate) fn perform(&mut self, effect: &Effect) {
        match effect {
            Effect::Log(record) => {
                self.spans.add(record);
                self.finished.append(&mut self.spans.take());
                if !matches!(record.event, LogEvent::Span(_)) {
                    self.summary.add(record);
                }
            }
            Effect::Run(run) | Effect::Exec(run) => {
                if let Action::Program { words, overrides, .. } = &run.action {
                    let header = overrides.iter().find(|(name, _)| name == TRACEPARENT);
                    let path = words[0].to_string();
                    let name = path.rsplit('/').next().unwrap_or_default().to_owned();
                    let header = header.map(|(_, value)| value.to_string()).unwrap_or_default();
                    self.programs.insert(header, name);
                }
            }
            _ => {}
        }
    }

    /// Checks the spans at the end of a run.
    pub(crate) fn judge(
        mut self,
        journal: &Journal,
        now: Time,
        outcome: &Outcome,
    ) -> Result<(), Violation> {
        let wrong = |what: String| Violation { oracle: "spans", what };
        self.spans.finish(Some(outcome));
        self.finished.append(&mut self.spans.take());
        let again = self.replayed(journal, outcome)?;
        if self.finished != again {
            let pair = self.finished.iter().zip(&again).find(|(one, other)| one != other);
            return Err(wrong(format!("live and from the journal: {pair:#?}")));
        }
        let rows = self.finished.iter().map(|span| {
            let json = serde_json::from_str(span).map_err(|error| wrong(error.to_string()))?;
            SpanRow::of(&json).map_err(wrong)
        });
        let rows = rows.collect::<Result<Vec<_>, _>>()?;
        check(&rows).map_err(wrong)?;
        self.save();
        for (header, name) in &self.programs {
            let span = header.split('-').nth(2).unwrap_or_default();
            if !rows.iter().any(|row| row.id == span && row.name == *name) {
                return Err(wrong(format!("no span of `{name}` with {header}")));
            }
        }
        let count = |name: &str| rows.iter().filter(|row| row.name == name).count();
        let delays: usize = rows.iter().map(|row| row.delays.len()).sum();
        let text = self.summary.render(SCRIPT, outcome, now);
        let counts = (count("attempt"), count("try"), delays);
        let (attempts, tries) = (number(&text, "attempts"), second(&text, "attempts"));
        let summary = (attempts, tries, second(&text, "waiting"));
        if counts != summary {
            return Err(wrong(format!("{counts:?} instead of {summary:?}:\n{text}\n{rows:#?}")));
        }
        Ok(())
    }

    /// Appends the spans to the file that a variable names, for a collector.
    fn save(&self) {
        let Some(path) = std::env::var_os(FILE) else { return };
        let file = OpenOptions::new().append(true).create(true).open(path);
        let spans = self.finished.join(",");
        let line =
            format!("{{\"resourceSpans\":[{{\"scopeSpans\":[{{\"spans\":[{spans}]}}]}}]}}\n");
        file.expect("a file").write_all(line.as_bytes()).expect("a disk");
    }

    fn replayed(&self, journal: &Journal, outcome: &Outcome) -> Result<Vec<String>, Violation> {
        let (mut spans, mut finished) = (Spans::new(self.context, SCRIPT, PID), Vec::new());
        let result = replay(journal, Level::SPANS, |record: &LogRecord| {
            spans.add(record);
            finished.append(&mut spans.take());
        });
        result.map_err(|error| Violation { oracle: "spans", what: error.to_string() })?;
        spans.finish(Some(outcome));
        finished.append(&mut spans.take());
        Ok(finished)
    }
}

/// Returns the first number of a row of the summary, 0 without the row.
fn number(text: &str, row: &str) -> usize {
    numbers(text, row).next().unwrap_or(0)
}

/// Returns the number of tries or of delays in a row of the summary, after `in`.
fn second(text: &str, row: &str) -> usize {
    let line = text.lines().find(|line| line.trim_start().starts_with(row)).unwrap_or_default();
    numbers(line.split_once(" in ").map_or("", |(_, rest)| rest), "").next().unwrap_or(0)
}

fn numbers<'t>(text: &'t str, row: &str) -> impl Iterator<Item = usize> + 't {
    let line = text.lines().find(|line| line.trim_start().starts_with(row)).unwrap_or_default();
    line.split(|c: char| !c.is_ascii_digit()).filter_map(|it| it.parse().ok())
}
