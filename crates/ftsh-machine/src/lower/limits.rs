//! Learned limits of a script, and their keys.

use super::script::{Lower, lower, lower_file, may_learn};
use crate::durations::learned::{LearnedLimit, LimitKey};
use crate::effect::DurationsOf;
use crate::program::Program;
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

/// Returns the learned limits of a script without the files that it uses, in the order of the text.
pub fn learned_limits(script: &Script) -> Vec<LearnedLimit> {
    if !may_learn(script) {
        return Vec::new();
    }
    let Program { mut learned, .. } = lower(script);
    learned.sort_by_key(|limit| limit.start);
    learned
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::durations::learned::LimitKey;

    fn limits(text: &str) -> Vec<LearnedLimit> {
        learned_limits(&ftsh_syntax::parse("script", text).expect("a script"))
    }

    fn only_key(text: &str) -> LimitKey {
        let [limit] = <[_; 1]>::try_from(limits(text)).expect("one limit");
        limit.key
    }

    #[test]
    fn keys_are_stable() {
        let key = only_key("try 5 times each usual or 20 minutes\n  x\nend\n");
        assert_eq!(key.to_string(), KEY);
        assert_eq!(LimitKey::parse(&key.to_string()), Some(key));
        for wrong in ["", "1", "+00000000000000f", "00000000000000F0"] {
            assert_eq!(LimitKey::parse(wrong), None);
        }
    }

    const KEY: &str = "435ce8b0de61f920";

    #[test]
    fn the_bound_blanks_and_the_body_are_no_part_of_a_key() {
        let key = only_key("try 5 times each usual or 20 minutes\n  x\nend\n");
        for other in [
            "# another line\ntry 5 times  each usual or $d\n  y\nend\n",
            "try 5 times \\\n  each usual or 1h\n  x\nend\n",
            "if $a .eq. b\n  try 5 times each usual or $n minutes\n    x\n  end\nend\n",
        ] {
            assert_eq!(only_key(other), key, "{other}");
        }
        for other in [
            "try 6 times each usual or 20 minutes\n  x\nend\n",
            "function f\n  try 5 times each usual or 20 minutes\n    x\n  end\nend\n",
            "forany x in a b hedge after usual or 20 minutes\n  x\nend\n",
        ] {
            assert_ne!(only_key(other), key, "{other}");
        }
    }

    #[test]
    fn equal_heads_are_counted_in_each_function() {
        let two = "try each usual or 1s\n x\nend\ntry each usual or 1s\n y\nend\n";
        let found = limits(&format!("function f\n{two}end\n{two}"));
        let lines: Vec<_> = found.iter().map(|limit| limit.line).collect();
        assert_eq!(lines, [2, 5, 9, 12]);
        let mut keys: Vec<_> = found.iter().map(|limit| limit.key).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 4);
    }

    #[test]
    fn a_limit_is_described() {
        let found = limits("forany x in a b hedge after usual or 5 s at most 2\n  x\nend\n");
        let [limit] = &found[..] else { panic!("{found:?}") };
        assert_eq!(limit.head, "forany x in a b hedge after usual at most 2");
        assert_eq!((limit.line, limit.is_hedge), (1, true));
        assert_eq!(limit.most, Some(Duration::from_secs(5)));
        assert_eq!(limits("echo usual\ntry each 5 s\n  x\nend\n"), []);
    }
}
