//! Choice of the commands and faults of a storm.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::command::CommandId;
use crate::fault::CommandFault;
use crate::spec::Injection;
use crate::trace::{RunTrace, TracedCommand};

/// Least duration of a command that is killed halfway.
const LEAST_DURATION: Duration = Duration::from_millis(10);

/// Number of repetitions of a line that are disturbed, at most: the first, one in the middle, the
/// last.
const MAX_REPETITIONS: usize = 3;

/// A command to disturb.
pub(crate) struct PlannedCommand<'t> {
    /// The command in the first undisturbed run.
    pub command: &'t TracedCommand,
    /// Faults, one a run.
    pub injections: Vec<Injection>,
}

/// Returns the commands to disturb, in the order of the script.
pub(crate) fn plan<'t>(one: &'t RunTrace, other: &RunTrace) -> Vec<PlannedCommand<'t>> {
    let words = |trace: &RunTrace| {
        let mut words: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for command in &trace.commands {
            words.entry(command.line).or_default().push(command.words);
        }
        for words in words.values_mut() {
            words.sort_unstable();
        }
        words
    };
    let (words, other_words) = (words(one), words(other));
    let durations: BTreeMap<CommandId, Duration> =
        other.commands.iter().flat_map(|it| it.ids.map(|id| (id, it.took))).collect();
    let mut by_line: BTreeMap<u32, Vec<PlannedCommand>> = BTreeMap::new();
    for command in one.commands.iter().filter(|it| it.status.is_some()) {
        let has_same_words = words.get(&command.line) == other_words.get(&command.line);
        let id = command.ids[usize::from(!has_same_words)];
        let took = durations.get(&id).map_or(command.took, |took| command.took.min(*took));
        let injections = CommandFault::ALL
            .into_iter()
            .filter(|fault| applies(*fault, command, took))
            .map(|fault| Injection { command: id, fault, halfway: took / 2 })
            .collect();
        by_line.entry(command.line).or_default().push(PlannedCommand { command, injections });
    }
    by_line.into_values().flat_map(sample).collect()
}

/// Returns some of the repetitions of a line.
fn sample(mut commands: Vec<PlannedCommand>) -> Vec<PlannedCommand> {
    if commands.len() > MAX_REPETITIONS {
        let (middle, last) = (commands.len() / 2, commands.len() - 1);
        let mut index = 0;
        commands.retain(|_| {
            index += 1;
            [0, middle, last].contains(&(index - 1))
        });
    }
    commands
}

fn applies(fault: CommandFault, command: &TracedCommand, took: Duration) -> bool {
    let is_real_program = command.is_program && !command.is_modelled;
    // A status other than 0 is an answer, in a script that succeeds.
    let succeeds = command.status == Some(0);
    match fault {
        CommandFault::Failure => succeeds,
        CommandFault::LostAnswer => succeeds && !command.is_modelled,
        CommandFault::KilledHalfway => is_real_program && took >= LEAST_DURATION,
        CommandFault::Hang => command.is_program && command.has_limit,
        CommandFault::ShellKilled => true,
    }
}
