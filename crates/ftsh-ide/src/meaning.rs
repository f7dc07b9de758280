//! Meanings of the words of clauses, of operators and of the variables that the shell sets.

use ftsh_syntax::clauses::{ClauseRow, rows};
use ftsh_syntax::engine::EngineId;
use ftsh_syntax::vocabulary::{DECLARATIONS, HEADS, SYMBOLS};

/// Meaning of `in` in the heads of loops, also as a part of `in order`.
const IN: [(&str, &str); 3] = [
    ("for", "`in WORDS`: the words of the loop."),
    (
        "forany",
        "`in WORDS`: the alternatives. With `in order` after them, the loop starts with the first item instead of a random item.",
    ),
    (
        "forall",
        "`in WORDS`: one branch runs for each word. With `output grouped in order`, the outputs appear in the order of the words. `once in FILE` skips the words that the file records.",
    ),
];

const FROM_INPUT: &str = "`from input` in place of a list: one word for each line of standard input. With `by \"\\0\"` after it, words end with NUL bytes.";

const TIMES: &str = "`N times`: the maximum number of attempts.";

const VARIABLES: [(&str, &str); 23] = [
    ("attempt", "the number of the attempt of the innermost `try`, from 1"),
    ("elapsed", "the seconds since the innermost `try` began"),
    ("remaining", "the seconds until the time limit"),
    ("error", "the failure, in a sentence; empty in `finally` after success"),
    ("error_kind", "the kind of the failure: `exit`, `signal`, `timeout`, …"),
    ("error_code", "the status of the command that failed; 128 and the number after a signal"),
    ("error_signal", "the name of the signal that killed the command, such as `KILL`; or empty"),
    ("error_errno", "the name of the reason that the system gave, such as `ENOSPC`; or empty"),
    ("error_command", "the command that failed"),
    ("error_line", "the line of the command that failed"),
    ("error_output", "the end of the failed command's standard error"),
    ("status", "after a command with `accept`, its exit status"),
    ("failed", "the words of the `forall` whose branches failed, as a list"),
    ("failed_errors", "what failed for each word of `$failed`, as a list in the same order"),
    ("succeeded", "the words of the `forall` whose branches succeeded, as a list"),
    (
        "slot",
        "the number of the branch of the `forall`, from 1; no two running branches have the same",
    ),
    ("scratch", "the scratch directory of the attempt, in an atomic `try`"),
    ("0", "the name of the script"),
    ("1", "the first argument of the script or the function; `$2` is the second one"),
    ("#", "the number of arguments"),
    ("*", "all arguments, split at spaces"),
    ("@", "all arguments; in quotes, each argument is a word of its own"),
    ("$", "the process id of the shell"),
];

/// Operators with an example and a meaning.
#[rustfmt::skip]
const OPERATOR_MEANINGS: [(&str, &str, &str); 35] = [
    (".to.", "1 .to. 9", "the whole numbers from 1 to 9, as words"),
    (".step.", "1 .to. 9 .step. 2", "every second number from 1 to 9; a step below zero counts down"),
    (".or.", "$a .or. $b", "`true` if one side is `true`; the right side is evaluated only if the left side is `false`"),
    (".and.", "$a .and. $b", "`true` if both sides are `true`; the right side is evaluated only if the left side is `true`"),
    (".eq.", "$a .eq. $b", "`true` if the texts are equal"),
    (".ne.", "$a .ne. $b", "`true` if the texts differ"),
    (".eql.", "$a .eql. $b", "`true` if the numbers are equal"),
    (".neql.", "$a .neql. $b", "`true` if the numbers differ"),
    (".lt.", "$a .lt. $b", "`true` if the left number is less than the right one"),
    (".le.", "$a .le. $b", "`true` if the left number is at most the right one"),
    (".gt.", "$a .gt. $b", "`true` if the left number is greater than the right one"),
    (".ge.", "$a .ge. $b", "`true` if the left number is at least the right one"),
    (".contains.", "$text .contains. $part", "`true` if the text contains the part"),
    (".matches.", "$text .matches. '^v[0-9]+'", "`true` if the regular expression matches anywhere in the text"),
    (".add.", "$a .add. $b", "the sum of two numbers"),
    (".sub.", "$a .sub. $b", "the difference of two numbers"),
    (".mul.", "$a .mul. $b", "the product of two numbers"),
    (".div.", "$a .div. $b", "the quotient of two numbers; a division by 0 is a failure"),
    (".mod.", "$a .mod. $b", "the remainder of a division"),
    (".pow.", "$a .pow. $b", "the power of two numbers"),
    (".not.", ".not. $a", "`true` if the value is `false`"),
    (".succeeds.", ".succeeds. (grep -q x file)", "`true` if the command exits with 0"),
    (".yes.", ".yes. (grep -q x file)", "`true` if the command exits with 0, `false` if with 1; any other status is a failure"),
    (".output.", ".output. (date +%F)", "the text that the command prints, without the last line end"),
    (".exists.", ".exists. $file", "`true` if a file of any type exists"),
    (".isr.", ".isr. $file", "`true` if the shell may read the file"),
    (".isw.", ".isw. $file", "`true` if the shell may write the file"),
    (".isx.", ".isx. $file", "`true` if the shell may execute the file"),
    (".isfile.", ".isfile. $file", "`true` if the file is a regular file"),
    (".isdir.", ".isdir. $file", "`true` if the file is a directory"),
    (".islink.", ".islink. $file", "`true` if the file is a symbolic link"),
    (".ispipe.", ".ispipe. $file", "`true` if the file is a named pipe"),
    (".issock.", ".issock. $file", "`true` if the file is a socket"),
    (".isblock.", ".isblock. $file", "`true` if the file is a block device"),
    (".ischar.", ".ischar. $file", "`true` if the file is a character device"),
];

