//! `forany … hedge after`.

use ftsh_sim::Model;

use super::{seconds, world};

#[test]
fn the_first_to_succeed_wins_in_whatever_order_they_are() {
    let after = 1.3;
    for number in 0..64 {
        let takes = [number % 4 + 1, number / 4 % 4 + 1, number / 16 + 1];
        let [a, b, c] = takes;
        let script = format!(
            "n=none; forany n in {a} {b} {c} in order hedge after {after} seconds; echo $n begins; work $n; echo $n ends; end; echo $n won"
        );
        let ends = |index: usize| after * index as f64 + f64::from(takes[index]);
        let first = (0..3).min_by(|a, b| ends(*a).total_cmp(&ends(*b))).expect("one of three");
        let winner = takes[first];
        let prints = format!("{winner} begins\n{winner} ends\n{winner} won\n");
        let ran = world().run(&script).succeeds().takes(ends(first)).prints(&prints);
        assert!(ran.world.running().is_empty(), "{script}");
    }
}

#[test]
fn a_failure_leaves_the_variable_of_the_failed_word() {
    for (body, printed) in [
        ("work $n; fail $n", "5 5\n5\n"),
        ("if $n == 1; giveup no; end; hang", "1 1\n1\n"),
        ("if $n == 3; exit 4; end; work $n; fail $n", "5 5\n5\n"),
    ] {
        let script = format!(
            "forany n in 5 3 1 in order hedge after 1s; {body}; catch; echo $n $error_code; finally; echo $n; end"
        );
        world().run(&script).succeeds().prints(printed);
    }
}

#[test]
fn one_that_is_fast_enough_runs_alone() {
    let ran = world().run("forany n in 1 2 3 hedge after 9s; work 5; end").succeeds().takes(5.0);
    assert_eq!(ran.world.starts().len(), 1);
}

#[test]
fn a_failure_begins_the_next_at_once() {
    let script = "forany n in 1 2 3 in order hedge after 1 hour; if $n .lt. 3; slowfail $n; end; work 1; echo $n; end";
    world().run(script).succeeds().takes(4.0).prints("3\n");
    // The next hedge follows the last word begun, not the failed word.
    let script = "forany n in 1 2 3 in order hedge after 5s; if $n .eql. 1; slowfail 4; end; if $n .eql. 2; hang; end; work 1; echo $n; end";
    world().run(script).succeeds().takes(10.0).prints("3\n");
}

#[test]
fn processes_of_failed_words_delay_only_without_room() {
    let body = "if $n .eql. 1; daemon_that_stays; fail; end; work 2; echo $n; end; echo on";
    let run = |clause: &str| {
        let leaves = |simulated: ftsh_sim::Simulated| {
            simulated
                .command("daemon_that_stays", |_, _| Model::succeeds().leaves_a_daemon().stubborn())
        };
        let world = world().model(leaves).config(|config| config.kill_timeout = seconds(9.0));
        let ran =
            world.run(&format!("forany n in 1 2 in order hedge after 1 hour{clause}; {body}"));
        let ran = ran.succeeds().prints("2\non\n");
        assert!(ran.world.running().is_empty());
        ran
    };
    run("").takes(9.0);
    run(" at most 1").takes(11.0);
}

#[test]
fn no_more_than_allowed_run_at_once() {
    let script = "forany n in 10 8 1 in order hedge after 1s at most 2; work $n; echo $n; end";
    world().run(script).succeeds().takes(9.0).prints("8\n");
    let script = "forany n in 5 9 1 in order hedge after 1s at most 2; if $n .eql. 5; slowfail 5; end; work $n; echo $n; end";
    world().run(script).succeeds().takes(6.0).prints("1\n");
    let script = "forany n in 3 2 1 in order hedge after 1s at most 1; work $n; test $n -eq 1; end";
    world()
        .model(|it| {
            it.command("test", |call, _| match call.words[1].as_slice() {
                b"1" => Model::succeeds(),
                _ => Model::fails(1),
            })
        })
        .run(script)
        .succeeds()
        .takes(6.0);
    world().run("z=0; forany n in 1 hedge after 1s at most $z; ok; end").fails("expression", 1);
    let script = "try for 1 hour; forany n in 1 .to. 100000 hedge after 1 ms; hang; end; end";
    let ran = world().run(script).fails("timeout", 124).takes(3600.0);
    assert_eq!(ran.world.starts().len(), 256, "as many as may hold what they print");
    assert!(ran.world.running().is_empty());
}

#[test]
fn all_failed_is_the_failure_of_the_last() {
    let body = "in order hedge after 2s; work $n; fail $n; end";
    world().run(&format!("forany n in 5 1 4 {body}")).fails("exit", 4).takes(7.0);
    world().run(&format!("forany n in 9 1 {body}")).fails("exit", 9).takes(9.0);
    let script = "try 2 times every 10 seconds; forany n in 5 1 4 in order hedge after 2s; m=$n; work $n; fail $n; end; catch; echo $error_code $n $m; end";
    // Losers leave no variables but the one of the loop.
    world().run(&format!("m=0; {script}")).succeeds().prints("4 4 0\n").takes(17.0);
    world().run("a=; forany n in ${a:-} hedge after 1s; ok; end").fails("expression", 1);
    world().run("d=0s; forany n in 1 hedge after $d; ok; end").fails("expression", 1);
}

