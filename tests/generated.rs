//! Parts of documents and editors' files that are generated from the rows of the language.
//!
//! A part stands between a line with `generated: NAME` and a line with `end of generated`. In JSON, which
//! has no comments, a part is the words between `(?:` and `)` in the line after `"comment": "generated: NAME"`.
//! `just generate` writes the parts.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use ftsh::cli::options::{self, topics};
use ftsh_machine::builtins;
use ftsh_machine::functions;
use ftsh_syntax::backoff;
use ftsh_syntax::clauses::{self, ClauseRow, ValueForm};
use ftsh_syntax::duration::Unit;
use ftsh_syntax::engine::EngineId;
use ftsh_syntax::size::ByteUnit;
use ftsh_syntax::slug::{Severity, Slug};
use ftsh_syntax::vocabulary::{
    FILE_CLAUSES, OPERATOR_ROWS, OPERATORS, PREFIX_LEVEL, QUESTIONS, SYMBOLS, TIMES, is_loop,
    loop_clauses,
};

/// Variable that has files written instead of compared.
pub(crate) const WRITE: &str = "FTSH_TEST_GENERATE";

/// Files with generated parts.
const FILES: [&str; 17] = [
    "grammar/ftsh.pest",
    "editors/tree-sitter/queries/highlights.scm",
    "docs/reference/command-line.md",
    "docs/reference/functions.md",
    "docs/reference/kinds.md",
    "docs/reference/commands.md",
    "docs/reference/loops.md",
    "docs/reference/trying.md",
    "docs/reference/words.md",
    "docs/reference/errors-in-scripts.md",
    "docs/reference/errors-of-the-command-line.md",
    "docs/reference/failures.md",
    "docs/reference/warnings.md",
    "editors/vim/syntax/ftsh.vim",
    "editors/vscode/syntaxes/ftsh.tmLanguage.json",
    "editors/tree-sitter/grammar.js",
    "editors/highlightjs/ftsh.js",
];

#[test]
fn generated_parts_are_up_to_date() {
    let mut stale = Vec::new();
    for file in FILES {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        let text = fs::read_to_string(&path).expect("a file with generated parts");
        let generated =
            if file.contains("vscode") { in_json(&text) } else { regenerated(file, &text) };
        if generated == text {
            continue;
        }
        if std::env::var_os(WRITE).is_some() {
            fs::write(&path, generated).expect("a file to write");
        } else {
            stale.push(file);
        }
    }
    assert!(stale.is_empty(), "generated parts of {stale:?} are stale: run `just generate`");
}

/// Returns the text with all of its parts generated.
fn regenerated(file: &str, text: &str) -> String {
    let (mut out, mut is_inside) = (String::new(), false);
    for line in text.lines() {
        is_inside &= !line.contains("end of generated");
        if !is_inside {
            out.push_str(line);
            out.push('\n');
        }
        if let Some(name) = part_name(line) {
            out.push_str(&part(file, name));
            is_inside = true;
        }
    }
    assert!(!is_inside, "{file}: a generated part has no end");
    out
}

fn in_json(text: &str) -> String {
    let (mut out, mut name) = (String::new(), None);
    for line in text.lines() {
        let words = name.map(words).map(|words| alternatives(&words, "|").replace('\\', "\\\\"));
        match words.zip(line.split_once("(?:")) {
            Some((words, (before, after))) => {
                let (_, after) = after.split_once(')').expect("alternatives end with `)`");
                let _ = writeln!(out, "{before}(?:{words}){after}");
            }
            None => {
                out.push_str(line);
                out.push('\n');
            }
        }
        name = part_name(line);
    }
    out
}

fn part_name(line: &str) -> Option<&str> {
    let (_, name) = line.split_once("generated: ")?;
    Some(name.trim_end_matches([' ', '-', '>', '"', ',']))
}

