//! Missing programs.

use insta::assert_snapshot;

use super::{assert_quiet, messages, warnings};

#[test]
fn missing_programs() {
    assert_snapshot!(warnings("try for 1 day\n  wgte -q x\n  nothing | sort\nend"), @"
warning[missing-program]: there is no program `wgte` along `PATH`
 --> t:2:3
  |
1 | try for 1 day
  | ------------- each attempt of this `try` would look for the program
2 |   wgte -q x
  |   ^^^^
  = hint: did you mean `wget`?

warning[missing-program]: there is no program `nothing` along `PATH`
 --> t:3:3
  |
1 | try for 1 day
  | ------------- each attempt of this `try` would look for the program
 ...
3 |   nothing | sort
  |   ^^^^^^^
  = hint: ignore this warning if the program is installed during the run
");
    for text in [
        "try 3 times; f; end; function f; if .succeeds. (nope x); a; end; end",
        "try $n times; exec nope; end",
        "function f; try for 1 hour; nope; end; end; f",
        "try 2 times; f; end; function f; try 3 times; exec nope; end; end",
        "try 2 times; function f; try 3 times; nope; end; end; f; end",
        "try for 1 hour; forany x in a b; nope; nope; end; catch; nope; end",
    ] {
        assert_eq!(messages(text), ["there is no program `nope` along `PATH`"], "{text}");
    }
    assert_quiet(&[
        "nope",
        "try; nope; catch; a; end",
        "try for 1 hour or 1 time; nope; end",
        "try for 1 hour while $error_kind .ne. notfound; nope; end",
        "try 2 times; ./nope; /nope; $nope; cd nope; wget; end",
        "try 2 times; nope; end; function nope; a; end",
        "function f; nope; end; f",
        "try 2 times; function f; nope; end; end; f",
        "PATH=/opt:$PATH; try 2 times; nope; end",
        "try 2 times; PATH=/opt nope; end",
        "export PATH=/opt; try 2 times; nope; end",
        "a -> PATH; try 2 times; nope; end",
        "source lib; try 2 times; nope; end",
    ]);
}
