//! What is said of wrong strings, expressions and redirections.

use insta::assert_snapshot;

use super::mistakes;
use crate::diagnostic;
use crate::parse_bytes;

#[test]
fn strings_that_never_end() {
    assert_snapshot!(mistakes("try\n  echo \"abc\nend\n"), @r#"
error[unclosed-string]: a string that never ends
 --> t:2:8
  |
2 |   echo "abc
  |        ^ its closing `"` is missing
"#);
    assert_snapshot!(mistakes("echo \"abc\necho \"def\"\nx 'y'\n"), @r#"
error[unclosed-string]: a string that never ends
 --> t:2:10
  |
1 | echo "abc
  |      - or is it this one that should end earlier?
2 | echo "def"
  |          ^ its closing `"` is missing
"#);
    assert_snapshot!(mistakes("echo 'it's'\n"), @"
error[unclosed-string]: a string that never ends
 --> t:1:11
  |
1 | echo 'it's'
  |           ^ its closing `'` is missing
");
}

#[test]
fn here_documents_are_no_commands_even_in_wrong_lines() {
    assert_snapshot!(mistakes("a || cat <<E\nthen | x\nE\ncat $? <<'E'\nfi | |\nE\nfi"), @"
error[and-or]: unexpected `||`
 --> t:1:3
  |
1 | a || cat <<E
  |   ^^ expected the end of the command
  = hint: `||` isn't needed: a group stops at the first failure; `try … catch … end` reacts to one

error[special-variable]: there is no `$?`: a failure can't be passed over
 --> t:4:5
  |
4 | cat $? <<'E'
  |     ^^
  = hint: in `catch`, `$error_code` has the exit code and `$error` the story

error[other-shell]: there is no `fi` in ftsh
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
error[unclosed-here-document]: a here-document that never ends
 --> t:2:7
  |
2 |   cat <<EOF
  |       ^^^^^ no line after this one is `EOF`
  = hint: the line that ends it holds nothing else, not even blanks
");
    assert_snapshot!(mistakes("cat <<-EOF\n\ta\n\tEOF\n"), @"
error[indented-here-document]: there is no `<<-`
 --> t:1:5
  |
1 | cat <<-EOF
  |     ^^^^^^
  = hint: write `<<WORD`; the lines up to WORD are taken as they are
");
    assert_snapshot!(mistakes("cat <<$x\n"), @"
error[here-document-end]: the end of a here-document is a plain word
 --> t:1:7
  |
1 | cat <<$x
  |       ^^
  = hint: `<<EOF` takes the lines up to one that is `EOF`
");
    assert_snapshot!(mistakes("cat <<E |\nsort\nE\n"), @"
error[here-document-in-pipeline]: the text of a here-document is in the way of this pipeline
 --> t:2:1
  |
1 | cat <<E |
  |     --- it begins on the line after this
2 | sort
  | ^^^^
  = hint: write the whole pipeline on one line, then the text
");
    assert_snapshot!(mistakes("cat <<E\n`date`\nE\n"), @"
error[command-substitution]: backquotes don't run commands
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
error[chained-comparison]: comparisons don't chain
 --> t:1:13
  |
1 | if 1 .lt. 2 .lt. 3
  |             ^^^^ needs parentheses
  |      ---- the other one is here
  = hint: use parentheses, or join two comparisons with `.and.`: `1 .lt. $x .and. $x .lt. 9`

error[range-step]: a range can't begin or end with a range
 --> t:3:12
  |
3 | a=1 .to. 2 .to. 3
  |            ^^^^ needs parentheses
  |     ---- the other one is here
  = hint: use parentheses if it is meant

error[range-step]: `.step.` without `.to.`
 --> t:4:5
  |
4 | a=1 .step. 2
  |     ^^^^^^
  = hint: write `1 .to. 100 .step. 5`

error[range-step]: a range has only one `.step.`
 --> t:5:21
  |
5 | a=1 .to. 2 .step. 3 .step. 4
  |                     ^^^^^^
");
    assert_snapshot!(mistakes("if $x .matches. \"a(b\"\nend"), @r#"
error[regular-expression]: not a regular expression: unclosed group
 --> t:1:17
  |
1 | if $x .matches. "a(b"
  |                 ^^^^^
  = hint: a `\` before a character takes away its special meaning
"#);
    assert_snapshot!(mistakes("if\nend\nif ()\nend\nif f(1,)\nend\nif .succeeds. grep x\nend\nif .succeeds. ()\nend\nreturn 1 2"), @"
error[unexpected]: expected a value
 --> t:1:3
  |
1 | if
  |   ^ the command ends here

error[unexpected]: unexpected `)`
 --> t:3:5
  |
3 | if ()
  |     ^ expected a value

error[unexpected]: unexpected `)`
 --> t:5:8
  |
5 | if f(1,)
  |        ^ expected a value

error[command-as-condition]: unexpected `grep`
 --> t:7:15
  |
7 | if .succeeds. grep x
  |               ^^^^ expected `(` and a command
  = hint: the command stands in parentheses: `.succeeds. (grep x)`

error[unexpected]: unexpected `)`
 --> t:9:16
  |
9 | if .succeeds. ()
  |                ^ expected a command

error[unexpected]: unexpected `2`
  --> t:11:10
   |
11 | return 1 2
   |          ^ expected an operator, or the end of the command
");
}

#[test]
fn redirections() {
    assert_snapshot!(mistakes("a >&-\na 2>& f\na <& f\na >&12\na >\na 2-> | b\nfunction f\nend > g"), @"
error[close-descriptor]: a descriptor can't be closed
 --> t:1:3
  |
1 | a >&-
  |   ^^^
  = hint: to throw output away, `> /dev/null`

error[descriptor]: after a digit, `>&` goes to another descriptor: a digit
 --> t:2:3
  |
2 | a 2>& f
  |   ^^^^^
  = hint: `2>&1` sends errors where output goes, `>& file` sends both to a file

error[descriptor]: after a digit, `<&` goes to another descriptor: a digit
 --> t:3:3
  |
3 | a <& f
  |   ^^^^
  = hint: `2>&1` sends errors where output goes, `>& file` sends both to a file

error[descriptor]: descriptors are the digits 0 to 9
 --> t:4:3
  |
4 | a >&12
  |   ^^^^
  = hint: to write to a file of that name, `>& ./12`

error[unexpected]: expected a file
 --> t:5:4
  |
5 | a >
  |    ^ the command ends here

error[unexpected]: unexpected `|`
 --> t:6:7
  |
6 | a 2-> | b
  |       ^ expected a variable's name

error[function-output]: a function's definition can't be redirected
 --> t:8:5
  |
8 | end > g
  |     ^^^
  = hint: redirect the commands inside, or each call
");
}

#[test]
fn scripts_are_utf8_without_nul() {
    let rendered =
        |bytes: &[u8]| diagnostic::render_all(&parse_bytes("t", bytes).expect_err("not a script"));
    assert_snapshot!(rendered(b"echo a\necho \xe9t\xe9\nend"), @"
error[not-text]: the script isn't UTF-8: byte 12 is 0xe9
 --> t:2:6
  |
2 | echo �t�
  |      ^
  = hint: save the script as UTF-8; other bytes can come from variables, files and `printf`
");
    assert_snapshot!(rendered(b"\xff"), @"
error[not-text]: the script isn't UTF-8: byte 0 is 0xff
 --> t:1:1
  |
1 | �
  | ^
  = hint: save the script as UTF-8; other bytes can come from variables, files and `printf`
");
    assert_snapshot!(rendered(b"echo a\0b"), @"
error[not-text]: a script can't contain a NUL byte
 --> t:1:7
  |
1 | echo a�b
  |       ^
");
}
