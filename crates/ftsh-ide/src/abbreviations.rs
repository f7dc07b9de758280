//! Abbreviations: names of a user's own that become what they stand for when a blank or Enter follows, where
//! a command begins. What is run, and kept in the history, is the long text.

use std::collections::HashMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::tokens::{Role, scan};
use ftsh_sys::os_error::plain;

/// A file with more bytes is something else.
const LARGEST: u64 = 64 * 1024;
/// Longer input isn't typed.
const LONGEST: usize = 64 * 1024;

/// Names, each with what it stands for, for the line that is typed.
#[derive(Debug, Default)]
pub struct Abbreviations {
    all: HashMap<String, String>,
    typing: Mutex<Typing>,
}

/// How far a line has come.
#[derive(Debug, Default)]
struct Typing {
    /// The lines of the same input before it.
    before: String,
    /// What its beginning is to become.
    wanted: Option<String>,
    /// What was written out last: if that is there again, it was undone.
    undone: String,
}

impl Abbreviations {
    /// Those in the file that the XDG rules give for such: `ftsh/abbreviations` in `$XDG_CONFIG_HOME`,
    /// or in `~/.config`. And what is wrong with it, a line each.
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
                let told = format!("ftsh: no abbreviations: {}: {reason}\n", path.display());
                (Self::default(), told)
            }
        }
    }

    /// A name and what it stands for in each line, but for empty lines and comments.
    fn of(text: &str, path: &Path) -> (Self, String) {
        let (mut all, mut told) = (HashMap::new(), String::new());
        for (line, number) in text.lines().map(str::trim).zip(1..) {
            match line.split_once(char::is_whitespace) {
                _ if line.is_empty() || line.starts_with('#') => {}
                Some((name, long)) => {
                    all.insert(name.to_owned(), long.trim_start().to_owned());
                }
                None => {
                    let place = path.display();
                    told += &format!("ftsh: {place}:{number}: `{line}` stands for nothing\n");
                }
            }
        }
        (Self { all, ..Self::default() }, told)
    }

    /// Whether there is one of that name.
    pub fn has(&self, name: &str) -> bool {
        self.all.contains_key(name)
    }

    /// A line is to be typed, after these lines of the same input.
    pub fn begin(&self, before: &str) {
        *self.typing() = Typing { before: before.to_owned(), ..Typing::default() };
    }

    /// What the beginning of the line, up to the cursor, is to become because a blank was typed.
    pub fn take_wanted(&self) -> Option<String> {
        self.typing().wanted.take()
    }

    /// The line if its last word, where a command begins, is an abbreviation: with what that stands for.
    pub fn expand(&self, line: &str) -> Option<String> {
        let typing = self.typing();
        let before = &typing.before;
        if self.all.is_empty() || before.len() + line.len() > LONGEST || line == typing.undone {
            return None;
        }
        let text = format!("{before}{line}");
        let last = scan(&text).all.pop()?;
        let name = &text[last.range.clone()];
        let kept = line.strip_suffix(name)?;
        let long = self.all.get(name).filter(|_| last.role == Role::Command)?;
        Some(format!("{kept}{long}"))
    }

    /// Notes the expansion of the text before the cursor for [`Self::take_wanted`]; true if there is one.
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
    // A pipe would have the prompt wait.
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mut text = String::new();
    std::fs::File::open(path)?.take(LARGEST).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_is_written_out_where_a_command_begins() {
        let text = "# mine\ng git\n\n  t5\ttry for 5 minutes\nnothing\nif no\n";
        let (all, told) = Abbreviations::of(text, Path::new("/f"));
        assert_eq!(told, "ftsh: /f:5: `nothing` stands for nothing\n");
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
