//! Attempts through channels: requests with their times, and passes returned.

use std::collections::VecDeque;
use std::time::Duration;

use ftsh_machine::channels::{Admission, Claim, Passed};
use ftsh_machine::driver::{self, Driver};
use ftsh_machine::effect::{OperationId, PassId};
use ftsh_machine::event::{Refusal, Reply};
use ftsh_machine::record::{Level, LogEvent};
use ftsh_machine::{Config, Effect, Event, Machine, Outcome, Time};
use ftsh_sim::{Model, Simulated};

use super::seconds;

/// Answer of a gate.
#[derive(Clone)]
enum Answer {
    Yes,
    /// Admission after this number of seconds.
    Later(f64),
    No(Admission),
    Refuse,
}
use Answer::{Later, No, Refuse, Yes};

/// World whose channels give prepared answers, and record requests.
struct Gate {
    world: Simulated,
    answers: VecDeque<Answer>,
    /// Future admissions with their times.
    future: Vec<(Time, OperationId, PassId)>,
    events: VecDeque<Event>,
    asked: Vec<(String, Claim, f64)>,
    inside: Vec<PassId>,
    most: usize,
    left: Vec<Passed>,
    abandoned: usize,
    /// Live commands of the attempt when its pass is returned.
    alive: Vec<String>,
    log: Vec<LogEvent>,
}

impl Driver for Gate {
    fn now(&self) -> Time {
        self.world.now()
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Enter(entry) => {
                let now = self.now().elapsed().as_secs_f64();
                self.asked.push((entry.channel.to_string(), entry.claim, now));
                let answer = self.answers.pop_front().unwrap_or(Yes);
                let operation = entry.operation;
                let result = match answer {
                    Yes => {
                        self.inside.push(entry.pass);
                        Ok(Reply::Admission(Admission::Admitted))
                    }
                    Later(time) => {
                        self.future.push((self.now() + seconds(time), operation, entry.pass));
                        self.events.push_back(Event::Queued { operation });
                        return;
                    }
                    No(admission) => Ok(Reply::Admission(admission)),
                    Refuse => Err(Refusal::new("the channel's file is damaged")),
                };
                self.events.push_back(Event::Done { operation, result });
            }
            Effect::Leave(pass, passed) => {
                let at = self.inside.iter().position(|it| *it == pass);
                self.inside.remove(at.expect("left once, and only what was admitted"));
                self.left.push(passed);
                self.alive.extend(self.world.running().into_iter().map(str::to_owned));
            }
            Effect::Abandon(operation) if self.future.iter().any(|it| it.1 == operation) => {
                self.future.retain(|it| it.1 != operation);
                self.abandoned += 1;
            }
            Effect::Log(record) => self.log.push(record.event),
            effect => self.world.perform(effect),
        }
        self.most = self.most.max(self.inside.len());
    }

    fn wait(&mut self, until: Time) -> Option<Event> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        let next = self.future.iter().map(|it| it.0).min().filter(|at| *at <= until);
        let Some(at) = next else { return self.world.wait(until) };
        if let Some(event) = self.world.wait(at) {
            return Some(event);
        }
        let index = self.future.iter().position(|it| it.0 == at).expect("what is due");
        let (_, operation, pass) = self.future.remove(index);
        self.inside.push(pass);
        self.most = self.most.max(self.inside.len());
        let result = Ok(Reply::Admission(Admission::Admitted));
        Some(Event::Done { operation, result })
    }
}

fn run_in(world: Simulated, answers: &[Answer], script: &str) -> (Gate, Outcome) {
    let mut gate = Gate {
        world,
        answers: answers.iter().cloned().collect(),
        future: Vec::new(),
        events: VecDeque::new(),
        asked: Vec::new(),
        inside: Vec::new(),
        most: 0,
        left: Vec::new(),
        abandoned: 0,
        alive: Vec::new(),
        log: Vec::new(),
    };
    let script = format!("channel k at most 2; channel l at most 1\n{script}");
    let parsed = ftsh_syntax::parse("script", &script).expect("a script");
    let config = Config {
        log_level: Level::STRUCTURES,
        backoff: "exponential".parse().expect("a policy"),
        ..Config::default()
    };
    let mut machine = Machine::new(&parsed, vec!["script".into()], Vec::new(), config, 7);
    let outcome = driver::run(&mut machine, &mut gate);
    assert!(gate.inside.is_empty(), "{script}: what was admitted is left");
    assert!(gate.future.is_empty(), "{script}: what isn't waited for is abandoned");
    let left = machine.in_progress();
    assert_eq!((left.operations, left.scopes, left.timers), (0, 1, 0), "{script}");
    (gate, outcome)
}