fn part(file: &str, name: &str) -> String {
    match (file, name) {
        (_, "functions") => functions_table(),
        (_, "script-errors") => {
            index(|slug| slug.severity() == Severity::Error && !OF_THE_COMMAND_LINE.contains(&slug))
        }
        (_, "command-line-errors") => index(|slug| OF_THE_COMMAND_LINE.contains(&slug)),
        (_, "warnings") => index(|slug| slug.severity() == Severity::Warning),
        (_, "failures") => index(|slug| slug.severity() == Severity::Failure),
        (_, "builtins") => builtins_table(),
        (_, "operators") => operators_table(),
        (_, "environment") => environment_table(),
        (_, "environment-of-commands") => environment_of_commands(),
        (_, "statuses") => statuses_table(),
        (_, "policies") => backoff::reference_table(),
        ("grammar/ftsh.pest", "loop-clauses") => grammar_of_loops(),
        ("grammar/ftsh.pest", "try-clauses") => grammar_of_try(),
        ("grammar/ftsh.pest", "limit-clauses") => grammar_of_limit(),
        ("grammar/ftsh.pest", "rule-words") => {
            grammar_words("rule_word", &phrases_of(|row| row.head == "channel"))
        }
        ("docs/reference/trying.md", "try-clauses") => clauses_table("try"),
        ("docs/reference/loops.md", "forall-clauses") => clauses_table("forall"),
        ("editors/tree-sitter/grammar.js", "words") => tree_sitter_words(),
        ("editors/highlightjs/ftsh.js", "words") => highlight_js_words(),
        ("editors/tree-sitter/grammar.js", "try-clauses") => {
            clauses::rows("try").filter_map(tree_sitter_clause).collect()
        }
        ("editors/tree-sitter/grammar.js", "loop-clauses") => tree_sitter_loops(),
        ("editors/tree-sitter/queries/highlights.scm", "try-words") => {
            let words = clauses::rows("try").flat_map(|row| {
                let further = row.further.iter().map(|word| (*word).to_owned());
                std::iter::once(row.words.join(" ")).chain(further)
            });
            let words: Vec<_> = words.filter(|words| words != "for").collect();
            format!("(try [\"{}\"] @type)\n", words.join("\" \""))
        }
        ("editors/tree-sitter/queries/highlights.scm", "loop-clauses") => {
            let further = clauses::rows("forany").flat_map(|row| row.further);
            let further = further.map(|word| (*word).to_owned());
            let phrases = loop_phrases().into_iter().filter(|words| words[0] != "on");
            let phrases = phrases.map(|words| words.join(" "));
            let phrases =
                phrases.chain(FILE_CLAUSES.map(str::to_owned)).chain([ON_NAME.to_owned()]);
            let phrases: Vec<_> = phrases.chain(further).collect();
            format!("(for [\"{}\"] @type)\n", phrases.join("\" \""))
        }
        (_, "words") => vim_words(),
        _ => panic!("{file}: nothing generates the part `{name}`"),
    }
}

/// Name of an engine as a regular expression, and the phrase with it in tree-sitter's grammar.
const NAME: &str = "[A-Za-z][A-Za-z0-9._-]*";
const ON_NAME: &str = "on NAME";

