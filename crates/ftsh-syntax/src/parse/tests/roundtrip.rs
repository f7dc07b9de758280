//! Printing as the inverse of parsing, for random programs.

use proptest::prelude::*;

use super::{parse_part, shape, tidied};
use crate::print;

/// Generates parts of words, right or wrong.
fn piece() -> impl Strategy<Value = String> {
    let fixed = prop::sample::select(vec![
        "a",
        "end",
        "in",
        "order",
        "at",
        "most",
        "try",
        "2",
        "10",
        "1h30m",
        "x=y",
        "=",
        "-",
        "--",
        "*",
        "?[ab]",
        "~",
        "{",
        "}",
        "#",
        "%",
        ".add.",
        ".eq.",
        ".x.",
        "é世",
        "\\ ",
        "\\;",
        "\\\\",
        "\\\n",
        "\\$",
        "$",
        "$a",
        "$1",
        "${10}",
        "$#",
        "$@",
        "$*",
        "$$",
        "${a}b",
        "$(b)",
        "$((n))",
        "$((-n + 2*(n-1)))",
        "$(echo 'a\n  b' \"c\n$a\")",
        "${a:-b c}",
        "${a:-}",
        "${a:+'}'\\}\"$b\"}",
        "${a:-${b:-c}}",
        "${f(x)}",
        "${ f ( 'x }' , $a ) .add. \"$a\" }",
        "${a:-${f()}}",
        "\"a${f(\"x $a\")}\"",
        "${f(",
        "'a b'",
        "'\\''",
        "'\\\\'",
        "'a\\b\n'",
        "\"\"",
        "\"a b\"",
        "\"$a\"",
        "\"${a}b\"",
        "\"\\$\\\"\\`\\\\ \\n\"",
        "\"$\"",
        "\"$a\\\nb\"",
        "\"\\\n\"",
        "\"it's `that\"",
        "\"${a:-it's}\"",
        "\"${a:-\\}$b}\"",
        "\"a\r\nb\"",
        "(",
        ")",
        ",",
    ]);
    prop_oneof![8 => fixed.prop_map(str::to_owned), 1 => "[ -~]{0,4}"]
}

fn word() -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 1..4).prop_map(|pieces| pieces.concat())
}

fn redirect() -> impl Strategy<Value = String> {
    let operator = prop::sample::select(vec![
        ">", ">>", "<", "2>", "2>>", "0<", ">&", "&>", "&>>", ">>&", "->", "->>", "2->", "->&",
        "->>&", "-<", "<<<", "9>", "3<",
    ]);
    let target = prop_oneof![Just("v".to_owned()), Just("$f".to_owned()), word()];
    prop_oneof![
        3 => (operator, prop::bool::ANY, target)
            .prop_map(|(operator, blank, target)| {
                format!("{operator}{}{target}", if blank { " " } else { "" })
            }),
        1 => prop::sample::select(vec!["2>&1", ">&2", "1>&2", "2>>&1", "<&3"])
            .prop_map(str::to_owned),
    ]
}

fn simple() -> impl Strategy<Value = String> {
    let item = prop_oneof![5 => word(), 1 => redirect()];
    let start = prop_oneof![
        4 => Just(String::new()),
        1 => word().prop_map(|word| format!("A={word} ")),
        1 => redirect().prop_map(|redirect| format!("{redirect} ")),
        1 => (redirect(), word()).prop_map(|(redirect, word)| format!("{redirect} x={word} ")),
    ];
    (start, prop::collection::vec(item, 1..4))
        .prop_map(|(start, items)| format!("{start}{}", items.join(" ")))
}

fn pipeline() -> impl Strategy<Value = String> {
    let pipe = prop::sample::select(vec![" | ", "|", " |& ", " |\n "]);
    (prop::collection::vec(simple(), 1..3), pipe).prop_map(|(stages, pipe)| stages.join(pipe))
}

fn expr() -> impl Strategy<Value = String> {
    let operator = prop::sample::select(vec![
        ".or.",
        ".and.",
        ".eq.",
        ".ne.",
        ".eql.",
        ".lt.",
        ".contains.",
        ".add.",
        ".sub.",
        ".mul.",
        ".mod.",
        ".pow.",
        ".to.",
    ]);
    let prefix = prop::sample::select(vec![".not.", ".exists.", ".isdir."]);
    let leaf =
        prop_oneof![4 => word(), 1 => simple().prop_map(|it| format!(".succeeds. ( {it} )"))];
    leaf.prop_recursive(4, 16, 3, move |inner| {
        prop_oneof![
            inner.clone().prop_map(|it| format!("( {it})")),
            (prefix.clone(), inner.clone()).prop_map(|(op, it)| format!("{op} {it}")),
            (inner.clone(), operator.clone(), inner.clone())
                .prop_map(|(left, op, right)| format!("{left} {op} {right}")),
            (inner.clone(), inner.clone())
                .prop_map(|(from, to)| format!("{from} .to. {to} .step. 2")),
            prop::collection::vec(inner, 0..3).prop_map(|args| format!("f ({})", args.join(" , "))),
        ]
    })
}