fn run(answers: &[Answer], script: &str) -> (Gate, Outcome) {
    let world = super::world().simulated;
    run_in(world, answers, script)
}

fn kind(outcome: &Outcome) -> (&str, u8) {
    match outcome {
        Outcome::Failed(failure) => (failure.kind.name(), outcome.exit_code()),
        other => ("", other.exit_code()),
    }
}

fn takes(gate: &Gate, expected: f64) {
    let elapsed = gate.now().elapsed().as_secs_f64();
    assert!((elapsed - expected).abs() < 1e-6, "{elapsed} s");
}

#[test]
fn each_attempt_asks_and_leaves() {
    let (gate, outcome) = run(&[], "try 3 times through k\n fail 1\nend");
    assert_eq!(kind(&outcome), ("exit", 1));
    let asked: Vec<_> = gate.asked.iter().map(|it| (&*it.0, it.1, it.2)).collect();
    let expected = [("k", Claim::First, 0.0), ("k", Claim::Retry, 1.0), ("k", Claim::Retry, 3.0)];
    assert_eq!(asked, expected);
    assert_eq!(gate.left, [Passed::Failed; 3]);
    let (gate, _) = run(&[], "try 3 times through k\n ok\nend");
    assert_eq!(gate.left, [Passed::Succeeded]);
}

#[test]
fn delays_and_conditions_hold_no_place() {
    let script = "try 2 times through k while .succeeds. (work 5)\n fail 1\ncatch\n ok\nend";
    let (gate, outcome) = run(&[], script);
    assert_eq!(outcome, Outcome::Succeeded);
    assert_eq!((gate.most, gate.left.len()), (1, 2));
    // No command was alive when the attempt left; the condition ran later.
    assert_eq!(gate.alive, Vec::<String>::new());
}

#[test]
fn an_attempt_waits_for_its_turn_and_its_clock_begins_then() {
    let (gate, outcome) =
        run(&[Later(30.0)], "try for 1 minute each 10 seconds through k\n work 9\nend");
    assert_eq!(outcome, Outcome::Succeeded);
    takes(&gate, 39.0);
    let log: Vec<String> = gate
        .log
        .iter()
        .filter(|it| matches!(it, LogEvent::Queued { .. } | LogEvent::Entered { .. }))
        .map(|it| format!("{it:?}"))
        .collect();
    assert_eq!(
        log,
        [
            "Queued { channel: \"k\", attempt: 1, time: Some(60s) }",
            "Entered { channel: \"k\", attempt: 1, waited: 30s }"
        ]
    );
    // The limit of `each` begins with the admission.
    let (gate, outcome) = run(&[Later(30.0)], "try 1 time each 10 seconds through k\n hang\nend");
    assert_eq!(kind(&outcome), ("timeout", 124));
    takes(&gate, 40.0);
    assert_eq!(gate.left, [Passed::Failed]);
}

#[test]
fn waiting_ends_with_every_limit_around() {
    for script in [
        "try for 10 seconds through k\n ok\nend",
        "try for 10 seconds\n try for 1 minute through k\n  ok\n end\nend",
        "try each 10 seconds\n f\nend\nfunction f\n try through k\n ok\n end\nend",
        "try for 10 seconds\n forall x in a\n  try through k\n   ok\n  end\n end\nend",
    ] {
        let (gate, outcome) = run(&[Later(99.0)], script);
        assert_eq!(kind(&outcome), ("timeout", 124), "{script}");
        takes(&gate, 10.0);
        assert_eq!((gate.abandoned, gate.left.len()), (1, 0), "{script}");
        let Outcome::Failed(failure) = outcome else { panic!("{script}") };
        let message = failure.message.replace(", by `for` at line 2", "");
        assert_eq!(message, "ran out of time after 10 s, waiting for the channel `k`", "{script}");
    }
    // An earlier failure explains the timeout.
    let (gate, outcome) =
        run(&[Yes, Later(99.0)], "try for 10 seconds through k\n fail 3\ncatch\n failure\nend");
    let Outcome::Failed(failure) = outcome else { panic!("a failure") };
    assert_eq!(failure.kind.name(), "timeout");
    assert_eq!(failure.earlier.expect("a cause").message, "`fail 3` exited with 3");
    assert_eq!((gate.abandoned, gate.left.len()), (1, 1));
}

