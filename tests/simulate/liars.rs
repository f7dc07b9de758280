//! Branches of a carrier that lies, in worlds with all other faults: nothing that the carrier does
//! makes a false success, two starts at once, or leaves anything.

use crate::oracle::Judged;
use crate::program::{Node, Program};
use crate::run::check;
use crate::{COUNT, PROGRAMS, number};

/// Number of branches of a program.
const BRANCHES: usize = 16;

fn program() -> Program {
    let head =
        format!("forall x in 1 .to. {BRANCHES} at most 6 keep going on liar retry lost 9 times");
    let lines = ["noisy", "work 9", "try 2 times; flaky; end", "noisy"];
    let body = lines.map(|line| Node::Line(line.into())).into();
    let forall =
        Node::Block { promise: None, groups: vec![(head, body)], redirects: String::new() };
    Program { script: vec![forall], ..Program::default() }
}

#[test]
fn no_lie_of_a_carrier_is_believed() {
    let mut judged = Judged::default();
    for seed in 0..number(COUNT).unwrap_or(PROGRAMS) {
        let ran = check(&program(), seed);
        if let Some(violation) = ran.violation {
            panic!("seed {seed}, {}: {}", violation.oracle, violation.what);
        }
        judged.add(&ran.judged);
    }
    println!("{:?}", judged.0);
    for what in ["cut short", "fails", "not begun", "repeated output", "second start", "succeeds"] {
        let count = judged.0.get(&*format!("elsewhere: {what}")).copied();
        assert!(count > Some(20), "{what}: {count:?}");
    }
}