#[test]
fn giveup_ends_all() {
    let script = "try 5 times every 10 seconds; forany n in 1 2 3 in order hedge after 1s; echo $n; if $n .eql. 2; work 1; giveup enough; end; hang; end; end";
    let ran = world().run(script).fails("giveup", 1).takes(2.0).prints("");
    assert!(ran.world.running().is_empty());
    let script = "forany n in 1 2 in order hedge after 1s; giveup; end";
    assert_eq!(world().run(script).fails("giveup", 1).takes(0.0).world.starts().len(), 0);
}

#[test]
fn a_deadline_cuts_all() {
    let script =
        "try for 5 seconds; forany n in 1 2 3 4 5 6 7 8 hedge after 1s; echo $n; hang; end; end";
    let ran = world().run(script).fails("timeout", 124).takes(5.0).prints("");
    assert!(ran.world.running().is_empty());
    assert_eq!(ran.world.starts().len(), 5);
    let script = "forany n in 1 2 in order hedge after 1s; try for 3 seconds; hang; end; end";
    world().run(script).fails("timeout", 124).takes(4.0);
}

#[test]
fn the_winner_leaves_variables_and_a_directory() {
    let script = "v=0; forany n in 9 1 in order hedge after 1s; v=$n$n; if $n .eql. 9; w=x; end; cd /d$n; work $n; end; echo $v ${w:-y}; pwd";
    world().run(script).succeeds().prints("11 y\n/d1\n").takes(2.0);
    let script = "function f; forany n in 9 1 in order hedge after 1s; work $n; shift; end; echo $1; end; f a b; echo $n";
    world().run(script).succeeds().prints("b\n1\n");
    let script = "l=outer; function f; forany n in 9 1 in order hedge after 1s; local l=inner; work $n; end; echo $l; end; f; echo $l";
    world().run(script).succeeds().prints("inner\nouter\n");
}

#[test]
fn words_have_no_input_and_only_the_winner_prints() {
    let script = "function f; forany n in 9 1 in order hedge after 1s; cat; echo $n; echo e$n >&2; work $n; end; end; echo text | f -> v; echo \"<$v>\"";
    let ran = world().run(script).succeeds().prints("<1>\n");
    assert_eq!(ran.world.stderr(), "e1\n");
}

#[test]
fn exit_ends_only_its_word() {
    let script = "forany n in 1 2 in order hedge after 9s; if $n .eql. 1; exit 3; end; echo $n; end; echo on";
    world().run(script).succeeds().prints("2\non\n").takes(0.0);
    world().run("forany n in 1 2 hedge after 9s; exit 3; end").fails("exit", 3);
    world().run("forany n in 1 2 hedge after 9s; exit 0; end; echo on").succeeds().prints("on\n");
}

#[test]
fn daemons_of_the_winner_stay_and_those_of_losers_go() {
    let script = "forany n in 1 2 in order hedge after 1s; daemon; if $n .eql. 1; hang; end; end";
    let ran = world().run(script).succeeds().takes(1.0);
    assert_eq!(ran.world.running(), ["daemon"]);
}

#[test]
fn a_stubborn_loser_holds_up_what_comes_after() {
    let script = "forany n in 1 2 in order hedge after 1s; if $n .eql. 1; stubborn; end; work 1; end; echo on";
    let ran = world().config(|config| config.kill_timeout = seconds(10.0)).run(script);
    let ran = ran.succeeds().takes(12.0).prints("on\n");
    assert!(ran.world.running().is_empty());
}

#[test]
fn the_winner_prints_after_the_end_of_the_others() {
    let script = "try for 5 seconds; forany n in 1 2 in order hedge after 1s; if $n .eql. 1; stubborn; end; echo $n; end; catch; echo cut; end";
    let ran = world().config(|config| config.kill_timeout = seconds(10.0)).run(script);
    ran.succeeds().takes(11.0).prints("cut\n");
}

#[test]
fn losers_clean_up_silently_before_the_script_continues() {
    let script = "forany n in 1 2 in order hedge after 1s; try; if $n .eql. 1; hang; end; work 1; finally; work 2; echo $n > gone$n; echo gone $n; end; end; echo on";
    let ran = world().run(script).succeeds().takes(6.0).prints("gone 2\non\n");
    assert_eq!(ran.world.content("gone1").as_deref(), Some("1\n"));
    // No word begins during the cleanup.
    let script = "try for 3500 ms; forany n in 1 2 3 4 5 6 7 8 in order hedge after 1s; try; hang; finally; work 5; end; end; end";
    let ran = world().run(script).fails("timeout", 124).takes(8.5).prints("");
    assert_eq!(ran.world.starts().len(), 8, "four words, and the group of each");
}

#[test]
fn the_umask_of_the_winner_is_kept() {
    let seen = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let note = std::rc::Rc::clone(&seen);
    let model = |simulated: ftsh_sim::Simulated| {
        simulated.command("file", move |call, _| {
            note.borrow_mut().push((call.words[1].to_string(), call.umask));
            Model::succeeds()
        })
    };
    let script = "file own; umask 027; function f; umask 002; end; forall x in a; f; file branch; end; file outside
        forany n in 9 1 in order hedge after 1s; umask 00$n; work $n; end; file after; f; file called";
    // A word refused by `umask 009` begins the next word at once.
    world().model(model).run(script).succeeds().takes(1.0);
    let expected = [
        ("own", None),
        ("branch", Some(0o002)),
        ("outside", Some(0o027)),
        ("after", Some(0o001)),
        ("called", Some(0o002)),
    ];
    let expected = expected.map(|(name, umask)| (name.to_owned(), umask));
    assert_eq!(seen.take(), expected);
}