/// Returns the words that a grammar of an editor needs, each with `\s+` between its parts.
fn words(name: &str) -> Vec<String> {
    let phrases = |head: &str| {
        let own = loop_clauses().filter(|(owner, words)| *owner == head && words[0] != "on");
        let on = || FILE_CLAUSES.map(str::to_owned).into_iter().chain([format!(r"on\s+{NAME}")]);
        let on = (head == "forall").then(on).into_iter().flatten();
        let is_usual = |words: [&str; 2]| {
            let mut rows = clauses::rows(head);
            rows.any(|row| row.words == words && row.value == ValueForm::UsualTime)
        };
        // The first alternative that matches counts.
        let forms = own.flat_map(|(_, words)| {
            let phrase = words.join(r"\s+");
            let usual = is_usual(words).then(|| format!(r"{phrase}\s+usual\s+or"));
            usual.into_iter().chain([phrase])
        });
        forms.chain(on).collect()
    };
    let policies = backoff::PolicyKind::ALL.map(backoff::PolicyKind::name);
    let owned = |words: Vec<&str>| words.into_iter().map(str::to_owned).collect::<Vec<_>>();
    match name {
        "functions" => owned(functions::all().map(|it| it.signature.name).collect()),
        "builtins" => owned(builtins::names().collect()),
        "operators" => {
            let is_question = |operator: &&str| QUESTIONS.contains(operator);
            let operators = OPERATORS.into_iter().filter(|operator| !is_question(operator));
            operators.map(|operator| operator.trim_matches('.').to_owned()).collect()
        }
        "try-words" => {
            let units = Unit::names().chain(ByteUnit::names());
            owned(clauses::words("try").chain(TIMES).chain(policies).chain(units).collect())
        }
        "channel-words" => owned(clauses::words("channel").chain(Unit::names()).collect()),
        "forany-clauses" => phrases("forany"),
        "forall-clauses" => phrases("forall"),
        _ => panic!("there are no words `{name}`"),
    }
}

fn alternatives(words: &[String], separator: &str) -> String {
    words.join(separator)
}

fn functions_table() -> String {
    let mut table = "| function | value | for example |\n|---|---|---|\n".to_owned();
    for function in functions::all() {
        let example = function.shown_examples().next().expect("an example");
        let signature = function.signature;
        let _ = writeln!(table, "| `{}` | {} | {example} |", signature.call(), signature.help);
    }
    table
}

/// Sections of the reference about builtins that are not called after the builtin.
const SECTIONS: [(&str, &str); 4] = [
    ("local", "#functions"),
    ("failure", "trying.md#catch"),
    ("giveup", "trying.md#giving-up"),
    ("defer", "trying.md#deferring"),
];

fn builtins_table() -> String {
    let reference = fs::read_to_string("docs/reference/commands.md").expect("a page");
    let mut table = "| builtin | |\n|---|---|\n".to_owned();
    for builtin in builtins::all() {
        let usage: Vec<String> = builtin.usage.iter().map(|form| format!("`{form}`")).collect();
        let (name, help) = (builtin.name, builtin.help);
        let elsewhere = SECTIONS.iter().find(|(builtin, _)| *builtin == name);
        let has_section = reference.lines().any(|line| line == format!("### {name}"));
        let section = elsewhere.map(|it| it.1.to_owned());
        let section = section.or(has_section.then(|| format!("#{name}")));
        let more = section.map(|section| format!("; [more]({section})")).unwrap_or_default();
        let _ = writeln!(table, "| {} | {help}{more} |", usage.join(", "));
    }
    table
}

fn operators_table() -> String {
    let mut table = "| operators | symbols | |\n|---|---|---|\n".to_owned();
    let cell = |words: Vec<String>| {
        if words.is_empty() { " ".to_owned() } else { format!(" {} ", words.join(" ")) }
    };
    for row in OPERATOR_ROWS {
        let words = row.words.iter().map(|word| format!("`{word}`")).collect();
        let symbols = SYMBOLS.iter().filter(|(_, dotted)| row.words.contains(dotted));
        let symbols = symbols.map(|(symbol, _)| format!("`{}`", symbol.replace('|', "\\|")));
        let help = if row.help.is_empty() { String::new() } else { format!("{} ", row.help) };
        let _ = writeln!(table, "|{}|{}| {help}|", cell(words), cell(symbols.collect()));
    }
    table
}

fn environment_table() -> String {
    let mut table = "| variable | |\n|---|---|\n".to_owned();
    for (names, meaning) in options::environment() {
        let names: Vec<_> = names.split(", ").map(|name| format!("`{name}`")).collect();
        let _ = writeln!(table, "| {} | {meaning} |", names.join(", "));
    }
    table
}

