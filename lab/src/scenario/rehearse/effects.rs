//! Effects of changes of single limits, numbers or policies.

use std::collections::BTreeMap;

use ftsh_syntax::Script;

use super::RehearsalResult;
use super::tables::{length, percent};
use crate::common::statistics::mean;
use crate::common::{Cell, Column, ReportTable, TrialProgress, trials};
use crate::rehearsal::{
    Detail, Difference, Rehearsal, ScriptChange, Trial, TryStatistics, changes, difference,
};

/// Maximum number of events of all changes, above which fewer trials are made.
const PATIENCE: u64 = 1_500_000;
/// Minimum number of meaningful trials.
const FEWEST: usize = 20;
/// Maximum number of events with the minimum of trials, above which no changes are tried.
const MAX_EVENTS: u64 = 100_000_000;
/// Smallest relative difference in time that is reported.
const NOTABLE: f64 = 0.01;
/// Number of changes shown to people.
const CHANGES: usize = 10;

/// Effect of a change.
pub struct ChangeEffect {
    /// The change.
    pub change: ScriptChange,
    /// Share of runs that succeed with the change.
    pub success: f64,
    /// Difference of the share.
    pub more: Difference,
    /// Mean time of runs with the change, in seconds.
    pub time: f64,
    /// Difference of the time.
    pub longer: Difference,
    /// Number of trials.
    pub trials: usize,
}

impl ChangeEffect {
    /// True if the effect is significant and large enough to report.
    fn is_notable(&self) -> bool {
        let part = self.longer.mean.abs() / (self.time - self.longer.mean).max(1e-9);
        self.more.is_significant() || self.longer.is_significant() && part >= NOTABLE
    }
}

/// True if this number of changes can be tried in trials with this number of events.
fn are_affordable(changes: usize, events: u64) -> bool {
    (changes as u64).saturating_mul(events).saturating_mul(FEWEST as u64) <= MAX_EVENTS
}

/// Returns the effects of changes, largest first; none if they would take too long.
pub(super) fn effects(
    rehearsal: &Rehearsal,
    script: &Script,
    before: &[Trial],
    tries: &TryStatistics,
) -> Option<Vec<ChangeEffect>> {
    let changes = changes(script, &rehearsal.policy, &tries.by_line);
    let events = before.iter().map(|trial| trial.events).max().unwrap_or_default();
    if !are_affordable(changes.len(), events) {
        return None;
    }
    let patience = PATIENCE / changes.len().max(1) as u64;
    let progress = TrialProgress::new(changes.len());
    let numbers: Vec<_> = (0..changes.len()).collect();
    let after = trials(&numbers, &progress, |number| {
        let mut after = Vec::new();
        let mut events = 0;
        for trial in 0..before.len() {
            if trial >= FEWEST && events > patience {
                break;
            }
            let trial = rehearsal.trial(&changes[*number].script, trial as u64, Detail::Endings);
            if trial.stop.is_some() {
                // The end of a stopped run is unknown.
                return None;
            }
            events += trial.events;
            after.push((trial.share(), trial.time()));
        }
        Some(after)
    });
    let before: Vec<_> = before.iter().map(|it| (it.share(), it.time())).collect();
    let mut effects = Vec::new();
    for (change, after) in changes.into_iter().zip(after) {
        let Some(after) = after else { continue };
        let of = |what: fn(&(f64, f64)) -> f64| {
            let pairs = before.iter().map(what).zip(after.iter().map(what));
            (mean(after.iter().map(what)), difference(pairs))
        };
        let ((success, more), (time, longer)) = (of(|it| it.0), of(|it| it.1));
        effects.push(ChangeEffect { change, success, more, time, longer, trials: after.len() });
    }
    let size = |effect: &ChangeEffect| {
        let sure = |it: &Difference| if it.is_significant() { it.mean.abs() } else { 0.0 };
        (sure(&effect.more), sure(&effect.longer))
    };
    effects.sort_by(|one, other| {
        let (one, other) = (size(one), size(other));
        other.0.total_cmp(&one.0).then(other.1.total_cmp(&one.1))
    });
    Some(effects)
}

/// Returns the changes with the largest effects for people, and all for programs.
pub(super) fn table(found: &RehearsalResult) -> ReportTable {
    let mut table = ReportTable::new(
        "changes",
        "What one change would do, in the same trials (differences with 99 % intervals)",
        vec![
            Column::new("line", "line", ""),
            Column::new("change", "change", ""),
            Column::new("success_percent", "success", "%"),
            Column::new("more", "more", "points"),
            Column::new("time", "mean time", ""),
            Column::new("longer", "longer", ""),
            Column::hidden("time_s"),
            Column::hidden("more_points"),
            Column::hidden("more_points_half"),
            Column::hidden("longer_s"),
            Column::hidden("longer_s_half"),
            Column::hidden("trials"),
        ],
    );
    for ChangeEffect { change, success, more, time, longer, trials } in &found.effects {
        table.push(vec![
            u64::from(change.line).into(),
            change.what.clone().into(),
            percent(*success),
            shown(more, 100.0, "").into(),
            length(Some(*time)),
            lengths(longer).into(),
            Cell::number(*time),
            Cell::number(100.0 * more.mean),
            Cell::number(100.0 * more.half),
            Cell::number(longer.mean),
            Cell::number(longer.half),
            (*trials).into(),
        ]);
    }
    let notable = found.effects.iter().take_while(|effect| effect.is_notable()).count();
    table.shown = Some((notable.min(CHANGES), 0));
    table.is_long = notable == 0;
    table
}

/// Formats a scaled difference; `=` if it may be zero.
fn shown(difference: &Difference, times: f64, unit: &str) -> String {
    if !difference.is_significant() {
        return "=".into();
    }
    let (mean, half) = (difference.mean * times, difference.half * times);
    let sign = if mean < 0.0 { '−' } else { '+' };
    match format!("{half:.1}").as_str() {
        "0.0" => format!("{sign}{:.1}{unit}", mean.abs()),
        half => format!("{sign}{:.1} ± {half}{unit}", mean.abs()),
    }
}

/// Formats a difference in seconds in a suitable unit.
fn lengths(longer: &Difference) -> String {
    match longer.mean.abs() {
        ..0.1 => shown(longer, 1000.0, " ms"),
        ..120.0 => shown(longer, 1.0, " s"),
        ..7200.0 => shown(longer, 1.0 / 60.0, " min"),
        172_800.0.. => shown(longer, 1.0 / 86_400.0, " d"),
        _ => shown(longer, 1.0 / 3600.0, " h"),
    }
}

/// Lists the changes without a row.
pub(super) fn idle(found: &RehearsalResult) -> Option<String> {
    let mut idle: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    for ChangeEffect { change, .. } in found.effects.iter().filter(|effect| !effect.is_notable()) {
        idle.entry(change.line).or_default().push(&change.what);
    }
    let lines: Vec<_> =
        idle.iter().map(|(line, what)| format!("line {line}: {}", what.join(", "))).collect();
    (!lines.is_empty())
        .then(|| format!("Changes that make no difference one could tell: {}.", lines.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_very_long_trials_are_not_tried() {
        assert!(are_affordable(20, 10_000) && are_affordable(0, u64::MAX));
        assert!(!are_affordable(6, 2_000_000) && !are_affordable(2, u64::MAX));
    }
}
