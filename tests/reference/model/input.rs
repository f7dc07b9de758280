//! Input that is read line by line.

use std::cell::Cell;
use std::rc::Rc;

use super::{Done, Model, Value, Written, failed};
use crate::reference::tree::{Input, Name};

/// A position in text that may still grow. All readers that received the input from the same
/// command share the position.
#[derive(Clone, Default)]
pub(super) struct Reader {
    text: Written,
    at: Rc<Cell<usize>>,
}

impl Reader {
    pub(super) fn of(text: Written) -> Self {
        Self { text, at: Rc::default() }
    }

    /// Returns the position, in bytes from the beginning.
    pub(super) fn position(&self) -> usize {
        self.at.get()
    }

    /// Sets the position.
    pub(super) fn go_to(&self, position: usize) {
        self.at.set(position);
    }

    /// Returns the next line without its end. The last line may have no end.
    fn line(&self) -> Option<String> {
        let text = self.text.borrow();
        let rest = &text[self.at.get()..];
        let line = rest.split_inclusive('\n').next()?;
        self.at.set(self.at.get() + line.len());
        Some(line.strip_suffix('\n').unwrap_or(line).to_owned())
    }
}

impl Reader {
    /// Returns the next word of a loop: a line that is not empty, or what a text ends.
    pub(super) fn word(&self, by: Option<&str>) -> Option<String> {
        let Some(by) = by else {
            return std::iter::from_fn(|| self.line()).find(|line| !line.is_empty());
        };
        let text = self.text.borrow();
        let rest = &text[self.at.get()..];
        let (word, length) = match rest.split_once(by) {
            Some((word, _)) => (word, word.len() + by.len()),
            None => (rest, rest.len()),
        };
        self.at.set(self.at.get() + length);
        (length > 0).then(|| word.to_owned())
    }
}

impl Model<'_> {
    pub(super) fn open(&mut self, input: &Input) -> Done<Reader> {
        Ok(match input {
            Input::Inherited => self.input.clone(),
            Input::Variable(name) => match self.variables.get(name) {
                Some(Value::Written(written, _)) => {
                    self.look_at(written);
                    Reader::of(Rc::clone(written))
                }
                _ => Reader::of(Rc::new(self.content(name)?.into())),
            },
            Input::Line(word) => Reader::of(Rc::new((self.joined(word)? + "\n").into())),
        })
    }

    /// Reads a line as a whole or into words; the last name takes the rest.
    pub(super) fn read(&mut self, names: &[Name], input: &Input) -> Done {
        let line = self.open(input)?.line().ok_or(failed("failure", 1))?;
        let [names @ .., last] = names else { return Ok(()) };
        if names.is_empty() {
            self.variables.insert(last, Value::Text(line));
            return Ok(());
        }
        let mut rest = line.trim();
        for name in names {
            let (word, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            self.variables.insert(name, Value::Text(word.to_owned()));
            rest = after.trim_start();
        }
        self.variables.insert(last, Value::Text(rest.to_owned()));
        Ok(())
    }
}
