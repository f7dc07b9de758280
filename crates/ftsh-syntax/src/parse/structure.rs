//! A structure from its head to its `end`.

use super::line::Head;
use crate::ast::{Block, CommandKind, Expr, For, Name, Try};
use crate::span::Span;

/// What is known of an open structure besides the block that is being read.
pub(super) enum Structure {
    /// In the body; or after `catch` or `finally`, with what comes before done.
    Try {
        head: Box<Try>,
        catch: Option<Span>,
        finally: Option<Span>,
    },
    /// The arms that are done, and the condition of this one; none after `else`.
    If {
        arms: Vec<(Expr, Block)>,
        condition: Option<Expr>,
    },
    While(Expr),
    For(For),
    Function {
        name: Name,
        name_span: Span,
    },
    /// Its head couldn't be understood.
    Broken(&'static str),
}

impl Structure {
    /// What it begins with.
    pub(super) fn keyword(&self) -> &'static str {
        match self {
            Self::Try { .. } => "try",
            Self::If { .. } => "if",
            Self::While(_) => "while",
            Self::For(head) => head.kind.keyword(),
            Self::Function { .. } => "function",
            Self::Broken(keyword) => keyword,
        }
    }

    /// It ends after this block; none if nothing can be made of it.
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
            Self::While(condition) => CommandKind::While { condition, body: block },
            Self::For(head) => CommandKind::For(Box::new(For { body: block, ..head })),
            Self::Function { name, name_span } => {
                CommandKind::Function { name, name_span, body: block }
            }
            Self::Broken(_) => return None,
        })
    }
}

impl From<Head> for Structure {
    fn from(head: Head) -> Self {
        match head {
            Head::Try(head) => Self::Try { head, catch: None, finally: None },
            Head::If(condition) => Self::If { arms: Vec::new(), condition: Some(condition) },
            Head::While(condition) => Self::While(condition),
            Head::For(head) => Self::For(head),
            Head::Function { name, name_span } => Self::Function { name, name_span },
            Head::Broken(keyword) => Self::Broken(keyword),
        }
    }
}
