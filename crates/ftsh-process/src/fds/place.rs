//! Order in which commands and structures receive descriptors, by their position in the tree of
//! structures.

use std::cmp::{Ordering, Reverse};
use std::sync::Arc;

/// Maximum depth. Deeper positions differ only by age.
const DEEPEST: usize = 32;

/// Position in the tree of structures. Lower positions are served first: older before newer, inner
/// before outer, readers of a pipe before writers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place(Option<Arc<[Step]>>);

/// Step from a structure to an inner one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Step {
    /// Number of the structure, by age. All stages of a pipeline have the number of the first
    /// stage.
    pub unit: u64,
    /// Part of the structure.
    pub part: Part,
}

/// Part of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// All of the structure.
    Whole,
    /// A stage of a pipeline that has no pipes yet.
    Opening(u64),
    /// A stage of a pipeline.
    Stage(Reverse<u64>),
}

impl Place {
    /// Returns a position inside this one.
    pub fn inside(&self, step: Step) -> Self {
        let steps = self.steps();
        if steps.len() >= DEEPEST {
            return self.clone();
        }
        Self(Some(steps.iter().copied().chain([step]).collect()))
    }

    /// Returns the position of a stage once it has its pipes.
    pub fn opened(&self) -> Self {
        match self.steps() {
            [around @ .., Step { unit, part: Part::Opening(io) }] => {
                let stage = Step { unit: *unit, part: Part::Stage(Reverse(*io)) };
                Self(Some(around.iter().copied().chain([stage]).collect()))
            }
            _ => self.clone(),
        }
    }

    /// Returns the steps from the root.
    pub fn steps(&self) -> &[Step] {
        self.0.as_deref().unwrap_or_default()
    }

    /// Returns the enclosing stages of pipelines.
    pub fn stages(&self) -> impl Iterator<Item = Step> {
        self.steps().iter().filter(|step| step.part != Part::Whole).copied()
    }
}

impl Ord for Place {
    fn cmp(&self, other: &Self) -> Ordering {
        let (these, others) = (self.steps(), other.steps());
        let differ = these.iter().zip(others).map(|(one, other)| one.cmp(other));
        differ.fold(Ordering::Equal, Ordering::then).then(others.len().cmp(&these.len()))
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(unit: u64) -> Step {
        Step { unit, part: Part::Whole }
    }

    fn stage(unit: u64, io: u64) -> Step {
        Step { unit, part: Part::Stage(Reverse(io)) }
    }

    #[test]
    fn older_inner_and_reading_ones_come_first() {
        let top = Place::default();
        let opening = Step { unit: 7, part: Part::Opening(9) };
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
        let deep = (0..1000).fold(Place::default(), |place, unit| place.inside(whole(unit)));
        assert_eq!(deep.steps().len(), DEEPEST);
    }
}
