//! Atomic attempts: the effects of an attempt appear as a whole or not at all.

use std::time::Duration;

use ftsh_machine::Outcome;
use ftsh_machine::record::Level;
use ftsh_sim::{Model, Simulated};

use super::{Ran, World, world};

/// Returns a world with `drain`, which prints its input, and `warn`, which writes to standard
/// error.
fn atomic() -> World {
    world().model(|it| {
        it.command("drain", |call, _| Model::succeeds().prints(call.input.clone()).consumes())
            .command("warn", |call, _| Model::succeeds().complains(format!("{}\n", call.words[1])))
            .command("moan", |call, _| Model::fails(1).complains(format!("{}\n", call.words[1])))
            .file("f", "old\n")
            .file("in", "1\n2\n3\n")
    })
}

fn holds(ran: &Ran, path: &str, content: &str) {
    assert_eq!(ran.world.content(path).as_deref(), Some(content), "{}", ran.world.trace());
}

/// Attempts of which the third succeeds.
const THIRD: &str = "echo $attempt; if $attempt .lt. 3; fail 4; end";

fn thrice(rest: &str) -> String {
    format!("try 3 times backoff none atomic\n{THIRD}\n{rest}")
}

#[test]
fn only_the_output_of_the_successful_attempt_appears() {
    atomic().run(&thrice("end")).succeeds().prints("3\n");
    let ran = atomic().run("try 2 times backoff none atomic; warn a; echo b; fail; end");
    assert_eq!((ran.world.stdout(), ran.world.stderr()), (String::new(), String::new()));
    ran.fails("exit", 1);
    let ran = atomic().run("try atomic; warn a; echo b; warn c; end").succeeds().prints("b\n");
    assert_eq!(ran.world.stderr(), "a\nc\n");
    // The output appears after the success of the attempt.
    let ran = atomic().run("try atomic; echo a; work 5; end; echo b").succeeds().prints("a\nb\n");
    ran.takes(5.0);
    // Descriptors with the same target stay in order.
    atomic().run("try atomic; echo a; warn b; echo c; end 2>&1").succeeds().prints("a\nb\nc\n");
    atomic().run("try atomic; echo a; end | cat").succeeds().prints("a\n");
}

#[test]
fn every_successful_end_commits() {
    for (out, rest, says) in [
        ("return", "echo no", "3\n"),
        ("exit", "echo no", "3\n"),
        ("exit 0", "echo no", "3\n"),
        ("success", "echo yes", "3\nyes\n"),
    ] {
        let ran = atomic().run(&format!("{}\n{out}\nend > f\n{rest}", thrice("")));
        let rest = if out == "success" { "yes\n" } else { "" };
        assert_eq!(ran.world.stdout(), rest, "{out}");
        holds(&ran, "f", "3\n");
        ran.succeeds();
        let script = format!(
            "{}\n{out}\nend\n{}",
            thrice(""),
            if rest.is_empty() { "echo no" } else { "echo yes" }
        );
        atomic().run(&script).succeeds().prints(says);
    }
    for out in ["break", "continue"] {
        let script = format!("for n in 1 2\n{}\n{out}\nend > f\nend\necho $n", thrice(""));
        let n = if out == "break" { "1\n" } else { "2\n" };
        let ran = atomic().run(&script).succeeds().prints(n);
        holds(&ran, "f", "3\n");
    }
    let script = format!("function g\n{}\nreturn 7\nend > f\nend\nx=g()\necho $x", thrice(""));
    let ran = atomic().run(&script).succeeds().prints("7\n");
    holds(&ran, "f", "3\n");
    for (out, code) in [("exit 3", 3), ("fail 3", 3)] {
        let ran = atomic().run(&format!("try atomic\necho a\n{out}\nend > f"));
        assert_eq!(ran.outcome.exit_code(), code);
        holds(&ran, "f", "old\n");
        ran.prints("");
    }
}

