//! Variants of a script with one changed limit, number or policy.

use std::collections::BTreeMap;
use std::time::Duration;

use ftsh_ide::lint::{Schedule, schedules};
use ftsh_machine::outcome::Human;
use ftsh_syntax::ast::{Block, CommandKind, Stage, StageKind, Try};
use ftsh_syntax::backoff::{Clause, Policy, PolicyKind};
use ftsh_syntax::duration::Exact;
use ftsh_syntax::{Script, parse};

use super::tries::TryCounts;

/// A script that differs from the original in one place.
#[derive(Debug)]
pub struct ScriptChange {
    /// Line of the `try`.
    pub line: u32,
    /// Old and new value: `for 2 h → 4 h`.
    pub what: String,
    /// The changed script.
    pub script: Script,
}

/// Changed clause of a `try`.
#[derive(Clone, Debug)]
enum Edit {
    Time(Duration),
    Times(u64),
    Each(Duration),
    Every(Duration),
    Backoff(Policy),
}

/// Longest delay that a change proposes as a cap.
const CAP: Duration = Duration::from_secs(60);

/// Returns changes that may matter, one at a time: limits, numbers and delays doubled and halved,
/// other policies, and a limit for each attempt. Skips tries that never began and tries with a
/// computed head. Tries without a policy use `policy`.
pub fn changes(
    script: &Script,
    policy: &Policy,
    by_line: &BTreeMap<u32, TryCounts>,
) -> Vec<ScriptChange> {
    let mut changes = Vec::new();
    for (number, schedule) in schedules(script, policy).iter().enumerate() {
        let Some(tried) = by_line.get(&schedule.line).filter(|tried| tried.begun > 0) else {
            continue;
        };
        for (what, edit) in edits(schedule, tried) {
            if let Some(script) = edited(script, number, &edit) {
                changes.push(ScriptChange { line: schedule.line, what, script });
            }
        }
    }
    changes
}

fn edits(schedule: &Schedule, tried: &TryCounts) -> Vec<(String, Edit)> {
    let mut edits = Vec::new();
    let mut length = |word: &str, length: Option<Duration>, edit: fn(Duration) -> Edit| {
        for to in length.into_iter().flat_map(|length| [length.saturating_mul(2), length / 2]) {
            let from = length.unwrap_or_default();
            edits.push((format!("{word} {} → {}", Human(from), Human(to)), edit(to)));
        }
    };
    length("for", schedule.time, Edit::Time);
    length("each", schedule.each, Edit::Each);
    length("every", schedule.every, Edit::Every);
    if schedule.is_limit {
        return edits;
    }
    if let Some(times) = schedule.times {
        let halves = [times.saturating_mul(2), times / 2];
        for to in halves.into_iter().filter(|to| (1..u64::MAX / 2).contains(to)) {
            let noun = if times == 1 { "time" } else { "times" };
            edits.push((format!("{times} {noun} → {to}"), Edit::Times(to)));
        }
    }
    // A single attempt may also hang.
    let is_ever_short = tried.attempts > tried.begun || tried.succeeded < tried.begun;
    if let Some(each) = new_each(schedule, tried).filter(|_| is_ever_short) {
        edits.push((format!("each {}, where there is none", Human(each)), Edit::Each(each)));
    }
    // Delays matter only between two attempts.
    if let Some(policy) = schedule.policy.as_ref()
        && schedule.every.is_none()
        && tried.attempts > tried.begun
    {
        edits.extend(policies(policy));
    }
    edits
}

/// Returns a limit for each attempt, if the `try` has none. The limit leaves room for successful
/// attempts and is short enough for a second one.
fn new_each(schedule: &Schedule, tried: &TryCounts) -> Option<Duration> {
    // A computed head may have a limit of its own.
    if schedule.each.is_some() || schedule.policy.is_none() {
        return None;
    }
    // The time limit already applies to a single attempt.
    if schedule.times == Some(1) && schedule.time.is_some() {
        return None;
    }
    match (tried.longest, schedule.time) {
        (Some(longest), Some(time)) => Some(roomy(longest).min(time / 2)),
        (Some(longest), None) => Some(roomy(longest)),
        (None, time) => Some(time? / 10),
    }
    .filter(|each| !each.is_zero())
}

