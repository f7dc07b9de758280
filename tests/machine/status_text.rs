//! Status of runs in virtual time.

use std::time::Duration;

use unicode_width::UnicodeWidthStr;

use ftsh_machine::Time;
use ftsh_machine::driver::{self, Driver};
use ftsh_machine::status::Status;
use ftsh_machine::status::text::*;
use ftsh_machine::{Config, Effect, Event, Machine};
use ftsh_sim::{Model, Simulated};

/// World that takes a snapshot at a moment.
struct Watched {
    world: Simulated,
    at: Time,
    most: usize,
    taken: Option<Status>,
}

impl Driver for Watched {
    fn now(&self) -> Time {
        self.world.now()
    }

    fn perform(&mut self, effect: Effect) {
        self.world.perform(effect);
    }

    fn watch(&mut self, machine: &Machine) {
        // The last snapshot before the moment is valid at the moment.
        if self.now() <= self.at {
            self.taken = Some(machine.status(self.most, self.at));
        }
    }

    fn wait(&mut self, until: Time) -> Option<Event> {
        self.world.wait(until)
    }
}

fn status(script: &str, at: f64, most: usize) -> Status {
    let world = Simulated::new(1)
        .command("ok", |_, _| Model::succeeds())
        .command("hang", |_, _| Model::hangs())
        .command("stubborn", |_, _| Model::hangs().stubborn())
        .command("fail", |_, _| Model::fails(7))
        .resources(|_| (1_000_000_000, 4.0));
    let at = Time::after(Duration::from_secs_f64(at));
    let mut watched = Watched { world, at, most, taken: None };
    let script = ftsh_syntax::parse("job", script).expect("a script");
    let mut machine = Machine::new(&script, vec!["job".into()], vec![], Config::default(), 7);
    driver::run(&mut machine, &mut watched);
    watched.taken.expect("a snapshot")
}

fn status_page(script: &str, at: f64) -> String {
    page(&status(script, at, TASKS_ON_PAGE), "job", 42)
}

fn layout(columns: usize) -> StatusLayout {
    StatusLayout { columns, has_places: true }
}

