//! Reading of durations, and learning from attempts.

use std::sync::Arc;

use super::Core;
use crate::attempts::{TryFrame, TryPhase};
use crate::branches::JoinKind;
use crate::durations::estimate::Sample;
use crate::durations::learned::LimitKey;
use crate::effect::{DurationsOf, Effect, Query};
use crate::event::Reply;
use crate::frames::FrameKind;
use crate::tasks::Task;
use crate::values::Suspend;
use ftsh_syntax::Source;

impl TryFrame {
    /// Sets the limit of the next attempt.
    pub(crate) fn set_usual_limit(&mut self) {
        if let Some(usual) = &self.usual {
            self.clauses.each = Some(usual.execution.next_limit());
        }
    }

    /// Notes that the limit of the attempt cut the attempt short.
    pub(crate) fn note_attempt_cut(&mut self) {
        let attempt = self.attempt;
        if let (Some(usual), Some(limit)) = (&mut self.usual, self.clauses.each)
            && usual.resumed_attempt != Some(attempt)
        {
            usual.execution.note_cut(limit);
        }
    }
}

impl Core {
    /// Learns from the end of a `try`, whose last attempt succeeded or failed.
    pub(crate) fn learn(&mut self, source: &Arc<Source>, frame: &mut TryFrame, succeeded: bool) {
        let Some(usual) = frame.usual.take() else { return };
        if usual.resumed_attempt == Some(frame.attempt) {
            return;
        }
        let success = succeeded.then(|| self.now() - frame.attempt_started);
        self.add_durations(source, usual.key, &usual.execution.samples(success));
    }
}

impl Task {
    /// Forgets the durations of attempts and words that run now, because the run continues in
    /// another process.
    pub(crate) fn forget_durations(&mut self) {
        for frame in &mut self.frames {
            match &mut frame.kind {
                FrameKind::Try(frame) if frame.phase == TryPhase::Attempt => {
                    if let Some(usual) = &mut frame.usual {
                        usual.resumed_attempt = Some(frame.attempt);
                    }
                }
                FrameKind::Join(join) => {
                    if let JoinKind::Hedge(hedge) = &mut join.kind {
                        hedge.usual = None;
                    }
                }
                _ => {}
            }
        }
    }
}

impl Core {
    /// Reads the durations of a file that begins to run.
    pub(crate) fn read_durations(&mut self, task: &Task, of: &DurationsOf) -> Result<(), Suspend> {
        // A branch on another machine uses `or D`.
        if task.program.learned.is_empty() || self.remote.root().is_some() {
            return Ok(());
        }
        let query = Query::Durations(of.clone());
        let Some(Reply::Durations(recorded)) = task.answer(&query) else {
            return Err(Suspend::Pending(query));
        };
        self.durations.add(&task.program.source, recorded);
        Ok(())
    }

    /// Adds samples to the history of a file, and has the driver record them.
    pub(crate) fn add_durations(
        &mut self,
        source: &Arc<Source>,
        key: LimitKey,
        samples: &[Sample],
    ) {
        if let Some((record, lines)) = self.durations.add_samples(source, key, samples) {
            self.request(Effect::RecordDurations(record, lines.into()));
        }
    }
}
