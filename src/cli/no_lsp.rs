//! What stands in for the language server in a shell that was built without it.

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::backoff::Policy;
use crate::machine::Outcome;

/// Says so.
pub fn serve(_policy: Policy, _directory: PathBuf) -> Result<Outcome> {
    bail!("this ftsh was built without a language server (its cargo feature `lsp`)")
}
