//! Kinds of files and jobs that a note registers for removal.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use ftsh_layers::Swept;

/// Kind of a registered file or job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoteKind {
    File,
    /// A directory and its contents.
    Tree,
    /// Layers of a view of directories. A commit that has begun is finished.
    Layers,
    /// Bytes being appended to a file, removed if only part of them was written.
    Addition {
        /// Length of the file before the addition.
        from: u64,
        /// Length of the file after the addition.
        to: u64,
    },
    /// A job of a carrier, whose description is in place of a path.
    Job,
}

impl NoteKind {
    /// Returns the file name of a note.
    pub(crate) fn note(self, number: u64) -> String {
        match self {
            Self::File => format!("file-{number}"),
            Self::Tree => format!("tree-{number}"),
            Self::Layers => format!("layers-{number}"),
            Self::Addition { from, to } => format!("addition-{number}-{from}-{to}"),
            Self::Job => format!("job-{number}"),
        }
    }

    /// Parses the file name of a note.
    pub(crate) fn of(note: &[u8]) -> Option<Self> {
        let mut words = str::from_utf8(note).ok()?.split('-');
        let kind = words.next()?;
        let mut number = || words.next()?.parse().ok();
        let _: u64 = number()?;
        match kind {
            "file" => Some(Self::File),
            "tree" => Some(Self::Tree),
            "layers" => Some(Self::Layers),
            "job" => Some(Self::Job),
            "addition" => Some(Self::Addition { from: number()?, to: number()? }),
            _ => None,
        }
    }

    /// True if the removal is still valid long after the note. Other programs may have appended to
    /// a file since.
    pub(crate) fn lasts(self) -> bool {
        !matches!(self, Self::Addition { .. })
    }

    /// True if the path is missing or has another kind now.
    pub(crate) fn is_gone(self, path: &Path) -> bool {
        match path.symlink_metadata() {
            Ok(found) => found.is_dir() != matches!(self, Self::Tree | Self::Layers),
            Err(error) => matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
        }
    }

    /// Removes the file, if present.
    pub(crate) fn remove(self, path: &Path) -> io::Result<()> {
        self.remove_reporting(path, &mut |_| {})
    }

    /// Removes the file, if present. Reports to people what became of a commit, if that matters.
    pub(super) fn remove_reporting(
        self,
        path: &Path,
        report: &mut dyn FnMut(String),
    ) -> io::Result<()> {
        match self {
            Self::File => match std::fs::remove_file(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            },
            Self::Tree => ftsh_sys::remove_tree(path),
            Self::Layers => {
                let swept = ftsh_layers::sweep(path);
                Swept::report(&swept, path).into_iter().for_each(report);
                if swept? == Swept::InUse { Err(ErrorKind::ResourceBusy.into()) } else { Ok(()) }
            }
            Self::Addition { from, to } => {
                let mut options = File::options();
                let file = options.write(true).custom_flags(libc::O_NOFOLLOW).open(path)?;
                let length = file.metadata()?.len();
                if from < length && length < to { file.set_len(from) } else { Ok(()) }
            }
            // The carrier cancels the job.
            Self::Job => Ok(()),
        }
    }
}
