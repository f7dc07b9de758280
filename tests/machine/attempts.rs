//! `limit`, the directory of attempts, and failures that time does not mend.

use ftsh_machine::Outcome;
use ftsh_syntax::backoff::{Policy, PolicyKind};

use super::world;

fn exponential() -> super::World {
    world().config(|config| config.backoff = Policy::new(PolicyKind::Exponential))
}

/// Returns the number of attempts of a `try` around a group, and its failure.
fn futile(head: &str, group: &str) -> (u64, String) {
    let script = format!("{head}\n{group}\nend");
    let ran = exponential().run(&script);
    let Outcome::Failed(failure) = &ran.outcome else { panic!("{script}: {:?}", ran.outcome) };
    (failure.tries.last().map_or(0, |tried| tried.attempts), failure.message.clone())
}

#[test]
fn a_failure_that_time_does_not_mend_is_attempted_three_times() {
    for group in [
        "echo $missing",
        "if 1 .gt. 2\nsource /s\nend\nx=gone(1)",
        "nosuchprogram a",
        "x=5 .add. five",
        "if two .lt. 5\nend",
        "limit 1 minute\nnosuchprogram a\nend",
        "nosuchprogram | cat",
        "forall x in 1\nnosuchprogram\nend",
        "function f\nnosuchprogram\nend\nf",
    ] {
        let (attempts, message) = futile("try for 1 hour", group);
        assert_eq!(attempts, 3, "{group}");
        assert!(message.ends_with("; three attempts failed in this way, so no other follows"));
        let (attempts, _) = futile("try 5 times while true", group);
        assert_eq!(attempts, 5, "{group}");
        let (attempts, message) = futile("try 2 times", group);
        assert!(attempts == 2 && !message.contains("three attempts"), "{message}");
    }
}

#[test]
fn other_failures_are_attempted_again() {
    for group in ["fail", "/no/such/program", "v=five; x=5 .add. $v", "fail 3"] {
        assert_eq!(futile("try 7 times", group).0, 7, "{group}");
    }
}

#[test]
fn other_failures_and_other_places_begin_the_count_anew() {
    let other = "if $attempt .eql. 3\nfail\nend\nnosuchprogram";
    assert_eq!(futile("try for 1 hour", other).0, 6);
    let places = "if $attempt .eql. 2\nnosuchprogram\nend\nnosuchprogram";
    assert_eq!(futile("try for 1 hour", places).0, 5);
}

#[test]
fn nested_tries_count_their_own_attempts() {
    let ran = exponential().run("try for 1 hour\ntry for 10 minutes\nnosuchprogram\nend\nend");
    let Outcome::Failed(failure) = &ran.outcome else { panic!("{:?}", ran.outcome) };
    let attempts: Vec<u64> = failure.tries.iter().map(|tried| tried.attempts).collect();
    assert_eq!((attempts, failure.code), (vec![3, 3], 127));
    assert_eq!(failure.message.matches("three attempts").count(), 1);
}

#[test]
fn a_limit_ends_its_group_and_passes_giveup_and_defer_on() {
    exponential()
        .run("limit 3 seconds\n hang\n catch\n echo $error_kind\n end\necho $0")
        .succeeds()
        .prints("timeout\nscript\n")
        .takes(3.0);
    exponential()
        .run("n=0; try 5 times\n n=$n + 1\n limit 1 minute\n giveup\n end\n catch\n echo $n\nend")
        .prints("1\n");
    exponential()
        .run("n=0; try for 1 hour\n limit 1 minute\n if $n == 0\n n=1\n defer 20 minutes\n end\n echo $attempt\n end\nend")
        .succeeds()
        .prints("1\n");
    exponential()
        .run("try 3 times\n limit 10 seconds\n echo $attempt $remaining\n fail\n end\nend")
        .prints("1 10\n2 10\n3 10\n");
    exponential()
        .run("try 3 times\n limit 1 second\n hang\n end\nend")
        .fails("timeout", 124)
        .takes(6.0);
}

#[test]
fn each_attempt_begins_in_the_directory_of_the_first() {
    exponential()
        .run("cd /a; try 3 times\n cd b$attempt\n n=${n:-}x\n fail\ncatch\n pwd\n echo $PWD $OLDPWD $n\nend")
        .prints("/a\n/a / xxx\n");
    exponential()
        .run("cd /a; try 2 times\n cd b\n if $attempt .eql. 1\n fail\n end\nend\npwd")
        .prints("/a/b\n");
    exponential()
        .run("cd /a; try for 1 hour\n cd b\n if ${n:-} .eq. ''\n n=1\n defer 5 seconds\n end\n pwd\nend")
        .prints("/a/b\n");
    exponential().run("cd /a; try\n cd b\nfinally\n pwd\n cd /c\nend\npwd").prints("/a\n/a/b\n");
    exponential()
        .run("cd /a; try 2 times while $PWD .eq. /a\n cd b\n pwd\n fail\ncatch\nend")
        .prints("/a/b\n/a/b\n");
}
