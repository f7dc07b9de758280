//! Variables that hold a descriptor without need, when there are too few.
//!
//! What a command left behind may still write to its variable: that is a file until it closes it.

use std::collections::HashSet;

use super::ProcessDriver;
use super::procs::features::Containment;
use super::procs::list;

impl ProcessDriver {
    /// Closes what variables have open without need; false if that is nothing.
    pub(super) fn put_away(&mut self) -> bool {
        if !self.io.has_idle() || !matches!(self.containment, Containment::Subreaper) {
            return false;
        }
        let Some(before) = self.left_behind() else { return false };
        let mut open = HashSet::new();
        for &pid in &before {
            match list::files(pid, b"ftsh") {
                Ok(files) => open.extend(files),
                Err(_) if list::one(pid).is_none() => {} // it has ended
                Err(_) => return false,
            }
        }
        // What they start meanwhile has open what they have.
        match self.left_behind() {
            Some(after) if after.is_subset(&before) => self.io.put_away(&open),
            _ => false,
        }
    }

    /// All that ended commands left running.
    fn left_behind(&mut self) -> Option<HashSet<i32>> {
        let mut stack = self.orphans()?;
        let mut found = HashSet::new();
        while let Some(pid) = stack.pop() {
            if found.insert(pid) {
                stack.extend(list::children(pid));
            }
        }
        Some(found)
    }
}
