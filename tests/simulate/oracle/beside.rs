//! The command of a `with` never outlives the group, and the group never outlives the command.

use std::collections::BTreeMap;

use ftsh_machine::effect::{ProcessId, TaskId};
use ftsh_machine::status::Doing;

use super::{Judged, Look, Oracle, Verdict};

#[derive(Default)]
pub(super) struct Beside {
    /// Commands by the task of the `with` and its name, with true for the stage of a pipeline.
    commands: BTreeMap<(TaskId, String), (ProcessId, bool)>,
    judged: Judged,
}

impl Oracle for Beside {
    fn name(&self) -> &'static str {
        "beside"
    }

    fn look(&mut self, look: &Look) -> Verdict {
        for start in look.started {
            let words: Vec<_> = start.text.split(' ').collect();
            let Some((mark, name)) =
                words.len().checked_sub(2).map(|at| (words[at], words[at + 1].to_owned()))
            else {
                continue;
            };
            let ended = |process| look.families.ended.get(process);
            // What happens at the same instant has no order.
            let ended_before = |process| ended(process).is_some_and(|end| *end < start.at);
            match (mark, task_of_with(look, start.task)) {
                ("beside", Some((with, is_stage))) => {
                    self.commands.insert((with, name), (start.process, is_stage));
                }
                ("group", Some((with, _))) => {
                    self.judged.count("groups of with");
                    match self.commands.get(&(with, name.clone())) {
                        Some((process, is_stage)) if *is_stage || !ended_before(process) => {}
                        // After a second the group does not wait for a stage that is being opened.
                        None if look.in_progress.operations > 0 => {}
                        _ => return Err(format!("the group of {name} runs without its command")),
                    }
                }
                ("behind", _) => {
                    if let Some((process, _)) = self.commands.remove(&(start.task, name.clone())) {
                        self.judged.count("commands behind with");
                        if ended(&process).is_none() && look.families.starts.contains_key(&process)
                        {
                            return Err(format!("the command of {name} outlives its group"));
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn judged(&self) -> &Judged {
        &self.judged
    }
}

/// Returns the task of the innermost `with` around a task, and true for a task deeper than the command
/// or the group.
fn task_of_with(look: &Look, task: TaskId) -> Option<(TaskId, bool)> {
    let mut inner = task;
    loop {
        let parent = look.tasks.get(&look.tasks.get(&inner)?.parent?)?;
        if matches!(parent.doing, Doing::Beside) {
            return Some((parent.task, inner != task));
        }
        inner = parent.task;
    }
}
