//! `#!/usr/bin/ftsh -l 20 -f /tmp/log`: options in the first line of a script.
//!
//! The kernel passes everything after the program as one word. `ftsh script` reads the line as
//! well, so the options hold however the script is started.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use anyhow::{Context, Result, anyhow};

use crate::cli::messages::usage;
use crate::cli::options::flags::{self, Flags, Request};
use ftsh_syntax::slug::Slug;
use ftsh_sys::os_error::plain;

/// Maximum length of a `#!` line in Linux, with the newline.
const MAX_LINE: usize = 256;

/// Splits the first word of a command line if the word is the rest of a `#!` line.
pub(crate) fn split(mut words: Vec<OsString>) -> Result<Vec<OsString>> {
    let [first, script, ..] = words.as_slice() else { return Ok(words) };
    let word = first.as_bytes();
    // `stands_in` refuses a line that was cut, whose end can have another meaning.
    if !has_space(word) || !(stands_in(first, script)? || is_joined(word)) {
        return Ok(words);
    }
    let options = split_words(word)
        .with_context(|| format!("unclosed quote in `{}`", first.to_string_lossy()))?;
    words.splice(..1, options);
    Ok(words)
}

fn has_space(word: &[u8]) -> bool {
    word.starts_with(b"-") && word.iter().any(u8::is_ascii_whitespace)
}

/// True if a word can only be several options: white space stands where no value has begun, as in
/// `-n -l 20` or `-l 20`, but not in `-f/a file` or `--backoff=full from 1 s`.
fn is_joined(word: &[u8]) -> bool {
    let option = word.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    match option.strip_prefix(b"--") {
        Some(long) => !long.contains(&b'='),
        None => {
            let valued = flags::valued_letters();
            let takes_value = |byte: &u8| valued.contains(&char::from(*byte));
            !option.contains(&b'c') && !option.iter().rev().skip(1).any(takes_value)
        }
    }
}

/// True if the first line of the script is a `#!` line that ends in `options`.
fn stands_in(options: &OsStr, script: &OsStr) -> Result<bool> {
    let line = line(script)?;
    Ok(line.is_some_and(|line| line.ends_with(options.as_bytes().trim_ascii_end())))
}

/// Returns the text after `#!` in the first line of a script file, if the file begins with `#!`.
/// Returns none for a file that is missing or unreadable for the user; reading the script reports
/// such a file later.
fn line(script: &OsStr) -> Result<Option<Vec<u8>>> {
    match head(script) {
        Ok(head) => {
            let line = head.split(|byte| *byte == b'\n').next();
            let line = line.and_then(|line| line.strip_prefix(b"#!"));
            Ok(line.map(|line| line.trim_ascii().to_vec()))
        }
        Err(error) if is_reported_later(error.kind()) => Ok(None),
        // Without its options, the script might run twice at once or in the wrong place.
        Err(error) => Err(usage(
            Slug::ScriptFile,
            format_args!("can't read the `#!` line of {}: {}", script.display(), plain(&error)),
        )),
    }
}

/// Reads the beginning of a script file. Returns nothing for other kinds of files.
fn head(script: &OsStr) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    // The first bytes of a FIFO could not be read again.
    if std::fs::metadata(script)?.is_file() {
        File::open(script)?.take(MAX_LINE as u64).read_to_end(&mut head)?;
    }
    if head.len() == MAX_LINE && head.starts_with(b"#!") && !head.contains(&b'\n') {
        let advice = "shorten it, or set variables such as `FTSH_LOG_FILE` instead of options";
        return Err(io::Error::other(format!("Linux cuts it after 255 bytes; {advice}")));
    }
    Ok(head)
}

fn is_reported_later(kind: ErrorKind) -> bool {
    use ErrorKind::{InvalidFilename, InvalidInput, NotADirectory, NotFound, PermissionDenied};
    matches!(kind, NotFound | PermissionDenied | NotADirectory | InvalidFilename | InvalidInput)
}

