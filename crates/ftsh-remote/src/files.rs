//! Progress of the files of a branch, which the owner of the connection sends and receives.

use ftsh_machine::packed::BranchFiles;

/// Progress of the files of a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransferProgress {
    /// The files that the branch takes are listed, and have so many bytes.
    Listed(u64),
    /// The files are moving: bytes have passed, or an entry has moved to its place.
    Moved,
    /// The files that the branch gives have arrived whole.
    Arrived,
    /// The files that the branch gives are in their places.
    Placed,
    /// The files did not arrive whole.
    Cut,
    /// A file here cannot be read or written.
    Failed(String),
}

/// State of the files that a branch gives.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum GiftState {
    /// The files have not arrived yet.
    Coming,
    Arrived,
    /// The owner of the connection moves the files to their places.
    Moving,
    /// The files are in their places, or the branch gives none.
    Placed,
    /// The files did not arrive whole.
    Cut,
    /// The files cannot be stored here.
    Failed(String),
}

impl GiftState {
    /// Returns the state at the start of a branch.
    pub(crate) fn of(files: &BranchFiles) -> Self {
        if files.gives.is_empty() { Self::Placed } else { Self::Coming }
    }

    /// Returns the state after a progress.
    pub(crate) fn after(progress: TransferProgress) -> Self {
        match progress {
            TransferProgress::Arrived => Self::Arrived,
            TransferProgress::Placed => Self::Placed,
            TransferProgress::Failed(why) => Self::Failed(why),
            TransferProgress::Cut | TransferProgress::Listed(_) | TransferProgress::Moved => {
                Self::Cut
            }
        }
    }
}
