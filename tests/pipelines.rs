//! Structures in pipelines of real processes.

use std::time::Duration;

use crate::support::rounds::rounds;
use crate::support::{Ftsh, WAYS};

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
fn sigpipe_before_the_end_of_a_reader_is_a_failure_each_time() {
    // The shell keeps no pipe of these open: `cat` may have ended before the shell looks.
    let stages = ["sh -c 'kill -PIPE $$'", "sh -c 'echo part; exit 141'"];
    for stage in stages {
        let text = format!(
            "n=0\nfor i in 1 .to. 200\n try 1 time; {stage} | cat > /dev/null; catch\n\
             n=$n .add. 1\n end\nend\necho $n"
        );
        let finished = Ftsh::command(&text).start().wait();
        finished.expect_code(0);
        assert_eq!(finished.text(), "200\n", "{}", finished.story());
    }
}

#[test]
fn a_reader_that_has_enough_is_no_failure_each_time() {
    // What is left open by its name, or by what a stage has started, makes no difference.
    let stages = [
        "yes",
        "sh -c 'yes; exit 141'",
        "sh -c 'yes & exec yes'",
        "sh -c 'echo > /dev/stdout; exec yes'",
    ];
    for stage in stages {
        let text = format!("for i in 1 .to. 100; {stage} | head -n 1 > /dev/null; end");
        let run = Ftsh::command(&text).start();
        // A success leaves background jobs running, which end with their next write.
        run.until_gone("what writes to no reader");
        let finished = run.wait();
        finished.expect_code(0);
        finished.nothing_left();
    }
}

#[test]
fn stages_die_of_sigpipe_though_it_is_ignored_around_the_shell() {
    let inner = "try 3 times; yes | head -n 1; end; grep SigIgn /proc/self/status";
    let text = "sh -c 'trap \"\" PIPE; exec ftsh inner'";
    let finished = Ftsh::command(text).file("inner", inner).start().wait();
    finished.expect_code(0);
    let ignored = finished.text().strip_prefix("y\nSigIgn:").map(str::trim).map(str::to_owned);
    let ignored = u64::from_str_radix(&ignored.expect("both"), 16).expect("a number");
    assert_eq!(ignored & 1 << 12, 0, "{}", finished.story());
}

#[test]
fn the_script_ends_as_by_sigpipe_when_its_reader_is_gone() {
    let scripts = [
        "try for 1 hour; seq 1 100000; catch; echo no > caught; finally; touch last; end; touch more",
        "try for 1 hour; while true; echo y; end; finally; touch last; end; touch more",
        "try; forall i in 1 2 output grouped; seq 1 100000; end; finally; touch last; end; touch more",
        "try; forall i in 1 2 output tagged; seq 1 100000; end; finally; touch last; end; touch more",
        "try; try 9 times atomic; seq 1 100000; end; finally; touch last; end; touch more",
        "try 9 times; seq 1 100000 | cat; finally; touch last; end; touch more",
        "try 9 times; ftsh -c 'seq 1 100000'; finally; touch last; end; touch more",
    ];
    for script in scripts {
        let text = "sh -c '{ ftsh inner; echo $? > status; } | head -n 1 > /dev/null'; cat status";
        let finished = Ftsh::command(text).file("inner", script).start().wait();
        finished.expect_code(0);
        finished.nothing_left();
        assert_eq!(finished.text(), "141\n", "{script}\n{}", finished.story());
        assert_eq!(finished.errors(), "", "{script}");
        let exists = |name: &str| finished.directory.path().join(name).exists();
        assert!(exists("last"), "{script}\n{}", finished.story());
        assert!(!exists("more") && !exists("caught"), "{script}\n{}", finished.story());
    }
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
