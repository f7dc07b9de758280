//! Waiting for a channel, as plain data.

use crate::effect::{OperationId, PassId};
use ftsh_syntax::ast::Name;

/// Attempt waiting for a channel.
#[derive(Debug)]
pub(crate) struct Entering {
    /// Id of the request.
    pub operation: OperationId,
    /// Id of the pass, once admitted.
    pub pass: PassId,
    /// Name of the channel.
    pub channel: Name,
    /// True if the attempt has to wait.
    pub is_queued: bool,
}
