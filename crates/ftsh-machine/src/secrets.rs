//! Secrets: values that the shell never prints, from named variables or from a list.
//!
//! Secrets are hidden before text is shortened, quoted or escaped. Afterwards a remaining part, or
//! another spelling, could not be recognized.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use bstr::{BString, ByteSlice};
use serde::{Deserialize, Serialize};

/// Text printed in place of a secret.
const MASK: &str = "***";
/// Minimum length of a secret in bytes. Hiding each `1` and `no` would disclose the values, and
/// little else.
const MIN_SECRET_LEN: usize = 4;
/// Maximum length of a secret in bytes. Longer values are not hidden.
const MAX_SECRET_LEN: usize = 1 << 16;
/// Bytes of a longer text to print where secrets exist.
const MAX_SHOWN_LEN: usize = 1 << 16;
/// Maximum number of values kept; the oldest are dropped first.
const MAX_SECRETS: usize = 1000;

/// Values to hide, shared by all clones. Values are added while a script runs. The serialized form
/// contains the values.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(into = "Parts", from = "Parts")]
pub struct Secrets(Option<Arc<SharedSecrets>>);

struct SharedSecrets {
    names: Vec<String>,
    /// Secrets that this shell received, passed on to nested shells.
    given: BString,
    values: Mutex<VecDeque<BString>>,
}

/// Names of secret variables, values given as secrets, and all values hidden at present.
type Parts = (Vec<String>, BString, Vec<BString>);

impl From<Secrets> for Parts {
    fn from(secrets: Secrets) -> Self {
        let mut values = Vec::new();
        secrets.each(|value| values.push(value.into()));
        let given = secrets.0.as_ref().map(|shared| shared.given.clone()).unwrap_or_default();
        (secrets.all_names().to_vec(), given, values)
    }
}

impl From<Parts> for Secrets {
    fn from((names, given, values): Parts) -> Self {
        let secrets = Self::new(names, &given);
        for value in &values {
            secrets.add(value);
        }
        secrets
    }
}

impl PartialEq for Secrets {
    fn eq(&self, other: &Self) -> bool {
        Parts::from(self.clone()) == Parts::from(other.clone())
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_tuple("Secrets").field(&self.all_names()).finish()
    }
}

impl Secrets {
    /// Hides the values of the variables called `names`, as the values become known, and the lines
    /// of `given`.
    pub fn new(names: Vec<String>, given: &[u8]) -> Self {
        if names.is_empty() && given.is_empty() {
            return Self::default();
        }
        let secrets = Self(Some(Arc::new(SharedSecrets {
            names,
            given: given.into(),
            values: Mutex::default(),
        })));
        secrets.add_lines(given);
        secrets
    }

    /// Returns true if nothing is secret.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns true if the values of a variable are hidden.
    pub fn names(&self, name: &str) -> bool {
        self.all_names().iter().any(|known| known == name)
    }

    /// Returns the names of the variables whose values are hidden.
    pub fn all_names(&self) -> &[String] {
        self.0.as_ref().map_or(&[], |shared| &shared.names)
    }

    /// Adds a variable's value, if the variable is secret.
    pub fn learn(&self, name: &str, value: &[u8]) {
        if self.names(name) && value.len() <= MAX_SECRET_LEN {
            self.add(value.trim_end_with(|c| matches!(c, '\r' | '\n')));
            // A key is printed line by line, if at all.
            self.add_lines(value);
        }
    }

    /// Adds the values in words such as `NAME=value`, which a program will assign.
    pub fn add_assignments(&self, words: &[BString]) {
        let Some(shared) = &self.0 else { return };
        for word in words {
            if let Some((name, value)) = word.split_once_str("=")
                && let Some(known) = shared.names.iter().find(|known| known.as_bytes() == name)
            {
                self.learn(known, value);
            }
        }
    }

    fn add_lines(&self, text: &[u8]) {
        for line in text.lines() {
            self.add(line);
        }
    }