#[test]
fn a_branch_that_waits_for_memory_is_shown() {
    let script = "limit 1 minute\n  forall x in 1 2 3 while free 2 GB\n    hang\n  end\nend";
    insta::assert_snapshot!(status_page(script, 2.0), @"
    ftsh: status of job [42] after 2 s
      line 2: forall x: 0 of 3 done, 1 running, the next waits for memory or load, 2 to come
        2 | forall x in 1 2 3 while free 2 GB
        `try` at line 1: attempt 1 of 1, 58 s left
      x=1, line 3: running `hang` for 2 s
        3 | hang
    ");
    let shown = line(&status(script, 2.0, TASKS_ON_PAGE), layout(100)).expect("a line");
    insta::assert_snapshot!(shown, @"forall [---       ] 0 of 3 done, 1 running, the next waits for memory or load");
}

#[test]
fn commands_in_a_try_are_shown() {
    let script =
        "try for 1 minute\n  try 3 times every 10 s each 4 s\n    hang \"a b\"\n  end\nend";
    insta::assert_snapshot!(status_page(script, 12.5), @r#"
    ftsh: status of job [42] after 12.5 s
      line 3: running `hang 'a b'` for 2.5 s
        3 | hang "a b"
        `try` at line 2: attempt 2 of 3, 47 s left
        last failure: line 3: `hang 'a b'` ran out of time after 4 s, by `each` at line 2
        `try` at line 1: attempt 1, 47 s left
    "#);
    insta::assert_snapshot!(status_page(script, 6.0), @"
    ftsh: status of job [42] after 6 s
      line 2: waiting for 2 s, attempt 2 of 3 in 4.0 s
        2 | try 3 times every 10 s each 4 s
        `try` at line 2: 54 s left
        last failure: line 3: `hang 'a b'` ran out of time after 4 s, by `each` at line 2
        `try` at line 1: attempt 1, 54 s left
    ");
}

#[test]
fn other_slow_work_is_shown() {
    insta::assert_snapshot!(status_page("function f\n  sleep 9\nend\nf", 2.0), @"
    ftsh: status of job [42] after 2 s
      line 2: sleeping for 2 s, 7.0 s to go
        2 | sleep 9
    ");
    insta::assert_snapshot!(status_page("try for 5 s; stubborn; end", 8.0), @"
    ftsh: status of job [42] after 8 s
      line 1: ending its processes for 3 s
        1 | try for 5 s; stubborn; end
        `try` at line 1: attempt 1, 0.0 s left
    ");
    insta::assert_snapshot!(status_page("try for 5 s\n  ok | hang\nend", 1.0), @"
    ftsh: status of job [42] after 1 s
      line 2: a pipeline for 1 s
        2 | ok | hang
        `try` at line 1: attempt 1, 4.0 s left
      stage, line 2: running `hang` for 1 s
        2 | ok | hang
    ");
}

const BRANCHES: &str = "try for 1 hour
    forall host in a b c d e f at most 4
        if $host .eq. a; ok; else if $host .eq. b; hang
        else
            try 5 times every 30 s
                fail $host
            end
        end
    end
end";

#[test]
fn branches_are_listed_or_counted() {
    insta::assert_snapshot!(status_page(BRANCHES, 31.0), @"
    ftsh: status of job [42] after 31 s
      line 2: forall host: 1 of 6 done, 1 running, 3 waiting after a failure, 1 to come
        2 | forall host in a b c d e f at most 4
        `try` at line 1: attempt 1, 59 min 29 s left
      host=b, line 3: running `hang` for 31 s
        3 | if $host .eq. a; ok; else if $host .eq. b; hang
      host=c, line 5: waiting for 1 s, attempt 3 of 5 in 29 s
        5 | try 5 times every 30 s
        `try` at line 5: 59 min 29 s left
        last failure: line 6: `fail c` exited with 7
      host=d, line 5: waiting for 1 s, attempt 3 of 5 in 29 s
        5 | try 5 times every 30 s
        `try` at line 5: 59 min 29 s left
        last failure: line 6: `fail d` exited with 7
      host=e, line 5: waiting for 1 s, attempt 3 of 5 in 29 s
        5 | try 5 times every 30 s
        `try` at line 5: 59 min 29 s left
        last failure: line 6: `fail e` exited with 7
    ");
    let few = page(&status(BRANCHES, 31.0, 2), "job", 42);
    insta::assert_snapshot!(few, @"
    ftsh: status of job [42] after 31 s
      line 2: forall host: 1 of 6 done, 1 running, 3 waiting after a failure, 1 to come
        2 | forall host in a b c d e f at most 4
        `try` at line 1: attempt 1, 59 min 29 s left
      host=b, line 3: running `hang` for 31 s
        3 | if $host .eq. a; ok; else if $host .eq. b; hang
      and 3 more:
        line 5: 3 waiting
    ");
}

#[test]
fn a_line_shows_the_first_delay_in_the_available_width() {
    let script =
        "try for 1 hour or 9 times every 5 minutes\n  fail \"$attempt 世界世界世界世界\"\nend";
    let status = status(script, 601.5, TASKS_FOR_LINE);
    let lines: Vec<_> =
        [100, 70, 37, 20, 5, 1, 0].iter().map(|columns| line(&status, layout(*columns))).collect();
    let lines: Vec<String> = lines.into_iter().flatten().collect();
    for (line, columns) in lines.iter().zip([100, 70, 37, 20, 5, 1, 0]) {
        assert!(line.width() <= columns.max(1), "{line}");
    }
    insta::assert_snapshot!(lines.join("\n"), @"
    attempt 4 of 9 in 4 min 58 s, 49 min 58 s left: line 2: `fail '3 世界世界世界世界'` exited with 7
    4/9 in 4m58s, 49m58s left: `fail '3 世界世界世界世界'` exited with 7
    4/9 in 4m58s, 49m58s left: `fail '3 …
    4/9 in 4m58s, 49m58…
    4/9 …
    …
    ");
    assert!(!is_fast(&status));
}

#[test]
fn a_line_counts_the_branches_of_a_forall() {
    let status = status(BRANCHES, 31.0, TASKS_FOR_LINE);
    let line = |columns| line(&status, layout(columns)).expect("a line");
    insta::assert_snapshot!([line(120), line(60), line(37)].join("\n"), @"
    1/6 done, 1 run, 3 wait, 29s, ~2m35s left: `fail c` exited with 7
    1/6 done, 1 run, 3 wait, 29s, ~2m35s left: `fail c` exited …
    1/6 done, 1 run, 3 wait, 29s, ~2m35s…
    ");
}

fn lines(script: &str, at: f64) -> String {
    let status = status(script, at, TASKS_FOR_LINE);
    [120, 50].map(|columns| line(&status, layout(columns)).expect("a line")).join("\n")
}

#[test]
fn a_line_shows_the_progress_of_a_forall() {
    let script = "forall n in 1 .to. 20 at most 2 keep going
        sleep 10
        if $n .gt. 10; fail; end
    end";
    insta::assert_snapshot!(lines(script, 5.0), @"
    forall [-         ] 0 of 20 done, 2 running
    forall [-         ] 0 of 20 done, 2 running
    ");
    insta::assert_snapshot!(lines(script, 35.0), @"
    forall [###-      ] 6 of 20 done, 2 running, about 1 min 22 s left
    6/20 done, 2 run, ~1m22s left
    ");
    insta::assert_snapshot!(lines(script, 75.0), @"
    forall [#####xx-  ] 10 of 20 done, 2 running, 4 failed, about 33 s left
    10/20 done, 2 run, 4 fail, ~33s left
    ");
    let page = status_page(script, 75.0);
    assert!(page.contains("forall n: 10 of 20 done, 2 running, 4 failed, 4 to come"), "{page}");
}

#[test]
fn a_line_counts_up_to_as_many_successes_as_are_wanted() {
    let script = "forall n in 1 .to. 9 at most 3 at least 5
        if $n .eql. 6; stubborn; end
        sleep 10
    end";
    insta::assert_snapshot!(lines(script, 15.0), @"
    forall [###---    ] 3 of 9 done, 3 running, about 10 s left
    3/9 done, 3 run, ~10s left
    ");
    insta::assert_snapshot!(lines(script, 25.0), @"
    forall [#####-    ] 5 of 9 done, 1 running, enough: ending the others
    5/9 done, 1 run, ending
    ");
    let page = status_page(script, 25.0);
    assert!(page.contains("forall n: enough succeeded, ending 1 branches"), "{page}");
}

#[test]
fn a_line_shows_a_failed_forall() {
    let script = "forall n in 1 2; if $n .eql. 2; sleep 5; fail; end; stubborn; end";
    insta::assert_snapshot!(lines(script, 6.0), @"
    forall [xxxxx-----] 0 of 2 done, 1 running, 1 failed, ending the others
    0/2 done, 1 run, 1 fail, ending
    ");
}

#[test]
fn lists_of_any_length_have_a_bar() {
    let lines = lines(
        "try for 20 s; forall n in 1 .to. 9000000000000000000 at most 3; sleep 1; end; end",
        10.5,
    );
    assert!(lines.starts_with("forall [          ] 30 of 9000000000000000000 done"), "{lines}");
}

#[test]
fn there_is_no_line_while_nothing_waits() {
    assert_eq!(line(&status("ok; sleep 5", 0.0, 9), layout(80)), None);
}

#[test]
fn waiters_for_a_channel_are_shown() {
    let script = "channel mirror at most 1
forall host in a b c
    try for 1 hour through mirror
        hang $host
    end
end";
    insta::assert_snapshot!(status_page(script, 31.0), @"
    ftsh: status of job [42] after 31 s
      line 2: forall host: 0 of 3 done, 1 running, 2 waiting for channels
        2 | forall host in a b c
      host=a, line 4: running `hang a` for 31 s
        4 | hang $host
        `try` at line 3: attempt 1, 59 min 29 s left
      host=b, line 3: attempt 1, waiting for channel mirror for 31 s
        3 | try for 1 hour through mirror
        `try` at line 3: 59 min 29 s left
      host=c, line 3: attempt 1, waiting for channel mirror for 31 s
        3 | try for 1 hour through mirror
        `try` at line 3: 59 min 29 s left
    ");
    let few = page(&status(script, 31.0, 2), "job", 42);
    insta::assert_snapshot!(few, @"
    ftsh: status of job [42] after 31 s
      line 2: forall host: 0 of 3 done, 1 running, 2 waiting for channels
        2 | forall host in a b c
      host=a, line 4: running `hang a` for 31 s
        4 | hang $host
        `try` at line 3: attempt 1, 59 min 29 s left
      and 2 more:
        line 3: 2 waiting for a channel
    ");
    let shown = line(&status(script, 31.0, TASKS_FOR_LINE), layout(200)).expect("a line");
    assert_eq!(shown, "forall [----------] 0 of 3 done, 1 running, 2 waiting for channels");
    let alone = "channel mirror rate 1 per minute
try for 1 hour or 5 times every 1 second through mirror
    fail
end";
    insta::assert_snapshot!(status_page(alone, 31.0), @"
    ftsh: status of job [42] after 31 s
      line 2: attempt 2 of 5, waiting for channel mirror for 30 s
        2 | try for 1 hour or 5 times every 1 second through mirror
        `try` at line 2: 59 min 29 s left
        last failure: line 3: `fail` exited with 7
    ");
    let shown =
        |columns| line(&status(alone, 31.0, TASKS_FOR_LINE), layout(columns)).expect("a line");
    assert_eq!(
        shown(200),
        "attempt 2 of 5 waiting for channel mirror, 59 min 29 s left: line 3: `fail` exited with 7"
    );
    assert_eq!(shown(40), "waiting for channel mirror, 59m29s left");
}
