//! Lint of carriers that are not installed. A run reports them as errors before its first command.

use super::{Warning, programs::Programs, walk};
use ftsh_syntax::Script;
use ftsh_syntax::ast::{CommandKind, ForKind};
use ftsh_syntax::engine::EngineId;
use ftsh_syntax::hint::hint;
use ftsh_syntax::nearest::nearest;
use ftsh_syntax::slug::Slug;
use ftsh_syntax::span::Span;

/// Prefix of the programs of carriers.
const PREFIX: &str = "ftsh-carry-";

/// Returns the error if an engine is a carrier without a program, and what may be meant.
pub fn missing_carrier(engine: EngineId, programs: &dyn Programs) -> Option<(String, String)> {
    let EngineId::Carrier(name) = engine else { return None };
    if programs.has(&name.program()) {
        return None;
    }
    let installed = programs.names();
    let carriers = installed.iter().filter_map(|name| name.strip_prefix(PREFIX));
    let built_in = EngineId::BUILT_IN.into_iter().map(|engine| engine.row().name);
    let known: Vec<_> = built_in.chain(carriers).collect();
    let meant = match nearest(name.as_str(), known.iter().copied()) {
        Some(meant) => format!("did you mean `on {meant}`?"),
        None => format!("there are `on {}`", known.join("`, `on ")),
    };
    Some((format!("there is no program `{}` along `PATH`", name.program()), meant))
}

/// Returns the place and the engine of each `forall` of a script without its used files; none for
/// the engine of `--on`.
pub fn engines(script: &Script) -> Vec<(Span, Option<EngineId>)> {
    let mut found = Vec::new();
    // A search of the text costs less than a walk, which each start of a script would pay for.
    if !script.source.text().contains("forall") {
        return found;
    }
    walk::each(&script.body, &mut |command| {
        if let CommandKind::For(details) = &command.kind
            && let ForKind::All(clauses) = &details.kind
        {
            found.push((command.span, clauses.on.as_ref().map(|on| on.engine)));
        }
    });
    found
}

/// Returns a warning for each `on NAME` whose program is missing.
pub(super) fn check(script: &Script, programs: &dyn Programs) -> Vec<Warning> {
    let missing = |(span, engine): (Span, Option<EngineId>)| {
        let engine = engine?;
        let (message, meant) = missing_carrier(engine, programs)?;
        let hint = if meant.ends_with('?') {
            hint!("{meant}")
        } else {
            hint!("{meant}; to list these words, quote the first: `\"on\" {}`", engine.name())
        };
        Some(Warning::new(Slug::UnknownEngine, span, message).hint(hint))
    };
    engines(script).into_iter().filter_map(missing).collect()
}
