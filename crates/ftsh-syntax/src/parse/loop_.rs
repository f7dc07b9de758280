//! Builder of the heads of `for`, `forany` and `forall`.

use super::builder::Builder;
use super::duration::check_count;
use super::{Pair, Result, Rule, bashisms, branch_files, literal, near_clause};
use crate::ast::{Block, Duration, Expr, ExprKind, For, ForKind, Input, Word, WordPart};
use crate::clauses::{ForAllClauses, ForAnyClauses, LoopRow, On, OutputMode};
use crate::engine::EngineId;
use crate::error::SyntaxError;
use crate::hint::{Hint, hint};
use crate::size::Size;
use crate::slug::Slug;
use crate::span::Span;
use crate::vocabulary::{FILE_CLAUSES, loop_clauses};

/// Returns an operator of a calculation outside of parentheses and ranges.
fn calculation(expr: &Expr) -> Option<(Span, &'static str)> {
    match &expr.kind {
        ExprKind::Binary { operator, is_symbol: true, left, right } => {
            let span = Span::new(left.span.end, right.span.start);
            Some((span, operator.symbol()?))
        }
        ExprKind::Binary { left, right, .. } => calculation(left).or_else(|| calculation(right)),
        ExprKind::Unary { operand, .. } => calculation(operand),
        _ => None,
    }
}

/// Advice for words in a list that begin clauses.
const QUOTE: &str = "quote the words if they belong to the list";

