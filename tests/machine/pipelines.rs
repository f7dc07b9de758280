//! Structures as stages of pipelines.

use std::time::Duration;

use ftsh_machine::Outcome;
use ftsh_machine::event::CommandStatus;
use ftsh_machine::record::Level;
use ftsh_sim::{Model, Simulated};

use super::{World, world};

/// Returns a world where `yes` writes to a pipe without a reader.
fn unread() -> World {
    world().model(|it| it.command("yes", |_, _| Model::ends(CommandStatus::Signaled(13))))
}

#[test]
fn a_stage_can_be_any_structure() {
    world().run("for x in a b; echo $x; end | cat").succeeds().prints("a\nb\n");
    world().run("echo a | for x in 1 2; echo $x; cat; end").prints("1\na\n2\na\n");
    world().run("try; echo a; end | if true; cat; else; ok; end | cat").prints("a\n");
    world().run("forall x in a b; echo $x; end | cat -> v; echo \"$v\"").prints("a\nb\n");
    world().run("echo a b | while .succeeds. (read l); echo \"<$l>\"; end").prints("<a b>\n");
    world().run("forany x in a in order; echo $x; end | cat").prints("a\n");
    world().run("if true; echo a; fail 2; end | cat").fails("exit", 2).prints("a\n");
    world().run("ok | for x in 1; fail 4; end").fails("exit", 4);
    world()
        .run("function f; for x in $*; echo $x; end | cat; end; f a b | while .succeeds. (read l); f $l $l; end")
        .prints("a\na\nb\nb\n");
}

#[test]
fn an_end_may_be_redirected_and_piped() {
    world().run("for x in a b; echo $x; end 3> /f | cat > /g; cat < /g").prints("a\nb\n");
    world().run("cat <<< in | try; cat; end > /f | cat; cat < /f").prints("in\n");
    world().run("if true; cat; end <<< in | while .succeeds. (read l); echo \"<$l>\"; end -> v; echo $v").prints("<in>\n");
    let errors = |it: ftsh_sim::Simulated| {
        it.command("err", |_, _| Model { errors: "e\n".into(), ..Model::succeeds() })
    };
    world().model(errors).run("try; err; end |& cat -> v; echo $v").prints("e\n");
    world().model(errors).run("try; err; end | cat -> v; echo \"[$v]\"").prints("[]\n");
}

#[test]
fn variables_of_later_stages_win() {
    let script = "v=0; if true; sleep 5; v=1; w=1; end | if true; v=2; sleep 1; end; echo $v $w";
    world().run(script).succeeds().prints("2 1\n").takes(5.0);
    // Until the end, the value belongs to the stage.
    world()
        .run("v=0; if true; v=1; end | if true; sleep 1; echo $v; end; echo $v")
        .prints("0\n1\n");
    world().run("for x in a; ok; end | ok; echo $x").prints("a\n");
    world()
        .run("printed=; echo a b | while .succeeds. (read l); printed=$l; end; echo $printed")
        .prints("a b\n");
    world()
        .run("echo a b | while .succeeds. (read l); last=\"$l\"; end; echo $last")
        .prints("a b\n");
    world().run("v=1; try; if true; v=2; fail; end | ok; catch; echo $v; end").prints("2\n");
    world().run("v=1; if true; unset v; end | ok; echo ${v:-none}").prints("none\n");
}

#[test]
fn a_stage_that_sets_a_variable_and_unsets_nothing_else_leaves_the_others_alone() {
    let script =
        "a=0; b=0; if true; a=1; ok | ok; end | if true; b=1; ok | ok; end | ok; echo $a $b";
    world().run(script).prints("1 1\n");
}

#[test]
fn locals_and_directories_stay_in_the_stage() {
    let function = |body: &str| format!("function f; {body}; echo $v; end; v=0; f; echo $v");
    world().run(&function("if true; local v=1; end | ok")).prints("0\n0\n");
    world().run(&function("if true; v=1; local v=2; v=3; end | ok")).prints("1\n1\n");
    world().run(&function("local v=1; if true; v=2; end | ok")).prints("2\n0\n");
    world().run(&function("if true; v=1; end | if true; local v=9; end")).prints("1\n1\n");
    world().run(&function("if true; local v; local v=4; end | ok")).prints("0\n0\n");
    world().run("cd /a; if true; cd /b; pwd; end | cat; pwd; echo $PWD").prints("/b\n/a\n/a\n");
    world().args(&["a", "b"]).run("if true; shift; echo $1; end | cat; echo $1").prints("b\na\n");
}

