//! Output of a failed attempt behind its `end` is never seen if another attempt followed.

use std::collections::BTreeMap;

use ftsh_machine::{Effect, Event, Time};

use super::branches::said;
use super::{Judged, Oracle, Verdict};

#[derive(Default)]
pub(super) struct TakenBack {
    /// Word that the last attempt of each structure printed, and the number of attempts that printed.
    last: BTreeMap<String, (String, usize)>,
    judged: Judged,
}

impl Oracle for TakenBack {
    fn name(&self) -> &'static str {
        "taken back"
    }

    fn effect(&mut self, _: Time, effect: &Effect) -> Verdict {
        let Some((run, words)) = said(effect) else { return Ok(()) };
        match &words[..] {
            [report, name, word] if report == "taken" => {
                let count = self.last.get(name).map_or(0, |(_, count)| *count);
                self.last.insert(name.clone(), (word.clone(), count + 1));
            }
            [report, name, seen @ ..] if report == "seen" => {
                let Some((last, count)) = self.last.remove(name) else { return Ok(()) };
                // Each report has three words. An attempt may end before it prints.
                let all = seen.split(|word| word == "@taken").skip(1);
                let all: Vec<_> = all.filter_map(|report| report.get(1)).collect();
                if count > 1 {
                    self.judged.count("output of failed attempts is taken back");
                }
                if all.len() > 1 || all.first().is_some_and(|word| **word != last) {
                    return Err(format!("line {}: {all:?} after the attempt {last}", run.line));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn event(&mut self, _: Time, event: &Event) -> Verdict {
        // The model keeps what a lost command had written to a buffer. A journal restores the
        // buffer, and the command runs again.
        if matches!(event, Event::Resumed { .. }) {
            self.last.clear();
        }
        Ok(())
    }

    fn judged(&self) -> &Judged {
        &self.judged
    }
}
