//! Pipelines with one structure as a stage. Only the structure sets variables, so the stages can
//! run one after the other.

use std::rc::Rc;

use super::branches::ending;
use super::input::Reader;
use super::{Done, Model, Stop, Written};
use crate::reference::tree::{Block, Input, Name, Word};

impl Model<'_> {
    /// Runs a structure whose output is passed on after its end.
    pub(super) fn piped(&mut self, block: &Block) -> Done {
        self.held.push(Rc::clone(&self.output));
        let printed = Written::default();
        let input = self.input.clone();
        let result = self.stage(input, Rc::clone(&printed), |it| it.block(block));
        self.held.pop();
        self.print(&printed.borrow());
        result
    }

    /// Reads the output of another stage line by line.
    pub(super) fn fed(&mut self, words: &[Word], names: &[Name], body: &Block) -> Done {
        let line = self.words(words)?.join(" ") + "\n";
        let output = Rc::clone(&self.output);
        self.stage(Reader::of(Rc::new(line.into())), output, |it| {
            while it.read(names, &Input::Inherited).is_ok() && it.goes_on(body)? {}
            Ok(())
        })
    }

    /// Runs a stage. Only variables remain, except for its local ones.
    fn stage(
        &mut self,
        input: Reader,
        output: Written,
        run: impl FnOnce(&mut Self) -> Done,
    ) -> Done {
        let arguments = self.arguments.clone();
        let input = std::mem::replace(&mut self.input, input);
        let output = std::mem::replace(&mut self.output, output);
        let locals = self.locals.last().map_or(0, Vec::len);
        self.level += 1;
        let result = run(self);
        self.level -= 1;
        (self.arguments, self.input, self.output) = (arguments, input, output);
        let own = self.locals.last_mut().map(|it| it.split_off(locals)).unwrap_or_default();
        for (name, before) in own.into_iter().rev() {
            match before {
                Some(value) => self.variables.insert(name, value),
                None => self.variables.remove(name),
            };
        }
        self.own_all();
        ending(result).map_err(Stop::Failed)
    }
}
