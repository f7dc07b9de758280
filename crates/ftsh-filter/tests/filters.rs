//! Results of filters, and the limits of filters.

use std::sync::Arc;

use ftsh_filter::{TOO_DEEP, results};
use ftsh_machine::effect::FilterCall;
use ftsh_machine::event::Reply;

fn result(text: &str, filter: &str) -> Option<Reply> {
    let call = FilterCall { text: Arc::new(text.into()), filter: Arc::new(filter.into()) };
    results(&call, 20_000)
}

#[track_caller]
fn words(text: &str, filter: &str) -> Vec<String> {
    match result(text, filter) {
        Some(Reply::Words(words)) => words.iter().map(ToString::to_string).collect(),
        other => panic!("{filter}: {other:?}"),
    }
}

#[track_caller]
fn reason(text: &str, filter: &str) -> String {
    match result(text, filter) {
        Some(Reply::Failed(_, message)) => message,
        other => panic!("{filter}: {other:?}"),
    }
}

#[test]
fn filters_of_jq_work() {
    assert_eq!(words("[3, 1]", "sort[], length, (.[0] | tostring)"), ["1", "3", "2", "3"]);
    assert_eq!(
        words("null", "[range(3)], [range(1; 3)], [range(5; 0; -2)]"),
        ["[0,1,2]", "[1,2]", "[5,3,1]"]
    );
    assert_eq!(words("{\"a\": \"x,y\"}", ".a / \",\" | .[]"), ["x", "y"]);
    assert_eq!(words("\"[1]\"", "fromjson | .[0]"), ["1"]);
    assert_eq!(words("\"2015-03-05T23:51:47Z\"", "fromdate"), ["1425599507"]);
    assert_eq!(words("[\"a\\\"b\", null, 1]", "@csv, @tsv"), ["\"a\"\"b\",,1", "a\"b\t\t1"]);
    assert_eq!(words("[\"a\\tb\\\\\", \"\"]", "@tsv"), ["a\\tb\\\\\t"]);
    assert_eq!(words("[1, [2]]", "walk(if type == \"number\" then . + 1 else . end)"), ["[2,[3]]"]);
}

#[test]
fn filters_without_an_end_run_out_of_steps() {
    for filter in [
        "last(repeat(1))",
        "def f: f; f",
        "[range(1e18)]",
        "last(range(1e18))",
        "last(range(0; 1; 0))",
        "reduce repeat(1) as $i (0; .)",
        "foreach repeat(1) as $i (0; .; empty)",
        "try last(repeat(error)) catch last(repeat(.))",
        "last(repeat(try error(1) catch .))",
        "last(path(repeat(.)))",
        "label $a | last(repeat(1))",
        "[limit(1e9; repeat(1))]",
        "until(false; .)",
        "last(recurse(.))",
        "(. // 1) | last(repeat(. // 2))",
        "[.] | last(repeat(map(.)))",
        "last(repeat(.[\"a\"]?))",
        "sort_by(last(repeat(1)))",
    ] {
        let text = if filter.starts_with("sort_by") { "[2, 1]" } else { "1" };
        let result = result(text, filter);
        assert!(result.is_none(), "{filter}: {result:?}");
    }
}

#[test]
fn deep_values_and_filters_do_not_exhaust_the_stack() {
    for filter in ["def f: [f]; f", "def f: 1 + f; f", "def f: f | .; f"] {
        match result("1", filter) {
            None => {}
            Some(Reply::Failed(_, message)) => assert!(message.contains(TOO_DEEP)),
            Some(reply) => panic!("{filter}: {reply:?}"),
        }
    }
    let deep = "[".repeat(100_000);
    let message = reason(&deep, ".");
    assert!(message.contains("more than 1000 levels"), "{message}");
    let message = reason(&format!("\"{deep}\""), "fromjson");
    assert!(message.contains("more than 1000 levels"), "{message}");
    let message = reason("1", &format!("{}1", "1|".repeat(4_200)));
    assert!(message.contains("more than 8 KiB"), "{message}");
    let broken = result("1", &"[".repeat(8_000));
    assert!(!matches!(broken, Some(Reply::Words(_))), "{broken:?}");
    assert_eq!(words("1", &format!("{}1", "1|".repeat(200))), ["1"]);
    // Longer ones may exceed the stack.
    let _ = result("1", &format!("{}1", "1|".repeat(4_000)));
    let nested = format!("{}1{}", "[".repeat(1_000), "]".repeat(1_000));
    assert_eq!(words(&nested, "."), [nested.as_str()]);
    // Brackets in strings do not count.
    let brackets = "[".repeat(2_000);
    assert_eq!(words(&format!("[\"{brackets}\", \"\\\"{brackets}\"]"), "length"), ["2"]);
}
