//! Text made to overflow, hang or confuse the parser.

use super::*;

/// Parses, prints and drops a text, and returns the printed script or the first error.
///
/// A test runs on a stack of 2 MB.
fn outcome(text: &str) -> std::result::Result<String, String> {
    match parse_part(text) {
        Ok(script) => Ok(print(&script)),
        Err(errors) => Err(errors.errors[0].message.clone()),
    }
}

/// Returns `n` levels of `open` and `close` around `inside`.
fn nested(open: &str, inside: &str, close: &str, n: usize) -> String {
    format!("{}{inside}{}", open.repeat(n), close.repeat(n))
}

#[test]
fn structures_nest_a_thousand_deep() {
    for (open, close) in [
        ("try\n", "end\n"),
        ("if a\n", "else\nend\n"),
        ("try\ncatch\n", "end -> v\n"),
        ("forall x in a\n", "end\n"),
        ("a | try\n", "end | b\n"),
    ] {
        let printed = outcome(&nested(open, "echo\n", close, 1000)).expect("a program");
        assert!(printed.len() > 1000 * 1000, "indented by depth");
        for depth in [1001, 3000, 100_000] {
            assert_eq!(
                outcome(&nested(open, "", close, depth)).expect_err("too deep"),
                "structures nest at most 1000 deep"
            );
        }
    }
}

#[test]
fn parentheses_and_substitutes_nest_a_hundred_deep() {
    for (open, inside, close) in
        [("(", "1", ")"), ("f(", "", ")"), ("${a:-", "", "}"), (".not. (", "x", ")")]
    {
        let line = |n| format!("a={}", nested(open, inside, close, n));
        let printed = outcome(&line(100)).expect("a program");
        assert_eq!(printed.trim_end(), line(100));
        for depth in [101, 5000, 100_000] {
            assert_eq!(
                outcome(&line(depth)).expect_err("too deep"),
                "parentheses and `${…}` nest at most 100 deep"
            );
            let unclosed = format!("a={}", open.repeat(depth));
            outcome(&unclosed).expect_err("unclosed");
        }
    }
}

#[test]
fn operators_chain_a_thousand_long() {
    let message = "an expression has at most 1000 operators in a row";
    for operators in [[" .add.", " 1"], [" .and.", " true"]] {
        let chain = |n: usize| format!("a=1{}", operators.concat().repeat(n));
        outcome(&chain(999)).expect("a program");
        assert_eq!(outcome(&chain(100_000)).expect_err("too long"), message);
    }
    let chain = |n: usize| format!("a={}x", ".not. ".repeat(n));
    outcome(&chain(999)).expect("a program");
    assert_eq!(outcome(&chain(100_000)).expect_err("too long"), message);
    // Each level of parentheses may hold a chain.
    let deep = nested("(1 .add. 2 .add. 3 .add. 4 .add. ", "5", ")", 100);
    outcome(&format!("a={deep}")).expect("a program");
}

/// Parses long texts that rules could match in many ways. The time must be linear in the length;
/// otherwise this test hangs.
#[test]
fn no_text_takes_long() {
    let unit = 5_000;
    let shapes = [
        "(",
        "if (",
        "if f(",
        "for x in f(a ",
        "echo \"$((",
        "a=b=c=",
        "a= ",
        "echo ${",
        "${a:-",
        "echo \"${a:-",
        "|",
        "a|",
        "a|\n",
        "a ",
        "a",
        ";",
        "a;",
        "\n",
        "a\n",
        ";\n",
        "|\n",
        "|;",
        "a <<X\n",
        "a <<X;",
        "| <<X\n",
        "cat <<X\nX\n",
        "\"",
        "'\n",
        "\"'\n",
        "`",
        "\"`a",
        "\"`\n",
        "\\\n",
        "a\\\n",
        "\r",
        "\\\r",
        "a\r\n",
        ".not. ",
        "a .add. ",
        "if .eq. ",
        "try\n",
        "end\n",
        "try 5 times ",
        "try for ",
        "forany x in in order ",
        "forall x in at most ",
        "forany x in hedge after 1s at most ",
        "forany x in a hedge after (",
        "at most (",
        "forall x in at most (",
        "else if b\n",
        "if a\nelse if b\n",
        "function f\nend\n",
        "#",
        "# ",
        "<",
        ">&",
        "a<b",
        "2>",
        "- > ",
        "if .succeeds. (",
        "echo # c\n",
        "é",
        "A=1 ",
        "A=(1 ",
        "A=f(",
        "A=1 .add. (",
        "\0",
        "\u{feff}",
        "$",
        "$$",
        "\"$",
        "${a}",
        "\"\\",
        "'\\",
        "catch\n",
        "else\n",
        "}\n",
        "fi\n",
        "try backoff full from ",
        "(((a .add. ",
        "a=.not. (",
    ];
    for shape in shapes {
        let text = shape.repeat(unit / shape.len());
        let _ = outcome(&text);
        let once = format!("{shape}{}", text.split_once(' ').map_or("", |it| it.1));
        let _ = outcome(&once);
    }
}

/// Counts the commands examined for misplaced lines, each of which is examined once at most. In an
/// earlier version, 10 KB took half a second.
#[test]
fn misplaced_lines_are_explained_once() {
    for (shape, commands) in
        [("a; bc; end\n", 2), ("a | b; abc; end; catch\n", 1), ("tyr; end\n", 1)]
    {
        let count = 1000;
        misspelled::EXAMINED.set(0);
        outcome(&format!("{}{}", "[ a ]; ".repeat(count), shape.repeat(count)))
            .expect_err("stray lines");
        let examined = misspelled::EXAMINED.get();
        assert!(
            (1..=count * (1 + commands)).contains(&examined),
            "{examined} examined in {shape:?}"
        );
    }
}

#[test]
fn any_bytes_parse_or_fail() {
    use rand::{Rng, SeedableRng};
    let mut rng = rand::rngs::ChaCha8Rng::seed_from_u64(2003);
    for _ in 0..50 {
        let mut bytes = vec![0; 4000];
        rng.fill_bytes(&mut bytes);
        if let Err(errors) = parse_bytes("t", &bytes) {
            diagnostic::render_all(&errors);
        }
        let ascii: Vec<u8> = bytes.iter().map(|byte| 9 + byte % 118).collect();
        if let Err(errors) = parse_bytes("t", &ascii) {
            diagnostic::render_all(&errors);
        }
    }
}
