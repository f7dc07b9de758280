//! Runs that continue after the end of their shell.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use ftsh_machine::channels::{Admission, Passed};
use ftsh_machine::driver::{self, Driver};
use ftsh_machine::effect::{Action, OperationId, PassId, ProcessId, ScopeId};
use ftsh_machine::event::{CommandStatus, Reply, Suspension};
use ftsh_machine::record::{Level, LogEvent};
use ftsh_machine::{Config, Effect, Event, Machine, Outcome, Output, Time};
use ftsh_sim::{Model, Simulated};

use super::{Ran, World, seconds, world};

/// World whose shell ends at a moment, and continues later.
struct Interrupted {
    world: Simulated,
    /// Ends of the shell, with their lengths or as suspensions.
    ends: VecDeque<(Time, End)>,
    /// Events that have happened and are not delivered yet.
    pending: VecDeque<Event>,
    commands: BTreeSet<ProcessId>,
    entries: BTreeMap<OperationId, PassId>,
    inside: BTreeSet<PassId>,
    log: Vec<LogEvent>,
}

#[derive(Clone, Copy)]
pub(crate) enum End {
    For(Duration),
    Suspended(Suspension),
}

impl Interrupted {
    fn note(&mut self, event: Event) -> Event {
        match &event {
            Event::Exited { process, .. } | Event::SpawnFailed { process, .. } => {
                self.commands.remove(process);
            }
            Event::Done { operation, result } => {
                if let Some(pass) = self.entries.remove(operation)
                    && *result == Ok(Reply::Admission(Admission::Admitted))
                {
                    self.inside.insert(pass);
                }
            }
            _ => {}
        }
        event
    }

    /// Ends the shell with all of its processes; another shell continues later.
    fn end(&mut self, later: Time) -> Event {
        self.pending.clear();
        self.world.end_watches();
        self.world.perform(Effect::Kill { scope: ScopeId::SCRIPT, strong: true });
        for pass in std::mem::take(&mut self.inside) {
            self.world.perform(Effect::Leave(pass, Passed::Neither));
        }
        while let Some(event) = self.world.wait(later) {
            self.pending.push_back(event);
        }
        let lost = std::mem::take(&mut self.commands).into_iter().collect();
        Event::Resumed { lost, committed: Vec::new() }
    }
}

impl Driver for Interrupted {
    fn now(&self) -> Time {
        self.world.now()
    }

    fn perform(&mut self, effect: Effect) {
        let (mut command, starts) = (None, self.world.starts().len());
        match &effect {
            Effect::Run(run) | Effect::Exec(run) => {
                self.commands.insert(run.process);
                command = Some(run.process);
            }
            Effect::Enter(entry) => _ = self.entries.insert(entry.operation, entry.pass),
            Effect::Leave(pass, _) => {
                assert!(self.inside.remove(pass), "a place is given back that is gone");
            }
            Effect::Log(record) => self.log.push(record.event.clone()),
            _ => {}
        }
        self.world.perform(effect);
        if let Some(process) = command.filter(|_| self.world.starts().len() > starts) {
            self.pending.push_back(Event::Spawned { process, pid: 1 });
        }
    }

    fn wait(&mut self, until: Time) -> Option<Event> {
        if let Some(event) = self.pending.pop_front() {
            return Some(self.note(event));
        }
        let end = self.ends.front().map_or(Time::NEVER, |(at, _)| *at);
        if let Some(event) = self.world.wait(until.min(end)) {
            return Some(self.note(event));
        }
        if self.now() < end {
            return None;
        }
        Some(match self.ends.pop_front()?.1 {
            End::For(time) => self.end(self.now() + time),
            End::Suspended(reason) => Event::Suspended(reason),
        })
    }
}