#[test]
fn every_attempt_reads_the_same() {
    let script = "try 3 times backoff none atomic; drain; if $attempt .lt. 3; fail; end; end; read x; echo $x";
    let stdin = |script: &str| atomic().model(|it| it.stdin("1\n2\n3\n")).run(script);
    stdin(&format!("{script}\n")).fails("failure", 1).prints("1\n2\n3\n");
    // The next command reads the rest of the input, line by line.
    let ran = stdin(
        "try 2 times backoff none atomic; read a; read b; if $attempt .eql. 1; fail; end; end; read c; echo $a$b$c",
    );
    ran.succeeds().prints("123\n");
    // A failed `try` has read nothing, for its `catch` and its `finally` too.
    let ran = stdin(
        "try 2 times backoff none atomic; drain; fail; catch; read a; finally; read b; end; drain; echo $a$b",
    );
    ran.succeeds().prints("3\n12\n");
    // Input redirections apply to all attempts.
    atomic()
        .run("try 2 times backoff none atomic; read a; read b; if $attempt .eql. 1; fail; end; end < in; echo $a$b")
        .succeeds()
        .prints("12\n");
    atomic()
        .run("cat < in | try 2 times backoff none atomic; read a; if $attempt .eql. 1; fail; end; drain; end")
        .succeeds()
        .prints("2\n3\n");
    // The outer attempt may undo an inner success.
    let ran = stdin(
        "try 2 times backoff none atomic; try atomic; read a; end; try 2 times backoff none atomic; read b; echo $a$b; fail $attempt; catch; drain; end; if $attempt .eql. 1; fail; end; end",
    );
    ran.succeeds().prints("2\n3\n");
    // Without `atomic`, the input is consumed.
    stdin("try 2 times backoff none; drain; if $attempt .eql. 1; fail; end; end")
        .succeeds()
        .prints("1\n2\n3\n");
}

#[test]
fn files_are_those_of_one_attempt() {
    let ran = atomic().run(&thrice("end > f")).succeeds().prints("");
    holds(&ran, "f", "3\n");
    let ran = atomic().run(&thrice("end >> f")).succeeds();
    holds(&ran, "f", "old\n3\n");
    let ran = atomic().run("try atomic; echo new; cat < f; fail; end > f");
    holds(&ran, "f", "old\n");
    // During the attempt, the file keeps its previous content.
    let ran = atomic().run("try atomic; echo new; cat < f > g; end > f").succeeds();
    holds(&ran, "g", "old\n");
    holds(&ran, "f", "new\n");
    let ran = atomic().run("try atomic; echo a; warn b; end > f 2>&1").succeeds();
    holds(&ran, "f", "a\nb\n");
    let ran = atomic().run("try atomic; echo a; warn b; end >& g").succeeds();
    holds(&ran, "g", "a\nb\n");
    let ran = atomic().run("try atomic; echo a; warn b; end > f 2> g").succeeds();
    holds(&ran, "f", "a\n");
    holds(&ran, "g", "b\n");
}

#[test]
fn redirections_are_evaluated_before_the_first_attempt() {
    let ran =
        atomic().run(&format!("g=g; {}; end > $g", thrice("g=h; cd there; fail; catch; echo c")));
    holds(&ran, "g", "c\n");
    let ran =
        atomic().run(&format!("g=g; try 3 times backoff none atomic; g=h; {THIRD}; end > $g"));
    holds(&ran, "g", "3\n");
    assert_eq!(ran.world.content("h"), None);
    let ran = atomic().run("try for 1 hour atomic; ok; catch; echo no; end > $unset");
    ran.fails("expression", 1).prints("").takes(0.0);
    let ran =
        atomic().run("for x in 1; try for 1 hour atomic; break; finally; echo f; end > f; end");
    holds(&ran, "f", "");
    ran.succeeds().prints("f\n");
}

