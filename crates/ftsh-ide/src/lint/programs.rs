//! Lint of missing programs in a `try`, which would look for them repeatedly.

use std::collections::{HashMap, HashSet};

use super::{Warning, walk};
use ftsh_machine::builtins;
use ftsh_syntax::Script;
use ftsh_syntax::ast::{
    Block, Command, CommandKind, Name, RedirectionTarget, Simple, Try, Word, WordPart,
};
use ftsh_syntax::hint::hint;
use ftsh_syntax::nearest::{nearest, slip};
use ftsh_syntax::parse::literal;
use ftsh_syntax::slug::Slug;
use ftsh_syntax::span::Span;
use ftsh_syntax::vocabulary::synonym;

/// Programs along `PATH`. The lint itself never accesses the system.
pub trait Programs {
    /// Returns true if there is a program of this name.
    fn has(&self, name: &str) -> bool;
    /// Returns all names, for suggestions.
    fn names(&self) -> Vec<String>;
}

/// Programs of an unknown system, where every program is assumed to exist.
pub struct UnknownPrograms;

impl Programs for UnknownPrograms {
    fn has(&self, _name: &str) -> bool {
        true
    }

    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Builtins that may change the search for programs, if `PATH` is an argument.
const SETTERS: [&str; 3] = ["export", "unset", "read"];

pub(super) fn check(script: &Script, programs: &dyn Programs) -> Vec<Warning> {
    let mut functions = HashMap::new();
    let mut is_open = false;
    walk::each(&script.body, &mut |command| {
        if let CommandKind::Function { name, body, .. } = &command.kind {
            functions.insert(name.clone(), body);
        }
        is_open |= changes_path(command);
    });
    let mut elsewhere = HashSet::new();
    for file in script.all_files().into_iter().skip(1) {
        walk::each(&file.body, &mut |command| {
            if let CommandKind::Function { name, .. } = &command.kind {
                elsewhere.insert(name.to_string());
            }
            is_open |= changes_path(command);
        });
    }
    // Files that were not read may define any function.
    is_open |= script.used.len() < script.uses().count();
    if is_open {
        return Vec::new();
    }
    let mut check = ProgramCheck { programs, functions, checked: elsewhere, warnings: Vec::new() };
    check.block(&script.body, None);
    check.warnings
}

struct ProgramCheck<'a> {
    programs: &'a dyn Programs,
    functions: HashMap<Name, &'a Block>,
    /// Functions and programs checked already, and functions of used files.
    checked: HashSet<String>,
    warnings: Vec<Warning>,
}

impl<'a> ProgramCheck<'a> {
    /// Checks a block. `trying` is the `try` that would make another attempt.
    fn block(&mut self, block: &'a Block, trying: Option<Span>) {
        for command in &block.commands {
            if let Some(trying) = trying {
                for simple in walk::simples(command) {
                    self.simple(simple, trying);
                }
            }
            match &command.kind {
                CommandKind::Try(details) => {
                    let inner = trying.or_else(|| is_repeated(details).then_some(command.span));
                    for (at, block) in walk::blocks(command).into_iter().enumerate() {
                        // The body is the first block; the other blocks run once.
                        self.block(block, if at == 0 { inner } else { trying });
                    }
                }
                // The calls of a function may be in other tries; the tries inside of the function
                // always count.
                CommandKind::Function { body, .. } => self.block(body, None),
                _ => walk::blocks(command).into_iter().for_each(|it| self.block(it, trying)),
            }
        }
    }

    fn simple(&mut self, simple: &'a Simple, trying: Span) {
        let mut words = simple.words.iter();
        let Some(mut word) = words.next() else { return };
        let Some(mut name) = literal::word(word) else { return };
        if !self.checked.insert(name.to_string()) && name != "exec" {
            return;
        }
        if let Some(body) = self.functions.get(&*name) {
            return self.block(body, Some(trying));
        }
        if name == "exec" {
            let Some((program, literal)) = words.next().map(|it| (it, literal::word(it))) else {
                return;
            };
            let Some(literal) = literal else { return };
            if !self.checked.insert(format!("exec {literal}")) {
                return;
            }
            (word, name) = (program, literal);
        } else if builtins::named(&*name).is_some() {
            return;
        }
        if !name.is_empty() && !name.contains('/') && !self.programs.has(&name) {
            self.warnings.push(self.missing(word, &name, trying));
        }
    }

    fn missing(&self, word: &Word, name: &str, trying: Span) -> Warning {
        let programs = self.programs.names();
        let functions = self.functions.keys().map(|name| &**name);
        let known = functions.chain(builtins::all().map(|builtin| builtin.name));
        let meant = synonym(name).or_else(|| nearest(name, known));
        let hint = match meant.or_else(|| slip(name, programs.iter().map(String::as_str))) {
            Some(meant) => hint!("did you mean `{meant}`?"),
            None => hint!("ignore this warning if the program is installed during the run"),
        };
        Warning::new(
            Slug::MissingProgram,
            word.span,
            format!("there is no program `{name}` along `PATH`"),
        )
        .related(trying, "each attempt of this `try` would look for the program")
        .hint(hint)
    }
}

/// Returns true if a `try` looks for a missing program again: after more than one attempt, without
/// a `while`.
fn is_repeated(details: &Try) -> bool {
    let once = match &details.clauses.times {
        Some(times) => literal::expr(times).is_some_and(|times| times == "1"),
        None => details.clauses.time.is_none(),
    };
    !once && details.condition.is_none()
}

/// Returns true if a command may change the places of programs or functions.
fn changes_path(command: &Command) -> bool {
    let assigns = match &command.kind {
        CommandKind::Assign { name, .. } => &**name == "PATH",
        CommandKind::For(details) => &*details.variable == "PATH",
        _ => false,
    };
    let redirects = walk::simples(command).flat_map(|simple| &simple.redirects);
    let mut redirects = redirects.chain(&command.redirects);
    let writes =
        redirects.any(|it| matches!(&it.target, RedirectionTarget::Variable(word) if names(word)));
    let sets = |simple: &Simple| match walk::name(simple) {
        Some(name) if name == "source" => true,
        Some(name) if SETTERS.contains(&&*name) => simple.words.iter().any(names),
        _ => simple.assignments.iter().any(|(name, _)| &**name == "PATH"),
    };
    assigns || writes || walk::simples(command).any(sets)
}

/// Returns true if a word is `PATH` or begins with `PATH=`.
fn names(word: &Word) -> bool {
    let Some(WordPart::Bare(text)) = word.parts.first() else { return false };
    text.split('=').next() == Some("PATH")
}
