//! Branches packed by one machine and executed by another.

use std::collections::VecDeque;

use ftsh_machine::driver::{self, Driver};
use ftsh_machine::event::{Blame, Returned};
use ftsh_machine::packed::{BranchEnd, PackedBranch, Unpackable};
use ftsh_machine::secrets::Secrets;
use ftsh_machine::{Config, Effect, Event, Machine, Time};
use ftsh_remote::{Frames, frame};
use ftsh_sim::{Model, Simulated};
use ftsh_syntax::uses::{UsedFile, UsedFiles, parse_with_files};
use ftsh_syntax::{Script, parse};

/// World that counts requests to pass a channel.
struct Counting {
    world: Simulated,
    entered: usize,
}

impl Counting {
    fn new() -> Self {
        let world = Simulated::new(1)
            .command("ok", |_, _| Model::succeeds())
            .command("fail", |_, _| Model::fails(1));
        Self { world, entered: 0 }
    }
}

impl Driver for Counting {
    fn now(&self) -> Time {
        self.world.now()
    }

    fn perform(&mut self, effect: Effect) {
        self.entered += usize::from(matches!(effect, Effect::Enter(_)));
        self.world.perform(effect);
    }

    fn wait(&mut self, until: Time) -> Option<Event> {
        self.world.wait(until)
    }
}

/// Returns the branches of a script's `forall`s at their start.
fn packed_with(script: &str, config: Config) -> Vec<Result<PackedBranch, Unpackable>> {
    packed_of(&parse("script", script).expect("a script"), config)
}

fn packed_of(script: &Script, config: Config) -> Vec<Result<PackedBranch, Unpackable>> {
    let environment = ["A", "B", "PASSWORD"].map(|name| (name.into(), "value".into()));
    let mut machine = Machine::new(script, vec!["script".into()], environment.into(), config, 7);
    machine.pack_branches();
    driver::run(&mut machine, &mut Counting::new());
    machine.take_packed().into_iter().map(|(_, packed)| packed).collect()
}

/// Runs the first branch of a script on another machine. Returns its end and the other machine.
pub(crate) fn first_branch(
    script: &str,
    mut here: Simulated,
    mut there: Simulated,
) -> (BranchEnd, Simulated) {
    let script = parse("script", script).expect("a script");
    let words = vec!["script".into()];
    let mut machine = Machine::new(&script, words, Vec::new(), Config::default(), 7);
    machine.pack_branches();
    driver::run(&mut machine, &mut here);
    let packed = machine.take_packed().remove(0).1.expect("a branch");
    let mut machine = Machine::of_branch(packed, Time::START).expect("a branch");
    driver::run(&mut machine, &mut there);
    (machine.branch_ended_with().expect("its end").end, there)
}

fn packed(script: &str) -> Vec<PackedBranch> {
    let packed = packed_with(script, Config::default()).into_iter();
    packed.map(|packed| packed.expect("a branch")).collect()
}

/// Returns the number of requests of a branch on another machine to pass a channel.
fn entered(packed: &PackedBranch) -> usize {
    let mut world = Counting::new();
    let mut machine = Machine::of_branch(packed.clone(), Time::START).expect("a branch");
    driver::run(&mut machine, &mut world);
    assert_eq!(machine.branch_ended_with().expect("its end").end, BranchEnd::Succeeded);
    world.entered
}

