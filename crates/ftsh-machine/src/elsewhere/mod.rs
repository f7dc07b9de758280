//! Branches on other machines and their engines, as plain data.

mod engines;
mod nodes;
mod remote;

pub(crate) use self::engines::{DispatchTurn, EngineLoad};
pub(crate) use self::nodes::Avoided;
pub use self::remote::Packed;
pub(crate) use self::remote::{
    MAX_REMOTE_BRANCHES, Remote, RemoteFrame, RemoteRoot, RemoteState, RemoteTarget,
};
