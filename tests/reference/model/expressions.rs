//! Expressions.

use super::numbers::{compute, truth};
use super::{Done, Model, failed};
use crate::reference::tree::Expr;

impl Model<'_> {
    pub(super) fn expr(&mut self, expr: &Expr) -> Done<String> {
        Ok(match expr {
            Expr::Word(word) => self.joined(word)?,
            Expr::Not(operand) => (!truth(&self.expr(operand)?)?).to_string(),
            Expr::Binary(operator @ (".and." | ".or."), left, right) => {
                let left = truth(&self.expr(left)?)?;
                let decided = left == (*operator == ".or.");
                if decided { left } else { truth(&self.expr(right)?)? }.to_string()
            }
            Expr::Binary(operator, left, right) => {
                let (left, right) = (self.expr(left)?, self.expr(right)?);
                match *operator {
                    ".eq." => (left == right).to_string(),
                    ".ne." => (left != right).to_string(),
                    _ => compute(operator, &left, &right)?,
                }
            }
            Expr::Of(function, value) => {
                let text = self.expr(value)?;
                match *function {
                    "length" => text.chars().count().to_string(),
                    "lower" => text.to_lowercase(),
                    "upper" => text.to_uppercase(),
                    "trim" => text.trim().to_owned(),
                    // Nothing here has a slash, or begins with a point.
                    "stem" => text.rsplit_once('.').map_or(&*text, |(stem, _)| stem).to_owned(),
                    "suffix" => text
                        .rsplit_once('.')
                        .map_or(String::new(), |(_, suffix)| format!(".{suffix}")),
                    _ => text,
                }
            }
            Expr::Call(function, arguments) => {
                let arguments =
                    arguments.iter().map(|argument| self.expr(argument)).collect::<Done<_>>()?;
                self.call(*function, arguments)?.ok_or(failed("expression", 1))?
            }
        })
    }
}
