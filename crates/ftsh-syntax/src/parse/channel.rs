//! `channel NAME [at most N] [rate N per D] [budget P%] [breaker N failures D]`, and `through NAME`.

use smallvec::smallvec;

use super::backoff::strip_percent;
use super::builder::Builder;
use super::duration::check_count;
use super::{KnownNames, Pair, Result, Rule, literal};
use crate::ast::{
    Block, ChannelDeclaration, Command, CommandKind, Duration, Expr, Name, Stage, Unit,
};
use crate::ast::{ExprKind, Word, WordPart};
use crate::clauses::{self, ChannelClauses, ChannelRow};
use crate::error::SyntaxError;
use crate::hint::{Hint, hint};
use crate::nearest::nearest;
use crate::slug::Slug;
use crate::span::Span;

/// Returns the hint with a declaration as an example.
fn example() -> Hint {
    hint!("declare the channel like `channel mirror at most 4 rate 10 per second`")
}

impl Builder<'_> {
    /// Builds a `channel`.
    pub(super) fn channel(&mut self, pair: Pair) -> Result<ChannelDeclaration> {
        let span = self.span(&pair);
        let mut inner = pair.into_inner().peekable();
        let is_name = |pair: &Pair| matches!(pair.as_rule(), Rule::channel_name | Rule::expression);
        let Some(name) = inner.next_if(is_name) else {
            let error = SyntaxError::new(Slug::ChannelName, span, "a channel needs a name");
            return Err(error.hint(example()).into());
        };
        let (name, name_span) = self.channel_name(&name)?;
        if clauses::words("try").any(|word| word == &*name) {
            let error = SyntaxError::new(
                Slug::ChannelName,
                name_span,
                format!("`{name}` can't be the name of a channel"),
            );
            return Err(error
                .hint(hint!("after `through`, the word would begin a clause of the `try`"))
                .into());
        }
        let mut rules = ChannelClauses::default();
        for pair in inner {
            let span = self.span(&pair);
            if pair.as_rule() == Rule::stray {
                let at_most = rules.at_most.as_ref().and_then(literal::expr);
                return Err(no_rule(span, pair.as_str().trim_end(), at_most.as_deref()).into());
            }
            let row = ChannelRow::of("channel", pair.as_str()).expect("a rule has a row");
            let (rule, is_twice) = match row {
                ChannelRow::AtMost => {
                    ("`at most`", rules.at_most.replace(self.places(pair)?).is_some())
                }
                ChannelRow::Rate => ("`rate`", rules.rate.replace(self.rate(pair)?).is_some()),
                ChannelRow::Budget => {
                    ("`budget`", rules.budget.replace(self.budget(pair)?).is_some())
                }
                ChannelRow::Breaker => {
                    ("`breaker`", rules.breaker.replace(self.breaker(pair)?).is_some())
                }
            };
            if is_twice {
                return Err(SyntaxError::new(
                    Slug::DuplicateClause,
                    span,
                    format!("{rule} is given twice"),
                )
                .into());
            }
        }
        let ChannelClauses { at_most, rate, budget, breaker } = &rules;
        if at_most.is_none() && rate.is_none() && budget.is_none() && breaker.is_none() {
            let error = SyntaxError::new(
                Slug::ChannelWithoutRule,
                span,
                format!("the channel `{name}` has no rule"),
            );
            return Err(error.hint(example()).into());
        }
        Ok(ChannelDeclaration { name, name_span, rules })
    }

    /// Builds a `through`.
    pub(super) fn through(&mut self, pair: Pair) -> Result<(Span, Name)> {
        let span = self.span(&pair);
        let Some(name) = pair.into_inner().next() else {
            let error = SyntaxError::new(
                Slug::ChannelName,
                span,
                "expected a channel's name after `through`",
            );
            return Err(error.hint(hint!("like `try for 1 hour through mirror`")).into());
        };
        let (name, span) = self.channel_name(&name)?;
        Ok((span, name))
    }

    fn channel_name(&self, pair: &Pair) -> Result<(Name, Span)> {
        let span = self.span(pair);
        if pair.as_rule() == Rule::channel_name {
            return Ok((Self::name(pair), span));
        }
        let message = format!("`{}` can't be the name of a channel", pair.as_str().trim_end());
        Err(SyntaxError::new(Slug::ChannelName, span, message)
            .hint(hint!(
                "a name is a bare word of letters, digits and `_` that doesn't begin with a digit"
            ))
            .into())
    }

    fn places(&mut self, pair: Pair) -> Result<Expr> {
        let span = self.span(&pair);
        let Some(count) = self.optional(pair)? else {
            return lacks(
                Slug::MissingValue,
                span,
                "expected a number after `at most`",
                hint!("like `at most 4`"),
            );
        };
        check_count(&count)?;
        Ok(count)
    }

    fn rate(&mut self, pair: Pair) -> Result<(Expr, Duration)> {
        let like = || hint!("like `rate 10 per second`, or `rate 100 per 5 minutes`");
        let span = self.span(&pair);
        let mut inner = pair.into_inner().peekable();
        let Some(count) = inner.next_if(|pair| pair.as_rule() == Rule::calculation) else {
            return lacks(Slug::MissingValue, span, "expected a number after `rate`", like());
        };
        let count = self.expr(count)?;
        check_count(&count)?;
        let Some(time) = inner.next().and_then(|per| per.into_inner().next()) else {
            return lacks(
                Slug::MissingValue,
                span,
                "expected `per` and a length of time after `rate`",
                like(),
            );
        };
        let time = match time.as_rule() {
            Rule::unit => self.one(&time)?,
            _ => self.duration(time)?,
        };
        Ok((count, time))
    }

    /// Builds the length of a unit without an amount.
    fn one(&mut self, pair: &Pair) -> Result<Duration> {
        let (span, name) = (self.span(pair), pair.as_str());
        let Some(unit) = Unit::named(name) else {
            let error = SyntaxError::new(Slug::UnknownUnit, span, format!("unknown unit `{name}`"));
            return Err(match nearest(name, Unit::names()) {
                Some(meant) => error.hint(hint!("did you mean `{meant}`?")),
                None => error.label("expected `second`, `minute`, `hour` or `day`"),
            }
            .into());
        };
        let kind = ExprKind::Word(Word { span, parts: smallvec![WordPart::Bare("1".into())] });
        Ok(Duration::Amount { amount: Expr { span, kind }, unit })
    }

    fn budget(&mut self, pair: Pair) -> Result<Expr> {
        let like = || hint!("like `budget 20%`: 20 retries for a hundred first attempts");
        let span = self.span(&pair);
        let mut inner = pair.into_inner();
        let Some(percentage) = inner.next() else {
            return lacks(Slug::MissingValue, span, "expected a percentage after `budget`", like());
        };
        let mut percentage = self.expr(percentage)?;
        if inner.next().is_none() && !strip_percent(&mut percentage) {
            return lacks(
                Slug::MissingPercent,
                percentage.span,
                "a `%` is missing after `budget`",
                like(),
            );
        }
        let Some(text) = literal::expr(&percentage) else { return Ok(percentage) };
        let (slug, message) = match literal::number(&text) {
            Some(number) if number > 0.0 && number <= 100.0 => return Ok(percentage),
            Some(_) => {
                let message = format!("a budget is more than 0% and at most 100%, not {text}%");
                (Slug::OutOfRange, message)
            }
            None => (Slug::NotANumber, format!("`{text}` is not a number")),
        };
        lacks(slug, percentage.span, &message, like())
    }

    fn breaker(&mut self, pair: Pair) -> Result<(Expr, Duration)> {
        let like = || hint!("like `breaker 5 failures 30 seconds`");
        let span = self.span(&pair);
        let mut inner = pair.into_inner().peekable();
        let Some(count) = inner.next_if(|pair| pair.as_rule() == Rule::calculation) else {
            return lacks(
                Slug::MissingValue,
                span,
                "expected a number of failures after `breaker`",
                like(),
            );
        };
        let count = self.expr(count)?;
        check_count(&count)?;
        let Some(failures) = inner.next() else {
            return lacks(
                Slug::MissingValue,
                span,
                "expected `failures` and a length of time",
                like(),
            );
        };
        let Some(time) = failures.into_inner().next() else {
            let message = "expected a length of time without attempts after `failures`";
            return lacks(Slug::MissingValue, span, message, like());
        };
        Ok((count, self.duration(time)?))
    }
}

