//! Remarks on the results of a rehearsal.

use std::collections::{BTreeMap, BTreeSet};

use ftsh_ide::lint::schedules;
use ftsh_machine::FailureKind;
use ftsh_syntax::Script;

use super::tables::runs;
use super::{Changes, RehearsalResult, effects};

/// Returns the remarks on the tables.
pub(super) fn notes(found: &RehearsalResult, script: &Script) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(effects::idle(found));
    notes.extend(unchanged(found, script));
    let models = &found.rehearsal.models;
    for (at, model) in models.iter().enumerate() {
        if found.trials.iter().all(|trial| trial.uses[at].starts == 0) {
            notes.push(format!(
                "No command was ever like this: `{model}`. Is it the script's spelling, or does a \
                 model before it take them all?"
            ));
        }
    }
    let others: BTreeSet<_> = found
        .trials
        .iter()
        .flat_map(|trial| &trial.others)
        .map(|(name, _)| name.to_string())
        .collect();
    if !others.is_empty() {
        let names: Vec<_> = others.iter().map(|name| format!("`{name}`")).collect();
        notes.push(format!(
            "Commands without a model succeed at once and print nothing: {}.",
            names.join(", ")
        ));
    }
    if !found.never.is_empty() {
        let names: Vec<_> = found.never.iter().map(|name| format!("`{name}`")).collect();
        notes.push(format!(
            "Commands that never ran, in no trial, and have no model: {}.",
            names.join(", ")
        ));
    }
    notes.extend(untried(found));
    notes.extend(stopped(found));
    let events: u64 = found.trials.iter().map(|trial| trial.events).sum();
    notes.push(format!("{events} events were simulated, without those of the changes."));
    notes
}

/// Lists the tries that were not changed, with the reason.
fn unchanged(found: &RehearsalResult, script: &Script) -> Option<String> {
    match found.changes {
        Changes::Tried => {}
        Changes::Unwanted => return None,
        Changes::TooMuch => {
            return Some(
                "No changes were tried: that would take too many events. With a shorter `--until`, or \
                 longer delays, they are."
                    .into(),
            );
        }
    }
    let schedules = schedules(script, &found.rehearsal.policy);
    // A `try` has a policy if its whole head is known.
    let computed = schedules.iter().filter(|schedule| schedule.policy.is_none());
    let items: Vec<_> = computed.map(|it| format!("line {}: `{}`", it.line, it.head)).collect();
    (!items.is_empty()).then(|| {
        format!(
            "Not changed, since only running the script can tell what is said there: {}.",
            items.join("; ")
        )
    })
}

/// Names commands outside of any `try` whose failure ended runs.
fn untried(found: &RehearsalResult) -> Option<String> {
    let mut lines: BTreeMap<u32, (u64, &str)> = BTreeMap::new();
    for failure in runs(found).filter_map(|run| run.ending.as_ref()?.failure.as_ref()) {
        let is_of_a_command = matches!(failure.kind, FailureKind::Exit | FailureKind::Signal);
        if is_of_a_command && failure.tries.is_empty() && failure.earlier.is_none() {
            lines.entry(failure.line).or_insert((0, &failure.command)).0 += 1;
        }
    }
    let items: Vec<_> = lines
        .iter()
        .map(|(line, (runs, command))| format!("line {line}: `{command}`, {runs} runs"))
        .collect();
    (!items.is_empty()).then(|| {
        format!(
            "No `try` is around what ended these runs by its first failure: {}.",
            items.join("; ")
        )
    })
}

/// Describes the commands in progress when runs were stopped.
fn stopped(found: &RehearsalResult) -> Option<String> {
    let stopped = runs(found).filter(|run| run.ending.is_none()).count();
    if stopped == 0 {
        return None;
    }
    let mut unfinished: BTreeMap<_, u64> = BTreeMap::new();
    for (name, runs) in found.trials.iter().flat_map(|trial| &trial.unfinished) {
        *unfinished.entry(name).or_default() += runs;
    }
    let items: Vec<_> =
        unfinished.iter().map(|(name, runs)| format!("`{name}` in {runs} of them")).collect();
    let what = if items.is_empty() {
        String::new()
    } else if found.rehearsal.until.is_some() {
        format!("; what was running then: {}", items.join(", "))
    } else {
        format!(
            "; what was running then: {}, and nothing would ever have ended it. `each` or `for` of a \
             `try` around it does",
            items.join(", ")
        )
    };
    Some(format!("{stopped} runs weren't over when they were stopped{what}."))
}
