//! `--results`: a line for each branch of a `forall`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{SystemTime, UNIX_EPOCH};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::Ftsh;
use crate::support::run::Finished;

/// Returns the lines of a file of results by their words.
fn by_word(finished: &Finished, file: &str) -> BTreeMap<String, Value> {
    let text = finished.read(file);
    assert!(text.ends_with('\n'), "{text:?}");
    let lines = text.lines().map(|line| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        (line["word"].as_str().expect("a word").to_owned(), line)
    });
    let lines: Vec<_> = lines.collect();
    let count = lines.len();
    let lines = BTreeMap::from_iter(lines);
    assert_eq!(lines.len(), count, "each branch has one line: {text}");
    lines
}

/// Returns status, outcome and attempts.
fn ending(line: &Value) -> (u64, &str, u64) {
    let number = |name: &str| line[name].as_u64().expect("a number");
    (number("status"), line["outcome"].as_str().expect("an outcome"), number("attempts"))
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_secs_f64()
}

#[test]
fn each_branch_has_a_line() {
    let script = "try\n\
        forall x in good bad worse killed left keep going\n\
            if $x .eq. good; sleep 50 ms; end\n\
            if $x .eq. bad; try 3 times backoff none; sh -c 'exit 7'; end; end\n\
            if $x .eq. worse; try 2 times backoff none; test $attempt = 2; end; nosuch; end\n\
            if $x .eq. killed; sh -c 'kill -9 $$'; end\n\
            if $x .eq. left; exit 5; end\n\
        end\n\
        catch\nend\n";
    let before = now();
    let finished = Ftsh::script(script).options(["--results", "r", "-D", "-l", "0"]).success();
    let after = now();
    assert_eq!(finished.errors(), "");
    let lines = by_word(&finished, "r");
    assert_eq!(ending(&lines["good"]), (0, "succeeded", 0));
    assert_eq!(ending(&lines["bad"]), (7, "exit", 3));
    assert_eq!(ending(&lines["worse"]), (127, "notfound", 2));
    assert_eq!(ending(&lines["killed"]), (137, "signal", 0));
    assert_eq!(ending(&lines["left"]), (5, "exit", 0));
    for line in lines.values() {
        let (start, duration) =
            (line["start"].as_f64().expect("a time"), line["duration"].as_f64().expect("a time"));
        assert!(before - 0.01 <= start && start + duration <= after + 0.01, "{line}");
        assert_eq!((&line["name"], &line["line"]), (&"x".into(), &2.into()), "{line}");
        assert_eq!(line["script"], "script.ftsh", "{line}");
    }
    assert!(lines["good"]["duration"].as_f64().expect("a time") >= 0.05);
}

