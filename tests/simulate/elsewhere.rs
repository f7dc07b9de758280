//! Comparison of local branches with branches that are packed and run by separate machines. Both
//! must do the same as long as they share nothing and use no random numbers.
//!
//! `FTSH_ELSEWHERE_PROGRAMS` sets the number of programs, and `FTSH_ELSEWHERE_SEED` the first seed.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use ftsh_machine::effect::{Access, Action, FdChange, FdSource, ProcessId, Query, Run, TaskId};
use ftsh_machine::packed::{BranchEnd, EndedBranch, PackedBranch, Unpackable};
use ftsh_machine::record::{Level, LogEvent};
use ftsh_machine::{Config, Effect, Event, FailureKind, Machine, Output, Packed, Time};
use ftsh_remote::{Frames, frame};
use ftsh_sim::{Ask, Call, Due, Model, Shell, SimulatedChannels, World};
use ftsh_syntax::backoff::{Policy, PolicyKind};

use crate::dice::Dice;
use crate::program::{LIBRARY, Program, SCRIPT, generate};
use crate::world::model;

/// Maximum number of examined outputs of a machine.
const MOST_OUTPUTS: usize = 3_000;
/// Maximum number of branches of a program that are run elsewhere.
const MOST_BRANCHES: usize = 12;
const UMASK: u16 = 0o022;

/// A deterministic world without faults except those of programs.
struct Calm {
    shell: Shell,
    around: Around,
}

struct Around {
    now: Time,
    future: BTreeMap<(Time, u64), Due>,
    count: u64,
    channels: SimulatedChannels,
    replies: Vec<Event>,
    wake: Option<Time>,
}

impl World for Around {
    fn now(&self) -> Time {
        self.now
    }

    fn start(&mut self, _: ProcessId, call: &Call) -> Option<Model> {
        let mut hasher = DefaultHasher::new();
        (call.words, call.now.elapsed()).hash(&mut hasher);
        model(call, &mut Dice::new(hasher.finish()))
    }

    fn schedule(&mut self, at: Time, due: Due) {
        self.count += 1;
        self.future.insert((at, self.count), due);
    }

    fn ask(&mut self, ask: Ask) {
        let replies = self.channels.ask(0, ask, self.now);
        self.send(replies);
    }
}

impl Around {
    fn send(&mut self, replies: Vec<(usize, Event)>) {
        self.replies.extend(replies.into_iter().map(|(_, event)| event));
        self.wake = self.channels.wake().or(self.wake);
    }
}

impl Calm {
    fn new(library: &str, now: Time) -> Self {
        let mut shell = Shell::default();
        for (path, content) in [(LIBRARY, library), ("/data", "one\ntwo\n"), ("/a.c", "")] {
            shell.add_file(path, content);
        }
        let around = Around {
            now,
            future: BTreeMap::new(),
            count: 0,
            channels: SimulatedChannels::default(),
            replies: Vec::new(),
            wake: None,
        };
        Self { shell, around }
    }

    /// Returns the next event up to `until`. Returns an error if no event will ever come.
    fn wait(&mut self, until: Time) -> Result<Option<Event>, ()> {
        loop {
            if let Some(event) = self.shell.poll_event() {
                return Ok(Some(event));
            }
            if !self.around.replies.is_empty() {
                return Ok(Some(self.around.replies.remove(0)));
            }
            let due = self.around.future.first_key_value().map(|(key, _)| key.0);
            let next = [due, self.around.wake].into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next <= until) else {
                if until == Time::NEVER {
                    return Err(());
                }
                self.around.now = self.around.now.max(until);
                return Ok(None);
            };
            self.around.now = self.around.now.max(next);
            if self.around.wake.take_if(|wake| *wake <= next).is_some() {
                let replies = self.around.channels.pass_time(next);
                self.around.send(replies);
            } else if let Some((_, due)) = self.around.future.pop_first() {
                self.shell.handle(due, &mut self.around);
            }
        }
    }
}

/// End of a branch: its failure, and the number of its attempts.
type End = (Option<(FailureKind, i32)>, u64);

/// Observed actions of a machine, one per line.
#[derive(Default)]
struct Seen {
    lines: Vec<(TaskId, Time, String)>,
    parents: BTreeMap<TaskId, TaskId>,
    ends: BTreeMap<TaskId, End>,
    /// Times at which branches were canceled.
    cut: BTreeMap<TaskId, Time>,
    packed: Packed,
    /// True if later actions depend on random numbers or shared state.
    is_open: bool,
    last: Time,
}

