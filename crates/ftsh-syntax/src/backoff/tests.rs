//! Delays of the policies, compared with their formulas.
#![expect(clippy::float_cmp, reason = "these are equal to the last bit or wrong")]

use std::time::Duration;

use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

use super::*;

const MS: Duration = Duration::from_millis(1);

fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

fn policy(text: &str) -> Policy {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refusal(text: &str) -> String {
    text.parse::<Policy>().expect_err(text).one_line()
}

/// Returns the first `count` delays, for attempts that take no time.
fn delays(text: &str, seed: u64, count: usize) -> Vec<Duration> {
    let mut backoff = Backoff::new(policy(text));
    let mut rng = rng(seed);
    let mut elapsed = Duration::ZERO;
    let next = |_| {
        let delay = backoff.next_delay(elapsed, &mut rng);
        elapsed = elapsed.saturating_add(delay);
        delay
    };
    (0..count).map(next).collect()
}

/// Returns delay number `n` of many clients, in seconds.
fn crowd(text: &str, n: usize) -> impl Iterator<Item = f64> {
    (0..20_000).map(move |seed| delays(text, seed, n + 1)[n].as_secs_f64())
}

/// Tests by Kolmogorov and Smirnov, at the level of 0.1 %, that the values are uniform from 0 to 1.
fn assert_uniform(what: &str, values: impl Iterator<Item = f64>) {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let count = values.len() as f64;
    let distance = values
        .iter()
        .enumerate()
        .map(|(i, value)| (value - i as f64 / count).max((i + 1) as f64 / count - value))
        .fold(0.0, f64::max);
    let bound = 1.95 / count.sqrt();
    assert!(distance < bound, "{what}: distance {distance:.4}, bound {bound:.4}");
}

/// Returns the standard normal distribution function (Abramowitz and Stegun 26.2.17, within 1e-7).
fn normal_cdf(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * x.abs());
    let series = [1.330_274_429, -1.821_255_978, 1.781_477_937, -0.356_563_782, 0.319_381_530];
    let tail = series.iter().fold(0.0, |sum, b| (sum + b) * t) * (-x * x / 2.0).exp()
        / (2.0 * std::f64::consts::PI).sqrt();
    if x > 0.0 { 1.0 - tail } else { tail }
}

#[test]
fn defaults_are_those_of_the_reference() {
    let shown: Vec<_> = PolicyKind::ALL.map(|kind| Policy::new(kind).to_string()).into();
    assert_eq!(
        shown,
        [
            "ethernet from 1 s to 1 min by 2",
            "exponential from 1 s to 1 min by 2",
            "full from 1 s to 1 min by 2",
            "equal from 1 s to 1 min by 2",
            "decorrelated from 1 s to 1 min",
            "normal from 100 ms to 1 min by 2 jitter 10%",
            "proportional from 500 ms to 1 min by 1.5 jitter 50%",
            "slotted from 1 s to 1 min",
            "windowed from 1 s to 1 min",
            "fixed from 1 s",
            "none",
        ]
    );
    for kind in PolicyKind::ALL {
        assert_eq!(Policy::new(kind).check(), Ok(()));
        assert_eq!(policy(kind.name()), Policy::new(kind));
    }
}

#[test]
fn a_growing_policy_is_capped_at_a_minute_and_never_below_its_first_delay() {
    for kind in PolicyKind::ALL.into_iter().filter(|kind| kind.takes(Clause::To)) {
        assert_eq!(Policy::new(kind).to, Duration::from_secs(60));
        let late = policy(&format!("{} from 5 minutes", kind.name()));
        assert_eq!((late.from, late.to), (Duration::from_secs(300), Duration::from_secs(300)));
        let own = policy(&format!("{} to 1 hour", kind.name()));
        assert_eq!(own.to, Duration::from_secs(3600));
    }
    let delays = delays("exponential", 0, 9);
    let seconds = [1, 2, 4, 8, 16, 32, 60, 60, 60].map(Duration::from_secs);
    assert_eq!(delays, seconds);
}

#[test]
fn only_normal_and_proportional_exceed_their_cap() {
    let kinds: Vec<_> = PolicyKind::ALL.into_iter().filter(|kind| exceeds_its_cap(*kind)).collect();
    assert_eq!(kinds, [PolicyKind::Normal, PolicyKind::Proportional]);
}

