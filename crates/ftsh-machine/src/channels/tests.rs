//! Invariants of a channel under all sequences of operations.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::state::{ChannelState, ChannelVerdict, Gauge, Inside};
use super::stored::{MAX_NUMBER, SIZE, Stored};
use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn rules() -> Rules {
    Rules::default()
}

fn after(seconds: u64) -> Moment {
    Duration::from_secs(seconds)
}

fn admit(state: &mut ChannelState, rules: &Rules, claim: Claim, seconds: u64) -> ChannelVerdict {
    state.admit(rules, claim, Inside::default(), after(seconds))
}

fn is_admitted(verdict: &ChannelVerdict) -> bool {
    matches!(verdict, ChannelVerdict::Admitted { .. })
}

fn broken(seconds: u64) -> ChannelVerdict {
    ChannelVerdict::Refused(Admission::Broken(after(seconds)))
}

#[test]
fn a_rate_lets_a_burst_through_and_then_one_after_the_other() {
    let rules = Rules { rate: Some(Rate { count: 4, per: 2 * SECOND }), ..rules() };
    let mut state = ChannelState::default();
    for _ in 0..4 {
        assert!(is_admitted(&admit(&mut state, &rules, Claim::First, 100)));
    }
    let ChannelVerdict::NotBefore(next) = admit(&mut state, &rules, Claim::First, 100) else {
        panic!("a fifth one at once")
    };
    let wait = next.checked_sub(100 * SECOND).expect("a time to come");
    assert!(wait >= SECOND / 2 && wait < SECOND / 2 + Duration::from_micros(10), "{wait:?}");
    assert!(is_admitted(&state.admit(&rules, Claim::First, Inside::default(), next)));
    assert!(matches!(admit(&mut state, &rules, Claim::First, 100), ChannelVerdict::NotBefore(_)));
}

#[test]
fn retries_need_budget_of_first_attempts() {
    let rules = Rules { budget: Some(20.0), ..rules() };
    let mut state = ChannelState::default();
    let mut tries = |claim, seconds| is_admitted(&admit(&mut state, &rules, claim, seconds));
    assert!((0..10).all(|_| tries(Claim::Retry, 0)), "a channel begins with ten");
    assert!(!tries(Claim::Retry, 0) && !tries(Claim::Retry, 9) && tries(Claim::Retry, 10));
    assert!((0..5).all(|_| tries(Claim::First, 10)) && tries(Claim::Retry, 10));
    assert!((0..5).all(|_| tries(Claim::Inner, 10)) && !tries(Claim::Retry, 10));
    assert!((0..10).all(|_| tries(Claim::Retry, 1000)) && !tries(Claim::Retry, 1000));
}

#[test]
fn a_breaker_opens_after_failures_in_a_row_and_a_success_closes_it() {
    let rules = Rules { breaker: Some(Breaker { failures: 3, open: 30 * SECOND }), ..rules() };
    let mut state = ChannelState::default();
    let end = |state: &mut ChannelState, passed, probe, seconds| {
        state.leave(&rules, passed, probe, after(seconds));
    };
    for passed in [Passed::Failed, Passed::Failed, Passed::Succeeded, Passed::Failed] {
        end(&mut state, passed, false, 0);
    }
    end(&mut state, Passed::Neither, false, 1);
    end(&mut state, Passed::Failed, false, 1);
    assert_eq!(
        admit(&mut state, &rules, Claim::First, 2),
        ChannelVerdict::Admitted { probe: false }
    );
    end(&mut state, Passed::Failed, false, 10);
    assert_eq!(state.open_since(), Some(10 * SECOND));
    // A failure of an attempt begun before the opening does not prolong the suspension.
    end(&mut state, Passed::Failed, false, 20);
    assert_eq!(admit(&mut state, &rules, Claim::Retry, 39), broken(1));
    assert_eq!(
        admit(&mut state, &rules, Claim::Retry, 40),
        ChannelVerdict::Admitted { probe: true }
    );
    let probing = Inside { attempts: 1, probing: true };
    assert_eq!(state.admit(&rules, Claim::First, probing, 41 * SECOND), broken(0));
    // A canceled or dead probe leaves the probe to the next attempt. A failed probe opens the
    // breaker again.
    end(&mut state, Passed::Neither, true, 42);
    assert_eq!(
        admit(&mut state, &rules, Claim::Retry, 42),
        ChannelVerdict::Admitted { probe: true }
    );
    end(&mut state, Passed::Failed, true, 50);
    assert_eq!(admit(&mut state, &rules, Claim::Retry, 60), broken(20));
    assert_eq!(
        admit(&mut state, &rules, Claim::Retry, 80),
        ChannelVerdict::Admitted { probe: true }
    );
    end(&mut state, Passed::Succeeded, true, 81);
    assert_eq!(
        admit(&mut state, &rules, Claim::Retry, 81),
        ChannelVerdict::Admitted { probe: false }
    );
}

