//! `--durations` and `--durations-forget`: durations of earlier attempts, from which `usual` learns.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, anyhow};
use bstr::{BStr, ByteSlice};

use super::columns;
use crate::cli::messages::{print_note, print_text};
use crate::cli::plan::RunPlan;
use ftsh_ide::durations::{DurationSummary, Durations, summaries};
use ftsh_machine::Outcome;
use ftsh_machine::durations::history::DurationHistory;
use ftsh_machine::outcome::Human;
use ftsh_process::{DurationStore, ScriptIdentity};
use ftsh_syntax::Script;
use ftsh_sys::os_error::plain;

const HEAD: [&str; 6] = ["LINE", "SAMPLES", "MEDIAN", "P95", "LIMIT", "CLAUSE"];

/// Lookup of durations in the user's directory.
pub(crate) struct DurationLookup(pub Option<DurationStore>);

impl Durations for DurationLookup {
    fn of_file(&self, path: &BStr) -> Option<DurationHistory> {
        self.0.as_ref()?.history(&ScriptIdentity::File(path.to_path_lossy().into()))
    }
}

/// Prints the learned limits of a script, with the durations recorded for each.
pub(crate) fn show(script: &Script, plan: &RunPlan) -> Outcome {
    let all = all_summaries(script, plan);
    if all.is_empty() {
        return print_text("the script has no `usual`\n");
    }
    print_text(&render(&all))
}

/// Removes the durations recorded for a script and the files that it uses.
pub(crate) fn forget(script: &Script, plan: &RunPlan) -> Result<Outcome> {
    let Some(store) = &plan.process.durations.store else {
        return Err(anyhow!("no durations are recorded"));
    };
    let mut count = 0;
    for (_, identity) in files(script, plan) {
        let forgotten = identity.map_or(Ok(false), |identity| store.forget(&identity));
        count += usize::from(forgotten.map_err(|error| {
            anyhow!("can't drop durations in `{}`: {}", store.folder().display(), plain(&error))
        })?);
    }
    let what = if count > 0 { "the durations are dropped" } else { "there are no durations" };
    Ok(print_text(&format!("{what}\n")))
}

/// Prints a note on each learned limit of a script with samples.
pub(crate) fn note(script: &Script, plan: &RunPlan) {
    let all = all_summaries(script, plan).into_iter();
    for (file, summary) in all.filter(|(_, summary)| summary.successes > 0) {
        print_note(&format!("{file}:{}: usual: {}", summary.limit.line, summary.sentence()));
    }
}

/// Returns the files of a script, each with the identity of its record.
fn files<'s>(script: &'s Script, plan: &RunPlan) -> Vec<(&'s Script, Option<ScriptIdentity>)> {
    let own = plan.script.program.identity(Some(script));
    let identity = |(index, file): (usize, &'s Script)| match index {
        0 => (file, own.clone()),
        _ => (file, Some(ScriptIdentity::File(PathBuf::from(&**file.source.name())))),
    };
    script.all_files().into_iter().enumerate().map(identity).collect()
}

/// Returns the summaries of a script and the files that it uses, each with the name of the file.
fn all_summaries(script: &Script, plan: &RunPlan) -> Vec<(String, DurationSummary)> {
    let store = plan.process.durations.store.as_ref();
    let of_file = |(file, identity): (&Script, Option<ScriptIdentity>)| {
        let history = store.zip(identity).and_then(|(store, it)| store.history(&it));
        let name = file.source.name().to_string();
        let all = summaries(file, history.as_ref()).into_iter();
        all.map(move |summary| (name.clone(), summary)).collect::<Vec<_>>()
    };
    files(script, plan).into_iter().flat_map(of_file).collect()
}

fn render(all: &[(String, DurationSummary)]) -> String {
    let main = all.first().map(|(name, _)| name.as_str()).unwrap_or_default();
    let rows = all.iter().map(|(name, summary)| row(name, name == main, summary));
    let head = HEAD.map(str::to_owned).to_vec();
    columns(&std::iter::once(head).chain(rows).collect::<Vec<_>>())
}

/// Returns the cells of a limit.
fn row(name: &str, is_main: bool, summary: &DurationSummary) -> Vec<String> {
    let DurationSummary { limit, successes, median, percentile, now } = summary;
    let time = |time: &Option<Duration>| time.map_or("-".to_owned(), |it| Human(it).to_string());
    let line = if is_main { limit.line.to_string() } else { format!("{name}:{}", limit.line) };
    let function = limit.function.as_ref().map(|name| format!(" (in {name})")).unwrap_or_default();
    let clause = format!("{}{function}", limit.head);
    vec![line, successes.to_string(), time(median), time(percentile), time(now), clause]
}
