//! `in`, and `catch` and `finally` of loops, functions and `in`.

use super::{parse, rendered_errors, tidied};
use crate::ast::CommandKind;

#[test]
fn only_one_value_makes_in_a_head() {
    for directory in ["build", "$dir", "\"my files\"", "~/src", "dirname($f)", "$(pwd)", "a*"] {
        let text = format!("in {directory}\n    make\nend > log\n");
        assert_eq!(tidied(&text), text);
    }
    assert_eq!(tidied("a|in  b;c;end|d"), "a | in b\n    c\nend | d\n");
    for command in ["in", "in a b", "in > f"] {
        let errors = rendered_errors(command);
        assert!(errors.contains("this is not a form of `in`"), "{command}: {errors}");
    }
    for command in ["./in a", "\"in\" a"] {
        let script = parse("t", command).unwrap_or_else(|errors| panic!("{command}: {errors:?}"));
        assert!(matches!(script.body.commands[0].kind, CommandKind::Pipeline(_)), "{command}");
    }
    assert!(parse("t", "function in; a; end\nin build").is_ok(), "a function takes precedence");
    let errors = rendered_errors("in my files\n    a\nend");
    assert!(errors.contains("one directory comes after `in`"), "{errors}");
    let errors = rendered_errors("in a\n    b\n");
    assert!(errors.contains("this `in` has no `end`"), "{errors}");
}

#[test]
fn loops_functions_and_in_have_catch_and_finally() {
    let heads = [
        "for x in a b",
        "for x from input",
        "forany x in a b in order",
        "forall x in a b at most 2",
        "while $x < 5",
        "in build",
        "function f",
    ];
    for head in heads {
        for parts in ["catch\n    b # c\n", "finally\n    c\n", "catch\nfinally\n    c\n"] {
            let text = format!("{head} # note\n    a\n{parts}end\n");
            assert_eq!(tidied(&text), text);
        }
    }
    let text = "a | for x from input\n    b\ncatch\n    c\nend > f | d\n";
    assert_eq!(tidied(text), text);
    // The innermost structure with such parts has them, also inside of others.
    let text = "function f\n    for x in a\n        if $x == a\n            b\n        end\n    catch\n        \
                try\n            c\n        catch\n            d\n        end\n    end\nfinally\n    e\nend\n";
    assert_eq!(tidied(text), text);
}

#[test]
fn parts_of_blocks_have_an_order() {
    for (text, message) in [
        ("for x in a\n  b\nfinally\n  c\ncatch\n  d\nend", "`catch` comes before `finally`"),
        ("in a\n  b\ncatch\n  c\ncatch\n  d\nend", "a `in` has only one `catch`"),
        ("function f\n  b\nfinally\nfinally\nend", "a `function` has only one `finally`"),
        ("if true\n  b\ncatch\n  c\nend", "`catch` without `try`"),
        ("for x in a\n  b\ncatch\n  break\nend", "`break` is outside of a loop"),
        ("for x in a\n  b\nfinally\n  return\nend", "`return` can't leave a `finally`"),
    ] {
        let errors = rendered_errors(text);
        assert!(errors.contains(message), "{text}: {errors}");
        assert_eq!(errors.matches("error[").count(), 1, "{errors}");
    }
}

#[test]
fn structures_around_one_command_stand_on_one_line() {
    for text in [
        "try 3 times -- curl $url",
        "try for 5 minutes while $error_code == 75 -- sendmail -q",
        "limit 5 minutes signal INT -- make -j --",
        "for x in a b -- echo -- $x",
        "for x in a -- y=$x",
        "for x in 1 .to. 3 + 1 -- echo $x",
        "forany m in a b hedge after 2 seconds -- curl $m | tar x > log",
        "forall h in a b at most 2 -- ssh $h true < input > log 2>&1",
        "forall f from input at most 8 -- flac $f",
        "in build -- make > log",
        "limit 5 minutes -- try 3 times atomic in /srv -- in build -- make > log",
        "for x in \"--\" -- echo $x # c",
        "if true\n    in a -- b\nend",
        "x=$(in a -- b)",
    ] {
        assert_eq!(tidied(text), format!("{text}\n"));
    }
    assert_eq!(tidied("for x in a --\n  b\nend"), "for x in a --\n    b\nend\n");
    assert_eq!(tidied("list l in a -- b"), "list l in a -- b\n");
    let text = "in a -- b; c\ntry 2 times -- cat <<E > f\ntext\nE\nd";
    assert_eq!(tidied(text), "in a -- b\nc\ntry 2 times -- cat <<E > f\ntext\nE\nd\n");
    for head in ["for x in a", "try 2 times", "limit 1 s", "in d -- try"] {
        for input in ["< c", "-< c", "<<< c", "<&3"] {
            let text = format!("{head} -- b {input} > d");
            let script = parse("t", &text).expect("a script");
            let command = &script.body.commands[0];
            let modes: Vec<_> = command.redirects.iter().map(|it| it.mode).collect();
            assert!(command.one_line && modes == [crate::ast::Mode::Write], "{text}: {command:?}");
        }
    }
}

