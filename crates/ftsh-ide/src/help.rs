//! `help`: explanations of the language at the prompt.

use std::collections::BTreeSet;

use unicode_width::UnicodeWidthStr;

use crate::meaning;
use ftsh_machine::builtins::{self, Builtin};
use ftsh_machine::functions::{self, Function};
use ftsh_syntax::Script;
use ftsh_syntax::ast::{CommandKind, Parameter, WordPart};
use ftsh_syntax::backoff::{self, PolicyKind};
use ftsh_syntax::clauses;
use ftsh_syntax::duration::Unit;
use ftsh_syntax::nearest::nearest;
use ftsh_syntax::size::ByteUnit;
use ftsh_syntax::slug::Slug;
use ftsh_syntax::vocabulary::{
    ALONE, DECLARATIONS, FORMS, FUNCTIONS, HEADS, KEYWORDS, MODIFIERS, OPERATORS, SYMBOLS, TIMES,
    loop_clauses,
};

/// Name of the command.
pub const COMMAND: &str = "help";
/// Commands that exist only at the prompt.
pub const OWN: [&str; 2] = [COMMAND, "why"];

/// Text of the topics. Each topic begins with `@` and its names; lines indented by two blanks are
/// examples.
const TEXT: &str = include_str!("help.txt");
/// Placeholder of the names of all backoff policies.
const POLICIES: &str = "{policies}";

/// Topics besides keywords, builtins and policies.
const MORE: [&str; 9] = [
    "variables",
    "expressions",
    "quoting",
    "redirection",
    "backoff",
    "units",
    "kinds",
    "keys",
    "prompt",
];

/// Maximum width of lines, also on wide terminals.
const MAX_WIDTH: usize = 80;

/// Returns the words after `command`, if a script consists of this command only.
pub fn asked(script: &Script, command: &str) -> Option<Vec<String>> {
    let [only] = &script.body.commands[..] else { return None };
    let CommandKind::Pipeline(pipeline) = &only.kind else { return None };
    let [stage] = &pipeline.stages[..] else { return None };
    let simple = stage.simple()?;
    if !simple.assignments.is_empty() || !simple.redirects.is_empty() {
        return None;
    }
    let words = simple.words.iter().map(|word| match &word.parts[..] {
        [WordPart::Bare(word) | WordPart::Single(word)] => Some(word.clone()),
        [WordPart::Variable(variable)] if variable.substitute.is_none() => {
            Some(match &variable.parameter {
                Parameter::Named(name) => name.to_string(),
                Parameter::Positional(0) => "0".to_owned(),
                Parameter::Positional(_) => "1".to_owned(),
                Parameter::Count => "#".to_owned(),
                Parameter::Star => "*".to_owned(),
                Parameter::At => "@".to_owned(),
                Parameter::Pid => "$".to_owned(),
            })
        }
        _ => None,
    });
    let words = words.collect::<Option<Vec<String>>>()?;
    let (first, topics) = words.split_first()?;
    (first == command).then(|| topics.to_vec())
}

/// Returns the words after `help` in a line that is not a statement, because an operator follows.
pub fn asked_of_operator(line: &str) -> Option<Vec<String>> {
    let topics = line.trim().strip_prefix(COMMAND)?.trim_start();
    let is_operator =
        |topic: &&str| OPERATORS.contains(topic) || meaning::operator(topic).is_some();
    Some(vec![Some(topics).filter(is_operator)?.to_owned()])
}

/// Returns all topics, in alphabetical order.
pub fn topics() -> impl Iterator<Item = &'static str> {
    let texts = TEXT.lines().filter_map(|line| line.strip_prefix("@ "));
    let functions = FUNCTIONS.iter().map(|function| function.name);
    let words: BTreeSet<&str> = texts
        .flat_map(str::split_whitespace)
        .chain(builtins::names())
        .chain(functions)
        .chain(PolicyKind::ALL.map(PolicyKind::name))
        .chain(HEADS.into_iter().chain(DECLARATIONS).flat_map(clauses::words))
        .chain(loop_clauses().flat_map(|(_, words)| words))
        .chain(["in", "order"])
        .chain(TIMES)
        .chain(Unit::names())
        .chain(ByteUnit::names())
        .chain(OPERATORS)
        .chain(SYMBOLS.map(|(symbol, _)| symbol))
        .chain(meaning::variables())
        .chain(Slug::ALL.iter().map(|slug| slug.name()))
        .collect();
    words.into_iter()
}

/// Topic that the language does not have, such as a variable with the meaning of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramTopic {
    /// Word after `help`.
    pub name: String,
    /// Paragraphs.
    pub text: String,
}

