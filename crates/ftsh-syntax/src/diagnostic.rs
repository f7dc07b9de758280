//! Renderer of all messages that point into a script.
//!
//! ```text
//! error[unknown-unit]: unknown unit `minutse`
//!  --> backup.ftsh:3:11
//!   |
//! 3 | try for 5 minutse
//!   |           ^^^^^^^ expected `times`, `seconds`, `minutes`, `hours` or `days`
//!   = hint: did you mean `minutes`?
//! ```

use std::fmt::Write;

use unicode_width::UnicodeWidthChar;

use crate::error::{SyntaxError, SyntaxErrors};
use crate::{Source, Span};

/// Maximum number of columns of a displayed source line; a longer line is cut around the marks.
const MAX_COLUMNS: usize = 100;
/// Minimum number of columns, for very narrow terminals.
const MIN_COLUMNS: usize = 20;
/// Maximum number of displayed errors of a script.
const MAX_ERRORS: usize = 10;
const TAB_WIDTH: usize = 4;

/// Renders an error with its place in `source`. The text ends in a newline.
pub fn render(source: &Source, error: &SyntaxError) -> String {
    render_within(source, error, MAX_COLUMNS)
}

fn render_within(source: &Source, error: &SyntaxError, columns: usize) -> String {
    let mut excerpts = vec![Excerpt::new(source, error.span, '^', error.label.as_deref(), columns)];
    if let Some((span, note)) = &error.related {
        excerpts.push(Excerpt::new(source, *span, '-', Some(note), columns));
    }
    let digits = excerpts.iter().map(|excerpt| excerpt.number.to_string().len()).max().unwrap_or(1);
    let (name, line, column) = (source.name(), excerpts[0].number, excerpts[0].column);
    let slug = error.slug;
    let mut text = format!("{}[{slug}]: {}\n", slug.severity().name(), printable(&error.message));
    let margin = " ".repeat(digits);
    let _ = writeln!(text, "{margin}--> {}:{line}:{column}", printable(name));
    let _ = writeln!(text, "{margin} |");
    // Of two places in one script, the earlier one comes first.
    excerpts.sort_by_key(|excerpt| excerpt.number);
    let mut before: Option<u32> = None;
    for excerpt in &excerpts {
        if before.is_some_and(|before| before + 1 < excerpt.number) {
            let _ = writeln!(text, "{margin}...");
        }
        if before != Some(excerpt.number) || excerpt.cut {
            let line = format!("{:>digits$} | {}", excerpt.number, excerpt.line);
            let _ = writeln!(text, "{}", line.trim_end());
        }
        before = Some(excerpt.number);
        let label = excerpt.label.map(printable).unwrap_or_default();
        let marks = format!("{}{} {label}", " ".repeat(excerpt.indent), excerpt.marks);
        let _ = writeln!(text, "{margin} | {}", marks.trim_end());
    }
    if let Some(hint) = &error.hint {
        let _ = writeln!(text, "{margin} = hint: {}", printable(&hint.to_string()));
    }
    text
}

/// Renders the first ten errors of a script.
pub fn render_all(errors: &SyntaxErrors) -> String {
    render_all_within(errors, None)
}

/// Renders the first ten errors of a script for a terminal of this width.
///
/// A longer source line would wrap, and the marks would stand below the wrong characters.
pub fn render_all_within(errors: &SyntaxErrors, columns: Option<usize>) -> String {
    let shown = &errors.errors[..errors.errors.len().min(MAX_ERRORS)];
    let columns = columns.map_or(MAX_COLUMNS, |columns| {
        let digits = errors.source.line(errors.source.text().len()).to_string().len();
        // Number, ` | `, and possibly dots at both ends surround the source text.
        columns.saturating_sub(digits + 5).clamp(MIN_COLUMNS, MAX_COLUMNS)
    });
    let mut text = render_each(&errors.source, shown, columns);
    let more = errors.errors.len().saturating_sub(MAX_ERRORS);
    if more > 0 {
        let _ = writeln!(text, "\n… and {more} more");
    }
    text
}

