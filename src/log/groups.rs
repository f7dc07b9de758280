//! Lines of branches whose output is written as a group: the lines are written after the group.

use std::collections::BTreeMap;

use ftsh_machine::effect::TaskId;

/// Limit on the lines of all groups, in bytes. Beyond the limit, the lines of the current group are
/// written immediately.
const MAX_BYTES: usize = 1 << 20;

/// Lines held back until the end of their groups.
#[derive(Default)]
pub(super) struct GroupedLines {
    lines: BTreeMap<TaskId, String>,
    bytes: usize,
}

impl GroupedLines {
    /// Keeps a line of a group. Returns all lines of the group if the lines are due now.
    pub(super) fn add(&mut self, group: TaskId, line: &str) -> Option<String> {
        self.lines.entry(group).or_default().push_str(line);
        self.bytes += line.len();
        if self.bytes > MAX_BYTES { self.take(group) } else { None }
    }

    /// Takes the lines of a group, if there are any.
    pub(super) fn take(&mut self, group: TaskId) -> Option<String> {
        let lines = self.lines.remove(&group)?;
        self.bytes -= lines.len();
        Some(lines)
    }

    /// Takes the lines of all groups.
    pub(super) fn take_all(&mut self) -> String {
        self.bytes = 0;
        std::mem::take(&mut self.lines).into_values().collect()
    }
}
