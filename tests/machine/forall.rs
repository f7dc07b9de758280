use ftsh_machine::time::Deadline;
use ftsh_machine::{Effect, Event, Machine, Outcome, Output, Time, driver};
use ftsh_sim::Simulated;

use super::{World, seconds, world};

#[test]
fn results_of_branches_are_known_after_a_cancellation() {
    let body = "forall x in a b c d at most 3 keep going\n\
                if $x .eq. a; ok; else; if $x .eq. b; fail 3; else; hang; end; end; end";
    let report = "echo $succeeded / lost $failed";
    let limited = format!("try for 2 seconds or 1 time\n{body}\ncatch; {report}; end");
    world().run(&limited).succeeds().prints("a / lost b c d\n");
    let group =
        format!("try for 2 seconds or 1 time; try\n{body}\nfinally; {report}; end; catch; end");
    world().run(&group).succeeds().prints("a / lost b c d\n");
    let signal = |model: Simulated| model.signal_at(seconds(2.0), 15);
    let group = format!("try\n{body}\nfinally; {report}; end");
    world().model(signal).run(&group).prints("a / lost b c d\n");
    let limit = Time::after(seconds(2.0));
    world()
        .config(|config| config.deadline = Deadline::at(limit))
        .run(&group)
        .prints("a / lost b c d\n");
    // A failing sibling; a stage of a pipeline; the branches of an inner and an outer `forall`.
    let sibling = format!("forall y in 1 2; if $y .eql. 1; work 2; fail; end; {group}; end");
    world().run(&sibling).fails("exit", 1).prints("a / lost b c d\n");
    let stage = format!("try for 2 seconds or 1 time\n{body} | cat\ncatch; {report}; end");
    world().run(&stage).succeeds().prints("a / lost b c d\n");
    let both =
        format!("try for 2 seconds or 1 time; forall y in 1; {group}; end; catch; {report}; end");
    world().run(&both).succeeds().prints("a / lost b c d\n/ lost 1\n");
    // The previous attempt had begun the branches.
    let before = format!(
        "try for 2 seconds; if $attempt .eql. 1; forall x in a b; fail; end; end; hang; catch; {report}; end"
    );
    world().run(&before).succeeds().prints("/ lost a b\n");
}

#[test]
fn all_branches_run_at_once() {
    world().run("forall n in 1 2 3 4; work $n; end").succeeds().takes(4.0);
}

#[test]
fn the_first_failing_branch_cancels_the_others() {
    let script = "forall n in 1 2 3; if $n .eql. 2; slowfail 2; fail; else; hang; end; end";
    let ran = world().run(script).fails("exit", 1).takes(2.0);
    assert!(ran.world.running().is_empty());
}

#[test]
fn a_bound_keeps_branches_waiting() {
    world().run("forall n in 1 .to. 6 at most 2; work 1; end").succeeds().takes(3.0);
    world().run("n=0; forall x in a b at most $n; ok; end").fails("expression", 1);
}

#[test]
fn a_huge_list_starts_one_by_one() {
    let script = "try for 10 seconds; forall n in 1 .to. 1000000000000 at most 3; work 1; end; end";
    world().run(script).fails("timeout", 124).takes(10.0);
}

#[test]
fn branches_have_their_own_variables_and_directory() {
    let script =
        "a=0; forall n in 1 2 3\n a=$n\n cd /d$n\n work $n\n echo $a\n pwd\nend\necho $a\npwd";
    world().run(script).succeeds().prints("1\n/d1\n2\n/d2\n3\n/d3\n0\n/\n");
}

#[test]
fn exit_ends_only_its_branch() {
    world().run("forall n in 1 2; exit 0; fail; end; echo on").succeeds().prints("on\n");
    world().run("forall n in 1 2; exit 5; end").fails("exit", 5);
}

#[test]
fn an_empty_list_succeeds() {
    world().run("a=; forall n in ${a:-}; fail; end; for n in ${a:-}; fail; end").succeeds();
    world().run("forany n in ${a:-}; ok; end").fails("expression", 1);
}

#[test]
fn a_deadline_cuts_all_branches_and_theirs() {
    let script = "try for 3 seconds\nforall a in 1 2; forall b in 1 2; try for 1 hour; hang; end; end; end\nend";
    let ran = world().run(script).fails("timeout", 124).takes(3.0);
    assert!(ran.world.running().is_empty());
}

