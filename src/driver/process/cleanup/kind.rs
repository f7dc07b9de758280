//! What there is to be removed.

use std::io;
use std::path::Path;

use super::remove;

/// What is to be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    File,
    /// A directory with all in it.
    Tree,
}

impl Kind {
    /// How its notes begin.
    const ALL: [(Self, &str); 2] = [(Self::File, "file-"), (Self::Tree, "tree-")];

    /// The name of a note, by its number.
    pub fn note(self, number: u64) -> String {
        let start = Self::ALL.into_iter().find(|(kind, _)| *kind == self).map_or("", |it| it.1);
        format!("{start}{number}")
    }

    /// What a note stands for.
    pub fn of(note: &[u8]) -> Option<Self> {
        let found = Self::ALL.into_iter().find(|(_, start)| note.starts_with(start.as_bytes()));
        found.map(|(kind, _)| kind)
    }

    /// Removes it, if it is there.
    pub fn remove(self, path: &Path) -> io::Result<()> {
        match self {
            Self::File => match std::fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            },
            Self::Tree => remove::tree(path),
        }
    }
}
