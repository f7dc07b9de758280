//! A crash leaves a journal from which the run continues, and no recorded step is repeated.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use crate::entry::{Delivered, JournalEntry};
use crate::{Beginning, Journal, Recorder, Started, Store, Unreadable, Writer, read, replay};
use bstr::BString;
use ftsh_machine::driver::{self, BufferPart, Driver, Durable};
use ftsh_machine::effect::{Access, Action, BufferId, FdChange, FdSource, IoId, ViewId};
use ftsh_machine::record::{Level, LogRecord};
use ftsh_machine::{Config, Deadline, Effect, Event, Machine, Outcome, Time};
use ftsh_sim::{Model, Simulated};
use ftsh_syntax::parse;

/// Script in which each step without a recorded end is repeated.
const SCRIPT: &str = "
data=start
function line
    try 9 times every 1 ms
        read word
    end
    try 9 times every 1 ms
        step 4$1
    end
    lines=${lines:-}$word
end
line 1
for i in 2 3 4
    line $i
end < /lines
line 5
for i in 51 52
    try 9 times every 1 ms
        step $i
    end
end > plain
channel c at most 1
try 9 times every 1 ms through c
    step 53
end
try 9 times every 1 ms
    step 1 -> one
end
try 9 times every 1 ms
    step 2 ->> data
end
forall i in 3 4 5
    try 9 times every 1 ms
        step $i ->> data
    end
    try 9 times every 1 ms
        step 1$i $data -> mine
    end
    try 9 times every 1 ms
        step 2$i $mine >> file
    end
end
try 9 times every 1 ms
    try 9 times every 1 ms atomic
        step 6
        step 7
    end > whole
end
try 9 times every 1 ms
    step 8 | step 9
end
for i in 6 7
    line $i
end -< one
for i in 8 9
    line $i
end << END
x
y
END
try 9 times every 1 ms
    step 0 $one $data $lines
end
";

/// Longest wait with an exit that is not on the disk.
const MAX_WAIT: Duration = Duration::from_millis(10);

/// Disk in memory, with its state after each write and each cut.
#[derive(Clone)]
pub(super) struct Disk(Rc<RefCell<Vec<State>>>);

/// State of a disk.
#[derive(Clone)]
struct State {
    bytes: Vec<u8>,
    /// Number of the last synced state.
    synced: usize,
}

impl Disk {
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self(Rc::new(RefCell::new(vec![State { bytes: bytes.to_vec(), synced: 0 }])))
    }

    fn states(&self) -> Vec<State> {
        self.0.borrow().clone()
    }

    fn change(&self, change: impl FnOnce(&mut Vec<u8>)) {
        let mut states = self.0.borrow_mut();
        let mut state = states.last().expect("a state").clone();
        change(&mut state.bytes);
        states.push(state);
    }

    /// Returns the synced content.
    pub(super) fn durable(&self) -> Vec<u8> {
        let states = self.0.borrow();
        states[states.last().expect("a state").synced].bytes.clone()
    }
}

impl Store for Disk {
    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let at = at as usize;
        // Most of the preallocated room would only take time.
        let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let bytes = &bytes[..bytes.len().min(used + 100)];
        self.change(|all| {
            all.resize(all.len().max(at + bytes.len()), 0);
            all[at..at + bytes.len()].copy_from_slice(bytes);
        });
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut states = self.0.borrow_mut();
        // The synced state has a number of its own.
        let last = State { synced: states.len(), ..states.last().expect("a state").clone() };
        states.push(last);
        Ok(())
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.change(|all| all.truncate(length as usize));
        Ok(())
    }
}

/// Steps that ran, and the arguments of the last step.
#[derive(Default)]
struct Done {
    steps: Vec<String>,
    last: String,
}

/// World that checks: the disk has the cause of each external effect.
struct Watched {
    world: Simulated,
    /// Disk to check, or `None` without checks.
    disk: Option<Disk>,
    /// Set in the first process, in which no effect is a repeated one.
    is_first: bool,
    /// Performed effects.
    carried_out: Vec<Effect>,
    /// Number of exits delivered.
    ended: usize,
}

impl Watched {
    fn look(&mut self, effect: &Effect) {
        let is_seen = match effect {
            Effect::Run(_) => true,
            Effect::Open { redirects, .. } => self.is_first && redirects.iter().any(writes),
            Effect::Commit { .. } | Effect::Enter(_) | Effect::Leave(..) => self.is_first,
            _ => false,
        };
        let Some(disk) = self.disk.as_ref().filter(|_| is_seen) else { return };
        self.carried_out.push(effect.clone());
        let journal = read(&disk.durable()).expect("a journal");
        let asked = asked(&journal);
        let words = format!("{effect:?}");
        let count = |all: &[Effect]| all.iter().filter(|it| format!("{it:?}") == words).count();
        assert!(count(&asked) >= count(&self.carried_out), "{words}");
    }
}

