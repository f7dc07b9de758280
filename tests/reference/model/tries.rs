//! `try`, `catch` and `finally`.

use super::{Done, Failure, Model, Stop};
use crate::reference::tree::Block;

impl Model<'_> {
    pub(super) fn try_(
        &mut self,
        times: u32,
        body: &Block,
        catch: Option<&Block>,
        finally: Option<&Block>,
    ) -> Done {
        let (result, caught) = self.attempts(times, body, catch);
        let Some(finally) = finally else { return result };
        let after = self.handle(caught, finally);
        // Earlier failures count.
        match result {
            Err(Stop::Failed(_) | Stop::Exit(1..)) => result,
            _ => after.and(result),
        }
    }

    /// Runs attempts and `catch`, and returns the result for `finally`.
    fn attempts(
        &mut self,
        times: u32,
        body: &Block,
        catch: Option<&Block>,
    ) -> (Done, Option<Failure>) {
        for attempt in 1..=times {
            self.attempts.push(attempt);
            let result = self.block(body);
            self.attempts.pop();
            let Err(Stop::Failed(failure)) = result else { return (result, None) };
            if attempt < times && !failure.fatal {
                continue;
            }
            let failure = Failure { fatal: false, ..failure };
            let result = match catch {
                Some(catch) => self.handle(Some(failure.clone()), catch),
                None => Err(Stop::Failed(failure.clone())),
            };
            return (result, Some(failure));
        }
        (Ok(()), None)
    }

    /// Runs a group that is an attempt only outside of all others.
    pub(super) fn limit(&mut self, body: &Block, catch: Option<&Block>) -> Done {
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
                self.handle(Some(Failure { fatal: false, ..failure }), catch)
            }
            (result, _) => result,
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
