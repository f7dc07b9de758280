//! Completion for the Tab key.

use std::collections::BTreeSet;

use super::candidate::CompletionCandidate;
use super::files::{self, Wanted};
use super::help;
use super::known::SessionSnapshot;
use super::lexemes::{TokenPart, assigned};
use super::tokens::{ARGS, DASHES, Role, ScriptToken, Tokens, USE, is_head, scan};
use ftsh_machine::builtins;
use ftsh_syntax::Script;
use ftsh_syntax::ast::ArgumentKind;
use ftsh_syntax::backoff::PolicyKind;
use ftsh_syntax::clauses::{self, ClauseRow};
use ftsh_syntax::duration::Unit;
use ftsh_syntax::signal::Signal;
use ftsh_syntax::size::ByteUnit;
use ftsh_syntax::vocabulary::{
    ALONE, DECLARATIONS, FILE_CLAUSES, FORMS, FUNCTIONS, HEADS, KEYWORDS, MODIFIERS, OPERATORS,
    QUESTIONS, TIMES, is_loop, is_name, loop_clauses,
};

/// Variables set by an attempt, in a branch or after a failure.
pub const SPECIAL: [&str; 14] = [
    "attempt",
    "elapsed",
    "remaining",
    "error",
    "error_kind",
    "error_code",
    "error_signal",
    "error_errno",
    "error_command",
    "error_line",
    "failed",
    "failed_errors",
    "succeeded",
    "slot",
];
/// Command that runs a script.
const FTSH: &str = "ftsh";
/// Commands whose arguments begin with a command.
const PREFIXES: [&str; 9] =
    ["exec", "sudo", "nohup", "nice", "env", "time", "setsid", "xargs", "command"];

/// Returns the position in `text` at which the candidates begin, and the sorted candidates.
///
/// The cursor is at the end of `text`.
pub fn complete(text: &str, known: &SessionSnapshot) -> (usize, Vec<CompletionCandidate>) {
    let scanned = scan(text);
    let last = scanned.all.last().filter(|token| token.range.end == text.len());
    let word = last.filter(|token| is_word(token.role));
    let start = word.map_or(text.len(), |token| token.range.start);
    if last.is_some_and(|it| matches!(it.role, Role::Comment | Role::Document)) {
        return (start, Vec::new());
    }
    if let Some(found) = word.and_then(|token| variable(text, token, known)) {
        return finish(found.0, found.1);
    }
    let before = scanned.all.len() - usize::from(word.is_some());
    let context =
        CompletionContext { text, scanned: &scanned, before, word: &text[start..], known };
    let (offset, found) = context.complete();
    finish(start + offset, found)
}

fn is_word(role: Role) -> bool {
    !matches!(role, Role::Separator | Role::Symbol | Role::Comment | Role::Document)
}

fn finish(start: usize, mut found: Vec<CompletionCandidate>) -> (usize, Vec<CompletionCandidate>) {
    found.sort_by(|a, b| a.display.cmp(&b.display));
    found.dedup_by(|a, b| a.display == b.display);
    if let [only] = &mut found[..] {
        only.replacement.push_str(only.ending);
    }
    (start, found)
}

/// Completes the name of a variable.
fn variable(
    text: &str,
    token: &ScriptToken,
    known: &SessionSnapshot,
) -> Option<(usize, Vec<CompletionCandidate>)> {
    let variables = token.parts.iter().rev().find(|(_, part)| *part == TokenPart::Variable);
    let typed = match variables.filter(|(range, _)| range.end == text.len()) {
        Some((range, _)) => &text[range.start..],
        // A lone `$` is no variable token yet.
        None if text.ends_with('$') && !text.ends_with("\\$") => "$",
        None => return None,
    };
    let in_single = token.parts.iter().any(|(range, part)| {
        matches!(part, TokenPart::Quoted(false)) && text[range.start..].starts_with('\'')
    });
    if in_single {
        return None;
    }
    let name = typed.trim_start_matches(['$', '{', '(']);
    if typed.len() - name.len() > 2 || !name.chars().all(|c| c.is_alphanumeric() || c == '_') {
        return None;
    }
    let closing = match typed.as_bytes().get(1) {
        Some(b'{') => "}",
        Some(b'(') => ")",
        _ => "",
    };
    let names = variable_names(known).filter(|it| it.starts_with(name));
    let candidates =
        names.map(|it| CompletionCandidate { ending: closing, ..CompletionCandidate::word(it) });
    let calls = calls(name, known).filter(|_| closing == "}" && !name.is_empty());
    Some((text.len() - name.len(), candidates.chain(calls).collect()))
}

