//! Dispatched branches: requests to an engine with their times, and the handling of its answers.

use std::collections::{BTreeMap, VecDeque};
use std::iter::successors;
use std::time::Duration;

use bstr::{BString, ByteSlice};
use ftsh_machine::driver::{self, Driver};
use ftsh_machine::effect::{Dispatch, ProcessId, ScopeId};
use ftsh_machine::event::{Blame, Returned};
use ftsh_machine::outcome::Retry;
use ftsh_machine::packed::{BranchEnd, BranchFiles, EndedBranch, PackedFailure, PackedValue};
use ftsh_machine::record::spans::RemoteSpans;
use ftsh_machine::record::{Level, LogEvent};
use ftsh_machine::{Config, Effect, Event, Failure, FailureKind, Machine, Outcome, Time};
use ftsh_sim::Simulated;
use ftsh_syntax::parse;

/// Fate of a dispatched branch.
#[derive(Clone)]
enum Fate {
    /// Begins, and ends after a second.
    Ends(BranchEnd),
    /// Begins, and is lost after a second.
    Vanishes,
    /// Begins, and lacks a file after a second.
    Gives(&'static str),
    /// Does not begin.
    Refused(Blame),
    /// Begins, and continues until a kill.
    GoesOn,
}
use Fate::{Ends, Gives, GoesOn, Refused, Vanishes};

/// World with an engine that follows a script and records requests.
struct Cluster {
    world: Simulated,
    /// Fate of each dispatched branch, with its machine.
    fates: VecDeque<(&'static str, Fate)>,
    future: Vec<(Time, Event)>,
    sent: Vec<(f64, String, Vec<String>)>,
    files: Vec<BranchFiles>,
    alive: Vec<(ProcessId, ScopeId)>,
    parents: BTreeMap<ScopeId, ScopeId>,
    most: usize,
    events: Vec<LogEvent>,
}

impl Cluster {
    fn new(fates: Vec<(&'static str, Fate)>) -> Self {
        Self {
            world: Simulated::new(1),
            fates: fates.into(),
            future: Vec::new(),
            sent: Vec::new(),
            files: Vec::new(),
            alive: Vec::new(),
            parents: BTreeMap::new(),
            most: 0,
            events: Vec::new(),
        }
    }

    fn dispatch(&mut self, dispatch: Dispatch) {
        let word = match &dispatch.branch.word {
            PackedValue::Text(text) => text.to_string(),
            other => format!("{other:?}"),
        };
        let now = self.now();
        self.files.push(dispatch.branch.files);
        self.sent.push((now.elapsed().as_secs_f64(), word, dispatch.avoid));
        let (node, fate) = self.fates.pop_front().unwrap_or(("n1", Ends(BranchEnd::Succeeded)));
        let (process, later) = (dispatch.process, now + Duration::from_secs(1));
        let node = node.to_owned();
        let returned = match fate {
            Refused(blame) => {
                let why = "it said no".into();
                let returned = Returned::NotBegun { node: Some(node), why, blame };
                self.future.push((now, Event::Returned { process, returned }));
                return;
            }
            GoesOn => None,
            Gives(why) => Some(Returned::Files { node: Some(node.clone()), why: why.into() }),
            Vanishes => Some(Returned::Lost { node: Some(node.clone()), why: "no word".into() }),
            Ends(end) => {
                let ended = Box::new(EndedBranch {
                    end,
                    attempts: 1,
                    texts: Vec::new(),
                    spans: RemoteSpans::default(),
                });
                let elapsed = Duration::from_secs(1);
                Some(Returned::Ended { node: node.clone(), elapsed, ended })
            }
        };
        self.alive.push((process, dispatch.scope));
        self.most = self.most.max(self.alive.len());
        self.future.push((now, Event::Placed { process, node }));
        self.future.extend(returned.map(|returned| (later, Event::Returned { process, returned })));
    }
}

impl Driver for Cluster {
    fn now(&self) -> Time {
        self.world.now()
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Dispatch(dispatch) => self.dispatch(*dispatch),
            Effect::OpenScope { scope, parent, pass } => {
                self.parents.insert(scope, parent);
                self.world.perform(Effect::OpenScope { scope, parent, pass });
            }
            Effect::Terminate(scope) => {
                let around = |of: &ScopeId| self.parents.get(of).copied();
                let is_in = |of| successors(Some(of), around).any(|it| it == scope);
                self.alive.retain(|(_, of)| !is_in(*of));
                self.world.perform(Effect::Terminate(scope));
            }
            Effect::Log(record) => self.events.push(record.event),
            effect => self.world.perform(effect),
        }
    }

