//! What is said of wrong scripts.

use insta::assert_snapshot;

use super::mistakes;
use crate::diagnostic;
use crate::syntax::parse_bytes;

#[test]
fn durations() {
    assert_snapshot!(mistakes("try cp a b\nend\ntry 5 times cp a\nend\ntry 1h minutes\nend"), @"
error: expected a duration, like `5 minutes`
 --> t:1:5
  |
1 | try cp a b
  |     ^^
  = hint: a command goes on the next line, or after a `;`

error: expected a duration, like `5 minutes`
 --> t:3:13
  |
3 | try 5 times cp a
  |             ^^
  = hint: a command goes on the next line, or after a `;`
");
    assert_snapshot!(mistakes("try for 5 minutse\nend"), @"
error: unknown unit `minutse`
 --> t:1:11
  |
1 | try for 5 minutse
  |           ^^^^^^^ expected `times`, `seconds`, `minutes`, `hours` or `days`
  = hint: did you mean `minutes`?
");
    assert_snapshot!(mistakes("try for 5\nend\ntry 5\nend\ntry $n $m\nend"), @"
error: `5` of what? A unit is missing
 --> t:1:9
  |
1 | try for 5
  |         ^ expected `times`, `seconds`, `minutes`, `hours` or `days` after it

error: `5` of what? A unit is missing
 --> t:3:5
  |
3 | try 5
  |     ^ expected `times`, `seconds`, `minutes`, `hours` or `days` after it

error: the time limit is given twice
 --> t:5:8
  |
5 | try $n $m
  |        ^^
  |     -- first given here
");
    assert_snapshot!(mistakes("try 5times\nend\ntry for 1h30\nend\ntry for soon\nend"), @"
error: expected a duration, like `5 minutes`
 --> t:1:5
  |
1 | try 5times
  |     ^^^^^^
  = hint: did you mean `5 times`?

error: expected a duration, like `5 minutes`
 --> t:3:9
  |
3 | try for 1h30
  |         ^^^^

error: expected a duration, like `5 minutes`
 --> t:5:9
  |
5 | try for soon
  |         ^^^^
  = hint: a command goes on the next line, or after a `;`
");
    assert_snapshot!(mistakes("try 0 times\nend\ntry -1 seconds\nend\ntry 1.5 times\nend\ntry x times\nend"), @"
error: `0` is too few: the least is 1
 --> t:1:5
  |
1 | try 0 times
  |     ^

error: a duration must be longer than zero
 --> t:3:5
  |
3 | try -1 seconds
  |     ^^^^^^^^^^

error: expected a whole number, not `1.5`
 --> t:5:5
  |
5 | try 1.5 times
  |     ^^^

error: expected a whole number, not `x`
 --> t:7:5
  |
7 | try x times
  |     ^
");
    assert_snapshot!(mistakes("try for five minutes\nend\ntry every 0 s\nend\ntry each 5 times\nend"), @"
error: `five` is not a number
 --> t:1:9
  |
1 | try for five minutes
  |         ^^^^ expected a duration, like `5 minutes`

error: a duration must be longer than zero
 --> t:3:11
  |
3 | try every 0 s
  |           ^^^

error: expected a duration, like `5 minutes`
 --> t:5:10
  |
5 | try each 5 times
  |          ^^^^^^^
");
    assert_snapshot!(mistakes("try every\nend\ntry for\nend\ntry 5 minutes or\nend\ntry (5)\nend"), @"
error: expected a duration, like `5 minutes`
 --> t:1:10
  |
1 | try every
  |          ^ the command ends here

error: expected a limit, like `5 times` or `10 minutes`
 --> t:3:8
  |
3 | try for
  |        ^ the command ends here

error: expected a limit, like `5 times` or `10 minutes`
 --> t:5:17
  |
5 | try 5 minutes or
  |                 ^ the command ends here

error: a unit is missing
 --> t:7:8
  |
7 | try (5)
  |        ^ expected `times`, `seconds`, `minutes`, `hours` or `days`
");
}

#[test]
fn clauses() {
    assert_snapshot!(mistakes("try 5 times for 3 times\nend\ntry each 5 s each 6 s\nend"), @"
error: the number of times is given twice
 --> t:1:13
  |
1 | try 5 times for 3 times
  |             ^^^^^^^^^^^
  |     ------- first given here

error: `each` is given twice
 --> t:3:14
  |
3 | try each 5 s each 6 s
  |              ^^^^^^^^
  |     -------- first given here
");
    assert_snapshot!(mistakes("try every 5 s backoff full\nend"), @"
error: `every` and `backoff` can't be combined
 --> t:1:15
  |
1 | try every 5 s backoff full
  |               ^^^^^^^^^^^^
  |     --------- the other one is here
  = hint: `every` fixes when attempts start, `backoff` how long to wait between them
");
    assert_snapshot!(mistakes("try 5 minutes and 3 times\nend"), @"
error: expected a duration, like `5 minutes`
 --> t:1:15
  |
1 | try 5 minutes and 3 times
  |               ^^^
  = hint: limits are joined by `or`: the first one reached ends the `try`
");
    assert_snapshot!(mistakes("try 5 minutes from 3 s\nend"), @"
error: unexpected `3`
 --> t:1:20
  |
1 | try 5 minutes from 3 s
  |                    ^ expected a duration, like `5 minutes`
  = hint: `from`, `to`, `by` and `jitter` belong to a policy: `backoff full from 1 second`
");
}

#[test]
fn backoffs() {
    assert_snapshot!(mistakes("try backoff ful\nend\ntry backoff random\nend\ntry backoff\nend"), @"
error: unknown backoff policy `ful`
 --> t:1:13
  |
1 | try backoff ful
  |             ^^^
  = hint: did you mean `full`?

error: unknown backoff policy `random`
 --> t:3:13
  |
3 | try backoff random
  |             ^^^^^^
  = hint: the policies are ethernet, exponential, full, equal, decorrelated, normal, proportional, slotted, windowed, fixed, none

error: expected the name of a policy, like `full`
 --> t:5:12
  |
5 | try backoff
  |            ^ the command ends here
");
    assert_snapshot!(mistakes("try backoff fixed to 5 s\nend\ntry backoff none from 1 s\nend"), @"
error: the policy `fixed` takes no `to`
 --> t:1:19
  |
1 | try backoff fixed to 5 s
  |                   ^^^^^^
  = hint: `fixed` takes `from`

error: the policy `none` takes no `from`
 --> t:3:18
  |
3 | try backoff none from 1 s
  |                  ^^^^^^^^
  = hint: `none` takes no settings at all
");
    assert_snapshot!(mistakes("try backoff full from 5 s to 1 s\nend\ntry backoff full from 1 s from 2 s\nend"), @"
error: `from` is longer than `to`
 --> t:1:23
  |
1 | try backoff full from 5 s to 1 s
  |                       ^
  |                              - `to` is here

error: `from` is given twice
 --> t:3:27
  |
3 | try backoff full from 1 s from 2 s
  |                           ^^^^^^^^
");
    assert_snapshot!(mistakes("try backoff full by 0.5\nend\ntry backoff normal jitter 150%\nend\ntry backoff normal jitter 10\nend"), @"
error: a factor below 1 would make delays shorter and shorter
 --> t:1:21
  |
1 | try backoff full by 0.5
  |                     ^^^ expected a factor, like `2`

error: a jitter is from 0% to 100%
 --> t:3:27
  |
3 | try backoff normal jitter 150%
  |                           ^^^^ expected a percentage, like `10%`

error: a `%` is missing after `jitter`
 --> t:5:20
  |
5 | try backoff normal jitter 10
  |                    ^^^^^^^^^ expected a percentage, like `10%`
");
}

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
  = hint: put the command on the next line, or after a `;`
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
fn habits_of_conditions() {
    assert_snapshot!(mistakes("if [ -f x ]\nend\nif test -f x\nend\nif [[ $a ]]; then\nend"), @"
error: `if` takes an expression, not `[`
 --> t:1:4
  |
1 | if [ -f x ]
  |    ^
  = hint: write `if .isfile. x`

error: `if` takes an expression, not `test`
 --> t:3:4
  |
3 | if test -f x
  |    ^^^^
  = hint: write `if .isfile. x`

error: `if` takes an expression, not `[[`
 --> t:5:4
  |
5 | if [[ $a ]]; then
  |    ^^
  = hint: compare with operators: `if $a .eq. $b`, `if $n .lt. 5`, `if .isfile. $f`
");
    assert_snapshot!(mistakes("if grep -q a b; then\n  c\nfi\n"), @"
error: unexpected `-q`
 --> t:1:9
  |
1 | if grep -q a b; then
  |         ^^ expected an operator, or the end of the command
  = hint: `if` takes an expression; to ask a command, `if .succeeds. (grep -q a b)`

error: there is no `fi` in ftsh
 --> t:3:1
  |
3 | fi
  | ^^
  = hint: every structure ends with `end`
");
    assert_snapshot!(mistakes("if ! grep -q a b\nend"), @"
error: unexpected `grep`
 --> t:1:6
  |
1 | if ! grep -q a b
  |      ^^^^ expected an operator, or the end of the command
  = hint: `if` takes an expression; to ask a command, `if .not. .succeeds. (grep -q a b)`
");
    assert_snapshot!(mistakes("if $a == 5\nend\nif $a = 5\nend\nif $a != 5\nend\nwhile $a -lt 5\nend\nif $a > 5\nend"), @"
error: unexpected `==`
 --> t:1:7
  |
1 | if $a == 5
  |       ^^ expected an operator, or the end of the command
  = hint: `==` is written `.eq.`

error: unexpected `=`
 --> t:3:7
  |
3 | if $a = 5
  |       ^ expected an operator, or the end of the command
  = hint: `=` is written `.eq.`

error: unexpected `!=`
 --> t:5:7
  |
5 | if $a != 5
  |       ^^ expected an operator, or the end of the command
  = hint: `!=` is written `.ne.`

error: unexpected `-lt`
 --> t:7:10
  |
7 | while $a -lt 5
  |          ^^^ expected an operator, or the end of the command
  = hint: `-lt` is written `.lt.`

error: unexpected `>`
 --> t:9:7
  |
9 | if $a > 5
  |       ^ expected an operator, or the end of the command
  = hint: `>` is written `.gt.`
");
    assert_snapshot!(mistakes("if $a .eq. 1 && $b .eq. 2\nend"), @"
error: unexpected `&&`
 --> t:1:14
  |
1 | if $a .eq. 1 && $b .eq. 2
  |              ^^ expected an operator, or the end of the command
  = hint: `&&` is written `.and.`
");
    assert_snapshot!(mistakes("if $a .ad. 1\nend"), @"
error: unexpected `.ad.`
 --> t:1:7
  |
1 | if $a .ad. 1
  |       ^^^^ expected an operator, or the end of the command
  = hint: did you mean `.add.`?
");
}

#[test]
fn habits_of_commands() {
    assert_snapshot!(mistakes("a || b\na && b\na &\na; b & c"), @"
error: unexpected `||`
 --> t:1:3
  |
1 | a || b
  |   ^^ expected the end of the command
  = hint: `||` isn't needed: a group stops at the first failure; `try … catch … end` reacts to one

error: unexpected `&&`
 --> t:2:3
  |
2 | a && b
  |   ^^ expected the end of the command
  = hint: `&&` isn't needed: each command runs only if the one before succeeded

error: unexpected `&`
 --> t:3:3
  |
3 | a &
  |   ^ expected the end of the command
  = hint: `forall` runs commands at once, and waits for all of them

error: unexpected `&`
 --> t:4:6
  |
4 | a; b & c
  |      ^ expected the end of the command
  = hint: `forall` runs commands at once, and waits for all of them
");
    assert_snapshot!(mistakes("set -e\nlocal x\n! a\n[[ -f x ]]\ntrap x\ncase $x in\nesac"), @r#"
error: there is no `set` in ftsh
 --> t:1:1
  |
1 | set -e
  | ^^^
  = hint: a group stops at its first failure, so `set -e` isn't needed; nor is `-u`, and `ftsh -l 20` logs commands as `-x` does

error: there is no `local` in ftsh
 --> t:2:1
  |
2 | local x
  | ^^^^^
  = hint: variables are global and simply assigned: `name=value`

error: there is no `!` in ftsh
 --> t:3:1
  |
3 | ! a
  | ^
  = hint: to go on when a command fails: `try … catch … end`; to ask it a question: `if .not. .succeeds. (command)`

error: there is no `[[` in ftsh
 --> t:4:1
  |
4 | [[ -f x ]]
  | ^^
  = hint: compare with operators: `if $a .eq. $b`, `if .isfile. $f`

error: there is no `trap` in ftsh
 --> t:5:1
  |
5 | trap x
  | ^^^^
  = hint: `try … catch … end` reacts to failures; what a failed attempt started is cleaned up

error: there is no `case` in ftsh
 --> t:6:1
  |
6 | case $x in
  | ^^^^
  = hint: compare in turn: `if $x .eq. a … else if $x .matches. "^b" … else … end`

error: there is no `esac` in ftsh
 --> t:7:1
  |
7 | esac
  | ^^^^
  = hint: every structure ends with `end`
"#);
    assert_snapshot!(mistakes("f() {\n  a\n}\nfunction g() {\n  b\n}\nfunction h {\n}"), @"
error: functions are defined with a word
 --> t:1:1
  |
1 | f() {
  | ^^^
  = hint: write `function f`, the commands, and `end`

error: there is no `}` in ftsh
 --> t:3:1
  |
3 | }
  | ^
  = hint: every structure ends with `end`

error: unexpected `(`
 --> t:4:11
  |
4 | function g() {
  |           ^ expected the end of the command
  = hint: a function is its name alone, its arguments are `$1`, `$2`, …: `function name`

error: there is no `}` in ftsh
 --> t:6:1
  |
6 | }
  | ^
  = hint: every structure ends with `end`

error: unexpected `{`
 --> t:7:12
  |
7 | function h {
  |            ^ expected the end of the command
  = hint: a function is its name alone, its arguments are `$1`, `$2`, …: `function name`

error: there is no `}` in ftsh
 --> t:8:1
  |
8 | }
  | ^
  = hint: every structure ends with `end`
");
    assert_snapshot!(mistakes("for x in a b; do\n  c\ndone\nfor ((i=0;i<3;i++))\nend\nfor x a b\nend"), @"
error: there is no `do` in ftsh
 --> t:1:15
  |
1 | for x in a b; do
  |               ^^
  = hint: a block begins on the line after its head, or after a `;`, and ends with `end`

error: there is no `done` in ftsh
 --> t:3:1
  |
3 | done
  | ^^^^
  = hint: every structure ends with `end`

error: unexpected `(`
 --> t:4:5
  |
4 | for ((i=0;i<3;i++))
  |     ^ expected the name of the loop's variable
  = hint: count with a range: `for n in 1 .to. 10`

error: unexpected `a`
 --> t:6:7
  |
6 | for x a b
  |       ^ expected `in` and a list
");
    assert_snapshot!(mistakes("a | while read x\n  b\nend"), @"
error: `while` can't be in a pipeline, or follow a redirection or assignment
 --> t:1:5
  |
1 | a | while read x
  |     ^^^^^
  = hint: run the command first, `command -> v`, and then `for x in $v`; to run a program of that name, quote it
");
    assert_snapshot!(mistakes("try\nend | sort"), @"
error: unexpected `|`
 --> t:2:5
  |
2 | end | sort
  |     ^ expected the end of the command
  = hint: send the output to a variable: `end -> v`, then `sort -< v`
");
    assert_snapshot!(mistakes("> f\nA=1 > f\n| a\n"), @"
error: expected a command
 --> t:1:4
  |
1 | > f
  |    ^ the command ends here
  = hint: to make an empty file, `echo -n > file`

error: expected a command
 --> t:2:8
  |
2 | A=1 > f
  |        ^ the command ends here
  = hint: to make an empty file, `echo -n > file`

error: unexpected `|`
 --> t:3:1
  |
3 | | a
  | ^ expected a command
");
}

#[test]
fn habits_of_subshells_and_lists() {
    assert_snapshot!(mistakes("(cd /; pwd)\ncat <(ls -l)\ntee > (x\ntee >(x)"), @"
error: parentheses make no subshell
 --> t:1:1
  |
1 | (cd /; pwd)
  | ^^^
  = hint: a `cd` in a branch of `forall` stays there, and `sh -c 'cd dir; command'` is a shell of its own; to run a program of that name, quote it

error: there is no `<( )`
 --> t:2:5
  |
2 | cat <(ls -l)
  |     ^^^^
  = hint: collect the output, `command -> v`, and read it with `-< v`; for a pipe, `command | …`

error: there is no `>( )`
 --> t:4:5
  |
4 | tee >(x)
  |     ^^^^
  = hint: send the output on with a pipe: `… | command`
");
    assert_snapshot!(mistakes("forany s in X, Y, Z\nend\nforall s in $a,$b; x; end"), @"
error: unexpected `,`
 --> t:1:14
  |
1 | forany s in X, Y, Z
  |              ^ expected the end of the command
  = hint: blanks separate the words of a list, not commas: `forany s in X Y Z`

error: unexpected `,`
 --> t:3:15
  |
3 | forall s in $a,$b; x; end
  |               ^ expected the end of the command
  = hint: blanks separate the words of a list, not commas: `forall s in $a $b`
");
    assert_snapshot!(mistakes("x+=1\n$x=5\nwait\nif x then\nend"), @r#"
error: there is no `+=`
 --> t:1:1
  |
1 | x+=1
  | ^^^^
  = hint: write `x=$x .add. 1` for numbers, `x="$x…"` for text

error: a variable is assigned without its `$`
 --> t:2:1
  |
2 | $x=5
  | ^^^^
  = hint: write `x=value`

error: there is no `wait` in ftsh
 --> t:3:1
  |
3 | wait
  | ^^^^
  = hint: `forall` runs commands at once, and waits for all of them

error: unexpected `then`
 --> t:4:6
  |
4 | if x then
  |      ^^^^ expected an operator, or the end of the command
  = hint: a block begins on the line after its head, or after a `;`, and ends with `end`
"#);
    assert_snapshot!(mistakes("x=$(date)\necho \"$(pwd) $(HOME)\""), @r#"
error: `$( )` doesn't run commands
 --> t:1:3
  |
1 | x=$(date)
  |   ^^^^^^^
  = hint: write `date -> v`, then use `$v`

error: `$( )` doesn't run commands
 --> t:2:7
  |
2 | echo "$(pwd) $(HOME)"
  |       ^^^^^^
  = hint: write `pwd -> v`, then use `$v`
"#);
    let variable = "date -> date\necho $(date)";
    assert!(crate::syntax::parse("t", variable).is_ok());
}

#[test]
fn habits_of_tests() {
    assert_snapshot!(mistakes("if [ -z \"$x\" ]; then\nend\nwhile test $n -lt 5\nend\nif a\nelse if [[ ! -d $x ]]\nend\nif [ a -a b -o c ]\nend"), @r#"
error: `if` takes an expression, not `[`
 --> t:1:4
  |
1 | if [ -z "$x" ]; then
  |    ^
  = hint: write `if "$x" .eq. ""`

error: `while` takes an expression, not `test`
 --> t:3:7
  |
3 | while test $n -lt 5
  |       ^^^^
  = hint: write `while $n .lt. 5`

error: `if` takes an expression, not `[[`
 --> t:6:9
  |
6 | else if [[ ! -d $x ]]
  |         ^^
  = hint: write `if .not. .isdir. $x`

error: `if` takes an expression, not `[`
 --> t:8:4
  |
8 | if [ a -a b -o c ]
  |    ^
  = hint: compare with operators: `if $a .eq. $b`, `if $n .lt. 5`, `if .isfile. $f`
"#);
    assert_snapshot!(mistakes("[ -f x ] && rm x\n[ $a = b ] || exit 1\nif ! grep a b; then\nend\nif not a\nend"), @"
error: unexpected `&&`
 --> t:1:10
  |
1 | [ -f x ] && rm x
  |          ^^ expected the end of the command
  = hint: write `if .isfile. x`, the commands, and `end`

error: unexpected `||`
 --> t:2:12
  |
2 | [ $a = b ] || exit 1
  |            ^^ expected the end of the command
  = hint: write `if .not. ($a .eq. b)`, the commands, and `end`

error: unexpected `grep`
 --> t:3:6
  |
3 | if ! grep a b; then
  |      ^^^^ expected an operator, or the end of the command
  = hint: `if` takes an expression; to ask a command, `if .not. .succeeds. (grep a b)`

error: unexpected `a`
 --> t:5:8
  |
5 | if not a
  |        ^ expected an operator, or the end of the command
  = hint: `if` takes an expression; to ask a command, `if .not. .succeeds. (a)`
");
}

#[test]
fn habits_of_assignments() {
    assert_snapshot!(mistakes("a=1 b=2"), @"
error: expected a command
 --> t:1:8
  |
1 | a=1 b=2
  |        ^ the command ends here
  = hint: write one assignment a line, or `;` between them
");
    assert_snapshot!(mistakes("x = 5\nx=$x + 1\nx=$((x+1))\n((x++))"), @"
error: an assignment has no blanks around `=`
 --> t:1:1
  |
1 | x = 5
  | ^
  = hint: write `x=value`

error: unknown operator `+`
 --> t:2:6
  |
2 | x=$x + 1
  |      ^
  = hint: `+` is written `.add.`

error: `$(( ))` doesn't calculate
 --> t:3:3
  |
3 | x=$((x+1))
  |   ^^^^^^^^
  = hint: an assignment does, with operators that are words: `n=x .add. 1`

error: `(( ))` doesn't calculate
 --> t:4:1
  |
4 | ((x++))
  | ^^^^^^^
  = hint: an assignment does: `n=$n .add. 1`
");
    assert_snapshot!(mistakes("x=$(date +%s)\nx=`date`\necho \"now `date`\""), @r#"
error: `$( )` doesn't run commands
 --> t:1:3
  |
1 | x=$(date +%s)
  |   ^^^^^^^^^^^
  = hint: write `date +%s -> v`, then use `$v`

error: backquotes don't run commands
 --> t:2:3
  |
2 | x=`date`
  |   ^^^^^^
  = hint: write `date -> v`, then use `$v`

error: backquotes don't run commands
 --> t:3:11
  |
3 | echo "now `date`"
  |           ^^^^^^
  = hint: write `date -> v`, then use `$v`
"#);
    assert_snapshot!(mistakes("x=3 .add.\nx=(3 .add. 4\nx=f(1, 2\nx=3 .ad. 4\nx=(1 2 3)\nx=3 .add. 4 5\nx=f (1, 2"), @r#"
error: expected a value
 --> t:1:10
  |
1 | x=3 .add.
  |          ^ the command ends here

error: expected `)`
 --> t:2:13
  |
2 | x=(3 .add. 4
  |             ^ the command ends here

error: expected `)`
 --> t:3:9
  |
3 | x=f(1, 2
  |         ^ the command ends here

error: unknown operator `.ad.`
 --> t:4:5
  |
4 | x=3 .ad. 4
  |     ^^^^
  = hint: did you mean `.add.`?

error: unexpected `2`
 --> t:5:6
  |
5 | x=(1 2 3)
  |      ^ expected `)`
  = hint: a list of words is one value: `name="a b c"`

error: unexpected `5`
 --> t:6:13
  |
6 | x=3 .add. 4 5
  |             ^ expected the end of the command

error: expected `)`
 --> t:7:10
  |
7 | x=f (1, 2
  |          ^ the command ends here
"#);
}

#[test]
fn habits_of_variables() {
    assert_snapshot!(mistakes("echo $? \necho $!\necho $-"), @r#"
error: there is no `$?`: a failure can't be passed over
 --> t:1:6
  |
1 | echo $?
  |      ^^
  = hint: in `catch`, `$error_code` has the exit code and `$error` the story

error: there is no `$!`
 --> t:2:6
  |
2 | echo $!
  |      ^^
  = hint: `forall` runs commands at once and waits for them

error: no variable can have this name
 --> t:3:6
  |
3 | echo $-
  |      ^^
  = hint: for the characters themselves, write `\$-`
"#);
    assert_snapshot!(mistakes("echo ${#x}\necho ${x%.c}\necho ${x\necho ${x-y}\necho \"${x:-\"a\"}\""), @r#"
error: unknown kind of substitution
 --> t:1:6
  |
1 | echo ${#x}
  |      ^^^^^
  = hint: there are `${name}`, `${name:-default}` and `${name:+alternative}`

error: unknown kind of substitution
 --> t:2:6
  |
2 | echo ${x%.c}
  |      ^^^^^^^
  = hint: there are `${name}`, `${name:-default}` and `${name:+alternative}`

error: this `${` has no `}`
 --> t:3:6
  |
3 | echo ${x
  |      ^^^
  = hint: write `${name}`

error: unknown kind of substitution
 --> t:4:6
  |
4 | echo ${x-y}
  |      ^^^^^^
  = hint: there are `${name}`, `${name:-default}` and `${name:+alternative}`

error: a `${` can't hold quotes inside quotes
 --> t:5:7
  |
5 | echo "${x:-"a"}"
  |       ^^^^^
  = hint: assign the default to a variable first, or use it without the inner quotes
"#);
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
