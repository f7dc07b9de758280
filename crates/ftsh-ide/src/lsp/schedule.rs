//! Description of a `try`: number of attempts, delays and bounds on the time.

use std::time::Duration;

use crate::lint::Schedule;
use ftsh_machine::outcome::Human;

/// Number of delays shown individually.
const SHOWN: usize = 5;

/// Returns a list for people, in Markdown.
pub(super) fn describe(schedule: &Schedule) -> String {
    let mut lines = of_head(schedule);
    if schedule.times != Some(1) {
        lines.push(format!(
            "- gives up: {}",
            match schedule.least {
                Some(least) if least.is_zero() =>
                    "possibly at once, if every attempt fails at once".into(),
                Some(least) => format!("not before {}", within(schedule, least)),
                None => "known only at run time".to_owned(),
            }
        ));
    }
    lines.push(format!(
        "- takes at most: {}",
        match schedule.most.or(schedule.around) {
            Some(most) => format!("{}, with any commands", within(schedule, most)),
            None if schedule.time.is_none() => "as long as its commands".to_owned(),
            None => "known only at run time".to_owned(),
        }
    ));
    lines.join("\n") + "\n"
}

/// Returns the description of a head in a script with errors.
pub(super) fn outline(head: &Schedule) -> String {
    of_head(head).join("\n") + "\n- the time is shown once the script has no errors\n"
}

fn of_head(schedule: &Schedule) -> Vec<String> {
    let mut lines = vec![format!("- attempts: {}", attempts(schedule))];
    if schedule.times != Some(1) {
        lines.push(format!("- {}", delays(schedule)));
    }
    lines
}

/// Returns a time, or the enclosing limit that cuts the time short.
fn within(schedule: &Schedule, time: Duration) -> String {
    match schedule.around {
        Some(around) if around <= time => format!("{}, the enclosing limit", shown(around)),
        _ => shown(time),
    }
}

fn attempts(schedule: &Schedule) -> String {
    match (schedule.times, schedule.time) {
        (Some(1), None) => "one".into(),
        (Some(1), Some(time)) => format!("one, within {}", within(schedule, time)),
        (Some(times), None) => format!("at most {times}"),
        (Some(times), Some(time)) => format!("at most {times}, within {}", within(schedule, time)),
        (None, Some(time)) => format!("as many as fit into {}", within(schedule, time)),
        (None, None) => "known only at run time".into(),
    }
}

fn delays(schedule: &Schedule) -> String {
    if let Some(every) = schedule.every {
        return format!("starts: {} apart, or further", shown(every));
    }
    let Some(policy) = &schedule.policy else { return "delays: known only at run time".into() };
    let repeats = schedule.times.map_or(usize::MAX, |times| times.saturating_sub(1) as usize);
    let mut bounds = policy.bounds().take(repeats);
    let mut delays: Vec<String> =
        bounds.by_ref().take(SHOWN).map(|it| between(it.least, it.most)).collect();
    if bounds.next().is_some() {
        delays.push("…".into());
    }
    // Equal delays are shown once.
    let first = delays[0].clone();
    let is_constant = delays.iter().all(|it| *it == first || it == "…");
    let delays = if is_constant { format!("always {first}") } else { delays.join(", then ") };
    format!("delays (`{policy}`): {}", delays.replace(", then …", ", …"))
}

fn between(least: Duration, most: Duration) -> String {
    if least == most { shown(least) } else { format!("{} to {}", shown(least), shown(most)) }
}

fn shown(length: Duration) -> String {
    if length == Duration::MAX { "forever".into() } else { Human(length).to_string() }
}
