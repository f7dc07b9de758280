//! The one renderer of messages that point into a script.
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

/// Columns of source text shown of one line; a longer line is cut around the underlined place.
const MAX_COLUMNS: usize = 100;
/// Even in the narrowest terminal.
const MIN_COLUMNS: usize = 20;
/// Mistakes shown of one script.
const MAX_ERRORS: usize = 10;
const TAB_WIDTH: usize = 4;

/// Renders a mistake with its place in `source`, ending in a newline.
pub fn render(source: &Source, error: &SyntaxError) -> String {
    render_within(source, error, MAX_COLUMNS)
}

fn render_within(source: &Source, error: &SyntaxError, columns: usize) -> String {
    let mut places = vec![Place::new(source, error.span, '^', error.label.as_deref(), columns)];
    if let Some((span, note)) = &error.related {
        places.push(Place::new(source, *span, '-', Some(note), columns));
    }
    let digits = places.iter().map(|place| place.number.to_string().len()).max().unwrap_or(1);
    let (name, line, column) = (source.name(), places[0].number, places[0].column);
    let slug = error.slug;
    let mut text = format!("{}[{slug}]: {}\n", slug.severity().name(), printable(&error.message));
    let margin = " ".repeat(digits);
    let _ = writeln!(text, "{margin}--> {}:{line}:{column}", printable(name));
    let _ = writeln!(text, "{margin} |");
    // Of two places in one script the earlier comes first.
    places.sort_by_key(|place| place.number);
    let mut before: Option<u32> = None;
    for place in &places {
        if before.is_some_and(|before| before + 1 < place.number) {
            let _ = writeln!(text, "{margin}...");
        }
        if before != Some(place.number) || place.cut {
            let line = format!("{:>digits$} | {}", place.number, place.line);
            let _ = writeln!(text, "{}", line.trim_end());
        }
        before = Some(place.number);
        let label = place.label.map(printable).unwrap_or_default();
        let marks = format!("{}{} {label}", " ".repeat(place.indent), place.marks);
        let _ = writeln!(text, "{margin} | {}", marks.trim_end());
    }
    if let Some(hint) = &error.hint {
        let _ = writeln!(text, "{margin} = hint: {}", printable(&hint.to_string()));
    }
    text
}

/// Renders the mistakes of a script, the first ten of them.
pub fn render_all(errors: &SyntaxErrors) -> String {
    render_all_within(errors, None)
}

/// Renders the mistakes of a script, the first ten of them, for a terminal of so many columns:
/// were lines of source longer, what is underlined would be elsewhere.
pub fn render_all_within(errors: &SyntaxErrors, columns: Option<usize>) -> String {
    let shown = &errors.errors[..errors.errors.len().min(MAX_ERRORS)];
    let columns = columns.map_or(MAX_COLUMNS, |columns| {
        let digits = errors.source.line(errors.source.text().len()).to_string().len();
        // Beside the text there are the number, ` | `, and maybe dots at both ends.
        columns.saturating_sub(digits + 5).clamp(MIN_COLUMNS, MAX_COLUMNS)
    });
    let mut text = render_each(&errors.source, shown, columns);
    let more = errors.errors.len().saturating_sub(MAX_ERRORS);
    if more > 0 {
        let _ = writeln!(text, "\n… and {more} more");
    }
    text
}

/// Renders what the static look found, all of it: who asks for it wants to know.
pub fn render_warnings(source: &Source, warnings: &[SyntaxError]) -> String {
    render_each(source, warnings, MAX_COLUMNS)
}

fn render_each(source: &Source, errors: &[SyntaxError], columns: usize) -> String {
    let rendered: Vec<_> =
        errors.iter().map(|error| render_within(source, error, columns)).collect();
    rendered.join("\n")
}

/// One underlined place.
struct Place<'e> {
    number: u32,
    /// In characters, from 1.
    column: usize,
    /// The source line as it is shown.
    line: String,
    /// Whether only a part of the line is shown.
    cut: bool,
    /// Columns before the marks.
    indent: usize,
    marks: String,
    label: Option<&'e str>,
}

impl<'e> Place<'e> {
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
        // Of a place on several lines the first is underlined.
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

/// The part of a line to show: no more than `most` columns, and of these the marked ones.
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

/// The nearest character boundary at or before `at`.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// Text without what would upset a terminal.
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

/// The beginning of a line of a script, fit to be shown.
pub fn excerpt(line: &str) -> String {
    let end = line.char_indices().nth(MAX_COLUMNS).map_or(line.len(), |(end, _)| end);
    let after = if end < line.len() { "…" } else { "" };
    format!("{}{after}", shown(&line[..end]))
}

/// Text in one line, without what would upset a terminal.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if is_harmless(c) { c } else { char::REPLACEMENT_CHARACTER }).collect()
}

/// Not a control character, nor one that turns the direction of text around.
fn is_harmless(c: char) -> bool {
    !c.is_control() && !matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// How many columns text takes when shown.
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
    fn the_place_is_underlined_below_tabs_and_wide_characters() {
        insta::assert_snapshot!(rendered("one\n\techo 世界 x é y\n", 16..18), @"
error[unexpected]: wrong
 --> a.ftsh:2:9
  |
2 |     echo 世界 x é y
  |              ^^ here
");
    }

    #[test]
    fn a_place_over_several_lines_is_underlined_on_its_first() {
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
        let errors = crate::parse("t", &text).expect_err("a mistake");
        insta::assert_snapshot!(render_all_within(&errors, Some(40)), @"
        error[and-or]: unexpected `||`
         --> t:1:41
          |
        1 | …世世世世世世世 || cp one-file anot…
          |                 ^^ expected the end of the command
          = hint: `||` isn't needed: a group stops at the first failure; `try … catch … end` reacts to one
        ");
        for columns in [0, 1, 12, 25, 40, 60, 80, 100, 1000] {
            let text = render_all_within(&errors, Some(columns));
            let line = text.lines().find(|line| line.starts_with("1 |")).unwrap_or_default();
            assert!(width(line) <= columns.max(MIN_COLUMNS + 6), "{columns}: {line}");
        }
    }

    #[test]
    fn terminals_are_safe_from_scripts() {
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
    fn no_span_makes_it_panic() {
        let text = "é\n\t世\r\n";
        for start in 0..12 {
            for end in 0..12 {
                rendered(text, start..end);
            }
        }
    }
}
