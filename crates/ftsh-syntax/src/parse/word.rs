//! Builder of words and their parts.

use super::builder::Builder;
use super::document::unindented;
use smallvec::smallvec;

use super::expr::single;
use super::{Pair, Pairs, Result, Rule, literal, reader, substitutions};
use crate::ast::{
    Block, Command, CommandKind, Expr, ExprKind, Index, Parameter, Quoted, Substitute, VariableUse,
    Word, WordPart,
};
use crate::error::SyntaxError;
use crate::hint::hint;
use crate::slug::Slug;
use crate::span::Span;
use crate::vocabulary::{function, is_name};

impl Builder<'_> {
    /// Builds a `word`, an `inner_word` or an `operand`.
    pub(super) fn word(&mut self, pair: Pair) -> Result<Word> {
        let span = self.span(&pair);
        let parts = self.parts(pair.into_inner())?;
        check_lists(&parts, span)?;
        let is_dollar =
            |part: &WordPart| matches!(part, WordPart::Bare(text) if text.ends_with('$'));
        if parts.windows(2).any(|two| is_dollar(&two[0]) && matches!(two[1], WordPart::Single(_))) {
            let message = "`$'…'` is not a string with escapes";
            let error = SyntaxError::new(Slug::OtherShell, span, message);
            return Err(Box::new(error.hint(hint!(
                "`printf \"a\\tb\" -> v` makes such a text, and `lines($v)` splits it at newlines; \
                 a dollar sign before a quote is `\\$`"
            ))));
        }
        if let Some(WordPart::Bare(text)) = parts.first()
            && let Some(sum) = text.strip_prefix("$[").and_then(|it| it.strip_suffix(']'))
        {
            let error = SyntaxError::new(Slug::Arithmetic, span, "`$[…]` calculates nothing");
            return Err(Box::new(error.hint(hint!("write `$(({sum}))`"))));
        }
        Ok(Word { span, parts: parts.into() })
    }

    fn parts(&mut self, pairs: Pairs) -> Result<Vec<WordPart>> {
        let mut parts = Vec::new();
        for pair in pairs {
            let is_joined = matches!(parts.last(), Some(WordPart::Bare(_)));
            parts.push(match self.part(pair)? {
                WordPart::Bare(text) if !self.indent.is_empty() => {
                    WordPart::Bare(unindented(&text, self.indent, is_joined).into_owned())
                }
                part => part,
            });
        }
        Ok(parts)
    }

    pub(super) fn part(&mut self, pair: Pair) -> Result<WordPart> {
        let span = self.span(&pair);
        Ok(match pair.as_rule() {
            Rule::single => WordPart::Single(self.single(pair)?),
            Rule::double => WordPart::Double(self.double(pair)?),
            Rule::variable | Rule::double_variable => match self.called(&pair)? {
                Some(expr) => WordPart::Call(expr),
                None => WordPart::Variable(Box::new(self.variable(pair)?)),
            },
            Rule::backquotes => return Err(substitutions::backquotes(span, self.text).into()),
            Rule::escape | Rule::double_escape => {
                WordPart::Escaped(pair.as_str()[1..].chars().next().ok_or_else(|| {
                    Box::new(SyntaxError::new(
                        Slug::TrailingBackslash,
                        span,
                        "a `\\` must be followed by a character",
                    ))
                })?)
            }
            _ => WordPart::Bare(pair.as_str().to_owned()),
        })
    }

    fn single(&mut self, pair: Pair) -> Result<String> {
        self.check_end(&pair)?;
        let mut text = String::new();
        for inner in pair.into_inner() {
            let lines = unindented(inner.as_str(), self.indent, false);
            unescape(&lines, &['\'', '"', '\\'], false, &mut text);
        }
        Ok(text)
    }

    fn double(&mut self, pair: Pair) -> Result<Vec<Quoted>> {
        self.check_end(&pair)?;
        self.quoted(pair.into_inner(), &['"', '\'', '$', '\\', '`'], false)
    }

    /// Refuses an unterminated string.
    fn check_end(&mut self, pair: &Pair) -> Result<()> {
        let span = self.span(pair);
        if !pair.clone().into_inner().any(|inner| inner.as_rule() == Rule::unterminated) {
            if self.long_string.is_none() && pair.as_str().contains('\n') {
                self.long_string = Some(span);
            }
            return Ok(());
        }
        self.endless_string = Some(span.start);
        let quote = Span::new(span.start, span.start + 1);
        let error = SyntaxError::new(Slug::UnclosedString, quote, "unterminated string")
            .label(format!("the closing `{}` is missing", &self.text[quote.start..quote.end]));
        Err(Box::new(match self.long_string {
            Some(long) => error.related(
                Span::new(long.start, long.start + 1),
                "this string may have to end earlier",
            ),
            None => error,
        }))
    }

    /// Builds the parts of a double-quoted string, or of a here-document, which `starts` a line.
    pub(super) fn quoted(
        &mut self,
        pairs: Pairs,
        escapable: &[char],
        starts: bool,
    ) -> Result<Vec<Quoted>> {
        let mut pieces = Vec::new();
        for (index, pair) in pairs.enumerate() {
            match pair.as_rule() {
                Rule::double_text | Rule::document_text => {
                    let mut text = String::new();
                    let lines = unindented(pair.as_str(), self.indent, starts && index == 0);
                    unescape(&lines, escapable, true, &mut text);
                    if !text.is_empty() {
                        pieces.push(Quoted::Text(text));
                    }
                }
                Rule::double_variable => pieces.push(match self.called(&pair)? {
                    Some(expr) => Quoted::Call(expr),
                    None => Quoted::Variable(Box::new(self.variable(pair)?)),
                }),
                Rule::EOI => {}
                _ => return Err(substitutions::backquotes(self.span(&pair), self.text).into()),
            }
        }
        Ok(pieces)
    }

    /// Builds the expression of `${f(x)}`, `$((1 + 2))` or `$(command)`; `None` for a variable.
    fn called(&mut self, pair: &Pair) -> Result<Option<Box<Expr>>> {
        if !pair.as_str().starts_with("${") && !pair.as_str().starts_with("$(") {
            return Ok(None);
        }
        let span = self.span(pair);
        let Some(form) = pair.clone().into_inner().next() else { return Ok(None) };
        let is_expression =
            |it: &Pair| matches!(it.as_rule(), Rule::called | Rule::sum_group | Rule::enclosed);
        let Some(expression) = form.into_inner().find(is_expression) else { return Ok(None) };
        let expr = match expression.as_rule() {
            Rule::called => {
                let (name, _) = expression.as_str().split_once('(').unwrap_or_default();
                let name = name.trim_end();
                let is_function = is_name(name)
                    || function(name).is_some()
                    || self.functions.contains(name)
                    || self.text.contains("source");
                if !is_function {
                    return Err(substitutions::variable(span, self.text).into());
                }
                self.nested(span, |this| this.expr(expression))?
            }
            Rule::sum_group => self.sum(expression)?,
            _ => {
                let lines = self.span(&expression);
                let inside = expression.as_str().trim();
                if inside
                    .strip_prefix('<')
                    .is_some_and(|file| !file.contains(['\n', '<', ';', '|']))
                {
                    return Err(substitutions::variable(span, self.text).into());
                }
                let block = self.nested(span, |this| reader::enclosed(this, lines))?;
                if block.commands.is_empty() {
                    return Err(substitutions::variable(span, self.text).into());
                }
                Expr { span, kind: ExprKind::Collected(block) }
            }
        };
        Ok(Some(Box::new(expr)))
    }

    /// Builds the command of `$(name)`, for a variable that is not set.
    fn command_of_name(&self, name: &Pair) -> (Substitute, Vec<WordPart>) {
        let span = self.span(name);
        let word = Word { span, parts: smallvec![WordPart::Bare(name.as_str().to_owned())] };
        let kind = CommandKind::Pipeline(single(word));
        let command = Command::plain(span, kind);
        let kind = ExprKind::Collected(Block { commands: vec![command] });
        (Substitute::Command, vec![WordPart::Call(Box::new(Expr { span, kind }))])
    }

    fn variable(&mut self, pair: Pair) -> Result<VariableUse> {
        let span = self.span(&pair);
        let text = pair.as_str();
        let mut variable = None;
        let mut substitute = None;
        let mut index = None;
        let mut inner: Vec<Pair> = pair.into_inner().collect();
        if let [only] = &inner[..]
            && matches!(only.as_rule(), Rule::braced | Rule::double_braced | Rule::round)
        {
            inner = only.clone().into_inner().collect();
        }
        for pair in inner {
            match pair.as_rule() {
                Rule::name => {
                    if text.starts_with("$(") {
                        substitute = Some(self.command_of_name(&pair));
                    }
                    variable = Some(Parameter::Named(Self::name(&pair)));
                }
                Rule::digit | Rule::number => {
                    let number = pair.as_str().parse().map_err(|_| {
                        Box::new(SyntaxError::new(
                            Slug::OutOfRange,
                            span,
                            "the number of the argument is too large",
                        ))
                    })?;
                    variable = Some(Parameter::Positional(number));
                }
                Rule::sigil => {
                    variable = Some(match pair.as_str() {
                        "#" => Parameter::Count,
                        "*" => Parameter::Star,
                        "@" => Parameter::At,
                        _ => Parameter::Pid,
                    });
                }
                Rule::index => index = Some(self.nested(span, |this| this.index(pair, span))?),
                Rule::substitute | Rule::double_substitute => {
                    substitute = Some(self.nested(span, |this| this.substitute(pair))?);
                }
                _ => {
                    self.endless_group = text.starts_with("$(") && !text.ends_with(')');
                    return Err(substitutions::variable(span, self.text).into());
                }
            }
        }
        match variable {
            Some(parameter) => {
                let variable = VariableUse { span, parameter, index, substitute };
                if variable.is_all() && variable.substitute.is_some() {
                    return Err(no_default(span).into());
                }
                Ok(variable)
            }
            None => Err(substitutions::variable(span, self.text).into()),
        }
    }

    /// Builds an `index` of a variable at a span.
    fn index(&mut self, pair: Pair, variable: Span) -> Result<Index> {
        let inner = pair.into_inner().next().expect("an index is not empty");
        Ok(match inner.as_rule() {
            Rule::every => Index::All,
            _ if inner.as_str().trim_end() == "*" => {
                return Err(substitutions::variable(variable, self.text).into());
            }
            Rule::slice => {
                let (mut from, mut to, mut is_from) = (None, None, true);
                for end in inner.into_inner() {
                    match end.as_rule() {
                        Rule::dots => is_from = false,
                        _ if is_from => from = Some(self.position(end)?),
                        _ => to = Some(self.position(end)?),
                    }
                }
                Index::Slice(from, to)
            }
            _ => Index::At(self.position(inner)?),
        })
    }

    /// Builds a position in a list, which counts from 1.
    fn position(&mut self, pair: Pair) -> Result<Box<Expr>> {
        let index = self.expr(pair)?;
        let text = literal::operand(&index).unwrap_or_default();
        let slice = text.split_once(':');
        if is_name(&text) || slice.is_some() {
            let message = format!("`{text}` is not a number");
            let error = SyntaxError::new(Slug::NotANumber, index.span, message);
            return Err(Box::new(error.hint(match slice {
                Some((from, to)) => {
                    hint!("elements from a place to another: `${{l[{from}..{to}]}}`")
                }
                None => hint!("an index in a variable has a `$`: `${{l[${text}]}}`"),
            })));
        }
        if literal::expr(&index).is_some_and(|text| text == "0") {
            let message = "the first element of a list has the index 1";
            let error = SyntaxError::new(Slug::OutOfRange, index.span, message);
            return Err(error
                .hint(hint!("write `${{l[1]}}`, and `${{l[-1]}}` for the last one"))
                .into());
        }
        Ok(Box::new(index))
    }

    fn substitute(&mut self, pair: Pair) -> Result<(Substitute, Vec<WordPart>)> {
        let mut inner = pair.into_inner();
        let mark = match inner.next().map(|mark| mark.as_str()) {
            Some(":+") => Substitute::Alternative,
            Some(":?") => Substitute::Required,
            _ => Substitute::Default,
        };
        Ok((mark, self.parts(inner)?))
    }
}

