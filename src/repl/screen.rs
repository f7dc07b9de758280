//! Positions of text on a screen, and redraws after a change of its width.

use std::fmt::Write;
use std::io;

use unicode_width::UnicodeWidthChar;

use ftsh_process as process;

const TAB: usize = 8;

/// Size of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Screen {
    rows: usize,
    columns: usize,
}

/// A position relative to the beginning of the prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Position {
    row: usize,
    column: usize,
}

/// Text that an editor has written.
#[derive(Debug, Default)]
pub(super) struct EditorText {
    pub prompt: String,
    pub line: String,
    /// Position of the cursor in the line.
    pub at: usize,
    pub hint: String,
    /// Position in the line where a full row ended, after which the editor began a new row.
    pub broken: Option<usize>,
}

impl Screen {
    /// Returns the screen of standard output.
    pub(super) fn now() -> Option<Self> {
        let (rows, columns) = process::size(&io::stdout())?;
        let rows = if rows == 0 { u16::MAX } else { rows }; // the size is unknown
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

    /// Returns the end of text in an editor, which leaves a row once the row is full.
    fn edited(self, text: &str) -> Position {
        let end = self.end(text);
        if end.column == self.columns { Position { row: end.row + 1, column: 0 } } else { end }
    }

    /// Returns the start of the visible part of a line, which begins a row. The visible part
    /// assumes that the whole line was written and one more row has begun, so each row enters the
    /// scrollback once.
    pub(super) fn visible(self, prompt: &str, line: &str) -> usize {
        let end = self.edited(&format!("{prompt}{line}"));
        let rows = self.rows + usize::from(end.column == 0);
        let first = (end.row + 1).saturating_sub(rows);
        if first == 0 {
            return 0;
        }
        let mut position = self.end(prompt);
        for (at, c) in line.char_indices() {
            let next = self.step(position, c);
            // A newline ends its row and does not belong to the next one.
            if next.row >= first && position.row < first {
                return if c == '\n' { at + 1 } else { at };
            }
            position = next;
        }
        0
    }

    /// Returns the position in the line after which a full row ends, with or without the hint.
    pub(super) fn full_at(self, prompt: &str, line: &str, hint: &str) -> Option<usize> {
        let end = self.edited(&format!("{prompt}{line}{hint}"));
        (end.column == 0 && end.row > 0).then_some(line.len())
    }

    /// Returns the sequence that an editor must write before a redraw, if the terminal has changed
    /// its width since the size `before`. The editor erases as many rows as it wrote, not as many
    /// as the reflowed text has.
    pub(super) fn rewind(self, before: Self, written: &EditorText) -> String {
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
        // The screen needs room for as many rows as the editor moves down and up.
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

/// True if a terminal reflows rows after a change of its width. Most terminals do.
pub(super) fn reflows() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let term = std::env::var("TERM").unwrap_or_default();
    is_set("TMUX") || !(is_set("XTERM_VERSION") || is_set("STY") || term == "linux")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NARROW: Screen = Screen { rows: 3, columns: 10 };
    const WIDE: Screen = Screen { rows: 3, columns: 20 };

    fn written(line: &str, at: usize, hint: &str, broken: Option<usize>) -> EditorText {
        EditorText { prompt: "~> ".into(), line: line.into(), at, hint: hint.into(), broken }
    }

    #[test]
    fn hidden_rows_are_not_written() {
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
    fn reflowed_rows_are_erased() {
        let rewind = |new: Screen, old: Screen, it: EditorText| new.rewind(old, &it);
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
