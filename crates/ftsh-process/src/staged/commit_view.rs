//! Commit of a view with the staged files of its attempt.

use std::sync::Arc;

use super::commit::commit_files;
use super::staged_file::StagedFile;
use crate::cleanup::Registry;
use crate::paths::FdError;
use crate::views::OpenView;
use crate::workers::Control;
use ftsh_layers::CommitFailure;

use ftsh_machine::event::Refusal;
use ftsh_machine::event::Reply;

/// Commits staged files in the view, then the view, then the other staged files unless `is_inner`.
///
/// Fails only if nothing has taken place.
pub(crate) fn commit_view(
    view: &OpenView,
    files: &[Arc<StagedFile>],
    is_inner: bool,
    registry: &Arc<Registry>,
    control: &Control,
) -> Result<Reply, FdError> {
    let own = view.registry();
    let (inside, outside): (Vec<_>, Vec<_>) =
        files.iter().cloned().partition(|file| file.is_in(&own));
    let end = || FdError::Gone("the end of the run");
    let _busy = registry.begin().ok_or_else(end)?;
    let rest = Control::default();
    match commit_files(&inside, registry, &rest)? {
        Reply::Truth(true) => {}
        // Part of the files are in the view only, which is about to be dropped.
        Reply::Incomplete(refusal) => return Err(FdError::Incomplete(refusal.message)),
        other => return Ok(other),
    }
    // From the first change on, the commit cannot be canceled.
    match view.commit(&mut || control.commit()) {
        Ok(()) => {}
        Err(CommitFailure::Canceled) => return Err(end()),
        Err(error @ CommitFailure::Unfinished { .. }) => {
            return Ok(Reply::Incomplete(Refusal::new(error)));
        }
        Err(
            error @ (CommitFailure::Conflict { .. }
            | CommitFailure::Mixed { .. }
            | CommitFailure::Locked { .. }
            | CommitFailure::Moved { .. }),
        ) => {
            return Ok(Reply::Conflict(error.to_string()));
        }
        Err(error) => return Err(FdError::View(error)),
    }
    if is_inner || outside.is_empty() {
        return Ok(Reply::Truth(true));
    }
    commit_files(&outside, registry, &rest).or_else(|error| {
        let message = format!("{error}; the directories are changed already");
        Ok(Reply::Incomplete(Refusal { message, errno: error.errno() }))
    })
}
