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
fn a_question_has_three_answers() {
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
    world().run("source /nowhere").fails("failure", 1);
}

#[test]
fn exit_codes_are_the_scripts() {
    for (script, code) in
        [("exit", 0), ("exit 3", 3), ("fail 9", 9), ("failure", 1), ("nosuch", 127)]
    {
        assert_eq!(world().run(script).outcome.exit_code(), code, "{script}");
    }
    world().run("exit 256").fails("failure", 1);
    world().run("exec fail 4");
}
