//! Values inside code for another shell.

use insta::assert_snapshot;

use super::warnings;

#[test]
fn values_that_become_code() {
    assert_snapshot!(warnings("for f in *; env sh -ec \"rm $f\"; end"), @r#"
warning[value-in-code]: a value inside the code for `sh` is code as well
 --> t:1:24
  |
1 | for f in *; env sh -ec "rm $f"; end
  |                        ^^^^^^^
  = hint: pass the value after the code, which reads it as `"$0"`
"#);
    for code in [
        "/bin/bash -c \"rm $1\"",
        "x=a; read x; sh -c \"exec $x\"",
        "sh -c \"rm ${stem(\"a/b\")}\"",
        "forall f from input; sh -c \"rm $f\"; end",
        "sh -c \"rm ${HOME:-x}\"",
    ] {
        assert!(warnings(code).contains("[value-in-code]"), "{code}");
    }
    for code in [
        "for f in *; sh -c 'rm \"$0\"' \"$f\"; end",
        "for n in 1 .to. 3 10; sh -c \"exit $n\"; end",
        "for h in web-1 web-2; sh -c \"ssh $h true\"; end",
        "try 2 times; sh -c \"exit $attempt\"; end",
        "x=5; x=$x + 1; sh -c \"exit $x\"",
        "sh -c $1; bash -c \"$1\"",
        "sh -x \"$1\"; echo sh -c; grep -c \"$1\" f",
    ] {
        assert!(!warnings(code).contains("[value-in-code]"), "{code}");
    }
}
