//! Memory of the processes of one scope.

use super::reading::ProcessReader;
use ftsh_machine::event::MemoryUse;

/// Result of a sample of memory.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MemorySample {
    /// At most half of the limit.
    Low,
    /// More than half of the limit.
    High,
    /// More than the limit.
    Over(MemoryUse),
}

/// Compares the memory of these processes with a limit in bytes.
///
/// The bound of each process is cheap to read, but counts shared pages for each process. Only if
/// the bounds exceed the limit, the shares of the processes decide.
pub(super) fn sample(family: &[i32], limit: u64, reader: &mut dyn ProcessReader) -> MemorySample {
    let mut sizes: Vec<(u64, i32)> =
        family.iter().map(|&pid| (reader.memory_bound(pid), pid)).collect();
    if sum(&sizes) > limit {
        for (size, pid) in &mut sizes {
            if let Some(share) = reader.memory_share(*pid) {
                *size = share.min(*size);
            }
        }
    }
    let used = sum(&sizes);
    if used > limit {
        let (size, pid) = sizes.into_iter().max().unwrap_or_default();
        return MemorySample::Over(MemoryUse { used, largest: reader.name(pid), size });
    }
    if used > limit / 2 { MemorySample::High } else { MemorySample::Low }
}

fn sum(sizes: &[(u64, i32)]) -> u64 {
    sizes.iter().fold(0, |sum, (size, _)| sum.saturating_add(*size))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap};
    use std::io;

    use super::*;
    use crate::watch::reading::ProcessWork;

    /// Bounds and shares of processes.
    struct Fake(BTreeMap<i32, (u64, Option<u64>)>);

    impl ProcessReader for Fake {
        fn family(&mut self, roots: &[i32]) -> io::Result<Vec<i32>> {
            Ok(roots.to_vec())
        }

        fn work(&mut self, _: i32) -> Option<ProcessWork> {
            None
        }

        fn sockets(&mut self, _: &[i32]) -> HashMap<u64, u64> {
            HashMap::new()
        }

        fn memory_bound(&mut self, pid: i32) -> u64 {
            self.0[&pid].0
        }

        fn memory_share(&mut self, pid: i32) -> Option<u64> {
            self.0[&pid].1
        }

        fn name(&mut self, pid: i32) -> String {
            format!("process{pid}")
        }
    }

    #[test]
    fn shared_pages_count_once() {
        let mut fake = Fake([(1, (600, Some(310))), (2, (600, Some(290)))].into());
        assert_eq!(sample(&[1, 2], 1000, &mut fake), MemorySample::High);
        assert_eq!(sample(&[1, 2], 2000, &mut fake), MemorySample::High);
        assert_eq!(sample(&[1, 2], 2400, &mut fake), MemorySample::Low);
        let over = MemoryUse { used: 600, largest: "process1".into(), size: 310 };
        assert_eq!(sample(&[1, 2], 500, &mut fake), MemorySample::Over(over));
    }

    #[test]
    fn the_bound_decides_about_an_unreadable_process() {
        let mut fake = Fake([(1, (600, None)), (2, (500, Some(100)))].into());
        let over = MemoryUse { used: 700, largest: "process1".into(), size: 600 };
        assert_eq!(sample(&[1, 2], 650, &mut fake), MemorySample::Over(over));
        assert_eq!(sample(&[], 1, &mut fake), MemorySample::Low);
    }
}
