//! `try`, `catch` and `finally`.

use std::rc::Rc;

use super::{Done, Failure, Model, Stop, TakenBack, Written};
use crate::reference::tree::{Block, Command, Hold, Try};

impl Model<'_> {
    pub(super) fn try_(&mut self, it: &Try) -> Done {
        let (result, caught, made) = self.attempts(it);
        self.attempts.push(made);
        let result = self.finally(result, caught, it.finally.as_ref());
        self.attempts.pop();
        result
    }

    /// Runs a structure that has a `catch` or `finally`.
    pub(super) fn handled(
        &mut self,
        inside: &Command,
        catch: Option<&Block>,
        finally: Option<&Block>,
    ) -> Done {
        let (result, caught) = self.limited(std::slice::from_ref(inside), catch);
        self.finally(result, caught, finally)
    }

    fn finally(&mut self, result: Done, caught: Option<Failure>, finally: Option<&Block>) -> Done {
        let Some(finally) = finally else { return result };
        let after = self.handle(caught, finally);
        // Earlier failures count.
        match result {
            Err(Stop::Failed(_) | Stop::Exit(1..)) => result,
            _ => after.and(result),
        }
    }

    /// Runs attempts and `catch`, and returns the result for `finally`, with the number of attempts.
    fn attempts(&mut self, it: &Try) -> (Done, Option<Failure>, u32) {
        let back = self.taken_back.take();
        for attempt in 1..=it.times {
            self.attempts.push(attempt);
            let outer = self.begin_output(back, attempt == 1);
            let result = self.attempt(it.hold, &it.body);
            self.attempts.pop();
            let goes_on = match &result {
                Err(Stop::Failed(failure)) => {
                    let is_wanted = |(is_equal, kind)| (failure.kind == kind) == is_equal;
                    attempt < it.times && !failure.fatal && it.condition.is_none_or(is_wanted)
                }
                _ => false,
            };
            self.end_output(outer, !goes_on);
            let Err(Stop::Failed(failure)) = result else { return (result, None, attempt) };
            if goes_on {
                continue;
            }
            let failure = Failure { fatal: false, ..failure };
            let result = match &it.catch {
                Some(catch) => {
                    self.attempts.push(attempt);
                    let result = self.handle(Some(failure.clone()), catch);
                    self.attempts.pop();
                    result
                }
                None => Err(Stop::Failed(failure.clone())),
            };
            return (result, Some(failure), attempt);
        }
        (Ok(()), None, 0)
    }

    /// Begins the output of an attempt. Returns the output around, if the attempt's is held.
    pub(super) fn begin_output(
        &mut self,
        back: Option<TakenBack>,
        is_first: bool,
    ) -> Option<Written> {
        match back? {
            TakenBack::Cut => {
                if !is_first {
                    self.output.borrow_mut().clear();
                }
                None
            }
            TakenBack::Held => {
                self.held.push(Rc::clone(&self.output));
                Some(std::mem::take(&mut self.output))
            }
        }
    }

    /// Ends the output of an attempt, which is written if no other attempt follows.
    pub(super) fn end_output(&mut self, outer: Option<Written>, is_last: bool) {
        let Some(outer) = outer else { return };
        self.held.pop();
        let printed = std::mem::replace(&mut self.output, outer);
        if is_last {
            self.print(&printed.borrow());
        }
    }

    /// Runs an attempt. A failure undoes what the attempt holds.
    pub(super) fn attempt(&mut self, hold: Option<Hold>, body: &Block) -> Done {
        let Some(hold) = hold else { return self.block(body) };
        let (position, file) = (self.input.position(), self.file.clone());
        let is_atomic = hold != Hold::Input;
        let outer = Rc::clone(&self.output);
        if is_atomic {
            self.held.push(Rc::clone(&outer));
            self.output = Rc::default();
        }
        let result = self.block(body);
        let printed = std::mem::replace(&mut self.output, outer);
        if is_atomic {
            self.held.pop();
        }
        if result.is_ok() {
            if is_atomic {
                self.print(&printed.borrow());
            }
            return result;
        }
        self.input.go_to(position);
        if hold == Hold::Files {
            self.file = file;
        }
        result
    }

    /// Runs a group that is an attempt only outside of all others.
    pub(super) fn limit(&mut self, body: &Block, catch: Option<&Block>) -> Done {
        self.limited(body, catch).0
    }

    fn limited(&mut self, body: &[Command], catch: Option<&Block>) -> (Done, Option<Failure>) {
        let is_outermost = self.attempts.is_empty();
        if is_outermost {
            self.attempts.push(1);
        }
        let result = self.block(body);
        if is_outermost {
            self.attempts.pop();
        }
        match (result, catch) {
            (Err(Stop::Failed(failure)), Some(catch)) => {
                let caught = Some(Failure { fatal: false, ..failure });
                (self.handle(caught.clone(), catch), caught)
            }
            (Err(Stop::Failed(failure)), None) => {
                (Err(Stop::Failed(failure.clone())), Some(failure))
            }
            (result, _) => (result, None),
        }
    }

    /// Runs a block that can read how another block ended.
    fn handle(&mut self, caught: Option<Failure>, block: &Block) -> Done {
        self.caught.push(caught);
        let result = self.block(block);
        self.caught.pop();
        result
    }

    /// Returns the failure of `failure` without words.
    pub(super) fn passed_on(&self) -> Option<Stop> {
        Some(Stop::Failed(self.caught.last()?.clone()?))
    }
}
