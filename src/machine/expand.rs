//! From words to text: variables, quoting, splitting, patterns.
//!
//! Expanding is pure and starts over: what only the world knows is asked for by stopping with
//! [`Halt::Need`], and found among the task's answers the next time.

use std::borrow::Cow;
use std::cell::Cell;

use bstr::{BStr, BString, ByteSlice};

use super::config::Config;
use super::effect::Query;
use super::event::Reply;
use super::outcome::FailureKind;
use super::size::{self, LONGEST, MOST_WORDS};
use super::task::Task;
use super::time::Time;
use super::value::Value;
use crate::syntax::ast::{Parameter, Part, Quoted, Substitute, Variable, Word};

/// Why something could not be computed yet, or at all.
#[derive(Debug)]
pub enum Halt {
    /// Find this out and start over.
    Need(Query),
    /// It fails.
    Fail(FailureKind, String),
    /// The machine itself has gone wrong: what doesn't hold.
    Broken(&'static str),
}

impl Halt {
    /// An expression or a word without a value.
    pub fn expression(message: impl Into<String>) -> Self {
        Self::Fail(FailureKind::Expression, message.into())
    }
}

/// What words are expanded in.
pub struct Expander<'a> {
    /// The task that says them.
    pub task: &'a Task,
    /// The run's settings.
    pub config: &'a Config,
    /// For `$elapsed` and `$remaining`.
    pub now: Time,
    /// Adds up how many bytes are handled.
    pub handled: &'a Cell<usize>,
}