impl Builder<'_> {
    /// Builds an `item` of a list. Refuses operators where words are usual.
    pub(super) fn item(&mut self, pair: Pair) -> Result<Expr> {
        let item = self.expr(pair)?;
        if let Some((span, symbol)) = calculation(&item) {
            let text = &self.text[item.span.start..item.span.end];
            let message = format!("a list takes `{symbol}` only in the end of a range");
            let error = SyntaxError::new(Slug::MisplacedSymbol, span, message);
            return Err(error
                .hint(hint!(
                    "a calculation has parentheses: `({text})`; a word has quotes: `'{symbol}'`"
                ))
                .into());
        }
        if let ExprKind::Word(word) = &item.kind
            && let Some(text) = literal::bare(word)
            && let Some(inner) = text.strip_prefix('.').and_then(|text| text.strip_suffix('.'))
            && !inner.is_empty()
            && inner.bytes().all(|byte| byte.is_ascii_alphabetic())
        {
            let message = format!("there is not an operator `{text}`");
            let error = SyntaxError::new(Slug::UnknownOperator, word.span, message);
            let hint = hint!("a range is `1 .to. 9 .step. 2`; a word has quotes: `'{text}'`");
            return Err(error.hint(hint).into());
        }
        Ok(item)
    }

    /// Builds a `for_head`.
    pub(super) fn for_head(&mut self, pair: Pair) -> Result<For> {
        let mut inner = pair.into_inner();
        let keyword = inner.next().expect("a loop begins with its keyword").as_str();
        let variable = inner.next().expect("a loop has a variable");
        let variable = Self::name(&variable);
        let mut list = Vec::new();
        let mut input = None;
        let mut usual = None;
        let (mut atomic_in, mut takes, mut gives) = (Vec::new(), Vec::new(), Vec::new());
        let mut any = ForAnyClauses::default();
        let mut all = ForAllClauses::default();
        let mut seen = Vec::new();
        let mut alone = None;
        for pair in inner {
            let rule = pair.as_rule();
            match rule {
                Rule::in_word => continue,
                Rule::from_input => {
                    input = Some(Box::new(self.words_of_input(pair)?));
                    continue;
                }
                Rule::item => {
                    list.push(self.item(pair)?);
                    continue;
                }
                _ => {}
            }
            let span = self.span(&pair);
            if rule == Rule::stray {
                return Err(stray(span, pair.as_str().trim_end()).into());
            }
            let clause = phrase(pair.as_str());
            if clause == "in order" && all.output == Some(OutputMode::Tagged) {
                let error = SyntaxError::new(
                    Slug::ConflictingClauses,
                    span,
                    "`output tagged` takes no `in order`",
                );
                return Err(error
                    .hint(hint!("`output grouped in order` prints the output of each word in the order of the words"))
                    .into());
            }
            // A loop has one engine.
            let is_engine = rule == Rule::on_engine;
            let key = if is_engine { "on".to_owned() } else { clause.clone() };
            let is_file = FILE_CLAUSES.contains(&&*clause);
            if !(is_engine || is_file) || keyword != "forall" {
                check_owner(span, keyword, &clause)?;
            }
            if seen.contains(&key) {
                return Err(SyntaxError::new(
                    Slug::DuplicateClause,
                    span,
                    format!("`{clause}` is given twice"),
                )
                .into());
            }
            if clause.starts_with("output ") && all.output.is_some() {
                let error = SyntaxError::new(
                    Slug::ConflictingClauses,
                    span,
                    "output is either grouped or tagged",
                );
                return Err(error
                    .hint(hint!("`output tagged` prints each line at once, `output grouped` the output of a branch at its end"))
                    .into());
            }
            let has = |words: &str| words == clause || seen.iter().any(|seen| seen == words);
            if has("keep going") && has("finish running") {
                let error = SyntaxError::new(
                    Slug::ConflictingClauses,
                    span,
                    "`keep going` and `finish running` exclude each other",
                );
                return Err(error
                    .hint(hint!("after a failure `keep going` begins all other branches, and `finish running` none"))
                    .into());
            }
            seen.push(key);
            if is_engine {
                all.on = Some(self.on(pair)?);
                continue;
            }
            match LoopRow::of(keyword, pair.as_str()).expect("a clause has a row") {
                LoopRow::InOrder => any.in_order = true,
                LoopRow::HedgeAfter => {
                    let (after, learned) = self.after(pair, &clause)?;
                    (any.hedge_after, usual) = (Some(after), learned);
                }
                LoopRow::AnyAtMost => {
                    let hint = || {
                        hint!("`forany x in … hedge after 5s at most 2` runs 2 at once; {QUOTE}")
                    };
                    any.at_most = Some(self.count(pair, &clause, hint)?);
                    alone = Some(span);
                }
                LoopRow::AllAtMost => {
                    let hint = || hint!("`forall x in … at most 8` runs 8 at once; {QUOTE}");
                    all.at_most = Some(self.count(pair, &clause, hint)?);
                }
                LoopRow::AtLeast => {
                    let hint = || hint!("`forall x in … at least 2` succeeds once 2 have; {QUOTE}");
                    all.at_least = Some(self.count(pair, &clause, hint)?);
                }
                LoopRow::OutputGrouped => {
                    let in_order = pair.into_inner().next().is_some();
                    all.output = Some(OutputMode::Grouped { in_order });
                }
                LoopRow::OutputTagged => all.output = Some(OutputMode::Tagged),
                LoopRow::RetryLost => {
                    let hint = || {
                        hint!(
                            "`forall x in … on slurm retry lost 3 times` restarts a branch whose machine died; {QUOTE}"
                        )
                    };
                    all.retry_lost = Some(self.count(pair, &clause, hint)?);
                }
                LoopRow::KeepGoing => all.keep_going = true,
                LoopRow::FinishRunning => all.finish_running = true,
                LoopRow::WhileFree => all.while_free = Some(self.free(pair)?),
                LoopRow::WhileLoad => all.while_load = Some(self.load(pair)?),
                LoopRow::AnyAtomicIn | LoopRow::AllAtomicIn => atomic_in = self.atomic_in(pair)?,
                LoopRow::Takes => takes = self.files(pair, "takes")?,
                LoopRow::Gives => gives = self.files(pair, "gives")?,
                LoopRow::OnceIn => all.once_in = Some(self.file(pair)?),
            }
        }
        if let Some(span) = alone
            && any.hedge_after.is_none()
        {
            let error = SyntaxError::new(
                Slug::MisplacedClause,
                span,
                "`forany` takes `at most` only with `hedge after`",
            );
            return Err(error
                .hint(hint!("the words run one after the other without a hedge; {QUOTE}"))
                .into());
        }
        branch_files::check_given(&gives, input.is_none().then_some(&list))?;
        bashisms::list(&list, &format!("{keyword} {variable} in"))?;
        near_clause::check(&list, keyword)?;
        near_clause::check_try(&list, keyword)?;
        let kind = match keyword {
            "forany" => ForKind::Any(any),
            "forall" => ForKind::All(Box::new(all)),
            _ => ForKind::Each,
        };
        Ok(For {
            kind,
            variable,
            list,
            input,
            usual,
            atomic_in,
            takes,
            gives,
            body: Block::default(),
        })
    }

    /// A `from_input`.
    fn words_of_input(&mut self, pair: Pair) -> Result<Input> {
        let span = self.span(&pair);
        let mut inner = pair.into_inner();
        if inner.next().is_none() {
            return Ok(Input { span, by: None });
        }
        let by = inner.next().map(|by| match by.as_rule() {
            Rule::dashes => {
                let (span, parts) = (self.span(&by), [WordPart::Bare(by.as_str().to_owned())]);
                let word = Word { span, parts: parts.into_iter().collect() };
                Ok(Expr { span, kind: ExprKind::Word(word) })
            }
            _ => self.expr(by),
        });
        let by = by.transpose()?;
        match by {
            Some(by) if literal::expr(&by).is_none_or(|text| !text.is_empty()) => {
                Ok(Input { span, by: Some(by) })
            }
            _ => Err(SyntaxError::new(
                Slug::MissingValue,
                span,
                "expected a text after `by`, which ends each word",
            )
            .hint(hint!("`forall x from input by \"\\0\"` takes names that end with a NUL"))
            .into()),
        }
    }

    /// Builds the length of time after the words of a clause, with the place of `or D` after
    /// `usual`.
    fn after(&mut self, pair: Pair, clause: &str) -> Result<(Duration, Option<Span>)> {
        let span = self.span(&pair);
        let Some(length) = pair.into_inner().next() else {
            let message = format!("expected a length of time after `{clause}`");
            return Err(SyntaxError::new(Slug::MissingValue, span, message)
                .hint(hint!(
                    "`forany x in … hedge after 5 seconds` begins the next word when one takes \
                     longer; {QUOTE}"
                ))
                .into());
        };
        if length.as_rule() == Rule::usual {
            return self.usual_time(length, clause);
        }
        let (span, text) = (self.span(&length), length.as_str().trim().to_owned());
        let after =
            self.duration(length).map_err(|error| match literal::number(&text) {
                Some(_) => {
                    let error =
                        SyntaxError::new(Slug::MissingUnit, span, format!("`{text}` needs a unit"));
                    Box::new(error.hint(hint!(
                        "write `hedge after {text} seconds`, or `{text}m` for minutes"
                    )))
                }
                None => error,
            })?;
        Ok((after, None))
    }

    /// Builds an `on_engine`.
    fn on(&mut self, pair: Pair) -> Result<On<Expr>> {
        let mut inner = pair.into_inner();
        let engine = inner.next().expect("an engine is named");
        let span = self.span(&engine);
        let Some(named) = EngineId::named(engine.as_str()) else {
            let message = "the name of a carrier has at most 63 characters";
            return Err(SyntaxError::new(Slug::EngineArgument, span, message).into());
        };
        let options = inner.next().map(|pair| self.expr(pair)).transpose()?;
        let (word, span) = match &options {
            Some(options) => (literal::expr(options), options.span),
            None => (named.row().argument.is_required().then(|| "".into()), span),
        };
        if let Some(why) = word.and_then(|word| named.argument_error(&word)) {
            return Err(SyntaxError::new(Slug::EngineArgument, span, why).into());
        }
        Ok(On { engine: named, options })
    }

    /// Builds the file after `once in`.
    fn file(&mut self, pair: Pair) -> Result<Expr> {
        let span = self.span(&pair);
        let Some(file) = self.optional(pair)? else {
            let message = "expected a file after `once in`, which records the words";
            return Err(SyntaxError::new(Slug::MissingValue, span, message)
                .hint(hint!(
                    "`forall x in … once in done.txt` skips the words in `done.txt`; {QUOTE}"
                ))
                .into());
        };
        Ok(file)
    }

    /// Builds the size after `while free`.
    fn free(&mut self, pair: Pair) -> Result<Size<Expr>> {
        let span = self.span(&pair);
        let Some(size) = pair.into_inner().next() else {
            let message = "expected a size after `while free`";
            return Err(SyntaxError::new(Slug::MissingValue, span, message)
                .hint(hint!(
                    "`forall x in … while free 2 GB` begins no branch while less memory is \
                     available; {QUOTE}"
                ))
                .into());
        };
        self.size(size)
    }

    /// Builds the number after `while load`, which may have a fraction.
    fn load(&mut self, pair: Pair) -> Result<Expr> {
        let span = self.span(&pair);
        let Some(load) = self.optional(pair)? else {
            let message = "expected a number after `while load`";
            return Err(SyntaxError::new(Slug::MissingValue, span, message)
                .hint(hint!(
                    "`forall x in … while load 8` begins no branch while the load is higher; {QUOTE}"
                ))
                .into());
        };
        match literal::expr(&load) {
            Some(text) if literal::number(&text).is_none_or(|load| load <= 0.0) => {
                let message = format!("expected a number above zero, not `{text}`");
                Err(SyntaxError::new(Slug::NotANumber, load.span, message).into())
            }
            _ => Ok(load),
        }
    }

    /// Builds the number after the words of a clause.
    fn count(&mut self, pair: Pair, clause: &str, hint: impl Fn() -> Hint) -> Result<Expr> {
        let span = self.span(&pair);
        let Some(count) = self.optional(pair)? else {
            let error = SyntaxError::new(
                Slug::MissingValue,
                span,
                format!("expected a number after `{clause}`"),
            );
            return Err(error.hint(hint()).into());
        };
        check_count(&count)?;
        Ok(count)
    }
}

