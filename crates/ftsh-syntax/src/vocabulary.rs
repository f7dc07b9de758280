//! Words of the language, each list once, for the parser, the prompt and the hints.
//!
//! A test compares the lists with the grammar.

use super::clauses;
use super::engine::EngineId;

/// Keywords that begin a structure.
pub const HEADS: [&str; 11] =
    ["try", "limit", "in", "with", "if", "case", "while", "for", "forany", "forall", "function"];

/// Keywords: words with a meaning at the start of a command. A program of this name must be quoted
/// there.
pub const KEYWORDS: [&str; 12] = [
    "try", "catch", "if", "else", "end", "while", "for", "forany", "forall", "function", "return",
    "shift",
];

/// Words that begin structures and their parts in one form only, and are commands otherwise. A
/// script's function of the same name takes precedence.
pub const FORMS: [&str; 5] = ["case", "when", "limit", "in", "with"];

/// Words with a meaning alone on their line. A script's function of the same name takes precedence.
pub const ALONE: [&str; 3] = ["break", "continue", "finally"];

/// Words that begin a declaration, which applies to the lines after it. A script's function of the
/// same name takes precedence.
pub const DECLARATIONS: [&str; 4] = ["channel", "list", "args", "use"];

/// Words before a command that change the meaning of its end, in their forms only: `accept 24,3
/// command`, `keep command`. A script's function of the same name takes precedence.
pub const MODIFIERS: [&str; 2] = ["accept", "keep"];

/// Words after a number of attempts.
pub const TIMES: [&str; 2] = ["times", "time"];

/// Returns the clauses of loops except for [`FILE_CLAUSES`], as two words each, with the keyword of the loop. The name after
/// `on` may also be that of a carrier.
pub fn loop_clauses() -> impl Iterator<Item = (&'static str, [&'static str; 2])> + Clone {
    let rows = clauses::ROWS.iter().filter(|row| is_loop(row.head));
    let engines = EngineId::BUILT_IN.into_iter().map(|it| ("forall", ["on", it.row().name]));
    rows.filter_map(|row| Some((row.head, <[&str; 2]>::try_from(row.words).ok()?))).chain(engines)
}

/// Words that begin the clauses of a `forall` for files, each alone. Behind `in` and in other loops they
/// are words of a list.
pub const FILE_CLAUSES: [&str; 2] = ["takes", "gives"];

/// Signature of a function of the language, against which the parser checks calls.
///
/// A row of the machine computes the value. A script's function of the same name takes precedence.
#[derive(Debug)]
pub struct Signature {
    /// Name in calls.
    pub name: &'static str,
    /// Names of the parameters. An argument for `regex` has to be a regular expression. `[name]` may
    /// be omitted, and `names…` stands for any number of arguments.
    pub parameters: &'static [&'static str],
    /// Description of the value, without a full stop.
    pub help: &'static str,
}