#[test]
fn waiters_can_be_canceled() {
    let script = "forall x in a b\n if $x .eq. a\n  try through k\n   ok\n  end\n else\n  sleep 5\n  failure\n end\nend";
    let (gate, outcome) = run(&[Later(99.0)], script);
    assert_eq!(kind(&outcome), ("failure", 1));
    takes(&gate, 5.0);
    assert_eq!((gate.abandoned, gate.left.len()), (1, 0));
    let world = super::world().simulated.signal_at(seconds(5.0), 15);
    let (gate, outcome) =
        run_in(world, &[Later(99.0)], "try through k\n ok\nfinally\n work 1\nend");
    assert_eq!(outcome, Outcome::Interrupted(15));
    assert_eq!((gate.abandoned, gate.left.len()), (1, 0));
}

#[test]
fn the_place_is_held_until_the_last_process_ends() {
    let world = super::world().simulated.command("slow", |_, _| Model {
        terminates_after: Some(Duration::from_secs(3)),
        ..Model::hangs()
    });
    let script = "try for 20 seconds each 5 seconds through k\n slow\nend";
    let (gate, outcome) = run_in(world, &[], script);
    assert_eq!(kind(&outcome), ("timeout", 124));
    assert!(gate.alive.is_empty(), "{:?}", gate.alive);
    assert!(gate.left.len() > 1 && gate.left.iter().all(|it| *it == Passed::Failed));
}

#[test]
fn a_success_leaves_its_daemons_without_a_place() {
    let (gate, outcome) = run(&[], "try through k\n daemon\nend\nwork 5");
    assert_eq!(outcome, Outcome::Succeeded);
    assert_eq!(gate.left, [Passed::Succeeded]);
    assert_eq!(gate.alive, ["daemon"]);
}

#[test]
fn every_end_of_an_attempt_leaves_once() {
    use Passed::{Failed, Neither, Succeeded};
    let cases: [(&str, &[Passed]); 20] = [
        ("function f\n try 2 times through k\n  return 1\n end\nend\nx=f()", &[Succeeded]),
        ("for x in a b\n try through k\n  ok\n  break\n end\nend", &[Succeeded]),
        ("for x in a b\n try through k\n  ok\n  continue\n end\nend", &[Succeeded, Succeeded]),
        ("try through k\n exit 0\nend", &[Succeeded]),
        ("try through k\n ok\n exit 3\nend", &[Failed]),
        ("try through k\n fail 1\ncatch\n work 2\nfinally\n work 2\nend", &[Failed]),
        ("try 3 times through k\n giveup\nend", &[Failed]),
        ("try for 2 seconds through k\n hang\nend", &[Failed]),
        ("try 1 time each 2 seconds through k\n stubborn\nend", &[Failed]),
        ("try for 2 seconds\n try through k\n  hang\n end\nend", &[Neither]),
        ("try for 2 seconds\n try through k\n  stubborn\n finally\n ok\n end\nend", &[Neither]),
        (
            "forall x in a b\n try through k\n  if $x .eq. a\n   work 1\n   failure\n  end\n  hang\n end\nend",
            &[Failed, Neither],
        ),
        (
            "forany x in a b hedge after 1s\n try through k\n  if $x .eq. a\n   work 3\n  end\n  work 9\n end\nend",
            &[Succeeded, Neither],
        ),
        ("try for 40 seconds through k\n defer 30\nend", &[Neither, Neither]),
        ("try through k\n work 1 | fail 1\nend", &[Failed]),
        ("try through k\n ok\nend | fail 1", &[Succeeded]),
        ("try through k\n try through l\n  fail 1\n end\nend", &[Failed, Failed]),
        ("forall x in a b keep going\n try through k\n  exit 2\n end\nend", &[Failed, Failed]),
        (
            "try for 5 seconds through k\n forall x in a b\n  try through l\n   hang\n  end\n end\nend",
            &[Failed, Neither, Neither],
        ),
        ("try through k\n x=$nothing\nend", &[Failed]),
    ];
    for (script, expected) in cases {
        let (mut gate, _) = run(&[], script);
        gate.left.sort_by_key(|it| format!("{it:?}"));
        let mut expected = expected.to_vec();
        expected.sort_by_key(|it| format!("{it:?}"));
        assert_eq!(gate.left, expected, "{script}");
    }
}

#[test]
fn a_signal_is_no_failure_of_the_attempt() {
    for script in [
        "try through k\n hang\nend",
        "try through k\n hang\nfinally\n work 1\nend",
        "try through k\n stubborn\nend",
    ] {
        let world = super::world().simulated.signal_at(seconds(5.0), 15);
        let (gate, outcome) = run_in(world, &[], script);
        assert_eq!(outcome, Outcome::Interrupted(15), "{script}");
        assert_eq!(gate.left, [Passed::Neither], "{script}");
    }
}