#[test]
fn a_branch_that_is_cut_short_has_a_line() {
    let cut = |script: &str, code| {
        let options = ["--results", "r", "-t", "1"];
        by_word(&Ftsh::command(script).options(options).failure(code), "r")
    };
    let (timeout, sibling) = ((124, "timeout"), (1, "canceled"));
    for (script, code, (status, outcome)) in [
        (
            "forall x in a b; if $x .eq. b; sleep 100; end; sleep 20 ms; sh -c 'exit 3'; end",
            3,
            sibling,
        ),
        ("try for 400 ms; forall x in b c; sleep 100; end; end", 124, timeout),
        ("try for 400 ms; forall y in a; forall x in b c; sleep 100; end; end; end", 124, timeout),
        (
            "try for 400 ms; forall x in b c; try; sleep 100; finally; success; end; end; end",
            124,
            timeout,
        ),
        (
            "try for 400 ms; forall x in b c; try; success; finally; sleep 100; end; end; end",
            124,
            timeout,
        ),
        (
            "forall x in b c at least 2; if $x .eq. b; sleep 100; end; sh -c 'exit 4'; end",
            4,
            sibling,
        ),
    ] {
        let lines = cut(script, code);
        let attempts = script.matches("; try;").count() as u64;
        assert_eq!(ending(&lines["b"]), (status, outcome, attempts), "{script}");
        assert_eq!(lines.len(), 2 + script.matches("forall y").count(), "{script}");
    }
    let running = Ftsh::command("forall x in a b; echo > $x; sleep 1000; end")
        .options(["--results", "r"])
        .start();
    running.until("both", |run| ["a", "b"].iter().all(|x| run.directory().join(x).exists()));
    running.signal(Signal::SIGTERM);
    let finished = running.wait();
    finished.killed_by(Signal::SIGTERM);
    let lines = by_word(&finished, "r");
    assert_eq!(lines.keys().collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn attempts_of_tries_inside_others_are_not_counted() {
    let script = "forall x in once twice\n\
        try 3 times; try 3 times; success; end; try 2 times; success; end; end\n\
        if $x .eq. twice; try 3 times backoff none; try 2 times backoff none\n\
        test $attempt = 2; end; test $attempt = 2; end; end\n\
        end";
    let lines = by_word(&Ftsh::command(script).options(["--results", "r"]).success(), "r");
    assert_eq!(ending(&lines["once"]), (0, "succeeded", 1));
    assert_eq!(ending(&lines["twice"]), (0, "succeeded", 2));
}

#[test]
fn a_branch_that_never_began_has_none() {
    let script = "forall x in a b c at most 1; sh -c 'exit 3'; end";
    let finished = Ftsh::command(script).options(["--results", "r"]).failure(3);
    assert_eq!(by_word(&finished, "r").into_keys().collect::<Vec<_>>(), ["a"]);
}

#[test]
fn a_job_log_has_the_columns_of_gnu_parallel() {
    let script = "ftsh --results $file -c \"forall x in a 'b\tc' keep going; \
                  if \\$x .eq. a; sleep 30 ms; sh -c 'kill -9 \\$\\$'; else; exit 3; end; end\"";
    let finished =
        Ftsh::command(&format!("for file in r.tsv r.tsv; try; {script}; catch; end; end"))
            .options(["-l", "0"])
            .success();
    let text = finished.read("r.tsv");
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    let head = "Seq Host Starttime JobRuntime Send Receive Exitval Signal Command";
    assert_eq!(lines[0], head.split(' ').collect::<Vec<_>>());
    assert_eq!(lines.len(), 5, "a head and twice two lines: {text}");
    for pair in lines[1..].chunks(2) {
        assert_eq!(
            (pair[0][0], &pair[0][4..]),
            ("2", &["0", "0", "3", "0", "b\\tc"][..]),
            "{text}"
        );
        assert_eq!((pair[1][0], &pair[1][4..]), ("1", &["0", "0", "0", "9", "a"][..]), "{text}");
        for line in pair {
            assert_eq!((line.len(), line[1]), (9, ":"), "{text}");
            let start: f64 = line[2].parse().expect("seconds");
            assert!((now() - start).abs() < 1000.0, "{text}");
        }
        let runtime: f64 = pair[1][3].parse().expect("seconds");
        assert!((0.03..1000.0).contains(&runtime), "{text}");
    }
}

#[test]
fn shells_that_begin_at_the_same_time_write_one_head() {
    let script =
        "forall i in 1 .to. 12; ftsh --results $file -c 'forall x in a; success; end'; end";
    for _ in 0..5 * crate::support::rounds::count() {
        let finished = Ftsh::command(&format!(
            "touch empty.tsv; for file in new.tsv empty.tsv; {script}; end"
        ))
        .success();
        for file in ["new.tsv", "empty.tsv"] {
            let text = finished.read(file);
            assert!(text.starts_with("Seq\t") && text.matches("Seq\t").count() == 1, "{text}");
            assert_eq!(text.lines().count(), 13);
        }
    }
}

#[test]
fn each_word_of_a_hedge_has_a_line() {
    // The last branch begins at the end of the second one.
    let script = "forany x in slow bad good in order hedge after 30 ms at most 2
        if $x .eq. slow; sleep 100; end
        if $x .eq. bad; sh -c 'exit 7'; end
        success
    end";
    let finished = Ftsh::command(script).options(["--results", "r", "-t", "1"]).success();
    let lines = by_word(&finished, "r");
    assert_eq!(ending(&lines["good"]), (0, "succeeded", 0));
    assert_eq!(ending(&lines["bad"]), (7, "exit", 0));
    assert_eq!(ending(&lines["slow"]), (1, "canceled", 0));
}

#[test]
fn shells_share_results_without_nested_shells() {
    let finished = Ftsh::command(
        "forall i in 1 .to. 10; ftsh --results r -c 'forall x in 1 .to. 20; success; end'; end",
    )
    .options(["--results", "outer"])
    .success();
    let text = finished.read("r");
    assert_eq!(text.lines().count(), 200);
    for line in text.lines() {
        assert!(serde_json::from_str::<Value>(line).is_ok(), "{line}");
    }
    assert_eq!(by_word(&finished, "outer").len(), 10);
}

#[test]
fn unwritable_results_are_reported() {
    Ftsh::command("echo never")
        .options(["--results", "no/such/dir/r"])
        .refused(&["no/such/dir/r"])
        .one_line();
    Ftsh::command("echo never").options(["--results", ""]).refused(&["--results"]).one_line();
    let finished = Ftsh::command("forall x in 1 2 3; success; end; echo on")
        .options(["--results", "/dev/full"])
        .stdout("on\n")
        .success();
    finished.expect_stderr("ftsh: can't write the results: no space left on device\n");
    finished.one_line();
}

#[test]
fn a_pipe_that_nobody_reads_is_refused() {
    for option in ["--results", "-f"] {
        let run = Ftsh::command("echo never").fifo("p").options([option, "p"]);
        run.refused(&["no process reads the named pipe"]).one_line();
    }
}

#[test]
fn results_hide_secrets() {
    let finished = Ftsh::command("forall x in hunter2secret b; success; end")
        .env("FTSH_REDACT", "hunter2secret")
        .options(["--results", "r"])
        .success();
    let text = finished.read("r");
    assert!(!text.contains("hunter2") && text.lines().count() == 2, "{text}");
}

/// Words that are no text, and words that a careless encoding would confuse.
#[test]
fn every_word_can_be_decoded() {
    let script = r#"
        printf 'a\nb\0a\\\\nb\0\377\376\0\033\0\\\\x1b\0é \t\0' -> found
        forall x in split($found, "\0"); success; end
    "#;
    let words: [&[u8]; 6] = [b"a\nb", b"a\\nb", b"\xff\xfe", b"\x1b", b"\\x1b", "é \t".as_bytes()];
    let finished = Ftsh::command(script).options(["--results", "r"]).success();
    let lines = finished.read("r");
    let bytes = lines.lines().map(|line| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let readable = line["word"].as_str().expect("a word").as_bytes().to_vec();
        match line["word_bytes"].as_str() {
            Some("//4=") => {
                assert_eq!(readable, "\u{fffd}\u{fffd}".as_bytes());
                b"\xff\xfe".to_vec()
            }
            Some(other) => panic!("{other}"),
            None => readable,
        }
    });
    assert_eq!(bytes.collect::<BTreeSet<_>>(), words.iter().map(|word| word.to_vec()).collect());
    let finished = Ftsh::command(script).options(["--results", "r.tsv"]).success();
    let lines = finished.read("r.tsv");
    let fields = lines.lines().skip(1).map(|line| line.rsplit('\t').next().expect("a word"));
    let expected = [r"a\nb", r"a\\nb", r"\xff\xfe", r"\x1b", r"\\x1b", r"é \t"];
    assert_eq!(fields.collect::<BTreeSet<_>>(), expected.into_iter().collect());
}