/// Returns the explanation of topics of the language and of the program, for a terminal of this
/// width.
pub fn answer(topics: &[String], more: &[ProgramTopic], columns: usize, colors: bool) -> String {
    let columns = columns.clamp(20, MAX_WIDTH);
    if topics.is_empty() {
        return overview(columns, colors);
    }
    let about = |topic: String| match text_of(&topic, more) {
        Some(text) => {
            let title = if colors { format!("\x1b[1m{topic}\x1b[0m") } else { topic.clone() };
            format!("{title}\n{}", wrapped(&text, columns))
        }
        None => format!("There is {}\n", no_help(&topic, more)),
    };
    joined(topics).into_iter().map(about).collect::<Vec<_>>().join("\n")
}

/// Returns a message about the first topic that has no explanation.
pub fn unknown(topics: &[String], more: &[ProgramTopic]) -> Option<String> {
    let unknown = joined(topics).into_iter().find(|topic| text_of(topic, more).is_none())?;
    Some(format!("there is {}", no_help(&unknown, more)))
}

fn text_of(topic: &str, more: &[ProgramTopic]) -> Option<String> {
    let of_program = || more.iter().find(|it| it.name == topic).map(|it| it.text.clone());
    text(topic).or_else(of_program)
}

fn no_help(topic: &str, more: &[ProgramTopic]) -> String {
    let mut names: Vec<&str> = topics().collect();
    names.extend(more.iter().map(|it| it.name.as_str()));
    let meant = nearest(topic, names);
    let meant = meant.map(|meant| format!(", did you mean `{meant}`?")).unwrap_or_default();
    format!("no help on `{topic}`{meant}")
}

/// Returns topics with each two words that are a topic together as one, such as `keep going`.
fn joined(words: &[String]) -> Vec<String> {
    let mut topics: Vec<String> = Vec::new();
    for word in words {
        let both = topics.last().map(|last| format!("{last} {word}"));
        match both.filter(|both| text(both).is_some()) {
            Some(both) => *topics.last_mut().expect("a first word") = both,
            None => topics.push(word.clone()),
        }
    }
    topics
}

/// Returns the text about a topic: a paragraph in each line, examples indented by two blanks.
pub fn text(topic: &str) -> Option<String> {
    let parts = parts(topic);
    (!parts.is_empty()).then(|| parts.join("\n"))
}

/// Returns the text about the main meaning of a topic.
pub fn main_text(topic: &str) -> Option<String> {
    parts(topic).into_iter().next()
}

/// Returns the explanation of a slug, for a terminal of this width.
pub fn explain(slug: Slug, columns: usize) -> String {
    wrapped(&about_slug(slug), columns)
}

/// Returns a text for each meaning of a topic, the main one first.
fn parts(topic: &str) -> Vec<String> {
    let mut parts = Vec::new();
    parts.extend(functions::named(topic).map(about_function));
    parts.extend(builtins::named(topic).map(about_builtin));
    parts.extend(PolicyKind::named(topic).map(backoff::help));
    parts.extend(own_text(topic).map(|text| match topic {
        "backoff" => text.replace(POLICIES, &PolicyKind::ALL.map(PolicyKind::name).join(", ")),
        _ => text.to_owned(),
    }));
    parts.extend(Slug::named(topic).map(about_slug));
    let clauses = meaning::clauses_with(topic).into_iter();
    parts.extend(clauses.map(|text| format!("Clause of {text}\n")));
    if Unit::named(topic).is_some() {
        parts.extend(own_text("units").map(str::to_owned));
    }
    if ByteUnit::named(topic).is_some() {
        parts.extend(own_text("sizes").map(str::to_owned));
    }
    parts.extend(
        meaning::operator(topic)
            .map(|text| format!("{text} `help expressions` lists all operators.\n")),
    );
    parts.extend(meaning::variable(topic).map(|meaning| format!("`${topic}`: {meaning}.\n")));
    parts
}

fn about_slug(slug: Slug) -> String {
    format!("{}[{slug}]: {}", slug.severity().name(), slug.explanation().paragraphs())
}

/// Returns the paragraphs of a topic in `help.txt`.
fn own_text(topic: &str) -> Option<&'static str> {
    let mut texts = TEXT.split("@ ").filter_map(|text| text.split_once('\n'));
    texts.find(|(names, _)| names.split_whitespace().any(|name| name == topic)).map(|it| it.1)
}

fn about_function(function: &Function) -> String {
    let signature = function.signature;
    let mut text = format!("`{}`: {}.\n", signature.call(), signature.help);
    for example in function.shown_examples() {
        text.push_str(&format!("\n{example}.\n"));
    }
    text
}

