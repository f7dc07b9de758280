//! Symbols as operators, as in `$a + $b`.

use ftsh_syntax::vocabulary::{OPERATOR_ROWS, PREFIX_LEVEL, SYMBOLS, is_loop};

use super::{Role, TokenScanner};

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
            Some(head) if is_loop(head) => {
                calculates
                    && !matches!(self.last_clause(), None | Some("in" | "from" | "input" | "by"))
            }
            _ => calculates,
        }
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
