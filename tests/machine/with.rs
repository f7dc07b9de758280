//! `with`: a command beside a group.

use insta::assert_snapshot;

use super::world;

#[test]
fn the_command_ends_with_the_group() {
    let script = "n=1; with hang; work 3; n=2; end; echo $n";
    let ran = world().run(script).succeeds().takes(3.0).prints("2\n");
    assert!(ran.world.running().is_empty());
    world().run("with hang; work 2; fail; end; echo never").fails("exit", 1).takes(2.0);
    let ran = world().run("with hang; exit 3; end; echo never");
    assert_eq!(ran.outcome, ftsh_machine::Outcome::Exited(3));
    world().run("limit 2 s; with hang; hang; end; end").fails("timeout", 124).takes(2.0);
    world()
        .run("try 2 times backoff none; with hang; with hang; fail; end; end; end")
        .fails("exit", 1);
}

#[test]
fn a_limit_names_the_command_of_the_group() {
    let ran = world().run("limit 2 s\nwith work 9\nok\nhang b\nend\nend").fails("timeout", 124);
    assert_snapshot!(ran.message(), @"script:4: `hang b` ran out of time after 2 s");
    let ran = world().run("limit 2 s\nwith work 9 | hang\nhang b\nend\nend").fails("timeout", 124);
    assert_snapshot!(ran.message(), @"script:3: `hang b` ran out of time after 1 s, at the end of 2 s");
}

#[test]
fn the_group_ends_with_the_command() {
    let ran = world().run("with work 2; hang; end").fails("companion", 1).takes(2.0);
    assert!(ran.world.running().is_empty());
    world().run("with slowfail 2; hang; end").fails("exit", 1).takes(2.0);
    world().run("with slowfail 1; try; hang; catch; echo never; end; end").fails("exit", 1);
    world()
        .run("with slowfail 1; try; hang; finally; echo last; end; end")
        .fails("exit", 1)
        .prints("last\n");
    // The first failure counts.
    world().run("with slowfail 5; fail 7; end").fails("exit", 7);
}

#[test]
fn a_command_that_cannot_start_fails_before_the_group() {
    for (command, kind, code) in [
        ("nosuchprogram", "notfound", 127),
        ("hang < /nothing", "redirect", 1),
        ("f < /nothing", "redirect", 1),
        ("f 2>&7", "redirect", 1),
        ("$nosuchvariable", "expression", 1),
        ("ok | cat < /nothing", "redirect", 1),
        ("cat < /nothing | ok", "redirect", 1),
        ("echo a | nosuchprogram", "notfound", 127),
        ("success", "companion", 1),
        ("g", "exit", 4),
    ] {
        let script = format!(
            "function f; hang; end; function g; return 4; end\nwith {command}\necho never\nend"
        );
        let ran = world().run(&script).fails(kind, code).prints("");
        assert!(ran.world.running().is_empty(), "{command}");
    }
    for command in ["echo a | hang", "beat"] {
        let script =
            format!("function beat; while true; sleep 9; end; end; with {command}; ok; end");
        world().run(&script).succeeds().takes(0.0);
    }
    // The other stages of a command that fails might run for ever.
    for (command, kind, code) in [
        ("nosuchprogram | hang", "notfound", 127),
        ("fail 2 | hang", "exit", 2),
        ("hang | e", "exit", 3),
        ("hang | cat < /nothing", "redirect", 1),
        ("nosuchprogram | f", "notfound", 127),
        ("f | cat < /nothing", "redirect", 1),
    ] {
        let script = format!(
            "function e; exit 3; end; function f; try; hang; finally; echo f; end; end\n\
             with {command}; echo never; end"
        );
        let ran = world().run(&script).fails(kind, code).takes(0.0);
        let ran = ran.prints(if command.ends_with(" f") { "f\n" } else { "" });
        assert!(ran.world.running().is_empty(), "{command}");
    }
    world().run("with hang; ok; end < /nothing; echo never").fails("redirect", 1).prints("");
}

