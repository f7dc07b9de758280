//! Steps of a commit.

use std::ffi::CString;

use serde::{Deserialize, Serialize};

use crate::entry::FileTime;
use crate::seen::Seen;

/// Path below a directory, as bytes.
pub(crate) type RelativePath = Vec<u8>;

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

/// Exchange of an entry of the covered directory and an entry of the layers. One of them may be none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Swap {
    /// Place below the covered directory.
    pub(crate) outer: RelativePath,
    /// Place below the layers.
    pub(crate) inner: RelativePath,
    /// Entry at the outer place before the step, and at the inner place afterwards.
    pub(crate) old: Option<Seen>,
    /// Entry at the inner place before the step, and at the outer place afterwards.
    pub(crate) new: Option<Seen>,
}

/// Rename of an entry within the layers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Move {
    pub(crate) from: RelativePath,
    pub(crate) to: RelativePath,
    pub(crate) inode: u64,
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
    Swap(Swap),
    Move(Move),
    Adjust(Adjust),
}

impl Step {
    /// Returns the step that undoes this one.
    pub(crate) fn reversed(self) -> Self {
        match self {
            Self::Swap(Swap { outer, inner, old, new }) => {
                Self::Swap(Swap { outer, inner, old: new, new: old })
            }
            Self::Move(Move { from, to, inode }) => Self::Move(Move { from: to, to: from, inode }),
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
            Self::Swap(swap) => &swap.outer,
            Self::Move(_) => b"",
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