/// Signatures of all functions of the language, in the order of the documentation.
#[rustfmt::skip]
pub const FUNCTIONS: &[Signature] = &[
    Signature::new("lines", &["text"], "in a list: one word for each line, whatever the line contains"),
    Signature::new("split", &["text", "separator"], "in a list: the pieces, also empty ones, but none of an empty text; the separator may be `\\n`, `\\t`, or `\\0`, a NUL after each piece"),
    Signature::new("json", &["text", "filter"], "in a list: one word for each result of the filter of jq, strings as they are, others as JSON"),
    Signature::new("length", &["text"], "the number of characters; of bytes, if the text isn't UTF-8"),
    Signature::new("lower", &["text"], "the text in lower case"),
    Signature::new("upper", &["text"], "the text in upper case"),
    Signature::new("trim", &["text"], "the text without white space at both ends"),
    Signature::new("replace", &["text", "regex", "with"], "the text with every match replaced; `'$1'` in the third argument stands for a group"),
    Signature::new("match", &["text", "regex"], "the first match, or its first group; a failure if nothing matches"),
    Signature::new("substr", &["text", "from", "[length]"], "the part of the text from a character on, counted from 1, or from the end if negative"),
    Signature::new("starts", &["text", "prefix"], "`true` if the text begins with the prefix"),
    Signature::new("ends", &["text", "suffix"], "`true` if the text ends with the suffix"),
    Signature::new("join", &["separator", "words…"], "the words with the separator between them; `\\n` and `\\t` in it are a newline and a tab"),
    Signature::new("count", &["words…"], "the number of words"),
    Signature::new("format", &["pattern", "values…"], "the pattern of printf(1) with the values in place of `%s`, `%d`, `%5.1f` …"),
    Signature::new("round", &["number", "[digits]"], "the nearest whole number, or the nearest decimal with this many digits; halves away from zero"),
    Signature::new("min", &["number", "numbers…"], "the smallest number"),
    Signature::new("max", &["number", "numbers…"], "the largest number"),
    Signature::new("abs", &["number"], "the number without its sign"),
    Signature::new("newer", &["version", "other"], "`true` if the version is later than the other: `3.10` than `3.9`, and `2.0` than `v2.0-rc1`"),
    Signature::new("basename", &["path"], "the last name of the path"),
    Signature::new("dirname", &["path"], "the path without its last name"),
    Signature::new("suffix", &["path"], "the end of the last name from its last dot on, like `.gz`"),
    Signature::new("stem", &["path"], "the last name without its suffix"),
    Signature::new("now", &[], "the seconds since 1970, with a fraction"),
    Signature::new("files", &["pattern"], "in a list: the sorted names of the files that match, maybe none; `**` is any number of directories"),
    Signature::new("time", &["pattern", "[seconds]"], "the local time by the pattern of strftime(3), like `%F %T`; the current time, or the time `seconds` after the beginning of 1970"),
    Signature::new("seconds", &["duration"], "the seconds of a length of time, like `90`, `5 min` or `1h30m`"),
    Signature::new("random", &["a", "b"], "a whole number from a to b; the same with the same `--seed`"),
];

impl Signature {
    const fn new(
        name: &'static str,
        parameters: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Self { name, parameters, help }
    }

    /// Returns a call with the names of the parameters: `split(text, separator)`.
    pub fn call(&self) -> String {
        format!("{}({})", self.name, self.parameters.join(", "))
    }

    /// Returns true if a call may have this many arguments.
    pub fn takes(&self, arguments: usize) -> bool {
        let (least, most) = self.bounds();
        least <= arguments && most.is_none_or(|most| arguments <= most)
    }

    /// Returns true if any number of words may stand in the place of an argument.
    pub fn takes_words(&self, at: usize) -> bool {
        let last = self.parameters.len().saturating_sub(1);
        let Some(words) = self.parameters.get(last).and_then(|name| name.strip_suffix('…'))
        else {
            return false;
        };
        // The first of several numbers is one of them.
        at >= last || self.parameters[at..last].iter().all(|name| format!("{name}s") == words)
    }

    /// Returns the least and the largest number of arguments.
    fn bounds(&self) -> (usize, Option<usize>) {
        let is_optional = |name: &&&str| name.starts_with('[') || name.ends_with('…');
        let optional = self.parameters.iter().filter(is_optional).count();
        let is_open = self.parameters.last().is_some_and(|name| name.ends_with('…'));
        let all = self.parameters.len();
        (all - optional, if is_open { None } else { Some(all) })
    }

    /// Returns the message for a call with a wrong number of arguments.
    pub fn wrong_count(&self, given: usize) -> String {
        let count = |count| match count {
            0 => "no value".to_owned(),
            1 => "one value".to_owned(),
            count => format!("{count} values"),
        };
        let values = match self.bounds() {
            (least, None) => format!("at least {}", count(least)),
            (least, Some(most)) if least < most => format!("{least} or {}", count(most)),
            (least, Some(_)) => count(least),
        };
        format!("`{}` takes {values}, not {given}", self.call())
    }
}

/// Returns the signature of a function of the language.
pub fn function(name: &str) -> Option<&'static Signature> {
    FUNCTIONS.iter().find(|function| function.name == name)
}

/// Operators of expressions with the same meaning or similar meanings.
#[derive(Debug)]
pub struct Operators {
    /// Precedence: 1 binds most loosely.
    pub level: u8,
    /// Operators, with their dots.
    pub words: &'static [&'static str],
    /// Description, without a full stop; may be empty.
    pub help: &'static str,
}

