//! Decision about a disturbed run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::compare::{EntryDifference, OUTPUT, differences};
use crate::fault::CommandFault;
use crate::report::{FaultVerdict, Finding};
use crate::spec::Injection;
use crate::trace::{RunTrace, TracedCommand};
use crate::tree::{Changes, EntryContent, TreeEntry, ends};
use crate::variation::Variation;
use crate::world::RunEnd;

/// End of the undisturbed run, with which others are compared.
pub(crate) struct Baseline {
    pub trace: RunTrace,
    /// Changes, with the output at the path [`OUTPUT`].
    pub changes: Changes,
    pub variation: Variation,
}

/// A disturbed run, which may have been followed by an undisturbed one in the same directories.
pub(crate) struct DisturbedRun {
    pub end: RunEnd,
    pub again: Option<RunEnd>,
    pub changes: Changes,
}

/// Returns changes with the output.
fn with_output(mut changes: Changes, output: &[u8]) -> Changes {
    let entry = TreeEntry { mode: 0, content: EntryContent::Text(output.to_vec()) };
    changes.insert(PathBuf::from(OUTPUT), Some(entry));
    changes
}

impl Baseline {
    /// Creates a baseline from two undisturbed runs.
    pub(crate) fn new(one: (RunEnd, Changes), other: (RunEnd, Changes)) -> Self {
        let changes = with_output(one.1, &one.0.output);
        let variation = Variation::default();
        let mut baseline = Self { trace: one.0.trace, changes, variation };
        baseline.extend(other);
        baseline
    }

    /// Leaves out what varies in another undisturbed run.
    pub(crate) fn extend(&mut self, other: (RunEnd, Changes)) {
        let (one, other) = ends(&self.changes, &with_output(other.1, &other.0.output));
        self.variation.extend(&one, &other);
    }

    /// Decides about a run with a fault. Paths are relative to a directory.
    pub(crate) fn judge(
        &self,
        run: &DisturbedRun,
        injection: &Injection,
        directory: &Path,
    ) -> Finding {
        let (fault, line) = (injection.fault, injection.command.line);
        let finding = |verdict, difference, cause| Finding { fault, verdict, difference, cause };
        let DisturbedRun { end, again, changes } = run;
        let Some(injected) = end.trace.injected else {
            return finding(FaultVerdict::Skipped, None, None);
        };
        let last = again.as_ref().unwrap_or(end);
        let culprit = last.trace.culprit_of_failure().unwrap_or(line);
        if last.trace.is_endless {
            let difference = Some("the run does not end".to_owned());
            return finding(FaultVerdict::NotRepeatable, difference, Some(culprit));
        }
        if last.status != 0 {
            let difference = format!("it fails with status {} when it runs again", last.status);
            return finding(FaultVerdict::NotRepeatable, Some(difference), Some(culprit));
        }
        let changes = if again.is_some() || fault == CommandFault::ShellKilled {
            // The output of two runs or two shells differs from that of one.
            let mut changes = changes.clone();
            let output = self.changes.get(Path::new(OUTPUT)).cloned().flatten();
            changes.insert(OUTPUT.into(), output);
            changes
        } else {
            with_output(changes.clone(), &end.output)
        };
        let (expected, found) = ends(&self.changes, &changes);
        let (expected, found) = (self.variation.masked(&expected), self.variation.masked(&found));
        let has_branches = self.trace.has_branches || end.trace.has_branches;
        let differences = differences(&expected, &found, has_branches, directory);
        let Some(first) = differences.first() else {
            return finding(FaultVerdict::Repeatable, None, None);
        };
        if again.is_none() && !is_repeated(&end.trace, injected, injection) {
            return finding(FaultVerdict::Handled, Some(first.text.clone()), None);
        }
        let again = again.iter().flat_map(|it| &it.trace.commands);
        let commands: Vec<_> = end.trace.commands.iter().chain(again).collect();
        // What the script makes of a wrong file is wrong as well, so the first cause counts.
        let order = |line: &u32| self.trace.commands.iter().position(|it| it.line == *line);
        // Branches that a killed shell ran besides may have been repeated or not.
        let own = self.trace.commands.iter().find(|it| it.ids.contains(&injection.command));
        let is_own = |it: &EntryDifference| {
            own.is_some_and(|own| own.changed.iter().any(|path| self.is_at(path, &it.path)))
        };
        let blamed = differences.iter().map(|it| (self.cause(it, &commands).unwrap_or(line), it));
        let key = |(cause, it): &(u32, &EntryDifference)| {
            (order(cause).unwrap_or(usize::MAX), !is_own(it))
        };
        match blamed.min_by_key(key) {
            Some((cause, it)) => {
                finding(FaultVerdict::NotRepeatable, Some(it.text.clone()), Some(cause))
            }
            None => finding(FaultVerdict::Repeatable, None, None),
        }
    }

    /// Returns the line of the command that is to blame for a difference: the last one that ran more
    /// often than in the undisturbed run and changed the path, or else the last one that changed it.
    fn cause(&self, difference: &EntryDifference, commands: &[&TracedCommand]) -> Option<u32> {
        let count = |lines: &mut dyn Iterator<Item = u32>| {
            let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
            lines.for_each(|line| *counts.entry(line).or_default() += 1);
            counts
        };
        let usual = count(&mut self.trace.commands.iter().map(|it| it.line));
        let now = count(&mut commands.iter().map(|it| it.line));
        let is_repeated = |line: &u32| now.get(line) > usual.get(line);
        let changed: Vec<u32> = commands
            .iter()
            .filter(|command| command.changed.iter().any(|path| self.is_at(path, &difference.path)))
            .map(|command| command.line)
            .collect();
        changed.iter().rev().find(|line| is_repeated(line)).or(changed.last()).copied()
    }

    /// True if a change of `path` explains a difference at `place`.
    fn is_at(&self, path: &Path, place: &Path) -> bool {
        let path = self.variation.masked_path(path);
        place.as_os_str() != OUTPUT && (path.starts_with(place) || place.starts_with(&path))
    }
}

/// True if the command with the fault ran again.
fn is_repeated(trace: &RunTrace, injected: usize, injection: &Injection) -> bool {
    let Some((command, later)) = trace.commands.get(injected..).and_then(<[_]>::split_first) else {
        return true;
    };
    let has_words = injection.command.words.is_some();
    later.iter().any(|it| it.line == command.line && (it.words == command.words || !has_words))
}
