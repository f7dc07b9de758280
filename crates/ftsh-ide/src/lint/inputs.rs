//! Lint of commands that consume the input of the loop around them.

use super::{Warning, walk};
use ftsh_syntax::Script;
use ftsh_syntax::ast::{Block, Command, CommandKind, Expr, ExprKind, Redirect, Simple, Stage};
use ftsh_syntax::hint::hint;
use ftsh_syntax::parse::literal;
use ftsh_syntax::slug::Slug;
use ftsh_syntax::span::Span;

/// Programs that read standard input without a need, each with the option against it, if there is
/// one.
const READERS: [(&str, &str); 8] = [
    ("adb", "-n"),
    ("autossh", "-n"),
    ("ffmpeg", "-nostdin"),
    ("HandBrakeCLI", ""),
    ("mplayer", "-noconsolecontrols"),
    ("mpv", "--no-input-terminal"),
    ("rsh", "-n"),
    ("ssh", "-n"),
];

/// Programs that run the command in their arguments.
const RUNNERS: [&str; 10] =
    ["env", "ionice", "nice", "nohup", "setsid", "sshpass", "stdbuf", "sudo", "time", "timeout"];

pub(super) fn check(script: &Script) -> Vec<Warning> {
    let mut warnings = Vec::new();
    block(&script.body, None, &mut warnings);
    warnings
}

/// Checks a block. `reading` is the loop that reads the standard input of the block.
fn block(block: &Block, reading: Option<Span>, warnings: &mut Vec<Warning>) {
    for command in &block.commands {
        if let Some(reading) = reading {
            let firsts = walk::pipelines(command).filter_map(|it| it.stages.first());
            let firsts = firsts.filter_map(Stage::simple);
            warnings.extend(firsts.filter_map(|simple| consumed_input(simple, reading)));
        }
        if let CommandKind::Pipeline(pipeline) = &command.kind {
            // Only the first stage has the input of the pipeline.
            let first = std::iter::once(reading).chain(std::iter::repeat(None));
            for (stage, reading) in pipeline.stages.iter().zip(first) {
                stage.block().into_iter().for_each(|it| self::block(it, reading, warnings));
            }
            continue;
        }
        let inside = inside(command, reading);
        for inner in walk::blocks(command) {
            self::block(inner, inside, warnings);
        }
    }
}

/// Returns the loop whose input is the standard input inside of a structure.
fn inside(command: &Command, reading: Option<Span>) -> Option<Span> {
    match &command.kind {
        CommandKind::While { condition, .. } if reads(condition) => Some(command.span),
        // Branches have no input, and functions have the input of their caller.
        CommandKind::For(details) if details.kind.has_branches() => None,
        CommandKind::Function { .. } => None,
        _ if command.redirects.iter().any(is_input) => None,
        _ => reading,
    }
}

/// Returns true if a condition reads a line.
fn reads(condition: &Expr) -> bool {
    if let ExprKind::Asked { pipeline, .. } = &condition.kind {
        let mut simples = pipeline.stages.iter().filter_map(Stage::simple);
        return simples.any(|simple| walk::name(simple).as_deref() == Some("read"));
    }
    walk::operands(condition).into_iter().any(reads)
}

fn consumed_input(simple: &Simple, reading: Span) -> Option<Warning> {
    if simple.redirects.iter().any(is_input) {
        return None;
    }
    let words: Vec<_> = simple.words.iter().map(|word| (word, literal::word(word))).collect();
    let is_run = |at: usize| {
        let first = words[0].1.as_deref();
        at == 0 || first.is_some_and(|first| RUNNERS.contains(&first))
    };
    let (word, reader, option) = words.iter().enumerate().find_map(|(at, (word, text))| {
        let found = READERS.iter().find(|(name, _)| Some(*name) == text.as_deref())?;
        is_run(at).then_some((word, found.0, found.1))
    })?;
    if !option.is_empty() && words.iter().any(|(_, text)| text.as_deref() == Some(option)) {
        return None;
    }
    Some(
        Warning::new(
            Slug::LoopInput,
            word.span,
            format!("`{reader}` reads the rest of this loop's input"),
        )
        .related(reading, "this loop then ends after one pass")
        .hint(hint!(
            "split the text into lines first, `for line in lines($text)`; or `{reader} … < /dev/null`"
        )),
    )
}

fn is_input(redirect: &Redirect) -> bool {
    redirect.descriptor == 0
}