/// Operators from the loosest to the tightest.
#[rustfmt::skip]
pub const OPERATOR_ROWS: [Operators; 10] = [
    Operators::new(1, &[".to.", ".step."], "`1 .to. 9`, `1 .to. 9 .step. 2`: the whole numbers, as words; cannot be chained"),
    Operators::new(2, &[".or."], "`true` or `false`; the right side is evaluated only if it matters"),
    Operators::new(3, &[".and."], "the same"),
    Operators::new(4, &[".eq.", ".ne."], "text is equal, or not"),
    Operators::new(4, &[".eql.", ".neql.", ".lt.", ".le.", ".gt.", ".ge."], "numbers compare"),
    Operators::new(5, &[".contains.", ".matches."], "text holds text, matches a [regular expression](https://docs.rs/regex/latest/regex/#syntax) somewhere"),
    Operators::new(6, &[".add.", ".sub."], ""),
    Operators::new(7, &[".mul.", ".div.", ".mod."], ""),
    Operators::new(PREFIX_LEVEL, &[".not.", ".exists.", ".isr.", ".isw.", ".isx.", ".isfile.", ".isdir.", ".islink.", ".ispipe.", ".issock.", ".isblock.", ".ischar."], "before their operand"),
    Operators::new(9, &[".pow."], ""),
];

/// Symbols of operators, each with the operator of the same precedence. Symbols have blanks around
/// them, and mean nothing among the words of a list.
///
/// A symbol means the same as the operator, except for `!`, which negates a whole comparison.
pub const SYMBOLS: [(&str, &str); 14] = [
    ("||", ".or."),
    ("&&", ".and."),
    ("!", ".not."),
    ("==", ".eq."),
    ("!=", ".ne."),
    ("<", ".lt."),
    ("<=", ".le."),
    (">", ".gt."),
    (">=", ".ge."),
    ("+", ".add."),
    ("-", ".sub."),
    ("*", ".mul."),
    ("/", ".div."),
    ("%", ".mod."),
];

/// Precedence of the operators before their operand.
pub const PREFIX_LEVEL: u8 = 8;

impl Operators {
    const fn new(level: u8, words: &'static [&'static str], help: &'static str) -> Self {
        Self { level, words, help }
    }
}

/// Operators before a command in parentheses.
pub const QUESTIONS: [&str; 3] = [".succeeds.", ".yes.", ".output."];

/// All operators with their dots: first those between operands, then those before one operand.
pub const OPERATORS: [&str; 35] = {
    let (mut all, mut count, mut is_prefix) = ([""; 35], 0, false);
    loop {
        let mut row = 0;
        while row < OPERATOR_ROWS.len() {
            let Operators { level, words, .. } = &OPERATOR_ROWS[row];
            let mut at = 0;
            while at < words.len() && (*level == PREFIX_LEVEL) == is_prefix {
                all[count] = words[at];
                count += 1;
                let mut question = 0;
                while is_prefix && at == 0 && question < QUESTIONS.len() {
                    all[count] = QUESTIONS[question];
                    count += 1;
                    question += 1;
                }
                at += 1;
            }
            row += 1;
        }
        if is_prefix {
            assert!(count == all.len());
            break all;
        }
        is_prefix = true;
    }
};

/// Names of structures in other languages, with the name in this language. A program may have one
/// of these names, but no `end` follows a program.
pub const FOREIGN_HEADS: [(&str, &str); 19] = [
    ("attempt", "try"),
    ("begin", "try"),
    ("def", "function"),
    ("fn", "function"),
    ("fun", "function"),
    ("func", "function"),
    ("foreach", "for"),
    ("loop", "while"),
    ("match", "case"),
    ("parallel", "forall"),
    ("proc", "function"),
    ("repeat", "try"),
    ("retry", "try"),
    ("sub", "function"),
    ("switch", "case"),
    ("timeout", "limit"),
    ("unless", "if"),
    ("until", "while"),
    ("when", "case"),
];

