//! Words, strings, variables, here-documents.

use super::Printer;
use crate::ast::{
    BinaryOperator, Block, Command, CommandKind, Expr, ExprKind, Index, Parameter, Quoted,
    Substitute, VariableUse, Word, WordPart,
};
use crate::parse::literal;
use crate::vocabulary::is_name;

/// Surroundings of text, which decide on the characters to escape.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EscapeContext {
    Quotes,
    Document,
}

impl Printer {
    pub(super) fn word(&mut self, word: &Word) {
        self.parts(&word.parts);
    }

    fn parts(&mut self, parts: &[WordPart]) {
        for (at, part) in parts.iter().enumerate() {
            let next = parts.get(at + 1);
            match part {
                WordPart::Bare(text) => {
                    self.text.push_str(text);
                    // Two bare parts come from lines joined inside a word. Without the line break
                    // they could become a keyword, an operator or a variable.
                    let is_variable =
                        matches!(next, Some(WordPart::Variable(_) | WordPart::Call(_)));
                    let dollar = text.ends_with('$') && is_variable;
                    if dollar || matches!(next, Some(WordPart::Bare(_))) {
                        self.text.push_str("\\\n");
                    }
                }
                WordPart::Escaped(escaped) => {
                    self.text.push('\\');
                    self.text.push(*escaped);
                }
                WordPart::Single(text) => self.single(text),
                WordPart::Double(pieces) => {
                    self.text.push('"');
                    self.pieces(pieces, EscapeContext::Quotes);
                    self.text.push('"');
                }
                WordPart::Variable(variable) => {
                    let glued = matches!(next, Some(WordPart::Bare(text)) if goes_on(text));
                    self.variable(variable, glued);
                }
                WordPart::Call(expr) => self.call(expr),
            }
        }
    }

