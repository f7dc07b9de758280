//! Unreachable commands, and ignored failures.

use insta::assert_snapshot;

use super::{assert_quiet, messages, warnings};

#[test]
fn ignored_failures() {
    assert_snapshot!(warnings("try 5 times\n  a\ncatch\n  echo \"$error\"\nend"), @"
warning[forgotten-failure]: this `catch` ignores every failure
 --> t:3:1
  |
3 | catch
  | ^^^^^
  = hint: pass the failure on with `failure`, or explain in a comment inside the `catch` why the failure doesn't matter
");
    for catch in [
        "",
        "success",
        "x=1",
        "rm -f x; echo $error | logger -t job",
        "if .exists. x; rm x; end",
        "case $error_kind; when timeout; echo late; end",
        "tell",
    ] {
        let text =
            format!("try; a; catch; {catch}; end; function tell; echo sorry; tell; end; tell");
        assert_eq!(messages(&text).len(), 1, "{text}");
    }
    assert_quiet(&[
        "try; a; catch # nobody minds\n end",
        "try; a; catch\n # nobody minds\n echo $error; end",
        "try; a; catch; echo $error # nobody minds\n end",
        "try; a; catch; if $x .eq. y; failure; end; end",
        "try; a; catch; exit 0; end",
        "try; a; catch; giveup; end",
        "function f; try; a; catch; return; end; end; f",
        "try; a; catch; die; end; function die; echo $error; exit 3; end",
        // Another way to do it.
        "try; a; catch; b; end",
        // The failure is counted, recorded or distinguished later.
        "n=0; try; a; catch; n=$n .add. 1; end; test $n -lt 3",
        "ok=true; try; a; catch; ok=false; end; if $ok; b; end",
        "try; a; catch; echo $error ->> why; end; cat -< why",
        "try; a; catch; $b; end",
    ]);
}

#[test]
fn unreachable_commands() {
    assert_snapshot!(warnings("try\n  giveup no use\n  # why?\n  echo a\n  echo b\nend"), @"
warning[unreachable]: this is never reached
 --> t:4:3
  |
2 |   giveup no use
  |   ------------- commands after this are not reached
 ...
4 |   echo a
  |   ^^^^^^
");
    for leaving in ["exit 1", "failure x", "return", "exec a", "if $x; exit; else; failure; end"] {
        assert_eq!(messages(&format!("{leaving}; a")), ["this is never reached"], "{leaving}");
    }
    assert_quiet(&[
        "exit\n# the end",
        "f; exit; function f; a; end",
        "if $x; exit; end; a",
        "if $x; exit; else if $y; failure; end; a",
        "try; failure; end; a",
        "forany x in a b; failure; end; a",
        "exit | cat; a",
        "$exit 1; a",
        "function failure; a; end; failure; a",
    ]);
}
