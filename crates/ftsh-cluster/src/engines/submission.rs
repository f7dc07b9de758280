//! Request to an engine.

use bstr::{BStr, BString};
use ftsh_syntax::engine::EngineId;

/// Command for a node, and the choice of the node.
#[derive(Debug)]
pub(crate) struct Submission<'a> {
    /// Engine in the script.
    pub engine: EngineId,
    /// Name of the job.
    pub name: &'a str,
    /// Argument of the engine in the script.
    pub options: &'a BStr,
    /// Nodes to avoid.
    pub avoid: &'a [String],
    /// Command to run on the node.
    pub command: &'a [BString],
    /// Host to use, if the argument lists hosts.
    pub host: Option<&'a str>,
}

impl Submission<'_> {
    /// Returns the words of the argument.
    pub(crate) fn words(&self) -> impl Iterator<Item = BString> {
        self.options
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty())
            .map(BString::from)
    }
}
