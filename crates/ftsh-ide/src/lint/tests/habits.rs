//! Spellings of other languages that are text here.

use super::{assert_quiet, messages, warnings};

#[test]
fn text_that_looks_like_an_expression() {
    let is = |text: &str, message: &str| assert_eq!(messages(text), [message], "{text}");
    is("echo 1 + 2", "this is text: nothing is calculated");
    is("sleep $n - 1", "this is text: nothing is calculated");
    is("for n in 1..3; a; end", "`1..3` is text, and no range");
    is("for n in 1..$n; a; end", "`1..$n` is text, and no range");
    is("n=2 .pow. 3 .pow. 2", "powers in a row are calculated from the left");
    is("y=($x .eq. a .or. b)", "`b` is neither `true` nor `false`: the condition fails");
    assert_quiet(&[
        "expr 1 + 2; echo a - b; echo 1 +2; git log a..b",
        "x=\"\" ls; x=1 ls; for f in ..; a; end",
        "n=2 .pow. (3 .pow. 2); m=(2 .pow. 3) .pow. 2",
        "if true .or. $x; a; end; while $x .and. (false); a; end",
    ]);
}

#[test]
fn patterns_for_others() {
    let local = "this is a pattern for local files whose names begin like the word";
    for text in ["rsync host:*.c .", "rsync a@b.c:/d/?.e .", "tar --exclude=*.o a"] {
        assert_eq!(messages(text), [local], "{text}");
    }
    let deep = "`**` means the same as `*`: it matches names in one directory";
    for text in ["ls **/*.c", "for f in src/**; a; end"] {
        assert_eq!(messages(text), [deep], "{text}");
    }
    assert_quiet(&["a 'host:*.c'", "curl http://a/b?c", "ls *.c", "a --b=c", "x=\"a:*\""]);
}

#[test]
fn groups_in_double_quotes() {
    let text = "function f\n v=replace(a, '(a)', \"<$1>\")\n echo $v\nend\nf a";
    assert_eq!(messages(text), ["in double quotes, `$1` is an argument of the script"]);
    assert_quiet(&["v=replace(a, '(a)', '<$1>'); w=replace(a, b, \"$v\")"]);
}

#[test]
fn reads_after_an_unset() {
    assert_eq!(messages("x=\necho a\necho $x"), ["`x` is not set here: `x=` unsets it"]);
    assert_quiet(&[
        "x=\nx=1\necho $x",
        "x=\nread x\necho $x",
        "x=\na -> x\necho $x",
        "x=\necho ${x:-a}",
        "x=\nif true; x=1; end\necho $x",
        "x=\nf\necho $x\nfunction f; x=1; end",
    ]);
}

#[test]
fn files_of_other_shells_in_an_atomic_try() {
    let text = "try 2 times atomic\n try 2 times atomic\n  sh -c 'a >> f'\n end\nend";
    let message = "this file is opened by another shell: a failed attempt leaves what it appended";
    assert!(messages(text).contains(&message.to_owned()));
    assert_quiet(&["try 2 times; sh -c 'a >> f'; end"]);
}

#[test]
fn files_that_a_failed_atomic_attempt_leaves() {
    for file in ["a > f", "a >> \"$f\"", "a 2> f", "if true; a; end > f"] {
        let warnings = warnings(&format!("f=x\ntry 2 times atomic\n {file}\nend"));
        assert!(warnings.starts_with("warning[file-in-atomic]: a failed attempt"), "{warnings}");
    }
    assert_quiet(&[
        "try 2 times atomic; a > $scratch/f; b > \"$scratch/g\" < h; end > f",
        "try 2 times atomic; a > /dev/null; b -> v; c 2>&1; end",
        "try 2 times atomic in d; a > d/f; end",
        "try 2 times; a > f; end",
    ]);
}

#[test]
fn statements_that_retries_never_reach_or_repeat() {
    for ends in ["exit 3", "exit $status", "if a; exit 1; end", "return 2"] {
        let warnings = warnings(&format!("try 3 times\n {ends}\nend"));
        assert!(warnings.contains("[leaves-attempts]: this ends the script"), "{ends}: {warnings}");
    }
    for repeats in ["shift", "list add l b", "while $#; shift 2; end"] {
        let warnings = warnings(&format!("list l in a\ntry 3 times\n {repeats}\nend"));
        assert!(warnings.contains("[repeated-change]: each attempt"), "{repeats}: {warnings}");
    }
    assert_quiet(&[
        "try 3 times; a; exit 0; end",
        "try 3 times; a; return; end",
        "try 3 times; forall x in a b; exit 1; end; end",
        "try; a; exit 3; end",
        "try 3 times; a; catch; exit 3; end",
        "try 3 times; list l in a; list add l b; c $l; end",
    ]);
}

#[test]
fn output_of_failed_attempts_in_a_pipeline() {
    let message = "the next command also reads what failed attempts print";
    assert!(messages("try 3 times; a; end | b").contains(&message.to_owned()));
    assert!(messages("try 3 times; a; end 2> f | b").contains(&message.to_owned()));
    let message = "each attempt appends to this file: failed attempts leave their output";
    assert_eq!(messages("try 3 times -- a | b >> f"), [message]);
    assert_eq!(messages("limit 1 s -- try 3 times -- a | b >> f"), [message]);
    assert_quiet(&[
        "try 3 times; a; end > f | b",
        "try 3 times -- a | b > f",
        "try 3 times -- a | b 2>> f",
        "try 3 times -- a >> f",
        "try -- a | b >> f",
        "try 3 times atomic; a; end | b",
        "try; a; catch; b; end | c",
        "a | try 3 times; b; end",
    ]);
}