#[test]
fn each_shell_follows_its_own_breaker() {
    let with = |failures| Rules {
        breaker: Some(Breaker { failures, open: 10 * SECOND }),
        ..Rules::default()
    };
    let (soon, late, never) = (with(2), with(4), rules());
    let mut state = ChannelState::default();
    (1..=3).for_each(|at| state.leave(&never, Passed::Failed, false, after(at)));
    assert_eq!(admit(&mut state, &soon, Claim::First, 5), broken(8));
    assert!(is_admitted(&admit(&mut state, &late, Claim::First, 5)));
    assert!(is_admitted(&admit(&mut state, &never, Claim::First, 5)));
    // Failures of other shells do not delay the probe.
    state.leave(&never, Passed::Failed, false, 12 * SECOND);
    assert_eq!(
        admit(&mut state, &soon, Claim::First, 13),
        ChannelVerdict::Admitted { probe: true }
    );
    assert_eq!(admit(&mut state, &late, Claim::First, 13), broken(9));
}

#[test]
fn refused_and_waiting_attempts_consume_nothing() {
    let all = Rules {
        places: Some(1),
        rate: Some(Rate { count: 1, per: SECOND }),
        budget: Some(10.0),
        breaker: Some(Breaker { failures: 1, open: SECOND }),
    };
    let mut state = ChannelState::default();
    assert!(is_admitted(&admit(&mut state, &all, Claim::Retry, 0)));
    let before = state.clone();
    let full = Inside { attempts: 1, probing: false };
    assert_eq!(state.admit(&all, Claim::Retry, full, SECOND), ChannelVerdict::Full);
    assert!(matches!(admit(&mut state, &all, Claim::Retry, 0), ChannelVerdict::NotBefore(_)));
    assert_eq!(state, before);
    state.leave(&all, Passed::Failed, false, SECOND);
    let before = state.clone();
    // A breaker refuses without occupying a place.
    assert_eq!(state.admit(&all, Claim::Retry, full, SECOND), broken(1));
    assert_eq!(state, before);
    let probe = state.admit(&all, Claim::Retry, full, 2 * SECOND);
    assert_eq!(probe, ChannelVerdict::Full, "a probe needs a place as well");
}

/// Operation of a user of a channel.
#[derive(Clone, Copy, Debug)]
enum Step {
    Enter(Claim),
    /// An attempt inside leaves.
    Leave(usize, Passed),
    /// An attempt, inside or waiting, is gone.
    Forget(usize),
    /// A number of milliseconds pass.
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let claim = prop_oneof![Just(Claim::First), Just(Claim::Inner), Just(Claim::Retry)];
    let passed = prop_oneof![1 => Just(Passed::Succeeded), 3 => Just(Passed::Failed), 1 => Just(Passed::Neither)];
    prop_oneof![
        6 => claim.prop_map(Step::Enter),
        4 => (any::<usize>(), passed).prop_map(|(which, passed)| Step::Leave(which, passed)),
        1 => any::<usize>().prop_map(Step::Forget),
        3 => (0..3000_u64).prop_map(Step::Pass),
    ]
}