#[test]
fn exponential_doubles_up_to_its_cap_exactly() {
    let seconds = [1, 2, 4, 8, 10, 10].map(Duration::from_secs);
    assert_eq!(delays("exponential to 10 s", 0, 6), seconds);
    let halves = [1000, 1500, 2250, 3375].map(Duration::from_millis);
    assert_eq!(delays("exponential by 1.5", 0, 4), halves);
}

#[test]
fn fixed_and_none_do_not_vary() {
    assert_eq!(delays("fixed from 2 hours", 0, 3), [Duration::from_secs(7200); 3]);
    assert_eq!(delays("none", 0, 3), [Duration::ZERO; 3]);
}

#[test]
fn ethernet_spreads_between_one_and_two() {
    assert_uniform("n = 0", crowd("ethernet", 0).map(|d| d - 1.0));
    assert_uniform("n = 3", crowd("ethernet", 3).map(|d| d / 8.0 - 1.0));
    // A cap cuts the tail off.
    let capped: Vec<f64> = crowd("ethernet to 12 s", 3).collect();
    assert!(capped.iter().all(|d| (8.0..=12.0).contains(d)));
    let at_cap = capped.iter().filter(|d| **d == 12.0).count();
    assert!((9_700..10_300).contains(&at_cap), "{at_cap}");
}

#[test]
fn full_jitter_is_uniform_from_zero() {
    assert_uniform("n = 0", crowd("full", 0));
    assert_uniform("n = 5", crowd("full", 5).map(|d| d / 32.0));
    assert_uniform("capped", crowd("full to 20 s", 5).map(|d| d / 20.0));
}

#[test]
fn equal_jitter_keeps_half() {
    assert_uniform("n = 0", crowd("equal", 0).map(|d| 2.0 * d - 1.0));
    assert_uniform("capped", crowd("equal to 20 s", 5).map(|d| d / 10.0 - 1.0));
}

#[test]
fn decorrelated_jitter_grows_from_the_delay_before() {
    assert_uniform("n = 0", crowd("decorrelated", 0).map(|d| (d - 1.0) / 2.0));
    let series = delays("decorrelated to 10000 days", 1, 10);
    assert!(series.windows(2).all(|pair| pair[1] <= 3 * pair[0]), "{series:?}");
    let conditional = (0..20_000).map(|seed| {
        let series: Vec<_> =
            delays("decorrelated", seed, 3).iter().map(Duration::as_secs_f64).collect();
        (series[2] - 1.0) / (3.0 * series[1] - 1.0)
    });
    assert_uniform("n = 2", conditional);
}

#[test]
fn normal_noise_is_relative_and_accumulates() {
    assert!(crowd("normal", 0).all(|d| d == 0.1));
    let standardized = |text, spread: f64, cap: f64| {
        (0..20_000).map(move |seed| {
            let series: Vec<_> = delays(text, seed, 5).iter().map(Duration::as_secs_f64).collect();
            let value = (2.0 * series[3]).min(cap);
            normal_cdf((series[4] - value) / (spread * value))
        })
    };
    assert_uniform("n = 4", standardized("normal", 0.1, 900.0));
    assert_uniform("capped", standardized("normal to 1 s jitter 5%", 0.05, 1.0));
}

#[test]
fn normal_recovers_from_zero() {
    let series = delays("normal jitter 100%", 3, 1000);
    assert!(series.contains(&Duration::ZERO));
    assert!(!series.windows(2).any(|pair| pair == [Duration::ZERO; 2]));
}

#[test]
fn proportional_spreads_to_both_sides_of_the_cap_too() {
    assert_uniform("n = 0", crowd("proportional", 0).map(|d| d / 0.5 - 0.5));
    assert_uniform("n = 2", crowd("proportional", 2).map(|d| d / 1.125 - 0.5));
    assert_uniform("capped", crowd("proportional to 1 s", 4).map(|d| d - 0.5));
}

#[test]
fn slotted_draws_whole_slots_from_a_doubling_range() {
    for (n, slots) in [(0, 2), (1, 4), (4, 32), (9, 1024), (10, 1024), (30, 1024)] {
        let drawn: Vec<f64> = crowd("slotted to 1 h", n).collect();
        assert!(drawn.iter().all(|d| d.fract() == 0.0 && (0.0..f64::from(slots)).contains(d)));
        let (first, last) = (
            drawn.iter().fold(9e9_f64, |a, b| a.min(*b)),
            drawn.iter().fold(0_f64, |a, b| a.max(*b)),
        );
        assert!(first < 2.0 && last > f64::from(slots) - 2.0, "n = {n}: {first} to {last}");
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        let expected = f64::from(slots - 1) / 2.0;
        assert!((mean - expected).abs() < 0.02 * f64::from(slots), "n = {n}: {mean}");
    }
}

