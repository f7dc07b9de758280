//! The clause `signal NAME`: the first signal to canceled attempts.

use ftsh_machine::Outcome;

use super::{Ran, seconds, world};

/// Runs a script with a kill timeout of 10 seconds.
fn run(script: &str) -> Ran {
    world().config(|config| config.kill_timeout = seconds(10.0)).run(script)
}

/// Returns the signals of a run in order, each with its command and its time.
fn signals(ran: &Ran) -> Vec<String> {
    let trace = ran.world.trace();
    let lines = trace.lines().map(str::trim_start);
    let is_signal =
        |line: &&str| [" terminate ", " signal ", " kill "].iter().any(|word| line.contains(word));
    lines.filter(is_signal).map(ToOwned::to_owned).collect()
}

#[test]
fn a_signal_comes_before_sigterm() {
    let ran = run("try for 1 second signal INT; hang; end").fails("timeout", 124).takes(1.0);
    assert_eq!(signals(&ran), ["1 s signal INT hang"]);
    let ran = run("limit 1 second signal SIGHUP; deaf; end").fails("timeout", 124).takes(6.0);
    assert_eq!(signals(&ran), ["1 s signal HUP deaf", "6 s terminate deaf"]);
    let ran = run("s=SIGUSR1\ntry for 1 second signal $s; stubborn; end").takes(11.0);
    let expected = ["1 s signal USR1 stubborn", "6 s terminate stubborn", "11 s kill stubborn"];
    assert_eq!(signals(&ran), expected);
}

#[test]
fn tries_and_branches_inside_inherit_the_signal() {
    let ran = run("try for 1 second signal INT; try for 1 hour; deaf; end; end").takes(6.0);
    assert_eq!(signals(&ran), ["1 s signal INT deaf", "6 s terminate deaf"]);
    let ran =
        run("try for 9 seconds or 1 time signal INT; limit 1 second; deaf; end; end").takes(6.0);
    assert_eq!(signals(&ran), ["1 s signal INT deaf", "6 s terminate deaf"]);
    let ran = run("try for 1 second signal INT; forall x in a b; deaf; end; end").takes(6.0);
    let expected = ["1 s signal INT deaf", "1 s signal INT deaf"];
    assert_eq!(signals(&ran)[..2], expected);
    let ran = run("try for 1 second signal INT; deaf | deaf; end").takes(6.0);
    assert_eq!(signals(&ran)[0], expected[0]);
    let inner = "try for 1 second signal INT; try for 1 hour signal QUIT; deaf; end; end";
    assert_eq!(signals(&run(inner))[0], "1 s signal QUIT deaf");
    let inner = "try for 1 second signal INT; try for 1 hour signal TERM; deaf; end; end";
    assert_eq!(signals(&run(inner).takes(1.0)), ["1 s terminate deaf"]);
}

/// What is around the attempts, and beside them, receives SIGTERM at once.
#[test]
fn each_scope_gets_its_own_signal() {
    let script = "limit 1 second\n forall x in a b\n if $x == a\n try signal INT\n deaf\n end\n \
                  else\n hang\n end\n end\nend";
    let ran = run(script).takes(6.0);
    let mut first = signals(&ran)[..2].to_owned();
    first.sort();
    assert_eq!(first, ["1 s signal INT deaf", "1 s terminate hang"]);
    assert_eq!(signals(&ran)[2..], ["6 s terminate deaf"]);
    let ran = run("limit 1 second\n try signal INT\n ok\n end\n hang\nend").takes(1.0);
    assert_eq!(signals(&ran), ["1 s terminate hang"]);
}

#[test]
fn conditions_and_finally_are_no_attempts() {
    let ran = run("try for 1 second signal INT while .succeeds. (hang); fail; end").takes(1.0);
    assert_eq!(signals(&ran), ["1 s terminate hang"]);
    let ran = run("limit 1 second\n try signal INT\n ok\n finally\n hang\n end\nend");
    assert!(signals(&ran).iter().all(|line| !line.contains("INT")), "{:?}", signals(&ran));
}

#[test]
fn a_group_inside_the_attempt_inherits_the_signal() {
    let script = "try for 1 second signal INT\n try\n hang\n finally\n stubborn\n end\nend";
    let expected = [
        "1 s signal INT hang",
        "6 s signal INT stubborn",
        "8.5 s terminate stubborn",
        "11 s kill stubborn",
    ];
    assert_eq!(signals(&run(script)), expected);
}

/// A `finally` group leaves half of the kill timeout, and SIGTERM comes at half of that.
#[test]
fn sigterm_comes_at_half_of_the_time() {
    let script = "try for 1 second signal INT\n try\n stubborn\n finally\n ok\n end\nend";
    let expected = ["1 s signal INT stubborn", "3.5 s terminate stubborn", "6 s kill stubborn"];
    assert_eq!(signals(&run(script)), expected);
    let ran = world().config(|config| config.kill_timeout = seconds(0.0));
    let ran = ran.run("try for 1 second signal INT; stubborn; end").takes(1.0);
    assert_eq!(signals(&ran), ["1 s signal INT stubborn", "1 s kill stubborn"]);
    let ran = run("try for 1 second signal KILL; stubborn; end").takes(11.0);
    assert_eq!(signals(&ran), ["1 s signal KILL stubborn", "11 s kill stubborn"]);
}

#[test]
fn failures_siblings_and_the_end_of_the_run_send_the_signal() {
    let ran = run("try 1 time signal INT; daemon; fail; end").fails("exit", 1);
    assert_eq!(signals(&ran), ["0 ms signal INT daemon"]);
    let ran = run("try signal INT; forall x in a b; if $x == a; fail; end; deaf; end; end");
    assert_eq!(signals(&ran)[0], "0 ms signal INT deaf");
    let ran = world()
        .config(|config| config.kill_timeout = seconds(10.0))
        .model(|simulated| simulated.signal_at(seconds(2.0), 15))
        .run("try signal INT; deaf; end");
    assert_eq!(ran.outcome, Outcome::Interrupted(15));
    assert_eq!(signals(&ran), ["2 s signal INT deaf", "7 s terminate deaf"]);
}

#[test]
fn names_of_signals_are_checked() {
    let ran =
        run("s=BREAK\ntry signal $s; ok; catch; echo $error_kind; end").prints("expression\n");
    assert!(ran.world.starts().is_empty());
    let ran = run("s=int\ntry signal $s; ok; end").fails("expression", 1);
    let message = ran.message();
    assert!(message.contains("`int` is not a signal that `signal` can send"), "{message}");
}
