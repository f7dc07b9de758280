//! What there is to be removed.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::remove;

/// What is to be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    File,
    /// A directory with all in it.
    Tree,
    /// The part of what is added to a file, if that isn't all.
    Addition {
        /// How long the file is without it.
        from: u64,
        /// How long it is with it.
        to: u64,
    },
}

impl Kind {
    /// The name of a note, by its number.
    pub fn note(self, number: u64) -> String {
        match self {
            Self::File => format!("file-{number}"),
            Self::Tree => format!("tree-{number}"),
            Self::Addition { from, to } => format!("addition-{number}-{from}-{to}"),
        }
    }

    /// What a note stands for.
    pub fn of(note: &[u8]) -> Option<Self> {
        let mut words = str::from_utf8(note).ok()?.split('-');
        let kind = words.next()?;
        let mut number = || words.next()?.parse().ok();
        let _: u64 = number()?;
        match kind {
            "file" => Some(Self::File),
            "tree" => Some(Self::Tree),
            "addition" => Some(Self::Addition { from: number()?, to: number()? }),
            _ => None,
        }
    }

    /// Whether it is still to be removed long after it was noted. To a file others may have added since.
    pub fn lasts(self) -> bool {
        !matches!(self, Self::Addition { .. })
    }

    /// True if nothing has the name any more, or something of another kind.
    pub fn is_gone(self, path: &Path) -> bool {
        match path.symlink_metadata() {
            Ok(found) => found.is_dir() != (self == Self::Tree),
            Err(error) => matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
        }
    }

    /// Removes it, if it is there.
    pub fn remove(self, path: &Path) -> io::Result<()> {
        match self {
            Self::File => match std::fs::remove_file(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            },
            Self::Tree => remove::tree(path),
            Self::Addition { from, to } => {
                let mut options = File::options();
                let file = options.write(true).custom_flags(libc::O_NOFOLLOW).open(path)?;
                let length = file.metadata()?.len();
                if from < length && length < to { file.set_len(from) } else { Ok(()) }
            }
        }
    }
}
