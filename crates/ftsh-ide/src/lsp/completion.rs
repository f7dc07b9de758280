//! `textDocument/completion`: the candidates of the prompt.

use std::collections::HashMap;
use std::path::Path;

use bstr::BString;
use lsp_types::{
    CompletionItem, CompletionItemKind, CompletionTextEdit, Documentation, MarkupContent,
    MarkupKind, Position, SymbolKind, TextEdit,
};

use super::document::Document;
use super::hover::topic;
use super::names::{NameKind, Names};
use super::outline;
use crate::candidate::CompletionCandidate;
use crate::complete::complete;
use crate::help::OWN;
use crate::known::SessionSnapshot;
use crate::tokens::{ARGS, Role, scan};
use ftsh_machine::builtins;
use ftsh_syntax::Span;
use ftsh_syntax::backoff;
use ftsh_syntax::clauses;
use ftsh_syntax::parse::argument_name;
use ftsh_syntax::vocabulary::{ALONE, DECLARATIONS, FORMS, KEYWORDS, OPERATORS, TIMES};

/// Returns the candidates at a position.
///
/// `variables` are those of the environment. Files are beside the document, or in `directory`.
pub(super) fn completion(
    document: &Document,
    place: Position,
    variables: &HashMap<String, Option<BString>>,
    directory: &Path,
) -> Vec<CompletionItem> {
    let end = document.offset(place);
    let (before, after) = document.text().split_at(end);
    let known = known(document, variables, directory);
    let (start, found) = complete(before, &known);
    // These commands exist at the prompt only.
    let found = found.into_iter().filter(|it| !OWN.contains(&it.display.as_str()));
    found.map(|it| item(document, it, Span::new(start, end), after, &known)).collect()
}

fn item(
    document: &Document,
    candidate: CompletionCandidate,
    span: Span,
    after: &str,
    known: &SessionSnapshot,
) -> CompletionItem {
    let CompletionCandidate { display, replacement, ending } = candidate;
    let bare = replacement.strip_suffix(ending).unwrap_or(&replacement);
    // Editors close brackets themselves, and a blank is unwanted.
    let ending = if ending == " " || after.starts_with(ending) { "" } else { ending };
    let documentation = topic(&display).filter(|_| !display.starts_with('.')).map(|value| {
        Documentation::MarkupContent(MarkupContent { kind: MarkupKind::Markdown, value })
    });
    let is_variable = document.text()[..span.start].ends_with(['$', '{']);
    CompletionItem {
        kind: Some(if is_variable {
            CompletionItemKind::VARIABLE
        } else {
            kind(&display, ending, known)
        }),
        documentation: documentation.filter(|_| !is_variable),
        text_edit: Some(CompletionTextEdit::Edit(TextEdit::new(
            document.range(span),
            format!("{bare}{ending}"),
        ))),
        label: display,
        ..CompletionItem::default()
    }
}

fn kind(word: &str, ending: &str, known: &SessionSnapshot) -> CompletionItemKind {
    let lists: [&[&str]; 5] = [&KEYWORDS, &FORMS, &ALONE, &DECLARATIONS, &TIMES];
    let is_clause = |head| clauses::words(head).any(|known| known == word);
    if known.functions.iter().any(|name| name == word) || ending == "(" {
        CompletionItemKind::FUNCTION
    } else if lists.iter().any(|list| list.contains(&word))
        || is_clause("try")
        || is_clause("channel")
    {
        CompletionItemKind::KEYWORD
    } else if OPERATORS.contains(&word) {
        CompletionItemKind::OPERATOR
    } else if backoff::PolicyKind::named(word).is_some() {
        CompletionItemKind::ENUM_MEMBER
    } else if builtins::named(word).is_some() {
        CompletionItemKind::FUNCTION
    } else if word.ends_with('/') {
        CompletionItemKind::FOLDER
    } else if known.directory.join(word).exists() {
        CompletionItemKind::FILE
    } else {
        CompletionItemKind::TEXT
    }
}

/// Returns the session after a run of the script.
fn known(
    document: &Document,
    variables: &HashMap<String, Option<BString>>,
    directory: &Path,
) -> SessionSnapshot {
    let text = document.text();
    let (mut functions, mut channels) = (Vec::new(), Vec::new());
    for item in outline::items(text) {
        match item.kind {
            SymbolKind::FUNCTION => functions.push(item.name),
            SymbolKind::INTERFACE => channels.push(item.name),
            _ => {}
        }
    }
    if let Ok(script) = document.parsed() {
        for file in script.all_files().into_iter().skip(1) {
            for it in Names::of(file).all.into_iter().filter(|it| it.defines) {
                match it.kind {
                    NameKind::Function => functions.push(it.name),
                    NameKind::Channel => channels.push(it.name),
                    NameKind::Variable => {}
                }
            }
        }
    }
    let mut variables = variables.clone();
    for name in set(document) {
        variables.entry(name).or_insert(None);
    }
    let directory = document.directory().unwrap_or_else(|| directory.to_owned());
    SessionSnapshot::new(functions, channels, variables, directory)
}

/// Returns the variables that a text sets, as far as the text is valid.
fn set(document: &Document) -> Vec<String> {
    if let Ok(script) = document.parsed() {
        let all = Names::of(script).all.into_iter();
        return all
            .filter(|it| it.kind == NameKind::Variable && it.defines)
            .map(|it| it.name)
            .collect();
    }
    let text = document.text();
    let all = scan(text).all;
    let mut names = Vec::new();
    for (at, head) in all.iter().enumerate() {
        // The name of a function comes before its arguments.
        let from = match &text[head.range.clone()] {
            ARGS => at + 1,
            "function" => at + 2,
            _ => continue,
        };
        let declared = all.iter().skip(from).take_while(|it| it.role != Role::Separator);
        names.extend(declared.filter_map(|it| argument_name(&text[it.range.clone()])));
    }
    for (index, token) in all.iter().enumerate() {
        let word = &text[token.range.clone()];
        let before = index.checked_sub(1).map_or("", |index| &text[all[index].range.clone()]);
        let is_target =
            before.ends_with("->") || before.ends_with("->>") || before.ends_with("->&");
        match token.role {
            Role::Assignment(length) => names.push(word[..length].to_owned()),
            Role::Word if is_target || matches!(before, "for" | "forany" | "forall" | "read") => {
                names.push(word.to_owned());
            }
            Role::Word if before == "local" => {
                names.push(word.split('=').next().unwrap_or_default().to_owned());
            }
            _ => {}
        }
    }
    names
}