fn no_default(variable: Span) -> SyntaxError {
    let message = "`[@]` and `[2..4]` stand for several elements, and have no default";
    SyntaxError::new(Slug::ListInText, variable, message)
        .hint(hint!("all elements have one: `${{l:-none}}`"))
}

/// Refuses `${name[@]}` and `${name[2..4]}` in a word with anything else.
fn check_lists(parts: &[WordPart], span: Span) -> Result<()> {
    let has_all = |part: &WordPart| match part {
        WordPart::Variable(variable) => variable.is_all() && parts.len() > 1,
        WordPart::Double(pieces) => pieces.iter().any(|piece| {
            let is_all = matches!(piece, Quoted::Variable(variable) if variable.is_all());
            is_all && (pieces.len() > 1 || parts.len() > 1)
        }),
        _ => false,
    };
    if !parts.iter().any(has_all) {
        return Ok(());
    }
    let message = "`[@]` and `[2..4]` become one word for each element, so no text can touch them";
    let error = SyntaxError::new(Slug::ListInText, span, message);
    Err(Box::new(error.hint(hint!(
        "for one text of all elements, write `\"$l\"`, with newlines between them, \
         or `\"${{join(\", \", $l)}}\"`"
    ))))
}

/// Appends quoted text after unescaping.
///
/// Line endings become newlines. A `\` before a newline joins the lines if `joins`.
fn unescape(quoted: &str, escapable: &[char], joins: bool, text: &mut String) {
    let mut rest = quoted;
    while let Some(at) = rest.find(['\\', '\r']) {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let after = &rest[1..];
        let line_end = after.trim_start_matches('\r');
        if rest.starts_with('\r') {
            // Carriage returns are removed before a newline only.
            if !line_end.starts_with('\n') {
                text.push_str(&rest[..rest.len() - line_end.len()]);
            }
            rest = line_end;
        } else if joins && line_end.starts_with('\n') {
            rest = &line_end[1..];
        } else if let Some(escaped) = after.chars().next().filter(|c| escapable.contains(c)) {
            text.push(escaped);
            rest = &after[escaped.len_utf8()..];
        } else {
            text.push('\\');
            rest = after;
        }
    }
    text.push_str(rest);
}
