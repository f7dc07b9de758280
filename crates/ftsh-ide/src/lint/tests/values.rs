//! Wildcards and escapes that are text, symbols in lists, and lists in places of text.

use super::{assert_quiet, messages};

#[test]
fn wildcards_that_are_text() {
    for text in [
        "if $s == a*; a; end",
        "if .exists. *.txt; a; end",
        "files=*.txt",
        "n=count(*.txt)",
        "x=($s != [a-c]x)",
        "if f?o .eq. $s; a; end",
    ] {
        assert_eq!(messages(text), ["a wildcard is text here: no files are looked for"], "{text}");
    }
    assert_quiet(&[
        "if $s .matches. a*; a; end; x=replace($s, a*, b); y=files(*.txt); z=match($s, a?)",
        "for f in *.txt 1 .to. 3; a; end; list l in *.txt; case $s; when a*; a; end",
        "x=*; op=-; if $x == ?; a; end; u=http://a/b?c; y=(2 * 3); z=json($s, .items[0])",
        "x=\"a*\"; if $s == 'a*'; a; end; x=a\\*",
    ]);
}

#[test]
fn escapes_that_mean_something_else() {
    for (text, count) in [
        ("echo \"a\\nb\"", 1),
        ("x=\"a\\nb\"; export y=\"\\n\"", 2),
        (r#"printf '%s\n' 'a\\b' 'say \"hi\"' 'c'"#, 2),
        (r#"x="it's"'\\'"#, 1),
        (r#"x=json('{"m": "say \"hi\""}', '.m')"#, 1),
    ] {
        let found = messages(text);
        assert_eq!(found.len(), count, "{text}: {found:?}");
        assert!(found.iter().all(|it| it.contains("character")), "{text}: {found:?}");
    }
    for text in [
        r"echo 'C:\' and 'D:\'",
        r"x='C:\'; y='D:\'",
        r"echo 'a\'|sort 'b\'",
        "echo 'a\\'\necho 'b\\'",
    ] {
        assert!(messages(text)[0].contains("`\\'` is a quote"), "{text}");
    }
    assert_quiet(&[r#"x='don\'t stop'; y='a\''; z="C:\\""#]);
    assert_quiet(&[
        "printf \"a\\nb\\n\"; echo 'a\\nb'; echo a\\\\nb",
        r#"x=replace($s, "\n", " "); y=join("\n", a, b); echo "$x" 'it\'s "so"' "'\\'" '\d'"#,
        "cat <<'END'\n'\\\\'\nEND",
    ]);
}

#[test]
fn patterns_of_one_character() {
    for text in ["x=replace($s, \".\", -)", "x=replace($s, '|', -)", "x=match($s, ^)"] {
        assert!(messages(text)[0].contains("is a regular expression here"), "{text}");
    }
    assert!(messages("for l in lines(hosts.txt); a; end")[0].contains("is one line"));
    assert_quiet(&[
        "x=replace($s, \"\\.\", -); y=split($s, \".\"); for l in lines(\"a\nb\"); a; end",
    ]);
}

#[test]
fn words_beside_ranges() {
    assert_eq!(messages("for i in 1 .to. 3 -1; a; end"), ["`-1` is a word after the range"]);
    assert_eq!(messages("for i in 1 to $n; a; end"), ["`to` is a word, and not a range"]);
    assert_eq!(messages("list l in 1 .. 3"), ["`..` is a word, and not a range"]);
    assert_eq!(
        messages("h=$n*$m; k=2*$n"),
        ["`$n*$m` is text: nothing is calculated", "`2*$n` is text: nothing is calculated"]
    );
    assert_eq!(messages("if $n*2 == 6; a; end"), ["`$n*2` is text: nothing is calculated"]);
    assert_quiet(&["for i in 1 .to. 3 - 1; a; end; for w in a to b; a; end; h=$a/$b"]);
}

#[test]
fn lists_in_places_of_text() {
    let declared = "list l in a b; args_of=x; ";
    for text in ["echo x$l", "for w in -$l; a; end", "a --to=${l}"] {
        assert!(messages(&format!("{declared}{text}"))[0].contains("one word for each"), "{text}");
    }
    assert!(messages("list l in a; n=length($l)")[0].contains("characters of all elements"));
    assert_quiet(&[
        "list l in a; echo $l ${l} \"x$l\" ${l[2..]}; n=count($l); x=a$l; t=length(\"$l\")",
        "list l in a; l=b; echo x$l",
        "list l in a; export x=$l",
    ]);
}
