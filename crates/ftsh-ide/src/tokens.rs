//! Tokens of a possibly unfinished or wrong text, for colors and completion.
//!
//! Only the parser decides on the meaning of a text.

mod symbols;

use std::ops::Range;

use ftsh_syntax::clauses;
use ftsh_syntax::duration::Unit;
use ftsh_syntax::size::ByteUnit;
use ftsh_syntax::vocabulary::{
    ALONE, DECLARATIONS, FORMS, HEADS, KEYWORDS, MODIFIERS, OPERATORS, QUESTIONS, SYMBOLS, TIMES,
    is_loop, is_name,
};

use super::lexemes::{TokenPart, assigned, double, is_of_loop, redirection, single, variable};

/// Word that begins the declaration of a script's arguments.
pub(crate) const ARGS: &str = "args";
/// Word between the head of a structure and its command, on one line.
pub(crate) const DASHES: &str = "--";
/// Keyword before a file with functions and channels.
pub(crate) const USE: &str = "use";

/// Token of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptToken {
    /// Range of the token in the text.
    pub range: Range<usize>,
    /// Role of the token.
    pub role: Role,
    /// Strings and variables in the token.
    pub parts: Vec<(Range<usize>, TokenPart)>,
}

/// Role of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Word that begins, divides or ends a structure, or a statement of its own like `return`.
    Keyword,
    /// Word with a meaning in a head, like `every` or `in`.
    Clause,
    /// Operator, such as `.eq.`.
    Operator,
    /// Name of a command.
    Command,
    /// `name=…`, with the length of the name.
    Assignment(usize),
    /// Any other word.
    Word,
    /// Symbol: `>`, `->`, `|` or a parenthesis.
    Symbol,
    /// `;` or the end of a line.
    Separator,
    /// Comment from `#` to the end of the line.
    Comment,
    /// Lines of a here-document.
    Document,
}

/// Tokens of a text, with its structures.
#[derive(Debug, Default)]
pub struct Tokens {
    /// Tokens in order, without blanks.
    pub all: Vec<ScriptToken>,
    /// Heads of structures without an `end`, as indices of `all`, outermost first.
    pub open: Vec<usize>,
    /// Head and `end` of each complete structure, as indices of `all`, innermost first.
    pub closed: Vec<(usize, usize)>,
    /// Words that end or divide a structure outside of any structure.
    pub stray: Vec<usize>,
}

/// Splits a text into tokens.
pub fn scan(text: &str) -> Tokens {
    let mut scanner = TokenScanner {
        text,
        at: 0,
        found: Tokens::default(),
        head: None,
        at_start: true,
        target: false,
        asks: 0,
        depth: 0,
        documents: Vec::new(),
    };
    while scanner.at < text.len() {
        scanner.step();
    }
    scanner.found
}

struct TokenScanner<'t> {
    text: &'t str,
    at: usize,
    found: Tokens,
    /// Keyword at the start of the current command.
    head: Option<&'t str>,
    /// True at the start of a command.
    at_start: bool,
    /// True if a redirection needs its target next; the target may be the delimiter of a
    /// here-document.
    target: bool,
    /// Number of open parentheses since `.succeeds.` or another question.
    asks: usize,
    /// Number of open parentheses in an expression.
    depth: usize,
    /// Delimiters of here-documents that begin on the next line, with true after `<<-`.
    documents: Vec<(String, bool)>,
}