/// Returns the words that begin a clause, one or two.
fn phrase(text: &str) -> String {
    let words =
        text.split(|c: char| c.is_whitespace() || c == '\\').filter(|word| !word.is_empty());
    let mut words = words.take(2).collect::<Vec<_>>();
    if FILE_CLAUSES.contains(&words[0]) {
        words.truncate(1);
    }
    words.join(" ")
}

/// Refuses the clause of another loop.
fn check_owner(span: Span, keyword: &str, clause: &str) -> Result<()> {
    let mut owners = loop_clauses().filter(|(_, words)| words.join(" ") == clause);
    if owners.clone().any(|(owner, _)| owner == keyword) {
        return Ok(());
    }
    let error =
        SyntaxError::new(Slug::MisplacedClause, span, format!("`{keyword}` takes no `{clause}`"));
    let owner = owners.next().map_or("forall", |(owner, _)| owner);
    Err(Box::new(error.hint(hint!("`{owner}` does; {QUOTE}"))))
}

/// Returns the error for unknown text after the clauses.
fn stray(span: Span, text: &str) -> SyntaxError {
    let error = SyntaxError::new(Slug::UnknownClause, span, format!("`{text}` is not a clause"));
    let first = text.split_whitespace().next().unwrap_or_default();
    let meant = loop_clauses().find(|(_, words)| words[0] == first);
    error.hint(match meant {
        Some((owner, words)) => {
            hint!("did you mean `{}`, which `{owner}` takes?", words.join(" "))
        }
        None => {
            hint!(
                "the words of the list come before the clauses; quote words of the list that \
                 would begin a clause"
            )
        }
    })
}
