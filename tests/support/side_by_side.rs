//! Parallel checks of many items, because the checks mostly wait.

use std::sync::Mutex;
use std::thread;

const AT_ONCE: usize = 4;

/// Fails if the check returns an error for an item.
pub(crate) fn none<T: Send>(things: Vec<T>, wrong: impl Fn(T) -> Option<String> + Sync) {
    let all = things.len();
    let mut found = found(things, wrong);
    found.sort();
    assert!(found.is_empty(), "{} of {all} failed\n\n{}", found.len(), found.join("\n"));
}

/// Returns what the check returns for the items, in any order.
pub(crate) fn found<T: Send, F: Send>(
    things: Vec<T>,
    check: impl Fn(T) -> Option<F> + Sync,
) -> Vec<F> {
    assert!(!things.is_empty(), "there is nothing to check");
    let things = Mutex::new(things.into_iter());
    let next = || things.lock().expect("nothing panics with it").next();
    let work = || std::iter::from_fn(next).filter_map(&check).collect::<Vec<_>>();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no check panics")).collect()
    })
}