#[test]
fn files_of_catch_replace_those_of_the_attempts() {
    let ran = atomic().run(&thrice("fail\ncatch\necho c\nfinally\necho d\nend > f")).succeeds();
    holds(&ran, "f", "c\n");
    ran.prints("d\n");
    // A `catch` that writes nothing keeps the file.
    let ran = atomic().run("try atomic; echo a; fail; catch; ok; end > f").succeeds();
    holds(&ran, "f", "old\n");
    let ran = atomic().run("try atomic; ok; end > f").succeeds();
    holds(&ran, "f", "");
    let ran = atomic().run("try atomic; fail; catch; echo c; fail 2; end > f").fails("exit", 2);
    holds(&ran, "f", "old\n");
    atomic().run("try atomic; echo a; fail; catch; echo c; end").succeeds().prints("c\n");
}

#[test]
fn variables_have_the_output_of_the_successful_attempt() {
    let ran =
        atomic().run(&format!("v=old; {}; echo \"$v\"", thrice("echo b; end -> v"))).succeeds();
    ran.prints("3\nb\n");
    let ran = atomic().run("v=a; try atomic; echo b; echo $v; end ->> v; echo \"$v\"").succeeds();
    ran.prints("ab\na\n");
    atomic()
        .run("echo x -> v; try 2 times backoff none atomic; echo b; if $attempt .eql. 1; fail; end; end ->> v; echo \"$v\"")
        .succeeds()
        .prints("x\nb\n");
    atomic()
        .run("v=old; try atomic; echo b; fail; catch; success; end -> v; echo \"<$v>\"")
        .succeeds()
        .prints("<old>\n");
    atomic()
        .run("v=old; try atomic; echo b; fail; catch; echo c; end -> v; echo \"<$v>\"")
        .succeeds()
        .prints("<c>\n");
    atomic().run("v=old; try atomic; ok; end -> v; echo \"<$v>\"").succeeds().prints("<>\n");
    atomic()
        .run("v=old; try; try atomic; echo b; fail; end -> v; catch; echo $v; end")
        .succeeds()
        .prints("old\n");
    atomic()
        .run("try atomic; echo a; warn b; end -> v 2->> v; echo \"$v\"")
        .succeeds()
        .prints("a\nb\n");
    atomic().run("try atomic; echo a; warn b; end ->& v; echo \"$v\"").succeeds().prints("a\nb\n");
    // Other variables keep the values of failed attempts.
    atomic()
        .run("try 2 times backoff none atomic; n=$attempt; fail; catch; echo $n; end")
        .prints("2\n");
}

#[test]
fn inner_successes_belong_to_the_outer_attempt() {
    let script = "try 2 times backoff none atomic\n\
                  try atomic; echo in$attempt; end > f\n\
                  try atomic; echo held; end\n\
                  cat < f\n\
                  if $attempt .eql. 1; fail; end\nend";
    let ran = atomic().run(script).succeeds().prints("held\nold\n");
    holds(&ran, "f", "in1\n");
    let script = "try atomic; try atomic; echo a; end > f; try atomic; echo b; end > g; fail; end";
    let ran = atomic().run(script).fails("exit", 1);
    holds(&ran, "f", "old\n");
    assert_eq!(ran.world.content("g"), None);
    // In branches, stages and words too.
    for (head, tail) in [
        ("forall x in a", "end"),
        ("ok | if a .eq. a", "end"),
        ("forany x in a hedge after 5 seconds", "end"),
    ] {
        for (last, content) in [("ok", "a\n"), ("fail", "old\n")] {
            let script =
                format!("try atomic\n{head}\ntry atomic; echo a; end > f\n{tail}\n{last}\nend");
            let ran = atomic().run(&script);
            holds(&ran, "f", content);
        }
    }
}

#[test]
fn files_are_committed_in_the_order_of_their_writes() {
    let script = "try atomic\ntry atomic; echo 1; end > f\ntry atomic; echo 2; end > f\nend";
    holds(&atomic().run(script).succeeds(), "f", "2\n");
    let script = "try atomic\ntry atomic; echo 1; end >> f\ntry atomic; echo 2; end >> f\nend";
    holds(&atomic().run(script).succeeds(), "f", "old\n1\n2\n");
    let script = "try atomic\necho 2\ntry atomic; echo 1; end > f\nend >> f";
    holds(&atomic().run(script).succeeds(), "f", "1\n2\n");
}

