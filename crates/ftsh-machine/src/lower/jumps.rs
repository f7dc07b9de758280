//! `break` and `continue`: their targets, and the structures that they leave.

use crate::program::{Address, Instruction};
use ftsh_syntax::ast::Jump;

/// Loops around the code being lowered.
#[derive(Default)]
pub(crate) struct Loops {
    /// Number of enclosing structures with a frame.
    pub depth: usize,
    /// Open loops, each with the depth of its body.
    open: Vec<(usize, Vec<Placed>)>,
}

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

/// Address, kind and depth of a jump.
type Placed = (Address, Jump, usize);
