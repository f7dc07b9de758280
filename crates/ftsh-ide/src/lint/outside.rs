//! Lint of values from outside the script that stand without quotes in the words of a command.

use std::collections::{HashMap, HashSet};

use super::{Warning, lists, walk};
use ftsh_machine::builtins;
use ftsh_syntax::Script;
use ftsh_syntax::ast::{
    Block, Command, CommandKind, Expr, ExprKind, For, Parameter, Simple, VariableUse, Word,
    WordPart,
};
use ftsh_syntax::hint::hint;
use ftsh_syntax::slug::Slug;

/// Functions whose words come from outside in the list of a loop.
const SOURCES: [&str; 4] = ["lines", "split", "files", "json"];

pub(super) fn check(script: &Script) -> Vec<Warning> {
    let mut origins = Origins::default();
    origins.block(&script.body);
    let mut uses = HashMap::new();
    origins.uses_in(&script.body, false, &mut uses);
    // A missing argument is the greater danger.
    let is_unchecked = !super::arguments::check(script).is_empty();
    uses.retain(|_, variable| {
        !is_unchecked || !matches!(variable.parameter, Parameter::Positional(_))
    });
    let mut uses: Vec<_> = uses.into_values().collect();
    uses.sort_by_key(|variable| variable.span.start);
    uses.into_iter().map(warning).collect()
}

/// Variables by the origin of their values.
#[derive(Default)]
struct Origins<'a> {
    /// Variables with a value from outside.
    outside: HashSet<&'a str>,
    /// Variables that the script also assigns.
    assigned: HashSet<&'a str>,
    /// Names set by `read` or a redirection, which words hold.
    written: HashSet<String>,
    /// Functions of the script.
    functions: HashSet<&'a str>,
}

impl<'a> Origins<'a> {
    fn block(&mut self, block: &'a Block) {
        for command in &block.commands {
            self.command(command);
            for inner in walk::blocks(command) {
                self.block(inner);
            }
        }
    }

    fn command(&mut self, command: &'a Command) {
        match &command.kind {
            CommandKind::Assign { name, value: Some(value), .. } if lists::is_collected(value) => {
                self.outside.insert(name);
            }
            CommandKind::Assign { name, .. } => _ = self.assigned.insert(name),
            CommandKind::For(details) if is_outside(details) => {
                self.outside.insert(&details.variable);
            }
            CommandKind::For(details) => _ = self.assigned.insert(&details.variable),
            CommandKind::Function { name, .. } => _ = self.functions.insert(name),
            _ => {}
        }
        self.written.extend(walk::written(command));
    }

    /// Adds the first use of each variable in a block. The arguments of a function are the script's.
    fn uses_in(
        &self,
        block: &'a Block,
        in_function: bool,
        uses: &mut HashMap<String, &'a VariableUse>,
    ) {
        for command in &block.commands {
            for simple in walk::simples(command) {
                self.uses(simple, in_function, uses);
            }
            let in_function = in_function || matches!(command.kind, CommandKind::Function { .. });
            for inner in walk::blocks(command) {
                self.uses_in(inner, in_function, uses);
            }
        }
    }

    /// Adds the first use of each variable among the words of a program.
    fn uses(
        &self,
        simple: &'a Simple,
        in_function: bool,
        uses: &mut HashMap<String, &'a VariableUse>,
    ) {
        let name = walk::name(simple);
        let is_own = |name: &str| self.functions.contains(name) || builtins::named(name).is_some();
        if name.as_deref().is_none_or(is_own) {
            return;
        }
        for word in &simple.words[1..] {
            let Some(variable) = unquoted(word) else { continue };
            let name = match &variable.parameter {
                Parameter::Named(name) if self.is_outside(name) => name.to_string(),
                Parameter::Positional(number @ 1..) if !in_function => number.to_string(),
                _ => continue,
            };
            let first = uses.entry(name).or_insert(variable);
            if variable.span.start < first.span.start {
                *first = variable;
            }
        }
    }

    fn is_outside(&self, name: &str) -> bool {
        let comes = self.outside.contains(name) || self.written.contains(name);
        comes && !self.assigned.contains(name)
    }
}

/// Returns true if the words of a loop come from outside: names of files, lines, arguments.
fn is_outside(details: &For) -> bool {
    details.input.is_some()
        || details.list.iter().any(|expr| match &expr.kind {
            ExprKind::Call { name, .. } => SOURCES.contains(&&**name),
            ExprKind::Word(word) => is_pattern(word) || is_all_arguments(expr),
            _ => false,
        })
}

fn is_pattern(word: &Word) -> bool {
    let has = |part: &WordPart| matches!(part, WordPart::Bare(text) if text.contains(['*', '?']));
    word.parts.iter().any(has)
}

fn is_all_arguments(expr: &Expr) -> bool {
    let ExprKind::Word(word) = &expr.kind else { return false };
    let mut is_all = false;
    walk::variables(&word.parts, &mut |variable, _| {
        is_all |= matches!(variable.parameter, Parameter::At | Parameter::Star);
    });
    is_all
}

/// Returns the first variable of a word outside of quotes.
fn unquoted(word: &Word) -> Option<&VariableUse> {
    word.parts.iter().find_map(|part| match part {
        WordPart::Variable(variable) if variable.index.is_none() => Some(&**variable),
        _ => None,
    })
}

fn warning(variable: &VariableUse) -> Warning {
    let name = match &variable.parameter {
        Parameter::Named(name) => name.to_string(),
        Parameter::Positional(number) => number.to_string(),
        _ => String::new(),
    };
    let message = format!("`${name}` comes from outside, and splits at spaces without quotes");
    Warning::new(Slug::UnquotedValue, variable.span, message)
        .hint(hint!("write `\"${name}\"`, or make a list of several words"))
}