#[test]
fn a_limit_is_for_all_stages() {
    let script =
        "try for 3 seconds or 1 time; for x in a; hang; end | while true; work 1; end; end";
    world().run(script).fails("timeout", 124).takes(3.0);
    let script = "for x in a; try for 2 seconds or 1 time; hang; end; end | while .succeeds. (work 1); read x; end";
    world().run(script).fails("timeout", 124);
    let ran = world()
        .run("try for 3 seconds or 1 time; hang | forall x in 1 2; hang; end; catch; ok; end");
    assert!(ran.succeeds().takes(3.0).world.running().is_empty());
}

#[test]
fn stages_that_are_canceled_clean_up() {
    let script = "try for 2 seconds or 1 time\n\
                  for n in 1; try; hang; finally; echo $n $error_kind; end; end > /f | \
                  try; try; hang; finally; work 1; echo in; end; finally; echo out; end\n\
                  finally; cat < /f; echo last; end";
    let ten = Duration::from_secs(10);
    world()
        .config(|config| config.kill_timeout = ten)
        .run(script)
        .fails("timeout", 124)
        .prints("in\nout\n1 timeout\nlast\n")
        .takes(3.0);
}

#[test]
fn exit_ends_its_stage() {
    world().run("if true; exit; end | cat; echo on").succeeds().prints("on\n");
    world().run("for x in a b; echo $x; exit; end | cat; echo on").prints("a\non\n");
    let ran = world().run("if true; exit 3; end | cat; echo on").fails("exit", 3).prints("");
    assert_eq!(ran.message(), "script:1: a stage exited with 3");
    world().run("try; if true; exit 3; end | cat; catch; echo $error_code; end").prints("3\n");
    world().run("try; ok; finally; if true; exit; end | cat; echo on; end").prints("on\n");
    world().run("if true; try; exit; finally; echo f; end; end | cat").prints("f\n");
}

#[test]
fn exit_leaves_nothing_of_an_attempt_behind() {
    for stage in [
        "if true; try; daemon; exit 3; end; end",
        "f",
        "try; try; daemon; exit 3; finally; ok; end; end",
    ] {
        // In a condition, the failure is an answer, and no attempt is emptied.
        let script = format!(
            "function f; try; daemon; exit 3; end; end\nfunction g; {stage} | ok; end\n\
             if .succeeds. (g); ok; end; work 1"
        );
        let ran = world().run(&script).succeeds();
        let (trace, at) = (ran.world.trace(), "terminate daemon");
        let ended = trace.lines().position(|line| line.contains(at));
        let next = trace.lines().position(|line| line.contains("run work 1"));
        assert!(ended.is_some() && ended < next, "{stage}\n{trace}");
    }
}

#[test]
fn stages_without_a_reader_end_through_every_try() {
    let runs = |script: &str| {
        let ran = unread().logging(Level::FAILURES).run(script).succeeds().takes(0.0);
        assert!(!ran.world.trace().contains("Failed"), "{script}\n{}", ran.world.trace());
        assert_eq!(ran.world.trace().matches("run yes").count(), 1, "{script}");
        ran.world.stderr()
    };
    runs("while true; yes; end | ok");
    assert_eq!(runs("try 5 times; yes; catch; echo no >&2; end | ok"), "");
    assert_eq!(
        runs(
            "try 5 times; try 5 times; yes; catch; echo no >&2; end; finally; echo f$error_kind >&2; end | ok"
        ),
        "fsignal\n"
    );
    runs("forany x in a b; yes; end | ok");
    runs("try 3 times while true; yes; end | ok");
    runs("if .succeeds. (yes); ok; end | ok");
    runs("while .not. .succeeds. (yes); ok; end | ok");
    runs("forall x in a b at most 1 keep going; yes; end | ok");
    runs("forall x in a b at most 1 at least 1; yes; end | ok");
    runs("try 5 times; forall x in a; try 5 times; yes; end; end; end | ok");
    runs("try; ok; finally; yes; end | ok");
    runs("try 5 times; yes 1>&2; end |& ok");
    runs("try 5 times; ok | yes; end | ok");
    runs("try 5 times; yes | if true; ok; end; end | ok");
    runs("try 5 times; exec yes; end | ok");
    runs("function f; try 5 times; yes; end; end; try 5 times; f; end | ok");
    runs("try y() times; ok; catch; ok; end | ok; function y; yes; return 1; end");
    unread().run("try; fail 3; catch; yes; end | ok").succeeds();
}