#[test]
fn one_line_has_one_command() {
    for (text, message) in [
        ("if $x == 1 -- a", "unexpected `--`"),
        ("while true -- a", "needs no `end`"),
        ("if true -- a", "needs no `end`"),
        ("with b 5 -- a", "needs no `end`"),
        ("function f -- a", "`--`"),
        ("try 3 times -- for x in a\n  b\nend", "`--` belongs between"),
        ("try 3 times -- a | while read x\n  b\nend", "`--` belongs between"),
        ("a | try 3 times -- b", "is not a stage of a pipeline"),
        ("try 3 times -- end", "`--` belongs between"),
    ] {
        let errors = rendered_errors(text);
        assert!(errors.contains(message), "{text}: {errors}");
    }
}

#[test]
fn output_of_one_line_is_outside_of_the_variables_of_its_structure() {
    for target in [
        "$x.txt",
        "\"$x.txt\"",
        "${stem($x)}.up",
        "${format(\"%s\", $x)}",
        "$(echo $x)",
        "$(if true; echo \"${l[$x]}\"; end)",
        "$((x + 1))",
        "${l[$x]}",
        "\"${l[$x]}\"",
        "${d:-$x}",
    ] {
        let errors = rendered_errors(&format!("for x in a b -- echo $x > {target}"));
        let message = "the redirection is that of the whole `for`, outside of `$x`";
        assert!(errors.contains(message), "{target}: {errors}");
    }
    for (text, message) in [
        ("forall x in a -- b > f.$slot", "the whole `forall`, outside of `$slot`"),
        ("try 2 times -- b 2> f.$attempt", "the whole `try`, outside of `$attempt`"),
        ("try 2 times -- in d -- b > ${f:-$elapsed}", "the whole `try`, outside of `$elapsed`"),
        ("try for 1 s -- limit 1 s -- b >> $remaining", "outside of `$remaining`"),
    ] {
        let errors = rendered_errors(text);
        assert!(errors.contains(message), "{text}: {errors}");
    }
    for text in [
        "for x in a -- b < $x > '$x'",
        "for x in a -- b $x | c > $x",
        "for x in a -- b > $slot.$attempt",
        "limit 1 s -- b > $attempt",
    ] {
        assert!(parse("t", text).is_ok(), "{text}");
    }
}

#[test]
fn a_command_stands_beside_a_group() {
    for text in [
        "with ./server --port 8080 > log\n    a\nend > out\n",
        "with a | b -- c\n    d\ncatch\n    e\nfinally\n    f\nend\n",
        "a | with b\n    c\nend\n",
    ] {
        assert_eq!(tidied(text), text);
    }
    for command in ["with", "./with a", "\"with\" a", "with > f"] {
        let script = parse("t", command).unwrap_or_else(|errors| panic!("{command}: {errors:?}"));
        assert!(matches!(script.body.commands[0].kind, CommandKind::Pipeline(_)), "{command}");
    }
    assert!(parse("t", "function with; a; end\nwith build").is_ok(), "a function takes precedence");
    for (text, message) in [
        ("with a\n  b\n", "this `with` has no `end`"),
        ("with a\n  exec b\nend", "`exec` is not possible in a `with`"),
        ("with keep a\n  b\nend", "`keep` is not possible in the command of a `with`"),
        ("with try\n  b\nend", "a command is expected here, and no `try`"),
    ] {
        let errors = rendered_errors(text);
        assert!(errors.contains(message), "{text}: {errors}");
    }
    assert!(parse("t", "for x in a; with exec b; break; end; end").is_ok());
    assert!(parse("t", "function f; with b; return 1; end; end").is_ok());
}
