//! Messages for commands of other shells.

use insta::assert_snapshot;

use super::rendered_errors;

#[test]
fn commands_of_other_shells() {
    assert_snapshot!(rendered_errors("a || b\na && b\na &\na; b & c"), @r"
error[and-or]: unexpected `||`
 --> t:1:3
  |
1 | a || b
  |   ^^ expected the end of the command
  = hint: a failure is handled by `try … catch … end`; a question is `if ! …`, which continues in either case

error[and-or]: unexpected `&&`
 --> t:2:3
  |
2 | a && b
  |   ^^ expected the end of the command
  = hint: on lines of their own, each command runs only after the success of the command before, and a failure ends the script; a question is `if …`

error[background]: unexpected `&`
 --> t:3:3
  |
3 | a &
  |   ^ expected the end of the command
  = hint: `forall` runs commands in parallel, and waits for all of them; `with` runs a command next to a group

error[background]: unexpected `&`
 --> t:4:6
  |
4 | a; b & c
  |      ^ expected the end of the command
  = hint: `forall` runs commands in parallel, and waits for all of them; `with` runs a command next to a group
");
    assert_snapshot!(rendered_errors("set -e\nlocal x y\n! a\n[[ -f x ]]\ntrap x\ncase $x in\nesac"), @r#"
error[other-shell]: there is no `set` in ftsh
 --> t:1:1
  |
1 | set -e
  | ^^^
  = hint: a group stops at its first failure, so `set -e` isn't needed; nor is `-u`, and `ftsh -l 20` logs commands as `-x` does

error[local-names]: `local` takes one name, with or without a value
 --> t:2:1
  |
2 | local x y
  | ^^^^^
  = hint: one name at a time: `local name=value`, or `local name`

error[other-shell]: there is no `!` in ftsh
 --> t:3:1
  |
3 | ! a
  | ^
  = hint: to continue after a failure: `try … catch … end`; to test a command: `if ! command`

error[other-shell]: there is no `[[` in ftsh
 --> t:4:1
  |
4 | [[ -f x ]]
  | ^^
  = hint: compare with symbols: `if $a == $b`, `if .isfile. $f`

error[other-shell]: there is no `trap` in ftsh
 --> t:5:1
  |
5 | trap x
  | ^^^^
  = hint: `try … finally … end` cleans up after every end of the `try`, also by a signal, and `catch` handles failures; processes of a failed attempt are killed in any case

error[case-form]: `case` takes one value
 --> t:6:1
  |
6 | case $x in
  | ^^^^
  = hint: write `case $x`, a line like `when a b*` before the commands for these patterns, `else` for any other value, and `end`; a program of this name has quotes: `"case" x`

error[other-shell]: there is no `esac` in ftsh
 --> t:7:1
  |
7 | esac
  | ^^^^
  = hint: every structure ends with `end`
"#);
    assert_snapshot!(rendered_errors("f() {\n  a\n}\nfunction g() {\n  b\n}\nfunction h {\n}"), @r"
error[function-head]: functions are defined with the word `function`
 --> t:1:1
  |
1 | f() {
  | ^^^
  = hint: write `function f`, the commands, and `end`

error[other-shell]: there is no `}` in ftsh
 --> t:3:1
  |
3 | }
  | ^
  = hint: every structure ends with `end`

error[function-head]: unexpected `(`
 --> t:4:11
  |
4 | function g() {
  |           ^ expected the end of the command
  = hint: parameters follow the name, with spaces between them: `function name a b`

error[other-shell]: there is no `}` in ftsh
 --> t:6:1
  |
6 | }
  | ^
  = hint: every structure ends with `end`

error[function-head]: unexpected `{`
 --> t:7:12
  |
7 | function h {
  |            ^ expected the end of the command
  = hint: a block begins on the line after its head, or after a `;`, and ends with `end`

error[other-shell]: there is no `}` in ftsh
 --> t:8:1
  |
8 | }
  | ^
  = hint: every structure ends with `end`
");
    assert_snapshot!(rendered_errors("for x in a b; do\n  c\ndone\nfor ((i=0;i<3;i++))\nend\nfor x a b\nend"), @"
error[other-shell]: there is no `do` in ftsh
 --> t:1:15
  |
1 | for x in a b; do
  |               ^^
  = hint: a block begins on the line after its head, or after a `;`, and ends with `end`

error[other-shell]: there is no `done` in ftsh
 --> t:3:1
  |
3 | done
  | ^^^^
  = hint: every structure ends with `end`

error[loop-head]: unexpected `(`
 --> t:4:5
  |
4 | for ((i=0;i<3;i++))
  |     ^ expected the name of the loop's variable
  = hint: count with a range: `for n in 1 .to. 10`

error[unexpected]: unexpected `a`
 --> t:6:7
  |
6 | for x a b
  |       ^ expected `in` and a list
");
    assert_snapshot!(rendered_errors("> f\nA=1 > f\n| a\n"), @"
error[missing-command]: expected a command
 --> t:1:4
  |
1 | > f
  |    ^ the command ends here
  = hint: to make an empty file, `echo -n > file`

error[missing-command]: expected a command
 --> t:2:8
  |
2 | A=1 > f
  |        ^ the command ends here
  = hint: to make an empty file, `echo -n > file`

error[unexpected]: unexpected `|`
 --> t:3:1
  |
3 | | a
  | ^ expected a command
");
}

#[test]
fn subshells_and_lists_of_other_shells() {
    assert_snapshot!(rendered_errors("(cd /; pwd)\ncat <(ls -l)\ntee > (x\ntee >(x)"), @"
error[subshell]: parentheses don't run a subshell
 --> t:1:1
  |
1 | (cd /; pwd)
  | ^^^
  = hint: a `cd` in a branch of `forall` applies to the branch only, and `sh -c 'cd dir; command'` runs a separate shell; to run a program of this name, quote the name

error[process-substitution]: there is no `<( )`
 --> t:2:5
  |
2 | cat <(ls -l)
  |     ^^^^
  = hint: to read the output from a variable, `command -> v` and `-< v`; from a pipe, `command | …`

error[process-substitution]: there is no `>( )`
 --> t:4:5
  |
4 | tee >(x)
  |     ^^^^
  = hint: send the output through a pipe: `… | command`
");
    assert_snapshot!(rendered_errors("forany s in X, Y, Z\nend\nforall s in $a,$b; x; end"), @"
error[loop-head]: unexpected `,`
 --> t:1:14
  |
1 | forany s in X, Y, Z
  |              ^ expected the end of the command
  = hint: spaces separate the words of a list, not commas: `forany s in X Y Z`

error[loop-head]: unexpected `,`
 --> t:3:15
  |
3 | forall s in $a,$b; x; end
  |               ^ expected the end of the command
  = hint: spaces separate the words of a list, not commas: `forall s in $a $b`
");
    assert_snapshot!(rendered_errors("x+=1\n$x=5\nwait\nif x then\nend"), @r#"
error[compound-assignment]: there is no `+=`
 --> t:1:1
  |
1 | x+=1
  | ^^^^
  = hint: write `x=$x + 1` for numbers, `x="$x…"` for text

error[dollar-assignment]: an assignment has no `$` before the name
 --> t:2:1
  |
2 | $x=5
  | ^^^^
  = hint: write `x=value`

error[other-shell]: there is no `wait` in ftsh
 --> t:3:1
  |
3 | wait
  | ^^^^
  = hint: `forall` runs commands in parallel, and waits for all of them; `with` runs a command next to a group

error[unexpected]: unexpected `then`
 --> t:4:6
  |
4 | if x then
  |      ^^^^
  = hint: a block begins on the line after its head, or after a `;`, and ends with `end`
"#);
}

#[test]
fn limits_and_tests_of_other_shells() {
    assert_snapshot!(rendered_errors("ulimit -n 5\nif .succeeds. (command -v x)\nend\nexec > log\nexec 2>&1\npushd /"), @r"
error[other-shell]: there is no `ulimit` in ftsh
 --> t:1:1
  |
1 | ulimit -n 5
  | ^^^^^^
  = hint: limit a command in a separate shell: `sh -c 'ulimit -n 100; exec command'`; or by a program: `prlimit --nofile=100 command`

error[other-shell]: there is no `command` in ftsh
 --> t:2:16
  |
2 | if .succeeds. (command -v x)
  |                ^^^^^^^
  = hint: to look for a program: `if which name -> path`; the failure of a missing program has the kind `notfound`

error[exec-redirection]: `exec` can't redirect the shell
 --> t:4:1
  |
4 | exec > log
  | ^^^^
  = hint: redirect a group: `try`, the commands, and `end > file`; or the whole script: `ftsh script > file`

error[exec-redirection]: `exec` can't redirect the shell
 --> t:5:1
  |
5 | exec 2>&1
  | ^^^^
  = hint: redirect a group: `try`, the commands, and `end > file`; or the whole script: `ftsh script > file`

error[other-shell]: there is no `pushd` in ftsh
 --> t:6:1
  |
6 | pushd /
  | ^^^^^
  = hint: a `cd` in a branch of `forall` applies to the branch only; elsewhere, `here=$(pwd)` and `cd $here`
");
    assert!(crate::parse("t", "function type; end\ntype x\nexec a > log\n'ulimit' -n").is_ok());
}

#[test]
fn braces_and_arrays_of_other_shells() {
    assert_snapshot!(rendered_errors("for n in {1..3}\nend\nforall h in web{9..1}.x; a; end\nfor x in {a,b}\nend"), @"
error[brace-list]: braces don't make a list
 --> t:1:10
  |
1 | for n in {1..3}
  |          ^^^^^^
  = hint: count with a range: `for n in 1 .to. 3`

error[brace-list]: braces don't make a list
 --> t:3:13
  |
3 | forall h in web{9..1}.x; a; end
  |             ^^^^^^^^^^^
  = hint: count with a range, `forall h in 9 .to. 1 .step. -1`, and build the names in the loop

error[loop-head]: unexpected `,`
 --> t:4:12
  |
4 | for x in {a,b}
  |            ^ expected the end of the command
  = hint: spaces separate the words of a list, not commas: `for x in a b`
");
    assert_snapshot!(rendered_errors("a=(1 2)\na=()\na[0]=x\necho ${a[0]} ${#a[@]}"), @r#"
error[array]: unexpected `2`
 --> t:1:6
  |
1 | a=(1 2)
  |      ^ expected `)`
  = hint: parentheses do not make a list: write `list a in 1 2`

error[array]: unexpected `)`
 --> t:2:4
  |
2 | a=()
  |    ^ expected a value
  = hint: write `list a in x y`, `list add a z`, `${a[1]}` for the first element, and `$a` for all

error[array]: assignment to an element of an array
 --> t:3:1
  |
3 | a[0]=x
  | ^^^^^^
  = hint: write `list a in x y`, `list add a z`, `${a[1]}` for the first element, and `$a` for all

error[out-of-range]: the first element of a list has the index 1
 --> t:4:10
  |
4 | echo ${a[0]} ${#a[@]}
  |          ^
  = hint: write `${l[1]}`, and `${l[-1]}` for the last one
"#);
    assert!(crate::parse("t", "echo {1..3}\nfor x in \"{1..3}\"\nend\nx[ab]\n./a[0]=b").is_ok());
}
