//! Values, their resources and limits, variables, and texts that are split lazily.

pub(crate) mod few;
pub(crate) mod field;
pub(crate) mod items;
pub(crate) mod number;
pub(crate) mod pieces;
pub mod size;
pub(crate) mod subject;
pub(crate) mod value;
pub(crate) mod value_error;
pub(crate) mod variables;
