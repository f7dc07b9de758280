//! Commands that a script names, whether they run or not.

use std::collections::BTreeSet;

use bstr::BString;
use ftsh_machine::builtins;
use ftsh_models::{CommandModel, last_name};
use ftsh_syntax::Script;
use ftsh_syntax::ast::{
    Block, Command, CommandKind, Expr, ExprKind, Name, Quoted, Simple, Stage, Word, WordPart, calls,
};

/// A command with a literal name in a script.
#[derive(Debug)]
pub struct Named {
    name: String,
    /// Its words, if all are literal.
    words: Option<Vec<BString>>,
}

impl Named {
    /// Returns the name without a directory.
    pub fn short_name(&self) -> &str {
        std::str::from_utf8(last_name(self.name.as_bytes())).unwrap_or(&self.name)
    }

    /// True if a model may apply. Only the name is compared if other words are computed.
    pub fn may_match(&self, model: &CommandModel) -> bool {
        match &self.words {
            Some(words) => model.applies_to(words),
            None => model.may_apply_to_name(self.name.as_bytes()),
        }
    }
}

/// Returns the commands that a script names, in the order of the text, without builtins and
/// functions.
pub fn named(script: &Script) -> Vec<Named> {
    let mut walk = CommandWalk { functions: BTreeSet::new(), found: Vec::new() };
    walk.block(&script.body);
    let CommandWalk { functions, mut found } = walk;
    found.retain(|named| !functions.contains(&*named.name));
    found
}

struct CommandWalk<'s> {
    functions: BTreeSet<&'s str>,
    found: Vec<Named>,
}

impl<'s> CommandWalk<'s> {
    fn block(&mut self, block: &'s Block) {
        block.commands.iter().for_each(|command| self.command(command));
    }

    fn command(&mut self, command: &'s Command) {
        match &command.kind {
            CommandKind::Pipeline(pipeline) => self.stages(&pipeline.stages),
            CommandKind::If { arms, otherwise } => {
                for (condition, body) in arms {
                    self.expr(condition);
                    self.block(body);
                }
                if let Some(body) = otherwise {
                    self.block(body);
                }
            }
            CommandKind::Case(case) => {
                self.expr(&case.value);
                case.blocks().for_each(|block| self.block(block));
            }
            CommandKind::While { condition, body } => {
                self.expr(condition);
                self.block(body);
            }
            CommandKind::In { directory, body } => {
                self.expr(directory);
                self.block(body);
            }
            CommandKind::With { companion, body } => {
                self.block(companion);
                self.block(body);
            }
            CommandKind::For(details) => {
                details.list.iter().for_each(|it| self.expr(it));
                self.block(&details.body);
            }
            CommandKind::Try(details) => {
                details.condition.iter().for_each(|it| self.expr(it));
                self.block(&details.body);
                let after = details.catch.iter().chain(&details.finally);
                after.for_each(|(_, block)| self.block(block));
            }
            CommandKind::Function { name, body, .. } => {
                let name: &Name = name;
                self.functions.insert(name);
                self.block(body);
            }
            CommandKind::Assign { value, .. }
            | CommandKind::Return(value)
            | CommandKind::Shift(value) => value.iter().for_each(|it| self.expr(it)),
            CommandKind::List { words, .. } => words.iter().for_each(|it| self.expr(it)),
            CommandKind::Comment { .. }
            | CommandKind::Jump(_)
            | CommandKind::Channel(_)
            | CommandKind::Use(_)
            | CommandKind::Args(_) => {}
        }
    }

    fn stages(&mut self, stages: &'s [Stage]) {
        for stage in stages {
            stage.simple().into_iter().for_each(|simple| self.simple(simple));
            stage.block().into_iter().for_each(|block| self.block(block));
        }
    }

    /// Visits the commands of an expression.
    fn expr(&mut self, expr: &'s Expr) {
        match &expr.kind {
            ExprKind::Word(word) => calls(&word.parts).into_iter().for_each(|it| self.expr(it)),
            ExprKind::Collected(block) => self.block(block),
            ExprKind::Asked { pipeline, .. } => self.stages(&pipeline.stages),
            ExprKind::Group(inner) | ExprKind::Unary { operand: inner, .. } => self.expr(inner),
            ExprKind::Call { args, .. } => args.iter().for_each(|it| self.expr(it)),
            ExprKind::Binary { left, right, .. } => {
                self.expr(left);
                self.expr(right);
            }
            ExprKind::Range { from, to, step } => {
                [from, to].into_iter().chain(step).for_each(|it| self.expr(it));
            }
        }
    }

    fn simple(&mut self, simple: &'s Simple) {
        for word in simple.all_words() {
            for call in calls(&word.parts) {
                self.expr(call);
            }
        }
        let mut words = &simple.words[..];
        if words.first().and_then(literal).is_some_and(|name| name == "exec") {
            words = &words[1..];
        }
        let Some(name) = words.first().and_then(literal) else { return };
        if !name.is_empty() && builtins::named(&name).is_none() {
            let words = words.iter().map(|word| literal(word).map(BString::from)).collect();
            self.found.push(Named { name, words });
        }
    }
}

/// Returns the text of a literal word.
fn literal(word: &Word) -> Option<String> {
    let mut text = String::new();
    for part in &word.parts {
        match part {
            WordPart::Bare(bare) if bare.contains(['*', '?', '[']) => return None,
            WordPart::Bare(plain) | WordPart::Single(plain) => text.push_str(plain),
            WordPart::Escaped(escaped) => text.push(*escaped),
            WordPart::Double(pieces) => {
                for piece in pieces {
                    let Quoted::Text(piece) = piece else { return None };
                    text.push_str(piece);
                }
            }
            WordPart::Variable(_) | WordPart::Call(_) => return None,
        }
    }
    Some(text)
}
