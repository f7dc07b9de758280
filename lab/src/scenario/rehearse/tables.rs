//! Results of a rehearsal for people and programs.

use std::collections::BTreeMap;
use std::time::Duration;

use ftsh_ide::lint::schedules;
use ftsh_machine::outcome::Human;
use ftsh_syntax::Script;

use super::{RehearsalResult, effects};
use crate::common::statistics::Quantiles;
use crate::common::{Cell, Column, ReportTable};
use crate::rehearsal::{ClientRun, CommandCounts, MAX_LINES};

/// Number of lines of the worst run shown at each end.
const LINES: usize = 12;

/// Returns all tables, the most important one first.
pub(super) fn tables(found: &RehearsalResult, script: &Script) -> Vec<ReportTable> {
    let mut tables = vec![
        times(found),
        ends(found),
        commands(found),
        tries(found, script),
        effects::table(found),
        worst(found),
    ];
    for table in &mut tables {
        // Programs receive the column in any case.
        table.is_long |= table.rows.is_empty();
        table.columns.push(Column::hidden("backoff"));
        let backoff: Cell = found.rehearsal.policy.to_string().into();
        table.rows.iter_mut().for_each(|row| row.push(backoff.clone()));
    }
    tables
}

/// Formats a percentage without needless digits.
pub(super) fn short(part: f64) -> String {
    let percent = format!("{:.1}", 100.0 * part);
    percent.strip_suffix(".0").unwrap_or(&percent).to_owned()
}

/// Returns a part in percent.
pub(super) fn percent(part: f64) -> Cell {
    Cell::Number(100.0 * part, usize::from(part > 0.0 && part < 1.0))
}

/// Returns a length of time in words.
pub(super) fn length(seconds: Option<f64>) -> Cell {
    let length = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    length.map_or(Cell::Missing, |length| Human(length).to_string().into())
}

/// Returns the runs of all trials and clients.
pub(super) fn runs(found: &RehearsalResult) -> impl Iterator<Item = &ClientRun> {
    found.trials.iter().flat_map(|trial| &trial.runs)
}

/// Selection of runs for a row.
type Which = fn(&ClientRun) -> bool;

fn times(found: &RehearsalResult) -> ReportTable {
    let (success, clients) = (found.success, found.rehearsal.clients);
    let times = if clients == 1 { String::new() } else { format!(" by {clients} at once") };
    let title = format!(
        "{}, rehearsed {} times{times}: {} % of the runs succeed (95 % interval: {} to {} %)",
        found.name,
        found.trials.len(),
        short(success.found),
        short(success.low),
        short(success.high),
    );
    let mut table = ReportTable::new(
        "times",
        title,
        vec![
            Column::new("runs_that", "runs that", ""),
            Column::new("runs", "runs", ""),
            Column::new("percent", "%", ""),
            Column::new("mean", "mean time", ""),
            Column::new("median", "median", ""),
            Column::new("p90", "90 %", ""),
            Column::new("p99", "99 %", ""),
            Column::new("longest", "longest", ""),
            Column::hidden("mean_s"),
            Column::hidden("median_s"),
            Column::hidden("p90_s"),
            Column::hidden("p99_s"),
            Column::hidden("longest_s"),
            Column::hidden("success_low_percent"),
            Column::hidden("success_high_percent"),
        ],
    );
    let count = runs(found).count().max(1);
    let kinds: [(&str, Which); 4] = [
        ("succeed", ClientRun::success),
        ("fail", |run| run.ending.is_some() && !run.success()),
        ("are stopped", |run| run.ending.is_none()),
        ("all", |_| true),
    ];
    for (name, which) in kinds {
        let times = runs(found).filter(|run| which(run)).map(|run| run.time.as_secs_f32());
        let times = Quantiles::new(times.collect());
        let these = runs(found).filter(|run| which(run)).count();
        if these == 0 {
            continue;
        }
        let values = [times.mean(), times.at(0.5), times.at(0.9), times.at(0.99), times.worst()];
        let mut row = vec![name.into(), these.into(), percent(these as f64 / count as f64)];
        row.extend(values.map(length));
        row.extend(values.map(Cell::from));
        row.extend([success.low, success.high].map(|part| Cell::number(100.0 * part)));
        table.push(row);
    }
    table
}

fn ends(found: &RehearsalResult) -> ReportTable {
    let mut table = ReportTable::new(
        "ends",
        "What ended the runs that failed",
        vec![
            Column::new("line", "line", ""),
            Column::new("runs", "runs", ""),
            Column::new("percent", "%", "of all"),
            Column::new("failure", "failure, for example", ""),
            Column::hidden("kind"),
            Column::hidden("code"),
        ],
    );
    let mut by_place: BTreeMap<_, (u64, String)> = BTreeMap::new();
    for run in runs(found).filter(|run| !run.success()) {
        let Some(ending) = &run.ending else { continue };
        let (what, message) = match &ending.failure {
            Some(it) => ((it.line, it.kind.name(), it.code), it.summary()),
            None => {
                let code = ending.code;
                ((0, "exit", code), format!("exit {code}, by `exit` or of what `exec` runs"))
            }
        };
        let (count, _) = by_place.entry(what).or_insert((0, message));
        *count += 1;
    }
    let all = runs(found).count().max(1) as f64;
    let mut rows: Vec<_> = by_place.into_iter().collect();
    rows.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
    for ((line, kind, code), (count, message)) in rows {
        table.push(vec![
            if line == 0 { Cell::Missing } else { u64::from(line).into() },
            count.into(),
            percent(count as f64 / all),
            message.into(),
            kind.into(),
            Cell::Number(f64::from(code), 0),
        ]);
    }
    table
}

