//! Results of filters, and the limits of filters.

use std::sync::Arc;

use ftsh_filter::{TOO_DEEP, results};
use ftsh_machine::effect::FilterCall;
use ftsh_machine::event::Reply;
use ftsh_syntax::slug::Slug;

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

/// Texts of RFC 8259, each with the result of the filter `.`.
const JSON: [(&str, &str); 16] = [
    ("null", "null"),
    (" [ 1 , 2 ] ", "[1,2]"),
    ("{\"a\":{},\"b\":[]}", "{\"a\":{},\"b\":[]}"),
    ("{\"a\":1,\"a\":2}", "{\"a\":2}"),
    ("{\"\":0}", "{\"\":0}"),
    ("0.10", "0.10"),
    ("1E+2", "1E+2"),
    ("-0.0", "-0.0"),
    // A number is the same with another sign of its zero.
    ("-0", "0"),
    ("123456789012345678901234567890", "123456789012345678901234567890"),
    ("\"\\/\\b\\f\\n\\r\\t\\\"\\\\\"", "/\u{8}\u{c}\n\r\t\"\\"),
    ("\"\\u00e9\\uD83D\\ude00\"", "é😀"),
    // Surrogates without their other half are valid escapes.
    ("\"\\ud800\"", "\u{fffd}"),
    ("\"\\udc00\\ud83d\\ude00\\ud800\\ud800\"", "\u{fffd}😀\u{fffd}\u{fffd}"),
    ("\"\\\\ud800\"", "\\ud800"),
    ("\"\u{7f}\u{2028}\"", "\u{7f}\u{2028}"),
];

#[test]
fn every_json_is_read() {
    for (text, expected) in JSON {
        assert_eq!(words(text, "."), [expected], "{text}");
    }
    assert_eq!(words("1 \"a\"\n[2]{}\n", "."), ["1", "a", "[2]", "{}"]);
    assert!(words(" \n", ".").is_empty());
}

#[test]
fn nothing_but_json_is_read() {
    for text in [
        "{1:2}",
        "{true:1}",
        "{[]:1}",
        "{null:1}",
        "NaN",
        "-NaN",
        "nan",
        "Infinity",
        "+1",
        "+Infinity",
        "-Infinity",
        "# c\n1",
        "1 # c",
        "b\"ab\"",
        "[1,]",
        "{\"a\":1,}",
        "[,1]",
        "[1 2]",
        "{\"a\" 1}",
        "{a:1}",
        "{'a':1}",
        "'a'",
        "01",
        "-01",
        "1.",
        ".5",
        "1e",
        "1e+",
        "0x1",
        "-",
        "1_0",
        "\"a",
        "\"\t\"",
        "\"\n\"",
        "\"\\x41\"",
        "\"\\u12\"",
        "\"\\u{41}\"",
        "\"\\'\"",
        "tru",
        "True",
        "truefalse",
        "nullx",
        "[1",
        "{",
        "]",
        "[1]]",
        "{\"a\":}",
        "\u{feff}1",
        "1,2",
        "/* c */ 1",
        "\u{a0}1",
        "undefined",
    ] {
        let message = reason(text, ".");
        assert!(message.starts_with("the text of `json` is not JSON: "), "{text}: {message}");
        let quoted = serde_json::to_string(text).expect("a text");
        let message = reason(&quoted, "fromjson");
        assert!(message.contains("cannot parse a text as JSON: "), "{text}: {message}");
    }
    for text in [&b"\"\xff\""[..], b"\"\xed\xa0\x80\"", b"\"\xc0\xaf\"", b"\xff\xfe1\0"] {
        let call = FilterCall { text: Arc::new(text.into()), filter: Arc::new(".".into()) };
        let reply = results(&call, 20_000);
        assert!(matches!(reply, Some(Reply::Failed(Slug::Json, _))), "{text:?}: {reply:?}");
    }
}

#[test]
fn nothing_but_json_is_a_result() {
    for filter in [
        "1/0",
        "-1/0",
        "nan",
        "infinite",
        "[nan]",
        "{a: nan}",
        "{\"a\":1} | .[1] = 2",
        "{} | .[null] = 1",
        "[\"YQ==\" | @base64d | tobytes]",
        "nan | tojson",
        "[1/0] | @json",
    ] {
        let message = reason("null", filter);
        assert!(message.contains("a result is not JSON"), "{filter}: {message}");
    }
    assert_eq!(words("null", "nan < 1, (infinite > 1), ([nan] | length)"), ["true", "true", "1"]);
}

#[test]
fn results_have_a_limit_that_the_message_explains() {
    let text = format!("[{}0]", "0,".repeat(2_999_999));
    let call = FilterCall { text: Arc::new(text.into()), filter: Arc::new(".[]".into()) };
    let Some(Reply::Failed(Slug::LargeValue, message)) = results(&call, u64::MAX) else {
        panic!("too many results");
    };
    let expected = "the results of `json` can have at most 64 MiB together, where each counts 24 bytes \
                    more than its text: the first 2684355 results have 2684355 bytes of text";
    assert_eq!(message, expected);
}
