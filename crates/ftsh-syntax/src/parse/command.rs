//! Commands and redirections.

use smallvec::SmallVec;

use super::builder::Builder;
use super::meant::NameCounts;
use super::{Pair, Result, Rule, bashisms, literal, meant, modifier};
use crate::ast::{Mode, Name, Redirect, RedirectionTarget, Simple, Word, WordPart};
use crate::error::SyntaxError;
use crate::hint::{Hint, hint};
use crate::slug::Slug;
use crate::span::Span;
use crate::vocabulary::is_name;

impl Builder<'_> {
    /// Builds a `command` or an `inner_command`.
    pub(super) fn simple(&mut self, pair: Pair) -> Result<Simple> {
        let is_inner = pair.as_rule() == Rule::inner_command;
        let mut simple = self.unchecked(pair)?;
        bashisms::drop_option_of_read(&mut simple);
        // In a condition these words are operators of other languages.
        let first = simple.words.first().and_then(literal::bare);
        meant::check(&simple, &self.functions, self.text)?;
        if !is_inner || !matches!(first, Some("not" | "and" | "or")) {
            bashisms::command(&simple, &self.functions, self.text)?;
        }
        let names = || self.names.get_or_init(|| NameCounts::of(self.text));
        meant::check_assignments(&simple, &self.functions, self.text, names)?;
        Ok(simple)
    }

    /// Builds a command that may be an error.
    pub(super) fn unchecked(&mut self, pair: Pair) -> Result<Simple> {
        let span = self.span(&pair);
        // In a condition, a joined word could become an operator.
        let is_inner = pair.as_rule() == Rule::inner_command;
        let mut simple = Simple {
            span,
            assignments: Vec::new(),
            modifiers: Vec::new(),
            words: Vec::new(),
            redirects: Vec::new(),
        };
        for pair in pair.into_inner() {
            match pair.as_rule() {
                Rule::environment => {
                    simple.assignments.push(self.environment(pair)?);
                }
                Rule::redirection | Rule::inner_redirection => {
                    check_descriptor(simple.words.last(), &pair, self.span(&pair))?;
                    simple.redirects.push(self.redirect(pair)?);
                }
                _ => simple.words.push(self.word(pair)?),
            }
        }
        if simple.assignments.is_empty() && !is_inner {
            simple.words.iter_mut().skip(1).for_each(join);
        }
        modifier::take(&mut simple, &self.functions)?;
        Ok(simple)
    }

    fn environment(&mut self, pair: Pair) -> Result<(Name, Word)> {
        let end = self.span(&pair).end;
        let mut inner = pair.into_inner();
        let name = inner.next().expect("an assignment begins with a name");
        let name = Self::name(&name);
        let mut word = match inner.next() {
            Some(word) => self.word(word)?,
            None => Word { span: Span::new(end, end), parts: SmallVec::new() },
        };
        if word.parts.is_empty() {
            word.parts.push(WordPart::Single(String::new()));
        }
        Ok((name, word))
    }

    /// Builds a `redirection` or an `inner_redirection`.
    pub(super) fn redirect(&mut self, pair: Pair) -> Result<Redirect> {
        let span = self.span(&pair);
        let mut inner = pair.into_inner().peekable();
        let descriptor = inner
            .next_if(|pair| pair.as_rule() == Rule::descriptor)
            .and_then(|pair| pair.as_str().parse().ok());
        let operator = inner.next().expect("a redirection has an operator").as_str();
        let word = inner.next().expect("a redirection has a target");
        let word = self.word(word)?;
        let refuse = |slug: Slug, message: &str, hint: Hint| {
            Err(Box::new(SyntaxError::new(slug, span, message.to_owned()).hint(hint)))
        };

        let adjacent = self.text[span.start..word.span.start].ends_with(operator);
        if matches!(operator, "<" | ">")
            && adjacent
            && matches!(word.parts.first(), Some(WordPart::Bare(text)) if text.starts_with('('))
        {
            return Err(bashisms::process_substitution(span, operator).into());
        }

        let with_errors = operator.contains('&') && operator != "<&";
        let mode = match operator.trim_matches(['-', '&']) {
            ">>" => Mode::Append,
            ">" => Mode::Write,
            _ => Mode::Read,
        };
        if operator == "-<<" {
            return refuse(
                Slug::Unexpected,
                "there is no `-<<`",
                hint!("write `<<WORD`, or `<<-WORD` for indented lines"),
            );
        }
        if matches!(operator, ">&" | ">>&" | "<&")
            && let Some(text) = literal::bare(&word)
        {
            if let &[digit @ b'0'..=b'9'] = text.as_bytes() {
                let target = RedirectionTarget::Descriptor(digit - b'0');
                let descriptor = descriptor.unwrap_or(u8::from(mode != Mode::Read));
                return Ok(Redirect { span, descriptor, mode, with_errors: false, target });
            }
            if text.bytes().all(|byte| byte.is_ascii_digit()) {
                return refuse(
                    Slug::Descriptor,
                    "descriptors are the digits 0 to 9",
                    hint!("to write to a file of this name, `{operator} ./{text}`"),
                );
            }
            if text == "-" {
                return refuse(
                    Slug::CloseDescriptor,
                    "a descriptor can't be closed",
                    hint!("to discard output, write `> /dev/null`"),
                );
            }
        }
        if operator == "<&" || with_errors && descriptor.is_some() {
            return refuse(
                Slug::Descriptor,
                &format!("after a digit, `{operator}` takes another descriptor: a digit"),
                hint!("`2>&1` sends errors where output goes, `>& file` sends both to a file"),
            );
        }
        let target = match operator {
            "<<<" => RedirectionTarget::HereString(word),
            "<<" | "<<-" => self.here_document(span, &word, operator == "<<-")?,
            _ if operator.starts_with('-') => RedirectionTarget::Variable(word),
            _ => RedirectionTarget::File(word),
        };
        let descriptor = descriptor.unwrap_or(u8::from(mode != Mode::Read));
        Ok(Redirect { span, descriptor, mode, with_errors, target })
    }
}

/// Refuses a word directly before `<` or `>` that is a descriptor in other shells, and would be an
/// argument here: `10> f`, `{fd}> f`.
fn check_descriptor(word: Option<&Word>, redirection: &Pair, span: Span) -> Result<()> {
    let Some(word) = word.filter(|word| word.span.end == span.start) else { return Ok(()) };
    let Some(text) = literal::bare(word) else { return Ok(()) };
    let named = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    let is_number = text.len() > 1 && text.bytes().all(|byte| byte.is_ascii_digit());
    if !redirection.as_str().starts_with(['<', '>']) || !is_number && !named.is_some_and(is_name) {
        return Ok(());
    }
    let message = "descriptors are the digits 0 to 9";
    let error = SyntaxError::new(Slug::Descriptor, word.span, message);
    Err(Box::new(error.hint(hint!(
        "`2> f` redirects the descriptor 2; a space makes `{text}` an argument: `{text} > f`"
    ))))
}

/// Merges parts from joined lines, in the arguments of plain commands only.
///
/// Elsewhere a keyword, an assignment or an operator could arise.
fn join(word: &mut Word) {
    word.parts.dedup_by(|part, before| match (before, part) {
        (WordPart::Bare(before), WordPart::Bare(text)) if !before.ends_with('$') => {
            before.push_str(text);
            true
        }
        _ => false,
    });
}
