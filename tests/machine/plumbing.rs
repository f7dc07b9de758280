use ftsh_machine::record::Level;

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
fn writers_to_a_successful_stage_do_not_fail() {
    use ftsh_machine::event::CommandStatus;
    use ftsh_sim::Model;
    let yes = |simulated: ftsh_sim::Simulated| {
        simulated.command("yes", |_, _| Model::ends(CommandStatus::Signaled(13)))
    };
    world().model(yes).run("yes | ok").succeeds();
    world().model(yes).run("yes | fail 2").fails("exit", 2);
    world().model(yes).run("ok | yes").fails("signal", 141);
    let failures = |script: &str| {
        let ran = world().model(yes).logging(Level::FAILURES).run(script);
        ran.world.trace().matches("CommandFailed").count()
    };
    assert_eq!(failures("yes | ok"), 0);
    assert_eq!(failures("yes | fail 2"), 1);
    assert_eq!(failures("ok | yes"), 1);
}

#[test]
fn unknown_exit_statuses_are_reported_as_lost() {
    use ftsh_machine::event::CommandStatus;
    use ftsh_sim::Model;
    let lost = |simulated: ftsh_sim::Simulated| {
        simulated.command("lose", |_, _| Model::ends(CommandStatus::Lost))
    };
    world().model(lost).run("lose 1").fails("internal", 1);
    let caught = "try 1 time; lose 1; catch; echo $error_kind $error; end";
    let message = "internal the exit status of `lose 1` was lost: an internal error of ftsh\n";
    world().model(lost).run(caught).prints(message);
}

#[test]
fn a_pipeline_that_is_a_question_may_say_no() {
    let failures = |script: &str| {
        let ran = world().logging(Level::FAILURES).run(script);
        ran.world.trace().matches("CommandFailed").count()
    };
    assert_eq!(failures("if .succeeds. ( ok | fail 2 ); end"), 0);
    assert_eq!(failures("if .succeeds. ( ok | nothing_such ); end"), 1);
    assert_eq!(failures("try; fail 2 | ok; catch; end"), 1);
}

#[test]
fn a_pipeline_that_cannot_be_asked_says_nothing() {
    for asked in ["fail 2 | nothing_such", "nothing_such | fail 2", "fail 2 | nothing_such | ok"] {
        let ran = world().run(&format!("if .succeeds. ( {asked} ); end"));
        ran.fails("notfound", 127);
    }
    world().run("x=.succeeds. ( fail 2 | ok | fail 3 ); echo $x").prints("false\n");
    world().run("fail 2 | nothing_such").fails("exit", 2);
}

#[test]
fn here_documents_and_strings_feed_commands() {
    world()
        .run("a=5\ncat <<END\nval $a\nEND\ncat <<'E'\n$a\nE\ncat <<< \"x $a\"")
        .prints("val 5\n$a\nx 5\n");
}

#[test]
fn words_are_expanded_before_a_variable_is_emptied() {
    let functions = "function plus; x=$1 .add. $2; echo $x; end";
    let prints = |script: &str, expected: &str| {
        let file = |simulated: ftsh_sim::Simulated| {
            simulated.file("/one", "echo 1").file("/two", "echo 2")
        };
        world().model(file).run(&format!("{script}\n{functions}")).succeeds().prints(expected);
    };
    prints("t=1; plus $t 5 -> t; plus $t 5 -> t; echo $t", "11\n");
    prints("t=1; plus $t 5 2-> e -> t 2->> e; echo $t", "6\n");
    prints("t=1; plus $t 5 | cat -> t; echo $t", "6\n");
    prints("t=/one; source $t -> t; echo $t", "1\n");
    prints("t=a; echo $t$t -> t; echo $t", "aa\n");
    prints("t=a; T=$t cat <<< $t -> t; echo $t", "a\n");
    prints("t=a; export t; env t -> t; echo $t", "t=a\n");
    prints("t=a; export t; env t 2-> e -> t; echo $t", "t=a\n");
    prints("f=/f; try; echo in; end -> f > $f; cat < /f; echo [$f]", "in\n[]\n");
    prints("t=in; cat <<< $t -> t 2-> t; echo [$t]", "[]\n");
    prints("t=in; cat -< t -> t; echo [$t]", "[in]\n");
    prints("echo in -> t; cat -< t ->> t; echo [$t]", "[in in]\n");
}

