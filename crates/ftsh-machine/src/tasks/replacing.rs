//! The function `replace`, executed in steps. A long text has millions of matches, and limits must
//! be able to interrupt the work.

use std::sync::Arc;

use bstr::{BString, ByteSlice};
use regex::bytes::{Captures, Regex};

use crate::size;
use crate::values::{Subject, Suspend, ValueError};

/// Number of bytes handled in a step. A match counts at least [`MATCH_COST`] bytes.
const STEP_BYTES: usize = 256 * 1024;
const MATCH_COST: usize = 64;

/// A replacement in progress.
#[derive(Debug)]
pub(crate) struct Replacing {
    subject: Arc<Subject<Arc<BString>>>,
    regex: Regex,
    with: Vec<ReplacementPart>,
    /// Position of the next search, in the searched text like all positions.
    at: usize,
    /// End of the text already copied or replaced.
    copied: usize,
    /// End of the last match.
    last: Option<usize>,
    done: BString,
}

/// Part of the replacement.
#[derive(Debug)]
enum ReplacementPart {
    Text(BString),
    Group(usize),
}

impl Replacing {
    /// Starts to replace every match of `regex` in a text. In `with`, `$1` or `${10}` is a group,
    /// `${name}` a named group, `$0` the match, and `$$` a dollar.
    ///
    /// # Errors
    ///
    /// One line for people, if a group does not exist.
    pub(crate) fn new(
        subject: Subject<Arc<BString>>,
        regex: Regex,
        with: &[u8],
    ) -> Result<Self, ValueError> {
        let with = parts(&regex, with)?;
        let done = BString::default();
        Ok(Self { subject: subject.into(), regex, with, at: 0, copied: 0, last: None, done })
    }

    /// Executes a step. Returns the number of bytes handled, and the result when finished.
    pub(crate) fn step_on(&mut self) -> (usize, Result<Option<BString>, Suspend>) {
        let mut handled = 0;
        while handled < STEP_BYTES {
            let before = (self.at, self.done.len());
            match self.step() {
                Ok(true) => {}
                Ok(false) => {
                    let rest = self.subject.searched().len().saturating_sub(before.0);
                    return (handled + rest, Ok(Some(std::mem::take(&mut self.done))));
                }
                Err(suspend) => return (handled, Err(suspend)),
            }
            handled += self.at.saturating_sub(before.0) + self.done.len() - before.1 + MATCH_COST;
        }
        (handled, Ok(None))
    }

    /// Replaces the next match. Returns false if there is no match.
    fn step(&mut self) -> Result<bool, Suspend> {
        let subject = Arc::clone(&self.subject);
        let text = subject.searched();
        let captures =
            if self.at > text.len() { None } else { self.regex.captures_at(text, self.at) };
        let Some(captures) = captures else {
            let rest = subject.original(self.copied.min(text.len())..text.len());
            size::append(&mut self.done, rest)?;
            return Ok(false);
        };
        let found = captures.get_match();
        // An empty match directly after another match is skipped.
        if !found.is_empty() || self.last != Some(found.start()) {
            size::append(&mut self.done, subject.original(self.copied..found.start()))?;
            self.expand(&subject, &captures)?;
            (self.copied, self.last) = (found.end(), Some(found.end()));
        }
        self.at = found.end();
        if found.is_empty() {
            let (_, length) = bstr::decode_utf8(&text[self.at..]);
            self.at += length.max(1);
        }
        Ok(true)
    }

    fn expand(
        &mut self,
        subject: &Subject<Arc<BString>>,
        captures: &Captures<'_>,
    ) -> Result<(), Suspend> {
        for part in &self.with {
            let text = match part {
                ReplacementPart::Text(text) => text.as_slice(),
                ReplacementPart::Group(group) => {
                    subject.original(captures.get(*group).map_or(0..0, |it| it.range()))
                }
            };
            size::append(&mut self.done, text)?;
        }
        Ok(())
    }
}