fn lacks<T>(slug: Slug, span: Span, message: &str, hint: Hint) -> Result<T> {
    Err(SyntaxError::new(slug, span, message.to_owned()).hint(hint).into())
}

/// Returns the error for an unknown word among the rules, with the literal number of `at most`.
fn no_rule(span: Span, text: &str, at_most: Option<&str>) -> SyntaxError {
    let first = text.split_whitespace().next().unwrap_or_default();
    let error = SyntaxError::new(
        Slug::UnknownClause,
        span,
        format!("`{first}` is not a rule of a channel"),
    );
    if first == "per" {
        let number = at_most.unwrap_or("10");
        return error
            .hint(hint!("attempts in a length of time are a rate: `rate {number} {text}`"));
    }
    match nearest(first, clauses::words("channel")) {
        Some("at" | "most") => error.hint(hint!("did you mean `at most`?")),
        Some(meant) => error.hint(hint!("did you mean `{meant}`?")),
        None => error.hint(hint!(
            "the rules are `at most`, `rate`, `budget` and `breaker`; to run a program `channel`, \
             quote its name"
        )),
    }
}

/// Returns the errors of tries whose channel is declared neither in the script nor before.
///
/// A file that the script sources or uses may declare more channels; the list is then empty.
pub(super) fn undeclared(script: &[Command], known: KnownNames) -> Vec<SyntaxError> {
    let mut uses = ChannelUses::default();
    uses.commands(script);
    if uses.sources || uses.has_files && !known.has_used {
        return Vec::new();
    }
    let declared =
        || uses.declared.iter().map(|name| &***name).chain(known.channels.iter().copied());
    let unknown = uses.used.iter().filter(|(_, name)| declared().all(|it| it != &***name));
    let error = |(span, name): &(Span, &Name)| {
        let error =
            SyntaxError::new(Slug::UnknownChannel, *span, format!("there is no channel `{name}`"));
        match nearest(name, declared()) {
            Some(meant) => error.hint(hint!("did you mean `{meant}`?")),
            None => error.hint(hint!("declare the channel, like `channel {name} at most 4`")),
        }
    };
    unknown.map(error).collect()
}

