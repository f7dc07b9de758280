//! What a `try` comes to: how often, with which delays, and how long it can take.

use std::time::Duration;

use crate::lint::Schedule;
use ftsh_machine::outcome::Human;

/// So many delays are shown one by one.
const SHOWN: usize = 5;

/// A list for people, in Markdown.
pub fn describe(schedule: &Schedule) -> String {
    let mut lines = of_head(schedule);
    if schedule.times != Some(1) {
        lines.push(format!(
            "- gives up: {}",
            match schedule.least {
                Some(least) if least.is_zero() =>
                    "maybe at once, if every attempt fails at once".into(),
                Some(least) => format!("not before {}", within(schedule, least)),
                None => "only running it can tell when".to_owned(),
            }
        ));
    }
    lines.push(format!(
        "- takes at most: {}",
        match schedule.most.or(schedule.around) {
            Some(most) => format!("{}, whatever its commands do", within(schedule, most)),
            None if schedule.time.is_none() => "as long as its commands do".to_owned(),
            None => "only running it can tell".to_owned(),
        }
    ));
    lines.join("\n") + "\n"
}

/// What is known of it as long as there are mistakes in the script.
pub fn outline(head: &Schedule) -> String {
    of_head(head).join("\n") + "\n- how long it takes is told once the script has no mistakes\n"
}

fn of_head(schedule: &Schedule) -> Vec<String> {
    let mut lines = vec![format!("- attempts: {}", attempts(schedule))];
    if schedule.times != Some(1) {
        lines.push(format!("- {}", delays(schedule)));
    }
    lines
}

/// A time that a limit around it may cut short.
fn within(schedule: &Schedule, time: Duration) -> String {
    match schedule.around {
        Some(around) if around <= time => format!("{}, the limit around it", shown(around)),
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
        (None, None) => "what is computed says how many".into(),
    }
}

fn delays(schedule: &Schedule) -> String {
    if let Some(every) = schedule.every {
        return format!("starts: {} apart, or further", shown(every));
    }
    let Some(policy) = &schedule.policy else { return "delays: what is computed says so".into() };
    let repeats = schedule.times.map_or(usize::MAX, |times| times.saturating_sub(1) as usize);
    let mut bounds = policy.bounds().take(repeats);
    let mut delays: Vec<String> =
        bounds.by_ref().take(SHOWN).map(|it| between(it.least, it.most)).collect();
    if bounds.next().is_some() {
        delays.push("…".into());
    }
    // Once they are all the same there is nothing to see.
    let first = delays[0].clone();
    let is_constant = delays.iter().all(|it| *it == first || it == "…");
    let delays = if is_constant { format!("always {first}") } else { delays.join(", then ") };
    format!("delays (`{policy}`): {}", delays.replace(", then …", ", …"))
}

fn between(least: Duration, most: Duration) -> String {
    if least == most { shown(least) } else { format!("{} to {}", shown(least), shown(most)) }
}

fn shown(length: Duration) -> String {
    if length == Duration::MAX { "for ever".into() } else { Human(length).to_string() }
}
