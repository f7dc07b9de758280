//! Expansion of words: quoting, splitting, patterns.
//!
//! Expansion is pure and restartable. Information from outside the machine is requested by
//! returning [`Suspend::Pending`], and found among the task's answers the next time.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;

use bstr::{BStr, BString};

use super::field::{Field, Fields};
use crate::config::Config;
use crate::core::Core;
use crate::effect::Query;
use crate::event::Reply;
use crate::outcome::FailureKind;
use crate::size;
use crate::size::{MAX_VALUE_LEN, MAX_WORDS, ValueTooLong};
use crate::tasks::Task;
use crate::time::Time;
use crate::values::{List, Suspend, Value};
use ftsh_syntax::ast::{Expr, Parameter, Quoted, Substitute, VariableUse, Word, WordPart};
use ftsh_syntax::slug::Slug;

/// Use of an unquoted variable in a word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unquoted {
    /// The value is split into words.
    Split,
    /// The value is one text.
    Whole,
    /// The value is one text, and part of the pattern beside a wildcard of the word.
    Pattern,
}

/// Context for the expansion of words.
pub(crate) struct Expander<'a> {
    /// Task with the words.
    pub task: &'a Task,
    /// Settings of the run.
    pub config: &'a Config,
    /// Current moment, for `$elapsed` and `$remaining`.
    pub now: Time,
    /// Counter of handled bytes.
    pub handled: &'a Cell<usize>,
}

impl<'a> Expander<'a> {
    /// Creates an expander for the words of a task.
    pub(crate) fn new(core: &'a Core, task: &'a Task) -> Self {
        Self { task, config: core.config(), now: core.now(), handled: core.scheduler().handled() }
    }

    /// Returns true if the value on top of the task's stack matches one of the patterns.
    pub(crate) fn matches_any(&self, patterns: &[Word]) -> Result<bool, Suspend> {
        let value = self.task.stack.last().ok_or(Suspend::Broken("a value is missing"))?;
        let value = self.text(value)?;
        for pattern in patterns {
            if self.is_match(pattern, &value)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Expander<'_> {
    /// Expands a list of words, with splitting and patterns.
    pub(crate) fn words<'w>(
        &self,
        words: impl IntoIterator<Item = &'w Word>,
    ) -> Result<Vec<BString>, Suspend> {
        let mut out = Vec::new();
        self.add_words(words, &mut out)?;
        Ok(out)
    }

    /// Expands a list of words, appending to `out`.
    pub(crate) fn add_words<'w>(
        &self,
        words: impl IntoIterator<Item = &'w Word>,
        out: &mut Vec<BString>,
    ) -> Result<(), Suspend> {
        let mut length = 0;
        let mut count = |text: &BString| {
            length += text.len();
            if length > MAX_VALUE_LEN { Err(Suspend::from(ValueTooLong(length))) } else { Ok(()) }
        };
        for word in words {
            if let Some(text) = self.plain_word(word)? {
                count(&text)?;
                out.push(text);
            } else if let Some(list) = self.whole_list(word)? {
                if list.len() > MAX_WORDS {
                    return Err(size::too_many_words());
                }
                for element in list.iter() {
                    let element = size::copy(element)?;
                    count(&element)?;
                    self.handle(&element);
                    out.push(element);
                }
            } else {
                for field in self.fields(word, Unquoted::Split)? {
                    count(&field.text)?;
                    self.matches(field, out)?;
                }
            }
            if out.len() > MAX_WORDS {
                return Err(size::too_many_words());
            }
        }
        Ok(())
    }

    /// Expands a word that needs neither splitting nor patterns: literal text, or a variable with a
    /// single word. Returns `None` for other words.
    fn plain_word(&self, word: &Word) -> Result<Option<BString>, Suspend> {
        if let Some(text) = word.literal_text().filter(|text| !text.is_empty()) {
            return size::copy(text.as_bytes()).map(Some);
        }
        let [WordPart::Variable(variable)] = &word.parts[..] else { return Ok(None) };
        let text = match self.plain(variable) {
            Some(Value::Text(text)) if is_one_word(text) => size::copy(text)?,
            Some(Value::Integer(integer)) => integer.to_string().into(),
            _ => return Ok(None),
        };
        self.handle_words(&text);
        Ok(Some(text))
    }