#[test]
fn windowed_retries_fall_in_their_own_windows() {
    for n in [0, 1, 6] {
        let (start, length) = (f64::from((1 << n) - 1), f64::from(1 << n));
        let times = (0..20_000).map(|seed| {
            let series = delays("windowed to 1 h", seed, n + 1);
            (series.iter().sum::<Duration>().as_secs_f64() - start) / length
        });
        assert_uniform(&format!("n = {n}"), times);
    }
    // Windows of 1, 2, 4, 5, 5 … seconds: 7 + 5·(n − 3) to 5 s more.
    let series = delays("windowed to 10 s", 5, 200);
    let mut elapsed = Duration::ZERO;
    for (n, delay) in series.iter().enumerate() {
        elapsed += *delay;
        if n >= 3 {
            let start = Duration::from_secs(7 + 5 * (n as u64 - 3));
            assert!((start..=start + 5000 * MS).contains(&elapsed), "n = {n}: {elapsed:?}");
        }
        assert!(*delay <= Duration::from_secs(10));
    }
}

#[test]
fn windows_continue_while_attempts_run() {
    // The windows are [0, 1), [1, 3), [3, 7), [7, 15) …; an attempt that ends at 4.5 is retried in
    // what is left of the third one, and one that ends at 100 in the one that lasts up to 127.
    let at = |elapsed: f64| {
        (0..20_000).map(move |seed| {
            let mut backoff = Backoff::new(policy("windowed to 1 h"));
            let mut rng = rng(seed);
            backoff.next_delay(Duration::ZERO, &mut rng);
            elapsed + backoff.next_delay(Duration::from_secs_f64(elapsed), &mut rng).as_secs_f64()
        })
    };
    assert_uniform("early", at(0.5).map(|t| (t - 1.0) / 2.0));
    assert_uniform("late", at(4.5).map(|t| (t - 4.5) / 2.5));
    assert_uniform("much later", at(100.0).map(|t| (t - 100.0) / 27.0));
    let mut backoff = Backoff::new(policy("windowed from 1 ms to 4 ms"));
    let delay = backoff.next_delay(Duration::MAX, &mut rng(0));
    assert!(delay <= 4 * MS);
}

#[test]
fn last_attempts_spread_over_the_time_left() {
    let mut rng = rng(6);
    let left = Duration::from_secs(8);
    let drawn = (0..20_000).filter_map(|_| last_attempt(left, left, &mut rng));
    assert_uniform("last attempts", drawn.map(|last| last.as_secs_f64() / 8.0));
    assert_eq!(last_attempt(MS, left, &mut rng), None);
}

#[test]
fn deferrals_spread_from_once_to_one_and_a_half_times() {
    let mut rng = rng(7);
    let by = Duration::from_secs(8);
    let enough = Duration::from_secs(100);
    let drawn = (0..20_000).map(|_| deferral(by, enough, &mut rng));
    assert_uniform("deferrals", drawn.map(|drawn| (drawn.as_secs_f64() - 8.0) / 4.0));
    let short = Duration::from_secs(10);
    let drawn = (0..20_000).map(|_| deferral(by, short, &mut rng));
    assert_uniform("before a deadline", drawn.map(|drawn| (drawn.as_secs_f64() - 8.0) / 2.0));
    assert_eq!(deferral(Duration::MAX, Duration::MAX, &mut rng), Duration::MAX);
}

#[test]
fn bounds_follow_the_formulas() {
    let latest =
        |text: &str, n: usize| policy(text).bounds().nth(n).map(|it| it.latest.as_secs_f64());
    assert_eq!(latest("full from 1 s to 8 s", 4), Some(1.0 + 2.0 + 4.0 + 8.0 + 8.0));
    assert_eq!(latest("ethernet from 1 s to 8 s", 3), Some(2.0 + 4.0 + 8.0 + 8.0));
    assert_eq!(latest("decorrelated from 1 s to 20 s", 2), Some(3.0 + 9.0 + 20.0));
    assert_eq!(latest("windowed from 1 s to 8 s", 3), Some(1.0 + 2.0 + 4.0 + 4.0));
    assert_eq!(latest("slotted from 1 s to 8 s", 3), Some(1.0 + 3.0 + 7.0 + 8.0));
    assert_eq!(latest("proportional from 1 s to 8 s by 2", 1), Some(1.5 + 3.0));
    let earliest =
        policy("equal from 1 s to 8 s").bounds().nth(4).map(|it| it.earliest.as_secs_f64());
    assert_eq!(earliest, Some(0.5 + 1.0 + 2.0 + 4.0 + 4.0));
}

