//! Functions of the language.

use ftsh_machine::functions;

use super::world;

#[test]
fn examples_of_functions_have_the_documented_values() {
    for function in functions::all() {
        let name = function.signature.name;
        assert!(!function.examples.is_empty(), "{name} has no example");
        for (expression, words) in function.examples {
            assert!(expression.starts_with(&format!("{name}(")), "{expression}");
            let script = format!("for word in {expression}\necho \"<$word>\"\nend");
            let expected: Vec<String> = words.iter().map(|word| format!("<{word}>\n")).collect();
            world().run(&script).succeeds().prints(&expected.concat());
        }
    }
}

#[test]
fn rows_stand_in_the_order_of_the_vocabulary() {
    let rows: Vec<_> = functions::all().map(|function| function.signature.name).collect();
    let vocabulary = ftsh_syntax::vocabulary::FUNCTIONS.iter().map(|signature| signature.name);
    assert_eq!(rows, vocabulary.collect::<Vec<_>>());
}

#[test]
fn json_gives_a_word_for_each_result_of_a_filter() {
    let reply =
        "j='{\"items\": [{\"n\": \"a b\"}, {\"n\": null}, {\"n\": [1, 2.50]}, {\"n\": \"\"}]}'";
    let words = |filter: &str, expected: &str| {
        let script = format!("{reply}\nfor w in json($j, '{filter}')\necho \"<$w>\"\nend");
        world().run(&script).succeeds().prints(expected);
    };
    words(".items[].n", "<a b>\n<null>\n<[1,2.50]>\n<>\n");
    words(".none[]?", "");
    words("[.items[].n | strings] | length, (.[0] | test(\"^a\"; \"i\"))", "<2>\n<true>\n");
    words(".items | map(.n) | @json", "<[\"a b\",null,[1,2.50],\"\"]>\n");
    words(
        "[limit(3; repeat(1))], (try error(\"x\") catch .), @base64 \"\\(1)\"",
        "<[1,1,1]>\n<x>\n<MQ==>\n",
    );
    // A text may hold several values, or none.
    world()
        .run("echo ${count(json(\"1 2\n3\", .))} ${count(json(\"\", .))}")
        .succeeds()
        .prints("3 0\n");
}

#[test]
fn a_limit_cuts_a_filter_without_an_end() {
    let script = "try for 3 seconds or 1 time; x=json(1, \"last(repeat(1))\"); end";
    world().run(script).fails("timeout", 124).takes(3.0);
    let script = "forany f in \"last(repeat(1))\" . hedge after 1 second; x=json(1, $f); end";
    world().run(script).succeeds().takes(1.0);
}

#[test]
fn json_outside_of_a_list_has_one_result() {
    let message = |call: &str| world().run(&format!("x={call}")).fails("expression", 1).message();
    for (call, expected) in [
        ("json(\"[1, 2]\", \".[]\")", "exactly one word"),
        ("json(\"[]\", \".[]\")", "exactly one word"),
        ("json(\"<html>\", .)", "not JSON"),
        ("json(\"{}\", \".[\")", "is not a filter of jq: expected"),
        ("json(\"{}\", nosuch)", "there is no filter `nosuch`"),
        ("json(\"3\", \".a\")", "cannot index 3 with \"a\""),
        ("json(\"3\", \"halt\")", "calls `halt`"),
        ("json(\"3\", \"env\")", "`env` is not available"),
        ("json(\"3\", 'import \"a\" as a; .')", "not available"),
    ] {
        let message = message(call);
        assert!(message.contains(expected), "{call}: {message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
}

#[test]
fn a_length_of_time_is_exact_or_refused() {
    let value = |text: &str| world().run(&format!("echo ${{seconds(\"{text}\")}}"));
    value("9223372036854775807 s").succeeds().prints("9223372036854775807\n");
    for text in ["9223372036854775808", "9223372036854775807 d", "9999999999999999999.5 s"] {
        let message = value(text).fails("expression", 1).message();
        assert_eq!(message, format!("script:1: `{text}` is more than 9223372036854775807 seconds"));
    }
}