#[test]
fn each_branch_retries_on_its_own() {
    let script = "forall n in 1 2; try 3 times every 10 seconds; slowfail $n; end; end";
    world().run(script).fails("exit", 1).takes(21.0);
}

#[test]
fn a_failing_branch_cancels_those_that_are_cleaning_up() {
    let script = "forall n in 1 2\n if $n .eql. 1\n  try for 1 second; stubborn; end\n else\n  slowfail 2\n end\nend";
    let ran = world().config(|config| config.kill_timeout = seconds(10.0)).run(script);
    let ran = ran.fails("exit", 1).takes(11.0);
    assert!(ran.world.running().is_empty());
}

#[test]
fn ten_thousand_branches_are_nothing_special() {
    world().run("forall n in 1 .to. 10000; m=$n .mul. 2; work 5; end").succeeds().takes(5.0);
}

#[test]
fn a_daemon_of_a_sibling_outlives_a_cut_attempt() {
    let script =
        "forall n in 1 2\nif $n .eql. 1; daemon; else; try; daemon; fail; catch; ok; end; end\nend";
    let ran = world().run(script).succeeds();
    assert_eq!(ran.world.running(), ["daemon"]);
}

#[test]
fn a_deadline_cuts_even_the_starting_of_branches() {
    events_are_seen_between_starts("");
    events_are_seen_between_starts("on ssh a");
}

fn events_are_seen_between_starts(place: &str) {
    let script =
        format!("try for 1 second; forall n in 1 .to. 1000000000000 {place}; hang; end; end");
    let parsed = ftsh_syntax::parse("script", &script).expect("valid");
    let mut machine = Machine::new(&parsed, vec![], vec![], ftsh_machine::Config::default(), 1);
    let (mut started, mut all, mut looks) = (Vec::new(), 0, 0);
    while looks < 10 {
        match machine.poll_output() {
            Output::Effect(Effect::Open { operation, .. }) => {
                let result = Ok(ftsh_machine::event::Reply::Truth(true));
                machine.handle_event(Time::START, Event::Done { operation, result });
            }
            Output::Effect(Effect::Query { operation, .. }) => {
                let result = Ok(ftsh_machine::event::Reply::Text("/".into()));
                machine.handle_event(Time::START, Event::Done { operation, result });
            }
            Output::Effect(Effect::Run(run)) => started.push(run.process),
            Output::Effect(Effect::Dispatch(branch)) => started.push(branch.process),
            Output::Effect(_) => {}
            _ => {
                // The start of a process takes about a millisecond.
                assert!(started.len() < 100, "{place}: {}", started.len());
                all += started.len();
                for process in started.drain(..) {
                    machine.handle_event(Time::START, Event::Spawned { process, pid: 1 });
                    let next = machine.poll_output();
                    let is_start =
                        matches!(next, Output::Effect(Effect::Run(_) | Effect::Dispatch(_)));
                    assert!(!is_start, "{next:?}");
                }
                machine.handle_timeout(Time::START);
                looks += 1;
            }
        }
    }
    assert!(all > 100, "{place}: {all}");
}

#[test]
fn branches_in_branches_are_limited_like_calls() {
    world().run("function f; forall x in a; f; end; end; f").fails("expression", 1);
    world().run("function f; ok | f; end; f").fails("expression", 1);
    let deep =
        "function f; if $1 .lt. 900; forall x in a; f ($1 .add. 1); end; else; hang; end; end; f 1";
    let deep = deep.replace("f ($1 .add. 1)", "n=$1 .add. 1; f $n");
    world().run(&format!("try for 1 second; {deep}; end")).fails("timeout", 124);
}

#[test]
fn a_quorum_ends_as_soon_as_it_is_reached_or_out_of_reach() {
    let script =
        "forall n in 1 2 3 4 5 at least 2; work $n; if $n .eql. 1; fail; end; end; echo on";
    let ran = world().run(script).succeeds().takes(3.0).prints("on\n");
    assert!(ran.world.running().is_empty());
    let script = "forall n in 1 2 3 4 5 at least 4; work $n; if $n .le. 2; fail 7; end; end";
    let ran = world().run(script).fails("exit", 7).takes(2.0);
    assert!(ran.world.running().is_empty());
    assert!(ran.message().contains("2 of 5 branches failed, and 4 had to succeed; the first, n=1"));
    world().run("a=; forall n in ${a:-} at least 1; ok; end").fails("failure", 1).takes(0.0);
    world().run("a=; forall n in ${a:-} keep going; fail; end").succeeds();
    world().run("z=0; forall n in 1 2 at least $z; ok; end").fails("expression", 1);
}