    fn call(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Collected(_) => self.expr(expr),
            ExprKind::Group(inner) => {
                self.text.push_str("$((");
                match &inner.kind {
                    // The parser adds the zero to a value alone.
                    ExprKind::Binary { operator: BinaryOperator::Add, left, right, .. }
                        if is_zero(right) && right.span == left.span =>
                    {
                        self.sum(left);
                    }
                    _ => self.sum(inner),
                }
                self.text.push_str("))");
            }
            _ => {
                self.text.push_str("${");
                self.expr(expr);
                self.text.push('}');
            }
        }
    }

    /// Prints an expression of `$((…))`, where names are variables.
    fn sum(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Group(inner) => match &inner.kind {
                // The parser adds the zero to a sign.
                ExprKind::Binary { operator: BinaryOperator::Sub, left, right, .. }
                    if is_zero(left) && left.span == expr.span && !is_number(right) =>
                {
                    self.text.push('-');
                    self.sum(right);
                }
                _ => {
                    self.text.push('(');
                    self.sum(inner);
                    self.text.push(')');
                }
            },
            ExprKind::Binary { operator, left, right, .. } => {
                self.sum(left);
                let symbol = operator.symbol().unwrap_or(operator.spelling());
                self.text.push_str(&format!(" {symbol} "));
                self.sum(right);
            }
            _ => {
                let start = self.text.len();
                self.expr(expr);
                if self.text[start..].strip_prefix('$').is_some_and(is_name) {
                    self.text.remove(start);
                }
            }
        }
    }

    /// Prints `$(commands)`: one command on the line, and more on lines of their own.
    pub(super) fn collected(&mut self, block: &Block) {
        let printed = |depth| {
            let mut printer = Self { depth, ..Self::default() };
            printer.block(block);
            printer.end_line();
            printer.text
        };
        let line = printed(0);
        let is_comment = |it: &Command| matches!(it.kind, CommandKind::Comment { .. });
        self.text.push_str("$(");
        match line.trim_end_matches('\n') {
            line if !line.contains('\n') && !block.commands.iter().any(is_comment) => {
                // `$(name)` is first of all a variable.
                if is_name(line) {
                    self.text.push(' ');
                }
                self.text.push_str(line);
            }
            _ => {
                self.text.push('\n');
                self.text.push_str(&printed(self.depth + 1));
                self.indent();
            }
        }
        self.text.push(')');
    }

    fn single(&mut self, text: &str) {
        self.text.push('\'');
        let mut rest = text.chars().peekable();
        while let Some(c) = rest.next() {
            let escape = match c {
                '\'' => true,
                '\\' => matches!(rest.peek(), None | Some('\'' | '"' | '\\')),
                _ => false,
            };
            if escape {
                self.text.push('\\');
            }
            self.text.push(c);
        }
        self.text.push('\'');
    }

    /// Prints the content of a double-quoted string or a here-document.
    fn pieces(&mut self, pieces: &[Quoted], context: EscapeContext) {
        for (at, piece) in pieces.iter().enumerate() {
            let next = pieces.get(at + 1);
            match piece {
                Quoted::Text(text) => {
                    let before_variable =
                        matches!(next, Some(Quoted::Variable(_) | Quoted::Call(_)));
                    self.quoted_text(text, before_variable, context);
                }
                Quoted::Variable(variable) => {
                    let glued = matches!(next, Some(Quoted::Text(text)) if goes_on(text));
                    self.variable(variable, glued);
                }
                Quoted::Call(expr) => self.call(expr),
            }
        }
    }

    fn quoted_text(&mut self, text: &str, before_variable: bool, context: EscapeContext) {
        let mut rest = text.chars().peekable();
        while let Some(c) = rest.next() {
            let next = rest.peek();
            let escape = match c {
                '"' => context == EscapeContext::Quotes,
                '`' => true,
                '$' => match next {
                    Some(next) => next.is_ascii_alphanumeric() || "_{(#*@$?!-".contains(*next),
                    None => before_variable,
                },
                '\\' => match next {
                    Some('"' | '\'') => context == EscapeContext::Quotes,
                    None | Some('$' | '\\' | '`' | '\n' | '\r') => true,
                    Some(_) => false,
                },
                _ => false,
            };
            if escape {
                self.text.push('\\');
            }
            self.text.push(c);
        }
    }

    /// Prints a variable, with braces if `glued` to a character that would lengthen the name.
    fn variable(&mut self, variable: &VariableUse, glued: bool) {
        let name = match &variable.parameter {
            Parameter::Named(name) => name.to_string(),
            Parameter::Positional(number) => number.to_string(),
            Parameter::Count => "#".to_owned(),
            Parameter::Star => "*".to_owned(),
            Parameter::At => "@".to_owned(),
            Parameter::Pid => "$".to_owned(),
        };
        let long = matches!(&variable.parameter, Parameter::Positional(10..));
        let named = matches!(&variable.parameter, Parameter::Named(_) | Parameter::Positional(_));
        if let Some((Substitute::Command, _)) = &variable.substitute {
            self.text.push_str("$(");
            self.text.push_str(&name);
            self.text.push(')');
        } else if variable.index.is_some() || variable.substitute.is_some() {
            self.text.push_str("${");
            self.text.push_str(&name);
            match &variable.index {
                Some(Index::All) => self.text.push_str("[@]"),
                Some(Index::Slice(from, to)) => {
                    self.text.push('[');
                    if let Some(from) = from {
                        self.expr(from);
                    }
                    self.text.push_str("..");
                    if let Some(to) = to {
                        self.expr(to);
                    }
                    self.text.push(']');
                }
                Some(Index::At(index)) => {
                    self.text.push('[');
                    self.expr(index);
                    self.text.push(']');
                }
                None => {}
            }
            if let Some((substitute, parts)) = &variable.substitute {
                self.text.push_str(substitute.spelling());
                self.parts(parts);
            }
            self.text.push('}');
        } else if long || glued && named {
            self.text.push_str("${");
            self.text.push_str(&name);
            self.text.push('}');
        } else {
            self.text.push('$');
            self.text.push_str(&name);
        }
    }

    /// Prints the delimiter, and keeps the text for the end of the line.
    pub(super) fn here_document(&mut self, delimiter: &str, indent: Option<&str>, body: &Word) {
        let mut document = Self::default();
        match &body.parts[..] {
            [WordPart::Single(text)] => {
                self.single(delimiter);
                document.text.push_str(text);
            }
            parts => {
                self.text.push_str(delimiter);
                for part in parts {
                    if let WordPart::Double(pieces) = part {
                        document.pieces(pieces, EscapeContext::Document);
                    }
                }
                document.keep_from_ending(delimiter, indent.is_some());
            }
        }
        document.text.push_str(delimiter);
        document.text.push('\n');
        let indent = indent.unwrap_or_default();
        let indented = |line: &str| match line {
            "\n" => line.to_owned(),
            _ => format!("{indent}{line}"),
        };
        self.documents.push(document.text.split_inclusive('\n').map(indented).collect());
    }

    /// Joins lines where the text would end too early or not at all.
    ///
    /// A line equal to the delimiter is joined with the next line. A last line without a newline is
    /// joined with nothing.
    fn keep_from_ending(&mut self, delimiter: &str, indented: bool) {
        let mut text = String::new();
        for line in self.text.split_inclusive('\n') {
            let content = line.trim_end_matches(['\n', '\r']);
            let ended = line.ends_with('\n');
            let blanks: &[char] = if indented { &[' ', '\t'] } else { &[] };
            if content.trim_start_matches(blanks) == delimiter && ended {
                text.push_str(content);
                text.push_str("\\\n\n");
            } else {
                text.push_str(line);
                if !ended {
                    text.push_str("\\\n");
                }
            }
        }
        self.text = text;
    }
}

/// Returns true for a literal 0.
fn is_zero(expr: &Expr) -> bool {
    literal::expr(expr).is_some_and(|text| text == "0")
}

fn is_number(expr: &Expr) -> bool {
    matches!(&expr.kind, ExprKind::Word(word) if literal::bare(word).is_some())
}

/// Returns true if text would lengthen the name of a variable before it.
fn goes_on(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
}
