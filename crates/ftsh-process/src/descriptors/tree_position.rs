//! Order in which commands and structures receive descriptors, by their position in the tree of
//! structures.

use std::cmp::{Ordering, Reverse};
use std::sync::Arc;

/// Maximum depth. Deeper positions differ only by age.
const MAX_DEPTH: usize = 32;

/// Position in the tree of structures. Lower positions are served first: older before newer, inner
/// before outer, readers of a pipe before writers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreePosition(Option<Arc<[PositionStep]>>);

/// Step from a structure to an inner one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PositionStep {
    /// Number of the structure, by age. All stages of a pipeline have the number of the first
    /// stage.
    pub unit: u64,
    /// Part of the structure.
    pub part: StructurePart,
}

/// Part of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StructurePart {
    /// All of the structure.
    Whole,
    /// A stage of a pipeline that has no pipes yet.
    Opening(u64),
    /// A stage of a pipeline.
    Stage(Reverse<u64>),
}

impl TreePosition {
    /// Returns a position inside this one.
    pub fn inside(&self, step: PositionStep) -> Self {
        let steps = self.steps();
        if steps.len() >= MAX_DEPTH {
            return self.clone();
        }
        Self(Some(steps.iter().copied().chain([step]).collect()))
    }

    /// Returns the position of a stage once it has its pipes.
    pub fn opened(&self) -> Self {
        match self.steps() {
            [around @ .., PositionStep { unit, part: StructurePart::Opening(io) }] => {
                let stage = PositionStep { unit: *unit, part: StructurePart::Stage(Reverse(*io)) };
                Self(Some(around.iter().copied().chain([stage]).collect()))
            }
            _ => self.clone(),
        }
    }

    /// Returns the steps from the root.
    pub fn steps(&self) -> &[PositionStep] {
        self.0.as_deref().unwrap_or_default()
    }

    /// Returns the enclosing stages of pipelines.
    pub fn stages(&self) -> impl Iterator<Item = PositionStep> {
        self.steps().iter().filter(|step| step.part != StructurePart::Whole).copied()
    }
}

impl Ord for TreePosition {
    fn cmp(&self, other: &Self) -> Ordering {
        let (these, others) = (self.steps(), other.steps());
        let differ = these.iter().zip(others).map(|(one, other)| one.cmp(other));
        differ.fold(Ordering::Equal, Ordering::then).then(others.len().cmp(&these.len()))
    }
}

impl PartialOrd for TreePosition {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(unit: u64) -> PositionStep {
        PositionStep { unit, part: StructurePart::Whole }
    }

    fn stage(unit: u64, io: u64) -> PositionStep {
        PositionStep { unit, part: StructurePart::Stage(Reverse(io)) }
    }

    #[test]
    fn older_inner_and_reading_ones_come_first() {
        let top = TreePosition::default();
        let opening = PositionStep { unit: 7, part: StructurePart::Opening(9) };
        let ordered = [
            top.inside(whole(1)).inside(whole(4)),
            top.inside(whole(1)).inside(whole(5)),
            top.inside(whole(1)),
            top.inside(whole(3)),
            top.inside(opening),
            top.inside(stage(7, 8)).inside(whole(20)),
            top.inside(stage(7, 8)),
            top.inside(stage(7, 7)).inside(whole(10)),
            top.inside(whole(8)),
            top,
        ];
        assert!(ordered.is_sorted());
    }

    #[test]
    fn the_way_to_a_place_is_no_longer_than_needed() {
        let deep = (0..1000).fold(TreePosition::default(), |place, unit| place.inside(whole(unit)));
        assert_eq!(deep.steps().len(), MAX_DEPTH);
    }
}
