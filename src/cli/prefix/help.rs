//! `ftsh try --help`: the forms and the clauses of a head.

use std::fmt::Write as _;

use ftsh_syntax::clauses;
use ftsh_syntax::engine::EngineId;

/// Words that ask for help after a head.
pub(super) const WORDS: [&str; 2] = ["--help", "-h"];

/// Text about a head.
struct Topic {
    head: &'static str,
    /// Forms of the command line after `ftsh`, the usual one first.
    forms: &'static [&'static str],
    about: &'static str,
    examples: &'static [&'static str],
}

const TOPICS: [Topic; 5] = [
    Topic {
        head: "try",
        forms: &["try [for] LIMIT [or LIMIT] [CLAUSE ...] -- COMMAND [ARGUMENT ...]"],
        about: "Runs a command until it succeeds. A LIMIT is a number of attempts (5 times) or a time \
                (10 min). Between attempts there is a growing, random delay. Each attempt reads the \
                same standard input, and no process of a failed attempt is left.",
        examples: &[
            "try 5 times -- curl -fsSO https://example.org/file",
            "try for 10 min or 5 times each 1 min backoff full -- rsync -a src backup:",
            "try for 1 hour while '$error_code == 75' -- sendmail -q",
        ],
    },
    Topic {
        head: "limit",
        forms: &["limit TIME [signal NAME] -- COMMAND [ARGUMENT ...]"],
        about: "Runs a command once, and kills it with all its processes when the time is over. The \
                status is then 124.",
        examples: &["limit 5 min -- make check"],
    },
    Topic {
        head: "forany",
        forms: &[
            "forany [NAME] in WORD ... [CLAUSE ...] -- COMMAND [ARGUMENT ...]",
            "forany [NAME] from input [by SEPARATOR] [CLAUSE ...] -- COMMAND [ARGUMENT ...]",
        ],
        about: "Runs a command with one item after the other until one succeeds. The first item is \
                random. {} in an argument is the item.",
        examples: &["forany in mirror1 mirror2 hedge after 2 s -- curl -fsSO https://{}/file"],
    },
    Topic {
        head: "forall",
        forms: &[
            "forall [NAME] in WORD ... [CLAUSE ...] -- COMMAND [ARGUMENT ...]",
            "forall [NAME] from input [by SEPARATOR] [CLAUSE ...] -- COMMAND [ARGUMENT ...]",
        ],
        about: "Runs a command with all items at the same time. {} in an argument is the item, and \
                {NAME} that of the loop with this variable, which the command finds in its environment. \
                Otherwise the item is the last argument. {{}} is a literal {}. {slot} is the number of \
                the branch, from 1. A list ends at the first clause or head.",
        examples: &[
            "forall in host1 host2 host3 keep going -- ssh {} uptime",
            "forall from input once in done.txt at most 4 -- ./train.sh {} {slot}",
            "forall from input by '\\0' at most 8 output tagged try 3 times -- flac {}",
        ],
    },
    Topic {
        head: "on",
        forms: &["on ENGINE [OPTION ...] [CLAUSE ...] -- COMMAND [ARGUMENT ...]"],
        about: "Runs a command on another machine. As a clause of `forall`, `on` runs each branch on \
                another machine.",
        examples: &[
            "on slurm --mem=4G retry lost 3 times -- ./simulate 17",
            "on ssh host1 'host2*4' -- make test",
            "on kubectl pod/worker-3 -- ./migrate",
        ],
    },
];

/// Returns the usual form of a head.
pub(super) fn form(head: &str) -> &'static str {
    TOPICS.iter().find(|topic| topic.head == head).map_or("", |topic| topic.forms[0])
}

/// Returns the text about a head.
pub(super) fn text(head: &str) -> Option<String> {
    let topic = TOPICS.iter().find(|topic| topic.head == head)?;
    let mut text = String::new();
    for (at, form) in topic.forms.iter().enumerate() {
        let title = if at == 0 { "Usage:" } else { "      " };
        // Writing to a string can't fail.
        let _ = writeln!(text, "{title} ftsh [OPTION ...] {form}");
    }
    let _ = writeln!(text, "\n{}", wrapped(topic.about, ""));
    let owner = if topic.head == "on" { "forall" } else { topic.head };
    let clauses = clauses::rows(owner).map(|row| (row.usage.to_owned(), row.help.to_owned()));
    let engines = EngineId::rows().filter(|_| owner == "forall").map(|row| {
        let help = row.help.trim_end_matches('.');
        let (usage, help) = help.split_once(": ").unwrap_or((help, ""));
        (usage.trim_matches('`').to_owned(), help.to_owned())
    });
    let clauses: Vec<_> = clauses.chain(engines).collect();
    if !clauses.is_empty() {
        text += "\nClauses, in any order:\n";
    }
    for (usage, help) in clauses {
        let _ = writeln!(text, "  {usage}\n{}", wrapped(&help, "          "));
    }
    text += "\nExamples:\n";
    for example in topic.examples {
        let _ = writeln!(text, "  ftsh {example}");
    }
    Some(
        text + "\nWrite options of ftsh before the first head. Several heads nest from left to right.\n\
            `ftsh -p` before the line prints the line as a part of a script.\n",
    )
}

/// Wraps a paragraph at 78 columns, with a margin.
fn wrapped(text: &str, margin: &str) -> String {
    let mut lines = vec![margin.to_owned()];
    for word in text.split_whitespace() {
        let last = lines.last_mut().expect("a line");
        if last.len() > margin.len() && last.chars().count() + 1 + word.chars().count() > 78 {
            lines.push(format!("{margin}{word}"));
        } else {
            if last.len() > margin.len() {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    lines.join("\n")
}
