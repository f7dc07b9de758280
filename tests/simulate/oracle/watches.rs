//! An attempt whose processes meet a condition ends, and no other scope is watched.

use std::collections::BTreeMap;

use ftsh_machine::effect::{ScopeId, Watch};
use ftsh_machine::{Effect, Event, Time};

use super::{Judged, Look, Oracle, Verdict};

#[derive(Default)]
pub(super) struct Watches {
    /// Open scopes with their enclosing ones.
    open: BTreeMap<ScopeId, ScopeId>,
    watched: BTreeMap<ScopeId, Watch>,
    /// Scopes whose processes have met a condition, up to the next look.
    breached: Vec<ScopeId>,
    judged: Judged,
}

impl Watches {
    fn forget(&mut self, scope: ScopeId) {
        self.open.remove(&scope);
        self.watched.remove(&scope);
    }

    /// Forgets the watches in a scope that ends.
    fn terminate(&mut self, ending: ScopeId) {
        let open = &self.open;
        let is_outside = |scope: &ScopeId| {
            let mut around = std::iter::successors(Some(*scope), |scope| open.get(scope).copied());
            around.all(|scope| scope != ending)
        };
        self.watched.retain(|scope, _| is_outside(scope));
    }

    fn breach(&mut self, scope: ScopeId) {
        if self.watched.contains_key(&scope) {
            self.breached.push(scope);
        }
    }
}

impl Oracle for Watches {
    fn name(&self) -> &'static str {
        "watches"
    }

    fn effect(&mut self, _: Time, effect: &Effect) -> Verdict {
        match effect {
            Effect::OpenScope { scope, parent, .. } => _ = self.open.insert(*scope, *parent),
            Effect::Watch { scope, watch } => {
                if watch.is_empty() || !self.open.contains_key(scope) {
                    return Err(format!("{scope:?} is watched for {watch:?} before its beginning"));
                }
                self.watched.insert(*scope, *watch);
            }
            Effect::HandOver { scope, .. } => self.forget(*scope),
            Effect::Terminate(scope) => self.terminate(*scope),
            _ => {}
        }
        Ok(())
    }

    fn event(&mut self, _: Time, event: &Event) -> Verdict {
        match event {
            Event::Stalled { scope } => {
                self.judged.count("watch: stalled");
                self.breach(*scope);
            }
            Event::OverMemory { scope, .. } => {
                self.judged.count("watch: memory");
                self.breach(*scope);
            }
            Event::Emptied { scope } => {
                // A resumed run watches its scopes again, also those inside a scope that ends.
                self.terminate(*scope);
                self.forget(*scope);
            }
            _ => {}
        }
        Ok(())
    }

    fn look(&mut self, look: &Look) -> Verdict {
        for scope in std::mem::take(&mut self.breached) {
            let goes_on = self.watched.contains_key(&scope)
                && !look.families.is_ending(scope)
                && !look.spares_a_group();
            if goes_on && look.outcome.is_none() {
                return Err(format!("{scope:?} goes on after its condition is met"));
            }
        }
        Ok(())
    }

    fn judged(&self) -> &Judged {
        &self.judged
    }
}