impl Seen {
    fn of(machine: &mut Machine, world: &mut Calm, stops: bool) -> Self {
        let mut seen = Self::default();
        machine.handle_timeout(world.around.now);
        for _ in 0..MOST_OUTPUTS {
            let output = machine.poll_output();
            seen.packed.extend(machine.take_packed());
            for task in machine.status(usize::MAX, world.around.now).tasks {
                seen.parents.extend(task.parent.map(|parent| (task.task, parent)));
            }
            seen.last = world.around.now;
            seen.is_open |= stops && machine.has_drawn();
            if seen.is_open {
                return seen;
            }
            match output {
                Output::Effect(effect) => {
                    if stops && depends(&effect) {
                        seen.is_open = true;
                        return seen;
                    }
                    seen.note(world.around.now, &effect);
                    world.shell.perform(effect, &mut world.around);
                }
                Output::Timeout(until) => match world.wait(until) {
                    Ok(Some(event)) => machine.handle_event(world.around.now, event),
                    Ok(None) => machine.handle_timeout(world.around.now),
                    Err(()) => return seen,
                },
                Output::Finished(_) => return seen,
            }
        }
        seen.is_open = true;
        seen
    }

    fn note(&mut self, now: Time, effect: &Effect) {
        match effect {
            Effect::Log(record) => {
                let Some(task) = record.task else { return };
                match &record.event {
                    LogEvent::Canceled => _ = self.cut.entry(task).or_insert(now),
                    LogEvent::BranchEnded { failure, attempts, .. } => {
                        self.ends.insert(task, (*failure, *attempts));
                        return;
                    }
                    // The ids of tasks differ. The end of a `limit` repeats a failure that nothing
                    // contains, and whether the surroundings of the branch contain the failure is
                    // not known elsewhere.
                    LogEvent::GroupEnded(_) | LogEvent::EndedBy(_) => return,
                    _ => {}
                }
                let line = format!(
                    "{}:{} {:?} {:?}",
                    record.file, record.line, record.attempt, record.event
                );
                self.lines.push((task, now, plain(&line)));
            }
            Effect::Run(run) => {
                let Run { action, directory, umask, deadline, grace, line, .. } = &**run;
                let directory =
                    directory.path.as_deref().map_or_else(|| "/".into(), ToString::to_string);
                let umask = umask.unwrap_or(UMASK);
                // Buffered output is written on behalf of other tasks.
                if !matches!(action, Action::Copy) {
                    let what =
                        format!("{line} {action:?} {directory} {umask} {deadline:?} {grace:?}");
                    self.lines.push((run.task, now, plain(&what)));
                }
            }
            _ => {}
        }
    }

    /// True if a task is a branch or a task that the branch waits for.
    fn is_of(&self, mut task: TaskId, branch: TaskId) -> bool {
        while task != branch {
            match self.parents.get(&task) {
                Some(parent) => task = *parent,
                None => return false,
            }
        }
        true
    }

    /// Returns the actions of a branch before a moment; simultaneous actions are sorted.
    fn lines_of(&self, branch: TaskId, before: Time) -> Vec<String> {
        let of =
            |(task, at, _): &&(TaskId, Time, String)| *at < before && self.is_of(*task, branch);
        let mut lines: Vec<_> =
            self.lines.iter().filter(of).map(|(_, at, line)| (*at, line)).collect();
        lines.sort();
        lines.into_iter().map(|(at, line)| format!("{:?} {line}", at.elapsed())).collect()
    }
}

/// Removes the parts of a line that differ elsewhere: lists of words of branches, structures around
/// the branch, and directories.
fn plain(line: &str) -> String {
    // The modelled world has no directory of its own.
    let line = line.replace("//there", "there");
    // The failures of branches in another shell are not in the log of this one.
    let line = line.replace("sums_up: true", "sums_up: false");
    let line = line.replace("trace: Trace ", "words: TalliedWords ");
    let line = line.replace("words: ListedWords ", "words: TalliedWords ");
    let mut pieces = line.split("words: TalliedWords ");
    let mut kept = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let mut depth = 0;
        kept.extend(piece.chars().skip_while(|c| {
            depth += i32::from(*c == '{') - i32::from(*c == '}');
            depth > 0
        }));
    }
    kept
}

/// True if an effect depends on the actions of others.
fn depends(effect: &Effect) -> bool {
    let reads = |changes: &[FdChange]| {
        changes
            .iter()
            .any(|change| matches!(&change.source, FdSource::File { access: Access::Read, .. }))
    };
    match effect {
        Effect::Run(run) => reads(&run.redirects),
        Effect::Open { redirects, .. } => reads(redirects),
        Effect::Enter(_)
        | Effect::Query { query: Query::Test(..) | Query::BranchFiles { .. }, .. } => true,
        _ => false,
    }
}

fn config() -> Config {
    Config {
        pid: 42,
        umask: UMASK,
        backoff: Policy { from: Duration::from_secs(1), ..Policy::new(PolicyKind::Fixed) },
        kill_timeout: Duration::from_secs(7),
        unset_is_empty: true,
        log_level: Level::STRUCTURES,
        ..Config::default()
    }
}

/// A branch that is run by its own machine.
fn elsewhere(packed: &PackedBranch, library: &str) -> (Seen, Option<EndedBranch>) {
    let now = packed.at;
    let mut world = Calm::new(library, now);
    let bytes = frame(packed).expect("not too long");
    let mut frames = Frames::<PackedBranch>::default();
    frames.push(&bytes);
    let mut unpacked = frames.message().expect("whole").expect("all of it");
    assert_eq!(&unpacked, packed);
    unpacked.config.log_level = Level::STRUCTURES;
    let mut machine = Machine::of_branch(unpacked, now).expect("a branch");
    let seen = Seen::of(&mut machine, &mut world, true);
    (seen, machine.branch_ended_with())
}

