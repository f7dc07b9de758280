//! Files that are written completely or not at all: staged under a hidden name, then committed.

mod commit;
mod commit_view;
mod rights;
mod staged_file;

pub(crate) use self::commit::commit_files;
pub(crate) use self::commit_view::commit_view;
pub(crate) use self::staged_file::StagedFile;
