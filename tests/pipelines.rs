//! Structures in pipelines of real processes.

use std::time::Duration;

use crate::support::WAYS;
use crate::support::rounds::rounds;

#[test]
fn a_reader_that_has_enough_ends_what_writes() {
    let writers = [
        "while true; echo y; end",
        "try 9 times; while true; echo y; end; catch; echo no > caught; end",
        "try 9 times; try 9 times; yes; catch; echo no > caught; end; catch; echo no > caught; end",
        "forall x in 1 2 3; try 9 times; yes; catch; echo no > caught; end; end",
        "forany x in 1 2 3; sh -c 'yes & yes; wait'; exec yes; end",
        "function_of_it",
    ];
    rounds(&WAYS, |round| {
        let writer = writers[round.number % writers.len()];
        let text = format!(
            "{writer} | head -n 1\necho on\n\
             function function_of_it; try 9 times; yes | cat; catch; echo no > caught; end; end"
        );
        let finished = round.command(&text).start().wait();
        finished.expect_code(0);
        finished.nothing_left();
        assert_eq!(finished.text(), "y\non\n", "{}", finished.story());
        assert!(!finished.directory.path().join("caught").exists(), "{}", finished.story());
    });
}

#[test]
fn every_line_gets_through() {
    rounds(&WAYS, |round| {
        let text = "n=0\nfor i in 1 .to. 300; echo $i; end | sort -n | while .succeeds. (read i)\n\
                    n=$n .add. $i\nif $i .mod. 100 .eql. 0; /bin/echo $n; end\nend | cat\necho $n";
        let finished = round.command(text).start().wait();
        finished.expect_code(0);
        assert_eq!(finished.text(), "5050\n20100\n45150\n45150\n", "{}", finished.story());
    });
}

#[test]
fn a_limit_leaves_nothing_of_any_stage() {
    let text = "try for 1 second or 1 time\n\
                for x in a; sh -c 'sleep 60 & exec sleep 60'; end | \
                forall y in b c; try 5 times; sh -c 'setsid sleep 60 & exec sleep 60'; end; end | \
                while .succeeds. (read l); sleep 1; end\n\
                end";
    rounds(&WAYS, |round| {
        let finished = round.command(text).start().wait();
        finished.expect_code(124);
        finished.nothing_left();
        let (least, most) = (Duration::from_secs(1), Duration::from_secs(4));
        finished.expect_time(least, most);
    });
}

#[test]
fn what_a_stage_had_begun_when_it_exits_is_gone() {
    let text = "function leave; try; sh -c 'sleep 60 & echo $! > pid'; exit 3; end; end\n\
                function asks; if true; leave; end | cat; end\n\
                if .not. .succeeds. (asks)\n\
                sh -c 'readlink /proc/$(cat pid)/exe > /dev/null && echo lives || echo gone'\nend";
    rounds(&WAYS, |round| {
        let finished = round.command(text).start().wait();
        finished.expect_code(0);
        assert_eq!(finished.text(), "gone\n", "{}", finished.story());
    });
}

#[test]
fn sigpipe_without_a_dead_reader_is_a_failure() {
    // The shell keeps the pipe of a structure open: `cat` doesn't end before it is asked for.
    let stages = [
        "if true; sh -c 'echo part; kill -PIPE $$' 2>&1; echo more; end",
        "if true; sh -c 'echo part; kill -PIPE $$'; echo more; end",
        "forall x in a; sh -c 'echo part; kill -PIPE $$'; echo more; end",
    ];
    rounds(&WAYS, |round| {
        let stage = stages[round.number % stages.len()];
        let text = format!("{stage} | cat\necho on");
        let finished = round.command(&text).start().wait();
        finished.expect_code(141);
        assert_eq!(finished.text(), "part\n", "{}", finished.story());
    });
}

#[test]
fn a_finally_cleans_up_though_nobody_reads_it() {
    let groups = [
        "echo cleaning; rm lock",
        "/bin/echo cleaning; rm lock",
        "forall x in a b; echo $x; end; rm lock",
        "forall x in a b output grouped; echo $x; end; rm lock",
        "forall x in a b output tagged; echo $x; end; rm lock",
        "while true; echo y; end | head -n 1; rm lock",
    ];
    rounds(&WAYS, |round| {
        let group = groups[round.number % groups.len()];
        let text = format!("echo > lock\ntry; yes; finally; {group}; end | head -n 1\necho on");
        let finished = round.command(&text).start().wait();
        finished.expect_code(0);
        finished.nothing_left();
        assert_eq!(finished.text(), "y\non\n", "{}", finished.story());
        assert!(!finished.directory.path().join("lock").exists(), "{}", finished.story());
    });
}

#[test]
fn a_finally_that_fails_where_nobody_reads_fails_the_pipeline() {
    rounds(&WAYS, |round| {
        let text = "try; yes; finally; sh -c 'exit 4'; end | head -n 1\necho on";
        let finished = round.command(text).start().wait();
        finished.expect_code(4);
        assert_eq!(finished.text(), "y\n", "{}", finished.story());
    });
}