/// Returns the command or form with the meaning of `name` in other languages. A program may have the
/// same name.
pub fn synonym(name: &str) -> Option<&'static str> {
    match name {
        "abort" | "die" | "fail" => Some("failure"),
        "const" | "mut" | "var" => Some("name=value"),
        "import" => Some("use"),
        "input" => Some("read"),
        "math" => Some("$((1 + 2))"),
        "pass" => Some("true"),
        "string" => Some("upper($text)"),
        "print" | "println" | "puts" => Some("echo"),
        _ => FOREIGN_HEADS.iter().find(|(foreign, _)| *foreign == name).map(|(_, head)| *head),
    }
}

/// Returns true if a keyword begins a loop over words.
pub fn is_loop(keyword: &str) -> bool {
    matches!(keyword, "for" | "forany" | "forall")
}

/// Returns true if a text is a valid name of a variable.
pub fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Returns the strings in the definition of a rule.
    fn strings(rule: &str) -> BTreeSet<&'static str> {
        let mut lines = ftsh_grammar::TEXT.lines().skip_while(|line| {
            line.split_once(" = ").is_none_or(|(name, _)| name.trim_end() != rule)
        });
        let first = lines.next().unwrap_or_else(|| panic!("the grammar has a rule `{rule}`"));
        let rest = lines.take_while(|line| line.starts_with([' ', '}']));
        std::iter::once(first)
            .chain(rest)
            .flat_map(|line| line.split('"').skip(1).step_by(2))
            .collect()
    }

    #[test]
    fn the_grammar_has_the_same_words() {
        assert_eq!(strings("keyword"), BTreeSet::from(KEYWORDS));
        assert_eq!(strings("clause_word"), clauses::words("try").collect());
        assert_eq!(strings("rule_word"), clauses::words("channel").collect());
        let loops: BTreeSet<_> = HEADS.into_iter().filter(|head| is_loop(head)).collect();
        assert_eq!(strings("for_kind"), loops);
        let engines = EngineId::BUILT_IN.map(|engine| engine.row().name).into();
        assert_eq!(strings("built_in"), engines);
        let clauses: BTreeSet<_> = loop_clauses().flat_map(|(_, words)| words).collect();
        let files = BTreeSet::from(FILE_CLAUSES);
        assert_eq!(strings("file_word"), files);
        assert!(clauses::ROWS.iter().filter(|row| is_loop(row.head)).all(|row| {
            row.words.len() == 2 || row.head == "forall" && files.contains(row.words[0])
        }));
        assert_eq!(&strings("opener") | &engines, &clauses | &files);
        let dotted = |line: &'static str| line.split('"').skip(1).step_by(2);
        let operators = ftsh_grammar::TEXT
            .lines()
            .flat_map(dotted)
            .filter(|it| it.len() > 2 && it.starts_with('.'));
        assert_eq!(operators.collect::<BTreeSet<_>>(), BTreeSet::from(OPERATORS));
    }

    #[test]
    fn the_parser_takes_the_same_symbols() {
        for (symbol, dotted) in SYMBOLS {
            assert!(OPERATORS.contains(&dotted), "{symbol}");
            let value = if symbol == "!" { "! $a".to_owned() } else { format!("$a {symbol} $b") };
            let text = format!("if {value}\nend");
            assert!(crate::parse::parse("symbols", &text).is_ok(), "{symbol}");
        }
        for symbol in ["&", "=", "**", "^", "=~", "<>", "++"] {
            let text = format!("if $a {symbol} $b\nend");
            assert!(crate::parse::parse("symbols", &text).is_err(), "{symbol}");
        }
    }

    #[test]
    fn the_parser_takes_the_same_names() {
        for name in ["a", "_", "a1", "_1", "A_b", "", "1", "1a", "a-b", "a.b", "ä", "aä", "a b"] {
            let taken = crate::parse::parse("names", &format!("for {name} in x\nend"));
            assert_eq!(taken.is_ok(), is_name(name), "{name}");
        }
    }

    #[test]
    fn heads_are_keywords() {
        assert!(HEADS.iter().all(|head| KEYWORDS.contains(head) || FORMS.contains(head)));
        assert!(
            FOREIGN_HEADS
                .iter()
                .all(|(foreign, ours)| { HEADS.contains(ours) && !KEYWORDS.contains(foreign) })
        );
        assert!(loop_clauses().all(|(keyword, _)| is_loop(keyword)));
    }
}