/// Returns the functions whose names begin with a text.
fn calls<'a>(
    begin: &'a str,
    known: &'a SessionSnapshot,
) -> impl Iterator<Item = CompletionCandidate> + 'a {
    let own = known.functions.iter().map(String::as_str);
    let names = FUNCTIONS.iter().map(|function| function.name).chain(own);
    names
        .filter(move |name| name.starts_with(begin))
        .map(|name| CompletionCandidate { ending: "(", ..CompletionCandidate::word(name) })
}

fn variable_names(known: &SessionSnapshot) -> impl Iterator<Item = &str> {
    let is_name = |name: &&str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    known.variables.keys().map(String::as_str).filter(is_name).chain(SPECIAL)
}

/// Word to complete, with its context.
struct CompletionContext<'a> {
    text: &'a str,
    scanned: &'a Tokens,
    /// Number of tokens before the word.
    before: usize,
    word: &'a str,
    known: &'a SessionSnapshot,
}

impl<'a> CompletionContext<'a> {
    /// Returns the words of this command before the word, redirections included.
    fn words(&self) -> Vec<(&'a str, Role)> {
        let tokens = &self.scanned.all[..self.before];
        let ends = |token: &ScriptToken| {
            let is_pipe =
                token.role == Role::Symbol && self.text[token.range.clone()].starts_with('|');
            let is_dashes = token.role == Role::Clause && &self.text[token.range.clone()] == DASHES;
            token.role == Role::Separator || is_pipe || is_dashes
        };
        let start = tokens.iter().rposition(ends).map_or(0, |at| at + 1);
        tokens[start..].iter().map(|it| (&self.text[it.range.clone()], it.role)).collect()
    }