fn writes(change: &FdChange) -> bool {
    match &change.source {
        FdSource::File { access, .. } => *access != Access::Read,
        FdSource::StagedFile { .. } => true,
        _ => false,
    }
}

impl Driver for Watched {
    fn now(&self) -> Time {
        self.world.now()
    }

    fn perform(&mut self, effect: Effect) {
        self.look(&effect);
        self.world.perform(effect);
    }

    fn wait(&mut self, until: Time) -> Option<Event> {
        let before = self.now();
        let event = self.world.wait(until);
        if let Some(disk) = self.disk.as_ref().filter(|_| self.is_first)
            && self.now() - before > MAX_WAIT
        {
            let journal = read(&disk.durable()).expect("a journal");
            assert_eq!(
                exits(&journal).count(),
                self.ended,
                "what has ended is on the disk by then"
            );
        }
        self.ended += usize::from(matches!(event, Some(Event::Exited { .. })));
        event
    }
}

impl Durable for Watched {
    fn position(&self, io: IoId, descriptor: u8) -> Option<u64> {
        self.world.position(io, descriptor)
    }

    fn written(&mut self, buffer: BufferId, from: u64) -> io::Result<Option<BufferPart>> {
        self.world.written(buffer, from)
    }

    fn record_commits(&mut self, run: u64) {
        self.world.record_commits(run);
    }

    fn take_over_view(&mut self, view: ViewId, directories: &[BString]) -> io::Result<bool> {
        self.world.take_over_view(view, directories)
    }
}

fn world(done: &Rc<RefCell<Done>>, disk: Option<&Disk>, is_first: bool) -> Watched {
    let (done, disk) = (Rc::clone(done), disk.cloned());
    let world = Simulated::new(1).stdin("first\nsecond\n").file("/lines", "a\nb\nc\nd\n");
    let world = world.command("step", move |call, _| {
        let words: Vec<String> = call.words.iter().map(ToString::to_string).collect();
        let mut done = done.borrow_mut();
        done.steps.push(words[1].clone());
        if words[1] == "0" {
            done.last = words[2..].join(" ");
        }
        let is_long = words[1] == "4";
        let takes = if is_long { Duration::from_millis(100) } else { Duration::ZERO };
        Model::succeeds().prints(format!("<{0}>\n<{0}>\n", words[1])).takes(takes)
    });
    Watched { world, disk, is_first, carried_out: Vec::new(), ended: 0 }
}

pub(super) fn started() -> Started {
    let zero = Duration::ZERO;
    Started {
        at: zero,
        since_boot: zero,
        boot: "boot".into(),
        elapsed: zero,
        pid: 1,
        interpreter: 1,
        mark: "mark".into(),
        directory: "/".into(),
        umask: 0o22,
        ignored: vec![],
        user: 0,
        version: "0".into(),
    }
}

/// Runs the script from its beginning.
fn begin(disk: &Disk) -> Done {
    let script = parse("script", SCRIPT).expect("valid");
    let config = Config::default();
    let beginning = Beginning::new(&script, &["script".into()], &[], &config, 7, Duration::ZERO);
    let mut machine = Machine::new(&script, vec!["script".into()], Vec::new(), config, 7);
    let mut writer = Writer::begin(disk.clone(), 5, beginning).expect("a journal");
    writer.start(started());
    let done = Rc::default();
    let mut world = world(&done, Some(disk), true);
    let writer = Rc::new(RefCell::new(writer));
    let mut recorder = Recorder::new(&mut world, writer, Deadline::NONE).expect("its beginning");
    let outcome = driver::run(&mut machine, &mut recorder);
    assert_eq!(outcome, Outcome::Succeeded);
    assert!(recorder.end(&outcome).expect("an end"));
    drop(world);
    Rc::try_unwrap(done).ok().expect("nobody else has it").into_inner()
}

/// Runs the rest of an unfinished run.
fn go_on(disk: &Disk, journal: &Journal, is_watched: bool) -> Done {
    let replayed = replay(journal, Level::NOTHING, |_: &LogRecord| ()).expect("the same");
    let mut writer = Writer::resume(disk.clone(), journal, &replayed).expect("a journal");
    let length = disk.states().last().map(|state| state.bytes.len());
    assert_eq!(length, Some(journal.end), "nothing is left after what holds");
    writer.start(started());
    let done = Rc::default();
    let mut world = world(&done, is_watched.then_some(disk), false);
    let (outcome, now) = (replayed.outcome.clone(), replayed.now);
    assert!(now.elapsed() < Duration::from_secs(1));
    if let Some(outcome) = outcome {
        writer.end(&outcome).expect("an end");
    } else {
        let writer = Rc::new(RefCell::new(writer));
        let (mut machine, again) = replayed.go_on();
        let mut recorder =
            Recorder::resume(&mut world, writer, again, Deadline::NONE).expect("a journal");
        recorder.record_resumption().expect("a journal");
        let outcome = driver::resume(&mut machine, &mut recorder);
        assert_eq!(outcome, Outcome::Succeeded);
        assert!(recorder.end(&outcome).expect("an end"));
    }
    drop(world);
    Rc::try_unwrap(done).ok().expect("nobody else has it").into_inner()
}

