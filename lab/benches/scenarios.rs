//! Events a second: `cargo bench -p ftsh-lab`.

use std::time::Duration;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use ftsh_lab::common::{ClientCrowd, random};
use ftsh_lab::scenario::{occ, outage};
use ftsh_lab::world::queue::{Host, JobQueue};
use ftsh_lab::world::{ClientWorld, script};
use ftsh_syntax::backoff::Policy;

fn main() {
    divan::main();
}

fn crowd(text: &str) -> ClientCrowd {
    text.parse().expect("a policy")
}

/// Delays, as simulations draw them.
#[divan::bench(args = occ::POLICIES)]
fn delays(bencher: Bencher, text: &str) {
    let policy: Policy = text.parse().expect("a policy");
    let mut random = random(1, &[]);
    bencher.counter(ItemsCount::new(1000_u32)).bench_local(move || {
        let mut state = policy.start();
        let next = |_| policy.next_delay(&mut state, Duration::ZERO, &mut random);
        (0..1000).map(next).sum::<Duration>()
    });
}

/// Reads and writes of 100 clients that contend for a row.
#[divan::bench(args = occ::POLICIES)]
fn contention(bencher: Bencher, text: &str) {
    let crowd = crowd(text);
    let network = occ::Network::new(Duration::from_millis(10), Duration::from_millis(2));
    let network = network.expect("a network");
    let contend = || occ::contend(&crowd, 100, &network, random(1, &[]), |_| {});
    let events = 2 * contend().calls;
    bencher.counter(ItemsCount::new(events)).bench(|| black_box(contend()));
}

/// Retries of 1000 clients in an outage.
#[divan::bench(args = outage::POLICIES)]
fn retries(bencher: Bencher, text: &str) {
    let crowd = crowd(text);
    let retry = || {
        let mut random = random(1, &[]);
        let mut retries = 0_u64;
        for client in 0..1000 {
            let policy = crowd.policy(client);
            outage::retry(policy, Duration::from_secs(60), &mut random, |_| retries += 1);
        }
        retries
    };
    bencher.counter(ItemsCount::new(retry())).bench(|| black_box(retry()));
}

/// Events of 500 machines in one world: submissions to a queue that is down nearly all the time.
#[divan::bench]
fn machines(bencher: Bencher) {
    let second = Duration::from_secs(1);
    let host = Host {
        descriptors: 8000,
        in_use: 500,
        per_submission: 20,
        rate: 4.0,
        alone: second / 2,
        restart: 20 * second,
        refusal: second / 10,
        look: second / 100,
    };
    let text = include_str!("../scripts/submit-fixed.ftsh");
    let script = script("submit-fixed.ftsh", text).expect("a script");
    let submit = || {
        let mut world = ClientWorld::new(JobQueue::new(host.clone()), random(1, &[]));
        for client in 0..500 {
            world.add(&script, &Policy::default(), Duration::ZERO, client);
        }
        world.run(10 * second);
        world.handled()
    };
    bencher.counter(ItemsCount::new(submit())).bench(|| black_box(submit()));
}
