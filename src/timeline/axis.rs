//! Marked times of a drawing and their labels.

use std::time::Duration;

use ftsh_machine::outcome::Human;

/// Steps on a clock in milliseconds, for more than ten seconds.
const CLOCK_STEPS: [u64; 16] = [
    10_000,
    15_000,
    30_000,
    60_000,
    120_000,
    300_000,
    600_000,
    900_000,
    1_800_000,
    3_600_000,
    7_200_000,
    14_400_000,
    21_600_000,
    43_200_000,
    86_400_000,
    172_800_000,
];

/// Returns the marked times in the first `whole` of a run, at most `most` of them.
pub(super) fn times(whole: Duration, most: u64) -> Vec<Duration> {
    let whole = u64::try_from(whole.as_millis()).unwrap_or(u64::MAX);
    let step = step(whole.div_ceil(most.max(1)));
    (0..=whole / step).map(|count| Duration::from_millis(count * step)).collect()
}

/// Returns the smallest step of at least `least`: 1, 2 or 5 times a power of ten, or a step on a
/// clock.
fn step(least: u64) -> u64 {
    let power_of_ten = |most: u32| (0..most).map(|power| 10_u64.pow(power));
    let decimal = |most| power_of_ten(most).flat_map(|ten| [ten, 2 * ten, 5 * ten]);
    let days = |days: u64| days * 86_400_000;
    let steps = decimal(4).chain(CLOCK_STEPS).chain(decimal(9).map(days).skip(2));
    steps.into_iter().find(|step| *step >= least).unwrap_or(u64::MAX)
}

/// Returns the label of a time in a run with the duration `whole`.
pub(super) fn words(time: Duration, whole: Duration) -> String {
    match time.as_secs() {
        0 if time.is_zero() => "0".to_owned(),
        // All digits, because marks can be closer than the rounded text.
        seconds @ 0..60 if time.subsec_millis() > 0 && whole >= Duration::from_secs(1) => {
            let text = format!("{seconds}.{:03}", time.subsec_millis());
            format!("{} s", text.trim_end_matches('0'))
        }
        _ => Human(time).to_string(),
    }
}
