//! With `once in`, a branch has succeeded only when its word is recorded, and a recorded word never
//! runs again.

use std::collections::{BTreeMap, BTreeSet};

use bstr::BString;
use ftsh_machine::effect::{OperationId, Query};
use ftsh_machine::record::LogEvent;
use ftsh_machine::{Effect, Event, Time};

use super::{Judged, Oracle, Verdict};

/// Beginning of the names of loops that record their words.
const PREFIX: &str = "once";

#[derive(Default)]
pub(super) struct Once {
    /// Records that are requested: variable and word.
    requested: BTreeMap<OperationId, (String, BString)>,
    recorded: BTreeSet<(String, BString)>,
    judged: Judged,
}

impl Once {
    fn log(&mut self, event: &LogEvent) -> Verdict {
        let key = |name: &str, word: &[u8]| (name.to_owned(), BString::from(word));
        match event {
            LogEvent::Iteration { kind: "forall", name, value }
                if self.recorded.contains(&key(name, value.as_bytes())) =>
            {
                Err(format!("`{value}` of {name} is recorded, and runs again"))
            }
            LogEvent::BranchEnded { name, word, failure: None, .. }
                if name.starts_with(PREFIX) && !self.recorded.contains(&key(name, word)) =>
            {
                Err(format!("`{word}` of {name} succeeds, and is not recorded"))
            }
            LogEvent::BranchSkipped { .. } => {
                self.judged.count("once in: skipped");
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl Oracle for Once {
    fn name(&self) -> &'static str {
        "once"
    }

    fn effect(&mut self, _: Time, effect: &Effect) -> Verdict {
        match effect {
            Effect::Log(record) => return self.log(&record.event),
            Effect::Query { operation, query: Query::RecordedWords(words), .. } => {
                if let Some(line) = &words.line {
                    let name = words.path.to_string().trim_start_matches('/').to_owned();
                    self.requested.insert(*operation, (name, line.clone()));
                }
            }
            Effect::Abandon(operation) => _ = self.requested.remove(operation),
            _ => {}
        }
        Ok(())
    }

    fn event(&mut self, _: Time, event: &Event) -> Verdict {
        if let Event::Done { operation, result } = event
            && let Some(record) = self.requested.remove(operation)
            && result.is_ok()
        {
            self.judged.count("once in: recorded");
            self.recorded.insert(record);
        }
        Ok(())
    }

    fn judged(&self) -> &Judged {
        &self.judged
    }
}
