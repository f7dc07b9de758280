//! `use FILE`, at the beginning of a script.

use super::builder::Builder;
use super::{Pair, Result, literal};
use crate::ast::{CommandKind, Use};
use crate::error::SyntaxError;
use crate::hint::hint;
use crate::slug::Slug;

/// Suffix of files that no program `use` reads.
const SUFFIX: &str = ".ftsh";

impl Builder<'_> {
    /// Returns true if a line `use FILE` uses a file. Elsewhere `use` is a program.
    pub(super) fn uses_file(&self, pair: &Pair) -> bool {
        let names_script = pair.as_str().trim_end_matches(['"', '\'']).ends_with(SUFFIX);
        (self.is_in_head || names_script) && !self.functions.contains("use")
    }

    /// Builds a `use`.
    pub(super) fn use_line(&mut self, pair: Pair) -> Result<CommandKind> {
        let span = self.span(&pair);
        let refuse = |message: &str, hint| {
            Err(Box::new(SyntaxError::new(Slug::UsedFile, span, message).hint(hint)))
        };
        if self.is_part {
            let message = "`use` is for scripts, not for the prompt or a sourced file";
            let error = SyntaxError::new(Slug::UsedFile, span, message);
            return Err(Box::new(error.label("`source FILE` runs a file here")));
        }
        if !self.is_in_head {
            let message = "`use` comes before all statements except `args`";
            return refuse(message, hint!("move the line to the beginning of the script"));
        }
        let file = self.word(pair.into_inner().next().expect("`use` is followed by a word"))?;
        let Some(path) = literal::word(&file).map(std::borrow::Cow::into_owned) else {
            let message = "the file of `use` is a fixed path, without variables";
            return refuse(message, hint!("`source` takes a path that the script computes"));
        };
        self.is_open |= !self.has_used;
        Ok(CommandKind::Use(Box::new(Use { file, path })))
    }
}
