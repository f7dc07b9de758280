//! Completion of file names, quoted like the typed word.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use bstr::{BString, ByteSlice};

use super::candidate::CompletionCandidate;
use super::known::{SessionSnapshot, is_program};
use ftsh_syntax::diagnostic::printable;
use ftsh_syntax::{Script, parse_bytes};

/// Time after which reading a directory is given up. A part of the names would not allow a safe
/// completion.
const READ_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum size of a script that is read for its options, in bytes.
const MAX_SCRIPT: u64 = 1024 * 1024;

/// Kind of files to complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// All files.
    Files,
    /// Files whose names need no pattern, because a pattern would not be expanded here.
    Values,
    /// Programs, and directories on the way to programs.
    Programs,
    /// Directories.
    Directories,
}

/// Quotes around a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quote {
    None,
    Single,
    Double,
}

/// Typed part of a path, evaluated without running anything.
struct Typed {
    /// Directory of the candidates.
    directory: Vec<u8>,
    /// Beginning of the name in the directory.
    name: String,
    /// Start of the name in the word; `quote` are the quotes there.
    start: usize,
    quote: Quote,
}

/// Returns the position in the word at which the candidates begin, and the candidates.
pub fn complete(
    word: &str,
    wanted: Wanted,
    known: &SessionSnapshot,
) -> (usize, Vec<CompletionCandidate>) {
    let Some(typed) = evaluate(word, known) else { return (word.len(), Vec::new()) };
    let directory = known.directory.join(PathBuf::from(OsString::from_vec(typed.directory)));
    let Ok(entries) = std::fs::read_dir(directory) else { return (typed.start, Vec::new()) };
    let start = Instant::now();
    let mut names: Vec<(BString, std::fs::DirEntry)> = Vec::new();
    for entry in entries {
        // A part of the names could lead to a wrong completion.
        let Ok(entry) = entry else { return (typed.start, Vec::new()) };
        if start.elapsed() > READ_TIMEOUT {
            return (typed.start, Vec::new());
        }
        let name = entry.file_name().into_vec();
        let hidden = name.starts_with(b".") && !typed.name.starts_with('.');
        if name.starts_with(typed.name.as_bytes()) && !hidden {
            names.push((name.into(), entry));
        }
    }
    let mut found = Vec::new();
    for (name, entry) in &names {
        let path = entry.path();
        let is_directory = match entry.file_type() {
            Ok(kind) if kind.is_symlink() => path.is_dir(),
            Ok(kind) => kind.is_dir(),
            Err(_) => false,
        };
        let fits = match wanted {
            Wanted::Files => true,
            Wanted::Values => name.chars().all(is_typed),
            Wanted::Directories => is_directory,
            Wanted::Programs => is_directory || is_program(&path),
        };
        // A pattern must match one file only.
        let others = |name| names.iter().filter(|(other, _)| is_alike(name, other)).count() > 1;
        if fits && (name.chars().all(is_typed) || !others(name)) {
            found.push(candidate(name, is_directory, typed.quote));
        }
    }
    (typed.start, found)
}

/// Reads and parses the script with a path, if the file is a small script without errors.
pub(crate) fn script(word: &str, known: &SessionSnapshot) -> Option<Script> {
    let typed = evaluate(word, known)?;
    let mut path = typed.directory;
    path.extend_from_slice(typed.name.as_bytes());
    let path = known.directory.join(PathBuf::from(OsString::from_vec(path)));
    let file = std::fs::metadata(&path).ok()?;
    if !file.is_file() || file.len() > MAX_SCRIPT {
        return None;
    }
    parse_bytes("", &std::fs::read(path).ok()?).ok()
}

/// Returns true if a character can be typed, and does not control a terminal. Invalid UTF-8 cannot
/// be typed.
fn is_typed(c: char) -> bool {
    !c.is_control() && c != char::REPLACEMENT_CHARACTER
}

/// Returns true if a name matches the pattern that stands for another name.
fn is_alike(name: &BString, other: &BString) -> bool {
    let mut others = other.chars();
    name.chars().all(|c| others.next().is_some_and(|other| c == other || !is_typed(c)))
        && others.next().is_none()
}

/// Returns the candidate for a program along `PATH`, if its name can be typed.
pub(crate) fn program(name: String) -> Option<CompletionCandidate> {
    let is_typed = name.chars().all(is_typed);
    is_typed.then(|| candidate(&name.into(), false, Quote::None))
}

fn candidate(name: &BString, is_directory: bool, quote: Quote) -> CompletionCandidate {
    let mut replacement = quoted(name, quote);
    let (mut display, mut ending) = (printable(&name.to_str_lossy()), " ");
    if is_directory {
        display.push('/');
        replacement.push('/');
        ending = "";
    }
    let ending = match quote {
        Quote::Single if !is_directory => "' ",
        Quote::Double if !is_directory => "\" ",
        _ => ending,
    };
    CompletionCandidate { display, replacement, ending }
}

/// Returns a name as written in these quotes.
///
/// A character that cannot be typed becomes a pattern for any character, because the language has
/// no other notation.
fn quoted(name: &BString, quote: Quote) -> String {
    let special: &[char] = match quote {
        Quote::None => &[
            ' ', '\'', '"', '\\', '$', '`', '*', '?', '[', ';', '|', '&', '<', '>', '#', '~', '(',
            ')', ',', '=',
        ],
        Quote::Single => &['\'', '\\'],
        Quote::Double => &['"', '\\', '$', '`'],
    };
    let mut text = String::with_capacity(name.len());
    for c in name.chars() {
        if !is_typed(c) {
            text.push_str(match quote {
                Quote::None => "?",
                Quote::Single => "'?'",
                Quote::Double => "\"?\"",
            });
            continue;
        }
        // It has no meaning in the middle of a word, and is common in names.
        let plain = quote == Quote::None && c == '=' && !text.is_empty();
        if special.contains(&c) && !plain {
            text.push('\\');
        }
        text.push(c);
    }
    text
}