/// Runs a script whose shell ends at each first time, in seconds, for each second value.
pub(crate) fn run(world: World, ends: &[(f64, End)], script: &str) -> (Ran, Vec<LogEvent>) {
    let parsed = ftsh_syntax::parse("script", script)
        .unwrap_or_else(|errors| panic!("{script}\n{:#?}", errors.errors));
    let config = Config { log_level: Level::STRUCTURES, ..world.config };
    let mut machine = Machine::new(&parsed, vec!["script".into()], vec![], config, 7);
    let mut interrupted = Interrupted {
        world: world.simulated,
        ends: ends.iter().map(|(at, end)| (Time::after(seconds(*at)), *end)).collect(),
        pending: VecDeque::new(),
        commands: BTreeSet::new(),
        entries: BTreeMap::new(),
        inside: BTreeSet::new(),
        log: Vec::new(),
    };
    let outcome = driver::run(&mut machine, &mut interrupted);
    let Interrupted { world, log, inside, .. } = interrupted;
    assert!(inside.is_empty(), "a place isn't given back");
    let elapsed = world.now().elapsed();
    (Ran { outcome, world, elapsed }, log)
}

/// Runs a script whose shell ends after two seconds, and continues at once.
fn lose(script: &str) -> Ran {
    run(world(), &[(2.0, End::For(Duration::ZERO))], script).0
}

/// Runs a script whose shell ends after two seconds, and continues after `time`.
fn lose_for(time: f64, script: &str) -> Ran {
    run(world(), &[(2.0, End::For(seconds(time)))], script).0
}

#[test]
fn running_commands_fail_their_attempt() {
    let ran = lose("try 3 times backoff none; work 5; end").succeeds();
    ran.takes(7.0);
    let ran = lose("try 1 time; work 5; end").fails("lost", 1);
    assert_eq!(ran.message(), "script:1: `work 5` was running when the shell ended");
    let ran = lose("work 5; ok").fails("lost", 1).takes(2.0);
    assert_eq!(ran.world.starts().len(), 1);
}

#[test]
fn a_catch_handles_work_that_must_not_run_twice() {
    let script = "try while $error_kind .ne. lost\nwork 5\ncatch\n\
                  echo $error_kind $error_code $error_command\nend";
    let ran = lose(script).succeeds().takes(2.0);
    assert_eq!(ran.world.stdout(), "lost 1 work 5\n");
}

#[test]
fn lost_commands_are_no_answer() {
    let ran = lose("if .succeeds. (work 5)\necho yes\nelse\necho no\nend").fails("lost", 1);
    assert_eq!(ran.world.stdout(), "");
    lose("forany x in 5 1; work $x; end").succeeds().takes(3.0);
}

#[test]
fn a_limit_that_has_passed_meanwhile_cuts_the_try() {
    let ran = lose_for(60.0, "try for 30 seconds; work 5; end").fails("timeout", 124).takes(62.0);
    assert_eq!(ran.world.starts().len(), 1);
    let ran = lose_for(60.0, "try for 30 seconds every 20 seconds; fail; end");
    assert_eq!(ran.world.starts().len(), 1);
    ran.fails("exit", 1).takes(62.0);
    let script =
        "try for 30 seconds; try for 20 seconds every 10 seconds; fail; catch; ok; end; end";
    let ran = lose_for(60.0, script).fails("timeout", 124);
    assert_eq!(ran.world.starts().len(), 1);
}

#[test]
fn delays_end_when_they_would_have_ended() {
    lose_for(3.0, "sleep 10; ok").succeeds().takes(10.0);
    lose_for(30.0, "sleep 10; ok").succeeds().takes(32.0);
    let script = "try 2 times backoff fixed from 10 seconds; fail; end";
    assert_eq!(lose_for(3.0, script).world.starts()[1], Time::after(seconds(10.0)));
    assert_eq!(lose_for(30.0, script).world.starts()[1], Time::after(seconds(32.0)));
}

#[test]
fn a_pipeline_is_lost_as_a_whole() {
    for script in [
        "work 5 | cat",
        "ok | work 5",
        "ok | try 9 times; work 5; end",
        "ok | work 5 | try 9 times; work 1 | work 5; end",
        "function f; ok | work 5; end; f",
        "function f; ok | work 5; return 1; end; x=f()",
        "ok | forall x in 5 6; try 9 times; work $x; end; end -> v",
        "ok | forany x in 5 6 hedge after 1 second; try 9 times; work $x; end; end",
        "work 5 | sleep 9",
    ] {
        let ran = lose(script).fails("lost", 1).takes(2.0);
        assert!(ran.message().ends_with("was running when the shell ended"), "{}", ran.message());
        let ran = lose(&format!("try 2 times backoff none\n{script}\nend")).succeeds();
        assert!(ran.elapsed > seconds(6.0), "{script}: {:?}", ran.elapsed);
    }
}