fn about_builtin(builtin: &Builtin) -> String {
    let Builtin { usage, help, details, examples, .. } = builtin;
    let usage: Vec<String> = usage.iter().map(|form| format!("`{form}`")).collect();
    let mut text = format!("{}: {help}.\n", usage.join(", "));
    if !details.is_empty() {
        text.push_str(&format!("\n{details}\n"));
    }
    if let Some((script, _)) = examples.first() {
        text.push('\n');
        script.lines().for_each(|line| text.push_str(&format!("  {line}\n")));
    }
    text
}

fn overview(columns: usize, colors: bool) -> String {
    let mut text = wrapped(
        "Commands run one after the other, and the first that fails ends the line. `try` repeats \
         commands until they succeed, `forall` runs them in parallel.\n\n\
         `help` and one of these words says more:\n",
        columns,
    );
    let policies = PolicyKind::ALL.map(PolicyKind::name);
    let structures = KEYWORDS.into_iter().chain(FORMS).chain(ALONE).chain(DECLARATIONS);
    let structures: Vec<&str> = structures.chain(MODIFIERS).collect();
    let functions: Vec<&str> = FUNCTIONS.iter().map(|function| function.name).collect();
    let builtins: Vec<&str> = builtins::names().collect();
    let groups: [(&str, &[&str]); 5] = [
        ("structures", &structures),
        ("commands", &builtins),
        ("functions", &functions),
        ("delays", &policies),
        ("and", &MORE),
    ];
    for (name, words) in groups {
        let mut words = words.to_vec();
        words.sort_unstable();
        let name = if colors { format!("\n\x1b[1m{name}\x1b[0m\n") } else { format!("\n{name}\n") };
        text.push_str(&name);
        text.push_str(&fill(&words.join(" "), "  ", columns));
    }
    text
}

/// Fills paragraphs to the width. Indented lines stay unchanged.
fn wrapped(text: &str, columns: usize) -> String {
    let line = |line: &str| match line.strip_prefix("  ") {
        Some(_) => format!("{line}\n"),
        None => fill(line, "", columns),
    };
    text.lines().map(line).collect()
}

fn fill(text: &str, indent: &str, columns: usize) -> String {
    fill_hanging(text, indent, indent, columns)
}