#[test]
fn branches_of_a_stage_without_a_reader_end() {
    let script = "forall x in 1 2 keep going; if $x .eql. 1; sleep 1; yes; end; try; hang; finally; echo $x >&2; end; end | ok; echo on";
    let ran = unread().run(script).succeeds().prints("on\n").takes(1.0);
    assert_eq!(ran.world.stderr(), "2\n");
}

#[test]
fn inner_pipes_do_not_end_the_stage() {
    // A failed write to another target is an ordinary failure.
    for stage in ["yes > /f", "yes -> v", "yes > /f 2>&1"] {
        let script = format!("try 3 times backoff none; {stage}; end | ok");
        let ran = unread().run(&script).fails("signal", 141);
        assert_eq!(ran.world.trace().matches("run yes").count(), 3, "{stage}");
    }
    let script = "try 3 times backoff none; yes; catch; echo caught; end > /f | ok; cat < /f";
    unread().run(script).succeeds().prints("caught\n");
    unread().run("ok | try 3 times backoff none; yes; end").fails("signal", 141);
    unread().run("try; yes; end | fail 2").fails("exit", 2);
    // A stage of an inner pipeline ends that stage alone.
    let script = "try; yes | ok; echo on > /f; end | cat; cat < /f";
    unread().run(script).succeeds().prints("on\n");
}

#[test]
fn scripts_without_a_reader_end_as_by_sigpipe() {
    let nobody = || unread().model(Simulated::nobody_reads).logging(Level::FAILURES);
    let runs = |script: &str| {
        let ran = nobody().run(script);
        assert_eq!(ran.outcome, Outcome::Interrupted(13), "{script}\n{}", ran.world.trace());
        assert!(!ran.world.trace().contains("Failed"), "{script}\n{}", ran.world.trace());
        assert!(!ran.world.trace().contains("EndedBy"), "{script}\n{}", ran.world.trace());
        assert_eq!(ran.world.trace().matches("run yes").count(), 1, "{script}");
        assert_eq!(ran.elapsed, Duration::ZERO, "{script}");
        ran.world.content("/f").unwrap_or_default()
    };
    assert_eq!(runs("yes; echo on > /f"), "");
    assert_eq!(runs("try for 1 hour; yes; catch; echo no > /f; end; echo on > /f"), "");
    assert_eq!(runs("try 5 times; yes; finally; echo f$error_kind > /f; end"), "fsignal\n");
    assert_eq!(runs("forany x in a b; yes; end; echo on > /f"), "");
    assert_eq!(runs("forall x in a b at most 1 keep going; yes; end; echo on > /f"), "");
    assert_eq!(runs("if .succeeds. (yes); ok; end; echo on > /f"), "");
    assert_eq!(runs("try 5 times; ok | yes; end; echo on > /f"), "");
    assert_eq!(runs("try 5 times; yes 2>&1; end; echo on > /f"), "");
    assert_eq!(runs("try 5 times; exec yes; end; echo on > /f"), "");
    assert_eq!(runs("function f; try 5 times; yes; end; end; try 5 times; f; end"), "");
    // Elsewhere the output has a reader.
    for script in ["yes > /f", "yes -> v", "yes 1>&2"] {
        nobody().run(script).fails("signal", 141);
    }
    nobody().run("yes | ok").succeeds();
    let finally = "try; ok; finally; yes; echo done > /f; end";
    assert_eq!(nobody().run(finally).succeeds().world.content("/f"), Some("done\n".into()));
    nobody().run("try; yes; finally; fail 4; end").fails("exit", 4);
}