fn any_rules() -> impl Strategy<Value = Rules> {
    let rate = (1..6_u64, 1..5000_u64)
        .prop_map(|(count, per)| Rate { count, per: Duration::from_millis(per) });
    let breaker = (1..4_u64, 1..5000_u64)
        .prop_map(|(failures, open)| Breaker { failures, open: Duration::from_millis(open) });
    let budget = prop_oneof![Just(0.5), Just(10.0), Just(100.0)];
    let places = prop::option::of(1..5_u64);
    let all = (places, prop::option::of(rate), prop::option::of(budget), prop::option::of(breaker));
    all.prop_map(|(places, rate, budget, breaker)| Rules { places, rate, budget, breaker })
}

/// Events of a channel, as recorded by an observer.
struct Watched {
    crowd: LocalChannel<u64>,
    rules: Arc<Rules>,
    now: Moment,
    claims: BTreeMap<u64, Claim>,
    inside: Vec<u64>,
    waiting: Vec<u64>,
    begun: Vec<Moment>,
    firsts: u64,
    retries: u64,
    /// Upper bound of available retries at a moment.
    counted: (f64, Moment),
    failures: u64,
    opened: Option<Moment>,
    probe: Option<u64>,
}

impl Watched {
    fn new(rules: Rules) -> Self {
        Self {
            crowd: LocalChannel::default(),
            rules: Arc::new(rules),
            now: 1000 * SECOND,
            claims: BTreeMap::new(),
            inside: Vec::new(),
            waiting: Vec::new(),
            begun: Vec::new(),
            firsts: 0,
            retries: 0,
            counted: (10.0, 1000 * SECOND),
            failures: 0,
            opened: None,
            probe: None,
        }
    }

    fn perform(&mut self, step: Step) {
        match step {
            Step::Enter(claim) => {
                let id = self.claims.len() as u64;
                self.claims.insert(id, claim);
                self.waiting.push(id);
                self.crowd.enter(id, self.rules.clone(), claim);
            }
            Step::Leave(which, passed) => {
                if self.inside.is_empty() {
                    return;
                }
                let id = self.inside.remove(which % self.inside.len());
                self.crowd.leave(id, passed, self.now);
                self.ended(id, passed);
            }
            Step::Forget(which) => {
                let all: Vec<u64> = self.inside.iter().chain(&self.waiting).copied().collect();
                if all.is_empty() {
                    return;
                }
                let id = all[which % all.len()];
                self.crowd.forget(id);
                self.inside.retain(|other| *other != id);
                self.waiting.retain(|other| *other != id);
                self.probe.take_if(|probe| *probe == id);
            }
            Step::Pass(milliseconds) => self.now += Duration::from_millis(milliseconds),
        }
        let answers = self.crowd.advance(self.now);
        for (id, admission) in answers {
            self.answered(id, &admission);
        }
        assert_eq!(self.crowd.inside().attempts, self.inside.len() as u64);
        assert_eq!(self.crowd.waiting(), self.waiting.len());
    }

    fn ended(&mut self, id: u64, passed: Passed) {
        let probe = self.probe.take_if(|probe| *probe == id).is_some();
        match passed {
            Passed::Succeeded => (self.failures, self.opened) = (0, None),
            Passed::Failed => {
                self.failures += 1;
                let limit = self.rules.breaker.map_or(u64::MAX, |breaker| breaker.failures);
                if probe && self.opened.is_some() || self.failures == limit {
                    self.opened = Some(self.now);
                }
            }
            Passed::Neither => {}
        }
    }

    fn tokens(&self) -> f64 {
        let (tokens, since) = self.counted;
        (tokens + 0.1 * self.now.saturating_sub(since).as_secs_f64()).min(10.0)
    }