#[test]
fn delays_repeat_with_their_seed() {
    for kind in PolicyKind::ALL {
        assert_eq!(delays(kind.name(), 7, 20), delays(kind.name(), 7, 20));
    }
    assert_ne!(delays("full", 7, 20), delays("full", 8, 20));
}

#[test]
fn impossible_parameters_are_refused() {
    for (text, reason) in [
        ("full from 10 s to 1 s", "`from` (10 s) is above `to` (1 s)"),
        ("full by 0.5", "`by` must be a number from 1, not 0.5"),
        ("full by inf", "`by` must be a number from 1, not inf"),
        ("full by nan", "`by` must be a number from 1, not NaN"),
        ("full by two", "`by` takes a number, like `2`, not `two`"),
        ("normal jitter 101%", "`jitter` must be from 0% to 100%, not 101%"),
        ("normal jitter -7%", "`jitter` must be from 0% to 100%, not -7%"),
        ("normal jitter 10", "`jitter` takes a percentage, like `10%`, not `10`"),
        ("fixed from 0 s", "`from` must be longer than 0; for no delays use `backoff none`"),
        ("full to 0s", "`to` must be longer than 0; for no delays use `backoff none`"),
        ("full from -1 s", "`from` takes a duration, like `500 ms`, not `-1`"),
        ("full from 100", "`from` takes a duration, like `500 ms`, not `100`"),
        ("full from 100 to 3 s", "`from` takes a duration, like `500 ms`, not `100`"),
        ("full from", "the value of `from` is missing"),
        ("full from 1 s from 2 s", "`from` is given twice"),
        ("full from 1 secnods", "unknown unit of time `secnods`; did you mean `seconds`?"),
        ("full form 1 s", "unknown clause `form`; did you mean `from`?"),
        ("full 1 s", "unknown clause `1`; the clauses are from, to, by, jitter"),
        ("fixed to 1 s", "the policy `fixed` takes no `to`; `fixed` takes `from`"),
        ("slotted by 2", "the policy `slotted` takes no `by`; `slotted` takes `from`, `to`"),
        ("none from 1 s", "the policy `none` takes no `from`; `none` takes no clauses"),
        ("exponental", "unknown backoff policy `exponental`; did you mean `exponential`?"),
        ("", "a backoff policy is missing, like `full` or `fixed`"),
    ] {
        assert_eq!(refusal(text), reason, "{text}");
    }
    assert!(
        refusal("random")
            .starts_with("unknown backoff policy `random`; the policies are ethernet,")
    );
}

#[test]
fn defaults_are_adjusted_to_given_values() {
    assert_eq!(policy("full to 500ms"), policy("full from 500 ms to 500 ms by 2"));
    assert_eq!(policy("full from 2h"), policy("full from 2 hours to 2 hours"));
    assert_eq!(policy("normal jitter 7 %").jitter, 0.07);
    assert_eq!(policy("full from 1.5 seconds to 1h30m").to, Duration::from_secs(5400));
}

fn any_duration() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        Just(Duration::MAX),
        any::<u64>().prop_map(Duration::from_nanos),
        any::<u64>().prop_map(Duration::from_secs),
        (1_u64..100_000).prop_map(Duration::from_millis),
    ]
}

fn any_policy(kind: PolicyKind) -> BoxedStrategy<Policy> {
    let factor = prop_oneof![1.0..4.0, Just(1.0), Just(f64::MAX), any::<f64>()];
    let jitter = prop_oneof![0.0..=1.0, any::<f64>()];
    (any_duration(), any_duration(), factor, jitter)
        .prop_map(move |(from, to, by, jitter)| Policy { kind, from, to, by, jitter })
        .boxed()
}

fn possible_policy(kind: PolicyKind) -> BoxedStrategy<Policy> {
    let tidied = any_policy(kind).prop_map(|mut policy| {
        (policy.from, policy.to) = (policy.from.min(policy.to), policy.from.max(policy.to));
        policy.by = if policy.by >= 1.0 && policy.by.is_finite() { policy.by } else { 2.0 };
        policy.jitter = if (0.0..=1.0).contains(&policy.jitter) { policy.jitter } else { 1.0 };
        policy
    });
    tidied.prop_filter("zero", |policy| policy.check().is_ok()).boxed()
}

