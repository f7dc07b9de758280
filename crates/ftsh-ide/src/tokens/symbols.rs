//! Symbols as operators, as in `$a + $b`.

use ftsh_syntax::vocabulary::{OPERATOR_ROWS, PREFIX_LEVEL, SYMBOLS, is_loop};

use super::{Role, TokenScanner};
use crate::lexemes::variable;

impl TokenScanner<'_> {
    /// Returns the length of the symbol at the current position; 0 if there is no symbol, or none
    /// that is an operator.
    pub(super) fn symbol(&self) -> usize {
        if self.target || !self.in_expression() {
            return 0;
        }
        let rest = self.rest();
        let found = SYMBOLS.iter().map(|(symbol, _)| *symbol).filter(|it| rest.starts_with(it));
        let Some(symbol) = found.max_by_key(|symbol| symbol.len()) else { return 0 };
        let after = rest[symbol.len()..].chars().next();
        let is_apart = after.is_none_or(|c| matches!(c, ' ' | '\t' | '\r' | '\n' | '\\'));
        let fits = if symbol == "!" {
            let next = rest[1..].trim_start_matches([' ', '\t', '\r']);
            let is_value = !next.is_empty()
                && !next.starts_with(['\n', ';', '#', ')', ','])
                && !begins_with_infix(next);
            !self.follows_value() && is_value && (is_apart || after == Some('('))
        } else {
            let before = &self.text[..self.at];
            is_apart && before.ends_with([' ', '\t', '\n']) && self.follows_value()
        };
        if fits && self.takes(symbol) { symbol.len() } else { 0 }
    }

    /// Returns true after `local` and `export`, which take an assignment.
    pub(super) fn follows_declaration(&self) -> bool {
        self.asks == 0
            && self.found.all.last().is_some_and(|token| {
                token.role == Role::Command
                    && matches!(&self.text[token.range.clone()], "local" | "export")
            })
    }

    /// Returns true if the last token ends a value.
    fn follows_value(&self) -> bool {
        self.found.all.last().is_some_and(|token| {
            let text = &self.text[token.range.clone()];
            match token.role {
                Role::Word => true,
                // A command as a condition.
                Role::Command => self.rest().starts_with(['&', '|']),
                Role::Symbol => text == ")",
                Role::Assignment(name) => text.len() > name + 1,
                _ => false,
            }
        })
    }

    /// Returns true if the current part of the command takes a symbol.
    fn takes(&self, symbol: &str) -> bool {
        let calculates = matches!(symbol, "+" | "-" | "*" | "/" | "%");
        match self.head {
            _ if self.depth > 0 => true,
            Some("try" | "channel") if symbol == "%" => {
                !matches!(self.last_clause(), Some("jitter" | "budget"))
            }
            Some("if" | "while" | "return" | "shift" | "try" | "limit") => true,
            Some(head) if is_loop(head) || head == "list" => {
                let is_list = matches!(
                    self.last_clause(),
                    None | Some("in" | "from" | "input" | "by" | "add")
                );
                calculates && (!is_list || self.counts(symbol))
            }
            _ => calculates,
        }
    }

    /// Returns true if a symbol stands between two of number, variable, call and parenthesis.
    fn counts(&self, symbol: &str) -> bool {
        let is_number = |text: &str| {
            let digits = text.trim_start_matches(['-', '+']);
            digits.contains(|c: char| c.is_ascii_digit())
                && digits.chars().all(|c| c.is_ascii_digit() || c == '.')
        };
        let last = self.found.all.last().map_or("", |token| &self.text[token.range.clone()]);
        let rest = self.rest()[symbol.len()..].trim_start_matches([' ', '\t']);
        let end = rest.find([' ', '\t', '\n', '\r', ';', ')', ',']).unwrap_or(rest.len());
        let next = &rest[..end];
        // The tests of the length and the `$` come first: `variable` takes no empty text.
        let is_variable =
            |text: &str| text.len() > 1 && text.starts_with('$') && variable(text, 0) == text.len();
        let counts = |text: &str| is_number(text) || is_variable(text);
        (counts(last) || last == ")") && (counts(next) || next.contains('('))
    }

    /// Returns the last word of a clause in the current command.
    fn last_clause(&self) -> Option<&str> {
        let tokens = self.found.all.iter().rev();
        let mut tokens = tokens.take_while(|token| token.role != Role::Separator);
        let clause = tokens.find(|token| token.role == Role::Clause)?;
        Some(&self.text[clause.range.clone()])
    }
}

/// Returns true if a text begins with an operator that stands between two values.
fn begins_with_infix(text: &str) -> bool {
    let mut infix = OPERATOR_ROWS.iter().filter(|row| row.level != PREFIX_LEVEL);
    infix.any(|row| row.words.iter().any(|word| text.starts_with(word)))
}
