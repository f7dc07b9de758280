//! Answers about a script or a user without a run: warnings, learned limits, channels, explanations,
//! and a language server.

mod channels;
mod durations;
mod explain;
mod lsp;

pub(super) use self::channels::show as channels;
pub(super) use self::durations::{forget as forget_durations, show as durations};
pub(super) use self::explain::show as explain;
pub(super) use self::lsp::serve as serve_editor;
use crate::cli::messages;
use crate::cli::plan::RunPlan;
use crate::telemetry::{CURL, Url};
use ftsh_ide::known::SessionSnapshot;
use ftsh_ide::lint::{Programs, Warning, lint};
use ftsh_machine::Outcome;
use ftsh_syntax::slug::Slug;
use ftsh_syntax::{Script, diagnostic};

/// Lookup of programs along `PATH`.
pub(super) struct PathLookup(pub SessionSnapshot);

impl Programs for PathLookup {
    fn has(&self, name: &str) -> bool {
        self.0.is_command(name)
    }

    fn names(&self) -> Vec<String> {
        self.0.programs("")
    }
}

/// Prints the warnings about a script. With `strict`, a warning is a failure.
pub(super) fn check(
    script: Script,
    plan: &RunPlan,
    programs: SessionSnapshot,
    strict: bool,
) -> Outcome {
    let programs = PathLookup(programs);
    // What one machine lacks says nothing about the script.
    let is_portable = |it: &Warning| it.slug != Slug::MissingProgram;
    let mut has_warnings = false;
    for file in script.all_files() {
        let warnings = lint(file, &plan.machine.backoff, &programs);
        messages::report(&diagnostic::render_warnings(&file.source, &warnings));
        has_warnings |= warnings.iter().any(is_portable);
    }
    durations::note(&script, plan);
    if plan.telemetry.ping.as_ref().is_some_and(Url::is_secure) && !programs.has(CURL) {
        let message = format!("`--ping` needs `{CURL}` for https://, and it is not installed");
        messages::print_note(&format!("warning: {message} [{}]", Slug::MissingProgram));
    }
    // The process ends now. Freeing a large tree node by node takes a tenth of the whole time.
    std::mem::forget(script);
    if strict && has_warnings { Outcome::Exited(1) } else { Outcome::Succeeded }
}

/// Formats rows as columns. In a row with fewer cells than the first row, the last cell is a sentence
/// and does not widen its column.
fn columns(rows: &[Vec<String>]) -> String {
    let cells = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let rows = rows.iter().filter(|row| column == 0 || row.len() == cells);
        rows.map(|row| row[column].chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..cells).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}  "));
        text += cells.collect::<String>().trim_end();
        text.push('\n');
    }
    text
}
