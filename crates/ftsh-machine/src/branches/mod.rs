//! The tasks of a `forall`, a hedged `forany`, a `with` or a pipeline, as plain data.

mod beside;
mod gate;
mod hedge;
mod join;
mod once;
mod results;
mod tally;

pub(crate) use self::beside::Beside;
pub(crate) use self::gate::{GateState, ResourceGate};
pub(crate) use self::hedge::Hedge;
pub(crate) use self::join::{JoinFrame, JoinKind};
pub(crate) use self::once::Once;
pub(crate) use self::tally::{Failed, Next, Tally};
