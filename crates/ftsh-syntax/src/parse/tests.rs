//! Parsed scripts, shown by the printer, and the messages for wrong scripts.

mod adversarial;
mod arguments;
mod bashisms;
mod bashisms_in_commands;
mod blocks;
mod cases;
mod channels;
mod commands_in_expressions;
mod errors;
mod errors_in_words;
mod limits;
mod modifiers;
mod pipelines;
mod plain;
mod programs;
mod roundtrip;
mod symbols;
mod tries;
mod unfinished;
mod uses;
mod words;

use super::*;
use crate::diagnostic;
use crate::print;

/// Parses a text that may call functions defined elsewhere.
fn parse_part(text: &str) -> std::result::Result<Script, SyntaxErrors> {
    parse_with("t", text, KnownNames { is_open: true, ..KnownNames::default() })
}

/// Returns the tidied script, after a check that it parses to the same tree.
fn tidied(text: &str) -> String {
    let script = match parse_part(text) {
        Ok(script) => script,
        Err(errors) => panic!("{}", diagnostic::render_all(&errors)),
    };
    let printed = print(&script);
    let again = match parse_part(&printed) {
        Ok(script) => script,
        Err(errors) => panic!("printed:\n{printed}\n{}", diagnostic::render_all(&errors)),
    };
    assert_eq!(shape(&again), shape(&script), "of:\n{text}\nprinted:\n{printed}");
    assert_eq!(print(&again), printed);
    printed
}

/// Formats a tree without its spans.
fn shape(script: &Script) -> String {
    let debug = format!("{:?}", script.body);
    let mut shape = String::with_capacity(debug.len());
    for (at, piece) in debug.split("Span { start: ").enumerate() {
        let rest = if at == 0 { piece } else { piece.split_once('}').map_or("", |it| it.1) };
        shape.push_str(rest);
    }
    shape
}

/// Returns the rendered errors of a script.
fn rendered_errors(text: &str) -> String {
    match parse("t", text) {
        Ok(script) => panic!("no error in:\n{}", print(&script)),
        Err(errors) => diagnostic::render_all(&errors),
    }
}
