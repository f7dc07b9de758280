//! Programs that are not there, where a `try` would look for them again and again.

use std::collections::{HashMap, HashSet};

use super::{Warning, walk};
use ftsh_machine::builtins;
use ftsh_syntax::Script;
use ftsh_syntax::ast::{Block, Command, CommandKind, Name, Part, Simple, Target, Try, Word};
use ftsh_syntax::hint::hint;
use ftsh_syntax::nearest::nearest;
use ftsh_syntax::parse::literal;
use ftsh_syntax::slug::Slug;
use ftsh_syntax::span::Span;
use ftsh_syntax::vocabulary::synonym;

/// What is known of the programs along `PATH`. The static look itself sees nothing of the system.
pub trait Programs {
    /// Whether there is one of that name.
    fn has(&self, name: &str) -> bool;
    /// All names, to find one that was meant.
    fn names(&self) -> Vec<String>;
}

/// Nothing is known: each program is taken to be there.
pub struct Unknown;

impl Programs for Unknown {
    fn has(&self, _name: &str) -> bool {
        true
    }

    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Builtins that may change where programs are looked for, when they name `PATH`.
const SETTERS: [&str; 3] = ["export", "unset", "read"];

pub fn look(script: &Script, programs: &dyn Programs) -> Vec<Warning> {
    let mut functions = HashMap::new();
    let mut is_open = false;
    walk::each(&script.body, &mut |command| {
        if let CommandKind::Function { name, body, .. } = &command.kind {
            functions.insert(name.clone(), body);
        }
        is_open |= changes_path(command);
    });
    if is_open {
        return Vec::new();
    }
    let mut look = Look { programs, functions, told: HashSet::new(), warnings: Vec::new() };
    look.block(&script.body, None);
    look.warnings
}

struct Look<'a> {
    programs: &'a dyn Programs,
    functions: HashMap<Name, &'a Block>,
    /// Functions that were looked into, and programs that were looked for.
    told: HashSet<String>,
    warnings: Vec<Warning>,
}

impl<'a> Look<'a> {
    /// `trying` is the `try` that would make another attempt.
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
                        // The body is the first; what comes after it is run once.
                        self.block(block, if at == 0 { inner } else { trying });
                    }
                }
                // It is called from elsewhere, which may be tried or not; tries of its own count always.
                CommandKind::Function { body, .. } => self.block(body, None),
                _ => walk::blocks(command).into_iter().for_each(|it| self.block(it, trying)),
            }
        }
    }

    fn simple(&mut self, simple: &'a Simple, trying: Span) {
        let mut words = simple.words.iter();
        let Some(mut word) = words.next() else { return };
        let Some(mut name) = literal::word(word) else { return };
        if !self.told.insert(name.to_string()) && name != "exec" {
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
            if !self.told.insert(format!("exec {literal}")) {
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
        let known = functions
            .chain(builtins::all().map(|builtin| builtin.name))
            .chain(programs.iter().map(String::as_str));
        let hint = match synonym(name).or_else(|| nearest(name, known)) {
            Some(meant) => hint!("did you mean `{meant}`?"),
            None => hint!("if it may come while the script runs, nothing is wrong"),
        };
        Warning::new(
            Slug::MissingProgram,
            word.span,
            format!("there is no program `{name}` along `PATH`"),
        )
        .related(trying, "this would look for it again and again")
        .hint(hint)
    }
}

/// Whether a program that isn't there is looked for again: not after the only attempt, and a `while`
/// decides by itself.
fn is_repeated(details: &Try) -> bool {
    let once = match &details.clauses.times {
        Some(times) => literal::expr(times).is_some_and(|times| times == "1"),
        None => details.clauses.time.is_none(),
    };
    !once && details.condition.is_none()
}

/// Whether programs, or functions, may come from places that aren't known now.
fn changes_path(command: &Command) -> bool {
    let assigns = match &command.kind {
        CommandKind::Assign { name, .. } => &**name == "PATH",
        CommandKind::For(details) => &*details.variable == "PATH",
        _ => false,
    };
    let redirects = walk::simples(command).flat_map(|simple| &simple.redirects);
    let mut redirects = redirects.chain(&command.redirects);
    let writes = redirects.any(|it| matches!(&it.target, Target::Variable(word) if names(word)));
    let sets = |simple: &Simple| match walk::name(simple) {
        Some(name) if name == "source" => true,
        Some(name) if SETTERS.contains(&&*name) => simple.words.iter().any(names),
        _ => simple.assignments.iter().any(|(name, _)| &**name == "PATH"),
    };
    assigns || writes || walk::simples(command).any(sets)
}

/// Whether a word is `PATH` or begins with `PATH=`.
fn names(word: &Word) -> bool {
    let Some(Part::Bare(text)) = word.parts.first() else { return false };
    text.split('=').next() == Some("PATH")
}
