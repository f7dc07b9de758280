//! The script that a command line stands for.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use anyhow::{Result, anyhow};

use super::head::{Head, Structure, is_one};
use super::words::{Marks, Style, WordMaker, value_of};
use ftsh_machine::builtins;
use ftsh_syntax::ast::{
    Block, Command, CommandKind, Expr, ExprKind, For, ForKind, Mode, Name, Pipeline, Redirect,
    RedirectionTarget, Script, Simple, Stage, StageKind, Try, Word, WordPart,
};
use ftsh_syntax::vocabulary::{ALONE, DECLARATIONS, FORMS, KEYWORDS, MODIFIERS};
use ftsh_syntax::{Source, Span, parse, print};

/// Program that runs a program, whatever builtin has its name.
const ENV: &str = "env";

/// Variable with the number of a branch.
const SLOT: &str = "slot";

/// Returns the text of the script that runs a command inside heads.
pub(super) fn text(heads: &[Head], command: &[OsString]) -> Result<String> {
    let name = command.first().and_then(|name| name.to_str()).unwrap_or_default();
    // The name of a builtin, or a word that scripts refuse as a command, is a program's name here.
    let ways = [
        (Style::Plain, false),
        (Style::Quoted, false),
        (Style::Plain, true),
        (Style::Quoted, true),
    ];
    let is_builtin = builtins::named(name).is_some();
    for (style, by_env) in ways.into_iter().skip(if is_builtin { 2 } else { 0 }) {
        let text = print(&script(heads, command, style, by_env));
        if parse(ENV, &text).is_ok() {
            return Ok(text);
        }
    }
    Err(anyhow!("no script runs `{name}`: an internal error of ftsh"))
}

/// Returns the name of the command if a builtin has the name, and the script that runs the builtin, as a
/// word of a shell. A program on another machine may have the name.
pub(super) fn builtin(heads: &[Head], command: &[OsString]) -> Option<(String, String)> {
    let name = command.first()?.to_str().filter(|name| builtins::named(name).is_some())?;
    if heads.iter().any(|head| head.keyword == "on") {
        return None;
    }
    let text = print(&script(heads, command, Style::Plain, false));
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    Some((name.to_owned(), format!("'{}'", lines.join("; ").replace('\'', r"'\''"))))
}

/// True if a word without quotes at the start of a command may mean something else than a program.
fn is_of_language(word: &OsString) -> bool {
    let lists: [&[&str]; 5] = [&KEYWORDS, &FORMS, &ALONE, &DECLARATIONS, &MODIFIERS];
    lists.into_iter().flatten().any(|known| word == known)
}

/// True if a word of the command is a program for another shell that reads `$slot`.
fn reads_slot(word: &[u8]) -> bool {
    [&b"$slot"[..], b"${slot"].iter().any(|read| word.windows(read.len()).any(|it| it == *read))
}

/// Builds the tree of the script.
fn script(heads: &[Head], command: &[OsString], style: Style, by_env: bool) -> Script {
    let mut maker = WordMaker::default();
    let loops = heads.iter().filter_map(|head| match &head.structure {
        Structure::Loop { named, .. } => Some((head.keyword, named.as_deref())),
        Structure::Try(_) => None,
    });
    let loops: Vec<_> = loops.collect();
    maker.taken.extend(loops.iter().filter_map(|(_, named)| named.map(str::to_owned)));
    let mut marks = Marks::default();
    let mut variables = Vec::new();
    let loops_count = loops.len();
    let unnamed = maker.fresh("word");
    for (keyword, named) in loops {
        let variable = match named {
            Some(named) => named.into(),
            None if keyword == "on" => maker.fresh("job"),
            None => Name::clone(&unnamed),
        };
        if keyword != "on" {
            marks.enter(named, &variable);
        }
        variables.push((variable, named.is_some()));
    }
    let is_branch = heads.iter().any(|head| head.keyword == "forall");
    if is_branch && !maker.taken.iter().any(|taken| taken == SLOT) {
        let slot = Name::from(SLOT);
        marks.add(&slot);
        if command.iter().any(|word| reads_slot(word.as_bytes())) {
            variables.push((slot, true));
        }
    }
    let mut block = vec![simple(&mut maker, &marks, command, &variables, (style, by_env))];
    variables.truncate(loops_count);
    for (at, head) in heads.iter().enumerate().rev() {
        let command = match &head.structure {
            Structure::Try(details) => attempts(details, reads_again(heads, at), block),
            Structure::Loop { head: details, items, .. } => {
                let (variable, _) = variables.pop().expect("a variable of each loop");
                let name = &command[..1];
                let items = if head.keyword == "on" { name } else { items };
                looping(&mut maker, details, variable, items, block)
            }
        };
        block = vec![command];
    }
    let bytes = maker.bytes.iter().map(|(name, bytes)| print_bytes(name, bytes));
    let commands = bytes.chain(block).collect();
    Script::new(Arc::new(Source::new(ENV, "")), Block { commands })
}

