//! With `gives`, a branch succeeds only if the file that it gives is there after its end. With `takes`,
//! no branch begins without the file that it takes.

use std::collections::{BTreeMap, BTreeSet};

use bstr::BString;
use ftsh_machine::effect::{OperationId, Query};
use ftsh_machine::record::LogEvent;
use ftsh_machine::{Effect, Event, Time};

use super::{Judged, Oracle, Verdict};

/// Beginning of the names of loops whose branches give a file, with the word in its name.
const PREFIX: &str = "files";

#[derive(Default)]
pub(super) struct Files {
    /// Names that are being looked for, after the success of a branch or before it begins.
    requested: BTreeMap<OperationId, (bool, BString)>,
    there: BTreeSet<BString>,
    judged: Judged,
}

impl Oracle for Files {
    fn name(&self) -> &'static str {
        "files"
    }

    fn effect(&mut self, _: Time, effect: &Effect) -> Verdict {
        match effect {
            Effect::Log(record) => match &record.event {
                LogEvent::Iteration { kind: "forall", name, value } => {
                    self.there.remove(format!("{value}.{name}").as_bytes());
                }
                LogEvent::BranchEnded { name, word, failure: None, .. }
                    if name.starts_with(PREFIX)
                        && !self.there.remove(&BString::from(format!("{word}.{name}"))) =>
                {
                    return Err(format!("`{word}` of {name} succeeds without its file"));
                }
                _ => {}
            },
            Effect::Query { operation, query: Query::BranchFiles { given, names }, .. } => {
                let name = names.first().cloned().unwrap_or_default();
                self.requested.insert(*operation, (*given, name));
            }
            Effect::Abandon(operation) => _ = self.requested.remove(operation),
            _ => {}
        }
        Ok(())
    }

    fn event(&mut self, _: Time, event: &Event) -> Verdict {
        if let Event::Done { operation, result } = event
            && let Some((given, name)) = self.requested.remove(operation)
        {
            match (given, result) {
                (true, Ok(_)) => {
                    self.judged.count("gives: there");
                    self.there.insert(name);
                }
                (true, Err(_)) => self.judged.count("gives: missing"),
                (false, Err(_)) => self.judged.count("takes: missing"),
                (false, Ok(_)) => {}
            }
        }
        Ok(())
    }

    fn judged(&self) -> &Judged {
        &self.judged
    }
}
