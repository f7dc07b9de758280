//! Statistics of trials with confidence intervals.

/// Quantile of the normal distribution for 95 % confidence intervals.
const QUANTILE_95: f64 = 1.96;
/// Quantile for 99 % confidence intervals, used for many comparisons.
const QUANTILE_99: f64 = 2.576;

/// A share with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// Observed share.
    pub found: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// Returns the mean of the shares of several trials with `clients` clients each. Clients of one
/// trial are correlated, and may carry no more information than one client.
pub fn share(shares: &[f64], clients: u32) -> Share {
    let trials = shares.len().max(1) as f64;
    let found = shares.iter().sum::<f64>() / trials;
    let scatter = shares.iter().map(|share| (share - found).powi(2)).sum::<f64>();
    let error = scatter / (trials * (trials - 1.0).max(1.0));
    let most = trials * f64::from(clients);
    // Number of independent observations with the same variance.
    let worth = if error > 0.0 { found * (1.0 - found) / error } else { trials };
    let worth = worth.clamp(trials, most);
    // Wilson, *Probable inference, the law of succession, and statistical inference*, 1927.
    let square = QUANTILE_95 * QUANTILE_95 / worth;
    let middle = (found + square / 2.0) / (1.0 + square);
    let half = QUANTILE_95 * (found * (1.0 - found) / worth + square / (4.0 * worth)).sqrt();
    let half = half / (1.0 + square);
    Share { found, low: (middle - half).max(0.0), high: (middle + half).min(1.0) }
}

/// A mean difference with half of its 99 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Observed mean.
    pub mean: f64,
    /// Half of the width of the interval.
    pub half: f64,
}

impl Difference {
    /// True if the difference exceeds chance.
    pub fn is_significant(&self) -> bool {
        self.mean.abs() > self.half
    }
}

/// Returns the mean difference between the second and the first value of each pair.
pub fn difference(pairs: impl Iterator<Item = (f64, f64)> + Clone) -> Difference {
    let count = pairs.clone().count().max(1) as f64;
    let differences = pairs.map(|(before, after)| after - before);
    let mean = differences.clone().sum::<f64>() / count;
    let scatter = differences.map(|it| (it - mean).powi(2)).sum::<f64>();
    let error = (scatter / (count * (count - 1.0).max(1.0))).sqrt();
    Difference { mean, half: QUANTILE_99 * error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_wilsons() {
        let shares: Vec<f64> = (0..100).map(|at| f64::from(u8::from(at < 91))).collect();
        let Share { found, low, high } = share(&shares, 1);
        assert!((found - 0.91).abs() < 1e-9);
        assert!((low - 0.8377).abs() < 1e-3 && (high - 0.9519).abs() < 1e-3, "{low} {high}");
        let all = share(&[1.0; 1000], 1);
        assert!(all.high > 0.9999 && (all.low - 0.9962).abs() < 1e-3, "{all:?}");
    }

    #[test]
    fn identical_clients_count_as_one() {
        let shares: Vec<f64> = (0..100).map(|at| f64::from(u8::from(at < 50))).collect();
        let (one, many) = (share(&shares, 1), share(&shares, 1000));
        assert!((one.low - many.low).abs() < 2e-3, "{one:?} {many:?}");
        let apart: Vec<f64> = (0..100).map(|at| 0.5 + 0.001 * f64::from(at - 50)).collect();
        assert!(share(&apart, 1000).low > 0.45);
    }

    #[test]
    fn pairs_that_do_not_differ_are_no_difference() {
        let same = [(1.0, 1.0), (0.0, 0.0)];
        assert_eq!(difference(same.into_iter()), Difference { mean: 0.0, half: 0.0 });
        assert!(!difference(same.into_iter()).is_significant());
        let more =
            (0..100).map(|at| (f64::from(at), f64::from(at) + 1.0 + 0.01 * f64::from(at % 2)));
        assert!(difference(more).is_significant());
    }
}
