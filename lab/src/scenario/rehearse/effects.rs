//! What decides: what would change if one limit, number or policy were another.

use std::collections::BTreeMap;

use ftsh_syntax::Script;

use super::Found;
use super::tables::{length, percent};
use crate::common::statistics::mean;
use crate::common::{Column, Progress, Table, Value, trials};
use crate::rehearsal::{Change, Detail, Difference, Rehearsal, Trial, Tries, changes, difference};

/// Changes are tried with fewer trials if they would take more events than this together.
const PATIENCE: u64 = 1_500_000;
/// Fewer trials tell nothing.
const FEWEST: usize = 20;
/// If even these would take more events than this, no changes are tried.
const MOST_EVENTS: u64 = 100_000_000;
/// A difference in time by a smaller part is none worth to be told.
const NOTABLE: f64 = 0.01;
/// So many changes people see.
const CHANGES: usize = 10;

/// What a change does.
pub struct Effect {
    /// The change.
    pub change: Change,
    /// The share of runs that succeed then.
    pub success: f64,
    /// How much more that is.
    pub more: Difference,
    /// The mean time of runs then, in seconds.
    pub time: f64,
    /// How much longer that is.
    pub longer: Difference,
    /// In how many trials.
    pub trials: usize,
}

impl Effect {
    /// Whether it is more than chance, and enough to be told.
    fn is_notable(&self) -> bool {
        let part = self.longer.mean.abs() / (self.time - self.longer.mean).max(1e-9);
        self.more.is_sure() || self.longer.is_sure() && part >= NOTABLE
    }
}

/// Whether so many changes can be tried of trials of so many events.
fn are_affordable(changes: usize, events: u64) -> bool {
    (changes as u64).saturating_mul(events).saturating_mul(FEWEST as u64) <= MOST_EVENTS
}

/// What changes do, those that do most first; nothing if they would take too long.
pub fn effects(
    rehearsal: &Rehearsal,
    script: &Script,
    before: &[Trial],
    tries: &Tries,
) -> Option<Vec<Effect>> {
    let changes = changes(script, &rehearsal.policy, &tries.by_line);
    let events = before.iter().map(|trial| trial.events).max().unwrap_or_default();
    if !are_affordable(changes.len(), events) {
        return None;
    }
    let patience = PATIENCE / changes.len().max(1) as u64;
    let progress = Progress::new(changes.len());
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
                // Nothing is known of how it would have ended.
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
        effects.push(Effect { change, success, more, time, longer, trials: after.len() });
    }
    let size = |effect: &Effect| {
        let sure = |it: &Difference| if it.is_sure() { it.mean.abs() } else { 0.0 };
        (sure(&effect.more), sure(&effect.longer))
    };
    effects.sort_by(|one, other| {
        let (one, other) = (size(one), size(other));
        other.0.total_cmp(&one.0).then(other.1.total_cmp(&one.1))
    });
    Some(effects)
}

/// The changes that do most, for people; all, for programs.
pub fn table(found: &Found) -> Table {
    let mut table = Table::new(
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
    for Effect { change, success, more, time, longer, trials } in &found.effects {
        table.push(vec![
            u64::from(change.line).into(),
            change.what.clone().into(),
            percent(*success),
            shown(more, 100.0, "").into(),
            length(Some(*time)),
            lengths(longer).into(),
            Value::number(*time),
            Value::number(100.0 * more.mean),
            Value::number(100.0 * more.half),
            Value::number(longer.mean),
            Value::number(longer.half),
            (*trials).into(),
        ]);
    }
    let notable = found.effects.iter().take_while(|effect| effect.is_notable()).count();
    table.shown = Some((notable.min(CHANGES), 0));
    table.is_long = notable == 0;
    table
}

/// A difference, so many times as large; nothing if there may be none.
fn shown(difference: &Difference, times: f64, unit: &str) -> String {
    if !difference.is_sure() {
        return "=".into();
    }
    let (mean, half) = (difference.mean * times, difference.half * times);
    let sign = if mean < 0.0 { '−' } else { '+' };
    match format!("{half:.1}").as_str() {
        "0.0" => format!("{sign}{:.1}{unit}", mean.abs()),
        half => format!("{sign}{:.1} ± {half}{unit}", mean.abs()),
    }
}

/// A difference in seconds, in a unit that fits.
fn lengths(longer: &Difference) -> String {
    match longer.mean.abs() {
        ..0.1 => shown(longer, 1000.0, " ms"),
        ..120.0 => shown(longer, 1.0, " s"),
        ..7200.0 => shown(longer, 1.0 / 60.0, " min"),
        172_800.0.. => shown(longer, 1.0 / 86_400.0, " d"),
        _ => shown(longer, 1.0 / 3600.0, " h"),
    }
}

/// Says which changes aren't worth a row.
pub fn idle(found: &Found) -> Option<String> {
    let mut idle: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    for Effect { change, .. } in found.effects.iter().filter(|effect| !effect.is_notable()) {
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
    fn changes_of_what_takes_very_long_are_not_tried() {
        assert!(are_affordable(20, 10_000) && are_affordable(0, u64::MAX));
        assert!(!are_affordable(6, 2_000_000) && !are_affordable(2, u64::MAX));
    }
}
