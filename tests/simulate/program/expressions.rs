//! Expressions.

use ftsh_syntax::vocabulary::OPERATORS;

use super::generate::Generator;

impl Generator {
    /// Returns an expression with a numeric value if its variables are numbers.
    pub(super) fn number(&mut self, depth: usize) -> String {
        if depth == 0 || self.dice.chance(0.4) {
            return match self.dice.number(0, 4) {
                0 => "$n".into(),
                1 => format!("\"{}\"", self.value()),
                2 => (*self.dice.pick(&["0.5", "2.0", "1e3"])).into(),
                _ => self.dice.number(0, 9).to_string(),
            };
        }
        if self.dice.chance(0.15)
            && let Some(name) = self.function()
        {
            return format!("{name}({}, 2)", self.number(depth - 1));
        }
        if self.dice.chance(0.2) {
            return match self.dice.number(0, 8) {
                0 => format!("length(\"{}\")", self.value()),
                1 => format!("random(1, {})", self.number(0)),
                2 => "now()".into(),
                3 => format!("min({}, {})", self.number(0), self.number(0)),
                4 => format!("max({}, {})", self.number(0), self.number(0)),
                5 => format!("abs({})", self.number(0)),
                6 => format!("round({}, 1)", self.number(0)),
                7 => format!("count(\"{}\", a)", self.value()),
                _ => format!("match({}, '[0-9]+')", self.text()),
            };
        }
        let (left, right) = (self.number(depth - 1), self.number(depth - 1));
        if self.dice.chance(0.5) {
            // Symbols mean nothing among the words of a list outside of parentheses.
            let symbol = *self.dice.pick(&["+", "-", "*", "/", "%"]);
            return format!("({left} {symbol} {right})");
        }
        let operator = *self.dice.pick(&["add", "sub", "mul", "div", "mod", "pow"]);
        format!("({left}) .{operator}. ({right})")
    }

    /// Returns a logical expression.
    pub(super) fn condition(&mut self, depth: usize) -> String {
        match self.dice.number(0, if depth == 0 { 5 } else { 9 }) {
            0 => "true".into(),
            1 | 2 => {
                let (left, right) = (self.number(1), self.number(0));
                if self.dice.chance(0.5) {
                    let symbol = *self.dice.pick(&["==", "!=", "<", "<=", ">", ">="]);
                    return format!("({left} {symbol} {right})");
                }
                let operator = *self.dice.pick(&["eql", "neql", "lt", "le", "gt", "ge"]);
                format!("{left} .{operator}. {right}")
            }
            3 => {
                let operator = *self.dice.pick(&["eq", "ne", "contains", "matches"]);
                format!("\"{}\" .{operator}. \"{}\"", self.value(), self.value())
            }
            4 => {
                // The following operators apply to files.
                let first = OPERATORS.iter().position(|operator| *operator == ".exists.");
                let test = *self.dice.pick(&OPERATORS[first.expect("it is there")..]);
                format!("{test} {}", self.dice.pick(&["/data", "/out", "relative"]))
            }
            5 if self.dice.chance(0.3) => {
                let name = *self.dice.pick(&["starts", "ends", "newer"]);
                format!("{name}(\"{}\", o)", self.value())
            }
            5 => format!(".succeeds. ({})", self.simple()),
            6 => {
                let question = *self.dice.pick(&["succeeds", "yes"]);
                format!(".{question}. ({} | {})", self.simple(), self.simple())
            }
            7 if self.dice.chance(0.5) => format!("(! {})", self.condition(depth - 1)),
            7 => format!(".not. ({})", self.condition(depth - 1)),
            _ => {
                let (left, right) = (self.condition(depth - 1), self.condition(depth - 1));
                if self.dice.chance(0.5) {
                    let symbol = *self.dice.pick(&["&&", "||"]);
                    return format!("(({left}) {symbol} ({right}))");
                }
                let operator = *self.dice.pick(&["and", "or"]);
                format!("({left}) .{operator}. ({right})")
            }
        }
    }

    /// Returns the condition of an `if` or a `while`: a logical expression, or commands.
    pub(super) fn decision(&mut self, depth: usize) -> String {
        match self.dice.number(0, 7) {
            0 => self.simple(),
            1 => format!("! {} | {}", self.simple(), self.simple()),
            2 => format!("({}) && {}", self.simple(), self.decision(0)),
            3 => format!("!({}) || ok", self.simple()),
            _ => self.condition(depth),
        }
    }

    /// Returns an expression that transforms a text by a function of the language.
    pub(super) fn text(&mut self) -> String {
        let value = self.value();
        let path = *self.dice.pick(&["/a/b.tar.gz", "b.c", "/", "there/"]);
        match self.dice.number(0, 15) {
            10 => format!("format(\"%s-%02d\", \"{value}\", {})", self.number(0)),
            11 => format!("join(\", \", \"{value}\", $n)"),
            12 => format!("substr(\"{value}\", {}, 2)", self.dice.number(1, 4)),
            15 => format!("json('[1, \"a b\", null]', '.[{}]')", self.dice.number(0, 3)),
            13 => "time(\"%F %T\")".into(),
            14 => format!("seconds(\"{} min\")", self.dice.number(0, 3)),
            0 => format!("lower(\"{value}\")"),
            1 => format!("upper(\"{value}\")"),
            2 => format!("trim(\" {value} \")"),
            3 => format!("replace(\"{value}\", '(.)o*', '$1-')"),
            4 => format!("trim(.output. ({}))", self.simple()),
            _ => {
                let name = *self.dice.pick(&["basename", "dirname", "stem", "suffix"]);
                format!("{name}(\"{path}\")")
            }
        }
    }

    /// Returns an expression that begins with a call.
    pub(super) fn call(&mut self) -> String {
        match self.function().filter(|_| self.dice.chance(0.3)) {
            Some(name) => format!("{name}(1, 2)"),
            None => self.text(),
        }
    }

    /// Returns the list of a loop.
    pub(super) fn list(&mut self) -> String {
        let count = self.dice.number(1, 4);
        match self.dice.number(0, 13) {
            13 => "json('[1, {}, \"b c\"]', '.[]')".into(),
            10 => format!("lines(\"{}\")", self.value()),
            0 if self.dice.chance(0.2) => "files(\"/*.c\")".into(),
            11 => format!("split(\"{},b,$n\", ',')", self.value()),
            12 => self.text(),
            8 => format!("{count} .to. 1 .step. -1"),
            9 => "2 .to. 1 b".into(),
            0 => format!("1 .to. {count}"),
            1 => format!("2 - 1 .to. {count} + 1 % 2"),
            2 => format!("1 .to. {} .step. 3", count + 3),
            3 => "$w".into(),
            4 => "\"$v\" 1 .to. 2 last".into(),
            5 => self.words(),
            _ => ["a", "b", "c", "d"][..count].join(" "),
        }
    }
}
