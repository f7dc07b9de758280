use ftsh::machine::record::Level;

use super::world;

#[test]
fn variables_are_files() {
    world()
        .run("echo one two -> v; echo $v; echo \"$v\"; cat -< v -> w; echo $w")
        .prints("one two\none two\none two\n");
    world().run("echo a -> v; echo b ->> v; cat -< v").prints("a\nb\n");
    world().run("v=x; echo y ->> v; echo $v").prints("xy\n");
    world().run("echo hi > /f; cat < /f; echo ho >> /f; cat < /f").prints("hi\nhi\nho\n");
    world().run("cat -< nothing").fails("redirect", 1);
    world().run("cat < /nothing").fails("redirect", 1);
}

#[test]
fn a_branch_appends_to_a_copy() {
    world().run("echo a -> v; forall n in 1 2; echo $n ->> v; echo \"$v\" > /$n; end; cat -< v; cat < /1").prints("a\na\n1\n");
}

#[test]
fn a_variable_can_feed_its_own_next_value() {
    world().run("echo a -> v; cat -< v -> v; echo $v").succeeds().prints("a\n");
}

#[test]
fn only_one_newline_is_dropped_from_a_value() {
    world().run("cat <<< 'a\n' -> v; echo \"[$v]\"").prints("[a\n]\n");
    world().run("cat <<< \"a\r\" -> v; echo \"[$v]\"").prints("[a]\n");
}

#[test]
fn blocks_are_redirected_as_a_whole() {
    world().run("try; echo a; echo b; end -> v; echo \"<$v>\"").prints("<a\nb>\n");
    world().run("function f; echo out; end; f > /o; echo x; cat < /o").prints("x\nout\n");
    world()
        .run("while true; read x; echo got $x; end <<< \"l\"")
        .fails("failure", 1)
        .prints("got l\n");
}

#[test]
fn stages_feed_each_other() {
    world().run("echo a b | cat | cat").succeeds().prints("a b\n");
    world().run("echo a | fail 3 | cat").fails("exit", 3);
    world().run("fail 4 | cat").fails("exit", 4);
    world().run("echo a | cat -> v; echo $v").prints("a\n");
    world().run("echo a b | read x; echo $x").prints("a b\n");
}

#[test]
fn what_dies_writing_to_a_stage_that_ended_well_did_not_fail() {
    use ftsh::driver::simulated::Model;
    use ftsh::machine::event::Status;
    let yes = |simulated: ftsh::driver::simulated::Simulated| {
        simulated.command("yes", |_, _| Model::ends(Status::Signaled(13)))
    };
    world().model(yes).run("yes | ok").succeeds();
    world().model(yes).run("yes | fail 2").fails("exit", 2);
    world().model(yes).run("ok | yes").fails("signal", 141);
    let told = |script: &str| {
        let ran = world().model(yes).logging(Level::FAILURES).run(script);
        ran.world.trace().matches("CommandFailed").count()
    };
    assert_eq!(told("yes | ok"), 0);
    assert_eq!(told("yes | fail 2"), 1);
    assert_eq!(told("ok | yes"), 1);
}

#[test]
fn how_a_command_ended_may_be_lost_but_is_never_made_up() {
    use ftsh::driver::simulated::Model;
    use ftsh::machine::event::Status;
    let lost = |simulated: ftsh::driver::simulated::Simulated| {
        simulated.command("lose", |_, _| Model::ends(Status::Lost))
    };
    world().model(lost).run("lose 1").fails("internal", 1);
    let caught = "try 1 time; lose 1; catch; echo $error_kind $error; end";
    let message = "internal how `lose 1` ended is lost: an internal error of ftsh\n";
    world().model(lost).run(caught).prints(message);
}

#[test]
fn a_pipeline_that_is_a_question_may_say_no() {
    let told = |script: &str| {
        let ran = world().logging(Level::FAILURES).run(script);
        ran.world.trace().matches("CommandFailed").count()
    };
    assert_eq!(told("if .succeeds. ( ok | fail 2 ); end"), 0);
    assert_eq!(told("if .succeeds. ( ok | nothing_such ); end"), 1);
    assert_eq!(told("try; fail 2 | ok; catch; end"), 1);
}

#[test]
fn here_documents_and_strings_feed_commands() {
    world()
        .run("a=5\ncat <<END\nval $a\nEND\ncat <<'E'\n$a\nE\ncat <<< \"x $a\"")
        .prints("val 5\n$a\nx 5\n");
}
