//! The directory after an `in` is the one before it.

use std::collections::BTreeMap;

use ftsh_machine::effect::{Action, Directory, TaskId};
use ftsh_machine::{Effect, Time};

use super::{Judged, Oracle, Verdict};

#[derive(Default)]
pub(super) struct Directories {
    /// Directories before each `in`, by its task and name.
    before: BTreeMap<(TaskId, String), Directory>,
    judged: Judged,
}

impl Oracle for Directories {
    fn name(&self) -> &'static str {
        "directories"
    }

    fn effect(&mut self, _: Time, effect: &Effect) -> Verdict {
        let Effect::Run(run) = effect else { return Ok(()) };
        let Action::Program { words, .. } = &run.action else { return Ok(()) };
        let [_, mark, name] = &words[..] else { return Ok(()) };
        let place = (run.task, name.to_string());
        if *mark == "before" {
            self.before.insert(place, run.directory.clone());
        } else if *mark == "after"
            && let Some(before) = self.before.remove(&place)
        {
            self.judged.count("directories after in");
            if before != run.directory {
                let (name, after) = (place.1, &run.directory);
                return Err(format!("{name} began in {before:?} and ends in {after:?}"));
            }
        }
        Ok(())
    }

    fn judged(&self) -> &Judged {
        &self.judged
    }
}
