//! Output of branches, as plain data: kept apart and written as a group, or relayed line by line.

mod buffers;
mod escape;

pub(crate) use self::buffers::{
    BufferedOutput, Flushing, GroupPart, MAX_BUFFERED_BRANCHES, OutputBuffers, OutputGroup,
    OutputRelay,
};
pub(crate) use self::escape::unescape_field;
pub use self::escape::{TORN, escape_field};