#[test]
fn the_file_of_a_command_appears_after_its_success() {
    let ran = atomic()
        .model(|it| it.command("half", |_, _| Model::fails(1).prints("half\n")))
        .run("try atomic; echo a > g; cat < g; try; half > f; catch; cat < f; end; end")
        .succeeds();
    holds(&ran, "g", "a\n");
    holds(&ran, "f", "old\n");
    ran.prints("a\nold\n");
    // In blocks and calls inside, in sourced files, functions and branches too.
    for inside in [
        "for x in 1 2; echo $x; if $x .eql. 2; fail; end; end > f",
        "forall x in 1 2; echo $x; fail; end > f",
        "g > f",
        "g 2>&1 > f",
        "h",
        "forall x in 1; echo 1 > f; fail 1 > f; end",
    ] {
        let functions = "function g; echo 1; fail; end; function h; g > f; end";
        let ran = atomic().run(&format!("{functions}\ntry atomic\n{inside}\nend")).fails("exit", 1);
        holds(&ran, "f", if inside.contains("echo 1 >") { "1\n" } else { "old\n" });
    }
    for inside in [
        "for x in 1 2; echo $x; end > f",
        "g > f",
        "for x in 1 2; echo 1; echo 2; break; end > f",
        "source script > f",
    ] {
        let functions = "function g; echo 1; echo 2; return; end";
        let world = atomic().model(|it| it.file("script", "echo 1; echo 2; return; echo 3"));
        let ran = world.run(&format!("{functions}\ntry atomic\n{inside}\ncat < f\nend")).succeeds();
        holds(&ran, "f", "1\n2\n");
        ran.prints("1\n2\n");
    }
    // Appended output, and output outside of an atomic attempt, is written at once.
    let ran = atomic().run("try atomic; for x in 1; echo a; fail; end >> f; end");
    holds(&ran, "f", "old\na\n");
    let ran = atomic().run("try; for x in 1; echo a; fail; end > f; end");
    holds(&ran, "f", "a\n");
    let ran = atomic().run("try atomic; fail; catch; for x in 1; echo a; fail; end > f; end");
    holds(&ran, "f", "a\n");
    // Builtins without output create the file too.
    holds(&atomic().run("try atomic; success > f; sleep 1 > g; end").succeeds(), "f", "");
}

#[test]
fn failed_attempts_report_their_output() {
    let ran =
        atomic().run("try atomic; echo a; warn b; fail; catch; echo \"<$error_output>\"; end");
    ran.prints("<b\na>\n");
    let ran = atomic().run(
        "try for 3 seconds or 1 time atomic; warn b; hang; catch; echo \"$error_output\"; end",
    );
    ran.prints("b\n");
    let ran = atomic().run("try; fail; catch; echo \"<$error_output>\"; end").prints("<>\n");
    ran.succeeds();
    atomic().run("try atomic; ok; finally; echo \"<$error_output>\"; end").prints("<>\n");
    atomic()
        .run("try atomic; warn b; fail; finally; echo \"<$error_output>\"; end")
        .prints("<b>\n");
    // Output to a variable is included.
    let ran = atomic()
        .run("try atomic; echo a; warn b; fail; catch; echo \"<$error_output>\" > g; end ->& v");
    holds(&ran, "g", "<a\nb>\n");
    let ran = atomic()
        .run("try atomic; echo a; warn b; fail; catch; echo \"<$error_output>\" > g; end 2-> v");
    holds(&ran, "g", "<b\na>\n");
    // Output to a file is included.
    for end in [">& f", ">>& f", "2> e > f", "> f"] {
        let script = "try atomic; echo a; warn b; fail; catch; x=\"$error_output\"; end";
        let ran = atomic().run(&format!("{script} {end}; echo \"<$x>\" > g"));
        holds(
            &ran,
            "g",
            if end.starts_with('>') && end.contains('&') { "<a\nb>\n" } else { "<b\na>\n" },
        );
    }
    // Output of an inner attempt is included.
    let inner =
        "try atomic; warn a; try atomic; warn b; fail; end; catch; echo \"$error_output\"; end";
    atomic().run(inner).prints("a\nb\n");
    // What is cut by a limit around the attempts is included.
    for inside in [
        "try atomic; echo a; warn b; hang; end",
        "forall x in b; try atomic; echo a; warn $x; hang; end; end",
        "forany x in b hedge after 1 hour; echo a; warn $x; hang; end",
        "try atomic; forany x in b hedge after 1 hour; warn $x; hang; end; end",
    ] {
        let script = format!("limit 3 seconds; {inside}; catch; echo \"$error_output\"; end");
        atomic().run(&script).prints("b\n");
    }
    let script = "try 1 time; forany x in a b in order hedge after 1 hour; echo o; moan $x; end";
    atomic().run(&format!("{script}; catch; echo \"$error_output\"; end")).prints("b\n");
    // At most 64 KiB, in whole lines; standard error comes first.
    let long = "x".repeat(100);
    let script = format!(
        "try atomic; for n in 1 .to. 1000; warn {long}; end; echo out; fail\n\
         catch; x=\"$error_output\"; n=length($x); echo $n; end"
    );
    atomic().run(&script).prints(&format!("{}\n", 65536 / 101 * 101 + 3));
}

