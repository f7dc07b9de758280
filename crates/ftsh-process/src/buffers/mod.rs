//! Contents in files or in memory: variables used as files, held output, and lines of output.

mod buffer;
mod held_output;
mod line_assembler;
mod spilling_log;

pub(crate) use self::buffer::{FileBuffer, file_on_disk, unnamed_file_in};
pub(crate) use self::held_output::{HELD, HeldOutput};
pub(crate) use self::line_assembler::{LineAssembler, first_lines};
pub(crate) use self::spilling_log::Content;
pub use self::spilling_log::SpillingLog;
