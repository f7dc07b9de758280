//! Picture of a rehearsal.

use super::RehearsalResult;
use super::tables::short;
use crate::common::{Axis, Panel, Picture, PlotSeries, SeriesStyle};
use crate::rehearsal::ClientRun;

/// Maximum number of points of a curve and of parts of the time.
const POINTS: usize = 300;
const PARTS: usize = 60;

/// Draws the share of runs that are over by a time, and the starts of commands.
pub(super) fn picture(found: &RehearsalResult) -> Picture {
    let runs: Vec<_> = found.trials.iter().flat_map(|trial| &trial.runs).collect();
    let end = runs.iter().map(|run| run.time.as_secs_f64()).fold(0.0, f64::max);
    let title = format!("{}: {} % succeed", found.name, short(found.success.found));
    let clock = TimeAxis::new(end);
    let mut panels = vec![over(&runs, &clock)];
    // Clients begin at different moments.
    let starts = found.trials.iter().flat_map(|trial| &trial.starts);
    let latest = starts.map(|(time, _)| f64::from(*time)).fold(end, f64::max);
    panels.extend(self::starts(found, &TimeAxis::new(latest)));
    Picture { title, panels }
}

/// Axis of time in a suitable unit.
struct TimeAxis {
    end: f64,
    unit: f64,
    name: &'static str,
}

impl TimeAxis {
    fn new(end: f64) -> Self {
        let (unit, name) = match end {
            ..300.0 => (1.0, "time, s"),
            ..18_000.0 => (60.0, "time, min"),
            ..432_000.0 => (3600.0, "time, h"),
            _ => (86_400.0, "time, d"),
        };
        Self { end: end / unit, unit, name }
    }

    /// Converts a time to the unit.
    fn of(&self, seconds: f64) -> f64 {
        seconds / self.unit
    }

    fn axis(&self) -> Axis {
        Axis::linear(self.name).between(0.0, 1.02 * self.end)
    }
}

fn over(runs: &[&ClientRun], clock: &TimeAxis) -> Panel {
    let curve = |name: &str, color, which: &dyn Fn(&ClientRun) -> bool| {
        let these = runs.iter().filter(|run| which(run));
        let mut times: Vec<f64> = these.map(|run| clock.of(run.time.as_secs_f64())).collect();
        times.sort_by(f64::total_cmp);
        let (count, all) = (times.len(), runs.len().max(1) as f64);
        let share = |so_many: usize| 100.0 * so_many as f64 / all;
        let step = (count / POINTS).max(1);
        let mut points = vec![(0.0, 0.0)];
        for (at, time) in times.iter().enumerate() {
            if at % step == 0 || at + 1 == count {
                let before = points.last().map_or(0.0, |(_, share)| *share);
                points.extend([(*time, before), (*time, share(at + 1))]);
            }
        }
        points.push((clock.end, share(count)));
        PlotSeries { name: name.into(), points, style: SeriesStyle::Line, color }
    };
    let mut series = vec![curve("succeeded", 0, &ClientRun::success)];
    let failed = |run: &ClientRun| run.ending.is_some() && !run.success();
    if runs.iter().any(|run| failed(run)) {
        series.push(curve("failed", 1, &failed));
    }
    Panel {
        title: "Runs that are over".into(),
        x: clock.axis(),
        y: Axis::linear("% of runs").between(0.0, 103.0),
        series,
    }
}

fn starts(found: &RehearsalResult, clock: &TimeAxis) -> Option<Panel> {
    let part = (clock.end / PARTS as f64).max(1e-9);
    let minutes = part * clock.unit / 60.0;
    let trials = found.trials.len().max(1) as f64;
    let mut series = Vec::new();
    for (at, model) in found.rehearsal.models.iter().enumerate() {
        let mut counts = vec![0_u64; PARTS];
        let starts = found.trials.iter().flat_map(|trial| &trial.starts);
        for (time, _) in starts.filter(|(_, of)| *of == at) {
            let number = (clock.of(f64::from(*time)) / part) as usize;
            counts[number.min(PARTS - 1)] += 1;
        }
        if counts.iter().all(|count| *count == 0) {
            continue;
        }
        let points = counts.iter().enumerate().map(|(number, count)| {
            ((number as f64 + 0.5) * part, *count as f64 / trials / minutes)
        });
        let (name, points) = (model.name(), points.collect());
        series.push(PlotSeries { name, points, style: SeriesStyle::Line, color: at });
    }
    (!series.is_empty()).then(|| Panel {
        title: "Starts of commands, mean of all trials".into(),
        x: clock.axis(),
        y: Axis::linear("starts a minute"),
        series,
    })
}