    /// Expands the file name of a redirection, which must be a single word.
    pub(crate) fn file(&self, word: &Word) -> Result<BString, Suspend> {
        if let Some(text) = word.literal_text() {
            return size::copy(text.as_bytes());
        }
        let mut names = Vec::new();
        self.add_matches(self.fields(word, Unquoted::Whole)?, &mut names)?;
        let count = names.len();
        match names.pop().filter(|name| count == 1 && !name.is_empty()) {
            Some(name) => Ok(name),
            None if count > 1 => Err(Suspend::expression(
                Slug::WordCount,
                format!("a redirection needs one file, but the pattern matches {count}"),
            )),
            None => {
                let message = "a redirection needs a file, but its word is empty";
                Err(Suspend::Failed(FailureKind::Redirect, Slug::WordCount, message.into()))
            }
        }
    }

    /// Expands an argument that takes unquoted values whole, appending to `out`. All arguments, as
    /// in `$@`, remain separate words.
    pub(crate) fn add_whole(&self, word: &Word, out: &mut Vec<BString>) -> Result<(), Suspend> {
        if word.parts.iter().any(has_arguments) {
            return self.add_words([word], out);
        }
        self.add_matches(self.fields(word, Unquoted::Whole)?, out)
    }

    /// Returns true if a word of a `when` matches a value. Each of `"$@"`, and each element of a list,
    /// is a word of its own.
    pub(crate) fn is_match(&self, word: &Word, value: &[u8]) -> Result<bool, Suspend> {
        self.handle(value);
        if let Some(text) = word.literal_text() {
            return Ok(text.as_bytes() == value);
        }
        if let Some(list) = self.whole_list(word)? {
            return Ok(list.iter().any(|element| element == value));
        }
        let is_list = word.parts.iter().any(has_arguments);
        let unquoted = if is_list { Unquoted::Split } else { Unquoted::Pattern };
        Ok(self.fields(word, unquoted)?.any(|field| field.matches(value)))
    }

    /// Expands an argument of a function: a list, or an operand.
    pub(crate) fn argument(&self, word: &Word) -> Result<Value, Suspend> {
        match self.whole_list(word)? {
            Some(list) => Ok(Value::List(list)),
            None => self.operand(word),
        }
    }

    /// Returns the list that a word consists of: `${l[@]}`, or a variable without quotes.
    pub(crate) fn whole_list(&self, word: &Word) -> Result<Option<Arc<List>>, Suspend> {
        match word.all_of_list() {
            Some(variable) => self.list(variable).map(Some),
            None => self.list_of(&word.parts),
        }
    }

    fn list_of(&self, parts: &[WordPart]) -> Result<Option<Arc<List>>, Suspend> {
        match parts {
            [WordPart::Variable(variable)] if variable.index.is_none() => {
                match self.substituted(variable)? {
                    Some(parts) => self.list_of(parts),
                    None => self.named_list(&variable.parameter),
                }
            }
            _ => Ok(None),
        }
    }

    /// Expands an operand, without splitting or patterns.
    pub(crate) fn operand(&self, word: &Word) -> Result<Value, Suspend> {
        if let [WordPart::Variable(variable)] = &word.parts[..]
            && let Some(value @ (Value::Integer(_) | Value::Boolean(_) | Value::Text(_))) =
                self.plain(variable)
        {
            return Ok(value.clone());
        }
        if let [WordPart::Variable(variable)] = &word.parts[..]
            && let (Parameter::Positional(index), None) =
                (&variable.parameter, &variable.substitute)
            && let Some(argument) = self.task.args.get(*index as usize)
            && let Some(integer) = Value::canonical_integer(argument)
        {
            self.handle(argument);
            return Ok(Value::Integer(integer));
        }
        self.joined(word).map(Value::from)
    }

    /// Expands a word to text, unsplit.
    pub(crate) fn joined(&self, word: &Word) -> Result<BString, Suspend> {
        let mut text = BString::default();
        for (index, part) in word.parts.iter().enumerate() {
            match part {
                WordPart::Bare(bare) if index == 0 => {
                    let (home, rest) = self.tilde(bare, word.parts.len() == 1)?;
                    self.append(&mut text, &home)?;
                    text.extend_from_slice(rest.as_bytes());
                }
                WordPart::Bare(bare) | WordPart::Single(bare) => {
                    text.extend_from_slice(bare.as_bytes());
                }
                WordPart::Escaped(escaped) => {
                    text.extend_from_slice(escaped.encode_utf8(&mut [0; 4]).as_bytes());
                }
                WordPart::Double(quoted) => self.quoted(quoted, &mut text)?,
                WordPart::Variable(variable) => {
                    self.append(&mut text, &self.variable(variable)?)?;
                }
                WordPart::Call(call) => self.append(&mut text, &self.call(call)?)?,
            }
        }
        Ok(text)
    }

    fn append(&self, text: &mut BString, bytes: &[u8]) -> Result<(), Suspend> {
        self.handle(bytes);
        size::append(text, bytes)
    }