impl<'a> Expander<'a> {
    /// All the words of a list of words, split and with patterns expanded.
    pub fn words<'w>(
        &self,
        words: impl IntoIterator<Item = &'w Word>,
    ) -> Result<Vec<BString>, Halt> {
        let mut out = Vec::new();
        let mut length = 0;
        for word in words {
            for field in self.fields(word)? {
                length += field.text.len();
                if length > LONGEST {
                    return Err(Halt::expression(size::too_long(length)));
                }
                self.matches(field, &mut out)?;
            }
            if out.len() > MOST_WORDS {
                return Err(size::too_many_words());
            }
        }
        Ok(out)
    }

    /// The one file that a redirection names.
    pub fn file(&self, word: &Word) -> Result<BString, Halt> {
        one(self.words([word])?)
    }

    /// The one word that a word is, without patterns.
    pub fn single(&self, word: &Word) -> Result<BString, Halt> {
        one(self.fields(word)?.into_iter().map(|field| field.text).collect())
    }

    /// The one value that a word is.
    pub fn single_value(&self, word: &Word) -> Result<Value, Halt> {
        if let [Part::Variable(variable)] = &word.parts[..]
            && let Some(value @ (Value::Integer(_) | Value::Boolean(_))) = self.plain(variable)
        {
            return Ok(value.clone());
        }
        self.single(word).map(Value::from)
    }

    /// The value of an operand: never split, no patterns.
    pub fn operand(&self, word: &Word) -> Result<Value, Halt> {
        if let [Part::Variable(variable)] = &word.parts[..]
            && let Some(value @ (Value::Integer(_) | Value::Boolean(_) | Value::Text(_))) =
                self.plain(variable)
        {
            return Ok(value.clone());
        }
        self.joined(word).map(Value::from)
    }

    /// The text of a word, unsplit.
    pub fn joined(&self, word: &Word) -> Result<BString, Halt> {
        let mut text = BString::default();
        for (index, part) in word.parts.iter().enumerate() {
            match part {
                Part::Bare(bare) if index == 0 => {
                    let (home, rest) = self.tilde(bare, word.parts.len() == 1)?;
                    self.append(&mut text, &home)?;
                    text.extend_from_slice(rest.as_bytes());
                }
                Part::Bare(bare) | Part::Single(bare) => text.extend_from_slice(bare.as_bytes()),
                Part::Escaped(escaped) => {
                    text.extend_from_slice(escaped.encode_utf8(&mut [0; 4]).as_bytes());
                }
                Part::Double(quoted) => self.quoted(quoted, &mut text)?,
                Part::Variable(variable) => self.append(&mut text, &self.variable(variable)?)?,
            }
        }
        Ok(text)
    }

    fn append(&self, text: &mut BString, bytes: &[u8]) -> Result<(), Halt> {
        self.handle(bytes);
        size::append(text, bytes)
    }

    /// Takes note that these bytes were handled.
    pub fn handle(&self, bytes: &[u8]) {
        self.handled.set(self.handled.get() + bytes.len());
    }

    fn quoted(&self, quoted: &[Quoted], text: &mut BString) -> Result<(), Halt> {
        for piece in quoted {
            match piece {
                Quoted::Text(literal) => text.extend_from_slice(literal.as_bytes()),
                Quoted::Variable(variable) => self.append(text, &self.variable(variable)?)?,
            }
        }
        Ok(())
    }

    /// The value of a variable used without a substitute, as it is.
    pub fn plain(&self, variable: &Variable) -> Option<&'a Value> {
        match (&variable.parameter, &variable.substitute) {
            (Parameter::Named(name), None) => {
                let variable = self.task.variables.get(name)?;
                let shadowed = variable.inherited && self.special(name).is_some();
                (!shadowed).then_some(&variable.value)
            }
            _ => None,
        }
    }

    /// The value of a variable as one text, with its substitute.
    pub fn variable(&self, variable: &Variable) -> Result<Cow<'a, BStr>, Halt> {
        let value = self.parameter(&variable.parameter)?;
        let set = value.as_ref().is_some_and(|value| !value.is_empty());
        match (&variable.substitute, value) {
            (Some((Substitute::Default, parts)), _) if !set => self.parts(parts),
            (Some((Substitute::Alternative, parts)), _) if set => self.parts(parts),
            (Some((Substitute::Alternative, _)), _) => Ok(Cow::default()),
            (_, Some(value)) => Ok(value),
            (_, None) => self.unset(&variable.parameter),
        }
    }

    fn parts(&self, parts: &[Part]) -> Result<Cow<'a, BStr>, Halt> {
        let word = Word { span: crate::syntax::Span::default(), parts: parts.to_vec() };
        self.joined(&word).map(own)
    }

    fn unset(&self, parameter: &Parameter) -> Result<Cow<'a, BStr>, Halt> {
        match parameter {
            Parameter::Named(name) if !self.config.unset_is_empty => {
                Err(Halt::expression(format!(
                    "the variable `{name}` is not set (write ${{{name}:-}} if it may be empty)"
                )))
            }
            _ => Ok(Cow::default()),
        }
    }

    /// The value of a parameter; none if it is not set.
    fn parameter(&self, parameter: &Parameter) -> Result<Option<Cow<'a, BStr>>, Halt> {
        let args = &self.task.args;
        let number = |number: String| Some(own(number.into()));
        Ok(match parameter {
            Parameter::Named(name) => return self.named(name),
            Parameter::Positional(index) => {
                args.get(*index as usize).map(|arg| Cow::Borrowed(arg.as_bstr()))
            }
            Parameter::Count => number(args.len().saturating_sub(1).to_string()),
            Parameter::Star | Parameter::At => Some(own(size::join(args.iter().skip(1), b"")?)),
            Parameter::Pid => number(self.config.pid.to_string()),
        })
    }

    fn named(&self, name: &str) -> Result<Option<Cow<'a, BStr>>, Halt> {
        match self.task.variables.get(name) {
            Some(variable) if !variable.inherited => {
                let text = self.text(&variable.value)?;
                if matches!(variable.value, Value::Buffer(_)) {
                    // Now is when it becomes known what a command wrote.
                    self.task.variables.secrets.learn(name, &text);
                }
                Ok(Some(text))
            }
            Some(variable) => match self.special(name) {
                Some(special) => Ok(Some(own(special))),
                None => self.text(&variable.value).map(Some),
            },
            None => Ok(self.special(name).map(own)),
        }
    }

    /// What a value reads as: exactly its bytes, but for the line end after what a command wrote.
    pub fn text<'v>(&self, value: &'v Value) -> Result<Cow<'v, BStr>, Halt>
    where
        'a: 'v,
    {
        if let Value::Buffer(buffer) = value {
            let written = self.answer(Query::Buffer(buffer.id()))?.as_bytes();
            let text = match written.strip_suffix(b"\n") {
                Some(line) => line.strip_suffix(b"\r").unwrap_or(line),
                None => written,
            };
            if text.len() > LONGEST {
                return Err(Halt::expression(size::too_long(text.len())));
            }
            return Ok(Cow::Borrowed(text.as_bstr()));
        }
        match value.too_long() {
            Some(error) => Err(Halt::expression(error)),
            None => Ok(value.text().unwrap_or_default()),
        }
    }

    fn answer(&self, query: Query) -> Result<&'a BStr, Halt> {
        let mut answers = self.task.answers.iter();
        match answers.find(|(asked, _)| *asked == query) {
            Some((_, Reply::Text(text))) => Ok(text.as_bstr()),
            Some(_) => Ok(BStr::new("")),
            None => Err(Halt::Need(query)),
        }
    }

    /// What `$attempt`, `$error` and their like tell, where they do.
    fn special(&self, name: &str) -> Option<BString> {
        if let Some(field) = name.strip_prefix("error") {
            let failure = self.task.caught()?;
            return Some(match field {
                "" => failure.summary().into(),
                "_kind" => failure.kind.name().into(),
                "_code" => failure.code.to_string().into(),
                "_command" => failure.command.as_str().into(),
                "_line" => failure.line.to_string().into(),
                _ => return None,
            });
        }
        let attempt = self.task.attempt()?;
        Some(match name {
            "attempt" => attempt.number.to_string().into(),
            "elapsed" => (self.now - attempt.started).as_secs().to_string().into(),
            "remaining" => match attempt.deadline {
                Some(deadline) => (deadline - self.now).as_secs().to_string().into(),
                None => BString::default(),
            },
            _ => return None,
        })
    }

    /// The home directory that a leading tilde stands for, and the text after it.
    fn tilde<'t>(&self, bare: &'t str, whole: bool) -> Result<(BString, &'t str), Halt> {
        let Some(rest) = bare.strip_prefix('~') else { return Ok((BString::default(), bare)) };
        let user = match rest.split_once('/') {
            Some((user, _)) => user,
            None if whole => rest,
            None => return Ok((BString::default(), bare)),
        };
        let home = if user.is_empty() {
            let unset = || Halt::expression("`~`: the variable `HOME` is not set");
            self.named("HOME")?.ok_or_else(unset)?.into_owned()
        } else {
            self.answer(Query::Home(user.into()))?.to_owned()
        };
        Ok((home, &rest[user.len()..]))
    }

    fn fields(&self, word: &Word) -> Result<Vec<Field>, Halt> {
        let is_pattern =
            |part: &Part| matches!(part, Part::Bare(bare) if bare.contains(['*', '?', '[']));
        let is_pattern = word.parts.iter().any(is_pattern);
        let mut fields = Fields { is_pattern, ..Fields::default() };
        for (index, part) in word.parts.iter().enumerate() {
            match part {
                Part::Bare(bare) if index == 0 => {
                    let (home, rest) = self.tilde(bare, word.parts.len() == 1)?;
                    if !home.is_empty() {
                        fields.quoted(&home)?;
                    }
                    fields.bare(rest);
                }
                Part::Bare(bare) => fields.bare(bare),
                Part::Escaped(escaped) => {
                    fields.quoted(escaped.encode_utf8(&mut [0; 4]).as_bytes())?;
                }
                Part::Single(text) => fields.quoted(text.as_bytes())?,
                Part::Double(quoted) => self.quoted_fields(quoted, &mut fields)?,
                Part::Variable(variable) => self.split(variable, &mut fields)?,
            }
        }
        Ok(fields.finish())
    }

    fn quoted_fields(&self, quoted: &[Quoted], fields: &mut Fields) -> Result<(), Halt> {
        // "$@" alone with no arguments is no word at all.
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
            }
        }
        Ok(())
    }

    fn split(&self, variable: &Variable, fields: &mut Fields) -> Result<(), Halt> {
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
        // The quotes of a substitute hold: ${a:-"x y"} is one word.
        if let Some((substitute, parts)) = &variable.substitute {
            let value = self.parameter(&variable.parameter)?;
            let set = value.is_some_and(|value| !value.is_empty());
            if set == (*substitute == Substitute::Alternative) {
                return self.split_parts(parts, fields);
            }
        }
        let text = self.variable(variable)?;
        // Words cost more than bytes.
        self.handled.set(self.handled.get() + 4 * text.len());
        size::room_for_words(&text)?;
        fields.split(&text)
    }

    fn split_parts(&self, parts: &[Part], fields: &mut Fields) -> Result<(), Halt> {
        for part in parts {
            match part {
                Part::Bare(bare) => fields.split(bare.as_bytes())?,
                Part::Escaped(escaped) => {
                    fields.quoted(escaped.encode_utf8(&mut [0; 4]).as_bytes())?;
                }
                Part::Single(text) => fields.quoted(text.as_bytes())?,
                Part::Double(quoted) => self.quoted_fields(quoted, fields)?,
                Part::Variable(variable) => self.split(variable, fields)?,
            }
        }
        Ok(())
    }

    fn matches(&self, field: Field, out: &mut Vec<BString>) -> Result<(), Halt> {
        let Some(pattern) = field.pattern() else {
            out.push(field.text);
            return Ok(());
        };
        let query = Query::Glob(pattern);
        let mut answers = self.task.answers.iter();
        match answers.find(|(asked, _)| *asked == query) {
            Some((_, Reply::Words(words))) if !words.is_empty() => {
                out.extend(words.iter().cloned());
                Ok(())
            }
            Some(_) => Err(Halt::expression(format!("no file matches `{}`", field.text))),
            None => Err(Halt::Need(query)),
        }
    }
}

