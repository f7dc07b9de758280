//! The functions of the language: what each makes of its values.

use std::borrow::Cow;
use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice};

use crate::Machine;
use crate::effect::Query;
use crate::eval::operators::regex;
use crate::eval::replacing::Replacing;
use crate::event::Reply;
use crate::tasks::flow::{Flow, Step};
use crate::tasks::halt::Halt;
use crate::tasks::task::Task;
use crate::values::pieces::Pieces;
use crate::values::size;
use crate::values::subject::Subject;
use crate::values::value::Value;
use crate::values::value_error::ValueError;
use ftsh_syntax::nearest::nearest;
use ftsh_syntax::vocabulary::{FUNCTIONS, function};

impl Machine {
    /// Calls a function of the language, whose arguments are on the stack.
    pub(crate) fn function(&mut self, task: &mut Task, name: &str, count: usize) -> Step {
        let Some(function) = function(name) else { return Err(self.undefined(name)) };
        if function.parameters.len() != count {
            return Err(Halt::expression(function.wrong(count)));
        }
        let start = task.stack.len().saturating_sub(count);
        let Some(value) = self.value_of(task, name, start)? else { return Ok(Flow::Continue) };
        task.stack.truncate(start);
        task.stack.push(value);
        task.advance();
        Ok(Flow::Continue)
    }

    /// A function that is nowhere.
    pub(crate) fn undefined(&self, name: &str) -> Halt {
        let known = self.functions.keys().map(|name| &**name);
        let meant = nearest(name, known.chain(FUNCTIONS.iter().map(|function| function.name)));
        let meant = meant.map(|meant| format!(", did you mean `{meant}`?")).unwrap_or_default();
        Halt::expression(format!("the function `{name}` is not defined{meant}"))
    }

    /// The value of a call whose arguments begin at this place of the stack; none if it takes longer.
    fn value_of(
        &mut self,
        task: &mut Task,
        name: &str,
        start: usize,
    ) -> Result<Option<Value>, Halt> {
        let text = |at: usize| self.argument(task, start + at);
        Ok(Some(match name {
            "now" => match Self::answer(task, &Query::Clock) {
                Some(Reply::Text(now)) => Value::from(now.clone()),
                _ => return Err(Halt::Need(Query::Clock)),
            },
            "random" => {
                let bound = |at: usize| task.stack[start + at].integer().map_err(Halt::expression);
                let (from, to) = (bound(0)?, bound(1)?);
                if from > to {
                    return Err(Halt::expression(ValueError::NoneBetween(from, to)));
                }
                Value::Integer(self.draw(from, to))
            }
            "replace" => {
                let progress = task.progress.as_ref();
                if progress.is_none_or(|progress| progress.replacing.is_none()) {
                    let pattern = text(1)?;
                    let regex = regex(pattern.as_bstr()).map_err(Halt::expression)?;
                    let subject =
                        Subject::new(text(0)?, pattern.as_bstr()).map_err(Halt::expression)?;
                    let replacing = Replacing::new(subject, regex, &text(2)?);
                    task.progress().replacing = Some(replacing.map_err(Halt::expression)?);
                }
                let Some(replacing) = &mut task.progress().replacing else { return Ok(None) };
                let (handled, done) = replacing.go_on();
                self.handled.set(self.handled.get() + handled);
                return Ok(done?.map(Value::from));
            }
            "lines" => Value::Split(Pieces::lines(text(0)?)),
            "split" => Value::Split(Pieces::split(text(0)?, &text(1)?).map_err(Halt::expression)?),
            "match" => Value::from(first_match(&text(0)?, text(1)?.as_bstr())?),
            "length" => {
                let text = text(0)?;
                let length = text.to_str().map_or(text.len(), |text| text.chars().count());
                Value::Integer(length as i64)
            }
            "lower" => Value::from(cased(&text(0)?, str::to_lowercase)?),
            "upper" => Value::from(cased(&text(0)?, str::to_uppercase)?),
            "trim" => Value::from(size::copy(trim(&text(0)?))?),
            "basename" => Value::from(size::copy(basename(&text(0)?))?),
            "dirname" => Value::from(size::copy(dirname(&text(0)?))?),
            "stem" => Value::from(size::copy(stem_and_suffix(&text(0)?).0)?),
            "suffix" => Value::from(size::copy(stem_and_suffix(&text(0)?).1)?),
            _ => return Err(Halt::Broken("a function of the language does nothing")),
        }))
    }

