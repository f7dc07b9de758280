//! Commit of a view with the staged files of its attempt.

use std::sync::Arc;

use super::commit::{commit_files, sync_files};
use super::staged_file::{StagedFile, State};
use crate::cleanup::Registry;
use crate::paths::FdError;
use crate::views::OpenView;
use crate::workers::Control;
use ftsh_layers::CommitFailure;

use ftsh_machine::event::Refusal;
use ftsh_machine::event::Reply;

/// Commits staged files in the view, then the other staged files unless `is_inner`, then the view. A
/// process that resumes the run finds the record of the view, so nothing may follow the view.
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
    let (inside, mut outside): (Vec<_>, Vec<_>) =
        files.iter().cloned().partition(|file| file.is_in(&own));
    outside.retain(|file| !is_inner && matches!(*file.state(), State::Staged(_)));
    let end = || FdError::Gone("the end of the run");
    let _busy = registry.begin().ok_or_else(end)?;
    match commit_files(&inside, registry, &Control::default())? {
        Reply::Truth(true) => {}
        // Part of the files are in the view only, which is about to be dropped.
        Reply::Incomplete(refusal) => return Err(FdError::Incomplete(refusal.message)),
        other => return Ok(other),
    }
    // Under the lock on the directories, the sync then finds nothing to do.
    sync_files(&outside)?;
    let mut placed = None;
    // From the first change on, the commit cannot be canceled.
    let result = view.commit(&mut || {
        let placed = placed.get_or_insert_with(|| commit_files(&outside, registry, control));
        matches!(placed, Ok(Reply::Truth(true)))
    });
    let is_alone = outside.is_empty() || placed.is_none();
    if let Some(failed @ (Err(_) | Ok(Reply::Incomplete(_)))) = placed {
        return failed;
    }
    match result {
        Ok(()) => Ok(Reply::Truth(true)),
        Err(CommitFailure::Canceled) => Err(end()),
        Err(error) if !is_alone => {
            let message = format!("{error}; files outside of the directories are written already");
            Ok(Reply::Incomplete(Refusal::new(message)))
        }
        Err(error @ CommitFailure::Unfinished { .. }) => Ok(Reply::Incomplete(Refusal::new(error))),
        Err(
            error @ (CommitFailure::Conflict { .. }
            | CommitFailure::Mixed { .. }
            | CommitFailure::Locked { .. }
            | CommitFailure::Moved { .. }),
        ) => Ok(Reply::Conflict(error.to_string())),
        Err(error) => Err(FdError::View(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skipped::skipped;
    use crate::views::BeginError;
    use ftsh_layers::CoverError;
    use ftsh_machine::effect::CommitMode;

    #[test]
    fn a_conflict_after_files_outside_took_their_places_is_final() {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("file");
        std::fs::write(&file, "old").expect("a file");
        let (view, registry) = (OpenView::default(), Arc::new(Registry::without_notes()));
        match view.begin(&[place.path().into()], &registry) {
            Err(BeginError::Cover(
                CoverError::Namespaces { .. } | CoverError::FileSystem { .. },
            )) => return skipped("namespaces and overlays"),
            begun => assert!(begun.is_ok()),
        }
        std::fs::write(view.translate(&file, true), "of the view").expect("a file");
        // The shell reaches the same file outside of the view, and changes the file by its commit.
        let staged = Arc::new(StagedFile::default());
        let path = "file".into();
        let begun = staged.begin(&path, &file, CommitMode::Replace, None, &registry);
        let fd = begun.ok().flatten().expect("a staged file");
        nix::unistd::write(&fd, b"of the commit").expect("a file");
        drop(fd);

        let result = commit_view(&view, &[staged], false, &registry, &Control::default());
        let Ok(Reply::Incomplete(refusal)) = result else { panic!("no incomplete commit") };
        assert!(
            refusal.message.contains("was changed by another process meanwhile; files outside")
        );
        assert_eq!(std::fs::read(&file).expect("a file"), b"of the commit");
    }
}
