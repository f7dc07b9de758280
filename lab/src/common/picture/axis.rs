//! Axes with their scales and labels.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

/// An axis of a picture.
#[derive(Clone, Debug, Default)]
pub struct Axis {
    /// Label with the unit.
    pub label: String,
    /// True for a logarithmic axis, whose lower end also shows values up to 0.
    pub log: bool,
    /// Both ends, if they do not come from the data.
    pub range: Option<(f64, f64)>,
}

impl Axis {
    /// Creates a linear axis that starts at 0 or at the smallest value.
    pub fn linear(label: &str) -> Self {
        Self { label: label.to_owned(), log: false, range: None }
    }

    /// Creates a logarithmic axis.
    pub fn log(label: &str) -> Self {
        Self { label: label.to_owned(), log: true, range: None }
    }

    /// Sets both ends.
    #[must_use]
    pub fn between(self, from: f64, to: f64) -> Self {
        Self { range: Some((from, to)), ..self }
    }

    /// Returns the axis as a linear one, whose ends come from the data if it was logarithmic.
    #[must_use]
    pub fn into_linear(self) -> Self {
        if self.log { Self::linear(&self.label) } else { self }
    }

    /// Returns the position of a value, if the axis can show the value.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        let place = if self.log { value.log10() } else { value };
        place.is_finite().then_some(place)
    }

    /// Returns the scale for these values.
    pub(super) fn scale(&self, values: impl Iterator<Item = f64>) -> AxisScale<'_> {
        let ends = self.ends(values);
        AxisScale { axis: self, ends, ticks: self.ticks(ends) }
    }

    /// Returns the ends as positions.
    fn ends(&self, values: impl Iterator<Item = f64>) -> (f64, f64) {
        if let Some((from, to)) = self.range
            && let (Some(from), Some(to)) = (self.place(from), self.place(to))
            && from < to
        {
            return (from, to);
        }
        let places = values.filter_map(|value| self.place(value));
        let (low, high) = places.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), it| {
            (low.min(it), high.max(it))
        });
        if low > high {
            return (0.0, 1.0);
        }
        if self.log {
            let room = (0.03 * (high - low)).max(0.25 - 0.5 * (high - low));
            return (low - room, high + room);
        }
        // Lengths and counts are compared from 0.
        let low = low.min(0.0);
        (low, if high > low { high + 0.04 * (high - low) } else { low + 1.0 })
    }

    /// Returns the positions of labels.
    fn ticks(&self, (from, to): (f64, f64)) -> Vec<f64> {
        if self.log {
            let factors: &[f64] = match to - from {
                ..1.2 => &[1.0, 2.0, 3.0, 5.0, 7.0],
                ..3.0 => &[1.0, 2.0, 5.0],
                _ => &[1.0],
            };
            let decades = from.floor() as i32..=to.ceil() as i32;
            let ticks = decades
                .flat_map(|decade| factors.iter().map(move |it| f64::from(decade) + it.log10()));
            return ticks.filter(|tick| (from..=to).contains(tick)).collect();
        }
        let rough = (to - from) / 6.0;
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|it| it * power).into_iter().find(|it| *it >= rough);
        let step = step.unwrap_or(rough);
        let first = (from / step).ceil() as i64;
        (0..12).map(|n| (first + n) as f64 * step).filter(|it| *it <= to).collect()
    }

    /// Returns the label at a position.
    fn tick(&self, place: f64) -> String {
        let value = if self.log { 10_f64.powf(place) } else { place };
        let short = |value: f64| {
            let text = format!("{value:.3}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        };
        match value.abs() {
            1e6.. => short(value / 1e6) + "M",
            1e4.. => short(value / 1e3) + "k",
            1e-3.. => short(value),
            0.0 => "0".into(),
            _ => format!("{value:.0e}"),
        }
    }
}

/// Part of an axis between two positions, which are values or their logarithms.
#[derive(Clone)]
pub(super) struct AxisScale<'a> {
    axis: &'a Axis,
    ends: (f64, f64),
    ticks: Vec<f64>,
}

impl AxisScale<'_> {
    /// Returns the position of a value, if the axis can show the value. Values too small for a
    /// logarithmic axis are at its lower end.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        let (low, high) = self.ends;
        let place = match self.axis.place(value) {
            Some(place) if self.axis.log => place.max(low),
            None if self.axis.log && value <= 0.0 => low,
            place => place?,
        };
        (low..=high).contains(&place).then_some(place)
    }
}

impl Ranged for AxisScale<'_> {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, place: &f64, (low, high): (i32, i32)) -> i32 {
        let part = (place - self.ends.0) / (self.ends.1 - self.ends.0);
        low + (part * f64::from(high - low)).round() as i32
    }

    fn key_points<H: KeyPointHint>(&self, _: H) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.ends.0..self.ends.1
    }
}

impl ValueFormatter<f64> for AxisScale<'_> {
    fn format_ext(&self, place: &f64) -> String {
        self.axis.tick(*place)
    }
}
