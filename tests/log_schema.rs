//! The schema of the JSON log describes every line.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::cluster::with_ssh;
use crate::support::Ftsh;

const SCHEMA: &str = include_str!("../docs/reference/log.schema.json");

/// Scripts that make the shell log every kind of record.
const SCRIPTS: [&str; 24] = [
    "x=1; unset x; x=2; if $x .eql. 2; /bin/echo a; end; for i in 1 2; sh -c true; end",
    "try 3 times every 1 ms; sh -c 'exit 7'; catch; echo $error; end; sh -c 'exit 3'",
    "try for 50 ms; defer 10ms busy; end",
    "try 2 times every 1 ms; test $attempt = 2; end",
    "try for 50 ms; sleep 10; end",
    "try 2 times each 20 ms backoff none; sleep 10; end",
    "try for 60 ms; forall x in a b; while true; n=1; end; end; end",
    "forall x in a b c; try 2 times backoff none; sh -c \"test $x != b\"; end; end",
    "function f; return $1; end; x=f(5); f 1; function g; giveup no; end; try 5 times; g; end",
    "sh -c 'kill -SEGV $$'",
    "try; nosuch; end",
    "limit 50 ms; try; sleep 10; finally; sleep 10; end; end",
    "limit 50 ms; try; success; finally; sleep 10; end; end",
    "cat < /nosuch | cat",
    "try; false; catch; failure; end",
    "channel k at most 1; forall x in 1 2; try through k; sleep 0.1; end; end",
    "channel m breaker 1 failure 1m; try 2 times every 1ms through m; false; end",
    "echo a | try 2 times backoff none; cat; false; end",
    "try 2 times backoff none atomic; echo a; false; end",
    "try 1 time; sh -c 'setsid sleep 1000 & exit 1'; catch; end; $none",
    "forall x in 1 1 once in f; true; end",
    "forall x in 1 2 3 on ssh 'down h*2'; true; end",
    "accept 3 sh -c 'exit 3'; try 1 time; cd /nowhere; catch; end; cat < /nowhere",
    "function f; sh -c 'exit 7'; end; try; source /dev/stdin < /dev/null; forall x in a; f; end; end",
];

fn events(script: &str, options: &[&str], validator: &jsonschema::Validator) -> BTreeSet<String> {
    let log = with_ssh(Ftsh::script(script))
        .options(["-l", "40", "-f", "the.log", "--log-format", "json", "-t", "0.1"])
        .options(options)
        .run()
        .read("the.log");
    let mut events = BTreeSet::new();
    for line in log.lines() {
        let value: Value = serde_json::from_str(line).expect("JSON");
        let problems: Vec<_> =
            validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(problems.is_empty(), "{line}\n{}", problems.join("\n"));
        events.insert(value["event"].as_str().expect("an event").to_owned());
    }
    events
}

#[test]
fn the_schema_describes_the_log() {
    let schema: Value = serde_json::from_str(SCHEMA).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let mut seen = BTreeSet::new();
    for script in SCRIPTS {
        seen.extend(events(script, &[], &validator));
    }
    seen.extend(events("false", &["-D"], &validator));
    seen.extend(events("success", &["--splay", "1 ms"], &validator));
    // Records that need a signal, a lack of memory, a broken kernel or an old one are covered by the
    // log's own tests.
    let others =
        ["interrupted", "suspended", "resumed", "survivor", "hanging", "note", "available"];
    seen.extend(others.map(String::from));
    let described = schema["oneOf"].as_array().expect("events").iter();
    let described: BTreeSet<String> = described
        .map(|event| event["properties"]["event"]["const"].as_str().expect("a name").to_owned())
        .collect();
    assert_eq!(seen, described);
    let page = include_str!("../docs/reference/log-schema.md");
    for event in described {
        assert!(
            page.contains(&format!("| `{event}` |")),
            "docs/reference/log-schema.md lacks {event}"
        );
    }
}

#[test]
fn other_lines_are_none_of_the_log() {
    let schema: Value = serde_json::from_str(SCHEMA).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let line = serde_json::json!({
        "time": "2027-01-15T09:00:00.123456+01:00", "pid": 42, "run": "0123456789abcdef",
        "task": 0, "script": "a", "line": 3, "event": "catch",
    });
    assert!(validator.is_valid(&line));
    for (field, value) in [
        ("time", serde_json::json!("2027-01-15 09:00:00")),
        ("event", serde_json::json!("caught")),
        ("surprise", serde_json::json!(1)),
        ("line", serde_json::json!(0)),
        ("pid", Value::Null),
    ] {
        let mut wrong = line.clone();
        wrong[field] = value;
        assert!(!validator.is_valid(&wrong), "{wrong}");
    }
}
