//! Summary of a run for each machine with branches of the run.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;

use ftsh_machine::record::{AvoidReason, LogEvent};
use ftsh_syntax::diagnostic::{excerpt, printable};

/// Limit on listed machines. The machines avoided most often come first.
const MAX_MACHINES: usize = 10;

/// Statistics of the machines named in records.
#[derive(Debug, Default)]
pub(super) struct Machines(BTreeMap<String, MachineUse>);

#[derive(Debug, Default)]
struct MachineUse {
    /// Number of branches started on the machine.
    branches: u64,
    /// Number of avoidances, by reason.
    avoided: BTreeMap<AvoidReason, u64>,
    /// Reason of the latest refused branch, if known.
    refusal: String,
}

impl MachineUse {
    fn avoided(&self) -> u64 {
        self.avoided.values().sum()
    }
}

impl Machines {
    /// Takes an event into account.
    pub(super) fn add(&mut self, event: &LogEvent) {
        match event {
            LogEvent::Placed { node } => self.of(node).branches += 1,
            LogEvent::Avoided { node, why, .. } => {
                *self.of(node).avoided.entry(*why).or_default() += 1;
            }
            LogEvent::NotSent { node: Some(node), why, .. } => {
                self.of(node).refusal.clone_from(why);
            }
            _ => {}
        }
    }

    fn of(&mut self, node: &str) -> &mut MachineUse {
        self.0.entry(node.to_owned()).or_default()
    }

    /// Returns the number of machines in words, and a line for each machine. Returns none if no
    /// branch was sent to a machine.
    pub(super) fn render(&self) -> Option<(String, String)> {
        if self.0.is_empty() {
            return None;
        }
        let used = self.0.values().filter(|it| it.branches > 0).count();
        let avoided = self.0.values().filter(|it| it.avoided() > 0).count();
        let mut sum = format!("{used} used");
        if avoided > 0 {
            let _ = write!(sum, ", {avoided} avoided for a while");
        }
        let mut machines: Vec<_> = self.0.iter().collect();
        machines.sort_by_key(|(_, it)| Reverse(it.avoided()));
        let mut lines = String::new();
        for (name, machine) in machines.iter().take(MAX_MACHINES) {
            // Writing to a string can't fail.
            let _ = writeln!(lines, "    {}: {}", printable(name), machine.line());
        }
        if let Some(more) = machines.len().checked_sub(MAX_MACHINES + 1) {
            let noun = if more == 0 { "machine" } else { "machines" };
            let _ = writeln!(lines, "    and {} other {noun}", more + 1);
        }
        Some((sum, lines))
    }
}

impl MachineUse {
    fn line(&self) -> String {
        let mut line = match self.branches {
            0 => "no branch".to_owned(),
            1 => "1 branch".to_owned(),
            many => format!("{many} branches"),
        };
        if self.avoided.is_empty() {
            return line;
        }
        let times = match self.avoided() {
            1 => "once".to_owned(),
            many => format!("{many} times"),
        };
        let why = self.avoided.iter().map(|(why, count)| format!("{count} {}", why.name()));
        let why = why.collect::<Vec<_>>().join(", ");
        let _ = write!(line, ", avoided {times} ({why})");
        if !self.refusal.is_empty() {
            let _ = write!(line, ": {}", excerpt(&printable(&self.refusal)));
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use ftsh_syntax::engine::EngineId;

    fn told(events: &[LogEvent]) -> Option<String> {
        let mut machines = Machines::default();
        for event in events {
            machines.add(event);
        }
        machines.render().map(|(sum, lines)| format!("{sum}\n{lines}"))
    }

    fn placed(node: &str) -> LogEvent {
        LogEvent::Placed { node: node.into() }
    }

    fn avoided(node: &str, why: AvoidReason) -> LogEvent {
        LogEvent::Avoided { node: node.into(), why, time: Duration::from_secs(1) }
    }

    #[test]
    fn those_that_were_avoided_most_come_first_with_the_reasons() {
        let refused = |why: &str| LogEvent::NotSent {
            engine: EngineId::Slurm,
            node: Some("n3".into()),
            why: why.into(),
            delay: None,
            idle: None,
        };
        let events = [
            placed("n1"),
            placed("n2"),
            avoided("n2", AvoidReason::Lost),
            placed("n2"),
            avoided("n3", AvoidReason::Refused),
            refused("it is full"),
            avoided("n3", AvoidReason::Refused),
            refused("no \u{1b}[1msuch\ndirectory"),
            placed("n3"),
            avoided("n3", AvoidReason::Failed),
        ];
        insta::assert_snapshot!(told(&events).expect("machines"), @r"
        3 used, 2 avoided for a while
            n3: 1 branch, avoided 3 times (2 refused, 1 failed): no �[1msuch⏎directory
            n2: 2 branches, avoided once (1 lost)
            n1: 1 branch
        ");
        assert_eq!(told(&[LogEvent::Catch]), None);
    }

    #[test]
    fn of_many_machines_a_few_are_told() {
        let events: Vec<_> =
            (0..MAX_MACHINES + 3).map(|node| placed(&format!("n{node}"))).collect();
        let text = told(&events).expect("machines");
        assert!(text.starts_with("13 used\n") && text.ends_with("\n    and 3 other machines\n"));
        assert_eq!(text.lines().count(), MAX_MACHINES + 2, "{text}");
        let text = told(&events[..=MAX_MACHINES]).expect("machines");
        assert!(text.ends_with("\n    and 1 other machine\n"), "{text}");
    }
}