fn environment_of_commands() -> String {
    let mut table = "| variable | |\n|---|---|\n".to_owned();
    for (name, meaning) in topics::OF_COMMANDS {
        let _ = writeln!(table, "| `{name}` | {meaning} |");
    }
    table
}

fn statuses_table() -> String {
    let mut table = "| status | meaning |\n|---|---|\n".to_owned();
    for (status, meaning) in options::STATUS {
        let _ = writeln!(table, "| {status} | {meaning} |");
    }
    table
}

/// Names of the word lists of editors' files.
const WORD_LISTS: [&str; 7] = [
    "operators",
    "functions",
    "builtins",
    "try-words",
    "forany-clauses",
    "forall-clauses",
    "channel-words",
];

/// Errors of the command line, which have a page of their own.
const OF_THE_COMMAND_LINE: [Slug; 12] = [
    Slug::JournalFile,
    Slug::LockFile,
    Slug::MissingDashes,
    Slug::NotRun,
    Slug::OptionConflict,
    Slug::OptionValue,
    Slug::PrefixHead,
    Slug::PrefixInput,
    Slug::ScriptFile,
    Slug::System,
    Slug::UnknownOption,
    Slug::UnknownSlug,
];

/// Returns the explanations of some slugs.
fn index(is_wanted: impl Fn(Slug) -> bool) -> String {
    let mut text = String::new();
    for slug in Slug::ALL.iter().filter(|slug| is_wanted(**slug)) {
        let _ = write!(text, "\n## {slug}\n\n{}", slug.page());
    }
    text.push('\n');
    text
}

fn vim_words() -> String {
    let mut lines = String::new();
    for name in WORD_LISTS {
        let words: Vec<_> = words(name).iter().map(|word| word.replace("\\s+", "\\s\\+")).collect();
        let _ =
            writeln!(lines, "let s:{} = '{}'", name.replace('-', "_"), alternatives(&words, "\\|"));
    }
    lines
}

fn highlight_js_words() -> String {
    let mut lines = String::new();
    for name in WORD_LISTS {
        let words = alternatives(&words(name), "|").replace('\\', "\\\\");
        let _ = writeln!(lines, "  const {} = '{words}';", name.replace('-', "_").to_uppercase());
    }
    lines
}

fn tree_sitter_words() -> String {
    let quoted = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        words.join(", ")
    };
    let mut text = "const OPERATORS = [\n".to_owned();
    let mut questions = Vec::new();
    let mut levels: Vec<(u8, Vec<&str>)> = Vec::new();
    for row in OPERATOR_ROWS {
        let symbols = SYMBOLS.iter().filter(|(_, dotted)| row.words.contains(dotted));
        let words: Vec<_> = row.words.iter().chain(symbols.map(|(symbol, _)| symbol)).collect();
        match levels.last_mut() {
            _ if row.level == PREFIX_LEVEL => questions.extend(row.words),
            Some((level, known)) if *level == row.level => known.extend(words),
            _ => levels.push((row.level, words.into_iter().copied().collect())),
        }
    }
    for (level, words) in levels {
        let _ = writeln!(text, "  [{level}, {}],", quoted(&words));
    }
    let units: Vec<&str> = TIMES.into_iter().chain(Unit::names()).collect();
    let _ = write!(
        text,
        "];\nconst QUESTIONS = [\n  {},\n];\nconst UNITS = [\n  {},\n];\nconst BYTE_UNITS = [\n  {},\n];\n",
        quoted(&questions),
        quoted(&units),
        quoted(&ByteUnit::names().collect::<Vec<_>>())
    );
    text
}