#[derive(Default)]
struct ChannelUses<'t> {
    declared: Vec<&'t Name>,
    used: Vec<(Span, &'t Name)>,
    /// True if the script runs the commands of other files.
    sources: bool,
    /// True if the script has a `use`.
    has_files: bool,
}

impl<'t> ChannelUses<'t> {
    fn block(&mut self, block: &'t Block) {
        self.commands(&block.commands);
    }

    fn commands(&mut self, commands: &'t [Command]) {
        for command in commands {
            match &command.kind {
                CommandKind::Channel(channel) => self.declared.push(&channel.name),
                CommandKind::Use(_) => self.has_files = true,
                CommandKind::Pipeline(pipeline) => {
                    for stage in &pipeline.stages {
                        let first = stage.simple().and_then(|simple| simple.words.first());
                        self.sources |=
                            first.and_then(literal::word).is_some_and(|it| it == "source");
                    }
                    pipeline.stages.iter().filter_map(Stage::block).for_each(|it| self.block(it));
                }
                CommandKind::Try(details) => {
                    self.used.extend(details.through.as_ref().map(|(span, name)| (*span, name)));
                    self.block(&details.body);
                    let after = details.catch.iter().chain(&details.finally);
                    after.for_each(|(_, block)| self.block(block));
                }
                CommandKind::If { arms, otherwise } => {
                    arms.iter()
                        .map(|(_, body)| body)
                        .chain(otherwise)
                        .for_each(|it| self.block(it));
                }
                CommandKind::Case(case) => case.blocks().for_each(|it| self.block(it)),
                CommandKind::While { body, .. }
                | CommandKind::In { body, .. }
                | CommandKind::Function { body, .. } => {
                    self.block(body);
                }
                CommandKind::With { companion, body } => {
                    self.block(companion);
                    self.block(body);
                }
                CommandKind::For(details) => self.block(&details.body),
                CommandKind::Comment { .. }
                | CommandKind::Args(_)
                | CommandKind::Assign { .. }
                | CommandKind::Return(_)
                | CommandKind::Shift(_)
                | CommandKind::List { .. }
                | CommandKind::Jump(_) => {}
            }
        }
    }
}
