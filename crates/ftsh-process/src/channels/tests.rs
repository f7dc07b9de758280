//! Several shells in one process. For the kernel, each open file description is a separate holder
//! of locks.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::few_descriptors::{is_alone, none_during};
use crate::skipped;
use crate::workers::Control;
use ftsh_machine::channels::stored::{SIZE, Stored};
use ftsh_machine::channels::{Breaker, Claim, LocalChannel, Rate, Rules};

const HOUR: Duration = Duration::from_secs(3600);
/// Upper bound of any step.
const LONG: Duration = Duration::from_secs(30);

fn directory() -> (TempDir, PathBuf) {
    let around = tempfile::tempdir().expect("a directory");
    let path = around.path().join("channels");
    (around, path)
}

fn places(places: u64) -> Arc<Rules> {
    Arc::new(Rules { places: Some(places), ..Rules::default() })
}

/// Shell that performs one step after another.
struct Shell {
    channels: ShellChannels,
    last: u64,
    name: Name,
    answers: BTreeMap<u64, Result<Admission, String>>,
    queued: Vec<u64>,
    notes: Vec<String>,
    wait: Option<Wait>,
}

impl Shell {
    fn new(directory: &Path) -> Self {
        Self::numbered(directory, 0)
    }

    fn numbered(directory: &Path, number: u64) -> Self {
        Self {
            channels: ShellChannels::new(Some(directory.into())),
            last: number * 1_000_000,
            name: "mirror".into(),
            answers: BTreeMap::new(),
            queued: Vec::new(),
            notes: Vec::new(),
            wait: None,
        }
    }

    fn come(&mut self, rules: &Arc<Rules>, claim: Claim) -> u64 {
        self.last += 1;
        let entry = Entry {
            operation: OperationId(self.last),
            pass: PassId(self.last),
            channel: self.name.clone(),
            rules: rules.clone(),
            claim,
            line: 1,
        };
        match self.channels.enter(entry) {
            Ok(_) => self.go_on(None),
            Err(error) => drop(self.answers.insert(self.last, Err(error.to_string()))),
        }
        self.last
    }

    fn enter(&mut self, rules: &Arc<Rules>) -> u64 {
        self.come(rules, Claim::First)
    }

    fn go_on(&mut self, waited: Option<Waited>) {
        let turn = self.channels.advance(&self.name.clone(), waited);
        self.queued.extend(turn.queued.iter().map(|operation| operation.0));
        for (operation, result) in turn.answers {
            let result = result.map_err(|error| error.to_string());
            assert!(self.answers.insert(operation.0, result).is_none(), "answered once");
        }
        self.notes.extend(turn.note);
        self.wait = turn.wait;
    }

    fn leave(&mut self, id: u64, passed: Passed) {
        if self.channels.leave(PassId(id), passed).is_some() {
            self.go_on(None);
        }
    }

    fn give_up(&mut self, id: u64) {
        if self.channels.cancel(OperationId(id)).is_some() {
            self.go_on(None);
        }
    }

    fn is_in(&self, id: u64) -> bool {
        self.answers.get(&id) == Some(&Ok(Admission::Admitted))
    }

    /// Ends a shell as SIGKILL does: with an unchanged file and released locks. Closing the files
    /// is not enough where another thread of the tests has just forked.
    fn die(mut self) {
        self.channels.clock = None;
        for channel in self.channels.all.values() {
            channel.lose_locks();
        }
    }

    /// Waits for a decision, as a worker would.
    fn wait_for(&mut self, id: u64) {
        let begun = Instant::now();
        while !self.answers.contains_key(&id) {
            assert!(begun.elapsed() < LONG, "{:?}", self.wait);
            let waited = self.wait.take().map(|wait| wait.perform(&Control::default()));
            self.go_on(waited.flatten());
        }
    }
}

fn file(directory: &Path) -> PathBuf {
    directory.join("mirror")
}

