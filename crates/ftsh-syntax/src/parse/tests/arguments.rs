//! `args`, the declaration of a script's arguments.

use super::tidied as printed;
use crate::ast::ArgumentKind;
use crate::slug::Slug;
use crate::{KnownNames, parse, parse_with};

/// Returns the messages of all errors.
fn wrong(text: &str) -> String {
    let errors = parse("t", text).expect_err(text).errors;
    errors.iter().map(|error| error.message.as_str()).collect::<Vec<_>>().join("; ")
}

#[test]
fn declarations_are_printed_as_written() {
    let text = "args \"Fetch URL.\" url dir=/srv mode='a b' -v --out=FILE -r|--retries=3 files...";
    assert_eq!(printed(text).trim_end(), text);
    insta::assert_snapshot!(printed("#! /usr/bin/ftsh\n\n# Fetches.\nargs   url \\\n    -v # all\necho $url"), @r"
    #! /usr/bin/ftsh

    # Fetches.
    args url -v # all
    echo $url
    ");
}

#[test]
fn arguments_have_names_and_kinds() {
    let text = "args a b=x c=\"\" -v -n|--dry-run --out=FILE -l|--level=3 -m=A1_ --mode=\"A\" --x=a=b rest...";
    let script = parse("t", text).expect("a script");
    let declaration = script.arguments().expect("a declaration");
    let kinds: Vec<_> =
        declaration.arguments.iter().map(|it| format!("{} {:?}\n", it.name, it.kind)).collect();
    insta::assert_snapshot!(kinds.concat(), @r#"
    a Required
    b Optional("x")
    c Optional("")
    v Flag
    dry_run Flag
    out Value("FILE")
    level ValueOr("3")
    m Value("A1_")
    mode ValueOr("A")
    x ValueOr("a=b")
    rest Rest
    "#);
    let spans = declaration.arguments.iter().map(|it| &text[std::ops::Range::from(it.name_span)]);
    assert_eq!(
        spans.collect::<Vec<_>>(),
        ["a", "b", "c", "v", "dry-run", "out", "level", "m", "mode", "x", "rest"]
    );
    insta::assert_snapshot!(declaration.usage("f"), @r#"usage: f a [b=x] [c=""] [-v] [-n|--dry-run] [--out=FILE] [-l|--level=3] [-m=A1_] [--mode=A] [--x=a=b] [rest...]"#);
    assert_eq!(declaration.arguments[0].kind, ArgumentKind::Required);
}

#[test]
fn only_the_first_statement_declares() {
    for text in ["args", "args $x", "args | cat", "args 1", "echo a\nargs 9 name"] {
        let errors = parse("t", text).expect_err(text).errors;
        assert_eq!(errors[0].slug, Slug::MisplacedKeyword, "{text}");
    }
    for text in
        ["'args' name", "./args name", "args=name", "function args\n    a\nend\nargs name -n"]
    {
        let script = parse("t", text).expect(text);
        assert!(script.arguments().is_none(), "{text}");
    }
    for text in ["echo a\nargs \"text\" name", "try; args name; end", "echo a; args -n|-m x"] {
        let errors = parse("t", text).expect_err(text).errors;
        assert_eq!(errors.len(), 1, "{text}");
        assert_eq!(errors[0].slug, Slug::ArgumentDeclaration, "{text}");
    }
    for text in
        ["args \"text\"", "args name", "args n=1", "args name...", "args -v", "# a\nargs n; b"]
    {
        let script = parse("t", text).expect(text);
        assert!(script.arguments().is_some(), "{text}");
    }
}

#[test]
fn wrong_declarations_are_refused() {
    let cases = [
        ("args a b=1 c", "`c` is required after `b`, which is not"),
        ("args a... b", "`a...` takes all arguments up to the last"),
        ("args a... b...", "`a...` takes all arguments up to the last"),
        ("args a -a", "the argument `a` is declared twice"),
        ("args --dry-run dry_run", "the argument `dry_run` is declared twice"),
        ("args -n|--new -n|--next", "the option is declared twice"),
        ("args a b-c", "`b-c` can't be the name of an argument"),
        ("args a -xy", "`-xy` can't be the name of an argument"),
        ("args a -1", "`-1` can't be the name of an argument"),
        ("args a --", "`--` can't be the name of an argument"),
        ("args a ---x", "`---x` can't be the name of an argument"),
        ("args a --9", "`--9` can't be the name of an argument"),
        ("args a b...=1", "`b...` can't be the name of an argument"),
        ("args a |-b", "`|-b` can't be the name of an argument"),
        ("args a b\"c\"", "`bc` can't be the name of an argument"),
        ("args a \"text\"", "only the first word of `args` is in quotes, the summary"),
        ("args a b=$HOME", "a declaration of arguments can't have variables"),
        ("args \"of $x\" a", "a declaration of arguments can't have variables"),
        ("args \"open", "unterminated string"),
    ];
    for (text, message) in cases {
        assert_eq!(wrong(text), message, "{text}");
    }
}

#[test]
fn prompts_and_sourced_files_declare_nothing() {
    let known = KnownNames { is_open: true, is_part: true, ..KnownNames::default() };
    let errors = parse_with("t", "args name", known).expect_err("no script").errors;
    assert_eq!(
        errors[0].message,
        "`args` declares the arguments of a script, not of a prompt or a sourced file"
    );
}

#[test]
fn functions_have_parameters() {
    for text in [
        "function f host port=22 mode='a b' files...\n    echo $host\nend\n",
        "function f a\n    echo $a\ncatch\n    echo b\nend\n",
        "function f a\nend\n",
    ] {
        assert_eq!(printed(text), text);
    }
    for (text, message) in [
        ("function f a=1 b\nend", "`b` is required after `a`, which is not"),
        ("function f a... b\nend", "`a...` takes all arguments up to the last"),
        ("function f a a\nend", "the argument `a` is declared twice"),
        ("function f a=$b\nend", "a declaration of arguments can't have variables"),
        ("function f a b-c\nend", "`b-c` can't be the name of an argument"),
        ("function f a -v\nend", "unexpected `-v`"),
    ] {
        assert_eq!(wrong(text), message, "{text}");
    }
}
