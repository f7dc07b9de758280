//! Shrinks a program that breaks a promise while it breaks the same promise.

use crate::program::{Node, Program};
use crate::run::check;

/// Maximum number of programs to try.
const MOST_TRIES: usize = 3000;

/// Returns a smaller program with the same fault, often the smallest.
pub(crate) fn shrink(program: &Program, seed: u64, oracle: &str) -> Program {
    let mut smallest = program.clone();
    let mut tries = 0;
    let mut at = 0;
    loop {
        let Some(smaller) = candidates(&smallest, at) else { return smallest };
        for candidate in smaller {
            tries += 1;
            if tries > MOST_TRIES {
                return smallest;
            }
            let violation = check(&candidate, seed).violation;
            if violation.is_some_and(|violation| violation.oracle == oracle) {
                smallest = candidate;
                // Another node has moved to this position.
                at = at.wrapping_sub(1);
                break;
            }
        }
        at = at.wrapping_add(1);
    }
}

/// Returns variants of a program with the node at a position removed, replaced by its content, or
/// without its redirections. Positions follow the text. Returns none for a position past the end.
fn candidates(program: &Program, at: usize) -> Option<Vec<Program>> {
    let mut found = false;
    let mut candidates = Vec::new();
    let all: [Change; 3] = [nothing, inside, bare];
    for change in all {
        let mut smaller = program.clone();
        let mut left = at;
        let done = apply(&mut smaller.script, &mut left, change)
            .or_else(|| apply(&mut smaller.library, &mut left, change))
            .or_else(|| apply(&mut smaller.used, &mut left, change));
        found |= done.is_some();
        if done == Some(true) {
            candidates.push(smaller);
        }
    }
    found.then_some(candidates)
}

/// Changes the node at a position. Returns true if the change was possible, or none if the position
/// is outside.
fn apply(nodes: &mut Vec<Node>, left: &mut usize, change: Change) -> Option<bool> {
    for index in 0..nodes.len() {
        if *left == 0 {
            let Some(new) = change(&nodes[index]) else { return Some(false) };
            nodes.splice(index..=index, new);
            return Some(true);
        }
        *left -= 1;
        if let Some(done) = apply_inside(&mut nodes[index], left, change) {
            return Some(done);
        }
    }
    None
}

/// Changes a node inside a node.
fn apply_inside(node: &mut Node, left: &mut usize, change: Change) -> Option<bool> {
    match node {
        Node::Line(_) => None,
        Node::Block { groups, .. } => {
            groups.iter_mut().find_map(|(_, body)| apply(body, left, change))
        }
        Node::Pipeline(stages) => {
            stages.iter_mut().find_map(|(stage, _)| apply_inside(stage, left, change))
        }
    }
}

/// Returns the replacement of a node, if the change applies to the node.
type Change = fn(&Node) -> Option<Vec<Node>>;

#[allow(clippy::unnecessary_wraps)]
fn nothing(_: &Node) -> Option<Vec<Node>> {
    Some(Vec::new())
}

fn inside(node: &Node) -> Option<Vec<Node>> {
    match node {
        Node::Block { groups, .. } => {
            Some(groups.iter().flat_map(|(_, body)| body.iter().cloned()).collect())
        }
        Node::Pipeline(stages) => Some(stages.iter().map(|(stage, _)| stage.clone()).collect()),
        Node::Line(_) => None,
    }
}

fn bare(node: &Node) -> Option<Vec<Node>> {
    match node {
        Node::Block { promise, groups, redirects } if !redirects.is_empty() => {
            let (promise, groups) = (promise.clone(), groups.clone());
            Some(vec![Node::Block { promise, groups, redirects: String::new() }])
        }
        _ => None,
    }
}