#[test]
fn places_are_for_all_shells_in_order_of_coming() {
    let (_around, path) = directory();
    let rules = places(1);
    let [mut one, mut two, mut three] = [0, 1, 2].map(|it| Shell::numbered(&path, it));
    let first = one.enter(&rules);
    let (second, third, fourth) = (two.enter(&rules), three.enter(&rules), two.enter(&rules));
    assert!(one.is_in(first) && two.answers.is_empty() && three.answers.is_empty());
    assert_eq!((&two.queued, &three.queued), (&vec![second, fourth], &vec![third]));
    one.leave(first, Passed::Succeeded);
    three.go_on(None);
    assert!(three.answers.is_empty(), "somebody came before");
    two.go_on(None);
    assert!(two.is_in(second));
    let late = one.enter(&rules);
    two.leave(second, Passed::Failed);
    assert!(!two.is_in(fourth) && !one.is_in(late));
    three.go_on(None);
    assert!(three.is_in(third));
    two.give_up(fourth);
    three.leave(third, Passed::Neither);
    one.go_on(None);
    assert!(one.is_in(late) && !two.is_in(fourth));
}

#[test]
fn killed_shells_delay_no_waiters() {
    let (_around, path) = directory();
    let rules = places(2);
    let mut shells: Vec<Shell> = (0..4).map(|it| Shell::numbered(&path, it)).collect();
    let ids: Vec<u64> = shells.iter_mut().map(|shell| shell.enter(&rules)).collect();
    assert!(shells[1].is_in(ids[1]) && !shells[2].is_in(ids[2]));
    let mut last = shells.pop().expect("four");
    shells.pop().expect("three").die();
    shells.pop().expect("two").die();
    last.go_on(None);
    assert!(last.is_in(ids[3]));
    assert!(shells[0].is_in(ids[0]));
}