    fn answered(&mut self, id: u64, admission: &Admission) {
        let first = self.waiting.remove(0);
        assert_eq!(first, id, "in order of coming");
        let closes = |opened| self.rules.breaker.map(|breaker| opened + breaker.open);
        let open_until = self.opened.and_then(closes);
        match admission {
            Admission::Broken(left) => {
                let until = open_until.expect("a breaker that is open");
                assert_eq!(*left, until.saturating_sub(self.now));
                return assert!(!left.is_zero() || self.probe.is_some());
            }
            Admission::NoBudget => {
                assert_eq!(self.claims[&id], Claim::Retry);
                return assert!(self.tokens() < 1.0);
            }
            Admission::Admitted => {}
        }
        if let Some(until) = open_until {
            assert!(self.now >= until && self.probe.is_none(), "one probe when the time has come");
            self.probe = Some(id);
        }
        self.inside.push(id);
        assert!(self.inside.len() as u64 <= self.rules.places.unwrap_or(u64::MAX));
        self.begun.push(self.now);
        if let Some(Rate { count, per }) = self.rules.rate {
            for (more, since) in self.begun.iter().rev().enumerate() {
                let time = self.now.saturating_sub(*since).as_secs_f64() / per.as_secs_f64();
                assert!(more as f64 + 1.0 <= count as f64 * (1.0 + time) + 1e-3);
            }
        }
        match self.claims[&id] {
            Claim::First => self.firsts += 1,
            Claim::Inner => {}
            Claim::Retry => self.retries += 1,
        }
        if let Some(percent) = self.rules.budget {
            let change = match self.claims[&id] {
                Claim::First => percent / 100.0,
                Claim::Inner => 0.0,
                Claim::Retry => -1.0,
            };
            self.counted = ((self.tokens() + change).clamp(0.0, 10.0), self.now);
            let time = self.now.saturating_sub(1000 * SECOND).as_secs_f64();
            let most = percent / 100.0 * self.firsts as f64 + 0.1 * time + 10.0;
            assert!(self.retries as f64 <= most + 1e-3, "{} of {most}", self.retries);
        }
    }

    /// All attempts leave, and time passes: no attempt waits forever.
    fn drain(&mut self) {
        while !(self.waiting.is_empty() && self.inside.is_empty()) {
            let before = (self.waiting.len(), self.inside.len(), self.now);
            if let Some(moment) = self.crowd.next_wake() {
                self.now = self.now.max(moment);
            }
            self.perform(Step::Leave(0, Passed::Succeeded));
            self.perform(Step::Pass(0));
            assert_ne!(before, (self.waiting.len(), self.inside.len(), self.now), "stuck");
        }
    }
}

proptest! {
    #[test]
    fn rules_hold_under_all_operations(
        rules in any_rules(),
        steps in prop::collection::vec(step(), 0..120),
    ) {
        let mut watched = Watched::new(rules);
        for step in steps {
            watched.perform(step);
        }
        watched.drain();
    }

    #[test]
    fn stored_state_is_read_again(
        rules in any_rules(),
        steps in prop::collection::vec(step(), 0..40),
    ) {
        let mut watched = Watched::new(rules.clone());
        for step in steps {
            watched.perform(step);
        }
        let state = watched.crowd.state().clone();
        let stored = Stored { next: 7, first: 5, inside: 3, state, rules };
        let text = stored.write("clock");
        prop_assert_eq!(text.len(), SIZE);
        let read = Stored::read(&text, "clock", watched.now).expect("what was written");
        prop_assert_eq!(read.write("clock"), text.clone());
        let other = Stored::read(&text, "other", watched.now);
        prop_assert_eq!(other, Ok(Stored::new(watched.now)), "times of another clock say nothing");
    }

    #[test]
    fn any_text_is_read_or_rejected(
        at in 0..400_usize,
        byte in any::<u8>(),
        length in 0..=SIZE,
    ) {
        let mut text = full().write("clock");
        text[at] = byte;
        text.truncate(length);
        if let Ok(read) = Stored::read(&text, "clock", 9 * SECOND) {
            let again = Stored::read(&read.write("clock"), "clock", 9 * SECOND);
            prop_assert_eq!(again, Ok(read));
        }
    }
}

