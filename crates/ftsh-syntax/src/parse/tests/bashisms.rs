//! Messages for constructs of other shells, except commands.

use insta::assert_snapshot;

use super::rendered_errors;

/// A proposal means what was meant, in the place of what was written.
#[test]
fn translated_conditions_mean_the_same() {
    let generic = "compare with symbols: `if $a == $b`, `if $n < 5`, `if .isfile. $f`";
    for (line, expected) in [
        ("if [[ $x =~ ^[0-9]+$ ]]", "write `if $x .matches. '^[0-9]+$'`"),
        ("if [[ $x =~ $regex ]]", "write `if $x .matches. $regex`"),
        ("if [[ $x =~ 'a.b' ]]", generic),
        ("if [[ $x == \"a; b\" ]]", "write `if $x == \"a; b\"`"),
        ("if [[ -f \"$x]\" ]]", "write `if .isfile. \"$x]\"`"),
        ("if [[ $x -a $y ]]", generic),
        ("if [[ $x == a b ]]", generic),
        ("if ! [[ -f x ]]", "write `! .isfile. x`"),
        ("if ! [[ ! -f x ]]", "write `!(! .isfile. x)`"),
        ("if ! [[ $x == 1 ]]", "write `!($x == 1)`"),
        ("if true || [[ $x == 1 ]]", "write `$x == 1`"),
        ("while [[ $i -lt 3 ]]", "write `while $i < 3`"),
        ("while [ $i < 10 ]", "write `while $i < 10`"),
        ("if ! [ $i > 3 ]", "write `!($i > 3)`"),
        ("if ! x=$(false)", "write `! false -> x`"),
        ("if x=$(false)", "write `false -> x`"),
        ("if $x in [a, b]", "write `case $x`, a line `when a b`, the commands, and `end`"),
        ("if $x is not 3", "write `$x != 3`"),
        ("if $x = a b", "write `$x == value`; a value with blanks has quotes"),
    ] {
        let errors = rendered_errors(&format!("{line}\nend"));
        let hint = errors.lines().find_map(|line| line.strip_prefix("  = hint: "));
        assert_eq!(hint, Some(expected), "{line}");
    }
    let errors = rendered_errors("[[ $x =~ ^[0-9]+$ ]] || exit 1");
    assert!(errors.contains("write `if !($x .matches. '^[0-9]+$')`, the"), "{errors}");
    let errors = rendered_errors("[[ $x != y* ]] && ls");
    assert!(errors.contains("the commands for other values after `else`"), "{errors}");
    let errors = rendered_errors("if .exists. a,b\nend");
    assert!(errors.contains("`.exists.` takes one value"), "{errors}");
}

