//! What trials tell, and how sure that is.

/// The quantile of the normal distribution for intervals that are right 95 times of a hundred.
const SURE: f64 = 1.96;
/// 99 times of a hundred, for where many are looked at.
const SURER: f64 = 2.576;

/// A share, with an interval that has the true one in 95 of a hundred cases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// What was found.
    pub found: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

/// The mean of the shares of some trials, each of `clients` clients. What clients of one trial do
/// hangs together, so they may tell no more than one would.
pub fn share(shares: &[f64], clients: u32) -> Share {
    let trials = shares.len().max(1) as f64;
    let found = shares.iter().sum::<f64>() / trials;
    let scatter = shares.iter().map(|share| (share - found).powi(2)).sum::<f64>();
    let error = scatter / (trials * (trials - 1.0).max(1.0));
    let most = trials * f64::from(clients);
    // As many independent ones would scatter as much.
    let worth = if error > 0.0 { found * (1.0 - found) / error } else { trials };
    let worth = worth.clamp(trials, most);
    // Wilson, *Probable inference, the law of succession, and statistical inference*, 1927.
    let square = SURE * SURE / worth;
    let middle = (found + square / 2.0) / (1.0 + square);
    let half = SURE * (found * (1.0 - found) / worth + square / (4.0 * worth)).sqrt();
    let half = half / (1.0 + square);
    Share { found, low: (middle - half).max(0.0), high: (middle + half).min(1.0) }
}

/// A mean difference, and half of an interval that has the true one in 99 of a hundred cases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// What was found.
    pub mean: f64,
    /// How far the true one may be off.
    pub half: f64,
}

impl Difference {
    /// Whether there is one.
    pub fn is_sure(&self) -> bool {
        self.mean.abs() > self.half
    }
}

/// How the second of each pair differs from the first.
pub fn difference(pairs: impl Iterator<Item = (f64, f64)> + Clone) -> Difference {
    let count = pairs.clone().count().max(1) as f64;
    let differences = pairs.map(|(before, after)| after - before);
    let mean = differences.clone().sum::<f64>() / count;
    let scatter = differences.map(|it| (it - mean).powi(2)).sum::<f64>();
    let error = (scatter / (count * (count - 1.0).max(1.0))).sqrt();
    Difference { mean, half: SURER * error }
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
    fn clients_that_do_the_same_tell_no_more_than_one() {
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
        assert!(!difference(same.into_iter()).is_sure());
        let more =
            (0..100).map(|at| (f64::from(at), f64::from(at) + 1.0 + 0.01 * f64::from(at % 2)));
        assert!(difference(more).is_sure());
    }
}
