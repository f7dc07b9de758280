//! `textDocument/hover`: meaning of a word at a position.

use std::os::unix::ffi::OsStrExt;

use bstr::ByteSlice;
use lsp_types::{Hover, HoverContents, MarkupContent, MarkupKind, Position};

use super::document::Document;
use super::names::{NameKind, Names};
use super::schedule;
use crate::durations::{Durations, summaries};
use crate::help;
use crate::lexemes::TokenPart;
use crate::lint::{Schedule, schedules};
use crate::meaning;
use crate::tokens::{Role, ScriptToken, scan};
use ftsh_machine::{FailureKind, builtins};
use ftsh_syntax::ast::{Command, CommandKind, DeclaredArgument};
use ftsh_syntax::backoff::{Policy, PolicyKind};
use ftsh_syntax::vocabulary::{DECLARATIONS, HEADS, function};
use ftsh_syntax::walk;
use ftsh_syntax::{Script, Span};

/// Returns the explanation at a position. Tries without a policy use `policy`.
pub(super) fn hover(
    document: &Document,
    place: Position,
    policy: &Policy,
    durations: &dyn Durations,
) -> Option<Hover> {
    let text = document.text();
    let offset = document.offset(place);
    let all = scan(text).all;
    let index = all.iter().position(|it| it.range.start <= offset && offset < it.range.end)?;
    let word = HoverToken { document, policy, durations, all: &all, index };
    let (span, value) = word.explained(offset)?;
    Some(Hover {
        contents: HoverContents::Markup(MarkupContent { kind: MarkupKind::Markdown, value }),
        range: Some(document.range(span)),
    })
}

/// Token with its neighbors.
struct HoverToken<'d> {
    document: &'d Document,
    policy: &'d Policy,
    durations: &'d dyn Durations,
    all: &'d [ScriptToken],
    index: usize,
}