/// Returns about twice the length, rounded to a common number.
fn roomy(length: Duration) -> Duration {
    let millis = length.as_millis().saturating_mul(2).max(1000) as u64;
    let unit = [3_600_000, 60_000].into_iter().find(|unit| millis >= *unit).unwrap_or(1000);
    let step = if millis > 10 * unit { 5 * unit } else { unit };
    Duration::from_millis(millis.div_ceil(step).saturating_mul(step))
}

/// Returns other policies of delays.
fn policies(policy: &Policy) -> Vec<(String, Edit)> {
    let mut policies = Vec::new();
    let mut other = |what: String, other: Policy| {
        if other.check().is_ok() && other != *policy {
            policies.push((what, Edit::Backoff(other)));
        }
    };
    let takes = |clause| policy.kind.takes(clause);
    if takes(Clause::From) {
        for from in [policy.from.saturating_mul(2), policy.from / 2] {
            let to = policy.to.max(from);
            let what = format!("backoff from {} → {}", Human(policy.from), Human(from));
            other(what, Policy { from, to, ..policy.clone() });
        }
    }
    if takes(Clause::To) {
        let to = if policy.to > CAP { CAP } else { policy.to / 4 }.max(policy.from);
        let what = format!("backoff to {} → {}", Human(policy.to), Human(to));
        other(what, Policy { to, ..policy.clone() });
    }
    for kind in [PolicyKind::Ethernet, PolicyKind::Full, PolicyKind::Fixed] {
        if kind != policy.kind {
            let mut new = Policy::new(kind);
            if takes(Clause::From) {
                new.from = policy.from;
            }
            if takes(Clause::To) && kind.takes(Clause::To) {
                new.to = policy.to;
            }
            other(format!("backoff {} → {}", policy.kind.name(), kind.name()), new);
        }
    }
    policies
}

/// Returns the script with a changed head of `try` number `number`.
fn edited(script: &Script, number: usize, edit: &Edit) -> Option<Script> {
    let head = match edit {
        Edit::Time(time) => format!("for {}", Exact(*time)),
        Edit::Times(times) => format!("{times} times"),
        Edit::Each(each) => format!("2 times each {}", Exact(*each)),
        Edit::Every(every) => format!("2 times every {}", Exact(*every)),
        Edit::Backoff(policy) => format!("2 times backoff {policy}"),
    };
    let parsed = parse("a change", &format!("try {head}\nend\n")).ok()?;
    let CommandKind::Try(details) = parsed.body.commands.into_iter().next()?.kind else {
        return None;
    };
    let new = details.clauses;
    let mut script = script.clone();
    let changed = nth_try(&mut script.body, &mut number.clone())?;
    changed.is_limit &= matches!(edit, Edit::Time(_));
    let clauses = &mut changed.clauses;
    match edit {
        Edit::Time(_) => clauses.time = new.time,
        Edit::Times(_) => clauses.times = new.times,
        Edit::Each(_) => clauses.each = new.each,
        Edit::Every(_) => clauses.every = new.every,
        Edit::Backoff(_) => clauses.backoff = new.backoff,
    }
    Some(script)
}

