//! What a node asks its head for.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::line;
use super::nonce::Nonce;

/// A request for more time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// When it was made, on the node's clock. The answer says it again, and means nothing to the head.
    pub at: Duration,
}

impl Request {
    /// The line that tells it. Short enough to be written in one piece, or not yet.
    pub fn to_line(self, nonce: &Nonce) -> String {
        line::write(nonce, line::REQUEST, &postcard::to_allocvec(&self).unwrap_or_default())
    }
}
