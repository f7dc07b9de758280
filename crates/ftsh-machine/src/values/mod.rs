//! Values, their resources and limits, variables, and lazily split texts.

mod list;
mod number;
pub mod pattern;
pub mod size;
mod splitter;
mod subject;
mod suspend;
mod value;
mod value_error;

pub(crate) use self::list::List;
pub(crate) use self::number::Number;
pub(crate) use self::splitter::Splitter;
pub(crate) use self::subject::Subject;
pub(crate) use self::suspend::Suspend;
pub(crate) use self::value::{Range, Value};
pub(crate) use self::value_error::ValueError;
