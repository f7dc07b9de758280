//! The quietest log reports the failure of a run.

use ftsh_machine::record::{Level, LogEvent};
use ftsh_machine::{Effect, Outcome, Time};

use super::{Look, Oracle, Verdict};

/// Failures in the quietest log, by line and message.
#[derive(Default)]
pub(super) struct LastWords {
    reported: Vec<(u32, String)>,
    is_interrupted: bool,
}

impl Oracle for LastWords {
    fn name(&self) -> &'static str {
        "last words"
    }

    fn effect(&mut self, _: Time, effect: &Effect) -> Verdict {
        let Effect::Log(record) = effect else { return Ok(()) };
        if let LogEvent::Suspended(_) | LogEvent::Interrupted(_) = record.event {
            self.is_interrupted = true;
        }
        let Some(failure) = record.event.failure() else { return Ok(()) };
        if record.uncaught != (record.level == Level::ENDING) {
            return Err(format!("at level {}: {failure}", record.level.0));
        }
        if record.uncaught {
            self.reported.push((failure.line, failure.message.clone()));
        }
        Ok(())
    }

    fn look(&mut self, look: &Look) -> Verdict {
        let Some(Outcome::Failed(failure)) = look.outcome else { return Ok(()) };
        let is_reported =
            |(line, message): &(u32, String)| (*line, message) == (failure.line, &failure.message);
        if self.is_interrupted || self.reported.iter().any(is_reported) {
            return Ok(());
        }
        Err(format!(
            "line {}: `{failure}` ends the run, and only {:?} is reported",
            failure.line, self.reported
        ))
    }
}
