//! `output tagged`: lines of real programs that print at the same time.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::support::Ftsh;
use crate::support::rounds::count;
use crate::support::terminal::User;

/// Prints lines of several lengths to both descriptors, by several commands. The last line is
/// incomplete.
const BODY: &str = r#"
    for part in 1 .to. 3
        awk -v x=$x -v p=$part 'BEGIN {
            for (n = 1; n <= 40; n++) {
                line = sprintf("%s.%s.%s.", x, p, n)
                for (i = n * p % 7; i > 0; i--) line = line line
                print line
                print line > "/dev/stderr"
            }
        }'
    end
    printf "last"
"#;

fn line(word: usize, part: usize, number: usize) -> String {
    format!("{word}.{part}.{number}.").repeat(1 << (number * part % 7))
}

/// Returns the lines of each tag, in order.
fn by_tag(text: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut lines: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in text.lines() {
        let (tag, line) = line.split_once('\t').unwrap_or_else(|| panic!("no tag: {line:?}"));
        lines.entry(tag).or_default().push(line);
    }
    assert!(text.is_empty() || text.ends_with('\n'), "the last line has no end");
    lines
}

/// Checks that each branch printed the output of `BODY` to one descriptor, and nothing else.
fn check(text: &str, branches: usize, ends_with_last: bool) {
    let lines = by_tag(text);
    assert_eq!(lines.len(), branches);
    for (tag, found) in lines {
        let word = tag.parse().expect("a number");
        let mut expected: Vec<String> =
            (1..=3).flat_map(|part| (1..=40).map(move |n| line(word, part, n))).collect();
        expected.extend(ends_with_last.then(|| "last".to_owned()));
        assert!(found == expected, "{tag}: {found:?}");
    }
}

#[test]
fn no_line_is_cut_mixed_or_lost() {
    for way in ["0", "1"] {
        let script = format!("forall x in 1 .to. 200 output tagged\n{BODY}\nend > out 2> err");
        let finished = Ftsh::command(&script).in_way(way);
        let finished = finished.limit(Duration::from_secs(120)).success();
        check(&finished.read("out"), 200, true);
        check(&finished.read("err"), 200, false);
    }
}

#[test]
fn both_descriptors_may_share_a_slow_pipe() {
    let script = format!("forall x in 1 .to. 60 output tagged\n{BODY}\nend 2>&1");
    // Another writer to the same pipe does not split a line that fits into the pipe at once.
    let wrapper = "(while :; do echo 'other	line'; sleep 0.001; done & other=$!; \"$@\"; kill $other) \
                   | (sleep 0.3; dd bs=1000 2> /dev/null)";
    let finished =
        Ftsh::command(&script).through(["sh", "-c", wrapper, "sh"]).limit(Duration::from_secs(120));
    let finished = finished.run();
    let text = finished.text();
    let mut lines = by_tag(&text);
    assert!(lines.remove("other").is_some_and(|others| others.iter().all(|it| *it == "line")));
    assert_eq!(lines.len(), 60, "{}", finished.errors());
    for (tag, mut found) in lines {
        let word = tag.parse().expect("a number");
        let once = (1..=3).flat_map(|part| (1..=40).map(move |n| line(word, part, n)));
        let mut expected: Vec<String> = once.flat_map(|line| [line.clone(), line]).collect();
        expected.push("last".into());
        found.sort_unstable();
        expected.sort_unstable();
        assert!(found == expected, "{tag}: {found:?}");
    }
}

#[test]
fn a_long_line_stays_whole() {
    let script = "forall x in 1 2 3 4 output tagged
        if $x .le. 2
            sh -c 'for i in 1 2 3; do head -c 300000 /dev/zero | tr \"\\0\" $1; echo; done' sh $x
            sh -c 'head -c 100000 /dev/zero | tr \"\\0\" $1' sh $x
        else
            sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do echo short; sleep 0.002; done'
        end
    end";
    for _ in 0..count() {
        let text = Ftsh::command(script).success().text();
        let lines = by_tag(&text);
        for tag in ["1", "2"] {
            let lengths: Vec<usize> = lines[tag].iter().map(|line| line.len()).collect();
            assert_eq!(lengths, [300_000, 300_000, 300_000, 100_000]);
            assert!(lines[tag].iter().all(|line| line.bytes().all(|it| it == tag.as_bytes()[0])));
        }
        for tag in ["3", "4"] {
            assert_eq!(lines[tag], ["short"; 10]);
        }
    }
}

#[test]
fn a_branch_does_not_wait_for_its_daemons() {
    let script = "forall x in a b output tagged
            sh -c 'printf now; (until test -e go; do sleep 0.01; done; echo later; echo more; echo > done.$1) &' sh $x
        end
        echo after
        echo > go
        try for 10 seconds every 10 ms
            ls done.a done.b >& /dev/null
        end";
    let finished = Ftsh::command(script).options(["-l", "0"]).success();
    let text = finished.text();
    let (first, rest) = text.split_once("after\n").expect("it goes on");
    let mut first: Vec<&str> = first.lines().collect();
    first.sort_unstable();
    assert_eq!(first, ["a\tnow", "b\tnow"]);
    // A process left behind prints further.
    assert_eq!(by_tag(rest), [("a", vec!["later", "more"]), ("b", vec!["later", "more"])].into());
}

