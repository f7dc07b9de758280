//! Commits: steps, their note, and what finishes them after a kill.

mod execute;
mod merge;
mod note;
mod perform;
mod record;
mod sweep;

pub(crate) use self::note::RECORD;
pub(crate) use self::perform::{changes, commit, commit_nested};
#[cfg(test)]
pub(crate) use self::{
    note::{CommitNote, NOTE},
    sweep::sweep_observed,
};

pub use self::perform::Committed;
pub use self::record::CommitRecord;
pub use self::sweep::{Swept, leftovers, sweep};