#[test]
fn a_quorum_reached_while_branches_are_still_to_start_starts_no_more() {
    let script = "forall n in 1 .to. 1000000000000 at least 3 at most 2; work 1; end";
    world().run(script).succeeds().takes(2.0);
    let script = "forall n in 1 .to. 5 at most 1 keep going; work 1; fail; end";
    world().run(script).fails("exit", 1).takes(5.0);
}

#[test]
fn a_stubborn_branch_holds_up_what_comes_after_a_quorum() {
    let script = "forall n in 1 2 at least 1; if $n .eql. 1; stubborn; end; work 1; end; echo on";
    let ran = world().config(|config| config.kill_timeout = seconds(10.0)).run(script);
    let ran = ran.succeeds().takes(11.0).prints("on\n");
    assert!(ran.world.running().is_empty());
}

#[test]
fn grouped_output_appears_as_a_whole() {
    let body = "echo $n; work $n; echo ${n}b; end; echo on";
    world().run(&format!("forall n in 2 1; {body}")).succeeds().prints("2\n1\n1b\n2b\non\n");
    let script = format!("forall n in 2 1 output grouped; {body}");
    world().run(&script).succeeds().prints("1\n1b\n2\n2b\non\n").takes(2.0);
    let script = format!("forall n in 2 1 output grouped in order; {body}");
    world().run(&script).succeeds().prints("2\n2b\n1\n1b\non\n").takes(2.0);
    let script = "forall n in 2 1 output grouped; work $n; echo $n; end -> v; echo \"<$v>\"";
    world().run(script).succeeds().prints("<1\n2>\n");
}

#[test]
fn output_of_failed_and_canceled_branches_appears() {
    let script = "forall n in 1 2 output grouped; echo $n; work $n; fail; end";
    world().run(script).fails("exit", 1).prints("1\n2\n").takes(1.0);
    let script = "try for 5 seconds; forall n in 1 9 output grouped; echo $n; work $n; end; end";
    world().run(script).fails("timeout", 124).prints("1\n9\n").takes(5.0);
}

/// The mark belongs to the output of the branch that hung.
#[test]
fn output_before_a_limit_is_marked() {
    let cut = |word| format!("ftsh: n={word} was canceled after printing this:\n");
    let script = "try for 5 seconds or 1 time; forall n in 1 9 8 output grouped; echo $n; echo ${n}e >&2; work $n; end; catch; echo caught; end";
    let ran = world().run(script).succeeds().prints("1\n9\n8\ncaught\n").takes(5.0);
    assert_eq!(ran.world.stderr(), format!("1e\n{}9e\n{}8e\n", cut(9), cut(8)));
    let script = "try for 5 seconds or 1 time; forall n in 9 1 output grouped in order; echo $n; work $n; end; catch; end";
    let ran = world().run(script).succeeds().prints("9\n1\n").takes(5.0);
    assert_eq!(ran.world.stderr(), cut(9));
    // In branches of branches, and with a `finally` in a branch.
    let script = "try for 5 seconds or 1 time; forall m in a output grouped; forall n in 9 output grouped; try; echo $n; work $n; finally; echo f; end; end; end; catch; echo caught; end";
    let ran = world().run(script).succeeds().prints("9\nf\ncaught\n").takes(5.0);
    let outer = "ftsh: m=a was canceled after printing this:\n";
    assert_eq!(ran.world.stderr(), format!("{outer}{}", cut(9)));
}

#[test]
fn held_output_is_bounded() {
    let script = "forall n in 1 .to. 1000 output grouped; work 1; echo $n; end";
    world().run(script).succeeds().takes(4.0);
    let script = "forall n in 1 .to. 600 output grouped in order; if $n .eql. 1; work 9; end; end";
    world().run(script).succeeds().takes(9.0);
}