    fn wait(&mut self, until: Time) -> Option<Event> {
        let next = (0..self.future.len()).min_by_key(|at| self.future[*at].0);
        let due = next.map_or(Time::NEVER, |at| self.future[at].0);
        if let Some(event) = self.world.wait(until.min(due)) {
            return Some(event);
        }
        let next = next.filter(|_| due <= until)?;
        let (_, event) = self.future.remove(next);
        if let Event::Returned { process, .. } = &event {
            self.alive.retain(|(alive, _)| alive != process);
        }
        Some(event)
    }
}

fn run_with(script: &str, fates: Vec<(&'static str, Fate)>, config: Config) -> (Cluster, Outcome) {
    let script = parse("script", script).expect("a script");
    let mut cluster = Cluster::new(fates);
    let is_default = config.log_level == Level::NOTHING;
    let log_level = if is_default { Level::STRUCTURES } else { config.log_level };
    let config = Config { log_level, ..config };
    let mut machine = Machine::new(&script, vec!["script".into()], Vec::new(), config, 7);
    let outcome = driver::run(&mut machine, &mut cluster);
    assert!(cluster.alive.is_empty(), "something is left");
    (cluster, outcome)
}

fn run(script: &str, fates: Vec<(&'static str, Fate)>) -> (Cluster, Outcome) {
    run_with(script, fates, Config::default())
}

fn words(cluster: &Cluster) -> Vec<&str> {
    cluster.sent.iter().map(|(_, word, _)| word.as_str()).collect()
}

fn kind(outcome: &Outcome) -> FailureKind {
    match outcome {
        Outcome::Failed(failure) => failure.kind,
        other => panic!("{other:?}"),
    }
}

fn failed(kind: FailureKind, again: Retry) -> Fate {
    let failure = Failure::new(kind, 7, "`job` exited with 7".into(), "job".into());
    let failure = vec![PackedFailure { failure: Failure { line: 2, ..failure }, text: 0 }];
    Ends(BranchEnd::Failed { failure, again })
}

#[test]
fn branches_are_dispatched_and_return_their_results() {
    let (cluster, outcome) = run("forall x in a b c on slurm\n job $x\nend", Vec::new());
    assert_eq!((outcome, words(&cluster)), (Outcome::Succeeded, vec!["a", "b", "c"]));
    let fates = vec![("n1", failed(FailureKind::Exit, Retry::AsUsual))];
    let (_, outcome) = run("forall x in a on slurm\n job $x\nend", fates);
    let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
    assert_eq!((failure.kind, failure.code, failure.line), (FailureKind::Exit, 7, 2));
    assert_eq!(&**failure.file(), "script");
}

#[test]
fn files_travel_with_branches() {
    let script = "forall x in a b on slurm retry lost 3 times takes lib/y \"$x.in\" ./lib//\\\n \
                  gives \"out/$x\"\n job\nend";
    let (cluster, outcome) = run(script, Vec::new());
    let shown = |names: &[BString]| bstr::join(" ", names).to_str_lossy().into_owned();
    let files: Vec<_> =
        cluster.files.iter().map(|it| (shown(&it.takes), shown(&it.gives))).collect();
    let expected = [("a.in lib", "out/a"), ("b.in lib", "out/b")];
    assert_eq!(files, expected.map(|(takes, gives)| (takes.into(), gives.into())));
    assert_eq!(outcome, Outcome::Succeeded);
    // A failure of the branch, which is not started again as if lost.
    let (cluster, outcome) = run(script, vec![("n1", Gives("`out/a` is gone")), ("n2", GoesOn)]);
    let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
    assert_eq!((failure.kind, failure.code, words(&cluster)), (FailureKind::Io, 1, vec!["a", "b"]));
    assert_eq!(failure.message, "`out/a` is gone");
    // The names are checked before a branch is dispatched.
    let script = "forall x in a ../b on slurm takes $x\n job\nend";
    let (cluster, outcome) = run(script, vec![("n1", GoesOn)]);
    assert_eq!((kind(&outcome), words(&cluster)), (FailureKind::Io, vec!["a"]));
}

#[test]
fn failures_cancel_branches_on_all_machines() {
    let fates = vec![("n1", GoesOn), ("n2", failed(FailureKind::Exit, Retry::AsUsual))];
    let (cluster, outcome) = run("forall x in a b c d at most 2 on slurm\n job\nend", fates);
    assert_eq!(kind(&outcome), FailureKind::Exit);
    assert_eq!((words(&cluster), cluster.most), (vec!["a", "b"], 2));
}

#[test]
fn limits_cut_remote_branches() {
    let (cluster, outcome) = run(
        "try for 5 seconds\n forall x in a b on slurm\n job\n end\nend",
        vec![("n1", GoesOn), ("n2", GoesOn)],
    );
    assert_eq!(kind(&outcome), FailureKind::Timeout);
    assert_eq!(cluster.now(), Time::after(Duration::from_secs(5)));
}

#[test]
fn lost_branches_restart_elsewhere_only_on_request() {
    let (_, outcome) = run("forall x in a on slurm\n job\nend", vec![("n1", Vanishes)]);
    assert_eq!(kind(&outcome), FailureKind::Lost);
    let script = "forall x in a on slurm retry lost 2 times\n job\nend";
    let (cluster, outcome) = run(script, vec![("n1", Vanishes), ("n2", Vanishes)]);
    assert_eq!(outcome, Outcome::Succeeded);
    let avoided: Vec<_> = cluster.sent.iter().map(|(_, _, avoid)| avoid.concat()).collect();
    assert_eq!(avoided, ["", "n1", "n1n2"]);
    let (cluster, outcome) = run(script, vec![("n1", Vanishes); 3]);
    assert_eq!((kind(&outcome), cluster.sent.len()), (FailureKind::Lost, 3));
}

#[test]
fn branches_not_begun_are_dispatched_again_silently() {
    let fates = vec![("n1", Refused(Blame::Node)), ("n2", Refused(Blame::Node))];
    let (cluster, outcome) = run("forall x in a on slurm\n job\nend", fates);
    assert_eq!((outcome, cluster.sent.len()), (Outcome::Succeeded, 3));
    let (cluster, outcome) =
        run("forall x in a on slurm\n job\nend", vec![("n1", Refused(Blame::Node)); 99]);
    assert_eq!((kind(&outcome), cluster.sent.len()), (FailureKind::Engine, 10));
    // The second dispatch follows at once, and later ones after growing delays.
    let times: Vec<_> = cluster.sent.iter().map(|(at, ..)| *at).collect();
    assert_eq!((times[1], times[9] > 10.0), (0.0, true), "{times:?}");
}

#[test]
fn failing_engines_are_queried_by_one_branch_with_backoff() {
    let fates = vec![("", Refused(Blame::Engine)); 60];
    let (cluster, outcome) = run("forall x in 1 .to. 50 on slurm\n job\nend", fates);
    assert_eq!((outcome, cluster.sent.len()), (Outcome::Succeeded, 110));
    let mut times: Vec<_> = cluster.sent.iter().map(|(at, ..)| *at).collect();
    assert_eq!((times[49], times[109] > 20.0), (0.0, true), "{times:?}");
    times.drain(..50);
    times.truncate(11);
    times.dedup();
    assert_eq!(times.len(), 11, "one at a time: {times:?}");
    // Limits still apply.
    let script = "try for 10 seconds\n forall x in a b on slurm\n job\n end\nend";
    let (cluster, outcome) = run(script, vec![("", Refused(Blame::Engine)); 99]);
    assert_eq!(kind(&outcome), FailureKind::Timeout);
    assert_eq!(cluster.now(), Time::after(Duration::from_secs(10)));
    let Outcome::Failed(failure) = outcome else { panic!() };
    assert!(failure.earlier.is_some_and(|it| it.kind == FailureKind::Engine));
}

#[test]
fn impossible_options_fail_at_once() {
    let (cluster, outcome) =
        run("forall x in a on slurm '--nope'\n job\nend", vec![("", Refused(Blame::Request))]);
    assert_eq!((kind(&outcome), cluster.sent.len()), (FailureKind::Engine, 1));
}

#[test]
fn options_impossible_on_all_machines_fail() {
    // Without a list of machines to avoid, the exclusion is an error.
    let fates = vec![("", Refused(Blame::Exclusion)); 99];
    let (cluster, outcome) = run("forall x in a on slurm '--mem=1P'\n job\nend", fates);
    assert_eq!((kind(&outcome), cluster.sent.len()), (FailureKind::Engine, 1));
    // Otherwise half of the machines are used again, the earliest first.
    let mut fates = vec![("n1", Vanishes), ("n2", Vanishes), ("n3", Vanishes)];
    fates.extend(vec![("", Refused(Blame::Exclusion)); 99]);
    let script = "forall x in a on slurm retry lost 9 times\n job\nend";
    let (cluster, outcome) = run(script, fates);
    assert_eq!(kind(&outcome), FailureKind::Engine);
    let avoided: Vec<_> = cluster.sent.iter().map(|(_, _, avoid)| avoid.join(" ")).collect();
    assert_eq!(avoided, ["", "n1", "n1 n2", "n1 n2 n3", "n3", ""]);
}

#[test]
fn dispatches_in_flight_are_bounded() {
    let script = "forall x in 1 .to. 1000 on slurm\n job\nend";
    let (cluster, outcome) = run(script, Vec::new());
    assert_eq!((outcome, cluster.most, cluster.sent.len()), (Outcome::Succeeded, 200, 1000));
}

#[test]
fn nested_branches_stay_on_the_node() {
    use ftsh_syntax::clauses::On;
    use ftsh_syntax::engine::EngineId;
    let on = Some(On { engine: EngineId::Ssh, options: Some("host".into()) });
    let config = Config { on, ..Config::default() };
    let (cluster, outcome) = run_with("forall x in a b\n job\nend", Vec::new(), config);
    assert_eq!((outcome, words(&cluster)), (Outcome::Succeeded, vec!["a", "b"]));
}

#[test]
fn branches_ended_by_others_are_lost() {
    let fates = vec![("n1", Ends(BranchEnd::Canceled(15)))];
    let (_, outcome) = run("forall x in a on slurm\n job\nend", fates);
    let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
    assert_eq!(failure.kind, FailureKind::Lost);
    assert!(failure.message.ends_with("it was ended by SIGTERM"), "{}", failure.message);
}

#[test]
fn the_log_has_the_machines_of_branches() {
    let fates = vec![
        ("n1", Refused(Blame::Node)),
        ("n2", Vanishes),
        ("n3", failed(FailureKind::Exit, Retry::AsUsual)),
    ];
    let (cluster, _) = run("forall x in a on slurm retry lost 1 time\n job\nend", fates);
    let logged = cluster.events.iter().filter_map(|event| match event {
        LogEvent::NotSent { node, why, .. } => Some(format!("{node:?}: {why}")),
        LogEvent::Placed { node } => Some(format!("on {node}")),
        LogEvent::Avoided { node, why, time } => {
            Some(format!("not {node}: {} {time:?}", why.name()))
        }
        LogEvent::BranchEnded { node, .. } => Some(format!("was on {node:?}")),
        _ => None,
    });
    assert_eq!(
        logged.collect::<Vec<_>>(),
        [
            "not n1: refused 1s",
            "Some(\"n1\"): it said no",
            "on n2",
            "not n2: lost 1s",
            "on n3",
            "not n3: failed 1s",
            "was on Some(\"n3\")",
        ]
    );
}

#[test]
fn a_minute_without_any_machine_is_logged_for_all() {
    let notices = |script: &str, fates: Vec<(&'static str, Fate)>| {
        let config = Config { log_level: Level::ENDING, ..Config::default() };
        let (cluster, _) = run_with(script, fates, config);
        let idle = cluster.events.into_iter().filter_map(|event| match event {
            LogEvent::NotSent { idle, .. } => Some(idle.expect("a long time").as_secs()),
            _ => None,
        });
        idle.collect::<Vec<_>>()
    };
    let script = "try for 1 hour or 1 time\n forall x in a on slurm\n job\n end\nend";
    for blame in [Blame::Engine, Blame::Node] {
        let idle = notices(script, vec![("n1", Refused(blame)); 999]);
        let first = usize::from(blame == Blame::Engine);
        assert!(idle.len() >= first && idle.len() <= 6, "{idle:?}");
        assert!(idle.iter().all(|idle| *idle >= 60), "{idle:?}");
        assert!(idle.windows(2).all(|pair| pair[1] >= 2 * pair[0]), "{idle:?}");
    }
    // A machine that runs branches is enough, even if it has no room.
    let busy = "try for 1 hour or 1 time\n forall x in a b on slurm\n job\n end\nend";
    let mut fates = vec![("n1", GoesOn)];
    fates.extend(vec![("n2", Refused(Blame::Node)); 999]);
    assert_eq!(notices(busy, fates), [0; 0]);
}

#[test]
fn canceled_branches_have_the_machine_they_began_on() {
    let ended = |script, fates| {
        let (cluster, _) = run(script, fates);
        let nodes = cluster.events.into_iter().filter_map(|event| match event {
            LogEvent::BranchEnded { node, .. } => Some(node),
            _ => None,
        });
        nodes.collect::<Vec<_>>()
    };
    let refused = vec![("n1", Refused(Blame::Request))];
    assert_eq!(ended("forall x in a on slurm\n job\nend", refused), [None]);
    let cut = "try for 1 minute or 1 time\n forall x in a on slurm\n job\n end\nend";
    assert_eq!(ended(cut, vec![("n1", GoesOn)]), [Some("n1".into())]);
    assert_eq!(ended("forall x in a\n true\nend", Vec::new()), [None]);
}

#[test]
fn each_outer_attempt_dispatches_again() {
    let script = "try 3 times\n forall x in a on slurm\n job\n end\nend";
    let failing = failed(FailureKind::Exit, Retry::AsUsual);
    let (cluster, outcome) = run(script, vec![("n1", failing.clone()), ("n2", failing)]);
    assert_eq!((outcome, cluster.sent.len()), (Outcome::Succeeded, 3));
    let fates = vec![("n1", failed(FailureKind::Giveup, Retry::Never))];
    let (cluster, outcome) = run(script, fates);
    assert_eq!((kind(&outcome), cluster.sent.len()), (FailureKind::Giveup, 1));
}