/// Renders all warnings of the lint.
pub fn render_warnings(source: &Source, warnings: &[SyntaxError]) -> String {
    render_each(source, warnings, MAX_COLUMNS)
}

fn render_each(source: &Source, errors: &[SyntaxError], columns: usize) -> String {
    let rendered: Vec<_> =
        errors.iter().map(|error| render_within(source, error, columns)).collect();
    rendered.join("\n")
}

/// Excerpt of a source line with marks below it.
struct Excerpt<'e> {
    number: u32,
    /// Position of the marks in characters, from 1.
    column: usize,
    /// Source line as displayed.
    line: String,
    /// True if a part of the line is left out.
    cut: bool,
    /// Number of columns before the marks.
    indent: usize,
    marks: String,
    label: Option<&'e str>,
}

impl<'e> Excerpt<'e> {
    fn new(
        source: &Source,
        span: Span,
        mark: char,
        label: Option<&'e str>,
        columns: usize,
    ) -> Self {
        let text = source.text();
        let start = boundary(text, span.start);
        let number = source.line(start);
        let line = source.line_span(number);
        let content = &text[line.start..line.end];
        let start = start.clamp(line.start, line.end) - line.start;
        // A place on several lines has marks below its first line.
        let end = boundary(text, span.end).clamp(line.start + start, line.end) - line.start;

        let column = content[..start].chars().count() + 1;
        let (from, to) = window(content, start, end, columns);
        let (before, after) =
            (if from > 0 { "…" } else { "" }, if to < content.len() { "…" } else { "" });
        let marked = width(&content[start..end.min(to)]).max(1);
        Self {
            number,
            column,
            line: format!("{before}{}{after}", shown(&content[from..to])).trim_end().to_owned(),
            cut: from > 0 || to < content.len(),
            indent: before.chars().count() + width(&content[from..start]),
            marks: std::iter::repeat_n(mark, marked).collect(),
            label,
        }
    }
}

/// Returns the range of a line to display: at most `most` columns, with the marked part.
fn window(line: &str, start: usize, end: usize, most: usize) -> (usize, usize) {
    if width(line) <= most {
        return (0, line.len());
    }
    let fits = |room: usize, columns: &mut usize, c: char| {
        *columns += column_width(c);
        *columns <= room
    };
    let from = if width(&line[..end]) <= most {
        0
    } else {
        let room = most.saturating_sub(width(&line[start..end])) / 2;
        let mut columns = 0;
        let before = line[..start].char_indices().rev();
        before.take_while(|(_, c)| fits(room, &mut columns, *c)).last().map_or(start, |it| it.0)
    };
    let mut columns = 0;
    let after = line[from..].char_indices().find(|(_, c)| !fits(most, &mut columns, *c));
    (from, after.map_or(line.len(), |(at, _)| from + at).max(start))
}

/// Returns the nearest character boundary at or before `at`.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// Returns text with spaces for tabs, and without characters that control a terminal.
fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => shown.push_str(&" ".repeat(TAB_WIDTH)),
            c if is_harmless(c) => shown.push(c),
            _ => shown.push(char::REPLACEMENT_CHARACTER),
        }
    }
    shown
}

/// Returns the beginning of a script's line for display.
pub fn excerpt(line: &str) -> String {
    let end = line.char_indices().nth(MAX_COLUMNS).map_or(line.len(), |(end, _)| end);
    let after = if end < line.len() { "…" } else { "" };
    format!("{}{after}", shown(&line[..end]))
}

/// Returns text on one line, without characters that control a terminal.
pub fn printable(text: &str) -> String {
    let shown = |c| match c {
        '\n' => '⏎',
        c if is_harmless(c) => c,
        _ => char::REPLACEMENT_CHARACTER,
    };
    text.chars().map(shown).collect()
}

