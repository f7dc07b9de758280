//! Lines of branches whose output is written as a group: the lines are written after the group.

use std::collections::BTreeMap;

use ftsh_machine::effect::TaskId;

/// Bytes that lines of all groups may take before those of the present one are written at once.
const MAX_BYTES: usize = 1 << 20;

/// Lines that wait for the end of their groups.
#[derive(Default)]
pub struct Groups {
    lines: BTreeMap<TaskId, String>,
    bytes: usize,
}

impl Groups {
    /// Keeps a line of a group. Returns all lines of the group if they are to be written now.
    pub fn add(&mut self, group: TaskId, line: &str) -> Option<String> {
        self.lines.entry(group).or_default().push_str(line);
        self.bytes += line.len();
        if self.bytes > MAX_BYTES { self.take(group) } else { None }
    }

    /// Takes the lines of a group, if there are any.
    pub fn take(&mut self, group: TaskId) -> Option<String> {
        let lines = self.lines.remove(&group)?;
        self.bytes -= lines.len();
        Some(lines)
    }

    /// Takes the lines of all groups.
    pub fn take_all(&mut self) -> String {
        self.bytes = 0;
        std::mem::take(&mut self.lines).into_values().collect()
    }
}
