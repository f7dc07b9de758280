//! Quantiles, smoothing, and local maxima beyond noise.

/// Sorted values for quantiles.
#[derive(Clone, Debug, Default)]
pub struct Quantiles(Vec<f32>);

impl Quantiles {
    /// Sorts the values. NaN comes last.
    pub fn new(mut values: Vec<f32>) -> Self {
        values.sort_unstable_by(f32::total_cmp);
        Self(values)
    }

    /// Returns the smallest value that is at least as large as `part` of all values; none without
    /// values.
    pub fn at(&self, part: f64) -> Option<f64> {
        let last = self.0.len().checked_sub(1)?;
        self.0.get((part * last as f64).round() as usize).copied().map(f64::from)
    }

    /// Returns the largest value.
    pub fn worst(&self) -> Option<f64> {
        self.at(1.0)
    }

    /// Returns the mean; none without values.
    pub fn mean(&self) -> Option<f64> {
        let sum: f64 = self.0.iter().copied().map(f64::from).sum();
        (!self.0.is_empty()).then(|| sum / self.0.len() as f64)
    }
}

/// Returns the mean of some numbers; 0 without numbers.
pub fn mean(numbers: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = numbers.fold((0.0, 0), |(sum, count), number| (sum + number, count + 1));
    sum / f64::from(count.max(1))
}

/// Smooths counts with the weights 1 : 2 : 1. The end values are repeated beyond the ends.
pub fn smooth(counts: &[f64]) -> Vec<f64> {
    let at = |index: usize| counts[index.min(counts.len() - 1)];
    (0..counts.len())
        .map(|index| (at(index.saturating_sub(1)) + 2.0 * at(index) + at(index + 1)) / 4.0)
        .collect()
}

/// A rise of a curve to a local maximum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rise {
    /// Index and value of the preceding minimum.
    pub from: (usize, f64),
    /// Index and value of the maximum.
    pub to: (usize, f64),
}

impl Rise {
    /// Returns the height of the rise as a part of the maximum.
    pub fn depth(&self) -> f64 {
        1.0 - self.from.1 / self.to.1
    }
}

/// Returns the local maxima of counts smoothed with [`smooth`], each with the preceding minimum;
/// the first value counts as a minimum. Ignores differences within noise, which is six standard
/// deviations of such counts (spanned by a hundred of them) plus 2 %.
pub fn rises(smoothed: &[f64]) -> Vec<Rise> {
    // Smoothing leaves (1² + 2² + 1²) / 4² of the variance, which for counts is their mean.
    let noise = |value: f64| (6.0 * (value * 6.0 / 16.0).sqrt()).max(0.02 * value).max(1e-9);
    let mut rises = Vec::new();
    let Some(first) = smoothed.first() else { return rises };
    let (mut low, mut high) = ((0, *first), (0, *first));
    let mut rising = false;
    for (index, value) in smoothed.iter().copied().enumerate() {
        if rising {
            if value > high.1 {
                high = (index, value);
            } else if high.1 - value > noise(high.1) {
                rises.push(Rise { from: low, to: high });
                (rising, low) = (false, (index, value));
            }
        } else if value < low.1 {
            low = (index, value);
        } else if value - low.1 > noise(low.1.max(1.0)) {
            (rising, high) = (true, (index, value));
        }
    }
    rises
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_a_few() {
        let of = |values: &[f32], part| Quantiles::new(values.to_vec()).at(part);
        assert_eq!(of(&[3.0, 1.0, 2.0], 0.5), Some(2.0));
        assert_eq!(of(&[3.0, 1.0, 2.0], 1.0), Some(3.0));
        assert_eq!(of(&[7.0], 0.99), Some(7.0));
        assert_eq!(of(&[], 0.5), None);
    }

    #[test]
    fn only_maxima_beyond_noise_count() {
        let wave = |n: usize| 1000.0 + 500.0 * (n as f64 / 10.0 * std::f64::consts::TAU).sin();
        let waves: Vec<_> = (0..60).map(wave).collect();
        assert_eq!(rises(&smooth(&waves)).len(), 6);
        let noise: Vec<_> = (0..60).map(|n| 1000.0 + f64::from(n * 7919 % 61) - 30.0).collect();
        assert_eq!(rises(&smooth(&noise)), []);
        assert_eq!(rises(&[]), []);
        let falls: Vec<_> = (0..60).map(|n| 1e6 / f64::from(n + 1)).collect();
        assert_eq!(rises(&smooth(&falls)), []);
    }
}
