use std::path::Path;

use lsp_types::{DocumentSymbol, HoverContents, TextDocumentContentChangeEvent};

use super::*;
use crate::lint::Unknown;
use crate::lsp::names::{Kind, Names};
use crate::lsp::{completion, definition, formatting, hover, mistakes, outline};
use ftsh_syntax::ast::CommandKind;
use ftsh_syntax::{parse, print};

fn diagnostics(text: &str) -> String {
    let told = mistakes::publish(&document(text), &policy(), &Unknown).diagnostics;
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
    told.into_iter().map(line).collect()
}

#[test]
fn mistakes_and_warnings_are_where_they_are() {
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
      1:1-7 nothing comes after this
    ");
    assert_eq!(diagnostics("echo a\n"), "");
    assert!(diagnostics("echo \0").contains("NUL"));
}

#[test]
fn what_is_typed_is_taken_over() {
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

fn told(text: &str) -> String {
    let (document, place) = cursor(text);
    let Some(hover) = hover::hover(&document, place, &policy()) else { return "nothing".into() };
    let HoverContents::Markup(it) = hover.contents else { panic!("Markdown") };
    format!("{} {}", shown(hover.range.expect("a range")), it.value)
}

#[test]
fn a_try_tells_its_schedule() {
    let schedule = |text: &str| {
        let told = told(&format!("{text}\n  a\nend"));
        told.split("\n---").next().unwrap_or_default().trim_end().to_owned()
    };
    insta::assert_snapshot!(schedule("t‸ry for 30 seconds or 5 times"), @"
    1:1-4 ```ftsh
    try for 30 seconds or 5 times
    ```

    - attempts: at most 5, within 30 s
    - delays (`exponential from 1 s to 1 min by 2`): 1 s, then 2 s, then 4 s, then 8 s
    - gives up: not before 15 s
    - takes at most: 30 s, whatever its commands do
    ");
    insta::assert_snapshot!(schedule("‸try 10 times each 1 minute backoff full"), @"
    1:1-4 ```ftsh
    try 10 times each 1 minute backoff full
    ```

    - attempts: at most 10
    - delays (`full from 1 s to 1 h by 2`): 0 ms to 1 s, then 0 ms to 2 s, then 0 ms to 4 s, then 0 ms to 8 s, then 0 ms to 16 s, …
    - gives up: maybe at once, if every attempt fails at once
    - takes at most: 18 min 31 s, whatever its commands do
    ");
    insta::assert_snapshot!(schedule("‸try for 1 hour every 5 minutes"), @"
    1:1-4 ```ftsh
    try for 1 hour every 5 minutes
    ```

    - attempts: as many as fit into 1 h
    - starts: 5 min apart, or further
    - gives up: not before 55 min
    - takes at most: 1 h, whatever its commands do
    ");
    insta::assert_snapshot!(schedule("‸try 1000000 times backoff fixed from 1 s"), @"
    1:1-4 ```ftsh
    try 1000000 times backoff fixed from 1 s
    ```

    - attempts: at most 1000000
    - delays (`fixed from 1 s`): always 1 s
    - gives up: not before 11 d 13 h
    - takes at most: as long as its commands do
    ");
    insta::assert_snapshot!(schedule("‸try for $n minutes"), @"
    1:1-4 ```ftsh
    try for $n minutes
    ```

    - attempts: what is computed says how many
    - delays: what is computed says so
    - gives up: only running it can tell when
    - takes at most: as long as its commands do
    ");
    insta::assert_snapshot!(schedule("‸try"), @"
    1:1-4 ```ftsh
    try
    ```

    - attempts: one
    - takes at most: as long as its commands do
    ");
    assert!(told("‸try for 5\n").starts_with("1:1-4 Runs commands until"));
    insta::assert_snapshot!(schedule("try for 5 minutes; ‸try for 1 hour; a; end"), @"
    1:20-23 ```ftsh
    try for 1 hour
    ```

    - attempts: as many as fit into 5 min, the limit around it
    - delays (`exponential from 1 s to 1 min by 2`): 1 s, then 2 s, then 4 s, then 8 s, then 16 s, …
    - gives up: not before 5 min, the limit around it
    - takes at most: 5 min, the limit around it, whatever its commands do
    ");
    insta::assert_snapshot!(schedule("ech 'é\n'; if; ‸try 3 times # so often\na"), @"
    2:8-11 ```ftsh
    try 3 times
    ```

    - attempts: at most 3
    - delays (`exponential from 1 s to 1 min by 2`): 1 s, then 2 s
    - how long it takes is told once the script has no mistakes
    ");
}

#[test]
fn words_tell_what_they_mean_where_they_stand() {
    insta::assert_snapshot!(told("try for 1 hour ev‸ery 5 s; a; end"), @"1:16-21 `every D`: attempts start at least that far apart, with no other delay between them.");
    insta::assert_snapshot!(told("try 3 times backoff fi‸xed from 1 s"), @"1:21-26 Always T. T is 1 s.");
    insta::assert_snapshot!(told("echo 🦀; f=1; forall x in a b at ‸most 3"), @"1:34-38 `at most N`: so many branches run at once.");
    insta::assert_snapshot!(told("forall x in a b keep goi‸ng"), @"1:22-27 `keep going`: one that fails doesn't end the others; `$failed` and `$succeeded` say which.");
    insta::assert_snapshot!(told("forall x in a b output grouped in or‸der"), @"1:35-40 `in WORDS`: there is a branch for each of them. In `output grouped in order` the groups are printed in the order of the words.");
    assert_eq!(told("forall x in or‸der output grouped"), "nothing");
    insta::assert_snapshot!(told("channel c at most 2 bu‸dget 20%"), @"1:21-27 `budget P%`: a second or later attempt needs what first attempts have earned.");
    insta::assert_snapshot!(told("sh‸ift"), @"1:1-6 Drops the first argument: $2 becomes $1. `shift 2` drops two.");
    assert!(told("giv‸eup now").contains("fails, and the innermost `try` makes no further"));
    assert!(
        told("try for 1 hour while $error_kind .ne. lo‸st; a; end")
            .starts_with("1:39-43 failure[lost]: Work was running")
    );
    assert!(
        told("if timeo‸ut .eq. ${error_kind}; a; end")
            .starts_with("1:4-11 failure[timeout]: A time")
    );
    insta::assert_snapshot!(told("x=tr‸im($y)"), @r#"
    1:3-7 `trim(text)`: without white space at both ends.

    `trim("  a b ")` is `"a b"`.
    "#);
    insta::assert_snapshot!(told("echo \"é ${err‸or_code}\""), @"1:9-22 `$error_code`: the status of the command that failed.");
    insta::assert_snapshot!(told("# Fetches\n# a mirror.\nfunction f\na\nend\n‸f x\n"), @"
    6:1-2 ```ftsh
    function f
    ```

    Fetches
    a mirror.
    ");
    assert!(told("try for 5 mi‸n; a; end").contains("500 ms"));
    assert!(told("if a .e‸q. b").contains(".neql."));
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
        assert_eq!(told(nothing), "nothing", "{nothing}");
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
fn what_may_come_is_offered() {
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
fn formatting_is_what_is_printed_and_changes_no_more() {
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
fn the_outline_has_structures_inside_each_other() {
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

/// The parser and the prompt's scanner see the same structures.
#[test]
fn the_outline_ends_where_structures_end() {
    for (name, text) in scripts() {
        let Ok(script) = parse("t", &text) else { continue };
        let mut heads = Vec::new();
        crate::lint::walk::each(&script.body, &mut |command| {
            use CommandKind::{Channel, For, Function, Try};
            if matches!(command.kind, Channel(_) | For(_) | Function { .. } | Try(_)) {
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

fn places(found: Vec<lsp_types::Location>) -> String {
    found.into_iter().map(|it| shown(it.range)).collect::<Vec<_>>().join(" ")
}

#[test]
fn definitions_are_found() {
    let of = |text: &str| {
        let (document, place) = cursor(text);
        places(definition::definition(&document, place))
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
        places(definition::references(&document, place, definitions))
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
fn names_are_where_the_tree_says() {
    for (name, text) in scripts() {
        let Ok(script) = parse("t", &text) else { continue };
        for it in Names::of(&script).all {
            let written = &text[std::ops::Range::from(it.span)];
            let is_plain = written.trim_matches(['"', '\'']) == it.name;
            assert!(is_plain || it.kind == Kind::Function, "{name}: {it:?} is {written:?}");
        }
    }
}
