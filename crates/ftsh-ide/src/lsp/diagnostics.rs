//! `textDocument/publishDiagnostics`: errors, or warnings if there are no errors.

use lsp_types::{
    Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, Location, NumberOrString,
    PublishDiagnosticsParams,
};

use super::document::Document;
use crate::lint::{Programs, lint};
use ftsh_syntax::SyntaxError;
use ftsh_syntax::backoff::Policy;

/// Returns the diagnostics of a text.
///
/// Tries without a policy use `policy`, and the script would find `programs`.
pub(super) fn publish(
    document: &Document,
    policy: &Policy,
    programs: &dyn Programs,
) -> PublishDiagnosticsParams {
    let diagnostics_of = |severity, errors: &[SyntaxError]| {
        errors.iter().map(|error| diagnostic(document, severity, error)).collect()
    };
    let diagnostics = match document.parsed() {
        Err(errors) => diagnostics_of(DiagnosticSeverity::ERROR, &errors.errors),
        Ok(script) => diagnostics_of(DiagnosticSeverity::WARNING, &lint(script, policy, programs)),
    };
    PublishDiagnosticsParams { uri: document.uri.clone(), diagnostics, version: document.version }
}

fn diagnostic(
    document: &Document,
    severity: DiagnosticSeverity,
    error: &SyntaxError,
) -> Diagnostic {
    let mut message = error.message.clone();
    if let Some(label) = &error.label {
        message += &format!("\n{label}");
    }
    if let Some(hint) = &error.hint {
        message += &format!("\nhint: {hint}");
    }
    let related = error.related.as_ref().map(|(span, note)| DiagnosticRelatedInformation {
        location: Location::new(document.uri.clone(), document.range(*span)),
        message: note.clone(),
    });
    Diagnostic {
        range: document.range(error.span),
        severity: Some(severity),
        code: Some(NumberOrString::String(error.slug.name().to_owned())),
        source: Some("ftsh".into()),
        message,
        related_information: related.map(|it| vec![it]),
        ..Diagnostic::default()
    }
}
