//! `help`: the language, explained at the prompt.

use std::borrow::Cow;

use unicode_width::UnicodeWidthStr;

use ftsh_machine::builtins::{self, Builtin};
use ftsh_machine::functions::{self, Function};
use ftsh_syntax::Script;
use ftsh_syntax::ast::{CommandKind, Part};
use ftsh_syntax::backoff::{self, Kind};
use ftsh_syntax::nearest::nearest;
use ftsh_syntax::vocabulary::{ALONE, DECLARATIONS, FUNCTIONS, KEYWORDS};

/// The command.
pub const COMMAND: &str = "help";
/// Commands that exist only at the prompt.
pub const OWN: [&str; 2] = [COMMAND, "why"];

/// Each topic begins with `@` and its names; lines indented by two blanks are examples.
const TEXT: &str = include_str!("help.txt");
/// Placeholder of the names of all backoff policies.
const POLICIES: &str = "{policies}";

/// What isn't a keyword, a builtin or a policy.
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

/// Lines get no longer than this, however wide the terminal is.
const WIDEST: usize = 80;

/// The words after `command`, if a script is nothing but that.
pub fn asked(script: &Script, command: &str) -> Option<Vec<String>> {
    let [only] = &script.body.commands[..] else { return None };
    let CommandKind::Pipeline(pipeline) = &only.kind else { return None };
    let [stage] = &pipeline.stages[..] else { return None };
    let simple = stage.simple()?;
    if !simple.assignments.is_empty() || !simple.redirects.is_empty() {
        return None;
    }
    let words = simple.words.iter().map(|word| match &word.parts[..] {
        [Part::Bare(word)] => Some(word.clone()),
        _ => None,
    });
    let words = words.collect::<Option<Vec<String>>>()?;
    let (first, topics) = words.split_first()?;
    (first == command).then(|| topics.to_vec())
}

/// Every topic.
pub fn topics() -> impl Iterator<Item = &'static str> {
    let texts = TEXT.lines().filter_map(|line| line.strip_prefix("@ "));
    let functions = FUNCTIONS.iter().map(|function| function.name);
    let policies = Kind::ALL.map(Kind::name);
    let texts = texts.flat_map(str::split_whitespace);
    texts.chain(builtins::names()).chain(functions).chain(policies)
}

/// What is to be said about topics, for a terminal of so many columns.
pub fn answer(topics: &[String], columns: usize, colours: bool) -> String {
    let columns = columns.clamp(20, WIDEST);
    if topics.is_empty() {
        return overview(columns, colours);
    }
    let about = |topic: &String| match text(topic) {
        Some(text) => {
            let title = if colours { format!("\x1b[1m{topic}\x1b[0m") } else { topic.clone() };
            format!("{title}\n{}", wrapped(&text, columns))
        }
        None => {
            let meant = nearest(topic, self::topics());
            let meant = meant.map(|meant| format!(", did you mean `{meant}`?")).unwrap_or_default();
            format!("There is no help on `{topic}`{meant}\n")
        }
    };
    topics.iter().map(about).collect::<Vec<_>>().join("\n")
}

/// What there is to say about a topic: a paragraph a line, examples indented by two blanks.
pub fn text(topic: &str) -> Option<Cow<'static, str>> {
    if let Some(function) = functions::named(topic) {
        return Some(about_function(function).into());
    }
    if let Some(builtin) = builtins::named(topic) {
        return Some(about_builtin(builtin).into());
    }
    if let Some(policy) = Kind::named(topic) {
        return Some(backoff::help(policy).into());
    }
    if topic == "backoff" {
        let policies = Kind::ALL.map(Kind::name).join(", ");
        return own_text(topic).map(|text| text.replace(POLICIES, &policies).into());
    }
    own_text(topic).map(Cow::from)
}

/// Returns the paragraphs of a topic in `help.txt`.
fn own_text(topic: &str) -> Option<&'static str> {
    let mut texts = TEXT.split("@ ").filter_map(|text| text.split_once('\n'));
    texts.find(|(names, _)| names.split_whitespace().any(|name| name == topic)).map(|it| it.1)
}

