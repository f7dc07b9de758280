//! Roles of words, by what comes before them.

use ftsh_syntax::clauses;
use ftsh_syntax::duration::Unit;
use ftsh_syntax::size::ByteUnit;
use ftsh_syntax::vocabulary::{
    ALONE, DECLARATIONS, FORMS, HEADS, KEYWORDS, MODIFIERS, OPERATORS, SYMBOLS, TIMES, is_loop,
    is_name,
};

use super::{ARGS, DASHES, Role, ScriptToken, TokenScanner, USE, is_head};
use crate::lexemes::{assigned, is_of_loop};

impl<'t> TokenScanner<'t> {
    /// Returns the role of a word at the current position.
    pub(super) fn role(&mut self, word: &'t str) -> Role {
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
