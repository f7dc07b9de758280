//! Missing parts at the end of a text.

use crate::Unfinished::{self, Block, Document, Line, Pipeline, Quote};
use crate::unfinished;

#[test]
fn missing_parts_are_found() {
    let lacks = |text: &str, expected: Unfinished| {
        assert_eq!(unfinished(text), Some(expected), "{text}");
    };
    lacks("try", Block("try"));
    lacks("try for 5 minutes; cp a b", Block("try"));
    lacks("try\n cp a b\ncatch\n", Block("catch"));
    lacks("try\nforall x in a b\n", Block("forall"));
    lacks("if true\nelse if false", Block("if"));
    lacks("if true\nelse\n # comment", Block("else"));
    lacks("case $x # comment\n", Block("case"));
    lacks("case $x\nwhen a b\n ls", Block("when"));
    lacks("case $x\nwhen a\nelse\n", Block("else"));
    lacks("ls | case $x\nwhen a", Block("when"));
    lacks("function f\nwhile true\nend", Block("function"));
    lacks("echo 'a\nb", Quote('\''));
    lacks("try; echo \"a $b", Quote('"'));
    lacks("x=\"", Quote('"'));
    lacks("x=$(echo a\n", Quote('('));
    lacks("try; echo $(if true\n echo b", Quote('('));
    lacks("cat <<EOF\ntext", Document);
    lacks("cat <<A <<'B'\nA\ntext\n", Document);
    lacks("cat <<EOF", Document);
    lacks("ls |", Pipeline);
    lacks("ls |&  ", Pipeline);
    lacks("ls | sort |\n", Pipeline);
    lacks("try; ls |", Pipeline);
    lacks("ls | while .succeeds. (read file)", Block("while"));
    lacks("ls |\n for x in a\n echo", Block("for"));
    lacks("try; ls; end |", Pipeline);
    lacks("try; ls; end > f |&\n", Pipeline);
    lacks("try; ls; end | sort | try 2 times\ncatch", Block("catch"));
    lacks("echo a \\", Line);
    lacks("echo a\\", Line);
}

#[test]
fn complete_or_wrong_texts_lack_nothing() {
    for text in [
        "",
        "  \n",
        "ls",
        "try; ls; end",
        "# it's",
        "echo a \\\\",
        "echo # a \\",
        "cat <<EOF\ntext\nEOF",
        "ls || true",
        "ls &&",
        "try 5 minutse",
        "end",
        "try; end; end",
        "if true; then; ls; fi",
        "catch; echo 'a",
        "try\n5 .add.\nif (a\n",
        "echo )",
        "echo `",
        "echo $(;)\n",
        "for",
        "|",
    ] {
        assert_eq!(unfinished(text), None, "{text}");
    }
}

#[test]
fn known_functions_may_be_called() {
    use crate::{KnownNames, parse_with, unfinished_with};
    let known = KnownNames { functions: &["length", "break", "set"], ..KnownNames::default() };
    for text in ["x=length(a, b)", "break", "set -e", "for x in length(); break; end"] {
        assert!(parse_with("t", text, KnownNames::default()).is_err(), "{text}");
        assert!(parse_with("t", text, known).is_ok(), "{text}");
    }
    let text = "if length(a, b) .eql. 2\n";
    assert_eq!(unfinished_with(text, KnownNames::default()), None);
    assert_eq!(unfinished_with(text, known), Some(Unfinished::Block("if")));
}
