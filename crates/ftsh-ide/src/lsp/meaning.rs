//! What the words of clauses, and the variables that the shell sets, mean: a sentence for each.

use ftsh_syntax::engine::EngineId;

/// A row: a head, the first word of one of its clauses, and what that says.
type Row = (&'static str, &'static str, &'static str);

const TRY: [Row; 13] = [
    (
        "try",
        "for",
        "`for D`: new attempts are made as long as this time; when it is over, whatever runs is ended.",
    ),
    (
        "try",
        "or",
        "`or N times`, `or D`: the second limit; whichever is reached first ends the `try`.",
    ),
    ("try", "times", "`N times`: how many attempts are made at most."),
    (
        "try",
        "every",
        "`every D`: attempts start at least that far apart, with no other delay between them.",
    ),
    (
        "try",
        "each",
        "`each D`: the limit of every single attempt; one that takes longer is ended and has failed.",
    ),
    (
        "try",
        "while",
        "`while EXPR`: another attempt is made only while this is `true`; it may ask `$error_code` and its kin.",
    ),
    (
        "try",
        "atomic",
        "`atomic`: an attempt is all or nothing. What it prints and writes takes place when it has succeeded.",
    ),
    ("try", "backoff", "`backoff POLICY`: the delays between attempts."),
    (
        "try",
        "through",
        "`through CHANNEL`: attempts obey what the channel says, together with those of all your other shells.",
    ),
    ("try", "from", "`from D`: the first delay, or what it is made of."),
    ("try", "to", "`to D`: the longest delay."),
    ("try", "by", "`by F`: what delays are multiplied by after each failure."),
    ("try", "jitter", "`jitter P%`: how much of a delay is random."),
];

const LOOPS: [Row; 11] = [
    ("for", "in", "`in WORDS`: what the loop goes through."),
    (
        "forany",
        "in",
        "`in WORDS`: the alternatives. Behind them `in order` begins with the first, not with a random one.",
    ),
    (
        "forall",
        "in",
        "`in WORDS`: there is a branch for each of them. In `output grouped in order` the groups are printed in the order of the words.",
    ),
    (
        "forany",
        "hedge",
        "`hedge after D`: the next word begins beside one that takes longer; the first to succeed wins.",
    ),
    ("forany", "at", "`at most N`: so many are tried at once; with `hedge after`."),
    ("forall", "most", "`at most N`: so many branches run at once."),
    ("forall", "least", "`at least N`: so many have to succeed; then the others are ended."),
    (
        "forall",
        "keep",
        "`keep going`: one that fails doesn't end the others; `$failed` and `$succeeded` say which.",
    ),
    (
        "forall",
        "grouped",
        "`output grouped`: what a branch prints comes out in one piece, when it has ended.",
    ),
    (
        "forall",
        "tagged",
        "`output tagged`: what branches print comes out line by line, each behind its word and a tab.",
    ),
    (
        "forall",
        "retry",
        "`retry lost N times`: a branch whose machine is lost runs again elsewhere, so often.",
    ),
];

const RULES: [Row; 4] = [
    (
        "channel",
        "at",
        "`at most N`: so many attempts are inside at once; the others wait in the order of their coming.",
    ),
    ("channel", "rate", "`rate N per D`: so many attempts may begin in that time."),
    (
        "channel",
        "budget",
        "`budget P%`: a second or later attempt needs what first attempts have earned.",
    ),
    (
        "channel",
        "breaker",
        "`breaker N failures D`: after so many failures in a row attempts fail for so long without being made.",
    ),
];

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

/// What a word says in the head of a structure or in a declaration, if it says the same wherever it stands
/// there. `next` is the word after it.
pub fn clause(head: &str, word: &str, next: &str) -> Option<&'static str> {
    let word = match (head, word) {
        ("try", "time") => "times",
        // The first or the second word of two, by the one that tells it from others.
        ("forall", "at" | "output" | "on") => next,
        ("forall", "going") => "keep",
        ("forall", "lost") => "retry",
        ("forall" | "forany", "order") => "in",
        ("forany", "after") => "hedge",
        ("forany" | "channel", "most") => "at",
        ("channel", "per") => "rate",
        ("channel", "failures" | "failure") => "breaker",
        (_, word) => word,
    };
    if head == "forall"
        && let Some(engine) = EngineId::named(word)
    {
        return Some(engine.row().help);
    }
    let rows = TRY.iter().chain(&LOOPS).chain(&RULES);
    rows.filter(|row| row.0 == head && row.1 == word).map(|row| row.2).next()
}

/// What a variable holds that the shell sets.
pub fn variable(name: &str) -> Option<&'static str> {
    VARIABLES.iter().find(|(known, _)| *known == name).map(|(_, meaning)| *meaning)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::complete::SPECIAL;
    use ftsh_syntax::vocabulary::{CLAUSES, RULES, TIMES, loop_clauses};

    #[test]
    fn everything_means_something() {
        for word in CLAUSES.into_iter().chain(TIMES) {
            assert!(clause("try", word, "").is_some(), "{word}");
        }
        for (head, [first, second]) in loop_clauses() {
            let meaning = clause(head, first, second);
            assert_eq!(clause(head, second, ""), meaning, "{head} {first} {second}");
            assert!(meaning.is_some_and(|it| it.contains(first)), "{head} {first} {second}");
            assert!(clause(head, "in", "").is_some());
        }
        for word in RULES {
            assert!(clause("channel", word, "").is_some_and(|it| it.contains(word)), "{word}");
        }
        for name in SPECIAL {
            assert!(variable(name).is_some(), "{name}");
        }
        assert_eq!(clause("try", "in", ""), None);
        assert_eq!(clause("for", "at", "most"), None);
    }
}