#[test]
fn through_a_channel_inside_itself_takes_no_second_place() {
    for inside in [
        "try 2 times through k\n fail 1\n end",
        "f",
        "forall x in a b\n  try 2 times through k\n fail 1\n end\n end",
        "ok | f",
        "forany x in a b hedge after 1s\n f\n end",
    ] {
        let script = format!(
            "function f\n try 2 times through k\n  fail 1\n end\nend\ntry through k\n {inside}\nend"
        );
        let (gate, _) = run(&[], &script);
        assert_eq!((gate.asked.len(), gate.left.len()), (1, 1), "{script}");
    }
    // A nested attempt through another channel asks, and so does a later attempt.
    let (gate, _) = run(
        &[],
        "try 2 times through k while .succeeds. (f)\n fail 1\ncatch\n f\nfinally\n f\nend\nfunction f\n try through k\n  ok\n end\nend",
    );
    assert_eq!(gate.asked.len(), 5);
    assert_eq!(gate.most, 1);
    let (gate, _) = run(&[], "try through k\n try through l\n  ok\n end\nend");
    assert_eq!((gate.asked.len(), gate.most), (2, 2));
}

#[test]
fn only_outermost_first_attempts_earn() {
    use Claim::{First, Inner, Retry};
    let claims =
        |script: &str| run(&[], script).0.asked.into_iter().map(|it| it.1).collect::<Vec<_>>();
    let inner = "try 2 times\n try 2 times through k\n  fail 1\n end\nend";
    assert_eq!(claims(inner), [First, Retry, Inner, Retry]);
    let branches = "try 2 times\n forall x in a\n  try through k\n   fail 1\n  end\n end\nend";
    assert_eq!(claims(branches), [First, Inner]);
    let deferred = "n=0\ntry for 1 hour through k\n n=$n .add. 1\n if $n .lt. 3\n  defer 1\n end\n if $n .lt. 5\n failure\n end\nend";
    assert_eq!(claims(deferred), [First, Inner, Inner, Retry, Retry]);
}

#[test]
fn without_budget_a_try_fails_with_its_last_failure() {
    let (gate, outcome) =
        run(&[Yes, No(Admission::NoBudget)], "try for 1 hour through k\n fail 4\nend");
    assert_eq!(kind(&outcome), ("refused", 75));
    takes(&gate, 1.0);
    let Outcome::Failed(failure) = outcome else { panic!("a failure") };
    assert_eq!(failure.message, "the channel `k` has no budget for another attempt");
    assert_eq!(failure.earlier.expect("a cause").message, "`fail 4` exited with 4");
    assert_eq!(failure.tries[0].attempts, 1);
    assert_eq!(failure.line, 2);
    let (gate, outcome) = run(
        &[Yes, No(Admission::NoBudget)],
        "try 5 times through k\n fail 4\ncatch\n echo $error_kind $error_code\nend",
    );
    assert_eq!(outcome, Outcome::Succeeded);
    assert_eq!(gate.world.stdout(), "refused 75\n");
}

#[test]
fn a_broken_channel_fails_attempts_with_the_usual_delays() {
    let broken = No(Admission::Broken(seconds(28.0)));
    let (gate, outcome) =
        run(&[broken.clone(), broken.clone(), Yes], "try 3 times through k\n ok\nend");
    assert_eq!(outcome, Outcome::Succeeded);
    takes(&gate, 3.0);
    assert_eq!(gate.left, [Passed::Succeeded]);
    let (_, outcome) = run(&[broken.clone(), broken.clone()], "try 2 times through k\n ok\nend");
    assert_eq!(kind(&outcome), ("refused", 75));
    let Outcome::Failed(failure) = outcome else { panic!("a failure") };
    assert_eq!(
        failure.message,
        "the channel `k` refuses attempts for another 28 s: too many have failed"
    );
    let (_, outcome) = run(&[No(Admission::Broken(seconds(0.0)))], "try through k\n ok\nend");
    let Outcome::Failed(failure) = outcome else { panic!("a failure") };
    assert_eq!(
        failure.message,
        "the channel `k` refuses attempts until a probe succeeds: too many have failed"
    );
    // `while` decides, and the failure counts for no other channel.
    let script =
        "try 3 times through k while $error_kind .eq. refused\n try through l\n  ok\n end\nend";
    let (gate, outcome) = run(&[Yes, broken], script);
    assert_eq!(outcome, Outcome::Succeeded);
    assert_eq!(gate.left, [Passed::Neither, Passed::Succeeded, Passed::Succeeded]);
}