fn clauses_table(head: &str) -> String {
    let mut table = "| clause | |\n|---|---|\n".to_owned();
    for row in clauses::rows(head) {
        let _ = writeln!(table, "| `{}` | {} |", row.usage, row.help);
    }
    if head == "forall" {
        for row in EngineId::rows() {
            let help = row.help.trim_end_matches('.');
            let (usage, help) = help.split_once(": ").expect("a usage and a description");
            let _ = writeln!(table, "| {usage} | {help} |");
        }
    }
    table
}

/// Returns the clauses of loops without those that `forany` and `forall` share.
fn loop_phrases() -> Vec<[&'static str; 2]> {
    let mut phrases = Vec::new();
    for (_, words) in loop_clauses() {
        if !phrases.contains(&words) {
            phrases.push(words);
        }
    }
    phrases
}

/// Returns the words that begin each of some clauses, as a sequence in the grammar.
fn phrases_of(is_wanted: impl Fn(&ClauseRow) -> bool) -> Vec<String> {
    let rows = clauses::ROWS.iter().filter(|row| is_wanted(row));
    let mut phrases = Vec::new();
    for row in rows {
        phrases.push(sequence(row.words));
        phrases.extend(row.further.iter().map(|word| sequence(&[word])));
    }
    phrases
}

fn sequence(words: &[&str]) -> String {
    let words: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
    words.join(" ~ blank+ ~ ")
}

/// Returns a rule for words that mean something, each whole.
fn grammar_words(name: &str, phrases: &[String]) -> String {
    format!("{name} = {{ ( {} ) ~ keyword_end }}\n", phrases.join(" | "))
}

/// Returns the rules of clauses, one for each form of value, so that a clause needs no rule of its own.
///
/// `rest` is a form's name and the rule of its value, or none for clauses with rules of their own.
fn grammar_rules(
    prefix: &str,
    is_wanted: impl Fn(&ClauseRow) -> bool,
    rest: impl Fn(ValueForm) -> Option<(&'static str, &'static str)>,
) -> (String, String) {
    let mut forms: Vec<(ValueForm, Vec<String>)> = Vec::new();
    for row in clauses::ROWS.iter().filter(|row| is_wanted(row)) {
        let words = sequence(row.words);
        match forms.iter_mut().find(|(form, _)| *form == row.value) {
            Some((_, phrases)) if phrases.contains(&words) => {}
            Some((_, phrases)) => phrases.push(words),
            None => forms.push((row.value, vec![words])),
        }
    }
    let (mut names, mut text) = (Vec::new(), String::new());
    for (value, phrases) in forms {
        let Some((form, rest)) = rest(value) else { continue };
        let name = format!("{prefix}_{form}");
        let _ = writeln!(text, "{name} = {{ ( {} ) ~ keyword_end{rest} }}", phrases.join(" | "));
        names.push(name);
    }
    (names.join(" | "), text)
}

fn grammar_of_loops() -> String {
    let (names, rules) = grammar_rules(
        "loop",
        |row| is_loop(row.head),
        |form| {
            Some(match form {
                ValueForm::Nothing => ("nothing", ""),
                ValueForm::Number => ("number", " ~ (blank* ~ !opener ~ calculation)?"),
                ValueForm::Time => ("time", " ~ (blank* ~ !opener ~ duration)?"),
                ValueForm::UsualTime => ("usual", " ~ (blank* ~ !opener ~ (usual | duration))?"),
                ValueForm::Times => {
                    ("times", " ~ (blank* ~ !opener ~ calculation ~ (blank* ~ n_times)?)?")
                }
                ValueForm::Order => ("order", " ~ (blank* ~ in_order)?"),
                ValueForm::Expression => ("expression", " ~ (blank* ~ !opener ~ expression)?"),
                ValueForm::Signal => ("signal", " ~ (blank* ~ !opener ~ expression)?"),
                ValueForm::Size => ("size", " ~ (blank* ~ !opener ~ duration)?"),
                ValueForm::Words => ("words", " ~ (blank* ~ !opener ~ expression)*"),
                ValueForm::Special => return None,
            })
        },
    );
    let own = loop_phrases();
    let mut openers: Vec<String> =
        own.iter().filter(|words| words[0] != "on").map(|words| sequence(words)).collect();
    openers.extend(FILE_CLAUSES.map(|word| sequence(&[word])));
    openers.push("\"on\" ~ blank+ ~ engine".to_owned());
    format!(
        "loop_clause = _{{ {names} | on_engine }}\n{rules}\
         // Words that begin clauses: no words of a list, also where no clause is meant.\n{}",
        grammar_words("opener", &openers).replace("= {", "= _{"),
    )
}

