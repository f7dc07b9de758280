//! `--explain`: meanings of the slugs in messages, such as `error[subshell]`.

use std::ffi::OsString;
use std::fmt::Write;

use anyhow::Result;

use crate::cli::messages::{print_text, usage};
use ftsh_ide::help;
use ftsh_machine::Outcome;
use ftsh_syntax::nearest::nearest;
use ftsh_syntax::slug::{Severity, Slug};

/// Width of the text, in columns.
const COLUMNS: usize = 80;

/// Prints the explanation of a slug, or the list of all slugs.
///
/// # Errors
///
/// No message has the slug.
pub(crate) fn show(slug: Option<&OsString>) -> Result<Outcome> {
    let Some(given) = slug else { return Ok(print_text(&list())) };
    let given = given.to_string_lossy();
    let name = given.split_once('[').map_or(&*given, |(_, name)| name.trim_end_matches(']'));
    if let Some(slug) = Slug::named(name) {
        return Ok(print_text(&help::explain(slug, COLUMNS)));
    }
    let meant = nearest(name, Slug::ALL.iter().map(|slug| slug.name()));
    let meant = meant.map_or_else(
        || "`ftsh --explain` lists all slugs".to_owned(),
        |meant| format!("did you mean `{meant}`?"),
    );
    Err(usage(Slug::UnknownSlug, format_args!("no message has the slug `{name}`; {meant}")))
}

/// Lists all slugs with their meanings, by severity.
fn list() -> String {
    let width = Slug::ALL.iter().map(|slug| slug.name().len()).max().unwrap_or_default();
    let mut text = String::new();
    for severity in [Severity::Error, Severity::Warning, Severity::Failure] {
        let gap = if text.is_empty() { "" } else { "\n" };
        let _ = writeln!(text, "{gap}{}s", severity.name());
        for slug in Slug::ALL.iter().filter(|slug| slug.severity() == severity) {
            let meaning = slug.explanation().meaning;
            let _ = writeln!(text, "  {:width$}  {meaning}", slug.name());
        }
    }
    text
}