/// Returns true if attempts that follow the first are to read the same input: the command or a loop
/// inside reads the standard input of the script.
fn reads_again(heads: &[Head], at: usize) -> bool {
    let Structure::Try(details) = &heads[at].structure else { return false };
    let clauses = &details.clauses;
    let is_once = match &clauses.times {
        Some(times) => is_one(times),
        None => clauses.time.is_none(),
    };
    let reads = heads[at..].iter().find(|head| head.is_loop()).is_none_or(Head::reads_words);
    !is_once && !clauses.atomic && reads && !heads[..at].iter().any(Head::is_loop)
}

fn attempts(details: &Try, same_input: bool, commands: Vec<Command>) -> Command {
    let mut details = details.clone();
    details.clauses.same_input |= same_input;
    let body = Block { commands };
    plain(CommandKind::Try(Box::new(Try { body, ..details })))
}

fn looping(
    maker: &mut WordMaker,
    head: &For,
    variable: Name,
    items: &[OsString],
    commands: Vec<Command>,
) -> Command {
    let list = items.iter().map(|item| {
        let word = maker.word(item.as_bytes(), &Marks::default(), Style::Item);
        Expr { span: Span::default(), kind: ExprKind::Word(word) }
    });
    let list = list.collect();
    // Branches read nothing in any case.
    let reads = matches!(&head.kind, ForKind::Any(any) if any.hedge_after.is_none());
    let redirects = if reads && head.input.is_none() { vec![nothing()] } else { Vec::new() };
    let body = Block { commands };
    let kind = CommandKind::For(Box::new(For { variable, list, body, ..head.clone() }));
    Command { redirects, ..plain(kind) }
}

/// `< /dev/null`
fn nothing() -> Redirect {
    let word = bare("/dev/null");
    let (span, target) = (Span::default(), RedirectionTarget::File(word));
    Redirect { span, descriptor: 0, mode: Mode::Read, with_errors: false, target }
}

/// The command, with the variables that the command line names in its environment.
fn simple(
    maker: &mut WordMaker,
    marks: &Marks,
    command: &[OsString],
    variables: &[(Name, bool)],
    (style, by_env): (Style, bool),
) -> Command {
    let mut words: Vec<Word> = Vec::with_capacity(command.len() + 2);
    if by_env {
        words.push(bare(ENV));
    }
    for (at, word) in command.iter().enumerate() {
        let style = if at == 0 && is_of_language(word) { Style::Quoted } else { style };
        words.push(maker.word(word.as_bytes(), marks, style));
    }
    if let Some(innermost) = marks.innermost().filter(|_| !maker.has_marks) {
        words.push(value_of(innermost));
    }
    let exported = variables.iter().filter(|(_, is_named)| *is_named);
    let assignments = exported.map(|(name, _)| (Name::clone(name), value_of(name))).collect();
    let span = Span::default();
    pipeline(Simple { span, assignments, modifiers: Vec::new(), words, redirects: Vec::new() })
}

/// `printf '\377' -> bytes1`
fn print_bytes(name: &Name, bytes: &[u8]) -> Command {
    let mut octal = String::new();
    for byte in bytes {
        // Writing to a string can't fail.
        let _ = write!(octal, "\\{byte:03o}");
    }
    let octal = Word { span: Span::default(), parts: vec![WordPart::Single(octal)].into() };
    let (span, target) = (Span::default(), RedirectionTarget::Variable(bare(name)));
    let into = Redirect { span, descriptor: 1, mode: Mode::Write, with_errors: false, target };
    let words = vec![bare("printf"), octal];
    let (assignments, modifiers) = Default::default();
    pipeline(Simple { span, assignments, modifiers, words, redirects: vec![into] })
}

fn bare(text: &str) -> Word {
    Word { span: Span::default(), parts: vec![WordPart::Bare(text.to_owned())].into() }
}

fn pipeline(simple: Simple) -> Command {
    let stages = vec![Stage { kind: StageKind::Simple(simple), pipe_errors: false }];
    plain(CommandKind::Pipeline(Pipeline { stages }))
}

fn plain(kind: CommandKind) -> Command {
    Command { span: Span::default(), gap: false, kind, redirects: Vec::new(), one_line: false }
}
