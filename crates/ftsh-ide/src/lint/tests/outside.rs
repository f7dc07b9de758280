//! Values from outside the script, indexes and filters.

use super::{assert_quiet, messages};

#[test]
fn values_from_outside_need_quotes() {
    for script in [
        "read x; rm $x",
        "date -> d; rm a/$d $d",
        "date ->> d; rm $d",
        "for f in *.txt; rm $f; end",
        "for f in lines($text) b; rm $f; end",
        "for f in split($text, \",\"); try 2 times; rm $f; end; end",
        "for f in \"$@\"; rm $f; end",
        "args file; rm $1",
        "function f; date -> d; rm $d; end; f",
    ] {
        let found = messages(script);
        assert_eq!(found.len(), 1, "{script}: {found:?}");
        assert!(found[0].contains("comes from outside"), "{script}: {found:?}");
    }
    assert_quiet(&[
        "read x; rm \"$x\"; y=$x; cd $x; echo $x > $x",
        "date -> d; d=a; rm $d",
        "for f in a b; rm $f; end",
        "list l in *.txt; rm ${l[@]}",
        "function f; rm $1; end; f a",
        "x=\"-r -f\"; rm $x",
    ]);
}

#[test]
fn indexes_have_braces() {
    for script in ["list l in a; echo $l[1]", "args files...; echo \"$files[1]\""] {
        assert!(messages(script)[0].contains("is the whole list here"), "{script}");
    }
    assert_quiet(&["list l in a; echo ${l[1]} \"${l}[1]\"", "l=a; echo \"$l[1]\""]);
}

#[test]
fn filters_are_checked() {
    for script in ["x=json(1, \".[\")", "echo \"${json(1, nosuch)}\""] {
        assert!(messages(script)[0].contains("not a filter of jq"), "{script}");
    }
    assert_quiet(&["x=json(1, \".a[] | @csv\")", "f=.a; x=json(1, $f)"]);
}
