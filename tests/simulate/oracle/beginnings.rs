//! Each attempt begins in the directory in which the first one began.

use std::collections::BTreeMap;

use ftsh_machine::effect::{Directory, Query, ScopeId, TaskId};
use ftsh_machine::record::LogEvent;
use ftsh_machine::{Effect, Time};

use super::{Judged, Oracle, Verdict};

/// Task, file and line of a `try`.
type Place = (TaskId, String, u32);

#[derive(Default)]
pub(super) struct Beginnings {
    /// Attempt that was logged last, until its scope begins.
    begun: Option<(Place, u64)>,
    /// Scopes of attempts in which nothing ran yet, as long as nobody changes a directory.
    scopes: BTreeMap<ScopeId, (Place, u64)>,
    /// Directories of the first attempts.
    first: BTreeMap<Place, Directory>,
    judged: Judged,
}

impl Oracle for Beginnings {
    fn name(&self) -> &'static str {
        "beginnings"
    }

    fn effect(&mut self, _: Time, effect: &Effect) -> Verdict {
        match effect {
            Effect::Log(record) => {
                if let (LogEvent::Attempt { number, .. }, Some(task)) = (&record.event, record.task)
                {
                    let place = (task, record.file.to_string(), record.line);
                    if *number == 1 {
                        self.first.remove(&place);
                    }
                    self.begun = Some((place, *number));
                }
                if let LogEvent::TryFailed { .. } | LogEvent::TrySucceeded(_) = record.event {
                    // Nothing ran in the last attempt.
                    self.begun = None;
                }
            }
            Effect::OpenScope { scope, .. } => {
                self.scopes.extend(self.begun.take().map(|begun| (*scope, begun)));
            }
            Effect::Query { query: Query::Directory(_), .. } => {
                self.scopes.clear();
                // The scope of an attempt is opened with the first command.
                self.begun = None;
            }
            Effect::Run(run) => {
                let begun = self.scopes.remove(&run.scope);
                if let Some((place, number)) = begun.filter(|(place, _)| place.0 == run.task) {
                    return self.compare(place, number, &run.directory);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn judged(&self) -> &Judged {
        &self.judged
    }
}

impl Beginnings {
    fn compare(&mut self, place: Place, number: u64, directory: &Directory) -> Verdict {
        if number == 1 {
            self.first.insert(place, directory.clone());
            return Ok(());
        }
        let Some(first) = self.first.get(&place) else { return Ok(()) };
        self.judged.count("beginnings of attempts");
        if first == directory {
            return Ok(());
        }
        let line = place.2;
        Err(format!("line {line}: attempt {number} begins in {directory:?} instead of {first:?}"))
    }
}
