//! Values, their resources and limits, variables, and lazily split texts.

pub(crate) mod field;
pub(crate) mod incoming;
pub(crate) mod items;
pub(crate) mod list;
pub(crate) mod number;
pub mod pattern;
pub mod size;
pub(crate) mod small_map;
pub(crate) mod splitter;
pub(crate) mod subject;
pub(crate) mod value;
pub(crate) mod value_error;
pub(crate) mod variables;
