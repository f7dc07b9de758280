//! Steps of a commit.

use std::ffi::CString;

use serde::{Deserialize, Serialize};

use crate::entry::FileTime;

/// Path below a directory, as bytes.
pub(crate) type RelativePath = Vec<u8>;

/// Place of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Spot {
    /// Path below the covered directory. The empty path is the directory itself.
    Directory(RelativePath),
    /// Path below the layers.
    Layers(RelativePath),
}

impl Spot {
    pub(crate) fn path(&self) -> &[u8] {
        match self {
            Self::Directory(path) | Self::Layers(path) => path,
        }
    }
}

/// Value before and after a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ValueChange<T> {
    pub(crate) old: T,
    pub(crate) new: T,
}

impl<T> ValueChange<T> {
    fn reversed(self) -> Self {
        Self { old: self.new, new: self.old }
    }
}

/// Owner and group.
pub(crate) type Owner = (u32, u32);

/// Name of an extended attribute, with its values.
pub(crate) type AttributeChange = (Vec<u8>, ValueChange<Option<Vec<u8>>>);

/// Rename of an entry within one file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rename {
    pub(crate) from: Spot,
    pub(crate) to: Spot,
    /// Inode of the entry, at `from` before the step and at `to` afterwards.
    pub(crate) inode: u64,
    /// True to exchange the entry with the entry at `to`.
    pub(crate) exchange: bool,
}

/// Change of what is known about a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Adjust {
    /// Path below the covered directory.
    pub(crate) path: RelativePath,
    pub(crate) inode: u64,
    pub(crate) owner: Option<ValueChange<Owner>>,
    pub(crate) mode: Option<ValueChange<u32>>,
    pub(crate) attributes: Vec<AttributeChange>,
    /// Time of modification.
    pub(crate) time: Option<ValueChange<FileTime>>,
}

impl Adjust {
    pub(crate) fn new(path: &[u8], inode: u64) -> Self {
        let path = path.to_vec();
        Self { path, inode, owner: None, mode: None, attributes: Vec::new(), time: None }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.owner.is_none()
            && self.mode.is_none()
            && self.attributes.is_empty()
            && self.time.is_none()
    }
}

/// Step of a commit, for one of the covered directories.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Step {
    Rename(Rename),
    Adjust(Adjust),
}

impl Step {
    /// Returns the step that undoes this one.
    pub(crate) fn reversed(self) -> Self {
        match self {
            Self::Rename(Rename { from, to, inode, exchange }) => {
                Self::Rename(Rename { from: to, to: from, inode, exchange })
            }
            Self::Adjust(Adjust { path, inode, owner, mode, attributes, time }) => {
                Self::Adjust(Adjust {
                    path,
                    inode,
                    owner: owner.map(ValueChange::reversed),
                    mode: mode.map(ValueChange::reversed),
                    attributes: attributes
                        .into_iter()
                        .map(|(name, values)| (name, values.reversed()))
                        .collect(),
                    time: time.map(ValueChange::reversed),
                })
            }
        }
    }

    /// Returns the path that a message about the step names.
    pub(crate) fn subject(&self) -> &[u8] {
        match self {
            Self::Rename(Rename { from, to, .. }) => match (from, to) {
                (_, Spot::Directory(path)) | (Spot::Directory(path), _) => path,
                _ => b"",
            },
            Self::Adjust(adjust) => &adjust.path,
        }
    }
}

/// Appends a name to a relative path.
pub(crate) fn join(path: &[u8], name: &[u8]) -> RelativePath {
    if path.is_empty() { name.to_vec() } else { [path, b"/", name].concat() }
}

/// Link to a file of the index, at a place below the layers.
pub(crate) struct Prepared {
    pub(crate) name: CString,
    pub(crate) aside: Vec<u8>,
}
