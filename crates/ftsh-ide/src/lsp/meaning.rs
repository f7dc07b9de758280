//! What the words of clauses, and the variables that the shell sets, mean: a sentence for each.

use ftsh_syntax::clauses::{ClauseRow, rows};
use ftsh_syntax::engine::EngineId;

/// Meaning of `in` in the heads of loops, also as a part of `in order`.
const IN: [(&str, &str); 3] = [
    ("for", "`in WORDS`: what the loop goes through."),
    (
        "forany",
        "`in WORDS`: the alternatives. Behind them `in order` begins with the first, not with a random one.",
    ),
    (
        "forall",
        "`in WORDS`: there is a branch for each of them. In `output grouped in order` the groups are printed in the order of the words.",
    ),
];

const TIMES: &str = "`N times`: how many attempts are made at most.";

const VARIABLES: [(&str, &str); 12] = [
    ("attempt", "which attempt of the innermost `try` this is, from 1"),
    ("elapsed", "the seconds since the innermost `try` began"),
    ("remaining", "the seconds that are left of the time"),
    ("error", "what happened, in a sentence; empty in the `finally` of what succeeded"),
    ("error_kind", "what kind of failure it was: `exit`, `signal`, `timeout`, …"),
    ("error_code", "the status of the command that failed"),
    ("error_command", "the command that failed"),
    ("error_line", "the line of the command that failed"),
    ("error_output", "what the failed attempt had printed last to standard error"),
    ("failed", "the words of the `forall` whose branches failed, a line each"),
    ("succeeded", "the words of the `forall` whose branches succeeded, a line each"),
    ("scratch", "a directory of this attempt's own, in an atomic `try`"),
];

/// Returns the meaning of a word in the head of a structure or in a declaration, if the word has the same
/// meaning wherever it stands there. `next` is the word after it.
pub fn clause(head: &str, word: &str, next: &str) -> Option<String> {
    match (head, word) {
        ("try", "times" | "time") => return Some(TIMES.to_owned()),
        ("for" | "forany" | "forall", "in") | ("forany" | "forall", "order") => {
            return IN.iter().find(|(known, _)| *known == head).map(|(_, help)| (*help).to_owned());
        }
        ("forall", _) => {
            let engine = EngineId::named(if word == "on" { next } else { word });
            if let Some(engine) = engine {
                return Some(engine.row().help.to_owned());
            }
        }
        _ => {}
    }
    let is_it = |row: &&ClauseRow| match row.words {
        [first, second] if *first == word => {
            *second == next || rows(head).filter(|row| row.words[0] == word).count() == 1
        }
        words => words.contains(&word) || row.further.contains(&word),
    };
    rows(head).find(is_it).map(|row| format!("`{}`: {}.", row.usage, row.help))
}

/// What a variable holds that the shell sets.
pub fn variable(name: &str) -> Option<&'static str> {
    VARIABLES.iter().find(|(known, _)| *known == name).map(|(_, meaning)| *meaning)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::complete::SPECIAL;
    use ftsh_syntax::clauses::words;
    use ftsh_syntax::vocabulary::{TIMES, loop_clauses};

    #[test]
    fn everything_means_something() {
        for word in words("try").chain(TIMES) {
            assert!(clause("try", word, "").is_some(), "{word}");
        }
        for (head, [first, second]) in loop_clauses() {
            let meaning = clause(head, first, second);
            assert_eq!(clause(head, second, ""), meaning, "{head} {first} {second}");
            assert!(
                meaning.as_deref().is_some_and(|it| it.contains(first)),
                "{head} {first} {second}"
            );
            assert!(clause(head, "in", "").is_some());
        }
        for word in words("channel") {
            assert!(clause("channel", word, "").is_some_and(|it| it.contains(word)), "{word}");
        }
        for name in SPECIAL {
            assert!(variable(name).is_some(), "{name}");
        }
        assert_eq!(clause("try", "in", ""), None);
        assert_eq!(clause("for", "at", "most"), None);
    }
}
