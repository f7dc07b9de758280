//! Standard error kept for `$error_output`: that of the command that fails, with all stages of a
//! pipeline or all branches of a `forall`.
//!
//! The relay of an attempt keeps the output since the buffer was last emptied. The buffer is emptied
//! before a command if an earlier command may have printed, and after a success. A later failure that
//! no command causes thus has no output.

use crate::core::Requests;
use crate::effect::Effect;
use crate::frames::FrameKind;
use crate::tasks::Task;
use crate::transactions::TransactionKind;

impl Requests {
    /// Keeps only the output of the command that begins now.
    pub(crate) fn keep_output(&mut self, task: &mut Task) {
        self.empty_kept(task, true);
    }

    /// Forgets the output of the commands that ended.
    pub(crate) fn forget_output(&mut self, task: &mut Task) {
        self.empty_kept(task, false);
    }

    /// Empties the buffers of the attempts around a task's position. `prints` is true if a
    /// command follows.
    fn empty_kept(&mut self, task: &mut Task, prints: bool) {
        for frame in &mut task.frames {
            if let FrameKind::Transaction(transaction) = &mut frame.kind
                && let TransactionKind::Tee { buffer, is_used, .. } = &mut transaction.kind
                && std::mem::replace(is_used, prints)
            {
                self.push(Effect::ForgetOutput(buffer.id()));
            }
        }
    }
}

impl Task {
    /// Notes that output of an ended inner attempt may have come into the buffers since.
    pub(crate) fn note_output(&mut self) {
        for frame in &mut self.frames {
            if let FrameKind::Transaction(transaction) = &mut frame.kind
                && let TransactionKind::Tee { is_used, .. } = &mut transaction.kind
            {
                *is_used = true;
            }
        }
    }
}