#[test]
fn sigpipe_is_a_failure_with_a_reader() {
    let read = || {
        world()
            .model(|it| it.command("pipe", |_, _| Model::ends(CommandStatus::Signaled(13)).read()))
    };
    unread().run("yes").fails("signal", 141);
    read().run("pipe | ok").fails("signal", 141);
    read().run("if true; pipe; echo on; end | cat").fails("signal", 141).prints("");
    let ran = read().run("try 3 times backoff none; pipe; end | ok").fails("signal", 141);
    assert_eq!(ran.world.trace().matches("run pipe").count(), 3);
    read().run("try; pipe; catch; echo $error_kind; end | cat").prints("signal\n");
}

#[test]
fn finally_completes_without_a_reader() {
    let cleans = |stage: &str| {
        let ran = unread().logging(Level::FAILURES).run(&format!("{stage} | ok")).succeeds();
        assert!(!ran.world.trace().contains("Failed"), "{stage}\n{}", ran.world.trace());
        ran.world.stderr()
    };
    let groups = [
        "yes; echo done >&2",
        "try 5 times; yes; echo done >&2; catch; echo no >&2; end",
        "if .succeeds. (yes); echo done >&2; end",
        "forany x in a b; yes; echo done >&2; end",
        "ok | yes; echo done >&2",
        "ok | if true; yes; echo done >&2; end",
        "forall x in a; yes; echo done >&2; end",
        "forall x in a output tagged; yes; end; echo done >&2",
        // Missing readers inside of the group have their usual effect.
        "while true; yes; end | ok; echo done >&2",
        "forall x in a; while true; yes; end | ok; end; echo done >&2",
        "f",
    ];
    for group in groups {
        let function = "function f; yes; echo done >&2; end\n";
        for body in ["ok", "yes"] {
            let stage = format!("{function}try; {body}; finally; {group}; end");
            assert_eq!(cleans(&stage), "done\n", "{stage}");
        }
    }
    assert_eq!(
        cleans("try; yes; finally; try; yes; finally; yes; echo a >&2; end; echo b >&2; end"),
        "a\nb\n"
    );
    let ran = unread().logging(Level::COMMANDS).run("try; ok; finally; yes; end | ok");
    assert!(ran.world.trace().contains("CommandFailed"), "{}", ran.world.trace());
}

#[test]
fn a_canceled_finally_completes_without_a_reader() {
    let script =
        "try for 2 seconds or 1 time; try; hang; finally; yes; echo done >&2; end | hang; end";
    let ran = unread().run(script).fails("timeout", 124);
    assert!(ran.world.stderr().starts_with("done\n"), "{}", ran.world.stderr());
}

#[test]
fn a_failing_finally_counts_without_a_reader() {
    unread().run("try; yes; finally; fail 4; end | ok").fails("exit", 4);
    unread().run("try; try; yes; finally; fail 4; end; finally; fail 5; end | ok").fails("exit", 4);
    unread().run("try; yes; finally; yes; fail 4; end | ok").fails("exit", 4);
    unread().run("try; ok | yes; finally; fail 4; end | ok").fails("exit", 4);
}

#[test]
fn a_giveup_passes_the_pipeline() {
    let ran = world().run("try 5 times; for x in a; giveup; end | ok; end").fails("giveup", 1);
    assert_eq!(ran.elapsed, Duration::ZERO);
    world().run("forany x in 1 2; if true; failure; end | ok; end").fails("failure", 1);
}

#[test]
fn loops_in_a_stage_may_be_left() {
    world().run("for x in 1 2; echo $x; break; end | cat").prints("1\n");
    world().run("for x in 1 2; for y in 1 2; continue; end | cat; echo $x; end").prints("1\n2\n");
    world().run("while true; try; break; finally; echo f; end; end | cat").prints("f\n");
}

#[test]
fn pipelines_in_pipelines_are_no_trouble() {
    let mut script = "echo a".to_owned();
    for _ in 0..40 {
        script = format!("if true\n{script}\nend | cat");
    }
    world().run(&script).succeeds().prints("a\n");
    let script = "for x in 1 .to. 30; for y in 1 .to. 3; echo $x$y; end | cat | while .succeeds. (read l); v=$l; end; end; echo $v";
    world().run(script).succeeds().prints("303\n");
}
