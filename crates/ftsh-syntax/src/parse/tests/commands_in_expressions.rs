//! Commands as conditions, `$(…)` and `$((…))`.

use insta::assert_snapshot;

use super::{rendered_errors, tidied};

#[test]
fn commands_are_conditions() {
    assert_snapshot!(tidied(
        "if grep -q root /etc/passwd; end
if ! systemctl is-active -q nginx && $n < 5; end
while read -r line; end
if true || deploy; end
if [ -f x ]; end
if (deploy) && !(grep a b | wc -l); end
if f(x) && g; end
if cd /; else if ls *; else if ./check-$n; else if $home/bin/check; end
if pg_isready > /dev/null 2>&1; end
if A=1 cmd; end
if (a) == (a); end
if abc == $x; end
if $x .and. true
end"
    ), @r"
if grep -q root /etc/passwd
end
if ! systemctl is-active -q nginx && $n < 5
end
while read line
end
if true || deploy
end
if [ -f x ]
end
if (deploy) && !(grep a b | wc -l)
end
if f(x) && g
end
if cd /
else if ls *
else if ./check-$n
else if $home/bin/check
end
if pg_isready > /dev/null 2>&1
end
if A=1 cmd
end
if (a) == (a)
end
if abc == $x
end
if $x .and. true
end
");
}

#[test]
fn conditions_that_mean_something_else_are_refused() {
    let refused = [
        "if $x == a b",
        "if $x -eq 5",
        "if x = 5",
        "if x=5",
        "if a==b",
        "if $x==3",
        "if -f x",
        "if load > 5",
        "if load < $x",
        "if $x > out",
        "if grep -c x f > 5",
        "if deploy .and. true",
        "if .not. deploy",
        "if not deploy",
        "if grep a f then",
        "if true {",
        "if $x in a b",
        "if [[ $s == a* ]]",
        "if [[ $s == a ]]",
        "if grep a (f)",
        "if .succeeds. grep x",
    ]
    .map(|text| {
        let errors = rendered_errors(&format!("{text}\nend"));
        let lines = errors.lines().filter(|it| it.starts_with("error") || it.contains("= hint"));
        format!("{text}\n{}\n", lines.collect::<Vec<_>>().join("\n"))
    });
    assert_snapshot!(refused.concat(), @r#"
if $x == a b
error[unexpected]: unexpected `b`
  = hint: a text with spaces has quotes: `"a b"`
if $x -eq 5
error[unknown-operator]: `-eq` is not an operator here
  = hint: write `$x .eql. 5`
if x = 5
error[unknown-operator]: `=` is not an operator here
  = hint: write `x == 5`
if x=5
error[command-as-condition]: `==` needs spaces on both sides
  = hint: write `x == 5`
if a==b
error[command-as-condition]: `==` needs spaces on both sides
  = hint: write `a == b`
if $x==3
error[command-as-condition]: `==` needs spaces on both sides
  = hint: write `$x == 3`
if -f x
error[command-as-condition]: `-f` is not a test of a file here
  = hint: write `.isfile. x`
if load > 5
error[command-as-condition]: `>` could compare two numbers or redirect a command
  = hint: a variable has a `$`: `$load > 5`; a file has a `/`: `load > ./5`
if load < $x
error[command-as-condition]: `<` could compare two numbers or redirect a command
  = hint: a variable has a `$`: `$load < $x`; a command has parentheses: `.succeeds. (load < $x)`
if $x > out
error[command-as-condition]: `>` could compare two numbers or redirect a command
  = hint: a variable has a `$`: `$x > $out`; a command in a variable has parentheses: `.succeeds. ($x > out)`
if grep -c x f > 5
error[command-as-condition]: `>` would use a file called `5`
  = hint: to compare what a command prints, write `$(command) > 5`; a file of this name is `./5`
if deploy .and. true
error[command-as-condition]: `.and.` takes values, and no commands
  = hint: before or between commands, write `&&`
if .not. deploy
error[command-as-condition]: `.not.` takes values, and no commands
  = hint: before or between commands, write `!`
if not deploy
error[unknown-operator]: `not` is written `!`
  = hint: write `! deploy`
if grep a f then
error[unexpected]: unexpected `then`
  = hint: a block begins on the line after its head, or after a `;`, and ends with `end`
if true {
error[unexpected]: unexpected `{`
  = hint: a block begins on the line after its head, or after a `;`, and ends with `end`
if $x in a b
error[command-as-condition]: `in` is not an operator
  = hint: write `case $x`, a line `when a b`, the commands, and `end`
if [[ $s == a* ]]
error[command-as-condition]: there is no `[[` in ftsh
  = hint: a pattern comes after `when`: `case $s`, and then `when a*`
if [[ $s == a ]]
error[command-as-condition]: there is no `[[` in ftsh
  = hint: write `if $s == a`
if grep a (f)
error[unexpected]: unexpected `(`
if .succeeds. grep x
error[command-as-condition]: `.succeeds.` has no parentheses
  = hint: write the command alone, `if grep x`, or in parentheses: `.succeeds. (grep x)`
"#);
}

#[test]
fn output_is_collected() {
    assert_snapshot!(tidied(
        "a=$(date)\necho \"x $(ls -l | wc -l) $(name) $( name)\" $(echo \")\" ')' (a) # )\n) $((n+1)) $((2*(n - 1)/f(3)))
echo $(\n\n# first\ntry 3 times\n  x\nend) <<E\n$(cat f)\nE\nx=$((010))"
    ), @r#"
a=$(date)
echo "x $(ls -l | wc -l) $(name) $( name)" $(
    echo ")" ')' (a) # )
) $((n + 1)) $((2 * (n - 1) / f(3)))
echo $(
    # first
    try 3 times
        x
    end
) <<E
$(cat f)
E
x=$((010))
"#);
}

#[test]
fn wrong_substitutions_are_refused() {
    let refused = [
        "echo $()",
        "echo $(<f)",
        "echo $(a",
        "echo $((1 ** 2))",
        "echo $((n++))",
        "x=$(return 1)",
        "for x in a; y=$( break); end",
        "x=$(cat <<E\n)",
        "x=$(if a)",
    ]
    .map(rendered_errors);
    assert_snapshot!(refused.concat(), @r#"
error[command-substitution]: there is no command in `$()`
 --> t:1:6
  |
1 | echo $()
  |      ^^^
  = hint: write `$(command)`, or `""` for an empty text
error[command-substitution]: `$(…)` holds commands
 --> t:1:6
  |
1 | echo $(<f)
  |      ^^^^^
  = hint: write `$(cat f)`
error[command-substitution]: this `$(` has no `)`
 --> t:1:6
  |
1 | echo $(a
  |      ^^^
  = hint: write `$(command)`; a `)` that closes nothing needs quotes
error[arithmetic]: this is not a calculation of `$((…))`
 --> t:1:6
  |
1 | echo $((1 ** 2))
  |      ^^^^^^^^^^^
  = hint: calculate with numbers, names, calls and parentheses, `$((2 * n + 1))`; a power is `x=2 .pow. $n`
error[arithmetic]: this is not a calculation of `$((…))`
 --> t:1:6
  |
1 | echo $((n++))
  |      ^^^^^^^^
  = hint: calculate with numbers, names, calls and parentheses, `$((2 * n + 1))`; a power is `x=2 .pow. $n`
error[leaves-branch]: `return` can't leave a `$(…)`
 --> t:1:5
  |
1 | x=$(return 1)
  |     ^^^^^^^^
  = hint: code that runs in parallel ends after its last command, by a failure, or by `exit`
error[leaves-branch]: `break` can't leave a `$(…)`
 --> t:1:18
  |
1 | for x in a; y=$( break); end
  |                  ^^^^^
  = hint: code that runs in parallel ends after its last command, by a failure, or by `exit`
error[unclosed-here-document]: unterminated here-document
 --> t:1:9
  |
1 | x=$(cat <<E
  |         ^^^ no line `E` follows
  = hint: the last line must be the delimiter alone; after `<<-E` spaces may come before it
error[missing-end]: this `if` has no `end`
 --> t:1:5
  |
1 | x=$(if a)
  |     ^^
"#);
}