fn duration() -> impl Strategy<Value = String> {
    let unit = prop::sample::select(vec![
        "seconds", "second", "minutes", "hours", "day", "ms", "s", "times", "time",
    ]);
    prop_oneof![
        (prop::sample::select(vec!["1", "5", "1.5", "$n", "(2 .mul. 3)"]), unit)
            .prop_map(|(amount, unit)| format!("{amount} {unit}")),
        prop::sample::select(vec!["1h30m", "500ms", "$d"]).prop_map(str::to_owned),
    ]
}

fn try_head() -> impl Strategy<Value = String> {
    let backoff = prop::sample::select(vec![
        "full",
        "none",
        "fixed from 3 s",
        "full from 100 ms to 20 s by 2",
        "normal jitter 10%",
        "normal jitter $p%",
        "proportional jitter (1 .add. 2) %",
        "slotted to $m",
    ]);
    let clause = prop_oneof![
        duration(),
        duration().prop_map(|it| format!("for {it}")),
        duration().prop_map(|it| format!("or {it}")),
        duration().prop_map(|it| format!("every {it}")),
        duration().prop_map(|it| format!("each {it}")),
        backoff.prop_map(|it| format!("backoff {it}")),
        expr().prop_map(|it| format!("while {it}")),
        Just("atomic".to_owned()),
    ];
    prop::collection::vec(clause, 0..4).prop_map(|clauses| format!("try {}", clauses.join(" ")))
}

/// Generates one line, or several lines of one statement.
fn lines() -> impl Strategy<Value = String> {
    let comment = prop::sample::select(vec!["", "", "", " # why", "\n\n\n", "  ;", " ; # x", "\r"]);
    let document = prop::sample::select(vec![
        "cat <<E\na $x\\\nb `\nE",
        "cat <<E\nE",
        "cat <<-E\n  a ${x:-b\n  c} $(echo 'd\n   e' \"f\n  $g\")\n  $(cat <<F\n   h\n  F\n  )\n  E",
        "cat <<'E F' >x\n$x\\\n\r\nE F",
        "a <<A | b <<B\nA\n$x\nB",
        "cat <<E; echo\nE\\\n\n\\$a \\`\"\\\"${a}b\nc\\\nE",
    ]);
    let line = prop_oneof![
        4 => pipeline(),
        2 => expr().prop_map(|it| format!("a={it}")),
        1 => Just("a=".to_owned()),
        1 => Just("a=#b".to_owned()),
        1 => expr().prop_map(|it| format!("return {it}")),
        1 => Just("shift 2".to_owned()),
        1 => document.prop_map(str::to_owned),
        1 => Just("# comment".to_owned()),
        1 => Just(String::new()),
    ];
    (line, comment).prop_map(|(line, comment)| format!("{line}{comment}\n"))
}

fn block() -> impl Strategy<Value = String> {
    let list = prop::collection::vec(expr(), 0..4).prop_map(|list| list.join(" ")).boxed();
    lines().prop_recursive(4, 24, 4, move |inner| {
        let body = prop::collection::vec(inner, 0..4).prop_map(|lines| lines.concat());
        let end = prop_oneof![
            4 => Just("end\n".to_owned()),
            1 => redirect().prop_map(|it| format!("end {it} # done\n")),
            1 => pipeline().prop_map(|it| format!("end |& {it} # done\n")),
            1 => pipeline().prop_map(|it| format!("end > x | {it} |\n while b # c\nd\n#e\nend | f\n")),
        ];
        let start = prop_oneof![
            4 => Just(String::new()),
            1 => pipeline().prop_map(|it| format!("{it} | ")),
            1 => Just("a 2>&1 |&\n\n ".to_owned()),
        ];
        prop_oneof![
            body.clone(),
            (expr(), body.clone(), expr(), body.clone(), end.clone()).prop_map(
                |(condition, body, other, rest, end)| {
                    format!("if {condition}\n{body}else if {other}\n{rest}else\n{body}{end}")
                }
            ),
            (start.clone(), expr(), word(), body.clone(), end.clone()).prop_map(
                |(start, value, pattern, body, end)| {
                    format!("{start}case {value} # which\n# a\nwhen {pattern} b\n{body}when c\nelse\n{body}{end}")
                }
            ),
            (start.clone(), expr(), body.clone(), end.clone()).prop_map(
                |(start, it, body, end)| format!("{start}while {it} # loop\n{body}{end}")
            ),
            (
                prop::sample::select(vec!["for", "forany", "forall"]),
                list.clone(),
                body.clone(),
                end.clone()
            )
                .prop_map(|(kind, list, body, end)| {
                    let clause =
                        if kind == "forany" { " in order hedge after 5s at most 2" } else { "" };
                    format!("{kind} x in {list}{clause}\n{body}{end}")
                }),
            (start, try_head(), body.clone(), body.clone(), prop::bool::ANY, end).prop_map(
                |(start, head, body, rest, catch, end)| {
                    let catch = if catch { format!("catch\n{rest}") } else { String::new() };
                    format!("{start}{head}\n{body}{catch}{end}")
                }
            ),
            body.prop_map(|body| format!("function f-1\n{body}end\n")),
        ]
    })
}

