//! Expressions.

use super::numbers::{compute, newer, settled, truth};
use super::{Done, Model, failed};
use crate::reference::tree::Expr;
use crate::reference::values::{CALCULATIONS, COMPARISONS};

impl Model<'_> {
    pub(super) fn expr(&mut self, expr: &Expr) -> Done<String> {
        Ok(match expr {
            Expr::Word(word) => self.joined(word)?,
            Expr::Not(operand) => (!truth(&self.expr(operand)?)?).to_string(),
            Expr::Binary(operator @ (".and." | ".or." | "&&" | "||"), left, right) => {
                let left = truth(&self.expr(left)?)?;
                let decided = left == matches!(*operator, ".or." | "||");
                if decided { left } else { truth(&self.expr(right)?)? }.to_string()
            }
            Expr::Binary(
                operator @ (".eq." | ".ne." | "==" | "!=" | ".contains."),
                left,
                right,
            ) => {
                let (left, right) = (self.expr(left)?, self.expr(right)?);
                match *operator {
                    ".eq." | "==" => left == right,
                    ".ne." | "!=" => left != right,
                    _ => left.contains(&right),
                }
                .to_string()
            }
            Expr::Binary(..) => settled(self.calculated(expr)?),
            Expr::Newer(one, other) => {
                let (one, other) = (self.expr(one)?, self.expr(other)?);
                newer(&one, &other)?.to_string()
            }
            Expr::Of(function, value) => of(function, &self.expr(value)?),
            Expr::Replace(value, this, with) => self.expr(value)?.replace(this, with),
            Expr::Digits(value) => {
                let text = self.expr(value)?;
                let mut runs = text.split(|c: char| !c.is_ascii_digit());
                runs.find(|run| !run.is_empty()).ok_or(failed("expression", 1))?.to_owned()
            }
            Expr::Json(value, filter) => {
                let text = self.expr(value)?;
                self.json(&text, filter)?
            }
            Expr::Succeeds(command) => self.succeeds(command)?.to_string(),
            Expr::Call(function, arguments) => {
                let mut values = Vec::new();
                for argument in arguments {
                    match argument {
                        Expr::Word(word) if self.is_list(word) => values.extend(self.split(word)?),
                        argument => values.push(self.expr(argument)?),
                    }
                }
                self.call(*function, values)?.ok_or(failed("expression", 1))?
            }
        })
    }

    /// Evaluates an operand of a calculation. A calculation in it goes on with decimals.
    fn calculated(&mut self, expr: &Expr) -> Done<String> {
        match expr {
            Expr::Binary(operator, left, right)
                if CALCULATIONS.contains(operator) || COMPARISONS.contains(operator) =>
            {
                let (left, right) = (self.calculated(left)?, self.calculated(right)?);
                compute(operator, &left, &right)
            }
            expr => self.expr(expr),
        }
    }
}

/// Returns the value of a function of the language.
pub(super) fn of(function: &str, text: &str) -> String {
    match function {
        "length" => text.chars().count().to_string(),
        "lower" => text.to_lowercase(),
        "upper" => text.to_uppercase(),
        "trim" => text.trim().to_owned(),
        "dirname" => text.rsplit_once('/').map_or(".", |(path, _)| path).to_owned(),
        "basename" => last_name(text).to_owned(),
        "stem" => parted(text).0.to_owned(),
        _ => parted(text).1.to_owned(),
    }
}

/// Returns the directory of a path that neither begins nor ends with a slash.
fn last_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Splits the last name at its last point, unless the point is at the beginning or the end.
fn parted(path: &str) -> (&str, &str) {
    let name = last_name(path);
    match name.rfind('.') {
        Some(point) if !name[..point].trim_matches('.').is_empty() && point + 1 < name.len() => {
            name.split_at(point)
        }
        _ => (name, ""),
    }
}
