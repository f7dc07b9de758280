//! Words before a command: `accept` and `keep`.

use crate::ast::{CommandKind, ModifierKind, Simple};
use crate::{parse, print};

/// Returns the only command of a script.
fn simple(text: &str) -> Simple {
    let script = parse("script", text).unwrap_or_else(|errors| panic!("{text}: {errors:?}"));
    match &script.body.commands[0].kind {
        CommandKind::Pipeline(pipeline) => pipeline.stages[0].simple().expect("a command").clone(),
        other => panic!("{other:?}"),
    }
}

fn modifiers(text: &str) -> Vec<String> {
    simple(text).modifiers.iter().map(|it| it.kind.to_string()).collect()
}

#[test]
fn modifiers_stand_before_a_command() {
    assert_eq!(modifiers("accept 24,3 rsync -a x y"), ["accept 24,3"]);
    assert_eq!(
        modifiers("A=1 keep accept 0 accept 255 f > out"),
        ["keep", "accept 0", "accept 255"]
    );
    assert!(matches!(simple("keep server").modifiers[0].kind, ModifierKind::Keep));
    let text = "A=1 accept 24,3 keep rsync -a \"$x\" > out | accept 1 grep x\n";
    assert_eq!(print(&parse("script", text).expect("a script")), text);
    let asks = "if .yes. (accept 2 grep x f)\nend\n";
    assert_eq!(print(&parse("script", asks).expect("a script")), asks);
}

#[test]
fn other_forms_are_refused_and_quotes_make_programs() {
    for text in ["accept lp", "accept", "accept -h x", "keep", "keep > f", "accept $n x"] {
        let errors = parse("script", text).expect_err(text).errors;
        assert!(errors[0].message.starts_with("this is not a form of"), "{text}");
    }
    for text in ["'accept' 24 x", "./accept 24 x", "\"keep\" x", "function keep\nend\nkeep x"] {
        let simple = text.rsplit('\n').next().expect("a line");
        let script = parse("script", text).expect("a script");
        let CommandKind::Pipeline(pipeline) = &script.body.commands.last().expect("one").kind
        else {
            panic!("{text}");
        };
        let command = pipeline.stages[0].simple().expect("a command");
        assert!(command.modifiers.is_empty(), "{text}");
        assert_eq!(print(&script).trim_end().rsplit('\n').next(), Some(simple), "{text}");
    }
}

#[test]
fn mistakes_are_explained() {
    for (text, message) in [
        ("accept 24", "the command after `accept` is missing"),
        ("accept 24 > f", "the command after `accept` is missing"),
        ("accept 24, 3 rsync", "a status is missing next to a comma"),
        ("accept 256 rsync", "a status is a number from 0 to 255"),
        ("accept 1 A=1 rsync", "an assignment comes after `accept`"),
        ("keep x=1", "an assignment comes after `keep`"),
        ("keep exec server", "`exec` comes after `keep`"),
        ("keep try 3 times", "`try` comes after `keep`"),
        ("accept 1 break", "`break` comes after `accept`"),
    ] {
        let errors = parse("script", text).expect_err(text);
        let all = format!("{errors:?}");
        assert!(all.contains(message), "{text}: {all}");
    }
}

/// A structure after a modifier is refused, and its `end` is no second mistake.
#[test]
fn a_refused_structure_is_one_mistake() {
    for text in [
        "keep try 3 times\na\ncatch\nb\nend",
        "accept 1,2 if true\na\nelse\nb\nend",
        "accept 24 keep for x in a b\na\nend\nb",
        "keep keep forall x in a\na\nend",
    ] {
        let errors = parse("script", text).expect_err(text);
        assert_eq!(errors.errors.len(), 1, "{text}: {errors:?}");
    }
}
