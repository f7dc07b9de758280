//! Manual pages from Markdown.

use std::mem;

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// A page of the manual.
pub(super) struct Page<'a> {
    /// Name of the page, such as `ftsh-language`.
    pub name: &'a str,
    /// Section of the manual.
    pub section: u8,
    /// Title of that section.
    pub manual: &'a str,
    /// Purpose of the page, in a few words.
    pub purpose: &'a str,
    /// Paragraph before the first section; none if it is empty.
    pub description: &'a str,
    /// Level of the headings that become sections. What stands before the first of them is left out.
    pub top: u8,
}

impl Page<'_> {
    /// Returns the page in the language of `roff`, without a date, so that it is the same whenever it is made.
    pub(super) fn render(&self, markdown: &str) -> String {
        let (title, section) = (self.name.to_uppercase(), self.section);
        let version = env!("CARGO_PKG_VERSION");
        let mut writer = Writer::default();
        let manual = self.manual;
        writer.line(&format!(".TH {title} {section} \"\" \"ftsh {version}\" \"{manual}\""));
        writer.line(".SH NAME");
        writer.line(&format!("{} \\- {}", escaped(self.name), escaped(self.purpose)));
        if !self.description.is_empty() {
            writer.line(".SH DESCRIPTION");
            writer.line(&escaped(self.description));
        }
        for event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
            writer.event(event, self.top);
        }
        writer.end_entry();
        writer.page
    }
}

/// Characters that `roff` interprets or that a terminal without UTF-8 lacks, and their replacements.
const REPLACED: [(char, &str); 9] = [
    ('\\', "\\e"),
    ('-', "\\-"),
    ('\'', "\\(aq"),
    ('`', "\\(ga"),
    ('…', "..."),
    ('·', "*"),
    ('ⁿ', "^n"),
    ('−', "\\-"),
    ('×', "x"),
];

/// Returns the text with some characters replaced, such as those with a meaning in `roff`.
fn escaped(text: &str) -> String {
    let replaced = |c: char| REPLACED.iter().find(|(known, _)| *known == c).map(|(_, with)| *with);
    let mut escaped = String::new();
    for c in text.chars() {
        match replaced(c) {
            Some(with) => escaped.push_str(with),
            None => escaped.push(c),
        }
    }
    escaped
}

/// A kind of text.
#[derive(Default, PartialEq)]
enum Kind {
    #[default]
    Prose,
    Heading,
    Code,
}

#[derive(Default)]
struct Writer {
    page: String,
    /// Text of the paragraph, heading or cell that is being read.
    text: String,
    /// True from the first section on.
    has_begun: bool,
    /// Kind of the text that is being read.
    kind: Kind,
    /// True inside the text under a heading of the third level.
    is_in_entry: bool,
    /// True where a paragraph needs no macro before it.
    is_first: bool,
    /// Address of the link that is being read.
    address: String,
    /// Length of the text before the image that is being read; a manual has no images.
    before_image: usize,
    /// Number of the next item of each list around; none in lists with bullets.
    lists: Vec<Option<u64>>,
    header: Vec<String>,
    row: Vec<String>,
}

impl Writer {
    fn line(&mut self, line: &str) {
        self.page.push_str(line);
        self.page.push('\n');
    }

    /// Writes the text read since the last call as a line of its own.
    fn flush(&mut self) {
        let text = mem::take(&mut self.text);
        let text = text.trim();
        if !text.is_empty() {
            let guard = if text.starts_with('.') { "\\&" } else { "" };
            self.line(&format!("{guard}{text}"));
        }
    }

    /// Begins a paragraph, unless a macro has begun it already.
    fn paragraph(&mut self) {
        if !mem::take(&mut self.is_first) {
            self.line(if self.lists.is_empty() { ".PP" } else { ".sp" });
        }
    }

    /// Returns true inside of a link to another page, which is in italics.
    fn is_other_page(&self) -> bool {
        !self.address.contains("://") && !self.address.starts_with('#')
    }

    fn end_entry(&mut self) {
        if mem::take(&mut self.is_in_entry) {
            self.line(".RE");
        }
    }

