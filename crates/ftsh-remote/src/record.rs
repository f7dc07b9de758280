//! Record of the result of a branch.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::line;
use super::nonce::Nonce;
use ftsh_machine::packed::{EndedBranch, PackedFailure, Text};
use ftsh_machine::{Failure, failure};
use ftsh_syntax::Source;

/// Maximum length of a record with the branches and outputs of failures.
const MAX_RECORD: usize = 1 << 22;

/// Result of a branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchRecord {
    /// Result and number of attempts.
    pub ended: EndedBranch,
    /// Node that the branch ran on.
    pub node: String,
    /// Start of the branch on the node, since 1970.
    pub began: Duration,
    /// Time from the start until no process of the branch was left.
    pub elapsed: Duration,
}

impl BranchRecord {
    /// Encodes the record as a line.
    pub fn to_line(&self, nonce: &Nonce) -> String {
        let mut content = postcard::to_allocvec(self).unwrap_or_default();
        if content.len() > MAX_RECORD {
            content = postcard::to_allocvec(&self.clone().shortened()).unwrap_or_default();
        }
        line::write(nonce, line::RECORD, &content)
    }

    /// Returns the failure in the record, if any. The texts are those of the dispatched branch.
    pub fn failure(&self, texts: &[Text]) -> Option<Arc<Failure>> {
        let packed = self.ended.end.failures()?.to_vec();
        let texts = texts.iter().chain(&self.ended.texts);
        let sources: Vec<_> =
            texts.map(|it| Arc::new(Source::new(&it.name, it.text.as_str()))).collect();
        failure(packed, &sources)
    }

    /// Removes the parts that may be long.
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
