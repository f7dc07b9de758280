//! What is said of wrong scripts.

use insta::assert_snapshot;

use super::mistakes;
use crate::diagnostic;
use crate::syntax::{parse, parse_bytes};

#[test]
fn missing_ends_are_blamed_by_indentation() {
    assert_snapshot!(mistakes("function f\n    try 5 times\n        cp a b\nend\necho x\n"), @"
error: this `try` has no `end`
 --> t:2:5
  |
2 |     try 5 times
  |     ^^^
 ...
4 | end
  | --- this `end` is indented like the `function`
");
    assert_snapshot!(mistakes("try\n  if a\n    b\n  else\n    c\ncatch\n  d\nend\n"), @"
error: this `if` has no `end`
 --> t:2:3
  |
2 |   if a
  |   ^^
 ...
6 | catch
  | ----- it must end before this
");
    assert_snapshot!(mistakes("try\nwhile true\n"), @"
error: this `try` has no `end`
 --> t:1:1
  |
1 | try
  | ^^^

error: this `while` has no `end`
 --> t:2:1
  |
2 | while true
  | ^^^^^
");
}

#[test]
fn stray_lines() {
    assert_snapshot!(mistakes("end\ncatch\nelse\nelse if a\n"), @"
error: `end` without a structure to end
 --> t:1:1
  |
1 | end
  | ^^^

error: `catch` without `try`
 --> t:2:1
  |
2 | catch
  | ^^^^^

error: `else` without `if`
 --> t:3:1
  |
3 | else
  | ^^^^

error: `else` without `if`
 --> t:4:1
  |
4 | else if a
  | ^^^^^^^^^
");
    assert_snapshot!(mistakes("try\ncatch\ncatch\nend\nif a\nelse\nelse\nend"), @"
error: a `try` has only one `catch`
 --> t:3:1
  |
2 | catch
  | ----- the first one is here
3 | catch
  | ^^^^^

error: nothing can follow the last `else` of an `if`
 --> t:7:1
  |
7 | else
  | ^^^^ this `if` had its `else` already
");
    assert_snapshot!(mistakes("end foo\ncatch bar\n"), @"
error: unexpected `foo`
 --> t:1:5
  |
1 | end foo
  |     ^^^ expected the end of the command
  = hint: put the command on the next line, or after a `;`

error: unexpected `bar`
 --> t:2:7
  |
2 | catch bar
  |       ^^^ expected the end of the command
  = hint: the failure is in `$error`; put the command on the next line, or after a `;`
");
}

#[test]
fn misspelled_heads_are_blamed_for_what_they_leave_stray() {
    assert_snapshot!(mistakes("try\n  tyr 5 times\n    cp a b\n  end\nend\n"), @"
error: `tyr` begins no structure
 --> t:2:3
  |
2 |   tyr 5 times
  |   ^^^
 ...
5 | end
  | --- so this `end` belongs to none
  = hint: did you mean `try`?
");
    assert_snapshot!(mistakes("retry 5 times\n  cp a b\ncatch\n  echo\nend\nforeach x in a\n  echo\nend\nend"), @"
error: `retry` begins no structure
 --> t:1:1
  |
1 | retry 5 times
  | ^^^^^
 ...
3 | catch
  | ----- so this `catch` belongs to none
  = hint: did you mean `try`?

error: `foreach` begins no structure
 --> t:6:1
  |
6 | foreach x in a
  | ^^^^^^^
 ...
8 | end
  | --- so this `end` belongs to none
  = hint: did you mean `for`?

error: `end` without a structure to end
 --> t:9:1
  |
9 | end
  | ^^^
");
    assert!(parse("t", "retry 5 times\nrepeat\n").is_ok(), "programs may be called so");
}

#[test]
fn operators_and_clauses_of_others() {
    assert_snapshot!(mistakes("if .exist. x\nend\nif $x eq 5\nend\nif not .exists. x\nend\na |\n"), @"
error: unknown operator `.exist.`
 --> t:1:4
  |
1 | if .exist. x
  |    ^^^^^^^
  = hint: did you mean `.exists.`?

error: unexpected `eq`
 --> t:3:7
  |
3 | if $x eq 5
  |       ^^ expected an operator, or the end of the command
  = hint: an operator stands between dots: `.eq.`

error: unexpected `.exists.`
 --> t:5:8
  |
5 | if not .exists. x
  |        ^^^^^^^^ expected an operator, or the end of the command
  = hint: `not` is written `.not.`

error: expected a command
 --> t:8:1
  |
8 |
  | ^ the command ends here
");
    assert_snapshot!(mistakes("for x = 1 to 9\nend\nfor all x in a\nend\nfor (i=0; i<9; i++)\nend\nfor x from a\nend"), @"
error: unexpected `=`
 --> t:1:7
  |
1 | for x = 1 to 9
  |       ^ expected `in` and a list
  = hint: count with a range: `for n in 1 .to. 10`; else `for x in a b c`

error: unexpected `x`
 --> t:3:9
  |
3 | for all x in a
  |         ^ expected `in` and a list
  = hint: it is one word: `forall x in …`

error: unexpected `(`
 --> t:5:5
  |
5 | for (i=0; i<9; i++)
  |     ^ expected the name of the loop's variable
  = hint: no parentheses: `for x in a b c`, or `for n in 1 .to. 10` to count

error: unexpected `from`
 --> t:7:7
  |
7 | for x from a
  |       ^^^^ expected `in` and a list
  = hint: write `in`: `for x in a b c`
");
    assert_snapshot!(mistakes("try 5 times delay 5 s\nend\ntry up to 5 times\nend\ntry 5 tims or for 1 s\nend\ntry 5 times {\nend\ntry five times\nend"), @"
error: expected a duration, like `5 minutes`
 --> t:1:13
  |
1 | try 5 times delay 5 s
  |             ^^^^^
  = hint: attempts start apart with `every 5 seconds`; `backoff fixed from 5 seconds` waits between them

error: unexpected `5`
 --> t:3:11
  |
3 | try up to 5 times
  |           ^ expected a duration, like `5 minutes`
  = hint: `try 5 times` makes at most 5 attempts

error: unexpected `1`
 --> t:5:19
  |
5 | try 5 tims or for 1 s
  |                   ^ expected a limit, like `5 times` or `10 minutes`
  = hint: limits follow each other: `try for 10 minutes or 5 times`

error: expected a duration, like `5 minutes`
 --> t:7:13
  |
7 | try 5 times {
  |             ^
  = hint: a block begins on the line after its head, or after a `;`, and ends with `end`

error: expected a whole number, not `five`
 --> t:9:5
  |
9 | try five times
  |     ^^^^
  = hint: write it in digits, or `$five` if it is a variable
");
}

#[test]
fn a_mistake_hides_none_in_the_next_line() {
    assert_snapshot!(mistakes("try 5 minutse\n  a || b\nend\necho `date`\n"), @"
error: unknown unit `minutse`
 --> t:1:7
  |
1 | try 5 minutse
  |       ^^^^^^^ expected `times`, `seconds`, `minutes`, `hours` or `days`
  = hint: did you mean `minutes`?

error: unexpected `||`
 --> t:2:5
  |
2 |   a || b
  |     ^^ expected the end of the command
  = hint: `||` isn't needed: a group stops at the first failure; `try … catch … end` reacts to one

error: backquotes don't run commands
 --> t:4:6
  |
4 | echo `date`
  |      ^^^^^^
  = hint: write `date -> v`, then use `$v`
");
}

#[test]
fn functions_are_defined_once() {
    assert_snapshot!(mistakes("function f\nend\n\nfunction f\nend"), @"
error: the function `f` is defined twice
 --> t:4:10
  |
1 | function f
  |          - first defined here
 ...
4 | function f
  |          ^
");
}

#[test]
fn strings_that_never_end() {
    assert_snapshot!(mistakes("try\n  echo \"abc\nend\n"), @r#"
error: a string that never ends
 --> t:2:8
  |
2 |   echo "abc
  |        ^ its closing `"` is missing
"#);
    assert_snapshot!(mistakes("echo \"abc\necho \"def\"\nx 'y'\n"), @r#"
error: a string that never ends
 --> t:2:10
  |
1 | echo "abc
  |      - or is it this one that should end earlier?
2 | echo "def"
  |          ^ its closing `"` is missing
"#);
    assert_snapshot!(mistakes("echo 'it's'\n"), @"
error: a string that never ends
 --> t:1:11
  |
1 | echo 'it's'
  |           ^ its closing `'` is missing
");
}

#[test]
fn here_documents_are_no_commands_even_in_wrong_lines() {
    assert_snapshot!(mistakes("a || cat <<E\nthen | x\nE\ncat $? <<'E'\nfi | |\nE\nfi"), @"
error: unexpected `||`
 --> t:1:3
  |
1 | a || cat <<E
  |   ^^ expected the end of the command
  = hint: `||` isn't needed: a group stops at the first failure; `try … catch … end` reacts to one

error: there is no `$?`: a failure can't be passed over
 --> t:4:5
  |
4 | cat $? <<'E'
  |     ^^
  = hint: in `catch`, `$error_code` has the exit code and `$error` the story

error: there is no `fi` in ftsh
 --> t:7:1
  |
7 | fi
  | ^^
  = hint: every structure ends with `end`
");
}

#[test]
fn here_documents_that_never_end() {
    assert_snapshot!(mistakes("try\n  cat <<EOF\n  a\n  EOF\nend\n"), @"
error: a here-document that never ends
 --> t:2:7
  |
2 |   cat <<EOF
  |       ^^^^^ no line after this one is `EOF`
  = hint: the line that ends it holds nothing else, not even blanks
");
    assert_snapshot!(mistakes("cat <<-EOF\n\ta\n\tEOF\n"), @"
error: there is no `<<-`
 --> t:1:5
  |
1 | cat <<-EOF
  |     ^^^^^^
  = hint: write `<<WORD`; the lines up to WORD are taken as they are
");
    assert_snapshot!(mistakes("cat <<$x\n"), @"
error: the end of a here-document is a plain word
 --> t:1:7
  |
1 | cat <<$x
  |       ^^
  = hint: `<<EOF` takes the lines up to one that is `EOF`
");
    assert_snapshot!(mistakes("cat <<E |\nsort\nE\n"), @"
error: the text of a here-document is in the way of this pipeline
 --> t:2:1
  |
1 | cat <<E |
  |     --- it begins on the line after this
2 | sort
  | ^^^^
  = hint: write the whole pipeline on one line, then the text
");
    assert_snapshot!(mistakes("cat <<E\n`date`\nE\n"), @"
error: backquotes don't run commands
 --> t:2:1
  |
2 | `date`
  | ^^^^^^
  = hint: write `date -> v`, then use `$v`
");
}

#[test]
fn expressions() {
    assert_snapshot!(mistakes("if 1 .lt. 2 .lt. 3\nend\na=1 .to. 2 .to. 3\na=1 .step. 2\na=1 .to. 2 .step. 3 .step. 4"), @"
error: comparisons don't chain
 --> t:1:13
  |
1 | if 1 .lt. 2 .lt. 3
  |             ^^^^ needs parentheses
  |      ---- the other one is here
  = hint: use parentheses, or join two comparisons with `.and.`: `1 .lt. $x .and. $x .lt. 9`

error: a range can't begin or end with a range
 --> t:3:12
  |
3 | a=1 .to. 2 .to. 3
  |            ^^^^ needs parentheses
  |     ---- the other one is here
  = hint: use parentheses if it is meant

error: `.step.` without `.to.`
 --> t:4:5
  |
4 | a=1 .step. 2
  |     ^^^^^^
  = hint: write `1 .to. 100 .step. 5`

error: a range has only one `.step.`
 --> t:5:21
  |
5 | a=1 .to. 2 .step. 3 .step. 4
  |                     ^^^^^^
");
    assert_snapshot!(mistakes("if $x .matches. \"a(b\"\nend"), @r#"
error: not a regular expression: unclosed group
 --> t:1:17
  |
1 | if $x .matches. "a(b"
  |                 ^^^^^
  = hint: a `\` before a character takes away its special meaning
"#);
    assert_snapshot!(mistakes("if\nend\nif ()\nend\nif f(1,)\nend\nif .succeeds. grep x\nend\nif .succeeds. ()\nend\nreturn 1 2"), @"
error: expected a value
 --> t:1:3
  |
1 | if
  |   ^ the command ends here

error: unexpected `)`
 --> t:3:5
  |
3 | if ()
  |     ^ expected a value

error: unexpected `)`
 --> t:5:8
  |
5 | if f(1,)
  |        ^ expected a value

error: unexpected `grep`
 --> t:7:15
  |
7 | if .succeeds. grep x
  |               ^^^^ expected `(` and a command
  = hint: the command stands in parentheses: `.succeeds. (grep x)`

error: unexpected `)`
 --> t:9:16
  |
9 | if .succeeds. ()
  |                ^ expected a command

error: unexpected `2`
  --> t:11:10
   |
11 | return 1 2
   |          ^ expected an operator, or the end of the command
");
}

#[test]
fn loops() {
    assert_snapshot!(mistakes("forall x in a at most 0\nend\nforall x in a at most\nend\nfor x in a at most 3\nend\nforall x in a in order\nend"), @"
error: `0` is too few: the least is 1
 --> t:1:23
  |
1 | forall x in a at most 0
  |                       ^

error: expected a number after `at most`
 --> t:3:15
  |
3 | forall x in a at most
  |               ^^^^^^^
  = hint: `forall x in … at most 8` runs 8 at once; quote the words if they belong to the list

error: `for` takes no `at most`
 --> t:5:12
  |
5 | for x in a at most 3
  |            ^^^^^^^^^
  = hint: `forall` does; quote the words if they belong to the list

error: `forall` takes no `in order`
 --> t:7:15
  |
7 | forall x in a in order
  |               ^^^^^^^^
  = hint: `forany` does; quote the words if they belong to the list
");
    assert_snapshot!(mistakes("for 1x in a\nend\nfor x\nend\nfor\nend\nfor $x in a\nend"), @"
error: unexpected `1x`
 --> t:1:5
  |
1 | for 1x in a
  |     ^^ expected the name of the loop's variable

error: expected `in` and a list
 --> t:3:6
  |
3 | for x
  |      ^ the command ends here

error: expected the name of the loop's variable
 --> t:5:4
  |
5 | for
  |    ^ the command ends here

error: unexpected `$x`
 --> t:7:5
  |
7 | for $x in a
  |     ^^ expected the name of the loop's variable
");
}

#[test]
fn redirections() {
    assert_snapshot!(mistakes("a >&-\na 2>& f\na <& f\na >&12\na >\na 2-> | b\nfunction f\nend > g"), @"
error: a descriptor can't be closed
 --> t:1:3
  |
1 | a >&-
  |   ^^^
  = hint: to throw output away, `> /dev/null`

error: after a digit, `>&` goes to another descriptor: a digit
 --> t:2:3
  |
2 | a 2>& f
  |   ^^^^^
  = hint: `2>&1` sends errors where output goes, `>& file` sends both to a file

error: after a digit, `<&` goes to another descriptor: a digit
 --> t:3:3
  |
3 | a <& f
  |   ^^^^
  = hint: `2>&1` sends errors where output goes, `>& file` sends both to a file

error: descriptors are the digits 0 to 9
 --> t:4:3
  |
4 | a >&12
  |   ^^^^
  = hint: to write to a file of that name, `>& ./12`

error: expected a file
 --> t:5:4
  |
5 | a >
  |    ^ the command ends here

error: unexpected `|`
 --> t:6:7
  |
6 | a 2-> | b
  |       ^ expected a variable's name

error: a function's definition can't be redirected
 --> t:8:5
  |
8 | end > g
  |     ^^^
  = hint: redirect the commands inside, or each call
");
}

#[test]
fn the_rest_is_counted() {
    let text = mistakes(&"a || b\n".repeat(30));
    assert_eq!(text.matches("error:").count(), 10);
    assert!(text.ends_with("\n… and 20 more\n"), "{text}");
}

#[test]
fn a_function_of_the_script_may_be_called_like_another_shells_word() {
    assert!(crate::syntax::parse("t", "function set\nend\nset -e\n[ -f x ]\n").is_ok());
}

#[test]
fn scripts_are_utf8_without_nul() {
    let rendered =
        |bytes: &[u8]| diagnostic::render_all(&parse_bytes("t", bytes).expect_err("not a script"));
    assert_snapshot!(rendered(b"echo a\necho \xe9t\xe9\nend"), @"
error: the script isn't UTF-8: byte 12 is 0xe9
 --> t:2:6
  |
2 | echo �t�
  |      ^
  = hint: save the script as UTF-8; other bytes can come from variables, files and `printf`
");
    assert_snapshot!(rendered(b"\xff"), @"
error: the script isn't UTF-8: byte 0 is 0xff
 --> t:1:1
  |
1 | �
  | ^
  = hint: save the script as UTF-8; other bytes can come from variables, files and `printf`
");
    assert_snapshot!(rendered(b"echo a\0b"), @"
error: a script can't contain a NUL byte
 --> t:1:7
  |
1 | echo a�b
  |       ^
");
}
