//! Lint of values inside code for another shell, as in `sh -c "rm $file"`: a file name such as
//! `x; reboot` is a command there.

use std::collections::HashSet;

use super::{Warning, walk};
use ftsh_syntax::Script;
use ftsh_syntax::ast::{
    CommandKind, Expr, ExprKind, Parameter, Quoted, Simple, VariableUse, Word, WordPart,
};
use ftsh_syntax::hint::hint;
use ftsh_syntax::parse::literal;
use ftsh_syntax::slug::Slug;

/// Programs that take code after `-c`.
const SHELLS: [&str; 6] = ["ash", "bash", "dash", "ksh", "sh", "zsh"];

/// Variables that the shell sets, and whose values are numbers.
const NUMBERS: [&str; 5] = ["attempt", "elapsed", "error_code", "remaining", "slot"];

/// Checks the code that commands of a script pass to other shells.
pub(super) fn check(script: &Script) -> Vec<Warning> {
    let plain = plain_variables(script);
    let mut warnings = Vec::new();
    walk::each(&script.body, &mut |command| {
        for simple in walk::simples(command) {
            let Some((shell, code)) = code(simple) else { continue };
            if has_value(code, &plain) {
                let message = format!("a value inside the code for `{shell}` is code as well");
                let hint = hint!("pass the value after the code, which reads it as `\"$0\"`");
                warnings.push(Warning::new(Slug::ValueInCode, code.span, message).hint(hint));
            }
        }
    });
    warnings
}

/// Returns the name of a shell in a command, also behind programs such as `env`, and its code.
fn code(simple: &Simple) -> Option<(String, &Word)> {
    simple.words.windows(3).find_map(|words| {
        let name = literal::word(&words[0])?;
        let name = name.rsplit('/').next()?;
        let is_option =
            |it: &str| it.starts_with('-') && !it.starts_with("--") && it.ends_with('c');
        let has_code = SHELLS.contains(&name) && is_option(&literal::word(&words[1])?);
        has_code.then(|| (name.to_owned(), &words[2]))
    })
}

/// Returns true if a word contains a value that may be code. A single value is meant as code.
fn has_value(word: &Word, plain: &HashSet<String>) -> bool {
    let is_single = match &word.parts[..] {
        [WordPart::Variable(_)] => true,
        [WordPart::Double(pieces)] => matches!(&pieces[..], [Quoted::Variable(_)]),
        _ => false,
    };
    if is_single {
        return false;
    }
    let is_call = |part: &WordPart| match part {
        WordPart::Call(_) => true,
        WordPart::Double(pieces) => pieces.iter().any(|it| matches!(it, Quoted::Call(_))),
        _ => false,
    };
    let mut found = word.parts.iter().any(is_call);
    walk::variables(&word.parts, &mut |variable, _| found |= !is_plain(variable, plain));
    found
}

fn is_plain(variable: &VariableUse, plain: &HashSet<String>) -> bool {
    match &variable.parameter {
        Parameter::Named(name) => plain.contains(&**name) || NUMBERS.contains(&&**name),
        Parameter::Count | Parameter::Pid => true,
        Parameter::Positional(_) | Parameter::Star | Parameter::At => false,
    }
}

/// Returns the variables to which the script gives only numbers and words of letters, digits and
/// harmless marks.
fn plain_variables(script: &Script) -> HashSet<String> {
    let (mut plain, mut other) = (HashSet::new(), HashSet::new());
    walk::each(&script.body, &mut |command| {
        let mut add = |name: &str, is_plain| {
            let names = if is_plain { &mut plain } else { &mut other };
            names.insert(name.to_owned());
        };
        match &command.kind {
            CommandKind::For(details) => {
                let is_plain = details.input.is_none() && details.list.iter().all(gives_plain);
                add(&details.variable, is_plain);
            }
            CommandKind::Assign { name, value, .. } => {
                add(name, value.as_ref().is_none_or(gives_plain));
            }
            CommandKind::List { name, .. } => add(name, false),
            _ => {}
        }
        other.extend(walk::written(command));
    });
    plain.difference(&other).cloned().collect()
}

/// Returns true if all values of an expression are numbers or plain words.
fn gives_plain(expr: &Expr) -> bool {
    let is_harmless = |it: char| it.is_ascii_alphanumeric() || "-_.,:/@%+=".contains(it);
    match &expr.kind {
        ExprKind::Word(_) => literal::expr(expr).is_some_and(|text| text.chars().all(is_harmless)),
        ExprKind::Group(inner) => gives_plain(inner),
        ExprKind::Binary { .. } | ExprKind::Unary { .. } | ExprKind::Range { .. } => true,
        ExprKind::Call { .. } | ExprKind::Asked { .. } | ExprKind::Collected(_) => false,
    }
}
