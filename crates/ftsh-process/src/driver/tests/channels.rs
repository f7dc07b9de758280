//! Channels, by effects.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::*;
use crate::channels::{ChannelUpdate, ShellChannels};
use ftsh_machine::channels::{Admission, Claim, Passed, Rate, Rules};
use ftsh_machine::effect::{Entry, PassId};

struct Place {
    _around: TempDir,
    path: PathBuf,
}

/// Sets a directory for the driver's channels.
fn with_channels(world: &mut World) -> Place {
    let around = tempfile::tempdir().expect("a directory");
    let path = around.path().join("channels");
    // A process has only one driver, so its channels are replaced after its start.
    world.driver.turns = crate::jobs::Turns::new(Some(path.clone()));
    Place { _around: around, path }
}

fn places(places: u64) -> Rules {
    Rules { places: Some(places), ..Rules::default() }
}

fn entry(id: u64, rules: Rules) -> Entry {
    Entry {
        operation: OperationId(id),
        pass: PassId(id),
        channel: "mirror".into(),
        rules: Arc::new(rules),
        claim: Claim::First,
        line: 1,
    }
}

impl World {
    fn come(&mut self, rules: Rules) -> u64 {
        let id = self.id();
        self.driver.perform(Effect::Enter(Box::new(entry(id, rules))));
        id
    }

    fn go(&mut self, id: u64) {
        self.driver.perform(Effect::Leave(PassId(id), Passed::Succeeded));
    }

    fn is_admitted(&mut self, id: u64) {
        assert_eq!(self.done(OperationId(id)), Ok(Reply::Admission(Admission::Admitted)));
    }

    fn still_waits(&mut self, id: u64) {
        let limit = self.driver.now() + Duration::from_millis(5);
        while let Some(event) = self.driver.wait(limit) {
            self.events.push_back(event);
        }
        let is_answer = |event: &Event| matches!(event, Event::Done { operation, .. } if *operation == OperationId(id));
        assert!(!self.events.iter().any(is_answer), "{:?}", self.events);
    }

    fn is_queued(&mut self, id: u64) {
        self.expect("queued attempt", |event| {
            (*event == Event::Queued { operation: OperationId(id) }).then_some(())
        });
    }
}

/// Another shell, which holds the only place.
struct Other(ShellChannels);

impl Other {
    fn enter(place: &Place, rules: Rules) -> Self {
        let mut channels = ShellChannels::new(Some(place.path.clone()));
        channels.enter(entry(1, rules)).expect("a channel");
        let ChannelUpdate { answers, .. } = channels.advance(&"mirror".into(), None);
        assert!(matches!(answers[..], [(_, Ok(Admission::Admitted))]));
        Self(channels)
    }

    fn leave(mut self) {
        let name = self.0.leave(PassId(1), Passed::Succeeded).expect("it is inside");
        self.0.advance(&name, None);
    }
}

each_alone! {
    fn attempts_wait_for_others(world) {
        let place = with_channels(world);
        let other = Other::enter(&place, places(1));
        let (first, second) = (world.come(places(1)), world.come(places(1)));
        world.is_queued(first);
        world.is_queued(second);
        // Other work continues meanwhile.
        assert_eq!(world.output(shell("echo on")).1, "on\n");
        world.still_waits(second);
        other.leave();
        world.is_admitted(first);
        world.still_waits(second);
        world.go(first);
        world.is_admitted(second);
        world.go(second);
        let third = world.come(places(1));
        world.is_admitted(third);
    }

    fn what_is_abandoned_waits_no_more(world) {
        let place = with_channels(world);
        let other = Other::enter(&place, places(1));
        let ids = [1, 2, 3].map(|_| world.come(places(1)));
        world.driver.perform(Effect::Abandon(OperationId(ids[0])));
        world.driver.perform(Effect::Abandon(OperationId(ids[1])));
        other.leave();
        world.is_admitted(ids[2]);
        // The answer is on its way, but its operation was canceled.
        world.go(ids[2]);
        let unwanted = world.come(places(1));
        world.driver.perform(Effect::Abandon(OperationId(unwanted)));
        let last = world.come(places(1));
        world.is_admitted(last);
    }

    fn a_rate_is_kept_while_commands_run(world) {
        let _place = with_channels(world);
        let rate = Rate { count: 1, per: Duration::from_millis(100) };
        let rules = Rules { rate: Some(rate), ..Rules::default() };
        let begun = Instant::now();
        let ids = [1, 2, 3].map(|_| world.come(rules.clone()));
        assert_eq!(world.output(shell("echo on")).1, "on\n");
        for id in ids {
            world.is_admitted(id);
        }
        assert!(begun.elapsed() >= Duration::from_millis(200), "{:?}", begun.elapsed());
    }

    fn commands_do_not_keep_the_place(world) {
        let place = with_channels(world);
        let id = world.come(places(1));
        world.is_admitted(id);
        let process = world.start(program(&["sleep", "1000"]));
        let pid = world.pid_of(process);
        let holds = |pid: u32| {
            let open = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("a system with /proc");
            let mut links = open.flatten().filter_map(|it| std::fs::read_link(it.path()).ok());
            links.any(|link| link.starts_with(&place.path))
        };
        assert!(holds(process::id()) && !holds(pid as u32));
    }

    fn trouble_is_told(world) {
        let place = with_channels(world);
        std::fs::write(&place.path, "").expect("a file");
        let id = world.come(places(1));
        let refusal = world.done(OperationId(id)).expect_err("a refusal").message;
        assert!(refusal.contains("it is not a directory; set FTSH_CHANNELS to another directory"), "{refusal}");
    }

    fn what_cannot_be_written_down_has_not_happened(world) {
        use nix::sys::resource::{Resource, getrlimit, setrlimit};
        let _place = with_channels(world);
        let (usual, most) = getrlimit(Resource::RLIMIT_FSIZE).expect("a limit");
        nix::sys::signal::SigSet::from_iter([nix::sys::signal::Signal::SIGXFSZ])
            .thread_block()
            .expect("signals can be blocked");
        setrlimit(Resource::RLIMIT_FSIZE, 0, most).expect("a limit");
        let id = world.come(places(1));
        let refusal = world.done(OperationId(id)).expect_err("a refusal").message;
        setrlimit(Resource::RLIMIT_FSIZE, usual, most).expect("a limit");
        assert!(refusal.contains("mirror: file too large; set FTSH_CHANNELS"), "{refusal}");
        let id = world.come(places(1));
        world.is_admitted(id);
    }

    #[ignore = "measures: cargo test --release -- --ignored --exact --nocapture"]
    fn a_free_channel_costs_little_by_hand(world) {
        const TIMES: u32 = 20_000;
        let _place = with_channels(world);
        let all = Rules {
            places: Some(4),
            rate: Some(Rate { count: 1_000_000, per: Duration::from_millis(1) }),
            budget: Some(10.0),
            breaker: Some(ftsh_machine::channels::Breaker { failures: 3, open: LONG }),
        };
        for (name, rules) in [("places", places(4)), ("all rules", all)] {
            let begun = Instant::now();
            for _ in 0..TIMES {
                let id = world.come(rules.clone());
                world.is_admitted(id);
                world.go(id);
            }
            eprintln!("{name}: {:?} an attempt", begun.elapsed() / TIMES);
        }
    }
}