/// Returns the rule of a value in the head of a `try` or a `limit`.
fn value_in_try(form: ValueForm) -> Option<(&'static str, &'static str)> {
    Some(match form {
        ValueForm::Nothing => ("nothing", ""),
        ValueForm::Number => ("number", " ~ blank* ~ !clause_word ~ calculation"),
        ValueForm::Time => ("time", " ~ blank* ~ duration"),
        ValueForm::UsualTime => ("usual", " ~ blank* ~ (usual | duration)"),
        ValueForm::Times => {
            ("times", " ~ blank* ~ !clause_word ~ calculation ~ (blank* ~ n_times)?")
        }
        ValueForm::Order => ("order", " ~ (blank* ~ in_order)?"),
        ValueForm::Expression => ("expression", " ~ blank* ~ condition"),
        ValueForm::Signal => ("signal", " ~ (blank* ~ !clause_word ~ expression)?"),
        ValueForm::Size => ("size", " ~ blank* ~ duration"),
        ValueForm::Words => ("words", " ~ (blank* ~ !clause_word ~ expression)*"),
        ValueForm::Special => return None,
    })
}

fn grammar_of_try() -> String {
    let (names, rules) = grammar_rules("try", |row| row.head == "try", value_in_try);
    let words = grammar_words("clause_word", &phrases_of(|row| row.head == "try"));
    format!(
        "try_clause = _{{ {names} | backoff | through | limit }}\n{rules}\
         // Words that mean something in the head of a try, and nowhere else.\n{words}",
    )
}

fn grammar_of_limit() -> String {
    let (names, rules) = grammar_rules("group", |row| row.head == "limit", value_in_try);
    format!("limit_clause = _{{ {names} }}\n{rules}")
}

/// Returns a clause as tree-sitter's grammar has it; none if the clause has a rule of its own.
fn tree_sitter_clause(row: &ClauseRow) -> Option<String> {
    let words = match row.words {
        [first, second] => format!("phrase('{first}', '{second}')"),
        words => format!("'{}'", words.join(" ")),
    };
    let value = match row.value {
        ValueForm::Nothing => return Some(format!("        {words},\n")),
        ValueForm::Number | ValueForm::Expression | ValueForm::Signal => "$._expression",
        ValueForm::Time => "$.duration",
        ValueForm::UsualTime => "optional(seq('usual', 'or')), $.duration",
        ValueForm::Size => "$.size",
        ValueForm::Times => "$._expression, optional(choice('times', 'time'))",
        ValueForm::Order => "optional(seq('in', 'order'))",
        ValueForm::Words => "repeat($._item)",
        ValueForm::Special => return None,
    };
    Some(format!("        seq({words}, {value}),\n"))
}

fn tree_sitter_loops() -> String {
    let clauses = |head| clauses::rows(head).filter_map(tree_sitter_clause).collect::<String>();
    let on = format!(
        "        seq(alias(token(/on[ \\t]+{NAME}/), '{ON_NAME}'), optional($._expression)),\n"
    );
    format!(
        "    _forany_clause: ($) =>\n      choice(\n{}      ),\n    \
         _forall_clause: ($) =>\n      choice(\n{}{on}      ),\n",
        clauses("forany"),
        clauses("forall"),
    )
}
