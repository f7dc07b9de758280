//! Standard error kept for `$error_output`: that of the command that fails, with all stages of a
//! pipeline or all branches of a `forall`.
//!
//! The relay of an attempt keeps the output since the buffer was last emptied. The buffer is emptied
//! before a command if an earlier command may have printed, and after a success. A later failure that
//! no command causes thus has no output.

use super::Core;
use crate::effect::{BufferId, Effect};
use crate::frames::FrameKind;
use crate::tasks::Task;
use crate::transactions::TransactionKind;

impl Core {
    /// Keeps only the output of the command that begins now.
    pub(crate) fn keep_output(&mut self, task: &mut Task) {
        for (buffer, is_used) in buffers_around(task) {
            if std::mem::replace(is_used, true) {
                self.request(Effect::ForgetOutput(buffer));
            }
        }
    }

    /// Forgets the output of the commands that ended.
    pub(crate) fn forget_output(&mut self, task: &mut Task) {
        self.keep_output(task);
        task.note_output(false);
    }
}

impl Task {
    /// Notes that output may have come into the buffers since, as from an inner attempt that ended,
    /// or that none has.
    pub(crate) fn note_output(&mut self, has_come: bool) {
        buffers_around(self).for_each(|(_, is_used)| *is_used = has_come);
    }
}

/// Iterates over the buffers of the attempts around a task's position, with the note whether a
/// command may have printed.
fn buffers_around(task: &mut Task) -> impl Iterator<Item = (BufferId, &mut bool)> {
    task.frames.iter_mut().filter_map(|frame| match &mut frame.kind {
        FrameKind::Transaction(transaction) => match &mut transaction.kind {
            TransactionKind::Tee { buffer, is_used, .. } => Some((buffer.id(), is_used)),
            _ => None,
        },
        _ => None,
    })
}