    fn fitting<'w>(&self, words: impl IntoIterator<Item = &'w str>) -> Vec<CompletionCandidate> {
        let fitting = words.into_iter().filter(|word| word.starts_with(self.word));
        fitting.map(CompletionCandidate::word).collect()
    }

    fn files(&self, wanted: Wanted) -> (usize, Vec<CompletionCandidate>) {
        files::complete(self.word, wanted, self.known)
    }

    fn complete(&self) -> (usize, Vec<CompletionCandidate>) {
        let words = self.words();
        let last = words.last().copied();
        if let Some((operator, Role::Symbol)) = last {
            if operator.contains(['<', '>']) {
                if operator.contains('-') && !operator.ends_with("<<-") {
                    return (0, self.fitting(variable_names(self.known)));
                }
                return if operator.ends_with("<<") {
                    (0, Vec::new())
                } else {
                    self.files(Wanted::Files)
                };
            }
            if operator == "("
                && words.iter().rev().nth(1).is_some_and(|it| QUESTIONS.contains(&it.0))
            {
                return self.command(false);
            }
        }
        let mut plain =
            words.iter().filter(|(_, role)| !matches!(role, Role::Assignment(_) | Role::Symbol));
        let mut plain = plain.by_ref().skip_while(|(word, role)| {
            *role == Role::Keyword && (MODIFIERS.contains(word) || *word == "with")
                || *role == Role::Clause
        });
        let Some(&(head, role)) = plain.next() else {
            // `name=./fi`
            if let Some(length) = assigned(self.word) {
                let value = CompletionContext { word: &self.word[length + 1..], ..*self };
                let (offset, found) = value.value(Wanted::Values);
                return (length + 1 + offset, found);
            }
            // `name=f(`
            if matches!(last, Some((_, Role::Symbol))) {
                return self.value(Wanted::Values);
            }
            // Statuses follow `accept`.
            if last == Some(("accept", Role::Keyword)) {
                return (0, Vec::new());
            }
            return self.command(words.is_empty());
        };
        match (role, head) {
            (Role::Keyword, "try") if follows_directories(&words) => {
                let clauses = if self.word.is_empty() { Vec::new() } else { self.clause(&words) };
                if clauses.is_empty() { self.files(Wanted::Directories) } else { (0, clauses) }
            }
            (Role::Keyword, "try") => (0, self.clause(&words)),
            (Role::Keyword, "channel") => (0, self.rule(&words)),
            (Role::Keyword, "list") if words.len() == 1 => (0, self.fitting(["add"])),
            (Role::Keyword, "list") if words.len() == 2 && words[1].0 == "add" => {
                let names =
                    self.known.variables.keys().map(String::as_str).filter(|it| is_name(it));
                (0, self.fitting(names))
            }
            (Role::Keyword, "list") if words.len() == 2 => (0, self.fitting(["in"])),
            (Role::Keyword, "else") if words.len() == 1 => (0, self.fitting(["if"])),
            (Role::Keyword, head) if is_loop(head) && words.len() == 1 => (0, Vec::new()),
            (Role::Keyword, head) if is_loop(head) && words.len() == 2 => {
                (0, self.fitting(["in", "from"]))
            }
            (Role::Keyword, head) if is_loop(head) && words.len() == 3 && words[2].0 == "from" => {
                (0, self.fitting(["input"]))
            }
            (Role::Keyword, head) if is_loop(head) => self.in_loop(head, &words),
            (Role::Keyword, "function" | "end" | "catch" | "when" | ARGS)
            | (Role::Command, "umask") => (0, Vec::new()),
            (Role::Keyword, _) if self.word.starts_with('.') && !self.word.contains('/') => {
                let found = self.fitting(OPERATORS);
                if found.is_empty() { self.files(Wanted::Files) } else { (0, found) }
            }
            (Role::Keyword, "if" | "case" | "while" | "return" | "shift" | "else") => {
                self.value(Wanted::Files)
            }
            (Role::Command, _) if self.word.starts_with('-') => match self.options(&words) {
                found if found.is_empty() => self.files(Wanted::Files),
                found => (0, found),
            },
            (Role::Command, "cd") | (Role::Keyword, "in") => self.files(Wanted::Directories),
            (Role::Command, "unset" | "export" | "read") => {
                (0, self.fitting(variable_names(self.known)))
            }
            (Role::Keyword, "limit") | (Role::Command, "sleep") if words.len() == 2 => {
                (0, self.fitting(Unit::names()))
            }
            (Role::Keyword, "limit") => (0, self.after_limit(words.last().map(|(word, _)| *word))),
            (Role::Command, help::COMMAND) => {
                let more = self.known.topics.iter().map(|topic| topic.name.as_str());
                let mut found = self.fitting(help::topics());
                found.extend(self.fitting(more));
                (0, found)
            }
            (Role::Command, prefix) if PREFIXES.contains(&prefix) && words.len() == 1 => {
                self.command(false)
            }
            _ => self.files(Wanted::Files),
        }
    }

    /// Completes a value of an expression: a call, or a file.
    fn value(&self, wanted: Wanted) -> (usize, Vec<CompletionCandidate>) {
        if self.word.is_empty() {
            return self.files(wanted);
        }
        let calls: Vec<CompletionCandidate> = calls(self.word, self.known).collect();
        let (offset, files) = self.files(wanted);
        if calls.is_empty() {
            return (offset, files);
        }
        // A name without a slash begins at the start of the word.
        (0, calls.into_iter().chain(files.into_iter().filter(|_| offset == 0)).collect())
    }

    /// Returns true inside of a `case`.
    fn is_in_case(&self) -> bool {
        let heads = self.scanned.open.iter().map(|head| &self.scanned.all[*head].range);
        heads.into_iter().any(|range| &self.text[range.clone()] == "case")
    }

    /// Returns true at the start of a later stage of a pipeline.
    fn is_piped(&self) -> bool {
        let before = self.scanned.all[..self.before].iter().rev();
        let mut before = before.map(|it| &self.text[it.range.clone()]).skip_while(|it| *it == "\n");
        before.next().is_some_and(|it| it.starts_with('|'))
    }

    /// Completes a command. The `first` word of a line or stage may also be a keyword.
    fn command(&self, first: bool) -> (usize, Vec<CompletionCandidate>) {
        if self.word.contains(['/', '~', '"', '\'', '\\']) || self.word == "." {
            return self.files(Wanted::Programs);
        }
        let mut found = self.fitting(builtins::names());
        found.extend(self.fitting(super::help::OWN));
        found.extend(self.fitting(self.known.functions.iter().map(String::as_str)));
        found.extend(self.fitting(MODIFIERS));
        if first {
            let inside = !self.scanned.open.is_empty();
            let piped = self.is_piped();
            let fits = |word: &&str| match *word {
                ARGS => self.is_first(),
                USE => self.is_in_head(),
                "function" | "return" | "shift" | "channel" | "list" => !piped,
                "when" => self.is_in_case() && !piped,
                word => inside && !piped || HEADS.contains(&word),
            };
            let words = KEYWORDS.into_iter().chain(FORMS).chain(ALONE).chain(DECLARATIONS);
            found.extend(self.fitting(words.filter(fits)));
        }
        if !self.word.is_empty() {
            found.extend(self.known.programs(self.word).into_iter().filter_map(files::program));
        }
        (0, found)
    }

    /// Returns true if only `args` and `use` precede the word.
    fn is_in_head(&self) -> bool {
        is_head(&self.scanned.all[..self.before], self.text)
    }

    /// Returns true if no command precedes the word.
    fn is_first(&self) -> bool {
        let mut before = self.scanned.all[..self.before].iter();
        before.all(|token| matches!(token.role, Role::Comment | Role::Separator))
    }

    /// Completes an option of the script that a command runs, as its `args` declares it.
    fn options(&self, words: &[(&str, Role)]) -> Vec<CompletionCandidate> {
        let is_script = |word: &&str| !word.starts_with('-');
        let mut plain = words.iter().map(|(word, _)| *word).skip_while(|word| *word != FTSH);
        let script = match plain.next() {
            Some(_) => plain.find(is_script),
            None => words.first().map(|(word, _)| *word).filter(|word| word.contains('/')),
        };
        let script = script.and_then(|word| files::script(word, self.known));
        let Some(declaration) = script.as_ref().and_then(Script::arguments) else {
            return Vec::new();
        };
        let takes_value = |spelling: &str| {
            let option = declaration.option(spelling);
            option.is_some_and(|(_, it)| it.kind != ArgumentKind::Flag)
        };
        let fitting = declaration.spellings().filter(|it| it.starts_with(self.word));
        let candidate = |it: &str| {
            let ending = if it.starts_with("--") && takes_value(it) { "=" } else { " " };
            CompletionCandidate { ending, ..CompletionCandidate::word(it) }
        };
        fitting.map(candidate).collect()
    }

    /// Completes a word of a loop's list, or of a clause after the list.
    fn in_loop(&self, head: &str, words: &[(&str, Role)]) -> (usize, Vec<CompletionCandidate>) {
        let last = words.last().map_or("", |(word, _)| word);
        let is_hedged = words.iter().any(|(word, _)| *word == "hedge");
        let clauses = loop_clauses().filter(|(owner, words)| {
            *owner == head && (head != "forany" || is_hedged || *words != ["at", "most"])
        });
        let seconds = clauses.clone().filter(|(_, [first, _])| *first == last);
        let mut found = self.fitting(seconds.map(|(_, [_, second])| second));
        let is_number = last.starts_with(|c: char| c.is_ascii_digit() || c == '$');
        match last {
            "after" => found.extend(self.fitting(["usual"])),
            "usual" => found.extend(self.fitting(["or"])),
            _ => {}
        }
        if is_number && words.iter().rev().nth(1).is_some_and(|(word, _)| *word == "after") {
            found.extend(self.fitting(Unit::names()));
        }
        if is_number && words.iter().rev().nth(1).is_some_and(|(word, _)| *word == "free") {
            found.extend(self.fitting(ByteUnit::names()));
        }
        if !self.word.is_empty() {
            let files = FILE_CLAUSES.into_iter().filter(|_| head == "forall");
            let firsts: BTreeSet<&str> =
                clauses.map(|(_, [first, _])| first).chain(files).collect();
            found.extend(self.fitting(firsts));
            if self.word.starts_with('.') && !self.word.contains('/') {
                found.extend(self.fitting(OPERATORS));
            }
        }
        if found.is_empty() { self.value(Wanted::Files) } else { (0, found) }
    }

    /// Completes a word after the time of a `limit`.
    fn after_limit(&self, last: Option<&str>) -> Vec<CompletionCandidate> {
        let last = last.unwrap_or_default();
        match last {
            "stalled" | "memory" => Vec::new(),
            "signal" => self.fitting(Signal::ALL.map(Signal::name)),
            _ if last.starts_with(|c: char| c.is_ascii_digit() || c == '$') => {
                self.fitting(Unit::names().chain(ByteUnit::names()))
            }
            _ => self.fitting(clauses::words("limit")),
        }
    }

    /// Returns the channels of the session and of the text before the word.
    fn channels(&self) -> Vec<CompletionCandidate> {
        let all = &self.scanned.all[..self.before];
        let text = |token: &ScriptToken| &self.text[token.range.clone()];
        let declared = all
            .windows(2)
            .filter(|pair| pair[0].role == Role::Keyword && text(&pair[0]) == "channel");
        let known = self.known.channels.iter().map(String::as_str);
        self.fitting(declared.map(|pair| text(&pair[1])).chain(known))
    }

    /// Completes a word among the rules of a channel.
    fn rule(&self, words: &[(&str, Role)]) -> Vec<CompletionCandidate> {
        let last = words.last().map_or("", |(word, _)| word);
        let before = words.iter().rev().nth(1).map_or("", |(word, _)| word);
        let has = |word: &str| words.contains(&(word, Role::Clause));
        match (before, last) {
            (_, "channel") if words.len() == 1 => {
                self.fitting(self.known.channels.iter().map(String::as_str))
            }
            (_, "at") => self.fitting(["most"]),
            (_, "per") | ("per" | "failures", _) => self.fitting(Unit::names()),
            (_, "most" | "rate" | "budget" | "breaker" | "failures") => Vec::new(),
            ("rate", _) => self.fitting(["per"]),
            ("breaker", _) => self.fitting(["failures"]),
            _ => {
                let rules = clauses::rows("channel").map(|row| row.words[0]);
                self.fitting(rules.filter(|rule| !has(rule)))
            }
        }
    }

    /// Completes a word in the head of a `try`.
    fn clause(&self, words: &[(&str, Role)]) -> Vec<CompletionCandidate> {
        let last = words.last().map_or("", |(word, _)| word);
        let is_number = last.starts_with(|c: char| c.is_ascii_digit() || c == '$');
        let before = words.iter().rev().nth(1).map_or("", |(word, _)| word);
        let has = |word: &str| words.contains(&(word, Role::Clause));
        let clauses = || {
            let of_policies = ["from", "to", "by", "jitter"];
            let first = |row: &'static ClauseRow| row.words[0];
            let clauses = clauses::rows("try").map(first).filter(|clause| match *clause {
                clause if of_policies.contains(&clause) => has("backoff") && !has(clause),
                "for" => words.len() == 1,
                "or" => words.len() > 1,
                clause => !has(clause),
            });
            self.fitting(clauses)
        };
        if last == "atomic" {
            let mut found = self.fitting(["in"]);
            found.extend(clauses());
            return found;
        }
        let second_word = clauses::rows("try").find_map(|row| match row.words {
            [first, second] if *first == last => Some(*second),
            _ => None,
        });
        if let Some(second) = second_word {
            return self.fitting([second]);
        }
        match last {
            "backoff" => self.fitting(PolicyKind::ALL.map(PolicyKind::name)),
            "through" => self.channels(),
            "signal" => self.fitting(Signal::ALL.map(Signal::name)),
            "each" => self.fitting(["usual"]),
            "usual" => self.fitting(["or"]),
            "every" | "stalled" | "memory" | "from" | "to" | "for" | "or" | "by" | "jitter" => {
                Vec::new()
            }
            _ if is_number && before == "memory" => self.fitting(ByteUnit::names()),
            _ if is_number && !matches!(before, "by" | "jitter") => {
                let limit = !matches!(before, "every" | "each" | "stalled" | "from" | "to");
                let mut found = self.fitting(Unit::names());
                if limit {
                    found.extend(self.fitting(TIMES));
                }
                // The value may include a unit.
                if last.starts_with('$') {
                    found.extend(clauses());
                }
                found
            }
            _ => clauses(),
        }
    }
}

