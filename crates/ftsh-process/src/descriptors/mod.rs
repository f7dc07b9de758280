//! Descriptors of one command, and their place in the order of requests.

mod table;
mod tree_position;

pub(crate) use self::table::{Fd, FdTable, SIZE};
pub(crate) use self::tree_position::{PositionStep, StructurePart, TreePosition};
