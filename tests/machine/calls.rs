use ftsh_machine::Outcome;

use super::world;

#[test]
fn functions_are_commands_and_expressions() {
    let script = "f a b\nfunction f\n echo $0 $1 $2 $#\nend\n";
    world().run(script).succeeds().prints("f a b 2\n");
    let script = "function fib\nif $1 .le. 1\nreturn $1\nend\nreturn fib($1 .sub. 1) .add. fib($1 .sub. 2)\nend\nx=fib(15)\necho $x";
    world().run(script).succeeds().prints("610\n");
}

#[test]
fn a_function_in_an_expression_may_run_commands() {
    let script =
        "function slow\n work 2\n return $1 .mul. 2\nend\nx=slow(3) .add. slow(4)\necho $x";
    world().run(script).succeeds().prints("14\n").takes(4.0);
    world().run("function f; fail 3; return 1; end\nx=f()\n").fails("exit", 3);
    world().run("function f; ok; end; x=f()").fails("expression", 1);
}

#[test]
fn return_leaves_loops_and_tries() {
    let script = "function f\n for n in 1 2 3\n  try 5 times\n   if $n .eql. 2\n return $n\n end\n  end\n end\nend\necho before; x=f(); echo $x";
    world().run(script).succeeds().prints("before\n2\n");
    world().run("echo a; return; echo b").succeeds().prints("a\n");
}

#[test]
fn return_outside_a_function_ends_the_script_with_that_status() {
    let exits = |script: &str, code: u8| {
        let ran = world().run(script);
        assert_eq!(ran.outcome, Outcome::Exited(code), "{script}");
        ran
    };
    exits("echo a; return 2; echo b", 2).prints("a\n");
    exits("try 5 times; if 1 .eql. 1; return 300; end; catch; echo no; end", 255);
    exits("try; return 3; finally; echo $error_kind; end; echo no", 3).prints("\n");
    world().run("echo a; return 0; echo b").succeeds().prints("a\n");
    world().run("try; forall x in a; return 4; end; catch; echo $error_code; end").prints("4\n");
}

#[test]
fn return_in_a_sourced_file_is_the_status_of_source() {
    let sourcing = |text: &'static str| world().model(move |it| it.file("/lib.ftsh", text));
    let script =
        "echo a; try 1 time; source /lib.ftsh; echo went; catch; echo $error_code; end; echo b";
    sourcing("return 2; echo no").run(script).succeeds().prints("a\n2\nb\n");
    sourcing("return; echo no").run(script).succeeds().prints("a\nwent\nb\n");
    let used = "function check; if $# .eql. 0; return 2; end; end\ncheck";
    sourcing(used).run("source /lib.ftsh; echo no").fails("exit", 2).prints("");
}

#[test]
fn arguments_come_back_after_a_call() {
    let script = "function f; shift; echo $1; end; f x y; echo $1; try; g; catch; echo $1; end\nfunction g; fail; end";
    world().args(&["own"]).run(script).succeeds().prints("y\nown\nown\n");
}

#[test]
fn endless_recursion_fails() {
    let ran = world().run("function f; f; end; f").fails("expression", 1);
    assert!(ran.message().contains("1000 deep"), "{}", ran.message());
    world().run("function f; return f(); end; x=f()").fails("expression", 1);
}

#[test]
fn conditions_have_three_results() {
    let script =
        "if .succeeds. (fail 1); echo yes; else; echo no; end; if .succeeds. (ok); echo yes; end";
    world().run(script).succeeds().prints("no\nyes\n");
    world().run("if .succeeds. (nosuchthing); ok; end").fails("notfound", 127);
    world().run("try for 1 second; if .succeeds. (hang); ok; end; end").fails("timeout", 124);
}

#[test]
fn variables_before_a_command_are_its_own() {
    world().run("A=1 env A; try; env A; catch; echo none; end").succeeds().prints("A=1\nnone\n");
    world()
        .run("function f; env A; echo $A; end; A=2 f; echo ${A:-unset}")
        .prints("A=2\n2\nunset\n");
}

#[test]
fn a_sourced_file_shares_everything() {
    let ran =
        world().model(|simulated| simulated.file("/lib.ftsh", "v=5\nfunction g; echo g $1; end\n"));
    ran.run("source /lib.ftsh; echo $v; g x").succeeds().prints("5\ng x\n");
    world().run("source /nowhere").fails("io", 1);
}

#[test]
fn exit_codes_belong_to_the_script() {
    for (script, code) in
        [("exit", 0), ("exit 3", 3), ("fail 9", 9), ("failure", 1), ("nosuch", 127)]
    {
        assert_eq!(world().run(script).outcome.exit_code(), code, "{script}");
    }
    world().run("exit 256").fails("usage", 2);
    world().run("exec fail 4");
}
