//! Ids of the machine's objects. Only the driver maps ids to objects of the system.

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
        )]
        pub struct $name(pub u64);
    )*};
}

ids! {
    /// A task: the script, a `forall` branch or a stage of a pipeline.
    TaskId
    /// A command in progress.
    ProcessId
    /// A query or an opening in progress.
    OperationId
    /// A family of processes that ends together: those of an attempt, a branch or the script.
    ScopeId
    /// A table of open descriptors.
    IoId
    /// A variable used as a file.
    BufferId
    /// A pipe between two stages.
    PipeId
    /// A staged file, written whole or not at all.
    StagedFileId
    /// Input that each attempt of an atomic `try` reads from the same position.
    SpoolId
    /// The directory of an atomic attempt.
    ScratchId
    /// A view of directories in which an attempt keeps its changes apart.
    ViewId
    /// Admission of an attempt to a channel.
    PassId
}

impl ScopeId {
    /// Scope of the script.
    pub const SCRIPT: Self = Self(0);
}

impl IoId {
    /// Descriptors with which the shell was started.
    pub const INHERITED: Self = Self(0);
}
