//! The advice in words.

use std::time::Duration;

use ftsh_machine::outcome::Human;
use ftsh_syntax::duration::Exact;

use super::{AdviseOptions, HEADROOM, PolicyCandidate, round_up};

/// Explains the columns of the table.
pub(super) fn marks() -> String {
    format!(
        "peak: the most in any interval; over: how long the rate is over {HEADROOM} times the capacity; long \
         run: the second half of the outage, the mean and what 99 % of its intervals are below. \
         fits: server, if that p99 is within {HEADROOM} times the capacity; notice, if 99 % of the \
         clients notice in time. An interval is as long as it takes for 100 requests at the capacity."
    )
}

/// Returns the result of the rules and of the test whether they hold.
pub(super) fn rules(options: &AdviseOptions, own: &PolicyCandidate) -> String {
    let mut text = format!(
        "By the rules: from {} (the time of 99 % of requests), by 2, to {} ({} clients ÷ {}/s):\n  \
         backoff {}\n",
        Exact(options.p99),
        Exact(own.policy.to),
        options.clients,
        options.capacity,
        own.policy
    );
    if own.is_sustained {
        text += "The simulation confirms that the server can stand it.";
    } else {
        text += &format!(
            "The simulation shows bursts of {:.0} requests/s: at their cap its delays are all the \
             same, so what was once a crowd comes back as one.",
            own.checked.long_run_p99
        );
    }
    text
}

/// Returns the policy to paste, or the change that would help.
pub(super) fn verdict(
    options: &AdviseOptions,
    candidates: &[PolicyCandidate],
    best: Option<usize>,
) -> String {
    let Some(best) = best.map(|at| &candidates[at]) else {
        return "None of these policies keeps within the capacity: use longer delays.".into();
    };
    let notice = |part| Human(round_up(seconds(best.checked.notice.at(part)))).to_string();
    let (median, p99) = (notice(0.5), notice(0.99));
    let after = format!(
        "Predicted: {:.0} retries/s in the long run, 99 % of the time below {:.0}/s, {:.0}/s at the \
         beginning; after the outage half of the clients notice within {median}, 99 % within {p99}.",
        best.checked.long_run, best.checked.long_run_p99, best.checked.peak
    );
    let why = "Recommended (*), as the policy within the capacity whose clients notice soonest";
    if best.is_prompt {
        return format!("{why}:\n\n  backoff {}\n\n{after}", best.policy);
    }
    // All delays but the first are proportional to clients ÷ capacity.
    let excess = best.checked.notice.at(0.99).unwrap_or(f64::NAN) / options.notice.as_secs_f64();
    format!(
        "The wishes conflict: no policy both keeps within {}/s and lets 99 % of {} clients notice \
         within {}. A capacity of about {}/s would do, or a notice time of {p99}, or {} clients.\n\n\
         {why}, though not in time:\n\n  backoff {}\n\n{after}",
        options.capacity,
        options.clients,
        Exact(options.notice),
        two_digits_up(options.capacity * excess),
        (f64::from(options.clients) / excess).floor().max(1.0),
        best.policy
    )
}

/// Explains contradictions between the rules.
pub(super) fn conflicts(options: &AdviseOptions, least: Duration) -> String {
    let [notice, p99, least_shown] = [options.notice, options.p99, round_up(least)].map(Exact);
    let mut text = String::new();
    if options.p99 > options.notice {
        text += &format!(
            "The notice time of {notice} is shorter than what the service takes for a request, {p99}. "
        );
    }
    if least > options.notice {
        let capacity = two_digits_up(f64::from(options.clients) / options.notice.as_secs_f64());
        text += &format!(
            "The rules alone conflict: M must be at least {least_shown} for the server, and at most {notice} for the \
             clients; by them a capacity of {capacity}/s or a notice time of {least_shown} would do."
        );
    }
    text.trim_end().to_owned()
}

fn seconds(seconds: Option<f64>) -> Duration {
    Duration::try_from_secs_f64(seconds.unwrap_or_default()).unwrap_or(Duration::MAX)
}

/// Rounds up to two digits.
fn two_digits_up(number: f64) -> f64 {
    let step = 10_f64.powf(number.log10().floor() - 1.0);
    // Removes the noise of a division by a binary fraction.
    let rounded = (number / step - 1e-9).ceil() * step;
    format!("{rounded:.1e}").parse().unwrap_or(rounded)
}