/// Evaluates a word, or returns `None` if the value is known only at run time.
fn evaluate(word: &str, known: &SessionSnapshot) -> Option<Typed> {
    let mut value: Vec<u8> = Vec::new();
    let mut quote = Quote::None;
    // Start of the name: position in the word, position in the value, and quotes.
    let mut name = (0, 0, Quote::None);
    let mut rest = word;
    if let Some(after) = rest.strip_prefix('~') {
        if !(after.is_empty() || after.starts_with('/')) {
            return None;
        }
        value.extend_from_slice(known.home()?.as_os_str().as_encoded_bytes());
        rest = after;
    }
    while let Some(c) = rest.chars().next() {
        let at = word.len() - rest.len();
        let mut length = c.len_utf8();
        let mut plain = |value: &mut Vec<u8>, text: &str| {
            value.extend_from_slice(text.as_bytes());
            if text.ends_with('/') {
                name = (at + text.len(), value.len(), quote);
            }
        };
        match (quote, c) {
            (Quote::None, '\'') => quote = Quote::Single,
            (Quote::None, '"') => quote = Quote::Double,
            (Quote::Single, '\'') | (Quote::Double, '"') => quote = Quote::None,
            (Quote::None | Quote::Double, '$') => {
                let (variable, taken) = variable(rest)?;
                value.extend_from_slice(known.variable(variable)?);
                length = taken;
            }
            (Quote::None, '*' | '?' | '[' | '`') => return None,
            (_, '\\') => {
                let next = rest[1..].chars().next()?;
                let escapes = match quote {
                    Quote::None => true,
                    Quote::Single => matches!(next, '\'' | '"' | '\\'),
                    Quote::Double => matches!(next, '"' | '\'' | '$' | '\\' | '`'),
                };
                if escapes {
                    length += next.len_utf8();
                    value.extend_from_slice(next.to_string().as_bytes());
                } else {
                    plain(&mut value, "\\");
                }
            }
            _ => plain(&mut value, &rest[..length]),
        }
        rest = &rest[length..];
    }
    // The name in `"my f` keeps its quotes.
    if name.0 == 0 && word.starts_with(['\'', '"']) {
        name = (1, 0, if word.starts_with('"') { Quote::Double } else { Quote::Single });
    }
    let tail = value.split_off(name.1);
    Some(Typed {
        directory: value,
        name: String::from_utf8(tail).ok()?,
        start: name.0,
        quote: name.2,
    })
}

/// Returns the name of the variable at the start of a text, and the length of its use.
fn variable(text: &str) -> Option<(&str, usize)> {
    let rest = &text[1..];
    let (name, braces) = match rest.strip_prefix('{') {
        Some(inner) => (inner.split_once('}')?.0, 3),
        None => {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            (&rest[..end.unwrap_or(rest.len())], 1)
        }
    };
    let good = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    good.then_some((name, name.len() + braces))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_like_the_word() {
        let place = tempfile::tempdir().expect("a directory");
        for name in ["plain", "a b$c", "it's", "-dash", ".hidden", "a=b"] {
            std::fs::write(place.path().join(name), "").expect("a file");
        }
        std::fs::create_dir(place.path().join("sub dir")).expect("a directory");
        let home = Some(place.path().to_str().expect("a name").into());
        let known = SessionSnapshot {
            directory: place.path().into(),
            variables: [("HOME".to_owned(), home)].into(),
            ..SessionSnapshot::default()
        };
        let complete = |word: &str| {
            let (start, mut found) = complete(word, Wanted::Files, &known);
            found.sort_by(|a, b| a.display.cmp(&b.display));
            let words = found
                .iter()
                .map(|it| format!("{}{}{}|", &word[..start], it.replacement, it.ending));
            words.collect::<String>()
        };
        assert_eq!(complete("pl"), "plain |");
        assert_eq!(complete("a\\ "), "a\\ b\\$c |");
        assert_eq!(complete("\"a b"), "\"a b\\$c\" |");
        assert_eq!(complete("'a b"), "'a b$c' |");
        assert_eq!(complete("\"it"), "\"it's\" |");
        assert_eq!(complete("it"), "it\\'s |");
        assert_eq!(complete("./s"), "./sub\\ dir/|");
        assert_eq!(complete("$HOME/pl"), "$HOME/plain |");
        assert_eq!(complete("\"${HOME}/pl"), "\"${HOME}/plain\" |");
        assert_eq!(complete("~/pl"), "~/plain |");
        assert_eq!(complete(".h"), ".hidden |");
        assert_eq!(complete("a="), "a=b |");
        assert!(!complete("").contains("hidden"));
        // A name that cannot be typed is written as a pattern, if the pattern matches no other
        // file.
        for name in ["ctl\x1b[31m", "new\nline", "two\x01", "two\x02", "low\u{7f}é"] {
            std::fs::write(place.path().join(name), "").expect("a file");
        }
        assert_eq!(complete("ct"), "ctl?\\[31m |");
        assert_eq!(complete("\"ct"), "\"ctl\"?\"[31m\" |");
        assert_eq!(complete("'ne"), "'new'?'line' |");
        assert_eq!(complete("lo"), "low?é |");
        assert_eq!(complete("tw"), "");
        std::fs::write(place.path().join("newXline"), "").expect("a file");
        assert_eq!(complete("ne"), "newXline |");
        assert_eq!(complete("*/pl"), "");
        assert_eq!(complete("nowhere/"), "");
    }
}