    /// Counts handled bytes.
    pub(crate) fn handle(&self, bytes: &[u8]) {
        self.handled.set(self.handled.get() + bytes.len());
    }

    /// Counts bytes to be split, because words cost more than bytes.
    fn handle_words(&self, bytes: &[u8]) {
        self.handled.set(self.handled.get() + 4 * bytes.len());
    }

    fn quoted(&self, quoted: &[Quoted], text: &mut BString) -> Result<(), Suspend> {
        for piece in quoted {
            match piece {
                Quoted::Text(literal) => text.extend_from_slice(literal.as_bytes()),
                Quoted::Variable(variable) => self.append(text, &self.variable(variable)?)?,
                Quoted::Call(call) => self.append(text, &self.call(call)?)?,
            }
        }
        Ok(())
    }

    /// Splits a word into fields. A word whose values are not split is one field.
    fn fields(
        &self,
        word: &Word,
        unquoted: Unquoted,
    ) -> Result<impl Iterator<Item = Field> + use<>, Suspend> {
        let is_pattern = |part: &WordPart| matches!(part, WordPart::Bare(bare) if bare.contains(['*', '?', '[']));
        let is_pattern = word.parts.iter().any(is_pattern);
        let mut fields = Fields::new(is_pattern);
        let splits = unquoted == Unquoted::Split;
        for (index, part) in word.parts.iter().enumerate() {
            match part {
                WordPart::Bare(bare) if index == 0 => {
                    let (home, rest) = self.tilde(bare, word.parts.len() == 1)?;
                    if !home.is_empty() {
                        fields.quoted(&home)?;
                    }
                    fields.bare(rest);
                }
                WordPart::Bare(bare) => fields.bare(bare),
                WordPart::Escaped(escaped) => {
                    fields.quoted(escaped.encode_utf8(&mut [0; 4]).as_bytes())?;
                }
                WordPart::Single(text) => fields.quoted(text.as_bytes())?,
                WordPart::Double(quoted) if splits => self.quoted_fields(quoted, &mut fields)?,
                WordPart::Double(quoted) => {
                    let mut text = BString::default();
                    self.quoted(quoted, &mut text)?;
                    fields.quoted(&text)?;
                }
                WordPart::Variable(variable) if splits => self.split(variable, &mut fields)?,
                WordPart::Variable(variable) => {
                    let text = self.variable(variable)?;
                    self.handle(&text);
                    match unquoted {
                        Unquoted::Pattern => fields.active(&text)?,
                        Unquoted::Split | Unquoted::Whole => fields.quoted(&text)?,
                    }
                }
                WordPart::Call(call) => self.called_field(call, &mut fields)?,
            }
        }
        Ok(fields.finish())
    }

    fn quoted_fields(&self, quoted: &[Quoted], fields: &mut Fields) -> Result<(), Suspend> {
        // `"$@"` alone without arguments is no word at all.
        let only_args =
            matches!(quoted, [Quoted::Variable(variable)] if variable.parameter == Parameter::At);
        if !only_args {
            fields.quoted(b"")?;
        }
        for piece in quoted {
            match piece {
                Quoted::Text(text) => fields.quoted(text.as_bytes())?,
                Quoted::Variable(variable)
                    if variable.parameter == Parameter::At && variable.substitute.is_none() =>
                {
                    for (index, arg) in self.task.args.iter().skip(1).enumerate() {
                        if index > 0 {
                            fields.end();
                        }
                        self.handle(arg);
                        fields.quoted(arg)?;
                    }
                }
                Quoted::Variable(variable) => {
                    let text = self.variable(variable)?;
                    self.handle(&text);
                    fields.quoted(&text)?;
                }
                Quoted::Call(call) => self.called_field(call, fields)?,
            }
        }
        Ok(())
    }

