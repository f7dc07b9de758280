//! Sizes in bytes as values of clauses.

use crate::tasks::suspend::Suspend;
use crate::tasks::task::Task;
use crate::values::value::Value;
use ftsh_syntax::size::{self, ByteUnit, Size};
use ftsh_syntax::slug::Slug;

/// Pops a size in bytes.
pub(crate) fn size(task: &mut Task, size: &Size<()>) -> Result<u64, Suspend> {
    bytes(&plain(&task.pop()?)?, size.unit)
}

/// Converts the text of a size in a clause.
pub(crate) fn bytes(text: &str, unit: Option<ByteUnit>) -> Result<u64, Suspend> {
    match size::bytes(text, unit) {
        Some(0) => Err(Suspend::expression(Slug::OutOfRange, "a size must be above zero")),
        Some(bytes) => Ok(bytes),
        None if unit.is_some() => Err(Suspend::expression(
            Slug::NotASize,
            format!("`{text}` is not a size: a number above 0 is needed"),
        )),
        None => Err(Suspend::expression(
            Slug::NotASize,
            format!("`{text}` is not a size, like `4 GB` or `512MiB`"),
        )),
    }
}

/// Returns the text of a value that is no list.
pub(crate) fn plain(value: &Value) -> Result<String, Suspend> {
    match value.not_text() {
        Some(error) => Err(error.into()),
        None => Ok(value.text().unwrap_or_default().to_string()),
    }
}