#[test]
fn a_lost_reader_ends_the_loop() {
    let script = "forall x in 1 2 3 output tagged; yes; end; echo never > never";
    let wrapper = "\"$@\" | head -n 3 > /dev/null; exit ${PIPESTATUS[0]}";
    let finished =
        Ftsh::command(script).through(["bash", "-c", wrapper, "bash"]).options(["-t", "5"]).run();
    finished.expect_code(128 + 13);
    finished.nothing_left();
    assert!(!finished.directory.path().join("never").exists());
    assert!(finished.elapsed < Duration::from_secs(4), "{}", finished.story());
    // A pipeline ignores the failure.
    let script = "forall x in 1 2 3 output tagged; try 5 times; yes; end; end | head -n 2";
    let text = Ftsh::command(script).success().text();
    assert_eq!(text.lines().count(), 2);
    assert!(text.lines().all(|line| line.ends_with("\ty")), "{text}");
}

#[test]
fn a_write_error_fails_the_loop() {
    let script = "try; forall x in 1 2 output tagged; yes; end > /dev/full
        catch; echo \"$error_kind: $error\"; end";
    let finished = Ftsh::command(script).options(["-l", "0"]).success();
    let expected =
        "io: the output of a branch cannot be written: no space left on device\n".to_owned();
    assert_eq!(finished.text(), expected);
    finished.nothing_left();
}

#[test]
fn a_limit_holds_while_the_output_is_unread() {
    let script = "begun=now()
        try for 300 ms or 1 time
            forall x in 1 2 output tagged; yes; end
        catch
            echo $error_kind > kind
        end
        took=now() .sub. $begun
        echo $took > took";
    let wrapper = "(\"$@\"; echo > over) | (until test -e over; do sleep 0.02; done; wc -l)";
    let finished = Ftsh::command(script)
        .through(["sh", "-c", wrapper, "sh"])
        .options(["-l", "0"])
        .limit(Duration::from_secs(60))
        .run();
    assert_eq!(finished.read("kind"), "timeout\n", "{}", finished.story());
    let took: f64 = finished.read("took").trim().parse().expect("a number");
    assert!((0.3..5.0).contains(&took), "{took}");
}

#[test]
fn output_of_canceled_commands_precedes_later_output() {
    let script = "try for 400 ms or 1 time
            forall x in a b output tagged
                try
                    sh -c 'trap \"echo ended; exit\" TERM; printf begun; until false; do sleep 0.01; done'
                finally
                    echo cleaned
                end
            end
        catch
            echo caught
        end";
    for _ in 0..count() {
        let text = Ftsh::command(script).options(["-l", "0"]).success().text();
        let (before, after) = text.split_once("caught\n").unwrap_or_else(|| panic!("{text}"));
        let expected = vec!["begunended", "cleaned"];
        assert_eq!(by_tag(before), [("a", expected.clone()), ("b", expected)].into(), "{text}");
        assert_eq!(after, "");
    }
}

#[test]
fn branches_wait_for_descriptors() {
    let script = "forall i in 1 .to. 100 output tagged; /bin/echo $i; end";
    for limit in [32, 64] {
        let set = format!("ulimit -n {limit}; exec \"$@\"");
        let run = Ftsh::command(script).through(["sh", "-c", &set, "sh"]);
        let text = run.limit(Duration::from_secs(60)).success().text();
        let lines = by_tag(&text);
        assert!(lines.len() == 100 && lines.iter().all(|(tag, it)| *it == [*tag]), "{text}");
    }
}

#[test]
fn secrets_are_no_tags() {
    let finished = Ftsh::command("forall x in hunter2secret b output tagged; echo it; end")
        .env("FTSH_REDACT", "hunter2secret")
        .success();
    let text = finished.text();
    assert!(text.contains("b\tit\n") && !text.contains("hunter2"), "{text}");
}

#[test]
fn at_a_terminal_lines_stay_alone() {
    let script = "forall x in a b output tagged
            sh -c 'echo one; sleep 0.7; echo two'
            try 2 times every 700 ms; test $attempt = 2; end
            printf three
        end
        echo done";
    let user = User::start(&["-l", "0", "-c", script], &[("TERM", "xterm")], 80, None);
    let (status, seen) = user.ends_after();
    assert_eq!(status.code(), Some(0), "{seen:?}");
    assert!(seen.ends_with("done\r\n") && !seen.contains('\x1b'), "{seen:?}");
    let lines = seen.replace("\r\n", "\n").replace("done\n", "");
    let expected = vec!["one", "two", "three"];
    assert_eq!(by_tag(&lines), [("a", expected.clone()), ("b", expected)].into());
}
