//! Channels whose rules nothing obeys.

use super::{Warning, walk};
use ftsh_syntax::Script;
use ftsh_syntax::ast::{Block, Channel, CommandKind, Name, Try};
use ftsh_syntax::hint::hint;
use ftsh_syntax::parse::literal;
use ftsh_syntax::slug::Slug;
use ftsh_syntax::span::Span;

pub fn look(script: &Script) -> Vec<Warning> {
    let mut look = Look::default();
    look.block(&script.body, &mut Vec::new());
    let mut warnings = look.warnings;
    // What is sourced, or sources this, may go through its channels.
    if !look.sources && look.runs {
        for channel in look.declared {
            warnings.extend(unused(channel, &look.tries));
        }
    }
    warnings
}

#[derive(Default)]
struct Look<'a> {
    declared: Vec<&'a Channel>,
    /// The tries that go through channels, each with where the name stands.
    tries: Vec<(Span, &'a Name, &'a Try)>,
    sources: bool,
    /// Whether there is anything but functions and declarations.
    runs: bool,
    warnings: Vec<Warning>,
}

impl<'a> Look<'a> {
    /// `around` are the channels that attempts around this have gone through.
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
                let message = format!("the attempts around have gone through `{name}` already");
                self.warnings.push(
                    Warning::new(Slug::NestedChannel, span, message)
                        .related(*first, "here")
                        .hint(hint!("one inside takes no second place, and no rule counts it")),
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

fn unused(channel: &Channel, tries: &[(Span, &Name, &Try)]) -> Option<Warning> {
    let name = &channel.name;
    let mut through = tries.iter().filter(|(_, it, _)| *it == name).peekable();
    let Some((first, ..)) = through.peek() else {
        let warning = Warning::new(
            Slug::UnusedChannel,
            channel.name_span,
            format!("nothing goes through `{name}`"),
        );
        return Some(warning.hint(hint!("like `try for 1 hour through {name}`")));
    };
    let budget = channel.rules.budget.as_ref()?;
    if through.any(|(_, _, details)| is_retried(details)) {
        return None;
    }
    let message =
        format!("nothing that goes through `{name}` is tried again: its budget is unused");
    let warning = Warning::new(Slug::UnusedBudget, budget.span, message);
    Some(
        warning
            .related(*first, "this `try` makes one attempt")
            .hint(hint!("say how often or for how long, like `try for 1 hour`")),
    )
}

/// Whether a `try` may make more than one attempt.
fn is_retried(details: &Try) -> bool {
    match &details.clauses.times {
        None => details.clauses.time.is_some(),
        Some(times) => literal::expr(times).is_none_or(|times| times.trim() != "1"),
    }
}