    /// Returns the text of a call in a word.
    fn call(&self, call: &Expr) -> Result<Cow<'_, BStr>, Suspend> {
        match self.task.call_value(call.span.start) {
            Some(value) => self.text(value),
            None => Err(Suspend::Call(call.span.start)),
        }
    }

    fn called_field(&self, call: &Expr, fields: &mut Fields) -> Result<(), Suspend> {
        let text = self.call(call)?;
        self.handle(&text);
        fields.quoted(&text)
    }

    fn split(&self, variable: &VariableUse, fields: &mut Fields) -> Result<(), Suspend> {
        if let (Parameter::At | Parameter::Star, None) = (&variable.parameter, &variable.substitute)
        {
            for (index, arg) in self.task.args.iter().skip(1).enumerate() {
                if index > 0 {
                    fields.end();
                }
                self.handle(arg);
                fields.split(arg)?;
            }
            return Ok(());
        }
        // Quotes in a substitute are respected: `${a:-"x y"}` is a single word.
        if let Some(parts) = self.substituted(variable)? {
            return self.split_parts(parts, fields);
        }
        if variable.index.is_none() && self.named_list(&variable.parameter)?.is_some() {
            return Err(Suspend::expression(
                Slug::ListInText,
                "a list becomes one word for each element, so no text can touch it; in double \
                 quotes the list is one text",
            ));
        }
        let text = self.variable(variable)?;
        if variable.index.is_some() {
            self.handle(&text);
            return fields.quoted(&text);
        }
        self.handle_words(&text);
        size::room_for_words(&text)?;
        fields.split(&text)
    }

    /// Returns the word of `${name:-word}` or `${name:+word}`, or the command of `$(name)`, if it
    /// takes the place of the variable.
    fn substituted<'w>(
        &self,
        variable: &'w VariableUse,
    ) -> Result<Option<&'w [WordPart]>, Suspend> {
        let Some((substitute, parts)) = &variable.substitute else { return Ok(None) };
        let value = self.value(variable)?;
        let is_unset = value.is_none();
        let set = value.is_some_and(|value| !value.is_empty());
        let is_used = match substitute {
            Substitute::Command => is_unset && !self.config.unset_is_empty,
            Substitute::Default => !set,
            Substitute::Alternative => set,
            Substitute::Required => false,
        };
        Ok(is_used.then_some(parts))
    }

    fn split_parts(&self, parts: &[WordPart], fields: &mut Fields) -> Result<(), Suspend> {
        for part in parts {
            match part {
                WordPart::Bare(bare) => fields.split(bare.as_bytes())?,
                WordPart::Escaped(escaped) => {
                    fields.quoted(escaped.encode_utf8(&mut [0; 4]).as_bytes())?;
                }
                WordPart::Single(text) => fields.quoted(text.as_bytes())?,
                WordPart::Double(quoted) => self.quoted_fields(quoted, fields)?,
                WordPart::Variable(variable) => self.split(variable, fields)?,
                WordPart::Call(call) => self.called_field(call, fields)?,
            }
        }
        Ok(())
    }

    fn add_matches(
        &self,
        fields: impl Iterator<Item = Field>,
        out: &mut Vec<BString>,
    ) -> Result<(), Suspend> {
        for field in fields {
            self.matches(field, out)?;
        }
        Ok(())
    }

    fn matches(&self, field: Field, out: &mut Vec<BString>) -> Result<(), Suspend> {
        let Some(pattern) = field.pattern() else {
            out.push(field.text);
            return Ok(());
        };
        // A program would take the name `-x` for an option.
        let may_be_option = matches!(pattern.first(), Some(b'*' | b'?' | b'['));
        let query = Query::Glob(pattern);
        let mut answers = self.task.answers().iter();
        match answers.find(|(asked, _)| *asked == query) {
            Some((_, Reply::Words(words))) if !words.is_empty() => {
                out.extend(words.iter().map(|word| match word.first() {
                    Some(b'-') if may_be_option => {
                        BString::from([&b"./"[..], word.as_slice()].concat())
                    }
                    _ => word.clone(),
                }));
                Ok(())
            }
            Some(_) => Err(Suspend::expression(
                Slug::NoFile,
                format!(
                    "no file matches `{0}`; `list name in files(\"{0}\")` may be empty, and in quotes \
                     `{0}` is no pattern",
                    field.text
                ),
            )),
            None => Err(Suspend::Pending(query)),
        }
    }
}

/// Returns true if splitting would not change a text.
fn is_one_word(text: &[u8]) -> bool {
    !text.is_empty() && !text.iter().any(u8::is_ascii_whitespace)
}

/// Returns true if a part of a word has all arguments, as `$@` and `$*` do.
fn has_arguments(part: &WordPart) -> bool {
    let is_all = |variable: &VariableUse| {
        let is_many = matches!(variable.parameter, Parameter::At | Parameter::Star);
        (is_many || variable.is_all()) && variable.substitute.is_none()
    };
    match part {
        WordPart::Variable(variable) => is_all(variable),
        WordPart::Double(quoted) => quoted.iter().any(|piece| match piece {
            Quoted::Variable(variable) => is_all(variable),
            Quoted::Text(_) | Quoted::Call(_) => false,
        }),
        WordPart::Bare(_) | WordPart::Escaped(_) | WordPart::Single(_) | WordPart::Call(_) => false,
    }
}
