//! Lint of `IFS`, which separates nothing here.

use super::{Warning, walk};
use ftsh_syntax::Script;
use ftsh_syntax::ast::CommandKind;
use ftsh_syntax::hint::hint;
use ftsh_syntax::slug::Slug;

pub(super) fn check(script: &Script) -> Vec<Warning> {
    let mut warnings = Vec::new();
    walk::each(&script.body, &mut |command| {
        if matches!(&command.kind, CommandKind::Assign { name, .. } if &**name == "IFS") {
            let warning = Warning::new(
                Slug::FieldSeparator,
                command.span,
                "words are separated by spaces, with any value of `IFS`",
            );
            warnings.push(warning.hint(hint!(
                "`for field in split($line, \":\")` splits a text, `for line in lines($text)` splits lines"
            )));
        }
    });
    warnings
}
