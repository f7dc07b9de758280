//! `break` and `continue`: their targets, and the structures that they leave.

use crate::program::code::{Address, Instruction};
use crate::tasks::flow::Flow;
use crate::tasks::frame::{Frame, FrameKind};
use crate::tasks::task::Task;
use crate::unwind::Unwinder;
use crate::unwind::continuation::Continuation;
use ftsh_syntax::ast::Jump;

/// Loops around the code being lowered.
#[derive(Default)]
pub(crate) struct Loops {
    /// Number of enclosing structures with a frame.
    pub depth: usize,
    /// Open loops, each with the depth of its body.
    open: Vec<(usize, Vec<Placed>)>,
}

/// Address, kind and depth of a jump.
type Placed = (Address, Jump, usize);

/// Targets of the jumps out of a loop's body: the number of frames to leave, and the address.
pub(crate) struct Exits {
    /// Target of `break`.
    pub to_break: (usize, Address),
    /// Target of `continue`.
    pub to_continue: (usize, Address),
}

impl Loops {
    /// Begins the body of a loop, which adds a number of frames.
    pub(crate) fn enter(&mut self, frames: usize) {
        self.depth += frames;
        self.open.push((self.depth, Vec::new()));
    }

    /// Adds a jump at an address.
    pub(crate) fn jump(&mut self, at: Address, jump: Jump) {
        // The parser rejects jumps outside loops.
        if let Some((_, jumps)) = self.open.last_mut() {
            jumps.push((at, jump, self.depth));
        }
    }

    /// Ends the innermost loop, and resolves its jumps.
    pub(crate) fn leave(&mut self, frames: usize, exits: &Exits, code: &mut [Instruction]) {
        self.depth -= frames;
        let Some((inside, jumps)) = self.open.pop() else { return };
        for (at, jump, depth) in jumps {
            let (out, to) = match jump {
                Jump::Break => exits.to_break,
                Jump::Continue => exits.to_continue,
            };
            code[at] = Instruction::JumpOut { frames: depth - inside + out, to };
        }
    }
}

/// True if the body of a `for` may leave words over: by a `break`, which goes to the end, or a `return`.
pub(crate) fn ends_early(body: &[Instruction], end: Address) -> bool {
    let leaves = |instruction: &Instruction| match instruction {
        Instruction::JumpOut { to, .. } => *to == end,
        instruction => matches!(instruction, Instruction::Return { .. }),
    };
    body.iter().any(leaves)
}

impl Unwinder<'_> {
    /// Leaves a number of structures, whose attempts count as successful, and jumps.
    pub(crate) fn jump_out(&mut self, task: &mut Task, frames: usize, to: Address) -> Flow {
        for left in (0..frames).rev() {
            let Some(Frame { height, kind }) = task.frames.pop() else { break };
            task.stack.truncate(height);
            match kind {
                FrameKind::Guard(guard) => {
                    let then = Continuation::JumpOut { frames: left, to };
                    return self.begin_finally(task, *guard, then);
                }
                FrameKind::Transaction(transaction) => {
                    let then = Continuation::JumpOut { frames: left, to };
                    return self.core.committer().begin_commit(task, transaction, then);
                }
                kind => self.abandon_frame(task, kind, true),
            }
        }
        task.jump(to);
        Flow::Continue
    }
}