#[test]
fn cancellation_survives_every_end_of_the_shell() {
    let script = "forany v in 1 2 3 4 5\nok | forall x in 1 2 keep going\nfail\nend\nend";
    let parsed = ftsh_syntax::parse("script", script).expect("a script");
    let mut machine = Machine::new(&parsed, vec!["s".into()], vec![], Config::default(), 7);
    let mut terminated = BTreeSet::new();
    let mut ends = 0;
    while ends < 4 {
        match machine.poll_output() {
            Output::Effect(Effect::Run(run)) => {
                let status = CommandStatus::Exited(1);
                let exited =
                    Event::Exited { process: run.process, status, line: None, reader_gone: false };
                machine.handle_event(Time::START, exited);
            }
            Output::Effect(Effect::Open { operation, .. }) => {
                let result = Ok(Reply::Truth(true));
                machine.handle_event(Time::START, Event::Done { operation, result });
            }
            Output::Effect(Effect::Terminate(scope)) => _ = terminated.insert(scope),
            Output::Effect(Effect::HandOver { scope, .. }) => {
                assert!(!terminated.contains(&scope), "{scope:?} is handed over while it is ended");
            }
            Output::Effect(_) => {}
            // No scope is ever reported as empty.
            Output::Timeout(_) => {
                ends += 1;
                machine
                    .handle_event(Time::START, Event::Resumed { lost: vec![], committed: vec![] });
            }
            Output::Finished(outcome) => panic!("{outcome:?}"),
        }
    }
    assert!(terminated.len() > 2, "branches of several pipelines were being ended: {terminated:?}");
}

#[test]
fn lost_pipelines_clean_up() {
    let script = "n=0\nok | try\n    try 9 times\n        work 5\n    finally\n        echo $error_kind\n    \
                  end\nfinally\n    work 1\n    echo outer\nend\ncatch_all=1";
    let ran = lose(script).fails("lost", 1).takes(3.0);
    assert_eq!(ran.world.stdout(), "lost\nouter\n");
    // In a group too, and twice.
    let script = "try; fail; finally\ntry 1 time\nok | work 5\ncatch\necho $error_kind\nend\nend";
    let ran = lose(script).fails("exit", 1);
    assert_eq!(ran.world.stdout(), "lost\n");
}

#[test]
fn the_groups_of_a_lost_pipeline_have_half_of_the_time_to_kill() {
    let script = "ok | try; work 5; finally; hang; end";
    let ran = run(
        world().config(|config| config.kill_timeout = seconds(8.0)),
        &[(2.0, End::For(Duration::ZERO))],
        script,
    );
    let ran = ran.0.fails("lost", 1).takes(6.0);
    assert!(ran.world.running().is_empty());
}

#[test]
fn an_atomic_attempt_is_lost_also_between_its_commands() {
    let script = "try 2 times backoff none atomic\necho $attempt\nsleep 5\nend";
    let ran = lose(script).succeeds().takes(7.0);
    assert_eq!(ran.world.stdout(), "2\n");
    let ran = lose("try 1 time atomic\nsleep 5\nend").fails("lost", 1).takes(2.0);
    assert_eq!(ran.message(), "script:2: an attempt was in progress when the shell ended");
    let script = "try 2 times backoff none atomic\ntry 9 times\nwork 5\nend\nend";
    let ran = lose(script).succeeds().takes(7.0);
    assert_eq!(ran.world.starts().len(), 2);
}

#[test]
fn the_outermost_lost_attempt_fails() {
    let script = "try 2 times backoff none atomic\necho outer $attempt\n\
                  try 5 times backoff none atomic\necho inner $attempt\nsleep 5\nend\nend";
    let ran = lose(script).succeeds().takes(7.0);
    assert_eq!(ran.world.stdout(), "outer 2\ninner 1\n");
}

