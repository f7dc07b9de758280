//! What comes back of a branch: how it ended.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::line;
use super::nonce::Nonce;
use ftsh_machine::packed::{EndedBranch, PackedFailure, Text};
use ftsh_machine::{Failure, failure};
use ftsh_syntax::Source;

/// More isn't told of a failure's branches and output.
const LONGEST: usize = 1 << 22;

/// How a branch ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// How, and after how many attempts.
    pub ended: EndedBranch,
    /// The machine that it ran on.
    pub node: String,
    /// When it began there, since 1970.
    pub began: Duration,
    /// How long it took, until nothing of it was left.
    pub elapsed: Duration,
}

impl Record {
    /// The line that tells it.
    pub fn to_line(&self, nonce: &Nonce) -> String {
        let mut content = postcard::to_allocvec(self).unwrap_or_default();
        if content.len() > LONGEST {
            content = postcard::to_allocvec(&self.clone().shortened()).unwrap_or_default();
        }
        line::write(nonce, line::RECORD, &content)
    }

    /// The failure that it tells of, if it does, in the texts that the branch went with and its own.
    pub fn failure(&self, texts: &[Text]) -> Option<Arc<Failure>> {
        let packed = self.ended.end.failures()?.to_vec();
        let texts = texts.iter().chain(&self.ended.texts);
        let sources: Vec<_> =
            texts.map(|it| Arc::new(Source::new(&it.name, it.text.as_str()))).collect();
        failure(packed, &sources)
    }

    /// Without what can be long.
    fn shortened(mut self) -> Self {
        for failure in self.ended.end.failures_mut().into_iter().flatten() {
            let PackedFailure { branches, output, .. } = failure;
            *output = None;
            if let Some(branches) = branches {
                (branches.succeeded, branches.others) = (None, None);
            }
        }
        for text in &mut self.ended.texts {
            text.text.clear();
        }
        self
    }
}
