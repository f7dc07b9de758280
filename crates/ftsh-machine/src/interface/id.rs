//! Names for what the machine keeps apart; only the driver knows what they are in the world.

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);
    )*};
}

ids! {
    /// A task: the script, a `forall` branch or a stage of a pipeline.
    TaskId
    /// A command in progress.
    ProcessId
    /// A question or an opening in progress.
    OperationId
    /// A family of processes that live and die together: a try attempt, a `forall` branch or
    /// the script.
    ScopeId
    /// A table of open descriptors.
    IoId
    /// A variable used as a file.
    BufferId
    /// A pipe between two stages.
    PipeId
    /// A file that is written whole or not at all.
    DraftId
    /// Input that each attempt of an atomic `try` reads anew.
    ReplayId
    /// The directory of an atomic attempt.
    ScratchId
    /// An attempt's way through a channel.
    PassId
}

impl ScopeId {
    /// The script's own scope.
    pub const SCRIPT: Self = Self(0);
}

impl IoId {
    /// The descriptors the shell was started with.
    pub const INHERITED: Self = Self(0);
}