/// Adds the options in the first line of the script that `flags` name. Options of the command line
/// take precedence.
pub(crate) fn complete(flags: Box<Flags>, words: Vec<OsString>) -> Result<Request> {
    let is_file = flags.has_script() && !flags.is_prefix();
    let script = flags.words.first().filter(|word| is_file && *word != "-");
    let Some(script) = script else { return Ok(Request::Work(flags)) };
    let Some(line) = line(script)? else { return Ok(Request::Work(flags)) };
    let name = script.display();
    let mut all =
        options(&line).with_context(|| format!("{name}: unclosed quote in its `#!` line"))?;
    // Options of the command line come after the options of the line.
    all.pop_if(|word| word == "--");
    // The kernel has passed the options of the line already.
    if words.starts_with(&all) {
        return Ok(Request::Work(flags));
    }
    all.extend(words);
    match flags::parse(&mut all).map_err(|error| anyhow!("{name}: in its `#!` line: {error}"))? {
        Request::Work(both) if both.words != flags.words => Err(usage(
            Slug::ScriptFile,
            format_args!("{name}: the options of its `#!` line leave no script to run"),
        )),
        request => Ok(request),
    }
}

/// Returns the options of this shell in a `#!` line, none for another program. `env -S` may come
/// first.
fn options(line: &[u8]) -> Option<Vec<OsString>> {
    let mut words = split_words(line)?.into_iter().peekable();
    let is_program =
        |word: &OsString, name: &str| Path::new(word).file_name() == Some(name.as_ref());
    if words.next_if(|word| is_program(word, "env")).is_some() {
        while words
            .next_if(|word| word.as_bytes().starts_with(b"-") || word.as_bytes().contains(&b'='))
            .is_some()
        {}
    }
    Some(if words.next().is_some_and(|word| is_program(&word, "ftsh")) {
        words.collect()
    } else {
        Vec::new()
    })
}

/// Splits a line at white space; quotes and backslashes work as in a shell. Returns none if a quote
/// is open at the end.
fn split_words(line: &[u8]) -> Option<Vec<OsString>> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut bytes = line.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            _ if byte.is_ascii_whitespace() => words.extend(word.take()),
            b'\'' | b'"' => {
                let word = word.get_or_insert_default();
                loop {
                    match bytes.next()? {
                        end if end == byte => break,
                        b'\\' if byte == b'"' => word.push(bytes.next()?),
                        quoted => word.push(quoted),
                    }
                }
            }
            b'\\' => word.get_or_insert_default().push(bytes.next()?),
            _ => word.get_or_insert_default().push(byte),
        }
    }
    words.extend(word);
    Some(words.into_iter().map(OsString::from_vec).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    fn split_of(given: &[&str]) -> Vec<OsString> {
        split(words(given)).unwrap_or_default()
    }

    #[test]
    fn options_in_one_word_are_split() {
        let after = words(&["-l", "20", "-f", "/tmp/log", "s"]);
        assert_eq!(split_of(&["-l 20 -f /tmp/log", "s"]), after);
        assert_eq!(split_of(&["-n -D", "s", "-a b"]), words(&["-n", "-D", "s", "-a b"]));
        assert_eq!(
            split_of(&["--backoff 'full from 1 s' --unset empty", "s"]),
            words(&["--backoff", "full from 1 s", "--unset", "empty", "s"])
        );
        assert_eq!(split_of(&["-D ", "s"]), words(&["-D", "s"]));
        assert_eq!(split_of(&["-f a\\ b", "s"]), words(&["-f", "a b", "s"]));
    }

    #[test]
    fn values_with_spaces_stay_whole() {
        for given in [
            &["-f/a file", "s"][..],
            &["--backoff=full from 1 s", "s"],
            &["-cecho hi", "name"],
            &["-c", "echo a b", "name"],
            &["-l 20"],
            &["a b", "s"],
        ] {
            assert_eq!(split_of(given), words(given));
        }
    }

    #[test]
    fn the_first_line_of_the_script_decides() {
        let directory = tempfile::tempdir().expect("a directory");
        let script = directory.path().join("script");
        std::fs::write(&script, "#!/usr/bin/ftsh --backoff=fixed -l 20\n").expect("a script");
        let script = script.to_str().expect("a name");
        let given = ["--backoff=fixed -l 20", script];
        assert_eq!(split_of(&given), words(&["--backoff=fixed", "-l", "20", script]));
    }

    #[test]
    fn open_quotes_are_errors() {
        assert!(split(words(&["-f 'a", "s"])).is_err());
        assert!(split(words(&["-f \"a", "s"])).is_err());
        assert!(split(words(&["-f a\\", "s"])).is_err());
    }
}
