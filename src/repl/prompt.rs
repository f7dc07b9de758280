//! Text of the prompt before the cursor.

use std::path::Path;

use thiserror::Error;
use unicode_width::UnicodeWidthStr;

use ftsh_syntax::Unfinished;

/// Format of the prompt without `FTSH_PROMPT`.
const DEFAULT: &str = "\\?\\w> ";
/// Divisor of the line width that limits the directory, and the width always available to it.
const DIRECTORY_SHARE: usize = 3;
const MIN_DIRECTORY: usize = 12;

/// Facts that a prompt can show.
pub(super) struct Facts<'a> {
    /// The working directory.
    pub directory: &'a Path,
    /// The home directory.
    pub home: Option<&'a Path>,
    /// Failure of the last statement.
    pub failure: Option<&'a str>,
    /// Name of the user.
    pub user: &'a str,
    /// Name of the machine.
    pub host: &'a str,
    /// True if the user is root.
    pub root: bool,
    /// Columns of the terminal.
    pub columns: usize,
    /// True if the terminal shows more than ASCII.
    pub unicode: bool,
}

/// A prompt without and with colors.
pub(super) type Shown = (String, String);

/// Error in a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(super) enum FormatError {
    /// A backslash before a character without a meaning.
    #[error("unknown sequence `\\{0}`")]
    Unknown(char),
    /// A backslash at the end.
    #[error("a backslash at the end")]
    Open,
}

/// Renders the prompt in a format.
pub(super) fn render(format: Option<&str>, facts: &Facts) -> Result<Shown, FormatError> {
    let (format, colors) = match format {
        Some(format) => (format, false),
        None => (DEFAULT, true),
    };
    let (mut raw, mut styled) = (String::new(), String::new());
    let mut push = |text: &str, style: &str| {
        raw.push_str(text);
        if colors && !style.is_empty() && !text.is_empty() {
            styled.push_str(&format!("\x1b[{style}m{text}\x1b[0m"));
        } else {
            styled.push_str(text);
        }
    };
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            // Only `\e` and `\n` produce control characters.
            push(&printable(&c.to_string()), "");
            continue;
        }
        match chars.next() {
            Some('w') => push(&directory(facts), "1;34"),
            Some('W') => push(&last_part(facts), "1;34"),
            Some('u') => push(&printable(facts.user), ""),
            Some('h') => push(&printable(facts.host), ""),
            Some('?') => {
                if let Some(failure) = facts.failure {
                    push(&format!("[{failure}]"), "31");
                    push(" ", "");
                }
            }
            Some('$') => push(if facts.root { "#" } else { "$" }, ""),
            Some('e') => push("\x1b", ""),
            Some('n') => push("\n", ""),
            Some('\\') => push("\\", ""),
            Some(other) => return Err(FormatError::Unknown(other)),
            None => return Err(FormatError::Open),
        }
    }
    Ok((without_escapes(&raw), styled))
}

/// Returns the prompt for further lines of an input.
pub(super) fn continuation(unfinished: Unfinished, unicode: bool) -> String {
    let dots = dots(unicode);
    match unfinished {
        Unfinished::Block(keyword) => format!("{keyword}{dots}> "),
        Unfinished::Quote(quote) => format!("{quote}{dots}> "),
        Unfinished::Document => format!("<<{dots}> "),
        Unfinished::Pipeline => format!("|{dots}> "),
        Unfinished::Line => format!("{dots}> "),
    }
}

fn dots(unicode: bool) -> &'static str {
    if unicode { "…" } else { "..." }
}

/// Returns the directory relative to the home directory, shortened to its end if it is long.
fn directory(facts: &Facts) -> String {
    let text = match facts.home.and_then(|home| facts.directory.strip_prefix(home).ok()) {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", rest.display()),
        None => facts.directory.display().to_string(),
    };
    let text = printable(&text);
    let most = (facts.columns / DIRECTORY_SHARE).max(MIN_DIRECTORY);
    if text.width() <= most {
        return text;
    }
    // Keeps as many of the last names as fit, but at least one.
    let short = |at: usize| format!("{}{}", dots(facts.unicode), &text[at..]);
    let slashes: Vec<usize> = text.match_indices('/').map(|(at, _)| at).collect();
    let fitting = slashes.iter().copied().find(|at| short(*at).width() <= most);
    short(fitting.or(slashes.last().copied()).unwrap_or(0))
}

fn last_part(facts: &Facts) -> String {
    if Some(facts.directory) == facts.home {
        return "~".into();
    }
    match facts.directory.file_name() {
        Some(name) => printable(&name.to_string_lossy()),
        None => "/".into(),
    }
}

fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Removes sequences that begin with an escape character.
fn without_escapes(text: &str) -> String {
    let mut plain = String::new();
    let mut pieces = text.split('\x1b');
    plain.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let rest = match piece.strip_prefix('[') {
            Some(sequence) => {
                let end = sequence.find(|c: char| ('@'..='~').contains(&c));
                end.map_or("", |end| &sequence[end + 1..])
            }
            None => piece.get(1..).unwrap_or_default(),
        };
        plain.push_str(rest);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(directory: &str) -> Facts<'_> {
        Facts {
            directory: Path::new(directory),
            home: Some(Path::new("/home/me")),
            failure: None,
            user: "me",
            host: "box",
            root: false,
            columns: 80,
            unicode: true,
        }
    }

    fn shown(format: Option<&str>, facts: &Facts) -> String {
        render(format, facts).expect("a prompt").0
    }

    #[test]
    fn a_prompt_shows_directory_and_failure() {
        assert_eq!(shown(None, &facts("/home/me")), "~> ");
        assert_eq!(shown(None, &facts("/home/me/src")), "~/src> ");
        assert_eq!(shown(None, &facts("/home/melon")), "/home/melon> ");
        let failed = Facts { failure: Some("exit 7"), ..facts("/") };
        assert_eq!(shown(None, &failed), "[exit 7] /> ");
        let styled = render(None, &failed).expect("a prompt").1;
        assert_eq!(styled, "\x1b[31m[exit 7]\x1b[0m \x1b[1;34m/\x1b[0m> ");
    }

    #[test]
    fn a_long_directory_is_cut_to_the_terminal() {
        let long = "/usr/share/doc/a-package/examples";
        assert_eq!(shown(None, &Facts { columns: 40, ..facts(long) }), "…/examples> ");
        assert_eq!(shown(None, &Facts { columns: 60, ..facts(long) }), "…/a-package/examples> ");
        assert_eq!(shown(None, &Facts { columns: 120, ..facts(long) }), format!("{long}> "));
        let ascii = Facts { columns: 40, unicode: false, ..facts(long) };
        assert_eq!(shown(None, &ascii), ".../examples> ");
        assert_eq!(shown(None, &facts("/a\x1b[2Jb")), "/a?[2Jb> ");
    }

    #[test]
    fn a_prompt_can_be_set() {
        let format = Some("\\u@\\h \\W\\$ ");
        assert_eq!(shown(format, &facts("/home/me/src")), "me@box src$ ");
        assert_eq!(shown(format, &Facts { root: true, ..facts("/") }), "me@box /# ");
        let (raw, styled) = render(Some("\\e[1ma\\e[0m\\n\\\\"), &facts("/")).expect("a prompt");
        assert_eq!((raw.as_str(), styled.as_str()), ("a\n\\", "\x1b[1ma\x1b[0m\n\\"));
        assert!(render(Some("\\q"), &facts("/")).is_err());
        assert!(render(Some("a\\"), &facts("/")).is_err());
    }
}