    /// An argument as bytes, which are copied only if they have to be.
    fn argument(&self, task: &Task, at: usize) -> Result<Arc<BString>, Halt> {
        let value = &task.stack[at];
        let text = self.expander(task).text(value)?;
        self.handled.set(self.handled.get() + text.len());
        match (value, text) {
            (Value::Text(text), _) => Ok(Arc::clone(text)),
            (_, Cow::Owned(text)) => Ok(Arc::new(text)),
            (_, Cow::Borrowed(text)) => Ok(Arc::new(size::copy(text)?)),
        }
    }
}

/// The first match, or its first group.
fn first_match(text: &[u8], pattern: &BStr) -> Result<BString, Halt> {
    let regex = regex(pattern).map_err(Halt::expression)?;
    let subject = Subject::new(text, pattern).map_err(Halt::expression)?;
    let group = usize::from(regex.captures_len() > 1);
    match regex.captures(subject.searched()) {
        Some(captures) => {
            let found = captures.get(group).map_or(0..0, |found| found.range());
            size::copy(subject.original(found))
        }
        None => Err(Halt::expression(ValueError::NoMatch(pattern.to_owned()))),
    }
}

/// Changes what is UTF-8, and leaves other bytes.
fn cased(text: &[u8], change: fn(&str) -> String) -> Result<BString, Halt> {
    // A few characters become longer.
    if !size::is_to_be_had(2 * text.len()) {
        return Err(size::none(text.len()));
    }
    let mut changed = BString::default();
    for chunk in text.utf8_chunks() {
        changed.extend_from_slice(change(chunk.valid()).as_bytes());
        changed.extend_from_slice(chunk.invalid());
    }
    if changed.len() > size::LONGEST {
        return Err(Halt::expression(size::TooLong(changed.len())));
    }
    Ok(changed)
}

fn trim(text: &[u8]) -> &[u8] {
    match text.to_str() {
        Ok(text) => text.trim().as_bytes(),
        Err(_) => text.trim_ascii(),
    }
}

/// A path without slashes at its end, unless it is the root.
fn trimmed(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|byte| *byte != b'/').map_or(path.len().min(1), |at| at + 1);
    &path[..end]
}

fn basename(path: &[u8]) -> &[u8] {
    match trimmed(path) {
        b"/" => b"/",
        path => &path[path.rfind_byte(b'/').map_or(0, |slash| slash + 1)..],
    }
}

fn dirname(path: &[u8]) -> &[u8] {
    let path = trimmed(path);
    match path.rfind_byte(b'/') {
        None => b".",
        Some(slash) => match trimmed(&path[..slash]) {
            b"" => b"/",
            directory => directory,
        },
    }
}

/// The name at the end of a path, parted before its last point; a point at the beginning hides a
/// file, and one at the end is of the name.
fn stem_and_suffix(path: &[u8]) -> (&[u8], &[u8]) {
    let name = basename(path);
    let begins = name.iter().take_while(|byte| **byte == b'.').count();
    match name[begins..].rfind_byte(b'.') {
        Some(point) if begins + point + 1 < name.len() => name.split_at(begins + point),
        _ => (name, b""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_pieces() {
        for (path, directory, name, stem, suffix) in [
            ("a/b.tar.gz", "a", "b.tar.gz", "b.tar", ".gz"),
            ("/a/b", "/a", "b", "b", ""),
            ("a", ".", "a", "a", ""),
            ("/a", "/", "a", "a", ""),
            ("a//b//", "a", "b", "b", ""),
            ("/", "/", "/", "/", ""),
            ("//", "/", "/", "/", ""),
            ("//a", "/", "a", "a", ""),
            ("", ".", "", "", ""),
            (".bashrc", ".", ".bashrc", ".bashrc", ""),
            (".a.b", ".", ".a.b", ".a", ".b"),
            ("a.", ".", "a.", "a.", ""),
            ("..", ".", "..", "..", ""),
            ("a.d/b", "a.d", "b", "b", ""),
        ] {
            let bytes = path.as_bytes();
            assert_eq!(dirname(bytes).as_bstr(), directory, "{path}");
            assert_eq!(basename(bytes).as_bstr(), name, "{path}");
            let (front, back) = stem_and_suffix(bytes);
            assert_eq!((front.as_bstr(), back.as_bstr()), (stem.into(), suffix.into()), "{path}");
        }
        assert_eq!(stem_and_suffix(b"d/\xff\n.\xfe"), (&b"\xff\n"[..], &b".\xfe"[..]));
    }
}