#[test]
fn the_frozen_are_passed_over_until_they_go_on() {
    let (_around, path) = directory();
    let rules = places(1);
    let mut shells: Vec<Shell> = (0..6).map(|it| Shell::numbered(&path, it)).collect();
    let ids: Vec<u64> = shells.iter_mut().map(|shell| shell.enter(&rules)).collect();
    let turn = |shells: &mut Vec<Shell>, at: usize| {
        let before = shells[at].is_in(ids[at]);
        shells[at].go_on(None);
        shells[at].is_in(ids[at]) && !before
    };
    // From here on, the second and third shells do nothing.
    let free = Instant::now();
    shells[0].leave(ids[0], Passed::Succeeded);
    while !turn(&mut shells, 3) {
        assert!(free.elapsed() < LONG);
        assert!(!turn(&mut shells, 4) && !turn(&mut shells, 5), "in order of coming");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(free.elapsed() >= Duration::from_secs(2), "a second for each");
    // Waiters that were passed over do not delay later ones again.
    shells[3].leave(ids[3], Passed::Succeeded);
    assert!(!turn(&mut shells, 5) && turn(&mut shells, 4));
    // The third continues and comes first again, but not before the second, which continues as well.
    assert!(!turn(&mut shells, 5) && !turn(&mut shells, 2));
    shells[4].leave(ids[4], Passed::Succeeded);
    assert!(!turn(&mut shells, 5) && turn(&mut shells, 2), "its turn");
    assert!(!turn(&mut shells, 1) && !turn(&mut shells, 5));
    shells[2].leave(ids[2], Passed::Succeeded);
    assert!(!turn(&mut shells, 5) && turn(&mut shells, 1));
    shells[1].leave(ids[1], Passed::Succeeded);
    assert!(turn(&mut shells, 5));
}

#[test]
fn a_waiter_with_a_stricter_rule_is_not_passed_over() {
    let (_around, path) = directory();
    let [mut one, mut two, mut three] = [0, 1, 2].map(|it| Shell::numbered(&path, it));
    let inside = one.enter(&places(1));
    let strict = two.enter(&places(1));
    let behind = three.enter(&places(4));
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(1500) {
        two.go_on(None);
        three.go_on(None);
        assert!(!three.is_in(behind), "it keeps the order of coming");
        std::thread::sleep(Duration::from_millis(10));
    }
    one.leave(inside, Passed::Succeeded);
    two.go_on(None);
    three.go_on(None);
    assert!(two.is_in(strict) && three.is_in(behind));
}

#[test]
fn a_retry_without_a_token_keeps_its_turn_behind_a_rate() {
    let (_around, path) = directory();
    let [mut one, mut two] = [0, 1].map(|it| Shell::numbered(&path, it));
    let rate = Some(Rate { count: 11, per: HOUR });
    let rules = Arc::new(Rules { rate, budget: Some(1.0), ..Rules::default() });
    for claim in [Claim::Retry; 10].into_iter().chain([Claim::First]) {
        let id = one.come(&rules, claim);
        assert!(one.is_in(id), "the first ones go through at once");
        one.leave(id, Passed::Neither);
    }
    let head = one.enter(&rules);
    let behind = two.come(&rules, Claim::Retry);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(1500) {
        two.go_on(None);
        assert!(!one.is_in(head) && !two.answers.contains_key(&behind), "not before its turn");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_canceled_admission_is_released() {
    let (_around, path) = directory();
    let (mut one, mut two) = (Shell::new(&path), Shell::new(&path));
    let id = one.enter(&places(1));
    one.give_up(id);
    one.leave(id, Passed::Failed);
    let id = two.enter(&places(1));
    assert!(two.is_in(id));
}

#[test]
fn a_dead_probe_leaves_the_breaker_to_the_next() {
    let (_around, path) = directory();
    let breaker = Breaker { failures: 1, open: Duration::from_millis(1) };
    let rules = Arc::new(Rules { breaker: Some(breaker), ..Rules::default() });
    let [mut one, mut two, mut three] = [0, 1, 2].map(|it| Shell::numbered(&path, it));
    let id = one.enter(&rules);
    one.leave(id, Passed::Failed);
    let begun = Instant::now();
    let probe = loop {
        let id = one.enter(&rules);
        if one.is_in(id) {
            break id;
        }
        assert!(begun.elapsed() < LONG);
    };
    let id = two.enter(&rules);
    assert_eq!(two.answers[&id], Ok(Admission::Broken(Duration::ZERO)), "one at a time");
    assert!(one.is_in(probe));
    one.die();
    let id = two.enter(&rules);
    assert!(two.is_in(id), "{:?}", two.answers);
    two.leave(id, Passed::Succeeded);
    let ids = [three.enter(&rules), three.enter(&rules)];
    assert!(ids.iter().all(|id| three.is_in(*id)), "closed");
}

#[test]
fn a_rate_delays_attempts() {
    let (_around, path) = directory();
    let rate = Rate { count: 2, per: Duration::from_millis(40) };
    let rules = Arc::new(Rules { rate: Some(rate), ..Rules::default() });
    let [mut one, mut two] = [0, 1].map(|it| Shell::numbered(&path, it));
    let begun = Instant::now();
    for round in 0..4 {
        for shell in [&mut one, &mut two] {
            let id = shell.enter(&rules);
            assert!(round > 0 || shell.is_in(id), "a burst");
            shell.wait_for(id);
        }
    }
    assert!(begun.elapsed() >= Duration::from_millis(120), "{:?}", begun.elapsed());
}

/// Step of one of three shells.
#[derive(Clone, Copy, Debug)]
enum Step {
    Enter(usize, Claim),
    Leave(usize, usize, Passed),
    GiveUp(usize, usize),
    Die(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let claim = prop_oneof![Just(Claim::First), Just(Claim::Inner), Just(Claim::Retry)];
    let passed = prop_oneof![Just(Passed::Succeeded), Just(Passed::Failed), Just(Passed::Neither)];
    let who = 0..3_usize;
    prop_oneof![
        8 => (who.clone(), claim).prop_map(|(who, claim)| Step::Enter(who, claim)),
        6 => (who.clone(), any::<usize>(), passed)
            .prop_map(|(who, which, passed)| Step::Leave(who, which, passed)),
        2 => (who.clone(), any::<usize>()).prop_map(|(who, which)| Step::GiveUp(who, which)),
        1 => who.prop_map(Step::Die),
    ]
}

fn any_rules() -> impl Strategy<Value = Rules> {
    let breaker = (1..4_u64).prop_map(|failures| Breaker { failures, open: HOUR });
    let budget = prop_oneof![Just(50.0), Just(100.0)];
    (prop::option::of(1..4_u64), prop::option::of(budget), prop::option::of(breaker))
        .prop_map(|(places, budget, breaker)| Rules { places, budget, breaker, rate: None })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Shells with a file behave like the model in memory.
    #[test]
    fn shells_are_a_crowd(
        rules in any_rules(),
        steps in prop::collection::vec(step(), 0..60),
    ) {
        let (_around, path) = directory();
        let rules = Arc::new(rules);
        let mut shells: Vec<Shell> = (0..3).map(|it| Shell::numbered(&path, it)).collect();
        let mut crowd = LocalChannel::default();
        let clock = clock();
        let mut expected: BTreeMap<u64, Admission> = BTreeMap::new();
        let mut gone = 3;
        // Waiters and passes, by shell.
        let mut alive: Vec<Vec<u64>> = vec![Vec::new(); 3];
        for step in steps {
            match step {
                Step::Enter(who, claim) => {
                    let id = shells[who].come(&rules, claim);
                    crowd.enter(id, rules.clone(), claim);
                    alive[who].push(id);
                }
                Step::Leave(who, which, passed) => {
                    let inside = |id: &&u64| expected.get(id) == Some(&Admission::Admitted);
                    let inside: Vec<u64> = alive[who].iter().filter(inside).copied().collect();
                    if !inside.is_empty() {
                        let id = inside[which % inside.len()];
                        alive[who].retain(|other| *other != id);
                        crowd.leave(id, passed, clock.now());
                        shells[who].leave(id, passed);
                    }
                }
                Step::GiveUp(who, which) => {
                    if !alive[who].is_empty() {
                        let at = which % alive[who].len();
                        let id = alive[who].remove(at);
                        crowd.forget(id);
                        shells[who].give_up(id);
                        expected.remove(&id);
                        shells[who].answers.remove(&id);
                    }
                }
                Step::Die(who) => {
                    for id in alive[who].drain(..) {
                        crowd.forget(id);
                    }
                    let answers = std::mem::take(&mut shells[who].answers);
                    expected.retain(|id, _| !answers.contains_key(id));
                    let born = Shell::numbered(&path, gone);
                    gone += 1;
                    std::mem::replace(&mut shells[who], born).die();
                }
            }
            expected.extend(crowd.advance(clock.now()));
            loop {
                let count = |shells: &[Shell]| shells.iter().map(|it| it.answers.len()).sum::<usize>();
                let before = count(&shells);
                for shell in &mut shells {
                    shell.go_on(None);
                }
                if count(&shells) == before {
                    break;
                }
            }
            let kind = |admission: &Admission| match admission {
                Admission::Broken(left) => Admission::Broken(Duration::from_secs(u64::from(!left.is_zero()))),
                other => other.clone(),
            };
            let found: BTreeMap<u64, Admission> = shells.iter().flat_map(|it| &it.answers)
                .map(|(id, answer)| (*id, kind(answer.as_ref().expect("no trouble")))).collect();
            let wanted: BTreeMap<u64, Admission> =
                expected.iter().map(|(id, answer)| (*id, kind(answer))).collect();
            prop_assert_eq!(found, wanted);
        }
    }
}

#[test]
fn concurrent_attempts_never_exceed_the_places() {
    const SHELLS: usize = 100;
    const ROUNDS: usize = 3;
    let (_around, path) = directory();
    let rules = places(4);
    let (inside, most, done) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for number in 0..SHELLS {
            let (rules, path, inside, most, done) = (&rules, &path, &inside, &most, &done);
            let run = move || {
                let mut shell = Shell::numbered(path, number as u64);
                for _ in 0..ROUNDS {
                    let id = shell.enter(rules);
                    shell.wait_for(id);
                    assert!(shell.is_in(id), "{:?}", shell.answers);
                    most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::yield_now();
                    inside.fetch_sub(1, Ordering::SeqCst);
                    shell.leave(id, Passed::Succeeded);
                    done.fetch_add(1, Ordering::SeqCst);
                }
                assert!(shell.notes.is_empty(), "{:?}", shell.notes);
            };
            std::thread::Builder::new()
                .stack_size(256 * 1024)
                .spawn_scoped(scope, run)
                .expect("a thread");
        }
    });
    assert_eq!(done.load(Ordering::SeqCst), SHELLS * ROUNDS);
    assert!(most.load(Ordering::SeqCst) <= 4, "{most:?} at once");
}

#[test]
fn a_damaged_file_is_reset_and_keeps_its_locks() {
    let (_around, path) = directory();
    let [mut one, mut two] = [0, 1].map(|it| Shell::numbered(&path, it));
    let inside = one.enter(&places(1));
    let now = clock().now();
    let future = Stored::new(now + HOUR);
    let mut state = future.clone();
    state.state.leave(&places(1), Passed::Failed, false, now + HOUR);
    for damage in [b"x".to_vec(), vec![0; 2 * SIZE], state.write(&clock().name)] {
        fs::write(file(&path), &damage).expect("a file");
        let id = two.enter(&places(1));
        assert!(two.answers.is_empty(), "the place is still taken");
        let note = two.notes.pop().expect("it is said");
        let beside = path.join("mirror.damaged");
        assert!(note.contains("damaged") && note.contains(&beside.display().to_string()), "{note}");
        let kept = fs::read(&beside).expect("what it held");
        assert!(damage.starts_with(&kept) && !kept.is_empty());
        two.give_up(id);
        assert!(two.notes.is_empty(), "once");
    }
    one.leave(inside, Passed::Succeeded);
    let id = two.enter(&places(1));
    assert!(two.is_in(id));
}

#[test]
fn a_removed_file_is_created_again() {
    let (_around, path) = directory();
    let [mut one, mut two] = [0, 1].map(|it| Shell::numbered(&path, it));
    let first = one.enter(&places(1));
    let second = one.enter(&places(1));
    fs::remove_dir_all(&path).expect("a directory");
    one.leave(first, Passed::Succeeded);
    assert!(one.is_in(second));
    two.enter(&places(1));
    assert!(two.answers.is_empty(), "both use the new one");
}

/// Returns the message for an attempt whose channel directory was prepared like this.
fn refusal(prepare: impl Fn(&Path)) -> String {
    let (_around, path) = directory();
    prepare(&path);
    let mut shell = Shell::new(&path);
    let id = shell.enter(&places(1));
    let refusal = shell.answers.remove(&id).expect("an answer").expect_err("a refusal");
    assert!(refusal.starts_with("cannot use the channel `mirror`: /"), "{refusal}");
    refusal
}

fn made(path: &Path) {
    fs::create_dir(path).expect("a directory");
    fs::set_permissions(path, fs::Permissions::from_mode(0o700)).expect("permissions");
}

#[test]
fn files_of_other_users_are_refused() {
    let expect = |prepare: &dyn Fn(&Path), reason: &str| {
        let refusal = refusal(prepare);
        assert!(refusal.contains(reason) && refusal.contains("FTSH_CHANNELS"), "{refusal}");
    };
    expect(&|path| symlink("/tmp", path).expect("a link"), "it is not a directory");
    expect(&|path| fs::write(path, "").expect("a file"), "it is not a directory");
    let open = |path: &Path| {
        made(path);
        fs::set_permissions(path, fs::Permissions::from_mode(0o722)).expect("permissions");
    };
    expect(&open, "other users can write to it");
    let link = |path: &Path| {
        made(path);
        fs::write(path.join("other"), "").expect("a file");
        symlink(path.join("other"), file(path)).expect("a link");
    };
    expect(&link, "it is a symbolic link");
    let folder = |path: &Path| {
        made(path);
        made(&file(path));
    };
    expect(&folder, "it is a directory");
    let fifo = |path: &Path| {
        made(path);
        nix::unistd::mkfifo(&file(path), nix::sys::stat::Mode::S_IRWXU).expect("a FIFO");
    };
    expect(&fifo, "it is not a regular file");
    let writable = |path: &Path| {
        made(path);
        fs::write(file(path), "").expect("a file");
        fs::set_permissions(file(path), fs::Permissions::from_mode(0o666)).expect("permissions");
    };
    expect(&writable, "other users can write to it");
    if nix::unistd::geteuid().is_root() {
        let others = |path: &Path| {
            made(path);
            fs::write(file(path), "").expect("a file");
            std::os::unix::fs::chown(file(path), Some(12345), None).expect("root may");
        };
        expect(&others, "it belongs to another user");
        let others = |path: &Path| {
            made(path);
            std::os::unix::fs::chown(path, Some(12345), None).expect("root may");
        };
        expect(&others, "it belongs to another user");
    } else {
        skipped::skipped("root, for files of other users");
    }
    let long = "a".repeat(300);
    let (_around, path) = directory();
    for (name, reason) in [("a/b", "not the name"), ("", "not the name"), (&long, "too long")] {
        let mut shell = Shell::new(&path);
        shell.name = name.into();
        let id = shell.enter(&places(1));
        let refusal = shell.answers.remove(&id).expect("an answer").expect_err("a refusal");
        assert!(refusal.contains(reason), "{refusal}");
    }
}

#[test]
fn directories_and_files_are_for_the_user_alone() {
    let (_around, path) = directory();
    Shell::new(&path).enter(&places(1));
    let mode = |path: &Path| fs::metadata(path).expect("it is there").mode() & 0o777;
    assert_eq!((mode(&path), mode(&file(&path))), (0o700, 0o600));
    assert_eq!(fs::metadata(file(&path)).expect("it is there").len(), SIZE as u64);
}

#[test]
fn all_channels_are_listed() {
    let (_around, path) = directory();
    let listed = || {
        let (_, all) = list_channels(Some(path.clone())).expect("a list");
        let line = |it: ListedChannel| match it.state {
            Ok(seen) => format!(
                "{}: {} of {:?}, {} wait, {:?} tokens, {} failures, closed {}",
                it.name,
                seen.inside,
                seen.places,
                seen.waiting,
                seen.tokens.map(|it| format!("{it:.0}")),
                seen.failures,
                seen.breaker == Some(BreakerSnapshot::Closed)
            ),
            Err(error) => format!("{}: {error}", it.name),
        };
        all.into_iter().map(line).collect::<Vec<_>>()
    };
    assert_eq!(listed(), [""; 0]);
    assert!(!path.exists(), "looking makes nothing");
    let all = Arc::new(Rules {
        places: Some(2),
        budget: Some(20.0),
        breaker: Some(Breaker { failures: 1, open: HOUR }),
        ..Rules::default()
    });
    let [mut one, mut two] = [0, 1].map(|it| Shell::numbered(&path, it));
    let id = one.come(&all, Claim::Retry);
    one.enter(&all);
    two.enter(&all);
    two.enter(&all);
    assert_eq!(
        listed(),
        ["mirror: 2 of Some(2), 2 wait, Some(\"9\") tokens, 0 failures, closed true"]
    );
    one.leave(id, Passed::Failed);
    two.go_on(None);
    let seen = "mirror: 1 of Some(2), 0 wait, Some(\"9\") tokens, 1 failures, closed false";
    assert_eq!(listed(), [seen]);
    fs::write(path.join("bad"), "{").expect("a file");
    fs::write(path.join("mirror.damaged"), "no channel").expect("a file");
    assert_eq!(listed(), ["bad: damaged: not JSON", seen]);
}

fn clock() -> ChannelClock {
    ChannelClock::new().expect("a clock")
}

/// With another boot's id, this shell would take the passes of others.
#[test]
fn an_unreadable_boot_id_resets_no_channel() {
    const NAME: &str = concat!(module_path!(), "::an_unreadable_boot_id_resets_no_channel");
    if is_alone(NAME) {
        assert!(none_during(ChannelClock::new).is_err());
        assert!(!clock().name.is_empty());
    }
}
