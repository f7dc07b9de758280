//! Lint of functions without calls.

use std::borrow::Cow;
use std::collections::HashMap;

use super::{Warning, walk};
use ftsh_syntax::Script;
use ftsh_syntax::ast::{
    Block, CommandKind, Expr, ExprKind, Name, Pipeline, Simple, Stage, Word, WordPart,
};
use ftsh_syntax::hint::hint;
use ftsh_syntax::parse::literal;
use ftsh_syntax::slug::Slug;
use ftsh_syntax::span::Span;

/// Graph of calls.
#[derive(Default)]
struct CallGraph<'a> {
    /// Functions, with the names called by their bodies.
    functions: HashMap<&'a str, (Span, Vec<Cow<'a, str>>)>,
    /// Names called outside of functions.
    script: Vec<Cow<'a, str>>,
    /// True if calls with computed names, or from other files, are possible.
    open: bool,
    /// True if the script has commands besides definitions and declarations.
    runs: bool,
}

pub(super) fn check(script: &Script) -> Vec<Warning> {
    let mut calls = CallGraph::default();
    calls.block(&script.body, None);
    // Used files may call functions of the script.
    let mut used = CallGraph::default();
    for file in script.all_files().into_iter().skip(1) {
        used.block(&file.body, None);
    }
    calls.open |= used.open;
    // A file of functions only is meant to be sourced by other scripts.
    if calls.open || !calls.runs {
        return Vec::new();
    }
    let mut reached = calls.script;
    reached.extend(used.script);
    reached.extend(used.functions.into_values().flat_map(|(_, called)| called));
    while let Some(name) = reached.pop() {
        if let Some((_, more)) = calls.functions.remove(&*name) {
            reached.extend(more);
        }
    }
    let unused = calls.functions.into_iter().map(|(name, (span, _))| {
        Warning::new(Slug::UnusedFunction, span, format!("the function `{name}` is never called"))
            .hint(hint!("call the function, or remove it"))
    });
    unused.collect()
}

impl<'a> CallGraph<'a> {
    fn block(&mut self, block: &'a Block, inside: Option<&'a Name>) {
        for command in &block.commands {
            if let CommandKind::Function { name, name_span, body } = &command.kind {
                self.functions.insert(name, (*name_span, Vec::new()));
                self.block(body, Some(name));
                continue;
            }
            self.runs |= inside.is_none()
                && !matches!(
                    command.kind,
                    CommandKind::Comment { .. }
                        | CommandKind::Channel(_)
                        | CommandKind::Use(_)
                        | CommandKind::Args(_)
                );
            if let CommandKind::Pipeline(pipeline) = &command.kind {
                self.pipeline(pipeline, inside);
            }
            for expr in walk::expressions(command) {
                self.expr(expr, inside);
            }
            for block in walk::blocks(command) {
                self.block(block, inside);
            }
        }
    }

    fn expr(&mut self, expr: &'a Expr, inside: Option<&'a Name>) {
        match &expr.kind {
            ExprKind::Call { name, .. } => self.called(Cow::Borrowed(name), inside),
            ExprKind::Asked { pipeline, .. } => self.pipeline(pipeline, inside),
            // Lines of `$(…)` are blocks of the command, too.
            ExprKind::Word(_)
            | ExprKind::Collected(_)
            | ExprKind::Group(_)
            | ExprKind::Unary { .. }
            | ExprKind::Binary { .. }
            | ExprKind::Range { .. } => {}
        }
        for operand in walk::operands(expr) {
            self.expr(operand, inside);
        }
    }

    fn pipeline(&mut self, pipeline: &'a Pipeline, inside: Option<&'a Name>) {
        // Structures are blocks of the command.
        for simple in pipeline.stages.iter().filter_map(Stage::simple) {
            self.simple(simple, inside);
        }
    }

    fn simple(&mut self, simple: &'a Simple, inside: Option<&'a Name>) {
        let Some(first) = simple.words.first() else { return };
        match literal::word(first) {
            // A sourced file may call functions of this script.
            Some(name) if name == "source" => self.open = true,
            Some(name) => self.called(name, inside),
            None => self.open |= !is_path(first),
        }
    }

    fn called(&mut self, name: Cow<'a, str>, inside: Option<&'a Name>) {
        match inside.and_then(|function| self.functions.get_mut(&**function)) {
            Some((_, called)) => called.push(name),
            None => self.script.push(name),
        }
    }
}

/// Returns true if a word is certainly a program, because names of functions have no slash.
fn is_path(word: &Word) -> bool {
    word.parts.iter().any(|part| match part {
        WordPart::Bare(text) | WordPart::Single(text) => text.contains('/'),
        _ => false,
    })
}
