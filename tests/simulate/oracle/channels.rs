//! Attempts pass channels only when admitted, respect the places, and return each place once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ftsh_machine::channels::{Admission, Claim, Rules};
use ftsh_machine::effect::{OperationId, PassId};
use ftsh_machine::event::Reply;
use ftsh_machine::{Effect, Event, Time};

use super::{Judged, Oracle, Verdict};

#[derive(Default)]
pub(super) struct Channels {
    asked: BTreeMap<OperationId, Asked>,
    /// Attempts that hold a place in each channel.
    inside: BTreeMap<String, BTreeSet<PassId>>,
    passes: BTreeMap<PassId, String>,
    /// Last reply to each admitted request.
    admitted: BTreeMap<OperationId, PassId>,
    judged: Judged,
}

struct Asked {
    pass: PassId,
    channel: String,
    rules: Arc<Rules>,
    claim: Claim,
}

impl Channels {
    fn answered(&mut self, asked: Asked, admission: &Admission) -> Verdict {
        let Asked { pass, channel, rules, claim } = asked;
        match admission {
            Admission::Admitted => {
                self.judged.count("channel: admitted");
                let inside = self.inside.entry(channel.clone()).or_default();
                inside.insert(pass);
                let count = inside.len() as u64;
                self.passes.insert(pass, channel.clone());
                match rules.places {
                    Some(places) if count > places => {
                        Err(format!("{count} in the {places} places of {channel}"))
                    }
                    _ => Ok(()),
                }
            }
            Admission::NoBudget => {
                self.judged.count("channel: no budget");
                let is_right = claim == Claim::Retry && rules.budget.is_some();
                if is_right { Ok(()) } else { Err(format!("{claim:?} needs no budget")) }
            }
            Admission::Broken(_) => {
                self.judged.count("channel: broken");
                let has_breaker = rules.breaker.is_some();
                if has_breaker { Ok(()) } else { Err(format!("{channel} has no breaker")) }
            }
        }
    }
}

impl Oracle for Channels {
    fn name(&self) -> &'static str {
        "channels"
    }

    fn effect(&mut self, _: Time, effect: &Effect) -> Verdict {
        match effect {
            Effect::Enter(entry) => {
                let channel = entry.channel.to_string();
                let (rules, claim) = (Arc::clone(&entry.rules), entry.claim);
                if self.passes.contains_key(&entry.pass) {
                    return Err(format!("{:?} is to go through twice", entry.pass));
                }
                let asked = Asked { pass: entry.pass, channel, rules, claim };
                self.asked.insert(entry.operation, asked);
            }
            Effect::Leave(pass, _) => {
                let Some(channel) = self.passes.remove(pass) else {
                    return Err(format!("{pass:?} leaves, but isn't there"));
                };
                self.inside.entry(channel).or_default().remove(pass);
            }
            Effect::Abandon(operation) => {
                if self.asked.remove(operation).is_some() {
                    self.judged.count("channel: abandoned");
                } else if let Some(pass) = self.admitted.remove(operation)
                    && let Some(channel) = self.passes.remove(&pass)
                {
                    // The reply was too late, and the world takes the place back.
                    self.inside.entry(channel).or_default().remove(&pass);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn event(&mut self, _: Time, event: &Event) -> Verdict {
        match event {
            // Places end with the shell that held them.
            Event::Resumed { .. } => {
                self.passes.clear();
                self.inside.clear();
                self.admitted.clear();
            }
            Event::Queued { operation } if self.asked.contains_key(operation) => {
                self.judged.count("channel: waits");
            }
            Event::Done { operation, result } => {
                let Some(asked) = self.asked.remove(operation) else { return Ok(()) };
                self.admitted.insert(*operation, asked.pass);
                match result {
                    Ok(Reply::Admission(admission)) => return self.answered(asked, admission),
                    Ok(reply) => return Err(format!("{reply:?} is no admission")),
                    Err(_) => {}
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self) -> Verdict {
        if self.passes.is_empty() && self.asked.is_empty() {
            return Ok(());
        }
        Err(format!("{:?} have not left, {} wait", self.passes, self.asked.len()))
    }

    fn judged(&self) -> &Judged {
        &self.judged
    }
}
