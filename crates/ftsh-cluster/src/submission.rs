//! What an engine is to run.

use bstr::{BStr, BString};

/// What is to be run on a node, and where.
#[derive(Debug)]
pub struct Submission<'a> {
    /// What the engine calls it.
    pub name: &'a str,
    /// The script's word for the engine.
    pub options: &'a BStr,
    /// Machines to avoid.
    pub avoid: &'a [String],
    /// The command to run there.
    pub command: &'a [BString],
    /// The host, where the engine leaves the choice to us.
    pub host: Option<&'a str>,
}

impl Submission<'_> {
    /// The words of the script's word.
    pub fn words(&self) -> impl Iterator<Item = BString> {
        self.options
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty())
            .map(BString::from)
    }
}