/// Largest possible text.
fn full() -> Stored {
    let mut state = ChannelState::default();
    let rules = Rules {
        places: Some(u64::MAX),
        rate: Some(Rate { count: 3, per: Duration::MAX }),
        budget: Some(100.0 / 3.0),
        breaker: Some(Breaker { failures: 1, open: Duration::MAX }),
    };
    admit(&mut state, &rules, Claim::First, 1);
    admit(&mut state, &rules, Claim::Retry, 1);
    state.leave(&rules, Passed::Failed, false, 2 * SECOND);
    Stored { next: MAX_NUMBER - 1, first: MAX_NUMBER - 1, inside: u64::MAX, state, rules }
}

#[test]
fn amounts_are_read_to_the_last_bit() {
    let amounts =
        [9.0142, 9.014_199_999_999_999, 0.1 + 0.2, 1.0 / 3.0, 5e-324, 1e18_f64.next_down()];
    let inexact = amounts.map(|amount| {
        let mut stored = full();
        stored.state.tokens = Some(Gauge { amount, at: SECOND });
        stored.rules.budget = Some(amount);
        let text = stored.write("clock");
        let read = Stored::read(&text, "clock", 9 * SECOND).expect("a stored channel");
        assert_eq!(read.rules.budget, read.state.tokens.map(|level| level.amount));
        (read.state != stored.state || read.write("clock") != text).then_some(amount)
    });
    assert_eq!(inexact, [None; 6]);
    // A dependency of the tests enables the feature, too; programs have only their own
    // dependencies.
    let manifest = include_str!("../../../../Cargo.toml");
    let (own, _) = manifest.split_once("[dev-dependencies").expect("dependencies of the tests");
    assert!(own.contains("features = [\"float_roundtrip\"]"));
}

#[test]
fn the_longest_text_has_room() {
    let text = full().write("01234567-89ab-cdef-0123-456789abcdef");
    let blanks = text.iter().rev().take_while(|byte| byte.is_ascii_whitespace()).count();
    assert!(text.len() == SIZE && blanks > 200, "{blanks} left");
}

#[test]
fn invalid_texts_are_rejected() {
    let text = String::from_utf8(full().write("clock")).expect("text");
    let read = |text: &str| Stored::read(text.as_bytes(), "clock", 5 * SECOND);
    assert!(read(&text).is_ok());
    let changes = [
        ("\"failed\":2000000000", "\"failed\":6000000000"),
        ("\"failed\":2000000000", "\"failed\":-2"),
        ("\"failed\":2000000000", "\"failed\":2.5"),
        ("\"version\":1", "\"version\":2"),
        ("\"amount\":2.0", "\"amount\":-2.0"),
        ("\"amount\":2.0", "\"amount\":1e300"),
        ("\"amount\":2.0", "\"amount\":NaN"),
        ("\"amount\":2.0", "\"amount\":null"),
        ("\"inside\":18446744073709551615", "\"inside\":18446744073709551616"),
        ("\"count\":3", "\"count\":0"),
        ("\"clock\"", "\"clack\""),
        ("{", "["),
        ("\n", "x"),
    ];
    for (from, to) in changes {
        assert!(text.contains(from), "{from} isn't in {text}");
        assert!(read(&text.replacen(from, to, 1)).is_err(), "{to}");
    }
    let next = format!("\"next\":{}", MAX_NUMBER - 1);
    assert!(read(&text.replace(&next, &format!("\"next\":{MAX_NUMBER}"))).is_err());
    assert!(read("x").is_err() && read(&"\0".repeat(SIZE)).is_err());
    assert_eq!(read(""), Ok(Stored::new(5 * SECOND)));
    let first = format!("\"first\":{},", MAX_NUMBER - 1);
    let earlier = read(&text.replacen(&first, "", 1)).expect("a text of an earlier shell");
    assert_eq!((earlier.next, earlier.first), (MAX_NUMBER - 1, 0));
}
