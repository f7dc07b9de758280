//! Request of a node to its head.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::line;
use super::nonce::Nonce;

/// Request for more time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtensionRequest {
    /// Time of the request on the node's clock. The answer repeats the time, and the head does not
    /// interpret the time.
    pub at: Duration,
}

impl ExtensionRequest {
    /// Encodes the request as a line. The line is short: a single write succeeds completely or not
    /// at all.
    pub fn to_line(self, nonce: &Nonce) -> String {
        line::write(nonce, line::REQUEST, &postcard::to_allocvec(&self).unwrap_or_default())
    }
}
