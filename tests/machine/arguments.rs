//! Arguments that a script declares by `args`.

use super::world;

const SHOW: &str =
    "args \"Fetch.\" url dir=/srv -v -n|--dry-run -o|--out=FILE -r|--retries=3 files...
echo \"$url $dir $v $dry_run ${out:-unset} $retries\"
for file in lines($files); echo \"<$file>\"; end
for word in \"$@\"; echo \"[$word]\"; end
echo $#";

/// Checks what a script with these arguments prints.
#[track_caller]
fn prints(args: &[&'static str], expected: &str) {
    world().args(args).run(SHOW).succeeds().prints(expected);
}

#[test]
fn operands_fill_the_names_in_order() {
    prints(&["u"], "u /srv false false unset 3\n[u]\n1\n");
    prints(&["u", "d"], "u d false false unset 3\n[u]\n[d]\n2\n");
    prints(
        &["u", "d", "a b", "c"],
        "u d false false unset 3\n<a b>\n<c>\n[u]\n[d]\n[a b]\n[c]\n4\n",
    );
    prints(&["", "-"], " - false false unset 3\n[]\n[-]\n2\n");
}

#[test]
fn options_are_recognized_in_all_spellings() {
    for args in [
        &["-v", "-n", "-o", "f", "-r", "5", "u"][..],
        &["-vno", "f", "--retries=5", "u"],
        &["u", "-nvof", "-r5"],
        &["--dry-run", "u", "-v", "--out=f", "--retries", "5"],
        &["-o=f", "-vn", "-r=5", "u"],
        &["-o", "other", "--out", "f", "-v", "-v", "--retries=1", "-r5", "-n", "u"],
    ] {
        prints(args, "u /srv true true f 5\n[u]\n1\n");
    }
    prints(&["--out=", "u"], "u /srv false false unset 3\n[u]\n1\n");
    prints(&["--out=a=b", "u"], "u /srv false false a=b 3\n[u]\n1\n");
    prints(&["--out", "--dry-run", "u"], "u /srv false false --dry-run 3\n[u]\n1\n");
}

#[test]
fn two_dashes_end_the_options() {
    prints(
        &["-v", "--", "-n", "--", "-5"],
        "-n -- true false unset 3\n<-5>\n[-n]\n[--]\n[-5]\n3\n",
    );
}

#[test]
fn misuse_is_a_failure_before_the_first_command() {
    for (args, message) in [
        (&[][..], "the argument `url` is missing"),
        (&["-v"], "the argument `url` is missing"),
        (&["-x", "u"], "there is no option `-x`"),
        (&["-vx", "u"], "there is no option `-x`"),
        (&["-5"], "there is no option `-5`; write `--` before a number"),
        (&["--dryrun", "u"], "there is no option `--dryrun`; did you mean `--dry-run`?"),
        (&["--retr=5", "u"], "there is no option `--retr`; did you mean `--retries`?"),
        (&["u", "--out"], "the option `--out` lacks its value"),
        (&["u", "-vo"], "the option `-o` lacks its value"),
        (&["--dry-run=no", "u"], "the option `--dry-run` takes no value"),
        (&["u", "-v=3"], "the option `-v` takes no value"),
    ] {
        let ran = world().args(args).run(SHOW).fails("usage", 2);
        assert!(ran.message().contains(message), "{args:?}: {}", ran.message());
        ran.prints("");
    }
    let ran = world().args(&["a", "b"]).run("args a\necho $a").fails("usage", 2);
    assert!(ran.message().contains("there is no argument for `b`"), "{}", ran.message());
}

#[test]
fn an_absent_option_is_unset_also_in_the_environment() {
    world().env("out", "inherited").run("args --out=FILE\necho ${out:-none}").prints("none\n");
    world().env("out", "inherited").run("args --out=FILE\necho $out").fails("expression", 1);
}

#[test]
fn own_help_is_an_option() {
    world().args(&["-h", "x"]).run("args -h|--host=NAME\necho $host").prints("x\n");
    world().args(&["-h"]).run("args -v\necho $v").fails("usage", 2).prints("");
}

#[test]
fn functions_have_arguments_of_their_own() {
    let script = "args name\nf a b\necho $#\nfunction f\n    echo $1 $# $name\nend";
    world().args(&["n"]).run(script).succeeds().prints("a 2 n\n1\n");
}