/// Returns the `try` after `before` others, in the order of [`schedules`].
fn nth_try<'b>(block: &'b mut Block, before: &mut usize) -> Option<&'b mut Try> {
    for command in &mut block.commands {
        let is_it = *before == 0;
        let inside: Vec<&mut Block> = match &mut command.kind {
            CommandKind::Try(details) => {
                if is_it {
                    return Some(details);
                }
                *before -= 1;
                let Try { body, catch, finally, .. } = &mut **details;
                let after = catch.iter_mut().chain(finally).map(|(_, block)| block);
                std::iter::once(body).chain(after).collect()
            }
            CommandKind::If { arms, otherwise } => {
                arms.iter_mut().map(|(_, body)| body).chain(otherwise).collect()
            }
            CommandKind::Case(case) => case.blocks_mut().collect(),
            CommandKind::While { body, .. }
            | CommandKind::In { body, .. }
            | CommandKind::Function { body, .. } => vec![body],
            CommandKind::With { companion, body } => vec![companion, body],
            CommandKind::For(details) => vec![&mut details.body],
            CommandKind::Pipeline(pipeline) => {
                let stages = pipeline.stages.iter_mut();
                let block = |stage: &'b mut Stage| match &mut stage.kind {
                    StageKind::Structure(block) => Some(block),
                    StageKind::Simple(_) => None,
                };
                stages.filter_map(block).collect()
            }
            CommandKind::Comment { .. }
            | CommandKind::Assign { .. }
            | CommandKind::Return(_)
            | CommandKind::Shift(_)
            | CommandKind::List { .. }
            | CommandKind::Jump(_)
            | CommandKind::Channel(_)
            | CommandKind::Use(_)
            | CommandKind::Args(_) => Vec::new(),
        };
        for block in inside {
            if let Some(found) = nth_try(block, before) {
                return Some(found);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use ftsh_syntax::print;

    use super::*;

    #[test]
    fn one_thing_of_one_try_is_changed_at_a_time() {
        let text = "\
function f
\ttry 3 times every 1 minute
\t\ta
\tend
end

if true
\ttry for 1 hour each 10 minutes backoff full from 5 s to 30 s
\t\tf | while true
\t\t\tlimit 2 s
\t\t\t\tb
\t\t\tcatch
\t\t\t\ttry $n times
\t\t\t\t\tc
\t\t\t\tend
\t\t\tend
\t\tend
\tend
end
";
        let script = parse("a.ftsh", text).expect("a script");
        let tried = TryCounts { begun: 1, attempts: 2, ..TryCounts::default() };
        let by_line = [2, 8, 10, 13].map(|line| (line, tried)).into();
        let before = print(&script);
        let mut shown = Vec::new();
        for change in changes(&script, &Policy::default(), &by_line) {
            let after = print(&change.script);
            let lines = before.lines().zip(after.lines()).enumerate();
            let changed: Vec<_> = lines.filter(|(_, (one, other))| one != other).collect();
            let [(at, (_, now))] = changed[..] else { panic!("{changed:?}") };
            assert_eq!(at as u32 + 1, change.line);
            shown.push(format!("{}: {} | {}", change.line, change.what, now.trim()));
        }
        insta::assert_snapshot!(shown.join("\n"), @r#"
        2: every 1 min → 2 min | try 3 times every 2 minutes
        2: every 1 min → 30 s | try 3 times every 30 seconds
        2: 3 times → 6 | try 6 times every 1 minute
        2: 3 times → 1 | try 1 time every 1 minute
        8: for 1 h → 2 h | try for 2 hours each 10 minutes backoff full from 5 seconds to 30 seconds
        8: for 1 h → 30 min | try for 30 minutes each 10 minutes backoff full from 5 seconds to 30 seconds
        8: each 10 min → 20 min | try for 1 hour each 20 minutes backoff full from 5 seconds to 30 seconds
        8: each 10 min → 5 min | try for 1 hour each 5 minutes backoff full from 5 seconds to 30 seconds
        8: backoff from 5 s → 10 s | try for 1 hour each 10 minutes backoff full from 10 seconds to 30 seconds by 2
        8: backoff from 5 s → 2.5 s | try for 1 hour each 10 minutes backoff full from 2500 ms to 30 seconds by 2
        8: backoff to 30 s → 7.5 s | try for 1 hour each 10 minutes backoff full from 5 seconds to 7500 ms by 2
        8: backoff full → ethernet | try for 1 hour each 10 minutes backoff ethernet from 5 seconds to 30 seconds by 2
        8: backoff full → fixed | try for 1 hour each 10 minutes backoff fixed from 5 seconds
        10: for 2 s → 4 s | limit 4 seconds
        10: for 2 s → 1 s | limit 1 second
        "#);
        let none = changes(&script, &Policy::default(), &BTreeMap::new());
        assert!(none.is_empty(), "what was never begun is left alone");
    }
}