#[test]
fn a_program_in_the_words_is_not_the_command() {
    for (command, kind, code) in [
        ("hang $(work 0.1; fail 3)", "exit", 3),
        ("hang $(slowfail 0.1)", "exit", 1),
        ("nosuchprogram $(ok)", "notfound", 127),
        ("nosuchprogram $(work 0.1)", "notfound", 127),
        ("hang > $(work 0.1; fail 3)", "exit", 3),
        ("ok $(work 0.1; fail 3) | hang", "exit", 3),
        ("hang ${f()}", "exit", 1),
    ] {
        let script = format!(
            "function f; slowfail 0.1; end\n\
             with {command}; echo never; end"
        );
        let ran = world().run(&script).fails(kind, code).prints("");
        assert!(ran.world.running().is_empty(), "{command}");
    }
    // The words of a function's own commands come after its beginning.
    let script = "function f; x=$(work 0.5); hang; end; with f; ok; end";
    world().run(script).succeeds().takes(0.0);
}

#[test]
fn a_command_that_exits_ends_the_group() {
    let run = |function: &str| {
        let script = format!("function f; daemon; work 1; {function}; end\nwith f; hang; end");
        let ran = world().run(&script).takes(1.0);
        assert!(ran.world.running().is_empty(), "{function}");
        ran
    };
    run("exit").fails("companion", 1);
    run("exit 3").fails("exit", 3);
    run("return").fails("companion", 1);
    run("try 3 times; exit; finally; echo f; end").fails("companion", 1).prints("f\n");
    run("ok").fails("companion", 1);
    run("exec fail 3").fails("exit", 3);
}

#[test]
fn exit_in_the_group_ends_the_run() {
    for body in ["exit", "try; exit 0; end", "f", "with hang; exit; end; echo never"] {
        let ran =
            world().run(&format!("function f; exit; end\nwith hang; {body}; end; echo never"));
        let ran = ran.succeeds().prints("");
        assert!(ran.world.running().is_empty(), "{body}");
    }
    let script = "with hang; try; exit; finally; echo f; end; echo never; end; echo never";
    world().run(script).succeeds().prints("f\n");
    let script = "try 2 times; with hang; exit; finally; fail; end; catch; echo caught; end";
    world().run(script).succeeds().prints("caught\n");
    let script = "forall i in 1; with hang; exit; end; echo never; end; echo next";
    world().run(script).succeeds().prints("next\n");
}

#[test]
fn exec_is_refused_in_the_group() {
    for body in ["f", "forall i in 1; f; end", "f | cat", "with f; hang; end"] {
        let script = format!("function f; exec ok; end\nwith hang; {body}; end");
        let ran = world().run(&script);
        assert!(ran.message().contains("exec is not possible in a `with`"), "{}", ran.message());
    }
    let script = "function f; exec work 2; end\nwith f; hang; end";
    world().run(script).fails("companion", 1).takes(2.0);
}

#[test]
fn answers_and_retries_pass_the_group() {
    let script = "function f; with hang; fail; end; end; if f; echo yes; else; echo no; end";
    world().run(script).succeeds().prints("no\n");
    let script = "function f; with hang; return true; end; end; if f; echo yes; end";
    world().run(script).succeeds().prints("yes\n");
    let script = "try 3 times; with hang; giveup no; end; catch; echo $attempt; end";
    world().run(script).succeeds().prints("1\n");
    let script = "try 2 times; with hang; if $attempt == 1 && $elapsed < 5; sleep 5; defer 7; end; echo $attempt; end; end";
    world().run(script).succeeds().prints("1\n");
    let script = "try for 3 seconds; with hang; work 1; echo $remaining; hang; end; end";
    world().run(script).fails("timeout", 124).prints("2\n").takes(3.0);
    let script =
        "try 2 times atomic; with hang; echo $attempt; if $attempt == 1; failure; end; end; end";
    world().run(script).succeeds().prints("2\n");
}

