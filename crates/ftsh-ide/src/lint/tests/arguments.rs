//! Arguments of the script that may be missing.

use insta::assert_snapshot;

use super::{assert_quiet, warnings};

#[test]
fn unchecked_arguments() {
    assert_snapshot!(warnings("rm -rf $1\nrm -rf \"$2\""), @r"
    warning[unchecked-argument]: `$1` is empty if the script gets too few arguments
     --> t:1:8
      |
    1 | rm -rf $1
      |        ^^
      = hint: write `${1:?text}`, which fails with the text, or look at `$#` first
    ");
    assert_snapshot!(warnings("try 2 times\necho \"it costs $5\" > f\nend"), @r#"
    warning[unchecked-argument]: `$5` is empty if the script gets too few arguments
     --> t:2:16
      |
    2 | echo "it costs $5" > f
      |                ^^
      = hint: write `${5:?text}`, which fails with the text; a dollar sign is `\$`
    "#);
    assert_quiet(&[
        "if $# .lt. 1; failure usage; end; rm \"$1\"",
        "args name; rm \"$1\"",
        "rm \"${1:-a}\"",
        "rm \"${1:?no file}\" \"$2\"",
        "x=$1; shift",
        "for f in \"$@\"; rm \"$f\" \"$1\"; end",
        "if $1 .eq. start; a; else; failure usage; end",
        "function f; rm $1; end; f a",
        "echo $0 $$ '$1'",
    ]);
}