#[test]
fn tagged_lines_appear_at_once() {
    let body = "echo -n $n; work $n; echo b; work 2; echo c; echo -n d; end; echo on";
    let ran = world().run(&format!("forall n in 2 1 output tagged; {body}")).succeeds();
    ran.prints("1\t1b\n2\t2b\n1\tc\n1\td\n2\tc\n2\td\non\n").takes(4.0);
    let script = "forall n in 2 1 output tagged; work $n; echo $n; end -> v; echo \"<$v>\"";
    world().run(script).succeeds().prints("<1\t1\n2\t2>\n");
    let script =
        "forall n in 1 2 output tagged; forall m in a b output tagged; work $n; echo $m; end; end";
    world().run(script).succeeds().prints("1\ta\ta\n1\tb\tb\n2\ta\ta\n2\tb\tb\n");
    let script = "forall n in 1 output tagged; echo a > f; echo b -> v; try; echo c; end >> f; echo $v; end; cat < f";
    world().run(script).succeeds().prints("1\tb\na\nc\n");
    let script = "function f; forall n in 1 2 output tagged; work $n; echo $n; end; end; f | cat";
    world().run(script).succeeds().prints("1\t1\n2\t2\n");
}

#[test]
fn a_tag_is_one_field() {
    let script = "text=\"a b\n\"\ntext=split(\"x\ty\nz\", \",\")\nforall n in \"$text\" output tagged; echo it; end";
    world().run(script).succeeds().prints("x\\ty\\nz\tit\n");
}

#[test]
fn output_of_failed_and_canceled_branches_is_tagged() {
    let script = "forall n in 1 2 output tagged; echo $n; work $n; echo -n left; fail; end";
    world().run(script).fails("exit", 1).prints("1\t1\n2\t2\n1\tleft\n").takes(1.0);
    let script = "forall n in 1 2 output tagged keep going; echo -n $n; work $n; fail; end";
    world().run(script).fails("exit", 1).prints("1\t1\n2\t2\n").takes(2.0);
    let script = "try for 5 seconds; forall n in 1 9 output tagged; echo -n $n; work $n; end; end";
    let ran = world().run(script).fails("timeout", 124).prints("1\t1\n9\t9\n").takes(5.0);
    assert!(ran.world.running().is_empty());
    let script = "try for 5 seconds or 1 time; forall n in 1 9 output tagged; try; work $n; finally; echo $n; end; end; catch; echo caught; end";
    world().run(script).succeeds().prints("1\t1\n9\t9\ncaught\n").takes(5.0);
    let script = "forall n in 1 .to. 1000 output tagged at least 600; work 1; echo -n $n; end";
    world().run(script).succeeds().takes(3.0);
}

#[test]
fn a_list_that_is_wrong_leaves_no_relay() {
    let script = "forall n from input by $nothing output tagged; echo $n; end";
    let parsed = ftsh_syntax::parse("script", script).expect("a script");
    let World { mut simulated, config, .. } = world();
    let environment = vec![("nothing".into(), "".into())];
    let mut machine = Machine::new(&parsed, vec!["script".into()], environment, config, 7);
    let outcome = driver::run(&mut machine, &mut simulated);
    assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
    assert_eq!(machine.in_progress().operations, 0);
}

#[test]
fn after_a_failure_those_that_run_finish() {
    let body = "if $n .eql. 1; work 1; fail 3; end; work 2; echo $n";
    let script = format!("forall n in 1 2 3 4 at most 2 finish running; {body}; end");
    world().run(&script).fails("exit", 3).prints("2\n").takes(2.0);
    // A limit ends them all the same.
    let limited = format!("try for 1500 ms or 1 time; {script}; end");
    world().run(&limited).fails("timeout", 124).prints("").takes(1.5);
    let enough = "forall n in 1 2 3 at most 3 at least 1 finish running; if $n .eql. 1; fail; end; work $n; end";
    world().run(enough).succeeds().takes(3.0);
}

#[test]
fn a_new_branch_takes_the_lowest_slot() {
    let script = "forall n in 3 1 1 at most 2; work $n; echo $slot; end";
    world().run(script).succeeds().prints("2\n2\n1\n");
    world().run("echo $slot").fails("expression", 1);
}

#[test]
fn a_recorded_word_takes_no_time() {
    let script =
        "forall n in 2 3 once in f; work $n; end; forall n in 2 3 4 2 once in f; work $n; end";
    world().run(script).succeeds().takes(7.0);
    let failing = "try 2 times backoff none; forall n in 1 2 keep going once in f; work $n; if $n .eql. 2; fail; end; end; end";
    world().run(failing).fails("exit", 1).takes(4.0);
}