/// Fills words to the width, with one indentation for the first row and another for further rows.
pub fn fill_hanging(text: &str, first: &str, further: &str, columns: usize) -> String {
    let mut filled = String::new();
    let mut line = first.to_owned();
    let mut is_empty = true;
    for word in text.split_whitespace() {
        if line.width() + 1 + word.width() >= columns && !is_empty {
            filled.push_str(&line);
            filled.push('\n');
            further.clone_into(&mut line);
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    filled.push_str(&line);
    filled.push('\n');
    filled
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::complete::SPECIAL;
    use crate::tokens::{Role, scan};
    use ftsh_machine::FailureKind;

    /// Scripts with all words that have a color of their own.
    const HIGHLIGHTED: [(&str, &str); 6] = [
        (
            "try",
            "try for 1 hour or 5 times every 1 s each 2 minutes while $a .eq. b atomic through k\ncatch\nfinally\nend",
        ),
        ("backoff", "try 1 time backoff full from 1 ms to 2 days by 2 jitter 10%\nend"),
        (
            "loops",
            "for a in b\nend\nforany a in b in order hedge after 1 s at most 2\nend\nforall a in b at most 2 at least 1 keep going output grouped in order on slurm retry lost 2 times\nend\nforall a in b output tagged on ssh c\nend",
        ),
        ("keep", "keep a"),
        ("list", "list a in b\nlist add a c\necho $a"),
        (
            "channel",
            "channel k at most 4 rate 10 per second budget 20% breaker 5 failures 30 seconds\nif .not. .exists. $f\nelse if 1 .add. 2 .lt. 4 && ! $a == 1 + 2\nend\nfunction f\nreturn 1\nshift\nend\nwhile true\nbreak\ncontinue\nend\ncase $f\nwhen a b*\nelse\nend",
        ),
    ];

    #[test]
    fn every_word_is_explained() {
        let known: Vec<&str> = topics().collect();
        let words = KEYWORDS.into_iter().chain(FORMS).chain(ALONE).chain(DECLARATIONS);
        let words = words.chain(MODIFIERS).chain(OPERATORS);
        let words = words.chain(TIMES).chain(Unit::names()).chain(ByteUnit::names());
        let words = words.chain(SPECIAL).chain(MORE).chain(OWN);
        let words = words.chain(loop_clauses().flat_map(|(_, words)| words));
        let words = words.chain(["try", "channel"].into_iter().flat_map(clauses::words));
        let words = words.chain(builtins::names()).chain(PolicyKind::ALL.map(PolicyKind::name));
        let words = words.chain(FUNCTIONS.iter().map(|function| function.name));
        let words = words.chain(FailureKind::NAMES).chain(Slug::ALL.iter().map(|slug| slug.name()));
        for word in words.chain(known.clone()) {
            assert!(known.contains(&word), "{word}");
            assert!(text(word).is_some_and(|text| !text.trim().is_empty()), "{word}");
        }
        let expressions = text("expressions").expect("a topic");
        for operator in OPERATORS {
            assert!(expressions.contains(operator), "{operator}");
        }
        let kinds = text("kinds").expect("a topic");
        for kind in FailureKind::NAMES {
            assert!(text(kind).is_some_and(|text| text.contains("failure[")), "{kind}");
            assert!(kinds.contains(kind), "{kind}");
        }
    }

    /// Words that the highlighter gives a meaning are topics.
    #[test]
    fn highlighted_words_are_explained() {
        let mut seen = 0;
        for (name, script) in HIGHLIGHTED {
            for token in scan(script).all {
                let word = &script[token.range.clone()];
                if matches!(token.role, Role::Keyword | Role::Clause | Role::Operator) {
                    assert!(text(word).is_some(), "{name}: {word}");
                    seen += 1;
                }
            }
        }
        assert!(seen > 60, "{seen} words");
    }

    #[test]
    fn variables_are_topics() {
        let asked = |text| asked(&ftsh_syntax::parse("test", text).expect("a script"), COMMAND);
        for (line, topic) in [
            ("help $error_kind", "error_kind"),
            ("help $2", "1"),
            ("help $#", "#"),
            ("help $$", "$"),
        ] {
            assert_eq!(asked(line), Some(vec![topic.to_owned()]));
            assert!(text(topic).is_some(), "{topic}");
        }
    }

    #[test]
    fn examples_are_right() {
        for text in TEXT.split("@ ") {
            let (_, text) = text.split_once('\n').unwrap_or_default();
            let example: Vec<&str> =
                text.lines().filter_map(|line| line.strip_prefix("  ")).collect();
            let example = example.join("\n");
            // The table of operators is no script.
            if !example.starts_with(".to.") {
                let parsed = ftsh_syntax::parse("help", &example);
                assert!(parsed.is_ok(), "{example}");
            }
        }
    }

    #[test]
    fn help_fits_narrow_terminals() {
        let all: Vec<String> = topics().map(str::to_owned).collect();
        for text in [answer(&[], &[], 40, false), answer(&all, &[], 40, false)] {
            for line in text.lines() {
                assert!(line.width() <= 48, "{line}");
                assert!(line.width() < 40 || line.starts_with("  "), "{line}");
            }
        }
        assert!(answer(&[], &[], 80, false).lines().count() <= 26);
    }

    #[test]
    fn misspellings_are_recognized() {
        let topics = vec!["foral".to_owned()];
        assert!(answer(&topics, &[], 80, false).contains("`forall`"));
        assert!(answer(&["timout".to_owned()], &[], 80, false).contains("`timeout`"));
        let asked = |text| asked(&ftsh_syntax::parse("test", text).expect("a script"), COMMAND);
        assert_eq!(asked("help try"), Some(vec!["try".to_owned()]));
        assert_eq!(asked("help"), Some(Vec::new()));
        assert_eq!(asked("help > f"), None);
        assert_eq!(asked("help; help"), None);
        assert_eq!(asked_of_operator("help =="), Some(vec!["==".to_owned()]));
        assert_eq!(asked_of_operator("help (echo"), None);
        assert_eq!(asked_of_operator("helping =="), None);
    }

    #[test]
    fn two_words_are_one_topic() {
        let answer = |line: &str| {
            let topics: Vec<_> = line.split(' ').map(str::to_owned).collect();
            answer(&topics, &[], 80, false)
        };
        for (topic, meaning) in [
            ("keep going", "a failed branch does not cancel the others"),
            ("from input", "one word for each line of standard input"),
            ("in order", "starts with the first item"),
            ("on ssh", "on ssh HOSTS"),
            ("once in", "items recorded in the file are skipped"),
        ] {
            let answer = answer(topic);
            assert!(answer.starts_with(&format!("{topic}\n")), "{answer}");
            assert!(
                answer.split_whitespace().collect::<Vec<_>>().join(" ").contains(meaning),
                "{answer}"
            );
        }
        assert!(answer("keep try").contains("\n\ntry\n"));
    }
}