fn commands(found: &RehearsalResult) -> ReportTable {
    let many = found.rehearsal.clients > 1;
    let mut peaks =
        [Column::new("at_once", "at once", "most"), Column::new("a_second", "a second", "most")];
    for column in &mut peaks {
        column.shown = many;
    }
    let mut columns = vec![
        Column::new("command", "command", ""),
        Column::new("runs", "runs", "a trial"),
        Column::new("most", "most", ""),
        Column::new("failed_percent", "failed", "%"),
        Column::new("cut_percent", "cut short", "%"),
        Column::new("mean", "mean time", ""),
        Column::hidden("mean_s"),
        Column::hidden("model"),
    ];
    columns.extend(peaks);
    let mut table = ReportTable::new("commands", "Commands", columns);
    let trials = found.trials.len().max(1) as f64;
    let mut row = |name: String, model: Cell, uses: &[&CommandCounts]| {
        let mut sum = CommandCounts::default();
        for it in uses {
            sum.add(it);
        }
        let of_all = |part: u64| {
            let starts = sum.starts as f64;
            if sum.starts == 0 { Cell::Missing } else { percent(part as f64 / starts) }
        };
        let mean = (sum.starts > 0).then(|| sum.time.as_secs_f64() / sum.starts as f64);
        table.push(vec![
            name.into(),
            Cell::number(sum.starts as f64 / trials),
            uses.iter().map(|it| it.starts).max().unwrap_or(0).into(),
            of_all(sum.failed),
            of_all(sum.cut),
            length(mean),
            mean.into(),
            model,
            sum.at_once.into(),
            sum.a_second.into(),
        ]);
    };
    for (at, model) in found.rehearsal.models.iter().enumerate() {
        let uses: Vec<_> = found.trials.iter().map(|trial| &trial.uses[at]).collect();
        row(model.name(), model.to_string().into(), &uses);
    }
    let mut others: BTreeMap<_, Vec<&CommandCounts>> = BTreeMap::new();
    for (name, it) in found.trials.iter().flat_map(|trial| &trial.others) {
        others.entry(name).or_default().push(it);
    }
    for (name, uses) in others {
        row(format!("{name} (no model)"), Cell::Missing, &uses);
    }
    for name in &found.never {
        row(format!("{name} (no model)"), Cell::Missing, &[]);
    }
    table
}

fn tries(found: &RehearsalResult, script: &Script) -> ReportTable {
    let mut table = ReportTable::new(
        "tries",
        "Tries",
        vec![
            Column::new("line", "line", ""),
            Column::new("try", "try", ""),
            Column::new("begun", "begun", "a trial"),
            Column::new("attempts", "attempts", "mean"),
            Column::new("most", "most", ""),
            Column::new("succeeded_percent", "succeeded", "%"),
            Column::new("gave_up_percent", "gave up", "%"),
            Column::new("cut_percent", "cut short", "%"),
        ],
    );
    for schedule in schedules(script, &found.rehearsal.policy) {
        let tried = found.tries.by_line.get(&schedule.line).copied().unwrap_or_default();
        let begun = tried.begun as f64;
        // The log has no end of a `limit`.
        let part = |count: u64| {
            if tried.begun == 0 || schedule.is_limit {
                Cell::Missing
            } else {
                percent(count as f64 / begun)
            }
        };
        let cut = tried.begun.saturating_sub(tried.succeeded + tried.gave_up);
        table.push(vec![
            u64::from(schedule.line).into(),
            format!("{}{}", "  ".repeat(schedule.depth), schedule.head).into(),
            Cell::number(begun / found.trials.len().max(1) as f64),
            if tried.begun == 0 {
                Cell::Missing
            } else {
                Cell::number(tried.attempts as f64 / begun)
            },
            tried.most.into(),
            part(tried.succeeded),
            part(tried.gave_up),
            part(cut),
        ]);
    }
    table
}

fn worst(found: &RehearsalResult) -> ReportTable {
    let (trial, client, log) = &found.worst;
    let run = &log.runs[*client];
    let how = match &run.ending {
        Some(ending) if ending.success => "the longest that succeeded",
        Some(_) => "the longest that failed",
        None => "the longest that was stopped",
    };
    let client = match found.rehearsal.clients {
        1 => String::new(),
        _ => format!(", client {client}"),
    };
    let title = format!("The worst run, {how}: trial {trial}{client}, {}", Human(run.time));
    let mut table = ReportTable::new(
        "worst",
        title,
        vec![
            Column::new("time", "time", ""),
            Column::new("line", "line", ""),
            Column::new("what", "what", ""),
            Column::hidden("time_s"),
        ],
    );
    let kept = log.tries.kept.as_ref();
    let (lines, missing) = kept.map_or((&[][..], 0), |(_, log)| (&log.lines[..], log.missing));
    for (at, line) in lines.iter().enumerate() {
        if at == MAX_LINES && missing > 0 {
            let what = format!("… {missing} lines are left out here …");
            table.push(vec![Cell::Missing, Cell::Missing, what.into(), Cell::Missing]);
        }
        table.push(vec![
            Human(line.at.elapsed()).to_string().into(),
            if line.line == 0 { Cell::Missing } else { u64::from(line.line).into() },
            line.what.clone().into(),
            Cell::number(line.at.elapsed().as_secs_f64()),
        ]);
    }
    table.shown = Some((LINES, LINES));
    table
}
