//! Explanations of slugs, for `--explain`, `help` and the index of errors.

use super::Slug;

/// Explanation of a slug: a file of the folder `slugs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Meaning, in one sentence.
    pub meaning: &'static str,
    /// Program that causes the message; empty if no program does on purpose.
    pub program: &'static str,
    /// Advice.
    pub remedy: &'static str,
    /// Program that follows the advice; empty if the first program is empty.
    pub corrected: &'static str,
    /// Set when a test can run the corrected program; else a test only checks the program.
    pub runs: bool,
}

/// Line that ends a program.
const END: &str = "\n```\n";

impl Explanation {
    /// Reads an explanation: the meaning, a program, the remedy and a program, as paragraphs and
    /// fenced blocks of Markdown.
    pub(super) fn read(text: &'static str) -> Self {
        let (meaning, rest) = text.split_once("\n\n").unwrap_or((text, ""));
        let (program, rest) = block(rest).map_or(("", rest), |(_, program, rest)| (program, rest));
        let (remedy, rest) = rest.split_once("\n\n").unwrap_or((rest, ""));
        let (label, corrected) =
            block(rest).map_or(("", ""), |(label, corrected, _)| (label, corrected));
        let runs = label == "ftsh";
        Self { meaning: meaning.trim_end(), program, remedy: remedy.trim_end(), corrected, runs }
    }

    /// Returns the paragraphs as text for people, with programs indented by two blanks.
    pub fn paragraphs(&self) -> String {
        let mut text = String::new();
        for (paragraph, is_program) in [
            (self.meaning, false),
            (self.program, true),
            (self.remedy, false),
            (self.corrected, true),
        ] {
            if paragraph.is_empty() {
                continue;
            }
            if !text.is_empty() {
                text.push('\n');
            }
            for line in paragraph.lines() {
                text.push_str(if is_program && !line.is_empty() { "  " } else { "" });
                text.push_str(line);
                text.push('\n');
            }
        }
        text
    }
}

/// Splits a text that begins with a fenced block into the label, the block and the text after it.
fn block(text: &str) -> Option<(&str, &str, &str)> {
    let (label, rest) = text.strip_prefix("```")?.split_once('\n')?;
    let (block, rest) = rest.split_once(END)?;
    Some((label, block, rest.trim_start()))
}

impl Slug {
    /// Returns the explanation.
    pub fn explanation(self) -> Explanation {
        Explanation::read(self.page())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn explanations_have_four_parts() {
        for slug in Slug::ALL {
            let page = slug.page();
            let Explanation { meaning, program, remedy, corrected, .. } = slug.explanation();
            assert!(meaning.ends_with('.') && !meaning.contains('\n'), "{slug}: {meaning}");
            assert!(remedy.ends_with('.') && !remedy.contains('\n'), "{slug}: {remedy}");
            let word = slug.severity().name();
            let has_program = !program.is_empty();
            assert_eq!(has_program, page.contains(&format!("\n```ftsh {word}\n")), "{slug}");
            assert_eq!(has_program, !corrected.is_empty(), "{slug}");
            assert_eq!(page.matches("```").count(), if has_program { 4 } else { 0 }, "{slug}");
            assert!(page.ends_with(if has_program { END } else { ".\n" }), "{slug}");
        }
    }
}