/// World whose shell ends once, at this effect, which is not performed then.
struct EndsAsking {
    world: Simulated,
    asked: Option<fn(&Effect) -> bool>,
    pending: VecDeque<Event>,
}

impl Driver for EndsAsking {
    fn now(&self) -> Time {
        self.world.now()
    }

    fn perform(&mut self, effect: Effect) {
        if self.asked.is_none_or(|asked| !asked(&effect)) {
            return self.world.perform(effect);
        }
        self.asked = None;
        let lost = match &effect {
            Effect::Run(run) => vec![run.process],
            _ => Vec::new(),
        };
        self.pending.push_back(Event::Resumed { lost, committed: Vec::new() });
    }

    fn wait(&mut self, until: Time) -> Option<Event> {
        self.pending.pop_front().or_else(|| self.world.wait(until))
    }
}

/// Runs a script whose shell ends at an effect.
fn lose_asking(asked: fn(&Effect) -> bool, script: &str) -> Ran {
    let parsed = ftsh_syntax::parse("script", script).expect("a script");
    let World { simulated, config, .. } = world();
    let mut machine = Machine::new(&parsed, vec!["script".into()], vec![], config, 7);
    let mut ends = EndsAsking { world: simulated, asked: Some(asked), pending: VecDeque::new() };
    let outcome = driver::run(&mut machine, &mut ends);
    assert!(ends.asked.is_none(), "the shell didn't come that far");
    let elapsed = ends.world.now().elapsed();
    Ran { outcome, world: ends.world, elapsed }
}

#[test]
fn attempts_in_a_commit_are_lost() {
    let settles = |effect: &Effect| matches!(effect, Effect::Commit { .. });
    let ran = lose_asking(settles, "try 2 times backoff none atomic\necho $attempt\nend > f");
    assert_eq!(ran.succeeds().world.content("f"), Some("2\n".into()));
    let ran = lose_asking(settles, "try 1 time atomic\necho $attempt\nend > f").fails("lost", 1);
    assert_eq!(ran.message(), "script:1: an attempt was in progress when the shell ended");
    assert_eq!(ran.world.content("f"), None);
    let script =
        "try 5 times backoff none atomic while $error_kind .ne. lost\necho $attempt\nend > f";
    lose_asking(settles, script).fails("lost", 1);
    let lets_out =
        |effect: &Effect| matches!(effect, Effect::Run(run) if matches!(run.action, Action::Copy));
    let ran = lose_asking(lets_out, "try 2 times backoff none atomic\necho $attempt\nend");
    assert_eq!(ran.succeeds().world.stdout(), "2\n");
}

#[test]
fn complete_commits_are_not_repeated() {
    let script = "try 2 times backoff none atomic\necho $attempt\nend > f";
    let ran = lose_asking(|effect| matches!(effect, Effect::KeepInput(_)), script).succeeds();
    assert_eq!(ran.world.content("f"), Some("1\n".into()));
}

#[test]
fn a_structure_that_is_being_committed_is_lost_with_its_attempt() {
    let script =
        "function f; echo one; end\ntry 5 times backoff none atomic\nf > a\necho two\nend > b";
    let slow = |simulated: Simulated| simulated.settles(|_| None);
    let ran = run(world().model(slow), &[(0.0, End::For(Duration::ZERO))], script).0.succeeds();
    assert_eq!(ran.world.content("b"), Some("two\n".into()));
}

#[test]
fn atomic_catches_are_lost() {
    let script = "try 5 times backoff none\ntry 1 time atomic\nfail\ncatch\necho late\nsleep 5\n\
                  end > f\nend";
    let ran = lose(script).succeeds().takes(7.0);
    assert_eq!(ran.world.content("f"), Some("late\n".into()));
    let ran = lose("try 1 time atomic\nfail\ncatch\nsleep 5\nend > f").fails("lost", 1);
    assert_eq!(ran.message(), "script:4: a `catch` was in progress when the shell ended");
}