#[test]
fn standard_error_of_attempts_is_kept_if_used() {
    let shown = |script: &str, output: &str, errors: &str| {
        let ran = atomic().run(script).prints(output);
        assert_eq!(ran.world.stderr(), errors, "{script}");
    };
    // A condition reads the output of the failure, and attempts continue until the output changes.
    let script = "try 9 times backoff none while $error_output .contains. \"not ready\"\n\
                  if $attempt .lt. 3; moan \"not ready\"; end; moan broken\n\
                  catch; echo \"$error_output\"; end";
    shown(script, "broken\n", "not ready\nnot ready\nbroken\n");
    let report = "catch; echo \"<$error_output>\"; end";
    // Standard output is not included, and neither is output to other targets.
    shown(&format!("try; echo a; moan b; {report}"), "a\n<b>\n", "b\n");
    for elsewhere in ["2> f", "2-> v", ">& f"] {
        shown(&format!("try; moan c {elsewhere}; {report}"), "<>\n", "");
    }
    shown(&format!("try; moan b; {report} 2> f"), "<b>\n", "");
    // Only the failed command counts, with all stages or branches.
    shown(&format!("try; warn a; moan b; {report}"), "<b>\n", "a\nb\n");
    shown(&format!("try; warn a; fail; {report}"), "<>\n", "a\n");
    shown(&format!("try; warn a; x=1 / 0; {report}"), "<>\n", "a\n");
    shown(&format!("try; warn a; warn b | moan c; {report}"), "<b\nc>\n", "a\nb\nc\n");
    shown(&format!("try; warn a | cat; fail; {report}"), "<>\n", "a\n");
    shown(&format!("try; warn z; forall x in a; moan $x; end; {report}"), "<a>\n", "z\na\n");
    shown(&format!("try; forall x in a; warn $x; end; fail; {report}"), "<>\n", "a\n");
    shown(&format!("function f; warn a; moan b; end; try; f; {report}"), "<b>\n", "a\nb\n");
    // Failures that are answers or accepted leave nothing.
    shown(&format!("try; if .succeeds. (moan a); end; x=1 / 0; {report}"), "<>\n", "a\n");
    shown(&format!("try; accept 1 moan a; x=1 / 0; {report}"), "<>\n", "a\n");
    shown(&format!("try; forany x in a b in order; moan $x; end; {report}"), "<b>\n", "a\nb\n");
    let inner = "try; warn a; try 1 time; warn b; moan c; end";
    shown(&format!("{inner}; {report}"), "<c>\n", "a\nb\nc\n");
    let both = "try; warn a; try 1 time; moan b; catch; echo $error_output; failure; end";
    shown(&format!("{both}; {report}"), "b\n<b>\n", "a\nb\n");
    let caught = "try; try 1 time; moan b; catch; echo $error_output; failure new; end";
    shown(&format!("{caught}; {report}"), "b\n<>\n", "b\n");
    // The output of an inner atomic attempt is lost except for `$error_output`, and the reverse.
    shown(&format!("try; warn a; try atomic; warn b; fail; end; {report}"), "<b>\n", "a\n");
    let both = "try atomic; warn a; try 1 time; moan b; catch; x=$error_output; failure; end";
    shown(&format!("{both}; {report}"), "<a\nb>\n", "");
    // Functions and `finally` may read the variable.
    let script = "function report; echo \"<$error_output>\"; end\n\
                  try; moan a; catch; report; end";
    shown(script, "<a>\n", "a\n");
    let script = "try 1 time; moan a; finally; echo \"<$error_output>\"; end";
    shown(script, "<a>\n", "a\n");
    // A limit, and the other ends.
    shown(&format!("limit 3 seconds; warn a; hang; {report}"), "<>\n", "a\n");
    let script = "for x in 1 2 3; try; warn $x; if $x .eq. 2; break; end; continue; catch\n\
                  echo $error_output; end; end; warn out";
    shown(script, "", "1\n2\nout\n");
    // At most 64 KiB, in whole lines.
    let long = "x".repeat(100);
    let script = format!(
        "try; forall n in 1 .to. 1000; warn {long}; if $n .eq. 999; fail; end; end\n\
         catch; x=\"$error_output\"; n=length($x); echo $n; end"
    );
    atomic().run(&script).prints(&format!("{}\n", 65536 / 101 * 101 - 1));
}

