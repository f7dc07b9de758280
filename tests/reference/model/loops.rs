//! Sequential loops.

use super::{Done, Model, Stop, TakenBack, Value, failed};
use crate::reference::tree::{Block, Hold, Input, Name};

impl Model<'_> {
    /// Runs an iteration for each item.
    pub(super) fn each(
        &mut self,
        name: Name,
        values: impl IntoIterator<Item = String>,
        body: &Block,
    ) -> Done {
        for value in values {
            self.variables.insert(name, Value::Text(value));
            if !self.goes_on(body)? {
                break;
            }
        }
        Ok(())
    }

    /// Returns true if a loop continues after its body.
    pub(super) fn goes_on(&mut self, body: &Block) -> Done<bool> {
        match self.block(body) {
            Err(Stop::Jump(over)) => Ok(!over),
            result => result.map(|()| true),
        }
    }

    pub(super) fn for_any(
        &mut self,
        name: Name,
        words: Vec<String>,
        hold: Option<Hold>,
        back: Option<TakenBack>,
        body: &Block,
    ) -> Done {
        let mut result = Err(failed("expression", 1));
        let last = words.len().saturating_sub(1);
        for (at, word) in words.into_iter().enumerate() {
            self.variables.insert(name, Value::Text(word));
            let outer = self.begin_output(back, at == 0);
            result = match hold {
                None => self.goes_on(body).map(|_| ()),
                Some(_) => self.attempt(hold, body),
            };
            let goes_on = matches!(&result, Err(Stop::Failed(failure)) if !failure.fatal);
            self.end_output(outer, !goes_on || at == last);
            if !goes_on {
                break;
            }
        }
        result
    }

    /// Runs an iteration for each word of an input, without any input.
    pub(super) fn incoming(
        &mut self,
        name: Name,
        by: Option<&str>,
        from: &Input,
        body: &Block,
    ) -> Done {
        let reader = self.open(from)?;
        let before = std::mem::take(&mut self.input);
        let done = self.each(name, std::iter::from_fn(|| reader.word(by)), body);
        self.input = before;
        done
    }

    /// Runs iterations while there is a line to read.
    pub(super) fn reading(&mut self, names: &[Name], from: Name, body: &Block) -> Done {
        let input = self.open(&Input::Variable(from))?;
        let around = std::mem::replace(&mut self.input, input);
        let result = loop {
            if self.read(names, &Input::Inherited).is_err() {
                break Ok(());
            }
            match self.goes_on(body) {
                Ok(true) => {}
                result => break result.map(|_| ()),
            }
        };
        self.input = around;
        result
    }
}

/// Returns the numbers of a range; none without a step.
pub(super) fn range([from, to]: [i64; 2], step: i64) -> Option<Vec<String>> {
    let is_within = |number: i64| if step > 0 { number <= to } else { number >= to };
    let numbers = (0..).map(|turn| from + turn * step).take_while(|number| is_within(*number));
    (step != 0).then(|| numbers.map(|number| number.to_string()).collect())
}