/// Counts of a comparison.
#[derive(Default)]
struct Tried {
    branches: usize,
    lines: usize,
    ends: BTreeSet<String>,
}

/// Compares the branches of a program with their execution elsewhere.
fn compare(program: &Program, tried: &mut Tried) -> Result<(), String> {
    let (script, library, _) = program.texts();
    // There is only one machine.
    if [" on slurm", " on ssh", " on liar"]
        .iter()
        .any(|on| script.contains(on) || library.contains(on))
    {
        return Ok(());
    }
    // A variable that branches write to is shared.
    if script
        .lines()
        .chain(library.lines())
        .chain(program.used_text().lines())
        .any(|line| line.trim_start().starts_with("end") && (line.contains("->")))
    {
        return Ok(());
    }
    let parsed = program.parse(&script).expect("a script");
    let args = vec![SCRIPT.into(), "first".into(), "second one".into()];
    let environment = vec![("HOME".into(), "/home".into()), ("ENV".into(), "1".into())];
    let mut machine = Machine::new(&parsed, args, environment, config(), 1);
    machine.pack_branches();
    let mut world = Calm::new(&library, Time::START);
    let here = Seen::of(&mut machine, &mut world, false);
    for (branch, packed) in here.packed.iter().take(MOST_BRANCHES) {
        let packed = match packed {
            Ok(packed) => packed,
            Err(Unpackable::Atomic) => continue,
            Err(error) => return Err(error.to_string()),
        };
        let (there, end) = elsewhere(packed, &library);
        let root = there.parents.iter().find(|(_, parent)| **parent == TaskId(0));
        let Some((root, _)) = root else { continue };
        let ended = here
            .ends
            .get(branch)
            .filter(|(failure, _)| failure.is_none_or(|(kind, _)| kind != FailureKind::Canceled));
        let until = match (ended, here.cut.get(branch)) {
            (Some(_), None) => Time::NEVER,
            (_, Some(cut)) => *cut,
            (None, None) => here.last,
        };
        let until = if there.is_open { until.min(there.last) } else { until };
        let (mine, theirs) = (here.lines_of(*branch, until), there.lines_of(*root, until));
        let story = |what: &str| {
            format!("{what}, {branch:?}:\n{}\n\nelsewhere:\n{}", mine.join("\n"), theirs.join("\n"))
        };
        // Elsewhere, only the processes of the branch count for `stalled` and `memory`.
        let is_watched = |lines: &[String]| {
            lines.iter().any(|it| it.contains("kind: Stalled") || it.contains("kind: Memory"))
        };
        if is_watched(&mine) != is_watched(&theirs) {
            continue;
        }
        // A branch that begins here is packed before the names of its files are known.
        if mine.iter().any(|it| it.contains("slug: BranchFile")) {
            continue;
        }
        if mine != theirs {
            return Err(story("it does something else"));
        }
        tried.branches += 1;
        tried.lines += mine.len();
        if until == Time::NEVER {
            let (Some(end), Some(ended)) = (end, ended) else {
                return Err(story("it doesn't end"));
            };
            let failure = match &end.end {
                BranchEnd::Succeeded => None,
                BranchEnd::Exited(code) => Some((FailureKind::Exit, i32::from(*code))),
                // A limit may pass in the last moment of a branch.
                BranchEnd::Failed { failure, .. } | BranchEnd::OutOfTime(failure) => {
                    Some(failure[0].failure.reason())
                }
                other @ BranchEnd::Canceled(_) => return Err(story(&format!("{other:?}"))),
            };
            if (failure, end.attempts) != *ended || there.ends[root] != *ended {
                return Err(story(&format!("{end:?} instead of {ended:?}")));
            }
            let kind = failure.map_or("success", |(kind, _)| kind.name());
            tried.ends.insert(kind.into());
        }
    }
    Ok(())
}

#[test]
fn branches_behave_the_same_elsewhere() {
    let variable = |name: &str, default| crate::number(name).unwrap_or(default);
    let first = variable("FTSH_ELSEWHERE_SEED", 1);
    let mut tried = Tried::default();
    for seed in first..first + variable("FTSH_ELSEWHERE_PROGRAMS", 700) {
        let program = generate(Dice::new(seed));
        if let Err(what) = compare(&program, &mut tried) {
            let (script, library, _) = program.texts();
            let used = program.used_text();
            panic!(
                "FTSH_ELSEWHERE_SEED={seed}: {what}\n\n{script}\nlibrary:\n{library}\nused:\n{used}"
            );
        }
    }
    println!("{} branches, {} lines, {:?}", tried.branches, tried.lines, tried.ends);
    assert!(tried.branches > 50 && tried.lines > 500 && tried.ends.len() > 4);
}