impl<'d> HoverToken<'d> {
    fn text(&self, index: usize) -> &'d str {
        self.all.get(index).map_or("", |token| &self.document.text()[token.range.clone()])
    }

    fn explained(&self, offset: usize) -> Option<(Span, String)> {
        let token = &self.all[self.index];
        let word = self.text(self.index);
        let whole = Span::new(token.range.start, token.range.end);
        if let Some(found) = self.variable(token, offset) {
            return Some(found);
        }
        if let Some(found) = self.call(token, offset) {
            return Some(found);
        }
        if let Some(found) = self.argument(|it| it.word.span == whole) {
            return Some((whole, found));
        }
        let value = match token.role {
            Role::Keyword if matches!(word, "try" | "limit") => self.try_(word)?,
            Role::Keyword if word == "forany" => {
                topic(word)? + &self.learned(whole.start).unwrap_or_default()
            }
            Role::Keyword | Role::Operator => topic(word)?,
            Role::Clause if self.before("accept") => topic("accept")?,
            Role::Clause if self.before("backoff") && PolicyKind::named(word).is_some() => {
                topic(word)?
            }
            Role::Clause => {
                let head = self.head()?;
                let known = meaning::clause(head, word, self.text(self.index + 1));
                match known {
                    Some(meaning) => format!("{meaning}\n"),
                    // The word is a unit.
                    None => topic("units")?,
                }
            }
            Role::Command => self
                .function(word)
                .or_else(|| topic(word).filter(|_| builtins::named(word).is_some()))?,
            Role::Word if self.is_kind() => topic(word)?,
            // `output grouped in order` is the only clause of several words; elsewhere `order` may
            // be a word of the list.
            Role::Word if word == "order" && self.before("in") && self.is_grouped() => {
                meaning::clause(self.head()?, word, "")? + "\n"
            }
            Role::Word | Role::Assignment(_) => {
                let start = match token.role {
                    Role::Assignment(name) if offset > whole.start + name => name + 1,
                    Role::Assignment(_) => return None,
                    _ => 0,
                };
                let called = &word[start..];
                let is_call = self.document.text()[whole.end..].starts_with('(');
                let own = self.function(called);
                let value = own.or_else(|| topic(called).filter(|_| function(called).is_some()));
                let is_name = self.index > 0 && self.text(self.index - 1) == "function";
                return value
                    .filter(|_| is_call || is_name)
                    .map(|value| (Span::new(whole.start + start, whole.end), value));
            }
            Role::Symbol if word.contains(['<', '>']) => topic("redirection")?,
            Role::Symbol | Role::Separator | Role::Comment | Role::Document => return None,
        };
        Some((whole, value))
    }

    fn before(&self, word: &str) -> bool {
        self.index > 0 && self.text(self.index - 1) == word
    }

    fn is_grouped(&self) -> bool {
        self.index > 1
            && self.all[self.index - 2].role == Role::Clause
            && self.text(self.index - 2) == "grouped"
    }

    /// Returns true for a kind of failure that is compared with `$error_kind`.
    fn is_kind(&self) -> bool {
        let beside = |index: Option<usize>| index.map_or("", |index| self.text(index));
        let is_it = |word: &str| matches!(word, "$error_kind" | "${error_kind}");
        let compares = |word: &str| matches!(word, ".eq." | ".ne." | "==" | "!=");
        let (left, right) = (self.index.checked_sub(1), Some(self.index + 1));
        let further = (self.index.checked_sub(2), Some(self.index + 2));
        FailureKind::NAMES.contains(&self.text(self.index))
            && (compares(beside(left)) && is_it(beside(further.0))
                || compares(beside(right)) && is_it(beside(further.1)))
    }

    /// Returns the first word of the head or declaration around the token.
    fn head(&self) -> Option<&'d str> {
        let heads = (0..self.index).rev().map(|index| (self.all[index].role, self.text(index)));
        let mut keywords = heads.filter(|(role, _)| *role == Role::Keyword).map(|(_, word)| word);
        keywords.next().filter(|word| HEADS.contains(word) || DECLARATIONS.contains(word))
    }

    /// Describes a `try` or `limit` with its bounds, if they are known.
    fn try_(&self, keyword: &str) -> Option<String> {
        let start = self.all[self.index].range.start;
        let general = topic(keyword)?;
        let found = match self.document.parsed() {
            Ok(script) => {
                let mut all = schedules(script, self.policy).into_iter();
                let durations = self.learned(start).unwrap_or_default();
                all.find(|it| it.span.start == start)
                    .map(|it| (schedule::describe(&it) + &durations, it.head))
            }
            Err(_) => {
                let mut rest = self.all[self.index..].iter();
                let end = rest.find(|it| it.role == Role::Separator).map(|it| it.range.start);
                let head = &self.document.text()[start..end.unwrap_or(self.document.text().len())];
                Schedule::of_head(head, self.policy).map(|it| (schedule::outline(&it), it.head))
            }
        };
        Some(match found {
            Some((description, head)) => {
                format!("```ftsh\n{head}\n```\n\n{description}\n---\n\n{general}")
            }
            None => general,
        })
    }

    /// Describes the learned limit of the head that begins at a position.
    fn learned(&self, start: usize) -> Option<String> {
        let script = self.document.parsed().ok()?;
        let history = self
            .document
            .path()
            .and_then(|path| self.durations.of_file(path.as_os_str().as_bytes().as_bstr()));
        let mut all = summaries(script, history.as_ref()).into_iter();
        let summary = all.find(|it| it.limit.start == start)?;
        Some(format!("- usual: {}\n", summary.sentence()))
    }

    /// Describes a function of the script by its head and the comment above it.
    fn function(&self, name: &str) -> Option<String> {
        let script = self.document.parsed().ok()?;
        script.all_files().into_iter().find_map(|file| Self::function_of(file, name))
    }

    /// Describes a function of a file.
    fn function_of(script: &Script, name: &str) -> Option<String> {
        let commands = &script.body.commands;
        let span = Names::of(script).definitions(NameKind::Function, name).next()?.span;
        let head = script.source.line_text(script.source.line(span.start)).trim();
        let is_it = |kind: &CommandKind| matches!(kind, CommandKind::Function { name: it, .. } if **it == *name);
        let Some(at) = commands.iter().position(|command| is_it(&command.kind)) else {
            return Some(format!("```ftsh\n{head}\n```\n"));
        };
        let mut comment = Vec::new();
        let mut is_apart = commands[at].gap;
        for command in commands[..at].iter().rev() {
            match &command.kind {
                CommandKind::Comment { text, trailing: false } if !is_apart => {
                    comment.push(text.trim());
                    is_apart = command.gap;
                }
                _ => break,
            }
        }
        comment.reverse();
        Some(
            format!("```ftsh\n{head}\n```\n\n{}\n", comment.join("\n")).trim_end().to_owned()
                + "\n",
        )
    }

    /// Describes a variable in a word, if the shell sets the variable or the script's `args` does.
    fn variable(&self, token: &ScriptToken, offset: usize) -> Option<(Span, String)> {
        let mut parts = token.parts.iter().filter(|(_, part)| *part == TokenPart::Variable);
        let (range, _) = parts.find(|(range, _)| range.contains(&offset))?;
        let name = self.document.text()[range.clone()].trim_start_matches(['$', '{', '(']);
        let name = name.trim_end_matches(['}', ')']).split(':').next()?;
        let value = match meaning::variable(name) {
            Some(meaning) => format!("`${name}`: {meaning}.\n"),
            None => self.argument(|it| *it.name == *name)?,
        };
        Some((Span::new(range.start, range.end), value))
    }

    /// Describes an argument that the script declares.
    fn argument(&self, is_it: impl Fn(&DeclaredArgument) -> bool) -> Option<String> {
        let mut found = None;
        let mut add = |command: &Command, of: &str| {
            if let CommandKind::Args(declaration) = &command.kind
                && let Some(argument) = declaration.arguments.iter().find(|it| is_it(it))
            {
                found.get_or_insert_with(|| {
                    format!("`${}`: {}.\n", argument.name, argument.meaning(of))
                });
            }
        };
        walk::each(&self.document.parsed().ok()?.body, &mut |command| {
            if let CommandKind::Function { name, body, .. } = &command.kind {
                body.commands.iter().for_each(|it| add(it, &format!("`{name}`")));
            }
            add(command, "the script");
        });
        found
    }

    /// Describes the function of a call in a word.
    fn call(&self, token: &ScriptToken, offset: usize) -> Option<(Span, String)> {
        let mut parts = token.parts.iter().filter(|(_, part)| *part == TokenPart::Variable);
        let (range, _) = parts.find(|(range, _)| range.contains(&offset))?;
        let text = &self.document.text()[range.clone()];
        let is_other = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        let (before, after) = text.split_at_checked(offset - range.start)?;
        let name = before.len() - before.rsplit(is_other).next()?.len();
        let end = before.len() + after.find(is_other)?;
        let called = &text[name..end];
        if !text[end..].starts_with('(') {
            return None;
        }
        let own = self.function(called);
        let value = own.or_else(|| topic(called).filter(|_| function(called).is_some()))?;
        Some((Span::new(range.start + name, range.start + end), value))
    }
}

/// Returns the help on a topic, in Markdown.
pub(super) fn topic(name: &str) -> Option<String> {
    let name = if name.starts_with('.') { "expressions" } else { name };
    let text = help::main_text(name)?;
    let mut out = String::new();
    let mut in_example = false;
    for line in text.lines() {
        let example = line.strip_prefix("  ");
        if example.is_some() != in_example {
            out += if in_example { "```\n" } else { "```ftsh\n" };
            in_example = !in_example;
        }
        out += example.unwrap_or(line);
        out.push('\n');
    }
    if in_example {
        out += "```\n";
    }
    Some(out)
}
