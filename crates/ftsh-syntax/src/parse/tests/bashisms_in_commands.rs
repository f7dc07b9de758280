//! What is said to those who write another shell's commands.

use insta::assert_snapshot;

use super::mistakes;

#[test]
fn habits_of_commands() {
    assert_snapshot!(mistakes("a || b\na && b\na &\na; b & c"), @"
error[and-or]: unexpected `||`
 --> t:1:3
  |
1 | a || b
  |   ^^ expected the end of the command
  = hint: `||` isn't needed: a group stops at the first failure; `try … catch … end` reacts to one

error[and-or]: unexpected `&&`
 --> t:2:3
  |
2 | a && b
  |   ^^ expected the end of the command
  = hint: `&&` isn't needed: each command runs only if the one before succeeded

error[background]: unexpected `&`
 --> t:3:3
  |
3 | a &
  |   ^ expected the end of the command
  = hint: `forall` runs commands at once, and waits for all of them

error[background]: unexpected `&`
 --> t:4:6
  |
4 | a; b & c
  |      ^ expected the end of the command
  = hint: `forall` runs commands at once, and waits for all of them
");
    assert_snapshot!(mistakes("set -e\nlocal x y\n! a\n[[ -f x ]]\ntrap x\ncase $x in\nesac"), @r#"
error[other-shell]: there is no `set` in ftsh
 --> t:1:1
  |
1 | set -e
  | ^^^
  = hint: a group stops at its first failure, so `set -e` isn't needed; nor is `-u`, and `ftsh -l 20` logs commands as `-x` does

error[local-names]: `local` takes one name, and no more than its value
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
  = hint: to go on when a command fails: `try … catch … end`; to ask it a question: `if .not. .succeeds. (command)`

error[other-shell]: there is no `[[` in ftsh
 --> t:4:1
  |
4 | [[ -f x ]]
  | ^^
  = hint: compare with operators: `if $a .eq. $b`, `if .isfile. $f`

error[other-shell]: there is no `trap` in ftsh
 --> t:5:1
  |
5 | trap x
  | ^^^^
  = hint: `try … finally … end` cleans up however the `try` is left, also by a signal, and `catch` reacts to failures; processes of a failed attempt are ended in any case

error[other-shell]: there is no `case` in ftsh
 --> t:6:1
  |
6 | case $x in
  | ^^^^
  = hint: compare in turn: `if $x .eq. a … else if $x .matches. "^b" … else … end`

error[other-shell]: there is no `esac` in ftsh
 --> t:7:1
  |
7 | esac
  | ^^^^
  = hint: every structure ends with `end`
"#);
    assert_snapshot!(mistakes("f() {\n  a\n}\nfunction g() {\n  b\n}\nfunction h {\n}"), @"
error[function-head]: functions are defined with a word
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
  = hint: a function is its name alone, its arguments are `$1`, `$2`, …: `function name`

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
  = hint: a function is its name alone, its arguments are `$1`, `$2`, …: `function name`

error[other-shell]: there is no `}` in ftsh
 --> t:8:1
  |
8 | }
  | ^
  = hint: every structure ends with `end`
");
    assert_snapshot!(mistakes("for x in a b; do\n  c\ndone\nfor ((i=0;i<3;i++))\nend\nfor x a b\nend"), @"
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
    assert_snapshot!(mistakes("a | while read x\n  b\nend"), @"
error[command-as-condition]: unexpected `x`
 --> t:1:16
  |
1 | a | while read x
  |                ^ expected an operator, or the end of the command
  = hint: `while` takes an expression; to ask a command, `while .succeeds. (read x)`
");
    assert_snapshot!(mistakes("> f\nA=1 > f\n| a\n"), @"
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
fn habits_of_subshells_and_lists() {
    assert_snapshot!(mistakes("(cd /; pwd)\ncat <(ls -l)\ntee > (x\ntee >(x)"), @"
error[subshell]: parentheses make no subshell
 --> t:1:1
  |
1 | (cd /; pwd)
  | ^^^
  = hint: a `cd` in a branch of `forall` stays there, and `sh -c 'cd dir; command'` is a shell of its own; to run a program of that name, quote it

error[process-substitution]: there is no `<( )`
 --> t:2:5
  |
2 | cat <(ls -l)
  |     ^^^^
  = hint: collect the output, `command -> v`, and read it with `-< v`; for a pipe, `command | …`

error[process-substitution]: there is no `>( )`
 --> t:4:5
  |
4 | tee >(x)
  |     ^^^^
  = hint: send the output on with a pipe: `… | command`
");
    assert_snapshot!(mistakes("forany s in X, Y, Z\nend\nforall s in $a,$b; x; end"), @"
error[loop-head]: unexpected `,`
 --> t:1:14
  |
1 | forany s in X, Y, Z
  |              ^ expected the end of the command
  = hint: blanks separate the words of a list, not commas: `forany s in X Y Z`

error[loop-head]: unexpected `,`
 --> t:3:15
  |
3 | forall s in $a,$b; x; end
  |               ^ expected the end of the command
  = hint: blanks separate the words of a list, not commas: `forall s in $a $b`
");
    assert_snapshot!(mistakes("x+=1\n$x=5\nwait\nif x then\nend"), @r#"
error[compound-assignment]: there is no `+=`
 --> t:1:1
  |
1 | x+=1
  | ^^^^
  = hint: write `x=$x .add. 1` for numbers, `x="$x…"` for text

error[dollar-assignment]: a variable is assigned without its `$`
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
  = hint: `forall` runs commands at once, and waits for all of them

error[unexpected]: unexpected `then`
 --> t:4:6
  |
4 | if x then
  |      ^^^^ expected an operator, or the end of the command
  = hint: a block begins on the line after its head, or after a `;`, and ends with `end`
"#);
    assert_snapshot!(mistakes("x=$(date)\necho \"$(pwd) $(HOME)\""), @r#"
error[command-substitution]: `$( )` doesn't run commands
 --> t:1:3
  |
1 | x=$(date)
  |   ^^^^^^^
  = hint: write `date -> x`

error[command-substitution]: `$( )` doesn't run commands
 --> t:2:7
  |
2 | echo "$(pwd) $(HOME)"
  |       ^^^^^^
  = hint: write `pwd -> v`, then use `$v`
"#);
    let variable = "date -> date\necho $(date)";
    assert!(crate::parse("t", variable).is_ok());
}

#[test]
fn habits_of_limits_and_questions() {
    assert_snapshot!(mistakes("ulimit -n 5\nif .succeeds. (command -v x)\nend\nexec > log\nexec 2>&1\npushd /"), @r#"
error[other-shell]: there is no `ulimit` in ftsh
 --> t:1:1
  |
1 | ulimit -n 5
  | ^^^^^^
  = hint: a shell of its own limits a command: `sh -c 'ulimit -n 100; exec command'`; so does `prlimit --nofile=100 command`

error[other-shell]: there is no `command` in ftsh
 --> t:2:16
  |
2 | if .succeeds. (command -v x)
  |                ^^^^^^^
  = hint: to look for a program: `if .succeeds. (which name -> path)`; the failure of a missing one has the kind `notfound`

error[exec-redirection]: `exec` redirects nothing but its command
 --> t:4:1
  |
4 | exec > log
  | ^^^^
  = hint: redirect what follows as a whole: `try`, the commands, and `end > file`; or the script: `ftsh script > file`

error[exec-redirection]: `exec` redirects nothing but its command
 --> t:5:1
  |
5 | exec 2>&1
  | ^^^^
  = hint: redirect what follows as a whole: `try`, the commands, and `end > file`; or the script: `ftsh script > file`

error[other-shell]: there is no `pushd` in ftsh
 --> t:6:1
  |
6 | pushd /
  | ^^^^^
  = hint: a `cd` in a branch of `forall` stays there; else `pwd -> here` and `cd "$here"`
"#);
    assert!(crate::parse("t", "function type; end\ntype x\nexec a > log\n'ulimit' -n").is_ok());
}

#[test]
fn habits_of_braces_and_arrays() {
    assert_snapshot!(mistakes("for n in {1..3}\nend\nforall h in web{9..1}.x; a; end\nfor x in {a,b}\nend"), @"
error[brace-list]: braces make no list
 --> t:1:10
  |
1 | for n in {1..3}
  |          ^^^^^^
  = hint: count with a range: `for n in 1 .to. 3`

error[brace-list]: braces make no list
 --> t:3:13
  |
3 | forall h in web{9..1}.x; a; end
  |             ^^^^^^^^^^^
  = hint: count with a range, `forall h in 9 .to. 1 .step. -1`, and put the names together inside

error[loop-head]: unexpected `,`
 --> t:4:12
  |
4 | for x in {a,b}
  |            ^ expected the end of the command
  = hint: blanks separate the words of a list, not commas: `for x in a b`
");
    assert_snapshot!(mistakes("a=(1 2)\na=()\na[0]=x\necho ${a[0]} ${#a[@]}"), @r#"
error[array]: unexpected `2`
 --> t:1:6
  |
1 | a=(1 2)
  |      ^ expected `)`
  = hint: there are no arrays: a variable holds words, `a="x y"`, that `for x in $a` takes apart, or lines, for `for x in lines($a)`

error[array]: unexpected `)`
 --> t:2:4
  |
2 | a=()
  |    ^ expected a value
  = hint: there are no arrays: a variable holds words, `a="x y"`, that `for x in $a` takes apart, or lines, for `for x in lines($a)`

error[array]: an element of an array is assigned
 --> t:3:1
  |
3 | a[0]=x
  | ^^^^^^
  = hint: there are no arrays: a variable holds words, `a="x y"`, that `for x in $a` takes apart, or lines, for `for x in lines($a)`

error[unknown-substitution]: unknown kind of substitution
 --> t:4:6
  |
4 | echo ${a[0]} ${#a[@]}
  |      ^^^^^^^
  = hint: there are no arrays: a variable holds words, `a="x y"`, that `for x in $a` takes apart, or lines, for `for x in lines($a)`
"#);
    assert!(crate::parse("t", "echo {1..3}\nfor x in \"{1..3}\"\nend\nx[ab]\n./a[0]=b").is_ok());
}