/// Returns the meaning of a word in the head of a structure or in a declaration, if the word has the same
/// meaning wherever it stands there. `next` is the word after it.
pub(crate) fn clause(head: &str, word: &str, next: &str) -> Option<String> {
    match (head, word) {
        ("try", "times" | "time") => return Some(TIMES.to_owned()),
        ("list", "in") => return Some("`list NAME in WORDS`: the elements.".to_owned()),
        ("list", "add") => {
            return Some("`list add NAME WORDS`: appends elements to a list.".to_owned());
        }
        ("for" | "forany" | "forall", "in") | ("forany" | "forall", "order") => {
            return IN.iter().find(|(known, _)| *known == head).map(|(_, help)| (*help).to_owned());
        }
        ("for" | "forany" | "forall", "from" | "input") => return Some(FROM_INPUT.to_owned()),
        ("forall", _) => {
            let engine = match word {
                "on" => EngineId::named(next),
                name => EngineId::BUILT_IN.into_iter().find(|engine| engine.name() == name),
            };
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

/// Returns the content of a variable set by the shell.
pub(crate) fn variable(name: &str) -> Option<&'static str> {
    VARIABLES.iter().find(|(known, _)| *known == name).map(|(_, meaning)| *meaning)
}

/// Returns the names of the variables.
pub(crate) fn variables() -> impl Iterator<Item = &'static str> {
    VARIABLES.iter().map(|(name, _)| *name)
}

/// Returns an example of an operator with its meaning.
pub(crate) fn operator(word: &str) -> Option<String> {
    if let Some((symbol, dotted)) = SYMBOLS.iter().find(|(symbol, _)| *symbol == word) {
        return Some(self::symbol(symbol, dotted));
    }
    let (_, example, meaning) = OPERATOR_MEANINGS.iter().find(|(known, ..)| *known == word)?;
    Some(format!("`{example}`: {meaning}."))
}

/// Returns an example of a symbol with its meaning, and the operator of the same meaning.
fn symbol(symbol: &str, dotted: &str) -> String {
    let meaning = match symbol {
        "!" => "`true` if the value, or a whole comparison, is `false`",
        _ => {
            let (_, example, meaning) = OPERATOR_MEANINGS
                .iter()
                .find(|(known, ..)| *known == dotted)
                .expect("every operator has a meaning");
            let example = example.replace(dotted, symbol);
            return format!("`{example}`: {meaning}; the same as `{dotted}`.");
        }
    };
    let example = if symbol == "!" { "! $a".to_owned() } else { format!("$a {symbol} $b") };
    format!("`{example}`: {meaning}.")
}

/// Returns the meanings of a word, or of two words together, in all clauses that they belong to.
pub(crate) fn clauses_with(word: &str) -> Vec<String> {
    let mut found = Vec::new();
    for head in HEADS.into_iter().chain(DECLARATIONS) {
        let has = |row: &&ClauseRow| {
            let both = row.words.join(" ");
            row.words.contains(&word) || row.further.contains(&word) || both == word
        };
        let own = rows(head).filter(has);
        let before = found.len();
        found.extend(own.map(|row| format!("`{head}`, `{}`: {}.", row.usage, row.help)));
        if found.len() == before {
            let (first, second) = word.split_once(' ').unwrap_or((word, ""));
            let engines = EngineId::rows().map(|row| row.name);
            let next = engines.filter(|_| word == "on").map(Some).chain([None]);
            let meanings = next.filter_map(|it| clause(head, first, it.unwrap_or(second)));
            let meanings = meanings.filter(|it| second.is_empty() || it.contains(word));
            let mut meanings: Vec<_> = meanings.map(|it| format!("`{head}`, {it}")).collect();
            meanings.dedup();
            found.extend(meanings);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::complete::SPECIAL;
    use ftsh_syntax::clauses::words;
    use ftsh_syntax::vocabulary::{OPERATORS, TIMES, loop_clauses};

    #[test]
    fn every_word_has_a_meaning() {
        for word in words("try").chain(TIMES) {
            assert!(clause("try", word, "").is_some(), "{word}");
        }
        for (head, [first, second]) in loop_clauses() {
            let meaning = clause(head, first, second);
            if second != "in" {
                assert_eq!(clause(head, second, ""), meaning, "{head} {first} {second}");
            }
            assert!(
                meaning.as_deref().is_some_and(|it| it.contains(first)),
                "{head} {first} {second}"
            );
            assert!(clause(head, "in", "").is_some());
        }
        for word in ["in", "add"] {
            assert!(clause("list", word, "").is_some_and(|it| it.contains(word)), "{word}");
        }
        for word in words("channel") {
            assert!(clause("channel", word, "").is_some_and(|it| it.contains(word)), "{word}");
        }
        for word in OPERATORS.into_iter().chain(SYMBOLS.map(|(symbol, _)| symbol)) {
            assert!(operator(word).is_some_and(|it| it.contains(word)), "{word}");
        }
        for name in SPECIAL {
            assert!(variable(name).is_some(), "{name}");
        }
        assert!(clause("try", "in", "").is_some_and(|it| it.contains("atomic in")));
        assert_eq!(clause("for", "at", "most"), None);
    }
}