fn about_function(function: &Function) -> String {
    let Function { signature, examples, .. } = function;
    let mut text = format!("`{}`: {}.\n", signature.call(), signature.help);
    for (call, words) in *examples {
        let words: Vec<String> = words.iter().map(|word| format!("`{word:?}`")).collect();
        text.push_str(&format!("\n`{call}` is {}.\n", words.join(", ")));
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

fn overview(columns: usize, colours: bool) -> String {
    let mut text = wrapped(
        "Commands run one after the other, and the first that fails ends the line. `try` repeats \
         commands until they succeed, `forall` runs them at once.\n\n\
         `help` and one of these words says more:\n",
        columns,
    );
    let policies = Kind::ALL.map(Kind::name);
    let structures: Vec<&str> = KEYWORDS.into_iter().chain(ALONE).chain(DECLARATIONS).collect();
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
        let name =
            if colours { format!("\n\x1b[1m{name}\x1b[0m\n") } else { format!("\n{name}\n") };
        text.push_str(&name);
        text.push_str(&fill(&words.join(" "), "  ", columns));
    }
    text
}

/// Paragraphs filled to the columns; what is indented stays as it is.
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

/// Words filled to the columns, with an indent for the first row and one for those after it.
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
    use ftsh_machine::FailureKind;
    use ftsh_syntax::vocabulary::OPERATORS;

    #[test]
    fn everything_is_explained() {
        let known: Vec<&str> = topics().collect();
        let policies = Kind::ALL.map(Kind::name);
        let words = KEYWORDS.iter().chain(&ALONE).chain(&DECLARATIONS);
        for topic in words.chain(&policies).chain(&FailureKind::NAMES).chain(&MORE) {
            assert!(known.contains(topic), "{topic}");
            assert!(text(topic).is_some_and(|text| !text.trim().is_empty()), "{topic}");
        }
        let expressions = text("expressions").expect("a topic");
        for operator in OPERATORS {
            assert!(expressions.contains(operator), "{operator}");
        }
        let mut unique = known.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), known.len());
        let kinds = text("kinds").expect("a topic");
        for kind in FailureKind::NAMES {
            assert!(
                text(kind).is_some_and(|text| text.contains("ind of a failure: ")
                    || text.starts_with("A kind of failure: ")),
                "{kind}"
            );
            assert!(kinds.contains(kind), "{kind}");
        }
    }

    #[test]
    fn examples_are_right() {
        for text in TEXT.split("@ ") {
            let (_, text) = text.split_once('\n').unwrap_or_default();
            let example: Vec<&str> =
                text.lines().filter_map(|line| line.strip_prefix("  ")).collect();
            let example = example.join("\n");
            // The table of operators is none.
            if !example.starts_with(".to.") {
                let parsed = ftsh_syntax::parse("help", &example);
                assert!(parsed.is_ok(), "{example}");
            }
        }
    }

    #[test]
    fn it_fits_narrow_terminals() {
        let all: Vec<String> = topics().map(str::to_owned).collect();
        for text in [answer(&[], 40, false), answer(&all, 40, false)] {
            for line in text.lines() {
                assert!(line.width() <= 48, "{line}");
                assert!(line.width() < 40 || line.starts_with("  "), "{line}");
            }
        }
        assert!(answer(&[], 80, false).lines().count() <= 26);
    }

    #[test]
    fn slips_are_forgiven() {
        let topics = vec!["foral".to_owned()];
        assert!(answer(&topics, 80, false).contains("`forall`"));
        assert!(answer(&["timout".to_owned()], 80, false).contains("`timeout`"));
        let asked = |text| asked(&ftsh_syntax::parse("test", text).expect("a script"), COMMAND);
        assert_eq!(asked("help try"), Some(vec!["try".to_owned()]));
        assert_eq!(asked("help"), Some(Vec::new()));
        assert_eq!(asked("help > f"), None);
        assert_eq!(asked("help; help"), None);
    }
}
