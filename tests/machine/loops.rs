use ftsh_sim::Model;

use super::world;

#[test]
fn for_takes_words_in_order_and_stops_at_a_failure() {
    world()
        .run("a=\"2 3\"; for n in 1 $a \"4 5\"; echo $n; end")
        .succeeds()
        .prints("1\n2\n3\n4 5\n");
    world()
        .run("for n in 1 2 3; echo $n; if $n .eql. 2; fail 6; end; end")
        .fails("exit", 6)
        .prints("1\n2\n");
}

#[test]
fn ranges_ascend_whichever_end_is_larger() {
    world().run("for n in 1 .to. 3; echo $n; end").prints("1\n2\n3\n");
    world().run("for n in 3 .to. 1; echo $n; end").succeeds().prints("");
    world().run("for n in 3 .to. 1 .step. -1; echo $n; end").prints("3\n2\n1\n");
    world().run("for n in 1 .to. 3 .step. -1; echo $n; end").succeeds().prints("");
    world().run("for n in 1 .to. 10 .step. 4 x; echo $n; end").prints("1\n5\n9\nx\n");
    world().run("for n in 1 .to. 5 .step. 0; ok; end").fails("expression", 1);
}

#[test]
fn jumps_leave_a_try_without_trying_again() {
    world()
        .run("for n in 1 2 3; try 5 times; echo $n; daemon; if $n .eql. 2; break; end; continue; end; echo no; end")
        .succeeds()
        .prints("1\n2\n")
        .takes(0.0);
    // The limit of an abandoned `try` no longer applies.
    world()
        .run("while true; try for 1 second; break; end; end; work 5; echo $n")
        .fails("expression", 1)
        .takes(5.0);
    world()
        .run("for n in a b; forany m in 1 2 in order; break; end; echo $n$m; end")
        .prints("a1\nb1\n");
}

#[test]
fn a_huge_range_costs_nothing() {
    let script = "try for 5 seconds; for n in 1 .to. 9223372036854775807; sleep 1; end; end";
    world().run(script).fails("timeout", 124).takes(5.0);
    let script =
        "function to; return 1 .to. $1; end; for n in to(1000000000000); echo $n; exit; end";
    world().run(script).succeeds().prints("1\n");
}

#[test]
fn a_huge_range_is_no_value() {
    let expressions = [
        "if RANGE .eq. 5; end",
        "if 5 .ne. RANGE; end",
        "if RANGE .contains. 5; end",
        "if RANGE .matches. 5; end",
        "if RANGE; end",
        "if .exists. RANGE; end",
        "y=RANGE .add. 1",
        "try RANGE times; end",
        "try for RANGE seconds; end",
        "y=f(RANGE); function f; return 1; end",
    ];
    for script in expressions {
        let ran = world().run(&script.replace("RANGE", "(1 .to. 9000000000000)"));
        assert!(ran.message().contains("too long for one value"), "{script}: {}", ran.message());
    }
}

#[test]
fn a_range_is_one_value_that_a_list_takes_apart() {
    world().run("x=1 .to. 3; echo $x; echo \"$x\"").prints("1 2 3\n1 2 3\n");
    world().run("x=1 .to. 3; for n in $x; echo \"<$n>\"; end").prints("<1>\n<2>\n<3>\n");
    world().run("function f; return 3 .to. 1 .step. -1; end; x=f(); echo $x").prints("3 2 1\n");
    world().run("x=2 .to. 1; for n in $x; echo never; end; echo \"<$x>\"").prints("<>\n");
    world().run("x=1 .to. 9000000000000").fails("expression", 1);
    world().run("x=4 .to. 4; echo $x").prints("4\n");
}

#[test]
fn a_value_has_an_end_and_so_have_the_words_of_a_command() {
    let grow = "x=0123456789abcdef; while true; x=\"$x$x\"; end";
    let ran = world().run(grow).fails("expression", 1);
    assert!(ran.message().contains("a value can have at most 64 MiB"), "{}", ran.message());
    world().run(&format!("try; {grow}; catch; echo $error_kind; end")).prints("expression\n");
    let words = "x=\"a \"; for i in 1 .to. 20; x=\"$x$x\"; end";
    let ran = world().run(&format!("{words}; ok $x")).fails("expression", 1);
    assert!(ran.message().contains("at most 1000000 words"), "{}", ran.message());
    world().run(&format!("{words}; forany a in $x in order; echo $a; end")).prints("a\n");
}

#[test]
fn recursion_side_by_side_has_an_end() {
    let ran = world().run("function f; forall i in 1 2 3 4; f; end; end; f").fails("failure", 1);
    assert!(ran.message().contains("too many branches"), "{}", ran.message());
}

#[test]
fn a_loop_over_a_long_text_doesnt_hold_up_limits() {
    let ran = world()
        .model(|world| world.command("big", |_, _| Model::succeeds().prints("a ".repeat(30 << 20))))
        .run("big -> v; try for 1 minute or 1 time; for a in $v; work 20; end; end")
        .fails("timeout", 124);
    ran.takes(60.0);
}

#[test]
fn forany_tries_each_once_and_keeps_the_winner() {
    let script = "forany n in 1 2 3 4; if $n .ne. 3; fail; end; end; echo $n";
    world().run(script).succeeds().prints("3\n");
    let ran = world().run("forany n in 1 2 3; echo $n; fail $n; end");
    let mut seen: Vec<_> = ran.world.stdout().lines().map(str::to_owned).collect();
    seen.sort();
    assert_eq!(seen, ["1", "2", "3"]);
    world()
        .run("forany n in 1 2 3 in order; echo $n; fail 5; end")
        .fails("exit", 5)
        .prints("1\n2\n3\n");
}

#[test]
fn if_and_while_want_booleans() {
    world().run("n=0; while $n .lt. 3; n=$n .add. 1; echo $n; end").prints("1\n2\n3\n");
    world().run("if 1 .gt. 2; echo a; else if 2 .gt. 1; echo b; else; echo c; end").prints("b\n");
    world().run("if \"yes\"; ok; end").fails("expression", 1);
    world().run("while 1; ok; end").fails("expression", 1);
}

#[test]
fn the_right_side_is_not_evaluated_when_the_left_decides() {
    world().run("if false .and. $unset; ok; else; echo no; end").succeeds().prints("no\n");
    world().run("if true .or. (1 .div. 0); echo yes; end").succeeds().prints("yes\n");
    world().run("if true .and. \"maybe\"; ok; end").fails("expression", 1);
}

#[test]
fn shift_drops_arguments() {
    world().args(&["a", "b", "c"]).run("shift; echo $# $*; shift 2; echo $#").prints("2 b c\n0\n");
    world().args(&["a"]).run("shift 2").fails("expression", 1);
}
