//! `args "summary" arguments…`, the first statement of a script.

use super::builder::Builder;
use super::{Pair, Pairs, Result, Rule, literal};
use crate::ast::{
    ArgumentKind, ArgumentsDeclaration, Command, CommandKind, DeclaredArgument, Word, WordPart,
};
use crate::error::SyntaxError;
use crate::hint::hint;
use crate::slug::Slug;
use crate::span::Span;
use crate::vocabulary::is_name;

/// Text after the name of the operand that takes the rest.
const REST: &str = "...";

impl Builder<'_> {
    /// Returns true if a line that begins with the word `args` declares the script's arguments.
    ///
    /// Other words after `args` are those of a program.
    pub(super) fn declares_arguments(&self, pair: &Pair) -> bool {
        self.is_first && self.may_declare(pair)
    }

    fn may_declare(&self, pair: &Pair) -> bool {
        let first = pair.clone().into_inner().next().map_or("", |word| word.as_str());
        let name = first.strip_suffix(REST).or(first.split('=').next()).unwrap_or(first);
        let has_form = first.starts_with(['"', '\'', '-']) || is_name(name);
        has_form && !self.functions.contains("args")
    }

    /// Refuses a declaration after the first statement.
    pub(super) fn refuse_late_arguments(&mut self, pair: &Pair) -> Result<()> {
        if !self.may_declare(pair) || self.arguments(pair.clone()).is_err() {
            return Ok(());
        }
        let message = "`args` comes before all other statements";
        let hint = if self.is_in_head {
            hint!("move the line before `use`")
        } else {
            hint!("move the line to the beginning of the script")
        };
        refuse(self.span(pair), message, hint)
    }

    /// Builds an `args`.
    pub(super) fn arguments(&mut self, pair: Pair) -> Result<CommandKind> {
        if self.is_part {
            let message = "`args` declares the arguments of a script, not of a prompt or a sourced \
                           file";
            let error = SyntaxError::new(Slug::ArgumentDeclaration, self.span(&pair), message);
            return Err(Box::new(error.label("`$1` and `\"$@\"` are the arguments here")));
        }
        Ok(CommandKind::Args(self.declaration(pair.into_inner())?.into()))
    }

    /// Builds the command that reads the parameters of a function, if the function has some.
    pub(super) fn parameters(&mut self, words: Pairs) -> Result<Option<Command>> {
        let declaration = self.declaration(words)?;
        let (Some(first), Some(last)) =
            (declaration.arguments.first(), declaration.arguments.last())
        else {
            return Ok(None);
        };
        let span = first.word.span.to(last.word.span);
        Ok(Some(Command::plain(span, CommandKind::Args(declaration.into()))))
    }

    fn declaration(&mut self, words: Pairs) -> Result<ArgumentsDeclaration> {
        let mut declaration = ArgumentsDeclaration { summary: None, arguments: Vec::new() };
        for (index, word) in words.enumerate() {
            debug_assert_eq!(word.as_rule(), Rule::args_word);
            let word = self.word(word)?;
            if index == 0 && !matches!(word.parts[0], WordPart::Bare(_)) {
                let text = text(&word)?;
                declaration.summary = Some((word, text));
                continue;
            }
            let argument = argument(word)?;
            check(&declaration.arguments, &argument)?;
            declaration.arguments.push(argument);
        }
        Ok(declaration)
    }
}

/// Returns the name of the variable that a word of `args` declares, as far as the word is complete.
pub fn argument_name(word: &str) -> Option<String> {
    let head = word.split('=').next().unwrap_or(word);
    let name = match head.strip_prefix('-') {
        None => head.strip_suffix(REST).unwrap_or(head).to_owned(),
        Some(_) => long(head).trim_start_matches('-').replace('-', "_"),
    };
    is_name(&name).then_some(name)
}

/// Returns the first long spelling of an option, or else the first spelling.
fn long(spellings: &str) -> &str {
    let mut all = spellings.split('|');
    all.clone().find(|it| it.starts_with("--")).or_else(|| all.next()).unwrap_or(spellings)
}

/// Returns the error of a word of the declaration.
fn refuse<T>(span: Span, message: impl Into<String>, hint: crate::hint::Hint) -> Result<T> {
    let message = message.into();
    Err(Box::new(SyntaxError::new(Slug::ArgumentDeclaration, span, message).hint(hint)))
}

/// Returns the text of a word without variables.
fn text(word: &Word) -> Result<String> {
    match literal::word(word) {
        Some(text) => Ok(text.into_owned()),
        None => refuse(
            word.span,
            "a declaration of arguments can't have variables",
            hint!("a default is a fixed text; below the declaration, write `dir=${{dir:-$HOME}}`"),
        ),
    }
}

