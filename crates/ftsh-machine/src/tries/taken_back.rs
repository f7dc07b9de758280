//! Output of failed attempts, which is taken back when another attempt follows.

use crate::core::Core;
use crate::effect::Query;
use crate::event::Reply;
use crate::frames::FrameKind;
use crate::record::Level;
use crate::tasks::Task;
use crate::values::Suspend;

/// Line of the log where output is not taken back.
const KEPT: &str = "the output of the failed attempt stays, because its file also has other output";

/// Cuts the file or the variable of standard output, if an attempt or a word failed before.
pub(crate) fn take_back(core: &mut Core, task: &Task) -> Result<(), Suspend> {
    let is_retry = match task.frames.last().map(|frame| &frame.kind) {
        Some(FrameKind::Try(frame)) => frame.failure.is_some(),
        Some(FrameKind::ForAny(frame)) => frame.tried > 0,
        _ => false,
    };
    // A special path, such as `/dev/stdout`, leads to output that others share.
    if !is_retry || !task.io.is_output_opened() {
        return Ok(());
    }
    let query = Query::TakeBack(task.io.id());
    match task.answer(&query) {
        None => return Err(Suspend::Pending(query)),
        Some(Reply::Truth(false)) => {
            core.log_note(task, task.line(), Level::FAILURES, KEPT.to_owned());
        }
        Some(_) => {}
    }
    Ok(())
}