/// Returns true if delays are longer than the cap with the default parameters. Bounds of impossible
/// parameters have no meaning.
fn exceeds_its_cap(kind: PolicyKind) -> bool {
    let policy = Policy::new(kind);
    bounds(&policy).1 > policy.cap()
}

/// Number of delays examined by the properties.
const MANY: usize = 10_001;

/// Returns the least and the longest bound of all delays.
fn bounds(policy: &Policy) -> (Duration, Duration) {
    policy.bounds().take(MANY).fold((Duration::MAX, Duration::ZERO), |(least, most), bound| {
        (least.min(bound.least), most.max(bound.most))
    })
}

fn series(policy: &Policy, seed: u64, attempt: Duration) -> impl Iterator<Item = Duration> {
    let mut backoff = Backoff::new(policy.clone());
    let mut rng = rng(seed);
    let mut elapsed = Duration::ZERO;
    (0..MANY).map(move |_| {
        let delay = backoff.next_delay(elapsed, &mut rng);
        elapsed = elapsed.saturating_add(delay).saturating_add(attempt);
        delay
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn delays_stay_within_their_bounds(
        policies in PolicyKind::ALL.map(possible_policy),
        seed in any::<u64>(),
        attempt in any_duration(),
    ) {
        for policy in policies {
            let (shortest, longest) = bounds(&policy);
            // Floating point holds 53 bits.
            let slack = |exact: Duration| Duration::from_nanos(1) + exact / (1 << 30);
            let least = policy.least_first_delay();
            let least = least.saturating_sub(slack(least));
            let first = series(&policy, seed, attempt).next();
            prop_assert!(first.is_some_and(|first| first >= least), "{policy}: {first:?}");
            for (n, delay) in series(&policy, seed, attempt).enumerate() {
                prop_assert!(delay >= shortest.saturating_sub(slack(shortest)), "{policy}, {n}: {delay:?}");
                prop_assert!(delay <= longest.saturating_add(slack(longest)), "{policy}, n = {n}: {delay:?}");
            }
        }
    }

    #[test]
    fn each_delay_is_within_its_own_bounds(
        policies in PolicyKind::ALL.map(possible_policy),
        seed in any::<u64>(),
    ) {
        let slack = |exact: Duration| Duration::from_nanos(100) + exact / (1 << 20);
        for policy in policies {
            let mut end = Duration::ZERO;
            for (delay, bound) in series(&policy, seed, Duration::ZERO).zip(policy.bounds()).take(100) {
                let within = |value: Duration, least: Duration, most: Duration| {
                    value.saturating_add(slack(least)) >= least && value <= most.saturating_add(slack(most))
                };
                end = end.saturating_add(delay);
                prop_assert!(within(delay, bound.least, bound.most), "{policy}: {delay:?}, {bound:?}");
                prop_assert!(within(end, bound.earliest, bound.latest), "{policy}: {end:?}, {bound:?}");
            }
        }
    }

    #[test]
    fn a_last_attempt_falls_before_the_deadline(
        delay in any_duration(),
        left in any_duration(),
        seed in any::<u64>(),
    ) {
        match last_attempt(delay, left, &mut rng(seed)) {
            None => prop_assert!(delay < left),
            Some(last) => prop_assert!(delay >= left && last <= left),
        }
    }

    #[test]
    fn no_parameters_panic(
        policies in PolicyKind::ALL.map(any_policy),
        seed in any::<u64>(),
        attempt in any_duration(),
    ) {
        for policy in policies {
            let spreads = exceeds_its_cap(policy.kind);
            for delay in series(&policy, seed, attempt) {
                prop_assert!(spreads || delay <= policy.cap(), "{policy:?}: {delay:?}");
            }
        }
    }

    #[test]
    fn policies_parse_back_as_written(policies in PolicyKind::ALL.map(possible_policy)) {
        for policy in policies {
            let shown = policy.to_string();
            let back: Policy = shown.parse().map_err(|it: PolicyError| TestCaseError::fail(it.to_string()))?;
            prop_assert_eq!(back.to_string(), shown);
            prop_assert!(back.from == policy.from || !policy.kind.takes(Clause::From));
            prop_assert!(back.to == policy.to || !policy.kind.takes(Clause::To));
            prop_assert!(back.by == policy.by || !policy.kind.takes(Clause::By));
        }
    }

    #[test]
    fn no_text_panics(text in "[a-z0-9% .]*") {
        let _ = text.parse::<Policy>();
        let _ = format!("full {text}").parse::<Policy>();
    }
}