#[test]
fn an_attempt_in_a_channel_is_lost_and_its_place_with_it() {
    let script = "channel c at most 1\ntry 2 times backoff none through c\nsleep 5\nend";
    lose(script).succeeds().takes(7.0);
    // The same if the limit has passed meanwhile.
    let script = "channel c at most 1\ntry for 9 seconds through c; sleep 50; end";
    lose_for(30.0, script).fails("timeout", 124).takes(32.0);
    // A waiting attempt continues to wait.
    let script = "channel c at most 1\nforall x in 1 2 3\ntry 2 times backoff none through c\n\
                  work 5\nend\nend";
    let ran = lose(script).succeeds().takes(17.0);
    assert_eq!(ran.world.starts().len(), 4);
}

#[test]
fn branches_lose_their_own_work() {
    let script = "forall x in 1 2 5 6\ntry 2 times backoff none\nwork $x\nend\nend";
    let ran = lose(script).succeeds().takes(8.0);
    assert_eq!(ran.world.starts().len(), 6);
    let script = "forall x in 5 6 keep going\ntry 2 times backoff none atomic\nwork $x\nend\nend";
    lose(script).succeeds().takes(8.0);
    let ran = lose("forall x in 5 6 keep going; work $x; end").fails("lost", 1).takes(2.0);
    assert_eq!(ran.world.starts().len(), 2);
}

#[test]
fn variables_keep_their_value_before_a_lost_command() {
    let world = || {
        world().model(|simulated| {
            simulated.command("slow", |_, _| Model::succeeds().takes(seconds(5.0)).prints("new\n"))
        })
    };
    let ends = [(2.0, End::For(Duration::ZERO))];
    for (before, writes) in [
        ("v=old", "slow -> v"),
        ("echo -n old -> v", "slow -> v"),
        ("v=old", "slow -> v 2-> w"),
        ("echo -n old -> v", "slow 2-> w -> v"),
        ("v=old", "slow -> v -> w"),
    ] {
        let script = format!("{before}\nw=w\ntry 1 time\n{writes}\ncatch\necho -n $v $w\nend");
        let (ran, _) = run(world(), &ends, &script);
        assert_eq!(ran.succeeds().world.stdout(), "old w", "{script}");
    }
    let (ran, _) = run(world(), &ends, "try 2 times backoff none\nslow -> v\nend\necho -n $v");
    assert_eq!(ran.succeeds().world.stdout(), "new");
    // A command cut short leaves its output so far.
    let (ran, _) = run(world(), &[], "v=old\ntry for 1 second\nslow -> v\ncatch\necho -n $v\nend");
    assert_eq!(ran.succeeds().world.stdout(), "new");
}

#[test]
fn a_group_whose_command_is_lost_fails() {
    let ran = lose("try; ok; finally; work 5; end").fails("lost", 1);
    assert_eq!(ran.message(), "script:1: `work 5` was running when the shell ended");
    lose("try 1 time; fail 3; finally; work 5; end").fails("exit", 3);
}

#[test]
fn ending_runs_continue_to_end() {
    let script = "try 1 time; stubborn; catch; ok; end";
    let script = script.replace("1 time", "for 1 second or 1 time");
    let ran = lose(&script).succeeds().takes(2.0);
    assert_eq!(ran.world.starts().len(), 2);
    let ran = lose("forall x in 1 2\nif $x .eq. 1; slowfail 1; end\nstubborn\nend");
    ran.fails("exit", 1).takes(2.0);
}

#[test]
fn a_lost_outer_attempt_undoes_no_cut() {
    // The signal arrives at 1 s, and the shell ends at 2 s: the attempt around the group is lost.
    let script = "forall x in 1; try 2 times backoff none atomic\n\
                  try; ok; finally; work 5; end; end; end";
    let world = world().config(|config| config.kill_timeout = seconds(10.0));
    let world = world.model(|model| model.signal_at(seconds(1.0), 15));
    let (ran, _) = run(world, &[(2.0, End::For(seconds(1.0)))], script);
    assert_eq!(ran.outcome, Outcome::Interrupted(15));
    assert_eq!(ran.world.starts().len(), 2, "{}", ran.world.trace());
}