#[test]
fn an_attempt_has_a_directory_of_its_own() {
    let script = "try 2 times backoff none atomic\n\
                  x=$scratch; echo $attempt > $scratch/a\n\
                  try 1 time; cat < $scratch/a; if $scratch .ne. $x; fail; end; end\n\
                  forall n in 1; cat < $scratch/a; if $scratch .ne. $x; fail; end; end\n\
                  if $attempt .eql. 1; fail; end\nend\n\
                  if .exists. $x/a; fail 9; end";
    let ran = atomic().run(script).succeeds().prints("2\n2\n");
    assert_eq!(ran.world.content("f").as_deref(), Some("old\n"));
    // The innermost attempt counts; outside, the variable is ordinary.
    atomic()
        .run("try atomic; x=$scratch; try atomic; if $x .eq. $scratch; fail; end; end; end")
        .succeeds();
    atomic().run("echo $scratch").fails("expression", 1);
    atomic().run("scratch=a; echo $scratch; try atomic; echo $scratch; end").prints("a\na\n");
    atomic().env("scratch", "a").run("echo $scratch").prints("a\n");
    // The directory is removed after the last process of the attempt.
    let ran = atomic()
        .run("try 1 time each 2 seconds atomic; x=$scratch; stubborn > $x/a; catch; success; end");
    ran.succeeds().takes(32.0);
}

#[test]
fn errors_before_the_first_file_fail_the_attempt() {
    let mut first = true;
    let refuses = move |it: Simulated| it.settles(move |_| std::mem::take(&mut first).then_some(0));
    let ran =
        atomic().model(refuses).run("try 2 times backoff none atomic; echo $attempt; end > f");
    holds(&ran, "f", "2\n");
    ran.succeeds();
    let refuses = |it: Simulated| it.settles(|_| Some(0));
    let ran =
        atomic().model(refuses).run("try 2 times backoff none atomic; echo $attempt; end > f");
    holds(&ran, "f", "old\n");
    assert!(ran.message().contains("the disk is full, 2 attempts"), "{}", ran.message());
    ran.fails("redirect", 1);
    // For a single command, the failure is the failure of the command.
    let ran = atomic().model(refuses).run("try atomic; echo a > f; end");
    holds(&ran, "f", "old\n");
    assert!(ran.message().contains("`echo a`: the disk is full"), "{}", ran.message());
    ran.fails("redirect", 1);
}