impl<'t> TokenScanner<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn push(&mut self, length: usize, role: Role) {
        let range = self.at..self.at + length;
        self.at = range.end;
        self.found.all.push(ScriptToken { range, role, parts: Vec::new() });
    }

    fn step(&mut self) {
        let rest = self.rest();
        let first = rest.chars().next().unwrap_or('\n');
        let symbol = self.symbol();
        match first {
            _ if symbol > 0 => {
                self.push(symbol, Role::Operator);
                self.at_start = false;
            }
            ' ' | '\t' | '\r' => self.at += 1,
            '\\' if rest[1..].starts_with('\n') => self.at += 2,
            '\n' => {
                self.end_command(1);
                self.take_documents();
            }
            ';' => self.end_command(1),
            '#' => self.push(rest.find('\n').unwrap_or(rest.len()), Role::Comment),
            '|' => {
                self.push(if rest.starts_with("|&") { 2 } else { 1 }, Role::Symbol);
                (self.at_start, self.target) = (true, false);
                if self.asks == 0 {
                    self.head = None;
                }
            }
            ',' if self.in_expression() => self.push(1, Role::Symbol),
            '(' | ')' if self.in_expression() || self.asks > 0 => self.parenthesis(first),
            _ => match redirection(rest) {
                0 if matches!(first, '<' | '>' | '&') => self.push(1, Role::Symbol),
                0 => self.word(),
                length => {
                    let operator = &rest[..length];
                    self.push(length, Role::Symbol);
                    self.target = true;
                    let sign = operator.trim_start_matches(|c: char| c.is_ascii_digit());
                    if matches!(sign, "<<" | "<<-") {
                        self.document(sign == "<<-");
                    }
                }
            },
        }
    }

    fn end_command(&mut self, length: usize) {
        self.push(length, Role::Separator);
        (self.at_start, self.head, self.target) = (true, None, false);
        (self.asks, self.depth) = (0, 0);
    }

    fn parenthesis(&mut self, symbol: char) {
        let last = self.found.all.last().map_or("", |it| &self.text[it.range.clone()]);
        let value = assigned(last).map_or(last, |name| &last[name + 1..]);
        let asks = QUESTIONS.contains(&value);
        self.push(1, Role::Symbol);
        // No command follows a symbol.
        self.at_start &= self.head != Some("=");
        match symbol {
            '(' if asks => (self.asks, self.at_start) = (1, true),
            '(' if self.asks > 0 => self.asks += 1,
            ')' if self.asks > 0 => {
                self.asks -= 1;
                self.at_start &= self.asks > 0;
            }
            '(' => self.depth += 1,
            _ => self.depth = self.depth.saturating_sub(1),
        }
    }

    /// Returns true if `( ) ,` and operators are not parts of words.
    fn in_expression(&self) -> bool {
        self.asks == 0
            && matches!(
                self.head,
                Some(
                    "if" | "case"
                        | "while"
                        | "for"
                        | "forany"
                        | "forall"
                        | "return"
                        | "shift"
                        | "try"
                        | "limit"
                        | "in"
                        | "channel"
                        | "list"
                        | "="
                )
            )
    }

    /// Adds the delimiter of a here-document.
    fn document(&mut self, indented: bool) {
        let rest = self.rest().trim_start_matches([' ', '\t']);
        let end = rest.find([' ', '\t', '\n', ';', '|', '>', '<']).unwrap_or(rest.len());
        let word: String =
            rest[..end].chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
        if !word.is_empty() {
            self.documents.push((word, indented));
        }
    }

    fn take_documents(&mut self) {
        for (delimiter, indented) in std::mem::take(&mut self.documents) {
            let mut end = self.at;
            for line in self.rest().split_inclusive('\n') {
                end += line.len();
                let blanks: &[char] = if indented { &[' ', '\t'] } else { &[] };
                if line.trim_end_matches(['\r', '\n']).trim_start_matches(blanks) == delimiter {
                    break;
                }
            }
            if end > self.at {
                self.push(end - self.at, Role::Document);
            }
        }
    }

    fn word(&mut self) {
        let (mut expression, asks) = (self.in_expression(), self.asks > 0);
        let start = self.at;
        let assigns = self.at_start || self.follows_declaration();
        let mut parts = Vec::new();
        let mut at = start;
        while let Some(c) = self.text[at..].chars().next() {
            match c {
                // Other spellings of an option of the script.
                '|' if self.head == Some(ARGS) && self.text[at + 1..].starts_with('-') => at += 1,
                ' ' | '\t' | '\r' | '\n' | ';' | '|' | '<' | '>' | '&' => break,
                '(' | ')' if expression || asks => break,
                ',' if expression => break,
                '\\' => at += 1 + self.text[at + 1..].chars().next().map_or(0, char::len_utf8),
                '\'' => {
                    let (end, closed) = single(self.text, at);
                    parts.push((at..end, TokenPart::Quoted(closed)));
                    at = end;
                }
                '"' => at = double(self.text, at, &mut parts),
                '$' => {
                    let end = variable(self.text, at);
                    if end > at + 1 {
                        parts.push((at..end, TokenPart::Variable));
                    }
                    at = end;
                }
                _ => at += c.len_utf8(),
            }
            // A value follows: `x=f(1)`.
            expression |= c == '=' && assigns && is_name(&self.text[start..at - 1]);
        }
        let role = self.role(&self.text[start..at]);
        self.at = at;
        self.found.all.push(ScriptToken { range: start..at, role, parts });
    }

    /// Returns the role of a word at the current position.
    fn role(&mut self, word: &'t str) -> Role {
        if std::mem::take(&mut self.target) {
            return Role::Word;
        }
        if self.follows_declaration()
            && let Some(length) = assigned(word)
        {
            self.head = Some("=");
            return Role::Assignment(length);
        }
        if !self.at_start && word == DASHES && self.begins_command() {
            // The structure needs no `end`.
            self.found.open.pop();
            (self.at_start, self.head) = (true, None);
            return Role::Clause;
        }
        if !self.at_start {
            return if self.is_question(word) { Role::Command } else { self.role_inside(word) };
        }
        if self.is_after("accept") {
            return Role::Clause;
        }
        if MODIFIERS.contains(&word) && self.modifies(word) {
            self.head = None;
            return Role::Keyword;
        }
        if self.asks > 0 {
            self.at_start = false;
            return Role::Command;
        }
        if KEYWORDS.contains(&word)
            || DECLARATIONS.contains(&word) && self.declares(word)
            || FORMS.contains(&word) && self.has_form(word)
        {
            return self.keyword(word);
        }
        if ALONE.contains(&word) && self.ends_after(word) {
            if word == "finally" && self.found.open.is_empty() {
                self.found.stray.push(self.found.all.len());
            }
            self.at_start = false;
            return Role::Keyword;
        }
        if let Some(length) = assigned(word) {
            // A command may follow, or the rest of an expression.
            self.head = Some("=");
            // An operand follows an operator: `x=.not. $y`.
            self.at_start = !is_operator(&word[length + 1..]);
            return Role::Assignment(length);
        }
        if self.head == Some("=") && is_operator(word) {
            self.at_start = false;
            return Role::Operator;
        }
        self.head = None;
        self.at_start = false;
        Role::Command
    }

    /// Returns true for the first word of a command as a condition: a name with another word behind
    /// it, or alone.
    fn is_question(&self, word: &str) -> bool {
        let begins = self.found.all.last().is_some_and(|token| {
            // A parenthesis behind a name belongs to a call.
            let before = &self.text[..token.range.start];
            match &self.text[token.range.clone()] {
                "if" | "while" | "!" | "&&" | "||" => token.role != Role::Word,
                "(" => before.ends_with([' ', '\t', '(', '!']),
                _ => false,
            }
        });
        if !begins || self.asks > 0 || !matches!(self.head, Some("if" | "while")) {
            return false;
        }
        let rest = self.rest()[word.len()..].trim_start_matches([' ', '\t']);
        let next = rest.split([' ', '\t', '\n', ';']).next().unwrap_or_default();
        let is_symbol = SYMBOLS.iter().any(|(symbol, _)| *symbol == next && next != "!");
        let is_alone =
            rest.is_empty() || rest.starts_with(['\n', ';', '#', ')', '|']) || next == "&&";
        let is_name = word.starts_with(|c: char| c.is_alphabetic() || matches!(c, '/' | '.' | '['))
            && !is_operator(word)
            && !matches!(word, "true" | "false");
        if is_alone {
            is_name
        } else {
            !rest.starts_with('(') && !is_symbol && !is_operator(next) && !is_operator(word)
        }
    }

    /// Returns true for a `case` or `in` with a value, a `with` before a command, a `when` inside of a `case`, and a `limit` before a
    /// duration.
    fn has_form(&self, word: &str) -> bool {
        let is_case = |head: &usize| &self.text[self.found.all[*head].range.clone()] == "case";
        match word {
            "with" => {
                let rest = self.rest()[word.len()..].trim_start_matches([' ', '\t']);
                !self.ends_after(word) && !rest.starts_with(['<', '>', '|', '&', '-'])
            }
            "case" | "in" => !self.ends_after(word),
            "limit" => {
                let rest = &self.rest()[word.len()..];
                let value = rest.trim_start_matches([' ', '\t', '\\', '\r', '\n']);
                let value = value.strip_prefix(['"', '\'']).unwrap_or(value);
                rest.starts_with([' ', '\t', '\\']) && begins_duration(value)
            }
            _ => self.found.open.iter().any(is_case),
        }
    }

    /// Returns true if a word at the current position begins a declaration. `list` may be a program,
    /// and `args` declares only at the beginning of the text.
    fn declares(&self, word: &str) -> bool {
        match word {
            ARGS => self.declares_arguments(),
            USE => self.declares_file(),
            "list" => self.declares_list(),
            _ => true,
        }
    }

    /// Returns true if the word `args` at the current position is the first one of the text, and
    /// arguments follow.
    fn declares_arguments(&self) -> bool {
        let is_nothing = |it: &ScriptToken| matches!(it.role, Role::Comment | Role::Separator);
        let rest = &self.rest()[ARGS.len()..];
        let after = rest.trim_start_matches([' ', '\t', '\r', '\n', '\\']);
        let has_form = |c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '"' | '\'' | '-');
        rest.starts_with([' ', '\t', '\\'])
            && after.starts_with(has_form)
            && self.found.all.iter().all(is_nothing)
    }

    /// Returns true if only `args` and `use` precede the word `use` at the current position, and one
    /// word follows.
    fn declares_file(&self) -> bool {
        let rest = &self.rest()[USE.len()..];
        let line = rest.split(['\n', ';', '#']).next().unwrap_or_default().trim();
        let is_word = |text: &str| !text.contains([' ', '\t', '|', '<', '>', '&']);
        let is_one = line.starts_with(['"', '\'']) || !line.is_empty() && is_word(line);
        rest.starts_with([' ', '\t', '\\']) && is_one && is_head(&self.found.all, self.text)
    }

    /// Returns true if a word at the current position changes the meaning of the end of the command
    /// after it. `accept` is a program, unless statuses follow; `keep` is a program, unless a
    /// word follows.
    fn modifies(&self, word: &str) -> bool {
        let rest = &self.rest()[word.len()..];
        let next = rest.trim_start_matches([' ', '\t']);
        let next = next.split([' ', '\t', '\r', '\n', ';', '|', '<', '>', '&']).next();
        match word {
            "accept" => next.is_some_and(|next| {
                next.starts_with(|c: char| c.is_ascii_digit())
                    && next.bytes().all(|byte| byte.is_ascii_digit() || byte == b',')
            }),
            _ => next.is_some_and(|next| !next.is_empty() && !next.starts_with('#')),
        }
    }

    /// Returns true if a name and `in`, or `add` and a name, follow the word `list`.
    fn declares_list(&self) -> bool {
        let rest = &self.rest()["list".len()..];
        let line = rest.split(['\n', ';', '|']).next().unwrap_or_default();
        let mut words = line.split_whitespace();
        match (words.next(), words.next()) {
            (Some("add"), Some(name)) | (Some(name), None) => is_name(name),
            (Some(name), Some(second)) => is_name(name) && "in".starts_with(second),
            (None, _) => false,
        }
    }

    /// Returns true if the `--` at the current position stands between a head and a command.
    fn begins_command(&self) -> bool {
        let rest = &self.rest()[DASHES.len()..];
        let is_head = |head| is_loop(head) || matches!(head, "try" | "limit" | "in");
        let begins = rest.starts_with([' ', '\t', '\\']) && !self.ends_after(DASHES);
        let is_free = self.asks == 0 && self.depth == 0 && !self.is_after("by");
        self.head.is_some_and(is_head) && is_free && begins
    }

    /// Returns true if a word at the current position ends its command.
    fn ends_after(&self, word: &str) -> bool {
        let rest = self.rest()[word.len()..].trim_start_matches([' ', '\t', '\r']);
        rest.is_empty() || rest.starts_with(['\n', ';', '#'])
    }

    fn keyword(&mut self, word: &'t str) -> Role {
        let index = self.found.all.len();
        match word {
            "end" => match self.found.open.pop() {
                Some(head) => self.found.closed.push((head, index)),
                None => self.found.stray.push(index),
            },
            "catch" | "else" if self.found.open.is_empty() => self.found.stray.push(index),
            _ if HEADS.contains(&word) => self.found.open.push(index),
            _ => {}
        }
        self.head = Some(word).filter(|word| *word != "when");
        // The rest of `else if …` follows; after `with`, a command.
        self.at_start = word == "with";
        if self.at_start {
            self.head = None;
        }
        Role::Keyword
    }

    /// Returns true if a word belongs to a clause of the loop that `keyword` begins.
    ///
    /// The word after or before it must complete the clause.
    fn is_loop_clause(&self, keyword: &str, word: &str) -> bool {
        let rest = self.text[self.at + word.len()..].trim_start();
        let next = rest.split([' ', '\t', '\r', '\n', ';']).next();
        let before = self.found.all.last().filter(|token| token.role == Role::Clause);
        let before = before.map(|token| &self.text[token.range.clone()]);
        is_of_loop(keyword, before, word, next)
    }

    /// True if a word belongs to `from input by` after the variable of a loop.
    fn is_of_input(&self, word: &str) -> bool {
        let rest = self.text[self.at + word.len()..].trim_start();
        let head = self.found.all.iter().rev().nth(1).filter(|token| token.role == Role::Keyword);
        match word {
            "from" => {
                let is_next = rest.split([' ', '\t', '\r', '\n', ';']).next() == Some("input");
                is_next && head.is_some_and(|token| is_loop(&self.text[token.range.clone()]))
            }
            "input" => self.is_after("from"),
            "by" => self.is_after("input"),
            _ => false,
        }
    }

    /// True if a word belongs to `hedge after usual or`.
    fn is_of_usual(&self, word: &str) -> bool {
        match word {
            "usual" => self.is_after("after"),
            "or" => self.is_after("usual"),
            _ => false,
        }
    }

    /// Returns true for `in` after the name of a list, and for `add` before it.
    fn is_of_list(&self, word: &str) -> bool {
        let before = self.found.all.iter().rev().nth(1);
        match word {
            "in" => before.is_some_and(|token| {
                token.role == Role::Keyword && &self.text[token.range.clone()] == "list"
            }),
            "add" => {
                let rest = self.text[self.at + word.len()..].trim_start();
                self.is_after("list") && rest.split_whitespace().next() != Some("in")
            }
            _ => false,
        }
    }

    /// Returns true directly after a keyword or a clause of this text.
    fn is_after(&self, word: &str) -> bool {
        self.found.all.last().is_some_and(|before| {
            matches!(before.role, Role::Keyword | Role::Clause)
                && &self.text[before.range.clone()] == word
        })
    }

    fn role_inside(&mut self, word: &str) -> Role {
        let is_operator = is_operator(word);
        match self.head {
            _ if self.asks > 0 => Role::Word,
            Some("else") if word == "if" => {
                self.head = Some("if");
                Role::Keyword
            }
            Some(head) if is_loop(head) && (word == "in" || self.is_loop_clause(head, word)) => {
                Role::Clause
            }
            Some(head) if is_loop(head) && self.is_of_input(word) => Role::Clause,
            Some("forany") if self.is_of_usual(word) => Role::Clause,
            Some("list") if self.is_of_list(word) => Role::Clause,
            // The name of the channel.
            Some("channel") if self.is_after("channel") => Role::Word,
            Some("try") if self.is_after("through") => Role::Word,
            Some("try" | "limit") if self.is_after("signal") => Role::Word,
            Some("limit")
                if is_unit(word) || clauses::words("limit").any(|known| known == word) =>
            {
                Role::Clause
            }
            Some("channel")
                if clauses::words("channel").any(|known| known == word)
                    || Unit::named(word).is_some() =>
            {
                Role::Clause
            }
            Some("try") if word == "in" && !self.is_after("atomic") => Role::Word,
            Some("try")
                if clauses::words("try").any(|known| known == word)
                    || TIMES.contains(&word)
                    || is_unit(word)
                    || ftsh_syntax::backoff::PolicyKind::named(word).is_some() =>
            {
                Role::Clause
            }
            Some(_) if is_operator => Role::Operator,
            _ => Role::Word,
        }
    }
}

