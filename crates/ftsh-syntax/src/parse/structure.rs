//! Open structures, from the head to the `end`.

use super::line::HeadLine;
use crate::ast::{Block, Case, CommandKind, Expr, For, Name, Try};
use crate::span::Span;

/// Head of an open structure, and its blocks before the current block.
pub(super) enum Structure {
    /// `try`, with the spans of `catch` and `finally` if they precede the current block.
    Try {
        head: Box<Try>,
        catch: Option<Span>,
        finally: Option<Span>,
    },
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
    Function {
        name: Name,
        name_span: Span,
    },
    /// Structure whose head does not parse.
    Broken(&'static str),
}

impl Structure {
    /// Returns the keyword of the head.
    pub(super) fn keyword(&self) -> &'static str {
        match self {
            Self::Try { head, .. } if head.is_limit => "limit",
            Self::Try { .. } => "try",
            Self::If { .. } => "if",
            Self::Case(..) => "case",
            Self::While(_) => "while",
            Self::For(head) => head.kind.keyword(),
            Self::In(_) => "in",
            Self::Function { .. } => "function",
            Self::Broken(keyword) => keyword,
        }
    }

    /// Returns the structure with its last block, or `None` after a head that does not parse.
    pub(super) fn ended(self, block: Block) -> Option<CommandKind> {
        Some(match self {
            Self::Try { mut head, catch, finally } => {
                match (catch, finally) {
                    (_, Some(finally)) => head.finally = Some((finally, block)),
                    (Some(catch), None) => head.catch = Some((catch, block)),
                    (None, None) => head.body = block,
                }
                CommandKind::Try(head)
            }
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
            Self::Function { name, name_span } => {
                CommandKind::Function { name, name_span, body: block }
            }
            Self::Broken(_) => return None,
        })
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
            HeadLine::Try(head) => Self::Try { head, catch: None, finally: None },
            HeadLine::If(condition) => Self::If { arms: Vec::new(), condition: Some(condition) },
            HeadLine::Case(value) => Self::Case(Box::new(Case::new(value)), CasePart::Comments),
            HeadLine::While(condition) => Self::While(condition),
            HeadLine::For(head) => Self::For(head),
            HeadLine::In(directory) => Self::In(directory),
            HeadLine::Function { name, name_span } => Self::Function { name, name_span },
            HeadLine::Broken(keyword) => Self::Broken(keyword),
        }
    }
}
