//! Exponential growth, which most policies build on.

use super::nanos::nanos;
use super::parameters::Parameters;

/// Position in the series min(T·Fⁿ, M), in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Growth {
    value: f64,
}

impl Growth {
    /// Returns the position before the first value.
    pub(super) fn start(parameters: Parameters) -> Self {
        Self { value: nanos(parameters.from).min(nanos(parameters.to)) }
    }

    /// Returns the next value of the series.
    pub(super) fn next(&mut self, parameters: Parameters) -> f64 {
        let value = self.value;
        self.value = (value * parameters.by).min(nanos(parameters.to));
        value
    }

    /// Returns all values of the series.
    pub(super) fn values(parameters: Parameters) -> impl Iterator<Item = f64> {
        let mut growth = Self::start(parameters);
        std::iter::repeat_with(move || growth.next(parameters))
    }
}