/// Parses and prints a text, if the text is a script.
fn check(text: &str) {
    let Ok(script) = parse_part(text) else { return };
    let printed = print(&script);
    let again = parse_part(&printed)
        .unwrap_or_else(|errors| panic!("of:\n{text}\nprinted:\n{printed}\n{errors:?}"));
    assert_eq!(shape(&again), shape(&script), "of:\n{text}\nprinted:\n{printed}");
    assert_eq!(print(&again), printed);
}

/// With blanks around `>`, the first two are comparisons.
#[test]
fn redirections_of_conditions_are_printed_as_they_are_meant() {
    for condition in ["2=>a", "7z>log", "a>b", "./7z>log"] {
        check(&format!("if {condition}\nend\n"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn printing_is_the_inverse_of_parsing(text in block()) {
        check(&text);
    }

    #[test]
    fn printing_commands_is_the_inverse_of_parsing(text in pipeline()) {
        check(&text);
    }

    #[test]
    fn printing_expressions_is_the_inverse_of_parsing(text in expr()) {
        check(&format!("if {text}\nend"));
        check(&format!("a={text}"));
        check(&format!("for x in {text}\nend"));
    }

    #[test]
    fn printing_tries_is_the_inverse_of_parsing(text in try_head()) {
        check(&format!("{text}\nend"));
    }

    #[test]
    fn any_text_parses_or_fails(text in "\\PC{0,80}") {
        check(&text);
    }

    #[test]
    fn any_mixture_of_symbols_parses_or_fails(
        text in r#"([a${}()"'`\\|&<>;#=.\-%\n ]|try |end|if |\.add\.|<<E|:-|:\?|<<-E){0,40}"#,
    ) {
        check(&text);
    }
}

/// Parses commands that are no expressions because of the positions of their redirections.
#[test]
fn redirections_stay_in_front_of_ambiguous_words() {
    let kept = [
        "> f x=y'\\\\'.add. ${10}",
        "> f 2> g x=\"a\".to.'b' 4",
        "> f x='a'.add.,b c",
        "> f x=y\\\n.add. b",
        "> f x='a'.add. y=1 b",
        "> f x=y .add.,c",
        "x=y > f )b",
        "> f x='a'.add. > g )b",
        "x='a'.y. > g )b",
    ];
    for text in kept {
        assert_eq!(tidied(text), format!("{text}\n"));
    }
    let moved = [
        ("> f x=y ./b", "x=y ./b > f"),
        ("> f x=y b (", "x=y b ( > f"),
        ("> f x='a'.txt b", "x='a'.txt b > f"),
        ("> f x=y.add. b", "x=y.add. b > f"),
        ("> f x=$y.add. b", "x=$y.add. b > f"),
        ("> f x=y z='a'.add. b", "x=y z='a'.add. b > f"),
        ("> f echo .add. )", "echo .add. ) > f"),
        ("x=y > f .add.)b > g", "> f > g x=y .add.)b"),
    ];
    for (text, printed) in moved {
        assert_eq!(tidied(text), format!("{printed}\n"), "{text}");
    }
}

#[test]
fn a_byte_order_mark_in_text_is_kept() {
    check("\n\u{feff}echo");
    check("# x\n\u{feff}echo\n\u{feff}=1");
    let script = crate::parse("script", "\n\u{feff}").expect("a command");
    assert!(crate::print(&script).contains('\u{feff}'));
}

#[test]
fn many_random_programs_parse() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let programs = (0..400)
        .filter_map(|_| block().new_tree(&mut runner).ok())
        .filter(|tree| parse_part(&tree.current()).is_ok())
        .count();
    assert!(programs > 80, "only {programs} of 400");
    tidied("");
}