    fn event(&mut self, event: Event, top: u8) {
        match event {
            Event::End(TagEnd::Heading(level)) => self.heading(level, top),
            Event::Start(Tag::Heading { .. }) => {
                self.text.clear();
                self.kind = Kind::Heading;
            }
            Event::Text(text) | Event::Code(text) if self.kind == Kind::Heading => {
                self.text.push_str(&text);
            }
            _ if !self.has_begun => {}
            Event::Text(text) if self.kind == Kind::Code => self.code(&text),
            Event::Text(text) => self.text.push_str(&escaped(&text)),
            Event::Code(text) => self.text.push_str(&format!("\\fB{}\\fR", escaped(&text))),
            Event::SoftBreak | Event::HardBreak => self.text.push(' '),
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            _ => {}
        }
    }

    fn heading(&mut self, level: HeadingLevel, top: u8) {
        let level = level as u8;
        self.kind = Kind::Prose;
        let text = mem::take(&mut self.text);
        if level < top {
            return;
        }
        self.end_entry();
        self.has_begun = true;
        let quoted = |text: &str| escaped(text).replace('"', "\\(dq");
        match level - top {
            0 => self.line(&format!(".SH \"{}\"", quoted(&text.to_uppercase()))),
            1 => self.line(&format!(".SS \"{}\"", quoted(&text))),
            _ => {
                self.paragraph();
                self.line(&format!("\\fB{}\\fR", escaped(&text)));
                self.line(".RS 4");
                self.is_in_entry = true;
            }
        }
        self.is_first = true;
    }

    fn code(&mut self, text: &str) {
        for line in text.lines() {
            let line = escaped(line);
            let guard = if line.starts_with('.') { "\\&" } else { "" };
            self.line(&format!("{guard}{line}"));
        }
    }

    fn start(&mut self, tag: Tag) {
        match tag {
            Tag::CodeBlock(_) => {
                self.flush();
                self.paragraph();
                self.line(".RS 4");
                self.line(".EX");
                self.kind = Kind::Code;
            }
            Tag::List(first) => {
                self.flush();
                if !self.lists.is_empty() {
                    self.line(".RS 4");
                }
                self.lists.push(first);
            }
            Tag::Item => {
                let label = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. 4", *number - 1)
                    }
                    _ => "\\(bu 2".to_owned(),
                };
                self.line(&format!(".IP {label}"));
                self.is_first = true;
            }
            Tag::Emphasis => self.text.push_str("\\fI"),
            Tag::Strong => self.text.push_str("\\fB"),
            Tag::Image { .. } => self.before_image = self.text.len(),
            Tag::Link { dest_url, .. } => {
                self.address = dest_url.into_string();
                if self.is_other_page() {
                    self.text.push_str("\\fI");
                }
            }
            Tag::TableHead | Tag::TableRow => self.row.clear(),
            Tag::TableCell => self.text.clear(),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph if self.text.trim().is_empty() => self.text.clear(),
            TagEnd::Paragraph => {
                self.paragraph();
                self.flush();
            }
            TagEnd::CodeBlock => {
                self.line(".EE");
                self.line(".RE");
                self.kind = Kind::Prose;
            }
            TagEnd::List(_) => {
                self.is_first = false;
                self.lists.pop();
                if !self.lists.is_empty() {
                    self.line(".RE");
                }
            }
            TagEnd::Item => self.flush(),
            TagEnd::Emphasis | TagEnd::Strong => self.text.push_str("\\fR"),
            TagEnd::Link => {
                let is_other_page = self.is_other_page();
                let address = mem::take(&mut self.address);
                if is_other_page {
                    self.text.push_str("\\fR");
                } else if address.contains("://") {
                    self.text.push_str(&escaped(&format!(" <{address}>")));
                }
            }
            TagEnd::Image => self.text.truncate(self.before_image),
            TagEnd::TableCell => self.row.push(mem::take(&mut self.text)),
            TagEnd::TableHead => self.header = mem::take(&mut self.row),
            TagEnd::TableRow => self.table_row(),
            _ => {}
        }
    }

    /// Writes a row: its first cell as a label, the others below, each after its title if there are several.
    fn table_row(&mut self) {
        let row = mem::take(&mut self.row);
        let Some((label, cells)) = row.split_first() else { return };
        self.is_first = false;
        self.line(".TP");
        self.line(if label.is_empty() { "\\&" } else { label });
        for (number, cell) in cells.iter().enumerate().filter(|(_, cell)| !cell.is_empty()) {
            if number > 0 {
                self.line(".br");
            }
            let title = self.header.get(number + 1).filter(|title| !title.is_empty());
            let title = title.filter(|_| cells.len() > 1).map(|title| format!("{title}: "));
            self.text = title.unwrap_or_default() + cell;
            self.flush();
        }
    }
}