/// Parses the replacement.
fn parts(regex: &Regex, with: &[u8]) -> Result<Vec<ReplacementPart>, ValueError> {
    let mut parts = Vec::new();
    let mut rest = with;
    while let Some(at) = rest.find_byte(b'$') {
        parts.push(ReplacementPart::Text(rest[..at].into()));
        let after = &rest[at + 1..];
        let braced = after.strip_prefix(b"{").and_then(|name| name.split_once_str(b"}"));
        rest = match (braced, after.first()) {
            (Some((name, rest)), _) => {
                parts.push(ReplacementPart::Group(group(regex, name)?));
                rest
            }
            (None, Some(b'0'..=b'9')) => {
                parts.push(ReplacementPart::Group(group(regex, &after[..1])?));
                &after[1..]
            }
            (None, Some(b'$')) => {
                parts.push(ReplacementPart::Text("$".into()));
                &after[1..]
            }
            (None, _) => {
                parts.push(ReplacementPart::Text("$".into()));
                after
            }
        };
    }
    parts.push(ReplacementPart::Text(rest.into()));
    Ok(parts)
}

/// Returns the index of a group given by number or name.
fn group(regex: &Regex, name: &[u8]) -> Result<usize, ValueError> {
    let name = name.to_str_lossy();
    let group = match name.parse() {
        Ok(number) => Some(number).filter(|number| *number < regex.captures_len()),
        Err(_) => regex.capture_names().position(|known| known == Some(&*name)),
    };
    group.ok_or_else(|| ValueError::NoGroup(name.into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replace(text: &[u8], regex: &str, with: &str) -> Result<BString, String> {
        let subject = Subject::new(Arc::new(text.into()), regex.into()).expect("memory");
        let regex = Regex::new(regex).expect("a regular expression");
        let mut replacing =
            Replacing::new(subject, regex, with.as_bytes()).map_err(|error| error.to_string())?;
        loop {
            match replacing.step_on().1 {
                Ok(Some(text)) => return Ok(text),
                Ok(None) => {}
                Err(suspend) => return Err(format!("{suspend:?}")),
            }
        }
    }

    #[test]
    fn every_match_is_replaced() {
        for (text, regex, with, result) in [
            ("a-b-c", "-", "+", "a+b+c"),
            ("a.gz", r"\.gz$", "", "a"),
            ("john smith", r"(\w+) (\w+)", "$2, $1", "smith, john"),
            ("a1", r"(\w)(\d)", "$1x${2}y$$z$w$", "ax1y$z$w$"),
            ("aaa", "^a", "b", "baa"),
            ("", "^", "x", "x"),
            ("ab", "x*", "-", "-a-b-"),
            ("aé", "x*", "-", "-a-é-"),
            ("abab", "b*", "-", "-a-a-"),
            ("k=v", r"(?P<key>\w+)=.*", "${key}", "k"),
            ("ab", "(a)|b", "<$1>", "<a><>"),
        ] {
            assert_eq!(replace(text.as_bytes(), regex, with), Ok(result.into()), "{text} {regex}");
        }
        for (text, regex, with, result) in [
            (&b"\xff-\xfe"[..], "-", "+", &b"\xff+\xfe"[..]),
            (b"a/\xff\xe9\xfe.gz", r"^.*/([^/]*)\.gz$", "$1", b"\xff\xe9\xfe"),
            (b"a\xff\xc3\xa9", "", "-", b"-a-\xff-\xc3\xa9-"),
            (b"a\xff\xfeb", "[^a-z]", "<$0>", b"a<\xff><\xfe>b"),
        ] {
            assert_eq!(replace(text, regex, with), Ok(result.into()), "{regex}");
        }
        assert!(replace(b"a", "a", "$1").is_err());
        assert!(replace(b"a", "a", "${no}").is_err());
    }

    #[test]
    fn replacements_match_those_of_the_library() {
        let text = "the quick  brown fox, 12 34 ".repeat(9000);
        for regex in [r"\s+", "", "e?", r"\b", "[^a-z]", "$", "(?m)^|x"] {
            let library =
                Regex::new(regex).expect("one").replace_all(text.as_bytes(), &b"<$0>"[..]);
            let ours = replace(text.as_bytes(), regex, "<$0>").expect("a text");
            assert!(ours == library.as_ref(), "{regex}");
        }
    }
}
