//! Messages for wrong strings, expressions and redirections.

use insta::assert_snapshot;

use super::rendered_errors;
use crate::diagnostic;
use crate::parse_bytes;

#[test]
fn unterminated_strings() {
    assert_snapshot!(rendered_errors("try\n  echo \"abc\nend\n"), @r#"
error[unclosed-string]: unterminated string
 --> t:2:8
  |
2 |   echo "abc
  |        ^ the closing `"` is missing
"#);
    assert_snapshot!(rendered_errors("echo \"abc\necho \"def\"\nx 'y'\n"), @r#"
error[unclosed-string]: unterminated string
 --> t:2:10
  |
1 | echo "abc
  |      - this string may have to end earlier
2 | echo "def"
  |          ^ the closing `"` is missing
"#);
    assert_snapshot!(rendered_errors("echo 'it's'\n"), @"
error[unclosed-string]: unterminated string
 --> t:1:11
  |
1 | echo 'it's'
  |           ^ the closing `'` is missing
");
}

#[test]
fn here_documents_of_wrong_lines_are_skipped() {
    assert_snapshot!(rendered_errors("a || cat <<E\nthen | x\nE\ncat $? <<'E'\nfi | |\nE\nfi"), @r"
error[and-or]: unexpected `||`
 --> t:1:3
  |
1 | a || cat <<E
  |   ^^ expected the end of the command
  = hint: a failure is handled by `try … catch … end`; a question is `if ! …`, which continues in either case

error[special-variable]: there is no `$?`: a failure ends the group
 --> t:4:5
  |
4 | cat $? <<'E'
  |     ^^
  = hint: in `catch`, `$error_code` is the exit code and `$error` the message

error[other-shell]: there is no `fi` in ftsh
 --> t:7:1
  |
7 | fi
  | ^^
  = hint: every structure ends with `end`
");
}

#[test]
fn unterminated_here_documents() {
    assert_snapshot!(rendered_errors("try\n  cat <<EOF\n  a\n  EOF\nend\n"), @"
error[unclosed-here-document]: unterminated here-document
 --> t:2:7
  |
2 |   cat <<EOF
  |       ^^^^^ no line `EOF` follows
  = hint: the last line must be the delimiter alone; after `<<-EOF` spaces may come before it
");
    assert_snapshot!(rendered_errors("cat <<-EOF\n\ta\n\n  b\n\tEOF\n"), @"
error[indented-here-document]: this line has less indentation than the last one, `EOF`
 --> t:4:1
  |
4 |   b
  | ^^^
");
    assert_snapshot!(rendered_errors("cat -<< EOF\na\nEOF\n"), @"
error[unexpected]: there is no `-<<`
 --> t:1:5
  |
1 | cat -<< EOF
  |     ^^^^^^^
  = hint: write `<<WORD`, or `<<-WORD` for indented lines
");
    assert_snapshot!(rendered_errors("cat <<$x\n"), @"
error[here-document-end]: the delimiter of a here-document must be a plain word
 --> t:1:7
  |
1 | cat <<$x
  |       ^^
  = hint: `<<EOF` takes the lines up to a line `EOF`
");
    assert_snapshot!(rendered_errors("cat <<E |\nsort\nE\n"), @"
error[here-document-in-pipeline]: the text of a here-document interrupts this pipeline
 --> t:2:1
  |
1 | cat <<E |
  |     --- the text begins on the next line
2 | sort
  | ^^^^
  = hint: write the whole pipeline on one line, then the text
");
    assert_snapshot!(rendered_errors("cat <<E\n`date`\nE\n"), @r"
error[command-substitution]: backquotes don't run commands
 --> t:2:1
  |
2 | `date`
  | ^^^^^^
  = hint: write `$(date)`
");
}

#[test]
fn expressions() {
    assert_snapshot!(rendered_errors("if 1 .lt. 2 .lt. 3\nend\na=1 .to. 2 .to. 3\na=1 .step. 2\na=1 .to. 2 .step. 3 .step. 4"), @r"
error[chained-comparison]: comparisons don't chain
 --> t:1:13
  |
1 | if 1 .lt. 2 .lt. 3
  |             ^^^^ needs parentheses
  |      ---- the other one is here
  = hint: use parentheses, or join two comparisons with `&&`: `1 < $x && $x < 9`

error[range-step]: a range can't begin or end with a range
 --> t:3:12
  |
3 | a=1 .to. 2 .to. 3
  |            ^^^^ needs parentheses
  |     ---- the other one is here
  = hint: use parentheses around the inner range

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
    assert_snapshot!(rendered_errors("if $x .matches. \"a(b\"\nend"), @r#"
error[regular-expression]: not a regular expression: unclosed group
 --> t:1:17
  |
1 | if $x .matches. "a(b"
  |                 ^^^^^
  = hint: a `\` before a character takes away its special meaning
"#);
    assert_snapshot!(rendered_errors("if\nend\nif ()\nend\nif f(1,)\nend\nif .succeeds. grep x\nend\nif .succeeds. ()\nend\nreturn 1 2"), @r"
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

error[command-as-condition]: `.succeeds.` has no parentheses
 --> t:7:4
  |
7 | if .succeeds. grep x
  |    ^^^^^^^^^^
  = hint: write the command alone, `if grep x`, or in parentheses: `.succeeds. (grep x)`

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
    assert_snapshot!(rendered_errors("a >&-\na 2>& f\na <& f\na >&12\na >\na 2-> | b\nfunction f\nend > g"), @"
error[close-descriptor]: a descriptor can't be closed
 --> t:1:3
  |
1 | a >&-
  |   ^^^
  = hint: to discard output, write `> /dev/null`

error[descriptor]: after a digit, `>&` takes another descriptor: a digit
 --> t:2:3
  |
2 | a 2>& f
  |   ^^^^^
  = hint: `2>&1` sends errors where output goes, `>& file` sends both to a file

error[descriptor]: after a digit, `<&` takes another descriptor: a digit
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
  = hint: to write to a file of this name, `>& ./12`

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