#[test]
fn jumps_end_the_command_first() {
    let script = "for i in 1 2 3; with hang; with hang; work 1; if $i == 2; break; end; end; end; end; echo $i";
    let ran = world().run(script).succeeds().takes(2.0).prints("2\n");
    assert!(ran.world.running().is_empty());
    let script = "for i in 1 2; with hang; for j in 1 2; continue; end; continue; end; echo never; end; echo $i";
    world().run(script).succeeds().prints("2\n");
    let script = "function f; with hang; try; for x in a b; return $x; end; finally; echo f; end; end; end; y=f(); echo $y";
    world().run(script).succeeds().prints("f\na\n");
    world().run("with hang; return; end; echo never").succeeds().prints("");
}

#[test]
fn the_command_has_a_copy_of_the_variables() {
    let script = "function beat; n=2; while true; echo $n; sleep 1; end; end; n=1; with beat; sleep 2.5; echo $n; end";
    world().run(script).succeeds().prints("2\n2\n2\n1\n");
    let script = "function f; local l=1; with hang; l=2; shift; cd /tmp; echo $1; end; echo $l; end; l=0; f a b; echo $l";
    world().run(script).succeeds().prints("b\n2\n0\n");
}

#[test]
fn a_group_that_fails_keeps_its_variables() {
    for (script, printed) in [
        (
            "try 3 times backoff none; with hang; n=$n + 1; if $n < 3; fail; end; end; end; echo $n",
            "3\n",
        ),
        ("with hang; n=1; fail; catch; echo $n; end", "1\n"),
        ("try; with hang; n=1; cd /tmp; fail; end; catch; echo $n ${PWD:-none}; end", "1 none\n"),
        ("forany i in 1 2; with hang; n=$n + 1; if $n < 2; fail; end; end; end; echo $n", "2\n"),
        ("try; with hang; n=1; exit 0; end; finally; echo $n; end", "1\n"),
        (
            "try 2 times; with work 2; n=$n + 1; with hang; m=$n; hang; end; end; catch; echo $n $m; end",
            "2 2\n",
        ),
        (
            "try 2 times each 1 s; with hang; n=$n + 1; try; hang; finally; m=$n; end; end; catch; echo $n $m; end",
            "2 2\n",
        ),
        (
            "limit 1 s; with hang; n=$n + 1; with hang; m=$n; hang; end; end; catch; echo $n $m; end",
            "1 1\n",
        ),
        (
            "try 2 times; with work 1; n=$n + 1; try; hang; finally; m=$n; end; end; catch; echo $n $m; end",
            "2 2\n",
        ),
        (
            "function f; local l=1; try; with hang; l=2; local n=4; fail; end; catch; echo $l $n; end; end; f; echo $n",
            "2 4\n0\n",
        ),
        ("function f; n=7; hang; end; with f; work 1; m=1; fail; catch; echo $n $m; end", "0 1\n"),
    ] {
        let ran = world().run(&format!("n=0; m=0\n{script}")).succeeds().prints(printed);
        assert!(ran.world.running().is_empty(), "{script}");
    }
    // The group has ended when the limit passes, and its command has not.
    let script = "try 2 times each 1 s; with stubborn; n=$n + 1; end; catch; echo $n; end";
    world().run(&format!("n=0; {script}")).succeeds().prints("2\n");
}

#[test]
fn exit_in_the_group_cannot_leave_a_finally() {
    for exit in ["exit", "exit 3"] {
        let script = format!(
            "function g; {exit}; end\n\
             try; success; finally; with hang; with hang; g; end; end; echo never; end"
        );
        let ran = world().run(&script).fails("failure", 1).prints("");
        assert!(ran.world.running().is_empty());
    }
}

#[test]
fn a_function_cannot_keep_processes_of_the_command() {
    let script = "function f; keep daemon; hang; end; with f; work 2; end";
    let ran = world().run(script).fails("failure", 1).takes(0.0);
    assert!(ran.world.running().is_empty());
    world().run("with hang; keep daemon; end").succeeds();
}
