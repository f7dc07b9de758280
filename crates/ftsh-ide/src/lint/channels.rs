//! Lint of channels whose rules have no effect.

use super::{Warning, walk};
use ftsh_syntax::Script;
use ftsh_syntax::ast::{Block, ChannelDeclaration, CommandKind, Name, Try};
use ftsh_syntax::hint::hint;
use ftsh_syntax::parse::literal;
use ftsh_syntax::slug::Slug;
use ftsh_syntax::span::Span;

pub(super) fn check(script: &Script) -> Vec<Warning> {
    let mut check = ChannelCheck::default();
    check.block(&script.body, &mut Vec::new());
    let mut warnings = check.warnings;
    // A sourced file, or a script that sources this file, may use the channels.
    if !check.sources && check.runs {
        for channel in check.declared {
            warnings.extend(unused(channel, &check.tries));
        }
    }
    warnings
}

#[derive(Default)]
struct ChannelCheck<'a> {
    declared: Vec<&'a ChannelDeclaration>,
    /// Tries through channels, each with the span of the name.
    tries: Vec<(Span, &'a Name, &'a Try)>,
    sources: bool,
    /// True if the script has commands besides functions and declarations.
    runs: bool,
    warnings: Vec<Warning>,
}

impl<'a> ChannelCheck<'a> {
    /// Checks a block inside of attempts that have passed the channels `around`.
    fn block(&mut self, block: &'a Block, around: &mut Vec<(Span, &'a Name)>) {
        for command in &block.commands {
            match &command.kind {
                CommandKind::Comment { .. } => {}
                CommandKind::Channel(channel) => self.declared.push(channel),
                CommandKind::Function { body, .. } => {
                    let runs = self.runs;
                    self.block(body, &mut Vec::new());
                    self.runs = runs;
                }
                CommandKind::Try(details) => {
                    self.runs = true;
                    self.try_block(details, around);
                }
                _ => {
                    self.runs = true;
                    let mut names = walk::simples(command).filter_map(walk::name);
                    self.sources |= names.any(|name| name == "source");
                    for block in walk::blocks(command) {
                        self.block(block, around);
                    }
                }
            }
        }
    }

    fn try_block(&mut self, details: &'a Try, around: &mut Vec<(Span, &'a Name)>) {
        let through = details.through.as_ref().map(|(span, name)| (*span, name));
        if let Some((span, name)) = through {
            self.tries.push((span, name, details));
            if let Some((first, _)) = around.iter().find(|(_, it)| *it == name) {
                let message = format!("the outer attempts already went through `{name}`");
                self.warnings.push(
                    Warning::new(Slug::NestedChannel, span, message).related(*first, "here").hint(
                        hint!(
                            "an inner attempt takes no second place, and no rule counts the attempt"
                        ),
                    ),
                );
            }
        }
        around.extend(through);
        self.block(&details.body, around);
        around.truncate(around.len() - usize::from(through.is_some()));
        for (_, after) in details.catch.iter().chain(&details.finally) {
            self.block(after, around);
        }
    }
}

fn unused(channel: &ChannelDeclaration, tries: &[(Span, &Name, &Try)]) -> Option<Warning> {
    let name = &channel.name;
    let mut through = tries.iter().filter(|(_, it, _)| *it == name).peekable();
    let Some((first, ..)) = through.peek() else {
        let warning = Warning::new(
            Slug::UnusedChannel,
            channel.name_span,
            format!("no `try` goes through `{name}`"),
        );
        return Some(warning.hint(hint!("like `try for 1 hour through {name}`")));
    };
    let budget = channel.rules.budget.as_ref()?;
    if through.any(|(_, _, details)| is_retried(details)) {
        return None;
    }
    let message = format!("no `try` through `{name}` makes a second attempt: the budget is unused");
    let warning = Warning::new(Slug::UnusedBudget, budget.span, message);
    Some(
        warning
            .related(*first, "this `try` makes one attempt")
            .hint(hint!("add a limit, like `try for 1 hour`")),
    )
}

/// Returns true if a `try` may make more than one attempt.
fn is_retried(details: &Try) -> bool {
    match &details.clauses.times {
        None => details.clauses.time.is_some(),
        Some(times) => literal::expr(times).is_none_or(|times| times.trim() != "1"),
    }
}
