//! Calls in words: `${f(x)}`.
//!
//! An instruction whose words contain calls is suspended until each call has a value, and starts
//! over with the values.

use crate::tasks::flow::{Flow, Step};
use crate::tasks::frame::{Frame, FrameKind, WordCallFrame};
use crate::tasks::task::Task;

/// Begins the call at an offset of the source, for a word of the current instruction.
pub(crate) fn begin(task: &mut Task, start: usize) -> Flow {
    let calls = &task.program.calls;
    let Ok(index) = calls.binary_search_by_key(&start, |(start, _)| *start) else {
        return Flow::Throw(task.broken("a call in a word has no code"));
    };
    let (_, address) = calls[index];
    // Answers to queries may change during the call.
    let values = task.progress.take().map(|progress| progress.calls).unwrap_or_default();
    task.enter(FrameKind::WordCall(Box::new(WordCallFrame { start, return_to: task.at, values })));
    task.jump(address);
    Flow::Continue
}

/// Ends a call in a word, and starts the instruction with the word over.
pub(crate) fn end(task: &mut Task) -> Step {
    let value = task.pop()?;
    match task.frames.pop() {
        Some(Frame { kind: FrameKind::WordCall(call), .. }) => {
            task.jump(call.return_to);
            let values = &mut task.progress().calls;
            *values = call.values;
            values.push((call.start, value));
            Ok(Flow::Continue)
        }
        _ => Ok(Flow::Throw(task.broken("a call in a word ends that has not begun"))),
    }
}
