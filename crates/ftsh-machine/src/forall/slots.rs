//! Numbers of the running branches of a `forall`: `$slot`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroU32;

/// Numbers from 1 up, of which a new branch takes the lowest free one.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    free: BinaryHeap<Reverse<NonZeroU32>>,
    /// Highest number given out so far.
    highest: u32,
}

impl Slots {
    /// Takes the lowest free number.
    pub(crate) fn take(&mut self) -> NonZeroU32 {
        if let Some(Reverse(slot)) = self.free.pop() {
            return slot;
        }
        self.highest += 1;
        NonZeroU32::new(self.highest).unwrap_or(NonZeroU32::MIN)
    }

    /// Returns the number of an ended branch.
    pub(crate) fn give_back(&mut self, slot: NonZeroU32) {
        self.free.push(Reverse(slot));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_free_number_comes_next() {
        let mut slots = Slots::default();
        let mut take = |back: &[u32]| {
            for slot in back {
                slots.give_back(NonZeroU32::new(*slot).expect("above 0"));
            }
            [slots.take(), slots.take(), slots.take()].map(NonZeroU32::get)
        };
        assert_eq!(take(&[]), [1, 2, 3]);
        assert_eq!(take(&[3, 1]), [1, 3, 4]);
    }
}
