//! Parallel checks of many items, because the checks mostly wait.

use std::sync::Mutex;
use std::thread;

const AT_ONCE: usize = 4;

/// Fails if the check returns an error for an item.
pub(crate) fn none<T: Send>(things: Vec<T>, wrong: impl Fn(T) -> Option<String> + Sync) {
    let all = things.len();
    assert!(all > 0, "there is nothing to check");
    let things = Mutex::new(things.into_iter());
    let next = || things.lock().expect("nothing panics with it").next();
    let work = || std::iter::from_fn(next).filter_map(&wrong).collect::<Vec<String>>();
    let mut found: Vec<String> = thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no check panics")).collect()
    });
    found.sort();
    assert!(found.is_empty(), "{} of {all} failed\n\n{}", found.len(), found.join("\n"));
}
