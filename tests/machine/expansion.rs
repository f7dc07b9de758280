use super::world;

#[test]
fn values_split_outside_quotes_only() {
    world().run("a=\"x  y; *\"; echo $a \"$a\"").succeeds().prints("x y; * x  y; *\n");
    world().run("a=\" 1  2\"; b=$a; c=x$a; echo \"$b\" \"$c\"").prints(" 1  2 x 1  2\n");
    world().run("a=\"\"; echo [$a] [\"$a\"] x$a$a").prints("[] [] x\n");
}

#[test]
fn an_operand_is_never_split() {
    world().run("x=\"a b\"; if $x .eq. \"a b\"; echo same; end").prints("same\n");
    world().run("function f; return $#; end; x=\"a b\"; n=f($x); echo $n").prints("1\n");
}

#[test]
fn arguments_keep_their_borders() {
    let script =
        "function f; for x in \"$@\"; echo $x; end; echo $#; end; f \"$@\"; f $@; f \"a$*b\"";
    world().args(&["1 2", "3"]).run(script).prints("1 2\n3\n2\n1\n2\n3\n3\na1 2 3b\n1\n");
}

#[test]
fn unset_variables_fail_by_name() {
    let ran = world().run("rm -rf ${dir}/").fails("expression", 1);
    assert!(ran.message().contains("`dir` is not set"), "{}", ran.message());
    world().config(|config| config.unset_is_empty = true).run("echo [$dir]").prints("[]\n");
    world()
        .run("echo ${dir:-/tmp}${dir:+x} \"${dir:-a b}\"; a=; echo ${a:-gone}")
        .prints("/tmp a b\ngone\n");
    world().run("echo [$3] $#").prints("[] 0\n");
}

#[test]
fn patterns_match_files_or_fail() {
    let files = |simulated: ftsh_sim::Simulated| simulated.file("b.c", "").file("a.c", "");
    world()
        .model(files)
        .run("echo *.c '*.c' \"*.c\"; for f in *.c; echo $f; end")
        .prints("a.c b.c *.c *.c\na.c\nb.c\n");
    let ran = world().run("echo *.h").fails("expression", 1);
    assert!(ran.message().contains("no file matches `*.h`"));
    world().model(files).run("p=*.c; echo $p").prints("*.c\n");
    world()
        .model(files)
        .run("u=x://a; echo x://*.c \"x://\"*.c $u/*.c")
        .prints("x://*.c x://*.c x://a/*.c\n");
    let option = |simulated: ftsh_sim::Simulated| simulated.file("-n.c", "");
    world().model(option).run("ok; echo *.c -*.c").prints("./-n.c -n.c\n");
}

#[test]
fn a_required_value_is_there_or_fails() {
    world().args(&["a b"]).run("echo \"${1:?none}\"; x=${1:?}; echo $x").prints("a b\na b\n");
    let ran = world().run("echo ${1:?usage: f NAME}").fails("usage", 2);
    assert!(ran.message().ends_with(": usage: f NAME"), "{}", ran.message());
    let ran = world().run("x=\"\"; echo \"${x:?}\"").fails("usage", 2);
    assert!(ran.message().contains("the variable `x`"), "{}", ran.message());
    world().run("try 2 times; echo ${x:?no}; catch; echo $error_kind; end").prints("usage\n");
}

#[test]
fn a_tilde_is_a_home() {
    world().run("echo ~ ~/x \"~\" a~ ~bob/y").prints("/home/me /home/me/x ~ a~ /home/bob/y\n");
}

#[test]
fn exported_variables_reach_commands() {
    world().run("A=1; try; env A; catch; echo hidden; end; export A; env A; A=2; env A; export B=3; env B").prints("hidden\nA=1\nA=2\nB=3\n");
    world()
        .env("CAME", "1")
        .run("CAME=2; env CAME; CAME=; try; env CAME; catch; echo gone; end")
        .prints("CAME=2\ngone\n");
    world().run("echo five -> V; export V; env V").prints("V=five\n");
}

#[test]
fn an_exported_value_is_one_word() {
    let is_whole = |script: &str| {
        let script = format!("{script}; env A; try; env L; catch; echo none; end");
        world().run(&format!("v=\"x L=y\"; n=A; {script}")).prints("A=x L=y\nnone\n");
    };
    is_whole("export A=$v");
    is_whole("export B=1 $n=$v");
    is_whole("x=export; $x A=$v");
    world().run("v=x; export A=$v B=\"1 2\" C=*; env A; env B; env C").prints("A=x\nB=1 2\nC=*\n");
    world().run("n=\"A B\"; A=1; B=2; export $n; env A; env B").prints("A=1\nB=2\n");
}

#[test]
fn a_command_must_not_vanish() {
    world().run("c=; ${c:-}").fails("expression", 1);
}

#[test]
fn calls_are_words() {
    let script = "function f\n n=$n .add. 1\n work 1\n return \"$1 $n\"\nend\n\
                  n=0\necho ${f(a)} \"<${f(b)}>\" $n x${length(\"a b\")}y\necho $n";
    world().run(script).succeeds().prints("a 1 <b 2> 2 x3y\n2\n").takes(2.0);
    let script = "function f\n fail 3\n return 1\nend\n";
    world().run(&format!("{script}echo ${{f()}}")).fails("exit", 3).prints("");
    world().run(&format!("{script}x=.succeeds. (ok ${{f()}})\necho $x")).fails("exit", 3);
    world().run(&format!("{script}for x in a ${{f()}} b; echo $x; end")).fails("exit", 3);
    let caught =
        "try 2 times\n echo ${f()}\ncatch\n echo \"$error_code ${upper($error_kind)}\"\nend";
    world().run(&format!("{script}{caught}")).succeeds().prints("3 EXIT\n");
    world()
        .run("function f; work 9; return 1; end; try for 2 seconds; echo ${f()}; end")
        .fails("timeout", 124);
}

#[test]
fn commands_are_asked() {
    world().run("x=.output. (echo a  b)\necho \"$x\"").succeeds().prints("a b\n");
    world().run("x=.output. (fail 3)").fails("exit", 3);
    world().run("x=.yes. (fail 1)\ny=.yes. (ok)\necho $x $y").succeeds().prints("false true\n");
    world().run("x=.yes. (fail 2)").fails("exit", 2);
    world().run("x=.yes. (ok | fail 1)\necho $x").succeeds().prints("false\n");
    world().run("x=.yes. (fail 1 | ok)").fails("exit", 1);
    let nested =
        "function f\n return .output. (echo ${length(.output. (echo $1))})\nend\necho ${f(abc)}";
    world().run(nested).succeeds().prints("3\n");
}