#[test]
fn failed_commands_keep_later_targets() {
    let commands = ["cat", "echo new", "f", "source /s", "read x", "cd /", "success"];
    let blocks = ["for i in 1; echo new; end", "if true; cat; end", "forall i in 1 2; ok; end"];
    for command in commands.into_iter().chain(blocks) {
        for set in ["p=old", "echo old -> p", "echo old -> p; forall i in 1; ok; end"] {
            for (redirects, left) in [
                ("< /nothing -> p", "old"),
                ("< /nothing ->> p", "old"),
                ("2> /log < /nothing ->& p", "old"),
                ("2>&7 -> p", "old"),
                ("2-> q < /nothing ->> p", "old"),
                ("-> p < /nothing", ""),
                ("->> p < /nothing", "old"),
                ("-> p 2>&7", ""),
                ("-> p 2-> q < /nothing", ""),
            ] {
                let script = format!(
                    "{set}\ntry\n{command} {redirects}\ncatch\necho $error_kind [$p]\nend\n\
                     function f; echo new; end"
                );
                let file = |simulated: ftsh_sim::Simulated| simulated.file("/s", "echo new");
                let ran = world().model(file).run(&script).succeeds();
                assert_eq!(ran.world.stdout(), format!("redirect [{left}]\n"), "{script}");
            }
        }
    }
}

#[test]
fn a_command_that_never_started_has_emptied_its_variable() {
    world().run("p=old; try; nosuch -> p; catch; echo [$p]; end").prints("[]\n");
    let script = "p=old; try for 2 s; hang -> p; catch; echo [$p]; end";
    world().run(script).succeeds().prints("[]\n");
    let script = "p=old; try for 2 s; hang -> p 2-> q < /f; catch; echo [$p] [$q]; end";
    world().model(|simulated| simulated.file("/f", "")).run(script).succeeds().prints("[] []\n");
}

#[test]
fn reasons_of_the_system_are_named() {
    let file = |simulated: ftsh_sim::Simulated| simulated.file("/f", "text");
    let told = |command: &str| {
        let script = format!(
            "try 1 time\n{command}\ncatch\necho $error_kind $error_code \"<$error_errno>\"\nend"
        );
        let ran = world().model(file).run(&script).succeeds();
        let printed = ran.world.stdout();
        printed.trim_end().to_owned()
    };
    assert_eq!(told("cat < /none"), "redirect 1 <ENOENT>");
    assert_eq!(told("for x in 1; ok; end < /none"), "redirect 1 <ENOENT>");
    assert_eq!(told("cd /f"), "io 1 <ENOTDIR>");
    assert_eq!(told("source /none"), "io 1 <ENOENT>");
    assert_eq!(told("nothing_such"), "notfound 127 <ENOENT>");
    // The first branch that failed gives the reason, also from inside calls and other tries.
    let branches = "forall d in /f keep going; try 2 times; cd $d; catch; failure; end; end";
    assert_eq!(told(branches), "io 1 <ENOTDIR>");
    assert_eq!(told("ok | cd /f"), "io 1 <ENOTDIR>");
    for command in ["fail 3", "failure", "giveup", "echo $none", "defer many"] {
        assert!(told(command).ends_with(" <>"), "{command}");
    }
    let script = "try 9 times while $error_errno .ne. ENOTDIR\necho $attempt\ncd /f\nend";
    world().model(file).run(script).fails("io", 1).prints("1\n");
    world().model(file).run("if .succeeds. (cd /f); else; echo no; end").prints("no\n");
    world().run("try; ok; finally; echo \"<$error_errno>\"; end").prints("<>\n");
}
