//! An attempt on its way into a channel, as plain data.

use crate::effect::{OperationId, PassId};
use ftsh_syntax::ast::Name;

/// An attempt that is to go through a channel.
#[derive(Debug)]
pub struct Entering {
    /// The request.
    pub operation: OperationId,
    /// What it is called once it is admitted.
    pub pass: PassId,
    /// The channel.
    pub channel: Name,
    /// Whether it has to wait.
    pub is_queued: bool,
}