    fn add(&self, value: &[u8]) {
        let Some(shared) = &self.0 else { return };
        if value.len() < MIN_SECRET_LEN {
            return;
        }
        let mut values = shared.values.lock().unwrap_or_else(PoisonError::into_inner);
        // Text other than UTF-8 is shown with replacement characters.
        let shown = value.to_str_lossy();
        for spelling in [value, shown.as_bytes()] {
            if !values.iter().any(|known| known == spelling) {
                values.push_back(spelling.into());
            }
        }
        while values.len() > MAX_SECRETS {
            values.pop_front();
        }
    }

    /// Returns a text for people or a log, with secrets replaced.
    pub fn hide<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.hide_bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(hidden) => Cow::Owned(hidden.to_str_lossy().into_owned()),
        }
    }

    /// Replaces secrets in an owned text.
    pub fn hide_in(&self, text: &mut String) {
        if let Cow::Owned(hidden) = self.hide(text) {
            *text = hidden;
        }
    }

    /// Returns bytes with secrets replaced, cut after the first `MAX_SHOWN_LEN` bytes.
    pub fn hide_bytes<'t>(&self, text: &'t [u8]) -> Cow<'t, [u8]> {
        if self.is_empty() {
            return Cow::Borrowed(text);
        }
        // The search takes time for each value, and limits must hold meanwhile.
        let shown = text.len().min(MAX_SHOWN_LEN);
        let searched = &text[..text.len().min(MAX_SHOWN_LEN + MAX_SECRET_LEN)];
        let mut places = Vec::new();
        self.each(|value| {
            if let Some(first) = searched.find(value) {
                let from = &searched[first..];
                places.extend(
                    occurrences(from, value).map(|(start, end)| (first + start, first + end)),
                );
            }
        });
        places.retain(|&(start, _)| start < shown);
        if places.is_empty() && shown == text.len() {
            return Cow::Borrowed(text);
        }
        places.sort_unstable();
        let mut hidden = Vec::with_capacity(shown);
        let mut at = 0;
        for (start, end) in places {
            if start >= at {
                hidden.extend_from_slice(&text[at..start]);
                hidden.extend_from_slice(MASK.as_bytes());
            }
            at = at.max(end);
        }
        hidden.extend_from_slice(text.get(at..shown).unwrap_or_default());
        if shown < text.len() {
            hidden.extend_from_slice("…".as_bytes());
        }
        Cow::Owned(hidden)
    }

    /// Returns the secrets that a nested shell with these words must hide, one value per line. Only
    /// values contained in the words are added, because the nested shell sees these values and may
    /// print them. Returns `None` if no value is added, since no secret is disclosed to a shell
    /// that has not received the secret.
    pub fn for_command<'w>(&self, words: impl IntoIterator<Item = &'w BString>) -> Option<BString> {
        let given = &self.0.as_ref()?.given;
        let mut hidden = given.clone();
        let words: Vec<_> = words.into_iter().collect();
        self.each(|value| {
            let is_new = given.lines().all(|line| line != value);
            if is_new && words.iter().any(|word| word.contains_str(value)) {
                if !hidden.is_empty() && !hidden.ends_with(b"\n") {
                    hidden.push(b'\n');
                }
                hidden.extend_from_slice(value);
            }
        });
        (hidden.len() > given.len()).then_some(hidden)
    }

    fn each(&self, mut visit: impl FnMut(&[u8])) {
        let Some(shared) = &self.0 else { return };
        let values = shared.values.lock().unwrap_or_else(PoisonError::into_inner);
        for value in values.iter() {
            visit(value);
        }
    }
}

