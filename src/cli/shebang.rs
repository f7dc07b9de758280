//! `#!/usr/bin/ftsh -l 20 -f /tmp/log`: the kernel passes everything after the program as one word.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use anyhow::{Context, Result};

use super::options::TABLE;

/// The longest `#!` line that Linux reads.
const LONGEST: u64 = 256;

/// Splits the first of a command line's words if it is the rest of a `#!` line.
pub fn split(mut words: Vec<OsString>) -> Result<Vec<OsString>> {
    let [first, script, ..] = words.as_slice() else { return Ok(words) };
    let word = first.as_bytes();
    if !has_space(word) || !(is_joined(word) || stands_in(first, script)) {
        return Ok(words);
    }
    let options = split_words(word)
        .with_context(|| format!("a quote isn't closed in `{}`", first.to_string_lossy()))?;
    words.splice(..1, options);
    Ok(words)
}

fn has_space(word: &[u8]) -> bool {
    word.starts_with(b"-") && word.iter().any(u8::is_ascii_whitespace)
}

/// Whether these are options in one word and can be nothing else: white space comes where no value
/// has begun, as in `-n -l 20` or `-l 20`, but not in `-f/a file` or `--backoff=full from 1 s`.
fn is_joined(word: &[u8]) -> bool {
    let option = word.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    match option.strip_prefix(b"--") {
        Some(long) => !long.contains(&b'='),
        None => {
            let takes_value =
                |byte: &u8| TABLE.iter().any(|it| it.takes_value_as(char::from(*byte)));
            !option.contains(&b'c') && !option.iter().rev().skip(1).any(takes_value)
        }
    }
}

/// Whether the first line of the script is a `#!` line that ends in `options`.
fn stands_in(options: &OsStr, script: &OsStr) -> bool {
    let mut head = Vec::new();
    let plain = std::fs::metadata(script).is_ok_and(|metadata| metadata.is_file());
    let read = |file: File| file.take(LONGEST).read_to_end(&mut head);
    if !plain || File::open(script).and_then(read).is_err() {
        return false;
    }
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    line.starts_with(b"#!") && line.trim_ascii_end().ends_with(options.as_bytes().trim_ascii_end())
}

/// Splits at white space; quotes and backslashes work as in a shell. None if a quote isn't closed.
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
    fn a_script_tells_what_its_first_line_means() {
        let directory = tempfile::tempdir().expect("a directory");
        let script = directory.path().join("script");
        std::fs::write(&script, "#!/usr/bin/ftsh --backoff=fixed -l 20\n").expect("a script");
        let script = script.to_str().expect("a name");
        let given = ["--backoff=fixed -l 20", script];
        assert_eq!(split_of(&given), words(&["--backoff=fixed", "-l", "20", script]));
    }

    #[test]
    fn open_quotes_are_told() {
        assert!(split(words(&["-f 'a", "s"])).is_err());
        assert!(split(words(&["-f \"a", "s"])).is_err());
        assert!(split(words(&["-f a\\", "s"])).is_err());
    }
}