/// Reads one argument.
fn argument(word: Word) -> Result<DeclaredArgument> {
    let span = word.span;
    let whole = text(&word)?;
    let Some(WordPart::Bare(bare)) = word.parts.first() else {
        let message = "only the first word of `args` is in quotes, the summary";
        return refuse(span, message, hint!("like `args \"Fetch URL.\" url --out=FILE`"));
    };
    let (head, value) = match bare.split_once('=') {
        Some((head, _)) => (head, Some(whole[head.len() + 1..].to_owned())),
        None if word.parts.len() > 1 => return misnamed(span, &whole),
        None => (&**bare, None),
    };
    let is_quoted = word.parts.len() > 1;
    if !head.starts_with('-') {
        let (name, kind) = match (head.strip_suffix(REST), value) {
            (Some(name), None) => (name, ArgumentKind::Rest),
            (_, Some(value)) => (head, ArgumentKind::Optional(value)),
            (None, None) => (head, ArgumentKind::Required),
        };
        if !is_name(name) {
            return misnamed(span, name);
        }
        let name_span = Span::new(span.start, span.start + name.len());
        let name = name.into();
        return Ok(DeclaredArgument { word, name, name_span, spellings: Vec::new(), kind });
    }
    let spellings: Vec<String> = head.split('|').map(str::to_owned).collect();
    if let Some(wrong) = spellings.iter().find(|it| !is_option(it)) {
        return misnamed(span, wrong);
    }
    let long = long(head);
    let Some(name) = argument_name(head) else { return misnamed(span, long) };
    let end = span.start + (long.as_ptr() as usize - head.as_ptr() as usize) + long.len();
    let name_span = Span::new(end - name.len(), end);
    let kind = match value {
        None => ArgumentKind::Flag,
        Some(value) if !is_quoted && is_placeholder(&value) => ArgumentKind::Value(value),
        Some(value) => ArgumentKind::ValueOr(value),
    };
    let name = name.into();
    Ok(DeclaredArgument { word, name, name_span, spellings, kind })
}

fn misnamed<T>(span: Span, name: &str) -> Result<T> {
    refuse(
        span,
        format!("`{name}` can't be the name of an argument"),
        hint!(
            "operands are written `url`, `dir=/srv` or `files...`, and options `-v`, \
             `--out=FILE`, `--retries=3` or `-n|--dry-run`"
        ),
    )
}

/// Returns true for `-v` and `--dry-run`.
fn is_option(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    match text.strip_prefix("--") {
        Some(long) => {
            long.starts_with(|c: char| c.is_ascii_alphanumeric()) && long.chars().all(is_part)
        }
        None => {
            let short = text.strip_prefix('-').unwrap_or_default();
            short.len() == 1 && short.chars().all(|c| c.is_ascii_alphanumeric())
        }
    }
}

/// Returns true for the name of a value, as in `--out=FILE`. Other text is a default.
fn is_placeholder(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    text.starts_with(|c: char| c.is_ascii_uppercase()) && text.chars().all(is_part)
}

/// Refuses an argument that cannot follow the arguments before it.
fn check(before: &[DeclaredArgument], argument: &DeclaredArgument) -> Result<()> {
    let span = argument.word.span;
    if let Some(first) = before.iter().find(|it| {
        it.name == argument.name || it.spellings.iter().any(|it| argument.spellings.contains(it))
    }) {
        let message = if first.name == argument.name {
            format!("the argument `{}` is declared twice", argument.name)
        } else {
            "the option is declared twice".to_owned()
        };
        let error = SyntaxError::new(Slug::ArgumentDeclaration, span, message);
        return Err(Box::new(error.related(first.word.span, "first declared here")));
    }
    if !argument.spellings.is_empty() {
        return Ok(());
    }
    let is_rest = |it: &&DeclaredArgument| it.kind == ArgumentKind::Rest;
    if let Some(rest) = before.iter().find(is_rest) {
        let message = format!("`{}...` takes all arguments up to the last", rest.name);
        return refuse(span, message, hint!("declare `{}{REST}` last", rest.name));
    }
    let is_optional = |it: &&DeclaredArgument| matches!(it.kind, ArgumentKind::Optional(_));
    if argument.kind == ArgumentKind::Required
        && let Some(first) = before.iter().find(is_optional)
    {
        let message =
            format!("`{}` is required after `{}`, which is not", argument.name, first.name);
        return refuse(
            span,
            message,
            hint!("declare `{}` first, or give it a default", argument.name),
        );
    }
    Ok(())
}