/// True if the words of a `try` end with directories of `atomic in`.
fn follows_directories(words: &[(&str, Role)]) -> bool {
    let clause = words.iter().rposition(|(_, role)| *role == Role::Clause);
    clause.is_some_and(|at| at > 0 && words[at].0 == "in" && words[at - 1].0 == "atomic")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the line after Tab, or the list of several candidates.
    fn tab(text: &str) -> String {
        let known = SessionSnapshot {
            functions: vec!["fetch_all".into()],
            channels: vec!["queue".into()],
            variables: [("HOME".to_owned(), None), ("name".to_owned(), None)].into(),
            directory: "/nowhere".into(),
            ..SessionSnapshot::default()
        };
        let (start, found) = complete(text, &known);
        match &found[..] {
            [only] => format!("{}{}", &text[..start], only.replacement),
            many => many.iter().map(|it| it.display.as_str()).collect::<Vec<_>>().join(" "),
        }
    }

    #[test]
    fn options_of_scripts() {
        let place = tempfile::tempdir().expect("a directory");
        let write = |name: &str, text: &str| {
            std::fs::write(place.path().join(name), text).expect("a file");
        };
        write("fetch.ftsh", "args \"Fetch.\" url -v -n|--dry-run --out=FILE\necho $url");
        write("other.ftsh", "echo a");
        write("wrong.ftsh", "args a...b");
        let known =
            SessionSnapshot { directory: place.path().into(), ..SessionSnapshot::default() };
        let tab = |text: &str| {
            let (start, found) = complete(text, &known);
            let all = found.iter().map(|it| format!("{}{}", &text[..start], it.replacement));
            all.collect::<Vec<_>>().join("|")
        };
        assert_eq!(tab("ftsh fetch.ftsh --d"), "ftsh fetch.ftsh --dry-run ");
        assert_eq!(tab("ftsh -n fetch.ftsh x --o"), "ftsh -n fetch.ftsh x --out=");
        assert_eq!(tab("./fetch.ftsh --he"), "./fetch.ftsh --help ");
        let all = ["--dry-run", "--help", "--out", "-h", "-n", "-v"];
        let all = all.map(|it| format!("./fetch.ftsh {it}")).join("|");
        assert_eq!(tab("./fetch.ftsh -"), all);
        assert_eq!(tab("nohup ftsh ./fetch.ftsh --d"), "nohup ftsh ./fetch.ftsh --dry-run ");
        for none in ["ftsh other.ftsh --", "ftsh wrong.ftsh --", "ftsh missing.ftsh --", "ls --"] {
            assert_eq!(tab(none), "", "{none}");
        }
    }

    #[test]
    fn commands_and_keywords() {
        assert_eq!(tab("fetch_"), "fetch_all ");
        assert_eq!(tab("ls | fetch_"), "ls | fetch_all ");
        assert_eq!(tab("ls; fora"), "forall forany");
        assert_eq!(tab("ls | whil"), "ls | while ");
        assert_eq!(tab("ls |\n fora"), "forall forany");
        assert_eq!(tab("try; ls; end | forany"), "try; ls; end | forany ");
        assert_eq!((tab("ls | functi"), tab("try; ls | catc")), (String::new(), String::new()));
        assert_eq!(tab("try; giveu"), "try; giveup ");
        assert_eq!(tab("try\ncatc"), "try\ncatch ");
        assert!(!tab("cat").contains("catch"));
        assert_eq!(tab("if .succeeds. (fetch_"), "if .succeeds. (fetch_all ");
        assert_eq!(tab("exec fetch_"), "exec fetch_all ");
        assert_eq!(tab("help jit"), "help jitter ");
        assert_eq!(tab("arg"), "args ");
        assert_eq!(tab("# a\narg"), "# a\nargs ");
        assert_eq!((tab("ls; arg"), tab("args ur")), (String::new(), String::new()));
        assert_eq!(tab("umas"), "umask ");
        assert_eq!(tab("umask "), "");
        assert_eq!(tab("help foran"), "help forany ");
    }

    #[test]
    fn clauses_units_and_policies() {
        assert_eq!(tab("try for 5 minu"), "minute minutes");
        assert_eq!(tab("try 5 ti"), "time times");
        assert_eq!(tab("try for 5 minutes ev"), "try for 5 minutes every ");
        assert_eq!(tab("try every 5 ti"), "");
        assert_eq!(tab("try 5 times backoff de"), "try 5 times backoff decorrelated ");
        assert_eq!(tab("try backoff full fr"), "try backoff full from ");
        assert_eq!(tab("try fr"), "");
        assert_eq!(tab("try for 5 minutes at"), "try for 5 minutes atomic ");
        assert_eq!(tab("try for $d ato"), "try for $d atomic ");
        assert_eq!(tab("try for $d same "), "try for $d same input ");
        assert_eq!(tab("try atomic 5 times atom"), "");
        assert_eq!(tab("try 5 times sig"), "try 5 times signal ");
        assert_eq!(tab("try 5 times signal IN"), "try 5 times signal INT ");
        assert_eq!(tab("in dir"), tab("cd dir").replacen("cd", "in", 1));
        assert_eq!(tab("limit 5 minutes sig"), "limit 5 minutes signal ");
        assert_eq!(tab("limit 5 minutes signal US"), "USR1 USR2");
        assert_eq!(tab("limit 5 minutes signal INT "), "leftovers memory no signal stalled");
        assert_eq!(tab("sleep 5 mill"), "millisecond milliseconds");
        assert_eq!(tab("if $x .con"), "if $x .contains. ");
        assert_eq!(tab("for x "), "from in");
        assert_eq!(tab("for x from "), "for x from input ");
        assert_eq!(tab("for x i"), "for x in ");
        assert_eq!(tab("for x in lin"), "for x in lines(");
        assert_eq!(tab("if basen"), "if basename(");
        assert_eq!(tab("x=fetch_"), "x=fetch_all(");
        assert_eq!(tab("x=length(fetch_"), "x=length(fetch_all(");
        assert_eq!(tab("echo basen"), "");
        assert_eq!(tab("if x\nelse "), "if x\nelse if ");
    }

    #[test]
    fn channels_and_their_rules() {
        assert_eq!(tab("chann"), "channel ");
        assert_eq!(tab("channel k "), "at breaker budget rate");
        assert_eq!(tab("channel k at "), "channel k at most ");
        assert_eq!(tab("channel k at most 4 bu"), "channel k at most 4 budget ");
        assert_eq!(tab("channel k rate 10 "), "channel k rate 10 per ");
        assert_eq!(tab("channel k rate 10 per seco"), "second seconds");
        assert_eq!(tab("channel k breaker 5 "), "channel k breaker 5 failures ");
        assert_eq!(tab("try for 1 hour thr"), "try for 1 hour through ");
        assert_eq!(
            tab("channel mirror at most 1\ntry through m"),
            "channel mirror at most 1\ntry through mirror "
        );
        assert_eq!(tab("try through q"), "try through queue ");
    }

    #[test]
    fn arms_of_a_case() {
        assert_eq!(tab("cas"), "case ");
        assert!(tab("case $x\nwhe").contains("when"));
        assert!(!tab("whe").contains("when"));
        assert_eq!(tab("case $x\nwhen a\nif true\nels"), "case $x\nwhen a\nif true\nelse ");
        assert_eq!(tab("case basen"), "case basename(");
    }

    #[test]
    fn clauses_of_loops() {
        assert_eq!(tab("forall x in a b kee"), "forall x in a b keep ");
        assert_eq!(tab("forall x in a b keep "), "forall x in a b keep going ");
        assert_eq!(tab("forall x in a b at "), "least most");
        assert_eq!(tab("forall x in a b output "), "grouped tagged");
        assert_eq!(tab("forany x in a in o"), "forany x in a in order ");
        assert_eq!(tab("forany x in a hed"), "forany x in a hedge ");
        assert_eq!(tab("forany x in a hedge "), "forany x in a hedge after ");
        assert_eq!(tab("forany x in a hedge after 5 minu"), "minute minutes");
        assert_eq!(tab("forany x in a hedge after us"), "forany x in a hedge after usual ");
        assert_eq!(tab("try 5 times each us"), "try 5 times each usual ");
        assert_eq!(tab("try 5 times each usual "), "try 5 times each usual or ");
        assert_eq!(
            tab("forany x in a hedge after 5s at "),
            "forany x in a hedge after 5s at most "
        );
        assert_eq!(tab("forany x in a at "), "");
        assert_eq!(tab("forany x in a at"), "forany x in a atomic ");
        assert_eq!(tab("forany x in a atomic "), "forany x in a atomic in ");
        assert_eq!(tab("forall x in 1 .t"), "forall x in 1 .to. ");
    }

    #[test]
    fn variables() {
        assert_eq!(tab("echo $na"), "echo $name");
        assert_eq!(tab("echo \"a ${na"), "echo \"a ${name}");
        assert_eq!(tab("echo $error_l"), "echo $error_line");
        assert_eq!(tab("echo \"a ${basen"), "echo \"a ${basename(");
        assert_eq!(tab("echo x -> na"), "echo x -> name ");
        assert_eq!(tab("unset HO"), "unset HOME ");
        assert_eq!(tab("echo '$na"), "");
        assert!(tab("echo $").contains("name"));
        assert_eq!(tab("# $na"), "");
    }

    #[test]
    fn completed_names_are_one_word_anywhere() {
        let place = tempfile::tempdir().expect("a directory");
        for name in ["my prog", "it's", "a=b,c", "zz\nend"] {
            std::fs::write(place.path().join(name), "").expect("a file");
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(place.path().join(name), mode).expect("a program");
        }
        let path = Some(place.path().into());
        let known = SessionSnapshot::along_path(place.path(), path);
        let replacement = |text| match &complete(text, &known).1[..] {
            [only] => only.replacement.trim_end().to_owned(),
            many => format!("{} candidates", many.len()),
        };
        for (text, completed) in [
            ("my", "my\\ prog"),
            ("it", "it\\'s"),
            ("zz", "0 candidates"),
            ("x=a=", "a=b\\,c"),
            ("for i in a=", "a=b\\,c"),
            ("cat a=", "a=b\\,c"),
        ] {
            assert_eq!(replacement(text), completed, "{text}");
        }
    }

    #[test]
    fn large_directories_are_completed() {
        let place = tempfile::tempdir().expect("a directory");
        let first = place.path().join("other");
        std::fs::write(&first, "").expect("a file");
        // Links, since files are made and removed slowly.
        for number in 0..6000 {
            let name = place.path().join(format!("file{number}"));
            std::fs::hard_link(&first, name).expect("a link");
        }
        let known =
            SessionSnapshot { directory: place.path().into(), ..SessionSnapshot::default() };
        assert_eq!(complete("cat fi", &known).1.len(), 6000);
        assert_eq!(complete("cat file599", &known).1.len(), 11);
    }
}
