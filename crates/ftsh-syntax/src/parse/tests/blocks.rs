//! `in`.

use super::{parse, rendered_errors, tidied};
use crate::ast::CommandKind;

#[test]
fn only_one_value_makes_in_a_head() {
    for directory in ["build", "$dir", "\"my files\"", "~/src", "dirname($f)", "$(pwd)", "a*"] {
        let text = format!("in {directory}\n    make\nend > log\n");
        assert_eq!(tidied(&text), text);
    }
    assert_eq!(tidied("a|in  b;c;end|d"), "a | in b\n    c\nend | d\n");
    for command in ["in", "in a b", "./in a", "\"in\" a", "in > f"] {
        let script = parse("t", command).unwrap_or_else(|errors| panic!("{command}: {errors:?}"));
        assert!(matches!(script.body.commands[0].kind, CommandKind::Pipeline(_)), "{command}");
    }
    assert!(parse("t", "function in; a; end\nin build").is_ok(), "a function takes precedence");
    let errors = rendered_errors("in my files\n    a\nend");
    assert!(errors.contains("one directory stands after `in`"), "{errors}");
    let errors = rendered_errors("in a\n    b\n");
    assert!(errors.contains("this `in` has no `end`"), "{errors}");
}
