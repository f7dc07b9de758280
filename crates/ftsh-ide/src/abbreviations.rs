//! Abbreviations: a user's names for longer text.
//!
//! At the position of a command, a blank or Enter after the name replaces the name by its text. The
//! shell runs the long text, and keeps the long text in the history.

use std::collections::HashMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::tokens::{Role, scan};
use ftsh_sys::os_error::plain;

/// Maximum size of the file, in bytes. A larger file has another purpose.
const MAX_FILE_SIZE: u64 = 64 * 1024;
/// Maximum length of input that is expanded, in bytes. Longer input is not typed by a person.
const MAX_INPUT_LENGTH: usize = 64 * 1024;

/// Names with their texts, and the line being typed.
#[derive(Debug, Default)]
pub struct Abbreviations {
    all: HashMap<String, String>,
    typing: Mutex<Typing>,
}

/// State of the line being typed.
#[derive(Debug, Default)]
struct Typing {
    /// Previous lines of the same input.
    before: String,
    /// Replacement for the text before the cursor.
    wanted: Option<String>,
    /// Text before the last expansion. The same text again means that the user undid the expansion.
    undone: String,
}

impl Abbreviations {
    /// Reads the file of the XDG rules: `ftsh/abbreviations` in `$XDG_CONFIG_HOME`, or in
    /// `~/.config`.
    ///
    /// Also returns messages about errors in the file, one per line.
    pub fn of_user(variable: impl Fn(&str) -> Option<PathBuf>) -> (Self, String) {
        let known = |name| variable(name).filter(|path| path.is_absolute());
        let folder =
            known("XDG_CONFIG_HOME").or_else(|| known("HOME").map(|home| home.join(".config")));
        let Some(path) = folder.map(|folder| folder.join("ftsh/abbreviations")) else {
            return Default::default();
        };
        match read(&path) {
            Ok(text) => Self::of(&text, &path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Default::default(),
            Err(error) => {
                let reason = plain(&error);
                let message = format!("ftsh: cannot read {}: {reason}\n", path.display());
                (Self::default(), message)
            }
        }
    }

    /// Parses a name and its text from each line, except empty lines and comments.
    fn of(text: &str, path: &Path) -> (Self, String) {
        let (mut all, mut messages) = (HashMap::new(), String::new());
        for (line, number) in text.lines().map(str::trim).zip(1..) {
            match line.split_once(char::is_whitespace) {
                _ if line.is_empty() || line.starts_with('#') => {}
                Some((name, long)) => {
                    all.insert(name.to_owned(), long.trim_start().to_owned());
                }
                None => {
                    let place = path.display();
                    messages +=
                        &format!("ftsh: {place}:{number}: `{line}` has no text after the name\n");
                }
            }
        }
        (Self { all, ..Self::default() }, messages)
    }

    /// Returns true if there is an abbreviation of this name.
    pub fn has(&self, name: &str) -> bool {
        self.all.contains_key(name)
    }

    /// Begins a line after the previous lines of the same input.
    pub fn begin(&self, before: &str) {
        *self.typing() = Typing { before: before.to_owned(), ..Typing::default() };
    }

    /// Takes the replacement for the text before the cursor, after a blank was typed.
    pub fn take_wanted(&self) -> Option<String> {
        self.typing().wanted.take()
    }

    /// Returns the line with its last word expanded, if the word is an abbreviation at the position
    /// of a command.
    pub fn expand(&self, line: &str) -> Option<String> {
        let typing = self.typing();
        let before = &typing.before;
        if self.all.is_empty()
            || before.len() + line.len() > MAX_INPUT_LENGTH
            || line == typing.undone
        {
            return None;
        }
        let text = format!("{before}{line}");
        let last = scan(&text).all.pop()?;
        let name = &text[last.range.clone()];
        let kept = line.strip_suffix(name)?;
        let long = self.all.get(name).filter(|_| last.role == Role::Command)?;
        Some(format!("{kept}{long}"))
    }

    /// Stores the expansion of the text before the cursor for [`Self::take_wanted`]. Returns true
    /// if there is one.
    pub fn expand_before_blank(&self, typed: &str) -> bool {
        let Some(long) = self.expand(typed) else { return false };
        let mut typing = self.typing();
        (typing.wanted, typing.undone) = (Some(long + " "), typed.to_owned());
        true
    }

    fn typing(&self) -> MutexGuard<'_, Typing> {
        self.typing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(path: &Path) -> io::Result<String> {
    // A pipe would block the prompt.
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("not a file"));
    }
    let mut text = String::new();
    std::fs::File::open(path)?.take(MAX_FILE_SIZE).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_is_expanded_at_a_command() {
        let text = "# mine\ng git\n\n  t5\ttry for 5 minutes\nnothing\nif no\n";
        let (all, messages) = Abbreviations::of(text, Path::new("/f"));
        assert_eq!(messages, "ftsh: /f:5: `nothing` has no text after the name\n");
        for (line, long) in [
            ("g", "git"),
            ("echo a; g", "echo a; git"),
            ("echo a | g", "echo a | git"),
            ("A=b g", "A=b git"),
            ("if .succeeds. (g", "if .succeeds. (git"),
            (" t5", " try for 5 minutes"),
        ] {
            assert_eq!(all.expand(line).as_deref(), Some(long), "{line}");
        }
        for line in
            ["", "g ", "echo g", "'g", "\\g", "'g'", "echo > g", "x=g", "# g", "gg", "if", "g\n"]
        {
            assert_eq!(all.expand(line), None, "{line}");
        }
        for (before, long) in
            [("try 2 times\n", Some("git")), ("cat <<E\n", None), ("echo 'a\n", None)]
        {
            all.begin(before);
            assert_eq!(all.expand("g").as_deref(), long, "{before}");
        }
        assert_eq!(Abbreviations::default().expand("g"), None);
    }
}
