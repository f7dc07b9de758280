//! Structures in pipelines, and messages for code that cannot be a stage.

use insta::assert_snapshot;

use super::{rendered_errors, tidied};

#[test]
fn structures_are_stages() {
    assert_snapshot!(tidied(
        "for x in a b # c\necho $x\nend > f 2>&1 |& try 3 times\ncat\ncatch # no\nend |\n gzip <<E | while true # last\ntext\nE\nbreak\nend -> v # done\n\nls"
    ), @"
for x in a b # c
    echo $x
end > f 2>&1 |& try 3 times
    cat
catch # no
end | gzip <<E | while true # last
text
E
    break
end -> v # done

ls
");
    assert_snapshot!(tidied("try; ls; end|sort; cat f | if a; b; else; c; end"), @"
try
    ls
end | sort
cat f | if a
    b
else
    c
end
");
}

#[test]
fn a_quoted_keyword_is_a_program() {
    assert_snapshot!(tidied("a | 'while' true | \\end"), @r"a | 'while' true | \end");
    assert_snapshot!(tidied("a | for-all x; b |& iffy; c | return-it"), @"
a | for-all x
b |& iffy
c | return-it
");
    assert_snapshot!(tidied("function break; a; end; b | break"), @"
function break
    a
end
b | break
");
}

#[test]
fn statements_that_are_no_stage_are_refused() {
    for (text, message, hint) in [
        ("x=1 | cat", "unexpected `|`", "an assignment can't be a stage"),
        ("cat | x=1", "expected a command", "an assignment can't be a stage"),
        ("cat | x=1 | b", "unexpected `|`", "an assignment can't be a stage"),
        ("function f; local x=1 | cat; end", "an assignment can't be a stage", ""),
        ("try; a; end | local x", "an assignment can't be a stage", ""),
        ("return | cat", "unexpected `|`", "is a command, a call or a structure"),
        ("cat | return 1", "`return` can't be a stage", ""),
        ("cat | shift", "`shift` can't be a stage", ""),
        ("try; a; end | else", "`else` can't be a stage", ""),
        ("cat | end", "`end` can't be a stage", ""),
        ("break | cat", "`break` can't be a stage", ""),
        ("for x in a; b | continue; end", "`continue` can't be a stage", ""),
        ("a | function f; b; end", "a function's definition can't be a stage", ""),
        ("function f; b; end | a", "a function's definition can't be a stage", ""),
        ("try 5 times | cat\nend", "unexpected `|`", "after its `end`"),
        ("cat | for x in a | b\nend", "unexpected `|`", "after its `end`"),
        ("x=.succeeds. (a | while b)", "a command is expected here, and no `while`", ""),
        (
            "x=.succeeds. (seq 3 | while .succeeds. (read l); success; end)",
            "a command is expected here, and no `while`",
            "put the structure into a function",
        ),
        (
            "if .succeeds. (try; a; end)\nb\nend",
            "a command is expected here, and no `try`",
            "a function",
        ),
        ("> f while true", "`while` can't follow a redirection or an assignment", ""),
        ("cat <<E | try\nE\na\nend |\nb <<F | c |\nd\nF\n", "the text of a here-document", ""),
    ] {
        let errors = rendered_errors(text);
        assert!(errors.contains(message) && errors.contains(hint), "{text}:\n{errors}");
    }
}

#[test]
fn jumps_cannot_leave_a_stage() {
    for (text, keyword) in [
        ("for x in a; if true; break; end | cat; end", "break"),
        ("while true; cat | if true; continue; end; end", "continue"),
        ("function f; a | while true; return 1; end; end", "return"),
        ("function f; a | try; b; catch; if c; return; end; end; end", "return"),
    ] {
        let message = format!("`{keyword}` can't leave a stage of a pipeline");
        let errors = rendered_errors(text);
        assert!(errors.contains(&message), "{text}:\n{errors}");
    }
    for text in [
        "a | while true; break; end | for x in b; continue; end",
        "a | forall x in b; return; end",
        "a | if true; function f; return 1; end; end",
        "try; a; finally; if true; exit 3; end | b; end",
        "a | forany x in b; break; end",
    ] {
        tidied(text);
    }
}

#[test]
fn errors_in_heads_after_a_pipe_are_reported() {
    assert_snapshot!(rendered_errors("a | try 5 minutse\nend\nb | while\nend | for x a\nend | sort"), @"
error[unknown-unit]: unknown unit `minutse`
 --> t:1:11
  |
1 | a | try 5 minutse
  |           ^^^^^^^ expected `times`, `seconds`, `minutes`, `hours` or `days`
  = hint: did you mean `minutes`?

error[unexpected]: expected a value
 --> t:3:10
  |
3 | b | while
  |          ^ the command ends here

error[unexpected]: unexpected `a`
 --> t:4:13
  |
4 | end | for x a
  |             ^ expected `in` and a list
");
    assert_snapshot!(rendered_errors("if true\n    a | while true\n        b\nend\n"), @"
error[missing-end]: this `while` has no `end`
 --> t:2:9
  |
2 |     a | while true
  |         ^^^^^
 ...
4 | end
  | --- this `end` is indented like the `if`
");
}