#[test]
fn a_channel_that_cannot_be_used_fails_the_attempt() {
    let (gate, outcome) = run(&[Refuse, Refuse], "try 2 times through k\n ok\nend");
    assert_eq!(kind(&outcome), ("io", 1));
    takes(&gate, 1.0);
    let (_, outcome) = run(&[Refuse], "try 2 times through k\n ok\nend");
    assert_eq!(outcome, Outcome::Succeeded);
}

#[test]
fn every_counts_from_admissions() {
    let (gate, _) = run(&[Later(5.0), Yes], "try 2 times every 10 seconds through k\n fail 1\nend");
    let asked: Vec<f64> = gate.asked.iter().map(|it| it.2).collect();
    assert_eq!(asked, [0.0, 15.0]);
}

#[test]
fn a_channel_has_to_be_declared_before() {
    let script = "try 2 times through m\n ok\ncatch\n echo $error\nend\nchannel m at most 1\ntry through m\n ok\nend";
    let (gate, outcome) = run(&[], script);
    assert_eq!(outcome, Outcome::Succeeded);
    assert_eq!(gate.world.stdout(), "the channel `m` is used before it is declared\n");
    assert_eq!(gate.asked.len(), 1);
}

#[test]
fn rules_have_ranges() {
    for (rule, message) in [
        ("at most $zero", "`at most 0` is too small: the minimum is 1"),
        ("rate $zero per second", "`a rate of 0` is too small: the minimum is 1"),
        ("rate 1 per $zero seconds", "a length of time can't be zero"),
        ("budget $zero%", "a budget is more than 0% and at most 100%, not 0%"),
        ("budget ($hundred .add. 1) %", "a budget is more than 0% and at most 100%, not 101%"),
        ("breaker $zero failures 1s", "`a breaker of 0` is too small: the minimum is 1"),
        ("breaker 1 failure $zero seconds", "a length of time can't be zero"),
        ("at most word$zero", "`word0` is not an integer"),
    ] {
        let (_, outcome) = run(&[], &format!("zero=0; hundred=100\nchannel m {rule}"));
        assert_eq!(kind(&outcome), ("expression", 1), "{rule}");
        let Outcome::Failed(failure) = outcome else { panic!("{rule}") };
        assert_eq!(failure.message, message, "{rule}");
    }
}

#[test]
fn places_are_taken_in_the_order_of_arrival() {
    let ran = super::world()
        .run("channel k at most 2\nforall x in 1 2 3 4 5\n try through k\n  work 10\n  echo $x\n end\nend")
        .succeeds()
        .prints("1\n2\n3\n4\n5\n");
    ran.takes(30.0);
    // A canceled waiter is skipped.
    super::world()
        .run("channel k at most 1\nforall x in 1 2 3 keep going\n if $x .eql. 2\n  try for 5 seconds through k\n   echo $x\n  end\n else\n  try through k\n   work 10\n   echo $x\n  end\n end\nend")
        .fails("timeout", 124)
        .prints("1\n3\n")
        .takes(20.0);
}

#[test]
fn a_rate_is_kept() {
    super::world()
        .run("channel k rate 2 per 10 seconds\nforall x in 1 2 3 4 5\n try through k\n  echo $x\n end\nend")
        .succeeds()
        .prints("1\n2\n3\n4\n5\n")
        .takes(15.0);
}

#[test]
fn budgets_stop_endless_retries() {
    let ran = super::world()
        .run("channel k budget 10%\ntry for 1 hour backoff fixed from 100 ms through k\n fail 4\nend")
        .fails("refused", 75);
    // Ten retries are saved up, and one retry is earned every ten seconds.
    assert!(ran.message().contains("11 attempts"), "{}", ran.message());
    ran.takes(1.1);
}

#[test]
fn breakers_spare_servers_that_are_down() {
    let ran = super::world()
        .run("channel k breaker 3 failures 1 minute\ntry for 1 hour every 1 second through k\n echo down\n fail 4\nend")
        .fails("refused", 75);
    let made = ran.world.stdout().lines().count();
    // Three attempts, and then one per minute.
    assert!((60..=64).contains(&made), "{made}");
    // The cause is the failure before the refusal.
    let Outcome::Failed(failure) = &ran.outcome else { panic!("a failure") };
    let cause = failure.earlier.as_ref().expect("a cause");
    assert_eq!((cause.message.as_str(), &cause.earlier), ("`fail 4` exited with 4", &None));
}