#[test]
fn no_attempt_follows_the_first_committed_file() {
    let refuses = |it: Simulated| it.settles(|_| Some(1));
    let script = "try 5 times backoff none atomic; echo $attempt; warn b; end > f 2> g";
    let ran = atomic().model(refuses).run(script);
    holds(&ran, "f", "1\n");
    assert_eq!(ran.world.content("g"), None);
    assert!(ran.message().ends_with("the disk is full"), "{}", ran.message());
    ran.fails("redirect", 1);
}

#[test]
fn refused_files_have_the_reason_of_the_system() {
    for fails in [0, 1] {
        let refuses = move |it: Simulated| it.settles(move |_| Some(fails));
        for inside in [
            "try 1 time atomic; echo a; warn b; end > f 2> g",
            "try 1 time atomic; echo a > f 2> g; end",
        ] {
            let script = format!(
                "try 1 time
{inside}
catch
echo $error_kind $error_errno
end"
            );
            atomic().model(refuses).run(&script).prints("redirect ENOSPC\n");
        }
    }
}

#[test]
fn limits_and_failing_siblings_drop_all_effects() {
    let ran = atomic().run("try for 3 seconds atomic; echo a; hang; catch; echo c; end > f");
    holds(&ran, "f", "c\n");
    let ran = atomic().run("forall x in 1 2; if $x .eql. 1; sleep 1; fail; end; try atomic; echo a; hang; end > f; end");
    holds(&ran, "f", "old\n");
    ran.fails("exit", 1);
    let signal = |it: Simulated| it.signal_at(Duration::from_secs(1), 15);
    let ran =
        atomic().model(signal).run("try atomic; echo a; try; hang; finally; echo b; end; end > f");
    assert_eq!(ran.outcome, Outcome::Interrupted(15));
    holds(&ran, "f", "old\n");
    ran.prints("");
}

#[test]
fn exec_is_refused() {
    let error = ftsh_syntax::parse("t", "try atomic; exec ls; end").expect_err("refused");
    assert!(error.errors[0].message.contains("`exec` is not possible in an atomic `try`"));
    assert!(ftsh_syntax::parse("t", "try atomic; ok; catch; exec ls; end").is_ok());
    assert!(ftsh_syntax::parse("t", "try atomic; function f; exec ls; end; end").is_ok());
    let ran = atomic().run("function f; exec ok; end; try atomic; f; end").fails("failure", 1);
    assert!(ran.message().contains("exec is not possible in an atomic `try`"), "{}", ran.message());
}

#[test]
fn retries_without_input_are_logged() {
    let report = |script: &str| {
        let world = atomic().logging(Level::FAILURES);
        let world = world.config(|it| it.passing_input = true).model(|it| it.stdin("1\n2\n"));
        world.run(script).world.trace().matches("InputEnded").count()
    };
    let uploads = |head: &str| format!("{head}; drain; if $attempt .lt. 3; fail; end; end");
    assert_eq!(report(&uploads("try 3 times")), 1);
    for quiet in [
        &*uploads("try 3 times atomic"),
        &uploads("drain; try 3 times"),
        "try 3 times; read a; if $attempt .eql. 1; fail; end; end",
        "try 3 times; drain; end",
        "try atomic; try 3 times; drain; fail; end; end",
        "try 3 times; cat < in; fail; end",
        "try 3 times; drain; fail; end < in",
        "forall x in a; try 3 times; drain; fail; end; end",
        "try 3 times; fail; end",
    ] {
        assert_eq!(report(quiet), 0, "{quiet}");
    }
    assert_eq!(report("echo a | try 3 times; drain; fail; end"), 1);
    assert_eq!(report("echo a | if a .eq. a; try 3 times; drain; fail; end 3<&0; end"), 1);
    // A file is available for every attempt, if the script opens the file; other input is unknown.
    let world = atomic().logging(Level::FAILURES).model(|it| it.stdin("1\n2\n"));
    assert!(!world.run(&uploads("try 3 times")).world.trace().contains("InputEnded"));
}