/// Returns true for a character that neither controls a terminal nor changes the direction of text.
fn is_harmless(c: char) -> bool {
    !c.is_control() && !matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns the number of columns of displayed text.
fn width(text: &str) -> usize {
    text.chars().map(column_width).sum()
}

fn column_width(c: char) -> usize {
    match c {
        '\t' => TAB_WIDTH,
        c if is_harmless(c) => c.width().unwrap_or(0),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hint::hint;
    use crate::slug::Slug;

    fn rendered(text: &str, span: std::ops::Range<usize>) -> String {
        let source = Source::new("a.ftsh", text);
        let error = SyntaxError::new(Slug::Unexpected, Span::new(span.start, span.end), "wrong")
            .label("here");
        render(&source, &error)
    }

    #[test]
    fn marks_stand_below_tabs_and_wide_characters() {
        insta::assert_snapshot!(rendered("one\n\techo 世界 x é y\n", 16..18), @"
error[unexpected]: wrong
 --> a.ftsh:2:9
  |
2 |     echo 世界 x é y
  |              ^^ here
");
    }

    #[test]
    fn a_place_on_several_lines_has_marks_below_the_first() {
        insta::assert_snapshot!(rendered("echo \"a\nb\"\n", 5..10), @r#"
error[unexpected]: wrong
 --> a.ftsh:1:6
  |
1 | echo "a
  |      ^^ here
"#);
    }

    #[test]
    fn the_end_of_the_text_is_a_place() {
        insta::assert_snapshot!(rendered("try\n", 4..4), @"
error[unexpected]: wrong
 --> a.ftsh:2:1
  |
2 |
  | ^ here
");
        insta::assert_snapshot!(rendered("", 0..0), @"
error[unexpected]: wrong
 --> a.ftsh:1:1
  |
1 |
  | ^ here
");
        insta::assert_snapshot!(rendered("try", 3..9), @"
error[unexpected]: wrong
 --> a.ftsh:1:4
  |
1 | try
  |    ^ here
");
    }

    #[test]
    fn long_lines_are_cut_around_the_place() {
        let text = format!("{} here {}", "a".repeat(500), "b".repeat(500));
        insta::assert_snapshot!(rendered(&text, 501..505), @"
error[unexpected]: wrong
 --> a.ftsh:1:502
  |
1 | …aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa here bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb…
  |                                                  ^^^^ here
");
    }

    #[test]
    fn a_narrow_terminal_shows_less_of_a_line() {
        let text = format!("\techo 世界 {} || cp one-file another-file", "世".repeat(30));
        let errors = crate::parse("t", &text).expect_err("an error");
        insta::assert_snapshot!(render_all_within(&errors, Some(40)), @r"
error[and-or]: unexpected `||`
 --> t:1:41
  |
1 | …世世世世世世世 || cp one-file anot…
  |                 ^^ expected the end of the command
  = hint: a failure is handled by `try … catch … end`; a question is `if ! …`, which continues in either case
");
        for columns in [0, 1, 12, 25, 40, 60, 80, 100, 1000] {
            let text = render_all_within(&errors, Some(columns));
            let line = text.lines().find(|line| line.starts_with("1 |")).unwrap_or_default();
            assert!(width(line) <= columns.max(MIN_COLUMNS + 6), "{columns}: {line}");
        }
    }

    #[test]
    fn control_characters_are_replaced() {
        let text = rendered("\x1b[31m \u{202e}x\r\n", 0..1);
        assert!(!text.contains(['\x1b', '\u{202e}', '\r']), "{text:?}");
    }

    #[test]
    fn related_places_come_in_the_order_of_the_text() {
        let source = Source::new("a", "function f\nend\n\nfunction f\nend\n");
        let error = SyntaxError::new(Slug::Unexpected, Span::new(25, 26), "twice")
            .related(Span::new(9, 10), "first defined here")
            .hint(hint!("rename one"));
        insta::assert_snapshot!(render(&source, &error), @"
error[unexpected]: twice
 --> a:4:10
  |
1 | function f
  |          - first defined here
 ...
4 | function f
  |          ^
  = hint: rename one
");
    }

    #[test]
    fn no_span_panics() {
        let text = "é\n\t世\r\n";
        for start in 0..12 {
            for end in 0..12 {
                rendered(text, start..end);
            }
        }
    }
}
