//! Open structures, from the head to the `end`.

use super::line::HeadLine;
use crate::ast::{Around, Block, Case, Command, CommandKind, Expr, For, Name, Try};
use crate::span::Span;

/// Head of an open structure, and the arms before the current block.
pub(super) enum Structure {
    Try(Box<Try>),
    /// `if`, with the finished arms, and the condition of the current arm unless it is `else`.
    If {
        arms: Vec<(Expr, Block)>,
        condition: Option<Expr>,
    },
    /// `case`, with the part that the current block belongs to.
    Case(Box<Case>, CasePart),
    While(Expr),
    For(Box<For>),
    In(Expr),
    With(Block),
    Function {
        name: Name,
        name_span: Span,
        parameters: Option<Command>,
    },
    /// Structure whose head does not parse.
    Broken(&'static str),
}

impl Structure {
    /// Returns the keyword of the head.
    pub(super) fn keyword(&self) -> &'static str {
        match self {
            Self::Try(head) if head.is_limit => "limit",
            Self::Try(_) => "try",
            Self::If { .. } => "if",
            Self::Case(..) => "case",
            Self::While(_) => "while",
            Self::For(head) => head.kind.keyword(),
            Self::In(_) => "in",
            Self::With(_) => "with",
            Self::Function { .. } => "function",
            Self::Broken(keyword) => keyword,
        }
    }

    /// Returns the structure with its blocks, or `None` after a head that does not parse. `span` is
    /// that of the head.
    pub(super) fn ended(self, span: Span, parts: BlockParts) -> Option<CommandKind> {
        let BlockParts { body, catch, finally } = parts;
        let is_handled = catch.is_some() || finally.is_some();
        let command = |kind| Command::plain(span, kind);
        let handled = |around, body, catch, finally| {
            let head = Try { around: Some(around), ..Try::once(span.end) };
            CommandKind::Try(Box::new(Try { body, catch, finally, ..head }))
        };
        let structure = match self {
            Self::Function { name, name_span, parameters } => {
                let mut body = body;
                if is_handled {
                    let kind = handled(Around::Function, body, catch, finally);
                    body = Block { commands: vec![command(kind)] };
                }
                body.commands.splice(0..0, parameters);
                return Some(CommandKind::Function { name, name_span, body });
            }
            Self::Try(head) => {
                return Some(CommandKind::Try(Box::new(Try { body, catch, finally, ..*head })));
            }
            structure if !is_handled => return structure.with(body),
            structure => structure,
        };
        let body = Block { commands: vec![command(structure.with(body)?)] };
        Some(handled(Around::Structure, body, catch, finally))
    }

    /// Returns the structure with its last block.
    fn with(self, block: Block) -> Option<CommandKind> {
        Some(match self {
            Self::Try(_) | Self::Function { .. } | Self::Broken(_) => return None,
            Self::If { mut arms, condition: Some(condition) } => {
                arms.push((condition, block));
                CommandKind::If { arms, otherwise: None }
            }
            Self::If { arms, condition: None } => CommandKind::If { arms, otherwise: Some(block) },
            Self::Case(mut head, part) => {
                part.put(&mut head, block);
                CommandKind::Case(head)
            }
            Self::While(condition) => CommandKind::While { condition, body: block },
            Self::For(mut head) => {
                head.body = block;
                CommandKind::For(head)
            }
            Self::In(directory) => CommandKind::In { directory, body: block },
            Self::With(companion) => CommandKind::With { companion, body: block },
        })
    }
}

/// Blocks of a structure.
#[derive(Default)]
pub(super) struct BlockParts {
    pub(super) body: Block,
    pub(super) catch: Option<(Span, Block)>,
    pub(super) finally: Option<(Span, Block)>,
}

impl BlockParts {
    /// Returns the last block.
    pub(super) fn current(&mut self) -> &mut Block {
        let after = self.finally.as_mut().or(self.catch.as_mut());
        after.map_or(&mut self.body, |(_, block)| block)
    }
}

/// Part of a `case` that a block belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CasePart {
    /// Lines before the first `when`.
    Comments,
    /// Last arm.
    Arm,
    /// `else`.
    Else,
}

impl CasePart {
    /// Adds the block of this part.
    pub(super) fn put(self, head: &mut Case, block: Block) {
        match self {
            Self::Comments => head.comments = block,
            Self::Arm => {
                if let Some(arm) = head.arms.last_mut() {
                    arm.body = block;
                }
            }
            Self::Else => head.otherwise = Some(block),
        }
    }
}

impl From<HeadLine> for Structure {
    fn from(head: HeadLine) -> Self {
        match head {
            HeadLine::Try(head) => Self::Try(head),
            HeadLine::If(condition) => Self::If { arms: Vec::new(), condition: Some(condition) },
            HeadLine::Case(value) => Self::Case(Box::new(Case::new(value)), CasePart::Comments),
            HeadLine::While(condition) => Self::While(condition),
            HeadLine::For(head) => Self::For(head),
            HeadLine::In(directory) => Self::In(directory),
            HeadLine::With(companion) => Self::With(companion),
            HeadLine::Function { name, name_span, parameters } => {
                Self::Function { name, name_span, parameters }
            }
            HeadLine::Broken(keyword) => Self::Broken(keyword),
        }
    }
}