/// Returns the effects of a replay.
fn asked(journal: &Journal) -> Vec<Effect> {
    struct All(Vec<Effect>);
    impl crate::ReplayObserver for &mut All {
        fn logged(&mut self, _: &LogRecord) {}

        fn on_effect(&mut self, effect: &Effect) {
            self.0.push(effect.clone());
        }
    }
    let mut all = All(Vec::new());
    replay(journal, Level::NOTHING, &mut all).expect("the same");
    all.0
}

/// Returns the step that an effect requests, with the number of its process.
fn step(effect: &Effect) -> Option<(u64, String)> {
    let Effect::Run(run) = effect else { return None };
    let Action::Program { words, .. } = &run.action else { return None };
    Some((run.process.0, words[1].to_string()))
}

/// Returns the commands with a recorded end.
fn exits(journal: &Journal) -> impl Iterator<Item = u64> {
    journal.entries().filter_map(|entry| match entry.expect("memory") {
        JournalEntry::Delivered {
            delivered: Delivered::Event(Event::Exited { process, .. }),
            ..
        } => Some(process.0),
        _ => None,
    })
}

/// Returns the steps with a recorded end.
fn ended(journal: &Journal) -> BTreeSet<String> {
    let ended: BTreeSet<u64> = exits(journal).collect();
    asked(journal)
        .iter()
        .filter_map(step)
        .filter(|(process, _)| ended.contains(process))
        .map(|(_, it)| it)
        .collect()
}

/// Returns the states that a crash may leave of a change.
fn torn(before: &[u8], after: &[u8]) -> Vec<Vec<u8>> {
    let mut states = vec![before.to_vec(), after.to_vec()];
    if after.len() < before.len() {
        // The write after the cut, without the cut.
        states.push([after, &before[after.len()..]].concat());
        return states;
    }
    for piece in [3, 40, 512] {
        for odd in [0, 1] {
            let mut torn = before.to_vec();
            torn.resize(after.len(), 0);
            for at in (0..after.len()).filter(|at| at / piece % 2 == odd) {
                torn[at] = after[at];
            }
            states.push(torn);
        }
    }
    for cut in 1..4 {
        let at = before.len().min(after.len());
        states.push(after[..at + (after.len() - at) * cut / 4].to_vec());
    }
    states
}

/// Continues the run from each torn state to the same end. Some of the resulting journals are torn
/// again.
fn judge(states: &[State], expected: &str, is_first: bool) -> usize {
    let mut count = 0;
    let changes = states.iter().enumerate().filter(|(number, state)| state.synced != *number);
    for (place, (_, state)) in changes.enumerate() {
        let torn = torn(&states[state.synced].bytes, &state.bytes);
        let step = if is_first { 2 } else { 6 };
        for (number, bytes) in torn.into_iter().enumerate().step_by(step) {
            let journal = match read(&bytes) {
                Ok(journal) if journal.over.is_none() => journal,
                Ok(_) | Err(Unreadable::Empty) => continue,
                Err(error) => panic!("{error}"),
            };
            let ended = ended(&journal);
            let disk = Disk::of(&bytes);
            let is_chosen = is_first && number == 2 && place % 12 == 0;
            let done = go_on(&disk, &journal, is_chosen);
            count += 1;
            // A lost atomic attempt repeats all its steps.
            let whole = ["6", "7", "8", "9", "53"];
            let twice = done
                .steps
                .iter()
                .find(|step| ended.contains(*step) && !whole.contains(&step.as_str()));
            assert_eq!(twice, None, "{ended:?}, then {:?}", done.steps);
            assert!(done.last.is_empty() || done.last == expected, "{}", done.last);
            if is_chosen {
                count += judge(&disk.states(), expected, false);
            }
        }
    }
    count
}

#[test]
#[ignore = "slow: `.ci/run` includes it"]
fn a_crash_at_any_moment_leaves_a_run_that_goes_on() {
    let disk = Disk::of(b"");
    let done = begin(&disk);
    assert_eq!(done.last, "<1> <1> start<2> <2> firstabcsecond<1><1>xy");
    let count = judge(&disk.states(), &done.last, true);
    assert!(count > 250, "{count}");
}