fn one(mut words: Vec<BString>) -> Result<BString, Halt> {
    match (words.pop(), words.len()) {
        (Some(word), 0) => Ok(word),
        (None, _) => Err(Halt::expression("exactly one word is needed here, but there is none")),
        (_, more) => {
            let count = more + 1;
            Err(Halt::expression(format!("exactly one word is needed here, but there are {count}")))
        }
    }
}

fn own<'a>(text: BString) -> Cow<'a, BStr> {
    Cow::Owned(text)
}

/// A word in the making.
#[derive(Default)]
struct Field {
    text: BString,
    /// The text with everything escaped that isn't a pattern, if it has to be known.
    pattern: BString,
    /// Whether `*`, `?` or `[…]` stand unquoted in it.
    special: bool,
}

impl Field {
    fn pattern(&self) -> Option<BString> {
        self.special.then(|| self.pattern.clone())
    }
}

#[derive(Default)]
struct Fields {
    /// Whether there may be a pattern.
    is_pattern: bool,
    done: Vec<Field>,
    current: Option<Field>,
}

impl Fields {
    fn quoted(&mut self, text: &[u8]) -> Result<(), Halt> {
        let field = self.current.get_or_insert_default();
        size::append(&mut field.text, text)?;
        if self.is_pattern {
            let escaped = text.iter().filter(|byte| b"*?[]\\".contains(byte)).count();
            if !size::is_to_be_had(field.pattern.len() + text.len() + escaped) {
                return Err(size::none(text.len()));
            }
            for byte in text {
                if b"*?[]\\".contains(byte) {
                    field.pattern.push(b'\\');
                }
                field.pattern.push(*byte);
            }
        }
        Ok(())
    }

    fn bare(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let field = self.current.get_or_insert_default();
        field.text.extend_from_slice(text.as_bytes());
        for (index, byte) in text.bytes().enumerate() {
            match byte {
                b'*' | b'?' => field.special = true,
                // A bracket that isn't closed in the script's own text is an ordinary character.
                b'[' if text[index..].find(']').is_some_and(|close| close > 1) => {
                    field.special = true;
                }
                b'[' => field.pattern.push(b'\\'),
                _ => {}
            }
            field.pattern.push(byte);
        }
    }

    fn split(&mut self, text: &[u8]) -> Result<(), Halt> {
        if text.first().is_some_and(u8::is_ascii_whitespace) {
            self.end();
        }
        for (index, word) in text.fields_with(|c| c.is_ascii_whitespace()).enumerate() {
            if index > 0 {
                self.end();
            }
            self.quoted(word)?;
        }
        if text.last().is_some_and(u8::is_ascii_whitespace) {
            self.end();
        }
        Ok(())
    }

    fn end(&mut self) {
        self.done.extend(self.current.take());
    }

    fn finish(mut self) -> Vec<Field> {
        self.end();
        self.done
    }
}
