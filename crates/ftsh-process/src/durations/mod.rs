//! Durations of earlier attempts, from which `usual` learns limits, in a folder of the user.

mod recorder;
mod store;

pub(crate) use self::recorder::DurationRecorder;
pub use self::store::{DurationStore, ScriptIdentity};

/// Settings of the durations of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DurationsConfig {
    /// Folder with the records; `None` if nothing is recorded.
    pub store: Option<DurationStore>,
    /// Reason for the absence of a folder, unless the user asked for none.
    pub missing: Option<String>,
    /// Script that the run begins with; `None` for a prompt.
    pub script: Option<ScriptIdentity>,
}
