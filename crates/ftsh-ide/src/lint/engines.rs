//! Lint of carriers that are not installed. A run reports them as errors before its first command.

use super::{Warning, programs::Programs, walk};
use ftsh_syntax::Script;
use ftsh_syntax::ast::{CommandKind, ForKind};
use ftsh_syntax::engine::EngineId;
use ftsh_syntax::hint::hint;
use ftsh_syntax::nearest::nearest;
use ftsh_syntax::slug::Slug;

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

/// Returns true if a branch of the script runs where `--on` says.
pub fn uses_default_engine(script: &Script) -> bool {
    let mut is_used = false;
    for file in script.all_files() {
        walk::each(&file.body, &mut |command| {
            let CommandKind::For(details) = &command.kind else { return };
            is_used |= matches!(&details.kind, ForKind::All(clauses) if clauses.on.is_none());
        });
    }
    is_used
}

/// Returns a warning for each `on NAME` whose program is missing, in a script without its used
/// files.
pub fn missing_carriers(script: &Script, programs: &dyn Programs) -> Vec<Warning> {
    let mut warnings = Vec::new();
    walk::each(&script.body, &mut |command| {
        let CommandKind::For(details) = &command.kind else { return };
        let ForKind::All(clauses) = &details.kind else { return };
        let Some(engine) = clauses.on.as_ref().map(|on| on.engine) else { return };
        if let Some((message, meant)) = missing_carrier(engine, programs) {
            let hint = if meant.ends_with('?') {
                hint!("{meant}")
            } else {
                let name = engine.name();
                hint!("{meant}; words of the list have quotes: `\"on\" {name}`")
            };
            warnings.push(Warning::new(Slug::UnknownEngine, command.span, message).hint(hint));
        }
    });
    warnings
}