/// Returns true for a unit of time or of a size.
fn is_unit(word: &str) -> bool {
    Unit::named(word).is_some() || ByteUnit::named(word).is_some()
}

/// Returns true if a text begins with a variable, or with a number and a unit.
fn begins_duration(text: &str) -> bool {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let is_unit =
        unit.trim_start_matches([' ', '\t']).starts_with(|c: char| c.is_ascii_alphabetic());
    text.starts_with('$') || unit.len() < text.len() && is_unit
}

/// True if the word is an operator of expressions.
fn is_operator(word: &str) -> bool {
    OPERATORS.contains(&word)
}

/// Returns true if tokens are comments, `args` and `use` with their words only.
pub(crate) fn is_head(tokens: &[ScriptToken], text: &str) -> bool {
    tokens.iter().all(|token| match token.role {
        Role::Comment | Role::Separator | Role::Word => true,
        Role::Keyword => matches!(&text[token.range.clone()], ARGS | USE),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns every token as the first letter of its role and its text.
    fn shown(text: &str) -> String {
        let tokens = scan(text).all.into_iter().filter(|it| it.role != Role::Separator);
        let shown = tokens.map(|token| {
            let role = match token.role {
                Role::Keyword => "K",
                Role::Clause => "L",
                Role::Operator => "O",
                Role::Command => "C",
                Role::Assignment(_) => "A",
                Role::Word => "W",
                Role::Symbol => "S",
                Role::Separator => ";",
                Role::Comment => "#",
                Role::Document => "D",
            };
            format!("{role}:{}", text[token.range].replace('\n', "~"))
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn words_have_their_roles() {
        insta::assert_snapshot!(shown("ls -l a.b > f 2>&1 | sort;pwd # end"),
            @"C:ls W:-l W:a.b S:> W:f S:2>& W:1 S:| C:sort C:pwd #:# end");
        insta::assert_snapshot!(shown("try for 5 minutes every 2 s; cp try end; end"),
            @"K:try L:for W:5 L:minutes L:every W:2 L:s C:cp W:try W:end K:end");
        insta::assert_snapshot!(shown("if .succeeds. (grep -q a,b f) .and. $x .eq. f(1,2)"),
            @"K:if O:.succeeds. S:( C:grep W:-q W:a,b W:f S:) O:.and. W:$x O:.eq. W:f S:( W:1 S:, W:2 S:)");
        insta::assert_snapshot!(shown("# a\nargs b\nuse c.ftsh # d\nuse e f\nuse g"),
            @"#:# a K:args W:b K:use W:c.ftsh #:# d C:use W:e W:f C:use W:g");
        insta::assert_snapshot!(shown("# a\nargs \"b c\" url -n|--new --out=FILE files... # d\nargs x | -y"),
            @r#"#:# a K:args W:"b c" W:url W:-n|--new W:--out=FILE W:files... #:# d C:args W:x S:| C:-y"#);
        insta::assert_snapshot!(shown("x=$a + 1 - (2 * -3); if ! $a == b && $op .eq. + || !($x<=3 > 2)"),
            @"A:x=$a O:+ W:1 O:- S:( W:2 O:* W:-3 S:) K:if O:! W:$a O:== W:b O:&& W:$op O:.eq. W:+ O:|| O:! S:( C:$x S:< W:=3 O:> W:2 S:)");
        insta::assert_snapshot!(shown("while ! .exists. f || ! .yes. (a); if ! .eq. $x"),
            @"K:while O:! O:.exists. W:f O:|| O:! O:.yes. S:( C:a S:) K:if W:! O:.eq. W:$x");
        insta::assert_snapshot!(shown("for x in a - (b < $c) * f(/, -) ! d; y=!; return 1 <= 2; z=1 > f"),
            @"K:for W:x L:in W:a W:- S:( W:b O:< W:$c S:) O:* W:f S:( W:/ S:, W:- S:) W:! W:d A:y=! K:return W:1 O:<= W:2 A:z=1 S:> W:f");
        insta::assert_snapshot!(shown("try while $n < 5 or $m * 2 times backoff full jitter 10 % by 3 / 2; forall x in a - b at most $n - 1"),
            @"K:try L:while W:$n O:< W:5 L:or W:$m O:* W:2 L:times L:backoff L:full L:jitter W:10 W:% L:by W:3 O:/ W:2 K:forall W:x L:in W:a W:- W:b L:at L:most W:$n O:- W:1");
        insta::assert_snapshot!(shown("A=1 env + 2; echo 1 + 2 > f; if .succeeds. (a - b || c) || d | e"),
            @"A:A=1 C:env W:+ W:2 C:echo W:1 W:+ W:2 S:> W:f K:if O:.succeeds. S:( C:a W:- W:b S:| S:| C:c S:) O:|| C:d S:| C:e");
        insta::assert_snapshot!(shown("x=$a .add. 1\nA=1 env\nelse if true"),
            @"A:x=$a O:.add. W:1 A:A=1 C:env K:else K:if W:true");
        insta::assert_snapshot!(shown("cat <<< end\nend 3<< E\nend\nE\nx=.not. a .and. b"),
            @"C:cat S:<<< W:end K:end S:3<< W:E D:end~E~ A:x=.not. W:a O:.and. W:b");
        insta::assert_snapshot!(shown("x=f(1, $y) .add. (2); A=(b) c; y=.succeeds. (ls -l); z=a(b c"),
            @"A:x=f S:( W:1 S:, W:$y S:) O:.add. S:( W:2 S:) A:A= S:( W:b S:) W:c A:y=.succeeds. S:( C:ls W:-l S:) A:z=a S:( W:b W:c");
        insta::assert_snapshot!(shown("for x in a in; forall y in $l at most 3; echo (a)"),
            @"K:for W:x L:in W:a L:in K:forall W:y L:in W:$l L:at L:most W:3 C:echo W:(a)");
        insta::assert_snapshot!(shown("forall x in keep at least 2 keep going; ok"),
            @"K:forall W:x L:in W:keep L:at L:least W:2 L:keep L:going C:ok");
        insta::assert_snapshot!(shown("cat <<A -> v\na b\nA\nls"),
            @"C:cat S:<< W:A S:-> W:v D:a b~A~ C:ls");
        insta::assert_snapshot!(shown("ls | while true\nbreak; end > f |& for x in a; end | sort"),
            @"C:ls S:| K:while W:true K:break K:end S:> W:f S:|& K:for W:x L:in W:a K:end S:| C:sort");
        insta::assert_snapshot!(shown("channel at at most 4 rate 10 per second\ntry through for every 2 s; x; end"),
            @"K:channel W:at L:at L:most W:4 L:rate W:10 L:per L:second K:try L:through W:for L:every W:2 L:s C:x K:end");
        insta::assert_snapshot!(shown("A=1 accept 24,3 keep cp a | accept x; keep accept 1 f; keep; if .yes. (accept 2 grep 3)"),
            @"A:A=1 K:accept L:24,3 K:keep C:cp W:a S:| C:accept W:x K:keep K:accept L:1 C:f C:keep K:if O:.yes. S:( K:accept L:2 C:grep W:3 S:)");
        insta::assert_snapshot!(shown("break; break 2; continue # so\n"),
            @"K:break C:break W:2 K:continue #:# so");
        insta::assert_snapshot!(shown("when a; case f($x)\nwhen a b* .eq.\nif true; when c; end; else; end; case"),
            @"C:when W:a K:case W:f S:( W:$x S:) K:when W:a W:b* W:.eq. K:if W:true K:when W:c K:end K:else K:end C:case");
    }

    #[test]
    fn open_and_stray_structures_are_found() {
        let scanned = scan("try; if true; end; ls");
        assert_eq!(scanned.open, [0]);
        assert_eq!(scan("ls; end").stray, [2]);
        assert_eq!(scan("catch").stray, [0]);
        assert!(scan("try; catch; end; echo end").stray.is_empty());
    }

    #[test]
    fn any_text_is_split() {
        let pieces = [
            "'",
            "\"",
            "$",
            "${",
            "$(",
            "\\",
            "<<",
            "a",
            "é",
            "\n",
            "(",
            ")",
            "|",
            "&",
            ";",
            "#",
            "=",
            " ",
            "try",
            ".succeeds.",
            "1>",
            "\t",
            "-<",
        ];
        let mut state = 1_u64;
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..8 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                text.push_str(pieces[(state >> 33) as usize % pieces.len()]);
            }
            let mut at = 0;
            for token in scan(&text).all {
                assert!(token.range.start >= at && !token.range.is_empty(), "{text:?}");
                assert!(text.get(token.range.clone()).is_some(), "{text:?}");
                for (part, _) in &token.parts {
                    assert!(text.get(part.clone()).is_some(), "{text:?}");
                    assert!(part.start >= token.range.start && part.end <= token.range.end);
                }
                at = token.range.end;
            }
        }
    }
}