#[test]
fn a_branch_on_another_machine_gives_its_files() {
    let script = "forall x in a gives \"$x.out\"\n echo $x > $target\nend";
    for (target, is_there) in [("a.out", true), ("other", false)] {
        let mut branch = packed(&format!("target={target}\n{script}")).remove(0);
        branch.files.gives = vec!["a.out".into()];
        let mut machine = Machine::of_branch(branch, Time::START).expect("a branch");
        driver::run(&mut machine, &mut Counting::new());
        match machine.branch_ended_with().expect("its end").end {
            BranchEnd::Succeeded => assert!(is_there),
            BranchEnd::Failed { failure, .. } => {
                assert!(!is_there);
                assert_eq!(failure[0].failure.kind, ftsh_machine::FailureKind::Io);
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Otherwise the branch would wait for its own place.
#[test]
fn passed_channels_travel_with_branches() {
    let script = |around: &str| {
        format!(
            "channel c at most 1\nchannel d at most 1\ntry 1 time {around}\n forall x in a\n \
             try through c\n ok\n end\n try through d\n ok\n end\n end\nend"
        )
    };
    assert_eq!(entered(&packed(&script(""))[0]), 2);
    assert_eq!(entered(&packed(&script("through c"))[0]), 1);
    let deeper = "channel c at most 1\ntry 1 time through c\n forall x in a\n forall y in b\n \
                  try through c\n ok\n end\n end\n end\nend";
    assert_eq!(packed(deeper).iter().map(entered).collect::<Vec<_>>(), [0, 0]);
}

#[test]
fn retries_travel_with_branches() {
    let branches = packed("try 2 times\n forall x in a\n fail\n end\ncatch\n ok\nend");
    let retried: Vec<_> = branches.iter().map(|packed| packed.around.is_retried).collect();
    assert_eq!(retried, [false, true]);
}

#[test]
fn atomic_attempts_cannot_travel() {
    let script = "try 1 time atomic\n forall x in a\n ok\n end\nend";
    let branches = packed_with(script, Config::default());
    assert_eq!(branches, [Err(Unpackable::Atomic)]);
}

#[test]
fn branches_have_repeatable_random_numbers() {
    let seeds = || {
        let script = "for i in 1 2; forall x in 1 .to. 3; ok; end; end";
        packed(script).iter().map(|packed| packed.seed).collect::<Vec<_>>()
    };
    let mut all = seeds();
    assert_eq!(all, seeds());
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 6);
}

#[test]
fn unset_variables_and_secrets_travel() {
    let secrets = Secrets::new(vec!["PASSWORD".into()], b"given secret");
    let config = Config { secrets, ..Config::default() };
    let script = "unset A\nPASSWORD=changed\nforall x in a; unset B; end";
    let branch = packed_with(script, config).swap_remove(0).expect("a branch");
    let mut frames = Frames::<PackedBranch>::default();
    frames.push(&frame(&branch).expect("short"));
    let branch = frames.message().expect("whole").expect("all of it");
    assert_eq!(branch.unset, ["A".into()]);
    let hidden = branch.config.secrets.hide("value, changed, given secret").into_owned();
    assert_eq!(hidden, "***, ***, ***");
    assert!(!format!("{:?}", branch.config).contains("given secret"), "{:?}", branch.config);
}

/// Engine that refuses, until the requesting shell dies.
struct Refusing {
    world: Simulated,
    sent: usize,
    events: VecDeque<Event>,
}

impl Driver for Refusing {
    fn now(&self) -> Time {
        self.world.now()
    }

    fn perform(&mut self, effect: Effect) {
        let Effect::Dispatch(branch) = &effect else { return self.world.perform(effect) };
        self.sent += 1;
        let not_begun = |blame| {
            let (process, why) = (branch.process, "it is down".into());
            let returned = Returned::NotBegun { node: None, why, blame };
            Event::Returned { process, returned }
        };
        self.events.push_back(match self.sent {
            1 | 2 => not_begun(Blame::Engine),
            3 => Event::Resumed { lost: vec![branch.process], committed: Vec::new() },
            _ => not_begun(Blame::Request),
        });
    }

    fn wait(&mut self, until: Time) -> Option<Event> {
        self.events.pop_front().or_else(|| self.world.wait(until))
    }
}

/// Only one branch asks an engine that has refused. After the loss of this branch, another branch
/// asks.
#[test]
fn engines_are_queried_again_after_a_lost_branch() {
    let script =
        parse("script", "forall x in a b keep going on slurm\n ok\nend").expect("a script");
    let mut machine = Machine::new(&script, Vec::new(), Vec::new(), Config::default(), 7);
    let (world, events) = (Simulated::new(1), VecDeque::new());
    let mut driver = Refusing { world, sent: 0, events };
    driver::run(&mut machine, &mut driver);
    assert_eq!(driver.sent, 4);
}

/// The file that every `use` names.
struct OneFile(&'static str);

impl UsedFiles for OneFile {
    fn read(&mut self, _user: &str, path: &str) -> Result<UsedFile, String> {
        Ok(UsedFile { name: path.into(), identity: path.into(), text: self.0.into() })
    }
}

#[test]
fn a_branch_needs_no_copy_of_used_files() {
    let mut files =
        OneFile("channel k at most 1\nfunction f\n    try through k\n        ok\n    end\nend");
    let script = b"use lib.ftsh\nforall x in a b\n    f\nend";
    let script = parse_with_files("script", script, &mut files).expect("a script");
    let packed = packed_of(&script, Config::default());
    assert_eq!(packed.len(), 2);
    for branch in packed {
        assert_eq!(entered(&branch.expect("a branch")), 1);
    }
}
