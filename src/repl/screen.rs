//! Where text comes to stand on a screen, and what to do when the screen has become narrower or wider.

use std::fmt::Write;
use std::io;

use unicode_width::UnicodeWidthChar;

use ftsh_process as process;

const TAB: usize = 8;

/// How large the terminal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Screen {
    rows: usize,
    columns: usize,
}

/// A place, as seen from where the prompt begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Position {
    row: usize,
    column: usize,
}

/// What an editor has written.
#[derive(Debug, Default)]
pub struct Written {
    pub prompt: String,
    pub line: String,
    /// Where in the line the cursor is.
    pub at: usize,
    pub hint: String,
    /// Where in the line a row ends that was full when it was written, so that the editor began the
    /// next one itself.
    pub broken: Option<usize>,
}

impl Screen {
    /// The one that standard output is.
    pub fn now() -> Option<Self> {
        let (rows, columns) = process::size(&io::stdout())?;
        let rows = if rows == 0 { u16::MAX } else { rows }; // it doesn't say
        Some(Self { rows: rows.into(), columns: columns.into() })
    }

    fn step(self, at: Position, c: char) -> Position {
        let width = match c {
            '\n' => return Position { row: at.row + 1, column: 0 },
            '\t' => TAB - at.column % TAB,
            c => c.width().unwrap_or(0),
        };
        if at.column + width > self.columns {
            return Position { row: at.row + 1, column: width };
        }
        Position { column: at.column + width, ..at }
    }

    fn end(self, text: &str) -> Position {
        text.chars().fold(Position::default(), |at, c| self.step(at, c))
    }

    /// For an editor, which leaves a row once it is full.
    fn edited(self, text: &str) -> Position {
        let end = self.end(text);
        if end.column == self.columns { Position { row: end.row + 1, column: 0 } } else { end }
    }

    /// Where the part of a line begins that is still to be seen when all of it has been written, and
    /// when a row was begun one more: so each is kept once for those who scroll back. It begins a row.
    pub fn visible(self, prompt: &str, line: &str) -> usize {
        let end = self.edited(&format!("{prompt}{line}"));
        let rows = self.rows + usize::from(end.column == 0);
        let first = (end.row + 1).saturating_sub(rows);
        if first == 0 {
            return 0;
        }
        let mut position = self.end(prompt);
        for (at, c) in line.char_indices() {
            let next = self.step(position, c);
            // A line end ends a row, and is none of the next.
            if next.row >= first && position.row < first {
                return if c == '\n' { at + 1 } else { at };
            }
            position = next;
        }
        0
    }

    /// Where in a line a full row ends with it, or with its hint.
    pub fn full_at(self, prompt: &str, line: &str, hint: &str) -> Option<usize> {
        let end = self.edited(&format!("{prompt}{line}{hint}"));
        (end.column == 0 && end.row > 0).then_some(line.len())
    }

    /// What an editor has to write before it shows anew what it wrote on a screen of the size
    /// `before`, if the terminal has since laid out these rows anew: the editor wipes away as many as
    /// it wrote, not as many as there are.
    pub fn rewind(self, before: Self, written: &Written) -> String {
        if self.columns == before.columns {
            return String::new();
        }
        let whole = format!("{}{}{}", written.prompt, written.line, written.hint);
        let cursor = written.prompt.len() + written.at;
        let end = before.edited(&whole).row;
        if end == 0 && self.end(&whole).row == 0 {
            return String::new();
        }
        let mut shown = whole[..cursor].to_owned();
        if let Some(broken) = written.broken.map(|at| written.prompt.len() + at)
            && shown.is_char_boundary(broken)
        {
            shown.insert(broken, '\n');
        }
        let mut sequence = String::new();
        up(&mut sequence, self.end(&shown).row);
        sequence.push_str("\r\x1b[J");
        // There must be room for as many rows as the editor goes down and up.
        sequence.push_str(&"\n".repeat(end.min(self.rows)));
        up(&mut sequence, end.saturating_sub(before.edited(&whole[..cursor]).row));
        sequence
    }
}

fn up(sequence: &mut String, rows: usize) {
    if rows > 0 {
        let _ = write!(sequence, "\x1b[{rows}A");
    }
}

/// Whether a terminal lays rows out anew when it becomes narrower or wider. Most do.
pub fn reflows() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let term = std::env::var("TERM").unwrap_or_default();
    is_set("TMUX") || !(is_set("XTERM_VERSION") || is_set("STY") || term == "linux")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NARROW: Screen = Screen { rows: 3, columns: 10 };
    const WIDE: Screen = Screen { rows: 3, columns: 20 };

    fn written(line: &str, at: usize, hint: &str, broken: Option<usize>) -> Written {
        Written { prompt: "~> ".into(), line: line.into(), at, hint: hint.into(), broken }
    }

    #[test]
    fn what_has_left_the_screen_is_not_written() {
        // Rows: 7, 10, 10, 10 letters.
        assert_eq!(NARROW.visible("~> ", &"a".repeat(26)), 0);
        assert_eq!(NARROW.visible("~> ", &"a".repeat(27)), 0);
        assert_eq!(NARROW.visible("~> ", &"a".repeat(37)), 7);
        assert_eq!(NARROW.visible("~> ", &"a".repeat(38)), 17);
        assert_eq!(NARROW.visible("~> ", &"a".repeat(47)), 17);
        assert_eq!(NARROW.visible("~> ", &format!("a\nb{}", "漢".repeat(20))), 30);
        assert_eq!(NARROW.visible("~> ", "a\nb\nc\nd\ne"), 4);
        assert_eq!(NARROW.full_at("~> ", "aaaa", "bbb"), Some(4));
        assert_eq!(NARROW.full_at("~> ", "aaaa", ""), None);
    }

    #[test]
    fn rows_that_were_laid_out_anew_are_wiped_away() {
        let rewind = |new: Screen, old: Screen, it: Written| new.rewind(old, &it);
        // Of one row two were made, and of two one.
        let line = "a".repeat(12);
        assert_eq!(rewind(NARROW, WIDE, written(&line, 12, "", None)), "\x1b[1A\r\x1b[J");
        assert_eq!(rewind(NARROW, WIDE, written(&line, 0, "", None)), "\r\x1b[J");
        assert_eq!(rewind(WIDE, NARROW, written(&line, 12, "", None)), "\r\x1b[J\n");
        assert_eq!(rewind(WIDE, NARROW, written(&line, 1, "", None)), "\r\x1b[J\n\x1b[1A");
        assert_eq!(
            rewind(WIDE, NARROW, written("a", 1, "hint hint hint", None)),
            "\r\x1b[J\n\x1b[1A"
        );
        // The editor's own line end stays one.
        assert_eq!(rewind(WIDE, NARROW, written(&line, 12, "", Some(7))), "\x1b[1A\r\x1b[J\n");
        // What fits before and after is left to the editor, which does nothing then.
        assert_eq!(rewind(NARROW, WIDE, written("a", 1, "", None)), "");
        assert_eq!(rewind(WIDE, WIDE, written(&line, 12, "", None)), "");
    }
}
