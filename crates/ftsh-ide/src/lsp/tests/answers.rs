use std::path::Path;
use std::time::Duration;

use bstr::BStr;
use lsp_types::{DocumentSymbol, HoverContents, TextDocumentContentChangeEvent};

use super::*;
use crate::durations::{Durations, NoDurations};
use crate::lint::UnknownPrograms;
use crate::lsp::names::{NameKind, Names};
use crate::lsp::{completion, definition, diagnostics, formatting, hover, outline};
use ftsh_machine::durations::estimate::{Sample, SampleKind};
use ftsh_machine::durations::history::DurationHistory;
use ftsh_machine::durations::learned::LimitKey;
use ftsh_machine::learned_limits;
use ftsh_syntax::ast::CommandKind;
use ftsh_syntax::{parse, print};

fn diagnostics(text: &str) -> String {
    let published = diagnostics::publish(&document(text), &policy(), &UnknownPrograms).diagnostics;
    let line = |it: lsp_types::Diagnostic| {
        let related = it.related_information.unwrap_or_default().into_iter();
        let related = related.map(|it| format!("\n  {} {}", shown(it.location.range), it.message));
        format!(
            "{:?} {} {}{}\n",
            it.severity.expect("one"),
            shown(it.range),
            it.message,
            related.collect::<String>()
        )
    };
    published.into_iter().map(line).collect()
}