#[test]
fn a_pipeline_in_a_group_whose_share_has_passed_meanwhile_undoes_no_cut() {
    // The limit passes at 1 s, and the group may run until 3 s. The shell is away from 2 s to 10 s.
    let script = "try for 1 second\ntry; ok; finally\n\
                  ok | try; work 9; finally; work 1; end\nend; end";
    let world = world().config(|config| config.kill_timeout = seconds(4.0));
    let (ran, _) = run(world, &[(2.0, End::For(seconds(8.0)))], script);
    ran.fails("timeout", 124);
}

#[test]
fn shells_can_end_repeatedly() {
    let ends: Vec<_> = (1..9).map(|at| (f64::from(at) * 2.0, End::For(seconds(1.0)))).collect();
    let script = "try 99 times backoff none\nwork 5\nend";
    let (ran, log) = run(world(), &ends, script);
    assert_eq!(ran.succeeds().takes(22.0).world.starts().len(), 9);
    let resumed = log.iter().filter(|event| **event == LogEvent::Resumed { lost: 1 });
    assert_eq!(resumed.count(), 8);
}

#[test]
fn the_log_reports_the_loss_first() {
    let (_, log) = run(world(), &[(2.0, End::For(seconds(60.0)))], "try for 9 seconds; hang; end");
    let at = |so: fn(&LogEvent) -> bool| log.iter().position(so).expect("logged");
    let resumed = at(|event| matches!(event, LogEvent::Resumed { lost: 1 }));
    assert!(resumed < at(|event| matches!(event, LogEvent::CommandFailed(_))));
}

#[test]
fn output_being_flushed_is_lost() {
    let script = "forall x in 1 2 output grouped\necho $x\nend";
    let mut world = Interrupted {
        world: world().simulated,
        ends: VecDeque::new(),
        pending: VecDeque::new(),
        commands: BTreeSet::new(),
        entries: BTreeMap::new(),
        inside: BTreeSet::new(),
        log: Vec::new(),
    };
    let parsed = ftsh_syntax::parse("script", script).expect("a script");
    let mut machine = Machine::new(&parsed, vec!["s".into()], vec![], Config::default(), 7);
    let outcome = loop {
        match machine.poll_output() {
            Output::Effect(Effect::Run(run)) if matches!(run.action, Action::Copy) => {
                let (lost, committed) = (vec![run.process], Vec::new());
                machine.handle_event(world.now(), Event::Resumed { lost, committed });
            }
            Output::Effect(effect) => world.perform(effect),
            Output::Timeout(until) => {
                let event = world.wait(until).expect("an event");
                machine.handle_event(world.now(), event);
            }
            Output::Finished(outcome) => break outcome,
        }
    };
    let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
    let message = "the output of a branch cannot be written: the shell ended meanwhile";
    assert_eq!((failure.kind.name(), failure.message.as_str()), ("lost", message));
}

#[test]
fn an_exec_ends_the_run() {
    for (script, outcome) in [
        ("exec work 5", Outcome::Succeeded),
        ("try for 3 seconds; exec work 5; finally; echo no; end", Outcome::Succeeded),
        ("try 9 times; exec fail 3; catch; echo no; finally; echo no; end", Outcome::Exited(3)),
        (
            "function f; exec fail 3; end; try 1 time; f | cat; catch; exec fail 4; end",
            Outcome::Exited(4),
        ),
        ("channel c at most 1\ntry through c; exec fail 3; end", Outcome::Exited(3)),
    ] {
        let (ran, _) = run(world(), &[], script);
        assert_eq!((ran.outcome, ran.world.stdout().as_str()), (outcome, ""), "{script}");
    }
    let killed = |simulated: Simulated| {
        simulated.command("killed", |_, _| Model::ends(CommandStatus::Signaled(9)))
    };
    let (ran, _) = run(world().model(killed), &[], "try; exec killed; end");
    assert_eq!(ran.outcome, Outcome::Interrupted(9));
    // Processes left running earlier continue.
    let (ran, _) = run(world(), &[], "try; daemon; exec fail 3; end");
    assert_eq!(ran.world.running(), ["daemon"]);
    // A missing program can be tried again.
    let (ran, _) = run(world(), &[], "try 2 times backoff none; exec no-such; catch; ok; end");
    ran.succeeds();
    let ran = lose("try 9 times; exec work 5; end").fails("lost", 1);
    assert_eq!(ran.world.starts().len(), 1);
}