/// Finds a value in a text, including overlapping occurrences. Returns pairs of start and end.
/// Takes time in proportion to the length of both (Knuth, Morris, Pratt 1977).
fn occurrences<'t>(text: &'t [u8], value: &'t [u8]) -> impl Iterator<Item = (usize, usize)> + 't {
    // For each prefix of the value, the length of its longest proper prefix that is also a suffix.
    let mut borders = vec![0; value.len()];
    let next = move |borders: &[usize], mut matched: usize, byte: u8| {
        while matched > 0 && (matched == value.len() || value[matched] != byte) {
            matched = borders[matched - 1];
        }
        matched + usize::from(value[matched] == byte)
    };
    for end in 1..value.len() {
        borders[end] = next(&borders, borders[end - 1], value[end]);
    }
    let mut matched = 0;
    text.iter().enumerate().filter_map(move |(at, &byte)| {
        matched = next(&borders, matched, byte);
        (matched == value.len()).then(|| (at + 1 - value.len(), at + 1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(values: &str) -> Secrets {
        Secrets::new(vec!["P".into()], values.as_bytes())
    }

    #[test]
    fn values_are_hidden_wherever_they_are() {
        let secrets = secrets("hunter2\nénigme");
        assert_eq!(secrets.hide("curl -uhunter2@x hunter2"), "curl -u***@x ***");
        assert_eq!(secrets.hide("l'énigmes"), "l'***s");
        assert!(matches!(secrets.hide("hunter"), Cow::Borrowed("hunter")));
    }

    #[test]
    fn values_that_overlap_leave_nothing() {
        let secrets = secrets("abcd\ncdef\naaaa");
        assert_eq!(secrets.hide("xabcdefy"), "x***y");
        assert_eq!(secrets.hide("aaaaaa b"), "*** b");
        assert_eq!(secrets.hide("abcdcdef"), "******");
    }

    #[test]
    fn the_search_takes_linear_time() {
        let secrets = secrets("");
        for length in [100, 1000, MAX_SECRET_LEN / 2, MAX_SECRET_LEN] {
            secrets.learn("P", &vec![b'a'; length]);
        }
        // Comparing at each place would take minutes.
        let hidden = secrets.hide_bytes(&vec![b'a'; 64 << 20]).into_owned();
        assert_eq!(hidden.to_str_lossy(), "***…");
    }

    #[test]
    fn long_texts_are_cut() {
        let secrets = secrets("hunter2");
        let text = format!("{}hunter2{}", "x".repeat(MAX_SHOWN_LEN - 3), "y".repeat(MAX_SHOWN_LEN));
        assert_eq!(secrets.hide(&text), format!("{}***…", "x".repeat(MAX_SHOWN_LEN - 3)));
        let text = "hunter2".repeat(MAX_SHOWN_LEN);
        assert!(!secrets.hide(&text).contains("hunt"));
    }

    #[test]
    fn short_values_are_not_hidden() {
        let secrets = secrets("1\nno\n\nabc");
        secrets.learn("P", b"");
        secrets.learn("P", b"\n");
        assert_eq!(secrets.hide("exited with 1, no abc"), "exited with 1, no abc");
    }

    #[test]
    fn values_become_known() {
        let secrets = secrets("");
        secrets.learn("Q", b"public");
        secrets.learn("P", b"first key\nsecond line\r\n");
        secrets.add_assignments(&["P=third=one".into(), "P".into(), "Q=other".into()]);
        assert_eq!(secrets.hide("first key, second line, third=one"), "***, ***, ***");
        assert_eq!(secrets.hide("public other"), "public other");
    }

    #[test]
    fn bytes_other_than_utf_8_are_hidden() {
        let secrets = secrets("");
        secrets.learn("P", b"ab\xffcd");
        assert_eq!(*secrets.hide_bytes(b"x ab\xffcd"), *b"x ***");
        assert_eq!(secrets.hide(&b"x ab\xffcd".to_str_lossy()), "x ***");
    }

    #[test]
    fn a_command_receives_only_secrets_among_its_words() {
        let secrets = secrets("given1");
        secrets.learn("P", b"learnt1");
        let for_command = |word: &str| secrets.for_command(&[word.into()]);
        assert_eq!(for_command("x given1"), None);
        assert_eq!(for_command("-plearnt1"), Some("given1\nlearnt1".into()));
        assert_eq!(Secrets::default().for_command(&["x".into()]), None);
    }

    #[test]
    fn the_number_of_values_is_bounded() {
        let secrets = secrets("");
        for number in 0..2 * MAX_SECRETS {
            secrets.learn("P", format!("value {number}.").as_bytes());
        }
        assert_eq!(secrets.hide("value 0."), "value 0.");
        assert_eq!(secrets.hide(&format!("value {}.", 2 * MAX_SECRETS - 1)), "***");
        assert!(!format!("{secrets:?}").contains("value"), "{secrets:?}");
    }
}