#[test]
fn errors_and_warnings_have_ranges() {
    insta::assert_snapshot!(diagnostics("echo 🦀é; try for 5 minutse\n  a\nend\nif x\n"), @"
    Error 1:21-28 unknown unit `minutse`
    expected `times`, `seconds`, `minutes`, `hours` or `days`
    hint: did you mean `minutes`?
    Error 4:1-3 this `if` has no `end`
    ");
    insta::assert_snapshot!(diagnostics("function f\n  b\nend\nfunction f\n  a\nend\n"), @"
    Error 4:10-11 the function `f` is defined twice
      1:10-11 first defined here
    ");
    insta::assert_snapshot!(diagnostics("exit 3\necho é\n"), @"
    Warning 2:1-7 this is never reached
      1:1-7 commands after this are not reached
    ");
    assert_eq!(diagnostics("echo a\n"), "");
    assert!(diagnostics("echo \0").contains("NUL"));
}

#[test]
fn changes_are_applied() {
    let mut document = document("echo 🦀b\necho c\n");
    let change = |range: Option<[u32; 4]>, text: &str| TextDocumentContentChangeEvent {
        range: range.map(|[a, b, c, d]| Range::new(Position::new(a, b), Position::new(c, d))),
        range_length: None,
        text: text.to_owned(),
    };
    document.change(2, vec![change(Some([0, 7, 0, 8]), "é"), change(Some([0, 8, 1, 0]), "; ")]);
    assert_eq!(document.text(), "echo 🦀é; echo c\n");
    assert!(document.parsed().is_ok());
    // Outside, or the wrong way round: something sensible.
    document.change(3, vec![change(Some([0, 5, 0, 2]), "x"), change(Some([9, 9, 99, 0]), "y")]);
    assert_eq!((document.text(), document.version), ("echo x🦀é; echo c\ny", Some(3)));
    document.change(4, vec![change(None, "try")]);
    assert!(document.parsed().is_err());
}

fn explained(text: &str) -> String {
    let (document, place) = cursor(text);
    let Some(hover) = hover::hover(&document, place, &policy(), &NoDurations) else {
        return "nothing".into();
    };
    let HoverContents::Markup(it) = hover.contents else { panic!("Markdown") };
    format!("{} {}", shown(hover.range.expect("a range")), it.value)
}

#[test]
fn hover_shows_the_schedule_of_a_try() {
    let schedule = |text: &str| {
        let explained = explained(&format!("{text}\n  a\nend"));
        explained.split("\n---").next().unwrap_or_default().trim_end().to_owned()
    };
    insta::assert_snapshot!(schedule("t‸ry for 30 seconds or 5 times"), @"
    1:1-4 ```ftsh
    try for 30 seconds or 5 times
    ```

    - attempts: at most 5, within 30 s
    - delays (`exponential from 1 s to 1 min by 2`): 1 s, then 2 s, then 4 s, then 8 s
    - gives up: not before 15 s
    - takes at most: 30 s, with any commands
    ");
    insta::assert_snapshot!(schedule("‸try 10 times each 1 minute backoff full"), @"
    1:1-4 ```ftsh
    try 10 times each 1 minute backoff full
    ```

    - attempts: at most 10
    - delays (`full from 1 s to 1 min by 2`): 0 ms to 1 s, then 0 ms to 2 s, then 0 ms to 4 s, then 0 ms to 8 s, then 0 ms to 16 s, …
    - gives up: possibly at once, if every attempt fails at once
    - takes at most: 14 min 3 s, with any commands
    ");
    insta::assert_snapshot!(schedule("‸try for 1 hour every 5 minutes"), @"
    1:1-4 ```ftsh
    try for 1 hour every 5 minutes
    ```

    - attempts: as many as fit into 1 h
    - starts: 5 min apart, or further
    - gives up: not before 55 min
    - takes at most: 1 h, with any commands
    ");
    insta::assert_snapshot!(schedule("‸try 1000000 times backoff fixed from 1 s"), @"
    1:1-4 ```ftsh
    try 1000000 times backoff fixed from 1 s
    ```

    - attempts: at most 1000000
    - delays (`fixed from 1 s`): always 1 s
    - gives up: not before 11 d 13 h
    - takes at most: as long as its commands
    ");
    insta::assert_snapshot!(schedule("‸try for $n minutes"), @"
    1:1-4 ```ftsh
    try for $n minutes
    ```

    - attempts: known only at run time
    - delays: known only at run time
    - gives up: known only at run time
    - takes at most: as long as its commands
    ");
    insta::assert_snapshot!(schedule("‸try"), @"
    1:1-4 ```ftsh
    try
    ```

    - attempts: one
    - takes at most: as long as its commands
    ");
    assert!(explained("‸try for 5\n").starts_with("1:1-4 Runs commands until"));
    insta::assert_snapshot!(schedule("try for 5 minutes; ‸try for 1 hour; a; end"), @"
    1:20-23 ```ftsh
    try for 1 hour
    ```

    - attempts: as many as fit into 5 min, the enclosing limit
    - delays (`exponential from 1 s to 1 min by 2`): 1 s, then 2 s, then 4 s, then 8 s, then 16 s, …
    - gives up: not before 5 min, the enclosing limit
    - takes at most: 5 min, the enclosing limit, with any commands
    ");
    insta::assert_snapshot!(schedule("ech 'é\n'; if; ‸try 3 times # so often\na"), @"
    2:8-11 ```ftsh
    try 3 times
    ```

    - attempts: at most 3
    - delays (`exponential from 1 s to 1 min by 2`): 1 s, then 2 s
    - the time is shown once the script has no errors
    ");
}

#[test]
fn hover_explains_declared_arguments() {
    let text = |rest: &str| {
        format!("args \"Fetch.\" url dir=/srv -n|--dry-run --out=FILE --level=3 files...\n{rest}")
    };
    insta::assert_snapshot!(explained(&text("echo $u‸rl")), @"2:6-10 `$url`: an argument of the script.");
    insta::assert_snapshot!(explained(&text("echo \"${d‸ir}\"")), @"2:7-13 `$dir`: an argument of the script, or the default `/srv`.");
    insta::assert_snapshot!(explained(&text("echo $files").replace("dry-run", "dry-r‸un")), @"1:28-40 `$dry_run`: `true` with the option `-n` or `--dry-run`, otherwise `false`.");
    insta::assert_snapshot!(explained(&text("echo $files").replace("--out", "--o‸ut")), @"1:41-51 `$out`: the value of the option `--out`; unset without the option.");
    insta::assert_snapshot!(explained(&text("echo $fil‸es")), @"2:6-12 `$files`: a list of the remaining arguments of the script.");
    let function = |text: &str| explained(&format!("{text}\nend\nf a"));
    insta::assert_snapshot!(function("function f host port=22 files...\necho $po‸rt"), @"2:6-11 `$port`: an argument of `f`, or the default `22`.");
    insta::assert_snapshot!(function("function f ho‸st\necho $host"), @"1:12-16 `$host`: an argument of `f`.");
    assert!(
        explained("function f host port=22\necho $host\nend\n‸f a")
            .contains("function f host port=22")
    );
    assert!(explained("ar‸gs name").contains("Declares the arguments of a script"));
    assert_eq!(explained("echo a\nar‸gs name"), "nothing");
}

#[test]
fn hover_explains_words() {
    insta::assert_snapshot!(explained("try for 1 hour ev‸ery 5 s; a; end"), @"1:16-21 `every D`: the minimum time between the starts of attempts, without other delays.");
    insta::assert_snapshot!(explained("try 3 times backoff fi‸xed from 1 s"), @"1:21-26 Always T. T is 1 s.");
    insta::assert_snapshot!(explained("echo 🦀; f=1; forall x in a b at ‸most 3"), @"1:34-38 `at most N`: the maximum number of branches at once.");
    insta::assert_snapshot!(explained("forall x in a b keep goi‸ng"), @"1:22-27 `keep going`: a failed branch does not cancel the others; `$failed` and `$succeeded` list the items.");
    insta::assert_snapshot!(explained("forall x in a b output grouped in or‸der"), @"1:35-40 `in WORDS`: one branch runs for each word. With `output grouped in order`, the outputs appear in the order of the words. `once in FILE` skips the words that the file records.");
    assert_eq!(explained("forall x in or‸der output grouped"), "nothing");
    insta::assert_snapshot!(explained("channel c at most 2 bu‸dget 20%"), @"1:21-27 `budget P%`: the maximum number of retries, as a percentage of first attempts.");
    insta::assert_snapshot!(explained("sh‸ift"), @"1:1-6 Drops the first argument: $2 becomes $1. `shift 2` drops two.");
    assert!(explained("giv‸eup now").contains("fails, and the innermost `try` does not try"));
    assert!(
        explained("try for 1 hour while $error_kind .ne. lo‸st; a; end")
            .starts_with("1:39-43 failure[lost]: Work was running")
    );
    assert!(
        explained("if timeo‸ut .eq. ${error_kind}; a; end")
            .starts_with("1:4-11 failure[timeout]: A time")
    );
    insta::assert_snapshot!(explained("x=tr‸im($y)"), @r#"
    1:3-7 `trim(text)`: the text without white space at both ends.

    `trim("  a b ")` is `"a b"`.
    "#);
    insta::assert_snapshot!(explained("echo \"é ${err‸or_code}\""), @"1:9-22 `$error_code`: the status of the command that failed; 128 and the number after a signal.");
    insta::assert_snapshot!(explained("# Fetches\n# a mirror.\nfunction f\na\nend\n‸f x\n"), @"
    6:1-2 ```ftsh
    function f
    ```

    Fetches
    a mirror.
    ");
    assert!(explained("try for 5 mi‸n; a; end").contains("500 ms"));
    assert!(explained("if a .e‸q. b").contains(".neql."));
    for nothing in [
        "wg‸et x",
        "echo lo‸st",
        "if $x .eq. lo‸st",
        "echo tr‸y",
        "# tr‸y",
        "echo a ‸",
        "‸",
        "ec‸h",
        "x‸=trim($y)",
        "trim‸",
    ] {
        assert_eq!(explained(nothing), "nothing", "{nothing}");
    }
}

fn offered(text: &str) -> String {
    let (document, place) = cursor(text);
    let items = completion::completion(&document, place, &variables(), Path::new("/nowhere"));
    let shown = items.into_iter().map(|it| {
        let Some(lsp_types::CompletionTextEdit::Edit(edit)) = it.text_edit else {
            panic!("an edit")
        };
        format!("{:?} {} {:?}", it.kind.expect("a kind"), shown(edit.range), edit.new_text)
    });
    shown.collect::<Vec<_>>().join("\n")
}

#[test]
fn candidates_are_offered() {
    insta::assert_snapshot!(offered("echo 🦀; try 5 ti‸"), @r#"
    Keyword 1:16-18 "time"
    Keyword 1:16-18 "times"
    "#);
    insta::assert_snapshot!(offered("try for 5 minutes ev‸\n  a\nend"), @r#"Keyword 1:19-21 "every""#);
    insta::assert_snapshot!(offered("try backoff dec‸"), @r#"EnumMember 1:13-16 "decorrelated""#);
    insta::assert_snapshot!(offered("function fetch_all\nend\nif true\nfetch‸"), @r#"Function 4:1-6 "fetch_all""#);
    insta::assert_snapshot!(offered("channel mirror at most 2\ntry through mi‸"), @r#"Text 2:13-15 "mirror""#);
    insta::assert_snapshot!(offered("dest=a\nfor destination in x\necho a -> destin\necho ${dest‸"), @r#"
    Variable 4:8-12 "dest}"
    Variable 4:8-12 "destin}"
    Variable 4:8-12 "destination}"
    "#);
    insta::assert_snapshot!(offered("dest=a\necho \"${de‸}\""), @r#"Variable 2:9-11 "dest""#);
    insta::assert_snapshot!(offered("echo $MAIL‸"), @r#"Variable 1:7-11 "MAIL_TO""#);
    // A command of the prompt's, not of scripts.
    assert!(!offered("hel‸").contains("\"help\""));
}

#[test]
fn formatting_changes_only_differing_lines() {
    let formatted = |text: &str| {
        let edits = formatting::format(&document(text));
        let shown = edits.into_iter().map(|it| format!("{} {:?}", shown(it.range), it.new_text));
        shown.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(formatted("echo é\ntry\n a\nend\necho b\n"), "3:1-4:1 \"    a\\n\"");
    assert_eq!(formatted("echo   🦀"), "1:1-10 \"echo 🦀\\n\"");
    assert_eq!(formatted("a\n\n\n\nb\n"), "3:1-5:1 \"\"");
    assert_eq!((formatted("a\n"), formatted("try")), (String::new(), String::new()));
    for (name, text) in scripts() {
        let Ok(script) = parse("t", &text) else { continue };
        let mut document = document(&text);
        let changes =
            formatting::format(&document).into_iter().map(|it| TextDocumentContentChangeEvent {
                range: Some(it.range),
                range_length: None,
                text: it.new_text,
            });
        document.change(2, changes.collect());
        assert_eq!(document.text(), print(&script), "{name}");
    }
}

fn tree(symbols: &[DocumentSymbol], depth: usize) -> String {
    let line = |it: &DocumentSymbol| {
        let (blanks, whole, name) =
            ("  ".repeat(depth), shown(it.range), shown(it.selection_range));
        let inner = tree(it.children.as_deref().unwrap_or_default(), depth + 1);
        format!("{blanks}{:?} {} {whole} {name}\n{inner}", it.kind, it.name)
    };
    symbols.iter().map(line).collect()
}

#[test]
fn the_outline_nests_structures() {
    let text = "channel m at most 2\nfunction f # é\n  try for 5 s \\\n  every 1 s\n    forall x in a b\n      c\n    end\n  end\nend > g\necho 🦀 | while true; try; f; end; end\nforany y in a";
    insta::assert_snapshot!(tree(&outline::outline(&document(text)), 0), @"
    Interface m 1:1-20 1:9-10
    Function f 2:1-9:4 2:10-11
      Event try for 5 s every 1 s 3:3-8:6 3:3-4:12
        Array forall x in a b 5:5-7:8 5:5-20
    Event try 10:23-34 10:23-26
    Array forany y in a 11:1-14 11:1-14
    ");
    let deep = "try\n".repeat(5000);
    assert_eq!(outline::outline(&document(&deep)).len(), 1);
}

/// Visits the commands of a block, without those of a `$(…)`.
fn each<'a>(
    block: &'a ftsh_syntax::ast::Block,
    visit: &mut impl FnMut(&'a ftsh_syntax::ast::Command),
) {
    for command in &block.commands {
        visit(command);
        command.blocks().into_iter().for_each(|inner| each(inner, visit));
    }
}

/// The parser and the scanner of the prompt find the same structures.
#[test]
fn the_outline_ends_where_structures_end() {
    for (name, text) in scripts() {
        let Ok(script) = parse("t", &text) else { continue };
        let mut heads = Vec::new();
        each(&script.body, &mut |command| {
            use CommandKind::{Channel, For, Function, Try};
            let is_head = match &command.kind {
                _ if command.one_line => false,
                Channel(_) | For(_) | Function { .. } => true,
                Try(details) => details.around.is_none(),
                _ => false,
            };
            if is_head {
                heads.push(command.span.start);
            }
        });
        heads.sort_unstable();
        let items = outline::items(&text);
        let found: Vec<usize> = items.iter().map(|it| it.span.start).collect();
        assert_eq!(found, heads, "{name}");
        for item in items.iter().filter(|it| it.kind != lsp_types::SymbolKind::INTERFACE) {
            assert!(text[..item.span.end].ends_with("end"), "{name}: {}", item.name);
        }
    }
}

fn locations(found: Vec<lsp_types::Location>) -> String {
    found.into_iter().map(|it| shown(it.range)).collect::<Vec<_>>().join(" ")
}

#[test]
fn definitions_are_found() {
    let of = |text: &str| {
        let (document, place) = cursor(text);
        locations(definition::definition(&document, place))
    };
    assert_eq!(of("fet‸ch a\nfunction fetch\nend"), "2:10-15");
    assert_eq!(of("function g\n x\nend\nif .succeeds. (‸g) .and. g(1)\nend"), "1:10-11");
    assert_eq!(of("function g\n return 1\nend\nx=‸g(1)"), "1:10-11");
    assert_eq!(of("channel m at most 1\ntry through ‸m\n a\nend"), "1:9-10");
    assert_eq!(
        of("echo 🦀; v=1\nfor v in a\nend\ncat -> v\nread a v\necho \"é$‸v\""),
        "1:10-11 2:5-6 4:8-9 5:8-9"
    );
    assert_eq!(of("w‸get"), "");
    // Also while something else is still being typed.
    assert_eq!(of("function fetch\nend\ntry for\nfetc‸h a"), "1:10-15");
}

#[test]
fn uses_are_found() {
    let of = |text: &str, definitions| {
        let (document, place) = cursor(text);
        locations(definition::references(&document, place, definitions))
    };
    let text = "function f‸\n a\nend\nf; f x | f\ny=f(1)\nif .succeeds. (f)\nend";
    assert_eq!(of(text, false), "4:1-2 4:4-5 4:10-11 5:3-4 6:16-17");
    assert_eq!(
        of("v=1\ncat << E > $v\n é ${‸v:-${v}} $(v)\nE\nrm \"$v\"$v", true),
        "1:1-2 2:13-14 3:6-7 3:11-12 3:17-18 5:6-7 5:9-10"
    );
    assert_eq!(of("l‸s; ls", true), "");
}

#[test]
fn names_have_the_spans_of_the_tree() {
    for (name, text) in scripts() {
        let Ok(script) = parse("t", &text) else { continue };
        for it in Names::of(&script).all {
            let written = &text[std::ops::Range::from(it.span)];
            let written = written.trim_matches(['"', '\'']);
            // The variable of an option `--dry-run` is `dry_run`.
            let is_plain = written.replace('-', "_") == it.name;
            assert!(is_plain || it.kind == NameKind::Function, "{name}: {it:?} is {written:?}");
        }
    }
}

/// Durations of one file.
struct Known(LimitKey);

impl Durations for Known {
    fn of_file(&self, path: &BStr) -> Option<DurationHistory> {
        assert_eq!(path, "/nowhere/a script.ftsh");
        let mut history = DurationHistory::default();
        for _ in 0..60 {
            let length = Duration::from_secs(60);
            history.add(self.0, Sample { length, kind: SampleKind::Success });
        }
        Some(history)
    }
}

#[test]
fn hover_shows_learned_limits() {
    for (text, known) in [
        ("t‸ry 5 times each usual or 20 minutes\n  a\nend", "the limit is now 3 min"),
        ("fora‸ny x in a b hedge after usual or 5 min\n  a\nend", "the delay is now 1 min"),
    ] {
        let script = ftsh_syntax::parse("script", &text.replace('‸', "")).expect("a script");
        let known_durations = Known(learned_limits(&script)[0].key);
        let (document, place) = cursor(text);
        let hover = hover::hover(&document, place, &policy(), &known_durations).expect("a hover");
        let HoverContents::Markup(it) = hover.contents else { panic!("Markdown") };
        let expected = format!("- usual: 60 samples, median 1 min, p95 1 min; {known}\n");
        assert!(it.value.contains(&expected), "{}", it.value);
    }
}
