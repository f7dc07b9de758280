//! Warnings of the lint, and code without warnings.

mod arguments;
mod branches;
mod calls;
mod channels;
mod code;
mod constants;
mod flow;
mod functions;
mod glued;
mod habits;
mod inputs;
mod lists;
mod loops;
mod numbers;
mod outside;
mod pauses;
mod pipelines;
mod programs;
mod tries;
mod values;

use super::{Programs, lint};
use ftsh_syntax::backoff::Policy;
use ftsh_syntax::diagnostic::render_warnings;
use ftsh_syntax::parse;

/// Programs except those whose names begin with `no`; `wget` is the only name for suggestions.
struct Most;

impl Programs for Most {
    fn has(&self, name: &str) -> bool {
        !name.starts_with("no") && name != "wgte"
    }

    fn names(&self) -> Vec<String> {
        vec!["wget".into()]
    }
}

fn warnings_with(text: &str, policy: &str) -> String {
    let script = parse("t", text).expect("a right script");
    let policy: Policy = policy.parse().expect("a policy");
    render_warnings(&script.source, &lint(&script, &policy, &Most))
}

fn warnings(text: &str) -> String {
    warnings_with(text, "ethernet")
}

/// Returns the first lines of the warnings.
fn messages(text: &str) -> Vec<String> {
    warnings(text)
        .lines()
        .filter_map(|line| Some(line.strip_prefix("warning[")?.split_once("]: ")?.1))
        .map(str::to_owned)
        .collect()
}

fn assert_quiet(texts: &[&str]) {
    for text in texts {
        assert_eq!(warnings(text), "", "{text}");
    }
}

#[test]
fn deep_and_wide_scripts_are_checked() {
    let deep = format!("{}a\n{}", "try 2 times\n".repeat(900), "end\n".repeat(900));
    assert_eq!(messages(&deep).len(), 899);
    let function = |n| format!("function f{n}\n{}end\n", format!("f{}\n", n + 1).repeat(100));
    let mut functions: String = (0..100).map(function).collect();
    functions += "function f100\necho\nend\nf0\ntry\na\ncatch\nf0\nend";
    assert_eq!(messages(&functions).len(), 1);
}
