//! Machines that branches are dispatched to, with their faults.

use std::time::Duration;

use ftsh_machine::Time;
use ftsh_remote::Stream;
use ftsh_sim::cluster::{Fault, NodeClock, SimulatedCluster, SimulatedNode};

use crate::dice::Dice;

/// Maximum start and maximum duration of faults.
const LONG: Duration = Duration::from_secs(200);

/// Creates a cluster with a given rate of faults.
pub(super) fn random(dice: &mut Dice, trouble: f64) -> SimulatedCluster {
    let names = ["n1", "n2", "n3"];
    let nodes = names[..dice.number(1, 3)].iter().map(|name| node(dice, name, trouble)).collect();
    let lease = *dice.pick(&[1, 10, 60]);
    let mut cluster = SimulatedCluster::new(Duration::from_secs(lease), nodes).with_files();
    while dice.chance(trouble) {
        let (from, until) = period(dice);
        cluster = cluster.engine_down(from, until);
    }
    let mut dice = dice.fork();
    cluster.faults(move |_| dice.chance(trouble).then(|| fault(&mut dice)))
}

fn node(dice: &mut Dice, name: &str, trouble: f64) -> SimulatedNode {
    // Synchronized clocks differ by a twelfth at most, including the head's clock.
    let clocks =
        [NodeClock::RIGHT, NodeClock::new(12, 13), NodeClock::new(13, 12), NodeClock::new(11, 13)];
    let mut node = SimulatedNode::new(name, dice.number(1, 3)).clock(*dice.pick(&clocks));
    if dice.chance(0.3) {
        node = node.far(dice.time(Duration::from_secs(3)));
    }
    while dice.chance(trouble) {
        let (from, until) = period(dice);
        node = if dice.chance(0.5) { node.dead(from, until) } else { node.cut_off(from, until) };
    }
    node
}

fn fault(dice: &mut Dice) -> Fault {
    let after = dice.time(Duration::from_secs(100));
    *dice.pick(&[
        Fault::Refuses,
        Fault::Deaf(Duration::ZERO),
        Fault::Deaf(after),
        Fault::Swallows(after),
        Fault::Swallows(Duration::MAX),
        Fault::Lies(after),
        Fault::Breaks(after),
        Fault::Joins(Stream::Output),
        Fault::Joins(Stream::Errors),
        Fault::Drops(Stream::Output, Duration::ZERO),
        Fault::Drops(Stream::Errors, Duration::ZERO),
        Fault::Drops(Stream::Output, after),
        Fault::Drops(Stream::Errors, after),
        Fault::Repeats(after),
        Fault::StartsTwice(after),
        Fault::StartsTwice(Duration::ZERO),
        Fault::Steals(after),
    ])
}

fn period(dice: &mut Dice) -> (Time, Time) {
    let from = Time::after(dice.time(LONG));
    (from, from + dice.time(LONG))
}