#[test]
fn conditions_of_other_shells() {
    assert_snapshot!(rendered_errors("if [ -f x ]\nend\nif test -f x\nend\nif [[ $a ]]; then\nend"), @r"
error[command-as-condition]: there is no `[[` in ftsh
 --> t:5:4
  |
5 | if [[ $a ]]; then
  |    ^^
  = hint: compare with symbols: `if $a == $b`, `if $n < 5`, `if .isfile. $f`

error[other-shell]: there is no `then` in ftsh
 --> t:5:14
  |
5 | if [[ $a ]]; then
  |              ^^^^
  = hint: a block begins on the line after its head, or after a `;`, and ends with `end`
");
    assert_snapshot!(rendered_errors("if grep -q a b; then\n  c\nfi\n"), @r"
error[other-shell]: there is no `then` in ftsh
 --> t:1:17
  |
1 | if grep -q a b; then
  |                 ^^^^
  = hint: a block begins on the line after its head, or after a `;`, and ends with `end`

error[other-shell]: there is no `fi` in ftsh
 --> t:3:1
  |
3 | fi
  | ^^
  = hint: every structure ends with `end`
");
    assert_snapshot!(rendered_errors("if $a == 5\nend\nif $a = 5\nend\nif $a != 5\nend\nwhile $a -lt 5\nend\nif $a > 5\nend"), @r"
error[unknown-operator]: `=` is not an operator here
 --> t:3:4
  |
3 | if $a = 5
  |    ^^^^^^
  = hint: write `$a == 5`

error[unknown-operator]: `-lt` is not an operator here
 --> t:7:7
  |
7 | while $a -lt 5
  |       ^^^^^^^^
  = hint: write `$a < 5`
");
    assert_snapshot!(rendered_errors("if $a .ad. 1\nend"), @r"
error[unknown-operator]: unknown operator `.ad.`
 --> t:1:7
  |
1 | if $a .ad. 1
  |       ^^^^
  = hint: did you mean `.add.`?
");
}

#[test]
fn tests_of_other_shells() {
    assert_snapshot!(rendered_errors("if [ -z \"$x\" ]; then\nend\nwhile test $n -lt 5\nend\nif a\nelse if [[ ! -d $x ]]\nend\nif [ a -a b -o c ]\nend"), @r#"
error[other-shell]: there is no `then` in ftsh
 --> t:1:17
  |
1 | if [ -z "$x" ]; then
  |                 ^^^^
  = hint: a block begins on the line after its head, or after a `;`, and ends with `end`

error[command-as-condition]: there is no `[[` in ftsh
 --> t:6:9
  |
6 | else if [[ ! -d $x ]]
  |         ^^
  = hint: write `if ! .isdir. $x`
"#);
    assert_snapshot!(rendered_errors("[ -f x ] && rm x\n[ $a = b ] || exit 1\nif ! grep a b; then\nend\nif not a\nend"), @r"
error[and-or]: unexpected `&&`
 --> t:1:10
  |
1 | [ -f x ] && rm x
  |          ^^ expected the end of the command
  = hint: write `if .isfile. x`, the commands, and `end`

error[and-or]: unexpected `||`
 --> t:2:12
  |
2 | [ $a = b ] || exit 1
  |            ^^ expected the end of the command
  = hint: write `if !($a == b)`, the commands, and `end`

error[other-shell]: there is no `then` in ftsh
 --> t:3:16
  |
3 | if ! grep a b; then
  |                ^^^^
  = hint: a block begins on the line after its head, or after a `;`, and ends with `end`

error[unknown-operator]: `not` is written `!`
 --> t:5:4
  |
5 | if not a
  |    ^^^
  = hint: write `! a`
");
}

#[test]
fn assignments_of_other_shells() {
    assert_snapshot!(rendered_errors("a=1 b=2"), @"
error[missing-command]: expected a command
 --> t:1:8
  |
1 | a=1 b=2
  |        ^ the command ends here
  = hint: write one assignment per line, or `;` between assignments
");
    assert_snapshot!(rendered_errors("x = 5\nx=$x + 1\nx=$((x+1))\n((x++))"), @r"
error[assignment-blank]: an assignment has no space before its `=`
 --> t:1:1
  |
1 | x = 5
  | ^
  = hint: write `x=value`

error[arithmetic]: `(( ))` doesn't calculate
 --> t:4:1
  |
4 | ((x++))
  | ^^^^^^^
  = hint: calculate in an assignment, `n=$n + 1`, and compare in a condition, `if $n > 2`
");
    assert_snapshot!(rendered_errors("x=$(date +%s)\nx=`date`\necho \"now `date`\""), @r#"
error[command-substitution]: backquotes don't run commands
 --> t:2:3
  |
2 | x=`date`
  |   ^^^^^^
  = hint: write `$(date)`

error[command-substitution]: backquotes don't run commands
 --> t:3:11
  |
3 | echo "now `date`"
  |           ^^^^^^
  = hint: write `$(date)`
"#);
    assert_snapshot!(rendered_errors("x=3 .add.\nx=(3 .add. 4\nx=f(1, 2\nx=3 .ad. 4\nx=(1 2 3)\nx=3 .add. 4 5\nx=f (1, 2"), @r#"
error[unexpected]: expected a value
 --> t:1:10
  |
1 | x=3 .add.
  |          ^ the command ends here

error[unexpected]: expected `)`
 --> t:2:13
  |
2 | x=(3 .add. 4
  |             ^ the command ends here

error[unexpected]: expected `)`
 --> t:3:9
  |
3 | x=f(1, 2
  |         ^ the command ends here

error[unknown-operator]: unknown operator `.ad.`
 --> t:4:5
  |
4 | x=3 .ad. 4
  |     ^^^^
  = hint: did you mean `.add.`?

error[array]: unexpected `2`
 --> t:5:6
  |
5 | x=(1 2 3)
  |      ^ expected `)`
  = hint: parentheses do not make a list: write `list x in 1 2 3`

error[unexpected]: unexpected `5`
 --> t:6:13
  |
6 | x=3 .add. 4 5
  |             ^ expected the end of the command

error[unexpected]: expected `)`
 --> t:7:10
  |
7 | x=f (1, 2
  |          ^ the command ends here
"#);
}

#[test]
fn variables_of_other_shells() {
    assert_snapshot!(rendered_errors("echo $? \necho $!\necho $-"), @r#"
error[special-variable]: there is no `$?`: a failure ends the group
 --> t:1:6
  |
1 | echo $?
  |      ^^
  = hint: in `catch`, `$error_code` is the exit code and `$error` the message

error[special-variable]: there is no `$!`
 --> t:2:6
  |
2 | echo $!
  |      ^^
  = hint: `forall` runs commands in parallel and waits for them

error[variable-name]: no variable can have this name
 --> t:3:6
  |
3 | echo $-
  |      ^^
  = hint: for the characters themselves, write `\$-`
"#);
    assert_snapshot!(rendered_errors("echo ${#x}\necho ${x%.c}\necho ${x\necho ${x-y}\necho \"${x:-\"a\"}\""), @r#"
error[unknown-substitution]: unknown kind of substitution
 --> t:1:6
  |
1 | echo ${#x}
  |      ^^^^^
  = hint: write `${length($x)}`

error[unknown-substitution]: unknown kind of substitution
 --> t:2:6
  |
2 | echo ${x%.c}
  |      ^^^^^^^
  = hint: write `${replace($x, '\.c$', "")}`

error[unclosed-brace]: this `${` has no `}`
 --> t:3:6
  |
3 | echo ${x
  |      ^^^
  = hint: write `${name}`

error[unknown-substitution]: unknown kind of substitution
 --> t:4:6
  |
4 | echo ${x-y}
  |      ^^^^^^
  = hint: write `${x:-y}`, which treats an empty value like a missing one

error[nested-quotes]: a `${` can't hold quotes inside quotes
 --> t:5:7
  |
5 | echo "${x:-"a"}"
  |       ^^^^^
  = hint: assign the default to a variable first, or use it without the inner quotes
"#);
}
