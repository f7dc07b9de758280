//! `break` and `continue`: where they lead, and the way there.

use crate::program::code::{Address, Instruction};
use crate::tasks::flow::Flow;
use crate::tasks::frame::{Frame, FrameKind};
use crate::tasks::task::Task;
use crate::unwind::Unwinder;
use crate::unwind::leaving::Leaving;
use ftsh_syntax::ast::Jump;

/// The loops around what is being lowered.
#[derive(Default)]
pub struct Loops {
    /// How many structures that have a frame are around.
    pub depth: usize,
    /// The loops, each with its depth inside.
    open: Vec<(usize, Vec<Placed>)>,
}

/// Where a jump stands, and how deep.
type Placed = (Address, Jump, usize);

/// Where a loop is left: how many frames further out than its body, and the address.
pub struct Exits {
    /// By `break`.
    pub to_break: (usize, Address),
    /// By `continue`.
    pub to_continue: (usize, Address),
}

impl Loops {
    /// The body of a loop begins, which has so many frames.
    pub fn enter(&mut self, frames: usize) {
        self.depth += frames;
        self.open.push((self.depth, Vec::new()));
    }

    /// A jump stands at `at`.
    pub fn jump(&mut self, at: Address, jump: Jump) {
        // The parser has refused those outside loops.
        if let Some((_, jumps)) = self.open.last_mut() {
            jumps.push((at, jump, self.depth));
        }
    }

    /// The loop that was entered last ends.
    pub fn leave(&mut self, frames: usize, exits: &Exits, code: &mut [Instruction]) {
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

impl Unwinder<'_> {
    /// Leaves so many structures, whose attempts have succeeded by that, and goes on elsewhere.
    pub(crate) fn jump_out(&mut self, task: &mut Task, frames: usize, to: Address) -> Flow {
        for left in (0..frames).rev() {
            let Some(Frame { height, kind }) = task.frames.pop() else { break };
            task.stack.truncate(height);
            match kind {
                FrameKind::Guard(guard) => {
                    let then = Leaving::JumpOut { frames: left, to };
                    return self.begin_finally(task, *guard, then);
                }
                FrameKind::Transaction(transaction) => {
                    let then = Leaving::JumpOut { frames: left, to };
                    return self.core.committer().begin_commit(task, transaction, then);
                }
                kind => self.abandon_frame(task, kind, true),
            }
        }
        task.jump(to);
        Flow::Continue
    }
}
