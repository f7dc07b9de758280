//! Commands that swallow what the loop around them wants to read.

use super::{Warning, walk};
use ftsh_syntax::Script;
use ftsh_syntax::ast::{Block, Command, CommandKind, Expr, ExprKind, Redirect, Simple, Stage};
use ftsh_syntax::hint::hint;
use ftsh_syntax::parse::literal;
use ftsh_syntax::slug::Slug;
use ftsh_syntax::span::Span;

/// Programs that read standard input although they have nothing to read, each with the option that
/// keeps it from that, if it has one.
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

/// Programs that run what their arguments say.
const RUNNERS: [&str; 10] =
    ["env", "ionice", "nice", "nohup", "setsid", "sshpass", "stdbuf", "sudo", "time", "timeout"];

pub fn look(script: &Script) -> Vec<Warning> {
    let mut warnings = Vec::new();
    block(&script.body, None, &mut warnings);
    warnings
}

/// `reading` is the loop that reads the input which commands have here.
fn block(block: &Block, reading: Option<Span>, warnings: &mut Vec<Warning>) {
    for command in &block.commands {
        if let Some(reading) = reading {
            let firsts = walk::pipelines(command).filter_map(|it| it.stages.first());
            let firsts = firsts.filter_map(Stage::simple);
            warnings.extend(firsts.filter_map(|simple| swallows(simple, reading)));
        }
        if let CommandKind::Pipeline(pipeline) = &command.kind {
            // Only the first one has the input of the pipeline.
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

/// The loop whose input the commands in a structure have.
fn inside(command: &Command, reading: Option<Span>) -> Option<Span> {
    match &command.kind {
        CommandKind::While { condition, .. } if reads(condition) => Some(command.span),
        // Branches have none, and functions the one of whoever calls them.
        CommandKind::For(details) if details.kind.has_branches() => None,
        CommandKind::Function { .. } => None,
        _ if command.redirects.iter().any(is_input) => None,
        _ => reading,
    }
}

/// Whether a condition reads a line.
fn reads(condition: &Expr) -> bool {
    if let ExprKind::Succeeds(pipeline) = &condition.kind {
        let mut simples = pipeline.stages.iter().filter_map(Stage::simple);
        return simples.any(|simple| walk::name(simple).as_deref() == Some("read"));
    }
    walk::operands(condition).into_iter().any(reads)
}

fn swallows(simple: &Simple, reading: Span) -> Option<Warning> {
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
            format!("`{reader}` reads what is left of this loop's input"),
        )
        .related(reading, "which then ends after one turn")
        .hint(hint!(
            "take the lines apart first, `for line in lines($text)`; or `{reader} … < /dev/null`"
        )),
    )
}

fn is_input(redirect: &Redirect) -> bool {
    redirect.descriptor == 0
}
