//! Words and variables: their expansion and splitting.

use std::rc::Rc;

use super::expressions::of;
use super::{Done, Failure, Model, Value, failed};
use crate::reference::tree::{Piece, Word};

impl Model<'_> {
    pub(super) fn words(&self, words: &[Word]) -> Done<Vec<String>> {
        let split: Vec<Vec<String>> =
            words.iter().map(|word| self.split(word)).collect::<Done<_>>()?;
        Ok(split.concat())
    }

    /// Splits a word. Quoted text is marked, so it neither splits nor vanishes.
    pub(super) fn split(&self, word: &Word) -> Done<Vec<String>> {
        const BORDER: char = '\u{1}';
        const QUOTED: char = '\u{2}';
        match &word[..] {
            [Piece::Elements(name)] => return self.elements(name),
            [Piece::Slice(name, from, to)] => return self.slice(name, *from, *to),
            [Piece::Variable(name)] if self.list(name).is_some() => {
                return self.list(name).ok_or(failed("expression", 1));
            }
            _ => {}
        }
        let mut text = String::new();
        for piece in word {
            match piece {
                Piece::Text(literal) => {
                    text.push(QUOTED);
                    text.push_str(literal);
                }
                Piece::Quoted(pieces) => {
                    text.push(QUOTED);
                    text.push_str(&self.joined(pieces)?);
                }
                Piece::Of(function, argument) => {
                    text.push(QUOTED);
                    text.push_str(&of(function, &self.joined(argument)?));
                }
                Piece::Elements(_) | Piece::Slice(..) => unreachable!("a word of its own"),
                Piece::Element(name, at) => {
                    text.push(QUOTED);
                    text.push_str(&self.element(name, *at)?);
                }
                // A list makes words of its own.
                Piece::Variable(name) if self.list(name).is_some() => {
                    return Err(failed("expression", 1));
                }
                Piece::Variable(name) => {
                    let value = self.named(name)?;
                    text.push_str(&value.replace([' ', '\n', '\t'], &BORDER.to_string()));
                }
                Piece::Arguments => {
                    let quoted =
                        self.arguments.iter().map(|argument| format!("{QUOTED}{argument}"));
                    text.push_str(&quoted.collect::<Vec<_>>().join(&BORDER.to_string()));
                }
            }
        }
        let words = text.split(BORDER).filter(|word| !word.is_empty());
        Ok(words.map(|word| word.replace(QUOTED, "")).collect())
    }

    pub(super) fn joined(&self, pieces: &[Piece]) -> Done<String> {
        let text = pieces.iter().map(|piece| match piece {
            Piece::Text(text) => Ok((*text).to_owned()),
            Piece::Variable(name) => self.named(name),
            Piece::Quoted(pieces) => self.joined(pieces),
            Piece::Arguments => Ok(self.arguments.join(" ")),
            Piece::Elements(name) => Ok(self.elements(name)?.join("\n")),
            Piece::Slice(name, from, to) => Ok(self.slice(name, *from, *to)?.join("\n")),
            Piece::Element(name, at) => self.element(name, *at),
            Piece::Of(function, argument) => Ok(of(function, &self.joined(argument)?)),
        });
        text.collect()
    }

    /// True if a non-empty variable receives the output of commands.
    pub(super) fn is_output(&self, name: &str) -> bool {
        let value = self.variables.get(name);
        let Some(Value::Written(written, _)) = value else { return false };
        Rc::ptr_eq(written, &self.output) && !written.borrow().is_empty()
    }

    /// Returns the content of a variable as a file.
    pub(super) fn content(&self, name: &str) -> Done<String> {
        match self.variables.get(name) {
            Some(Value::Text(text)) => Ok(text.clone()),
            Some(Value::List(elements)) => Ok(elements.join("\n")),
            Some(Value::Written(written, _)) => {
                self.look_at(written);
                Ok(written.borrow().clone())
            }
            None => Err(failed("redirect", 1)),
        }
    }

    /// Returns the value of a variable.
    pub(super) fn named(&self, name: &str) -> Done<String> {
        let text = match (self.variables.get(name), name) {
            (Some(Value::Text(text)), _) => Some(text.clone()),
            (Some(Value::List(_)), _) => self.list(name).map(|list| list.join("\n")),
            (Some(Value::Written(written, _)), _) => {
                self.look_at(written);
                let text = written.borrow();
                Some(text.strip_suffix('\n').unwrap_or(&text).to_owned())
            }
            (None, "#") => Some(self.arguments.len().to_string()),
            (None, "1") => Some(self.arguments.first().cloned().unwrap_or_default()),
            (None, "attempt") => self.attempts.last().map(ToString::to_string),
            (None, "slot") => self.slot.map(|is_first| {
                self.certain.set(self.certain.get() && is_first);
                "1".to_owned()
            }),
            (None, "error_kind") => self.after(|failure| failure.kind.to_owned()),
            (None, "error_code") => self.after(|failure| failure.code.clamp(1, 255).to_string()),
            (None, _) => self.list(name).map(|list| list.join("\n")),
        };
        text.ok_or(failed("expression", 1))
    }

    /// Returns true for a word that is a list and nothing else.
    pub(super) fn is_list(&self, word: &Word) -> bool {
        match word[..] {
            [Piece::Elements(_) | Piece::Slice(..)] => true,
            [Piece::Variable(name)] => self.list(name).is_some(),
            _ => false,
        }
    }

    /// Returns the elements of a variable, if it is a list.
    pub(super) fn list(&self, name: &str) -> Option<Vec<String>> {
        match (self.variables.get(name), name) {
            (Some(Value::List(elements)), _) => Some(elements.clone()),
            (None, "failed") => self.branches().map(|[failed, _]| failed.clone()),
            (None, "succeeded") => self.branches().map(|[_, succeeded]| succeeded.clone()),
            _ => None,
        }
    }

    /// Returns the elements of a list.
    pub(super) fn elements(&self, name: &str) -> Done<Vec<String>> {
        match self.variables.get(name) {
            Some(Value::List(elements)) => Ok(elements.clone()),
            _ => Err(failed("expression", 1)),
        }
    }

    /// Returns the elements whose position, from either end, is neither before nor behind an end.
    fn slice(&self, name: &str, from: Option<i64>, to: Option<i64>) -> Done<Vec<String>> {
        let elements = self.elements(name)?;
        let count = elements.len() as i64;
        let place = |end: i64| if end > 0 { end } else { count + 1 + end };
        let places = (1..).zip(&elements);
        let inside = places.filter(|(at, _)| {
            from.is_none_or(|from| place(from) <= *at) && to.is_none_or(|to| *at <= place(to))
        });
        Ok(inside.map(|(_, element)| element.clone()).collect())
    }

    fn element(&self, name: &str, at: i64) -> Done<String> {
        let elements = self.elements(name)?;
        let index = if at > 0 { at - 1 } else { elements.len() as i64 + at };
        let found = usize::try_from(index).ok().and_then(|index| elements.get(index).cloned());
        found.ok_or(failed("expression", 1))
    }

    /// Returns a property of the handled failure; none after a success.
    fn after(&self, tell: impl Fn(&Failure) -> String) -> Option<String> {
        self.caught.last().map(|caught| caught.as_ref().map(tell).unwrap_or_default())
    }

    fn branches(&self) -> Option<&[Vec<String>; 2]> {
        self.caught.last()?.as_ref()?.words.as_ref()
    }
}
