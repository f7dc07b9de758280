//! Keys of learned limits.

use super::{Lower, lower_file};
use crate::durations::learned::LimitKey;
use crate::effect::DurationsOf;
use crate::program::code::Program;
use ftsh_syntax::Script;
use ftsh_syntax::ast::{Command, CommandKind, Duration, ForKind};

impl Lower<'_> {
    /// Lowers a file that the script uses.
    pub(super) fn lower_used(file: &Script) -> Program {
        let name = file.source.name().as_bytes().into();
        lower_file(file, Some(DurationsOf::Used(name)))
    }

    /// Returns the key of the learned limit of a `try` or a `forany`, if there is one.
    pub(super) fn learned_limit(&mut self, command: &Command) -> Option<LimitKey> {
        let (bound, length) = match &command.kind {
            CommandKind::Try(details) => (details.usual?, details.clauses.each.as_ref()),
            CommandKind::For(details) => match &details.kind {
                ForKind::Any(clauses) => (details.usual?, clauses.hedge_after.as_ref()),
                ForKind::Each | ForKind::All(_) => return None,
            },
            _ => return None,
        };
        let (start, end) = (command.span.start, command.span.end);
        let text = |from, to| self.source.text().get(from..to).unwrap_or_default();
        let head = (text(start, bound.start), text(bound.end, end));
        let is_hedge = matches!(command.kind, CommandKind::For(_));
        let line = self.source.line(start);
        let most = length.and_then(Duration::literal);
        Some(self.limits.add((start, line), head, is_hedge, most))
    }
}
