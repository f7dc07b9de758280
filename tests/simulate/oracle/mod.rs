//! Promises that hold in every run, with any faults. Each oracle observes requests to the world,
//! events of the world, and the run before each wait. Each knows one promise.

mod atomic;
mod attempts;
mod beginnings;
mod beside;
mod branches;
mod channels;
mod deadlines;
mod delays;
mod directories;
pub(crate) mod elsewhere;
mod families;
mod files;
mod futile;
mod groups;
mod hedges;
mod held;
mod last_words;
mod leftovers;
mod once;
mod quorum;
mod resources;
mod signals;
mod slots;
mod taken_back;
mod usual;
mod views;
mod watches;

use std::collections::{BTreeMap, BTreeSet};

use ftsh_machine::effect::{ProcessId, TaskId};
use ftsh_machine::event::CommandStatus as ProcessStatus;
use ftsh_machine::status::{InProgress, Status, TaskStatus};
use ftsh_machine::time::Deadline;
use ftsh_machine::{Config, Effect, Event, Outcome, Time};
use ftsh_sim::cluster::NodeAttempt;
use ftsh_syntax::Script;

use self::families::{Families, Start};
use crate::program::Promises;

/// Description of a broken promise.
pub(crate) type Verdict = Result<(), String>;

/// One promise.
pub(crate) trait Oracle {
    fn name(&self) -> &'static str;

    /// Observes an effect of the machine.
    fn effect(&mut self, _now: Time, _effect: &Effect) -> Verdict {
        Ok(())
    }

    /// Observes an event of the world.
    fn event(&mut self, _now: Time, _event: &Event) -> Verdict {
        Ok(())
    }

    /// Observes the run before a wait.
    fn look(&mut self, _look: &Look) -> Verdict {
        Ok(())
    }

    /// Observes the end of the run, after a session that unsets every variable.
    fn end(&mut self) -> Verdict {
        Ok(())
    }

    /// Returns the number of judgments by subject.
    fn judged(&self) -> &Judged {
        const NOTHING: &Judged = &Judged(BTreeMap::new());
        NOTHING
    }
}

/// Subjects that do not occur in every run.
const JUDGED: [&str; 75] = [
    "ended views",
    "commands in views",
    "commits of views",
    "views in views",
    "conflicts",
    "lost views",
    "beginnings of attempts",
    "directories after in",
    "groups of with",
    "commands behind with",
    "failures that time does not mend",
    "atomic retries",
    "attempts take place",
    "attempts take place in others",
    "directories of attempts",
    "files are refused",
    "files of attempts",
    "files of commands",
    "files of structures in attempts",
    "output of attempts is let out",
    "output of failed attempts is taken back",
    "some files are refused",
    "what failed attempts have printed",
    "commands in branches whose output is held",
    "finally after a cancellation",
    "finally after a jump, return or exit",
    "finally after failure",
    "finally after success",
    "finally has no time",
    "forall fails",
    "forall is decided",
    "forall succeeds",
    "hedge is given up",
    "hedge is lost",
    "hedge is won by the first alone",
    "hedge is won",
    "keep going",
    "output of a forall is all out",
    "output of branches",
    "output of branches that were cut off",
    "output of winners",
    "quorum is missed",
    "quorum is missed, keep going",
    "quorum is reached",
    "quorum is reached, keep going",
    "output in order",
    "elsewhere: gives files",
    "once in: recorded",
    "gives: missing",
    "gives: there",
    "takes: missing",
    "once in: skipped",
    "finish running",
    "slots",
    "signals of attempts",
    "SIGTERM after another signal",
    "channel: admitted",
    "channel: waits",
    "channel: abandoned",
    "channel: no budget",
    "channel: broken",
    "elsewhere: cut short",
    "elsewhere: engine down",
    "elsewhere: fails",
    "elsewhere: not begun",
    "elsewhere: output",
    "elsewhere: repeated output",
    "elsewhere: second start",
    "elsewhere: sent again",
    "elsewhere: succeeds",
    "usual: bound",
    "usual: grows",
    "usual: learned",
    "watch: stalled",
    "watch: memory",
];

/// Number of judgments of subjects that do not occur in every run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Judged(pub BTreeMap<&'static str, usize>);

impl Judged {
    fn count(&mut self, what: &'static str) {
        debug_assert!(JUDGED.contains(&what), "`{what}` is in no list");
        *self.0.entry(what).or_default() += 1;
    }

    /// Returns the subjects that never occurred.
    pub(crate) fn missing(&self) -> Vec<&str> {
        JUDGED.iter().filter(|what| !self.0.contains_key(*what)).copied().collect()
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (what, count) in &other.0 {
            *self.0.entry(what).or_default() += count;
        }
    }
}

/// View of a run.
pub(crate) struct Look<'a> {
    pub now: Time,
    pub status: &'a Status,
    /// Tasks of the machine.
    pub tasks: BTreeMap<TaskId, &'a TaskStatus>,
    pub in_progress: InProgress,
    /// Outcome of the run, once it has ended.
    pub outcome: Option<&'a Outcome>,
    pub families: &'a Families,
    /// Actual results of dispatched branches.
    pub attempts: &'a [NodeAttempt],
    /// Commands started since the last call.
    pub started: &'a [Start],
}

impl Look<'_> {
    /// True if a `finally` group that began before a cancellation is running. Work that shares a
    /// scope with the group, such as stages of a pipeline, is ended afterwards.
    fn spares_a_group(&self) -> bool {
        self.status.tasks.iter().any(|task| task.in_finally && task.cleaning.is_some())
    }
}

/// Returns all oracles.
pub(crate) struct Oracles {
    families: Families,
    oracles: Vec<Box<dyn Oracle>>,
}

/// A broken promise.
#[derive(Clone, Debug)]
pub(crate) struct Violation {
    pub oracle: &'static str,
    pub what: String,
}

impl Oracles {
    pub(crate) fn new(script: &Script, promises: &Promises, config: &Config) -> Self {
        let oracles: Vec<Box<dyn Oracle>> = vec![
            Box::new(resources::Resources::default()),
            Box::new(channels::Channels::default()),
            Box::new(attempts::Attempts::new(promises)),
            Box::new(beginnings::Beginnings::default()),
            Box::new(beside::Beside::default()),
            Box::new(directories::Directories::default()),
            Box::new(futile::Futile::new(promises)),
            Box::new(delays::Delays::new(promises, config)),
            Box::new(deadlines::Deadlines::new(promises, config)),
            Box::new(quorum::Quorum::new(promises)),
            Box::new(slots::Slots::new(promises)),
            Box::new(signals::Signals::new(promises)),
            Box::new(once::Once::default()),
            Box::new(files::Files::default()),
            Box::new(watches::Watches::default()),
            Box::new(hedges::Hedges::new(promises)),
            Box::new(held::Held::new(promises)),
            Box::new(taken_back::TakenBack::default()),
            Box::new(atomic::Atomic::default()),
            Box::new(views::Views::default()),
            Box::new(groups::Groups::new(promises, config)),
            Box::new(elsewhere::Elsewhere::default()),
            Box::new(usual::Usual::new(script, promises)),
            Box::new(last_words::LastWords::default()),
            Box::new(leftovers::Leftovers(promises.clone())),
            Box::new(leftovers::Nothing { limited: config.deadline != Deadline::NONE }),
        ];
        Self { families: Families::default(), oracles }
    }

    pub(crate) fn effect(&mut self, now: Time, effect: &Effect) -> Result<(), Violation> {
        self.families.effect(now, effect);
        self.ask(|oracle| oracle.effect(now, effect))
    }

    pub(crate) fn event(&mut self, now: Time, event: &Event) -> Result<(), Violation> {
        if let Event::Resumed { lost, .. } = event {
            for process in lost {
                let (process, status) = (*process, ProcessStatus::Lost);
                self.event(
                    now,
                    &Event::Exited { process, status, line: None, reader_gone: false },
                )?;
            }
        }
        self.families.event(now, event);
        self.ask(|oracle| oracle.event(now, event))
    }

    pub(crate) fn look(
        &mut self,
        status: &Status,
        in_progress: InProgress,
        outcome: Option<&Outcome>,
        alive: &BTreeSet<ProcessId>,
        attempts: &[NodeAttempt],
    ) -> Result<(), Violation> {
        let started = self.families.look(status, alive);
        let Self { families, oracles } = self;
        let tasks = status.tasks.iter().map(|task| (task.task, task)).collect();
        let look = Look {
            now: status.now,
            status,
            tasks,
            in_progress,
            outcome,
            families,
            attempts,
            started: &started,
        };
        ask(oracles, |oracle| oracle.look(&look))
    }

    pub(crate) fn end(&mut self) -> Result<(), Violation> {
        self.ask(Oracle::end)
    }

    pub(crate) fn judged(&self) -> Judged {
        let mut all = Judged::default();
        self.oracles.iter().for_each(|oracle| all.add(oracle.judged()));
        all
    }

    fn ask(
        &mut self,
        question: impl FnMut(&mut (dyn Oracle + 'static)) -> Verdict,
    ) -> Result<(), Violation> {
        ask(&mut self.oracles, question)
    }
}

fn ask(
    oracles: &mut [Box<dyn Oracle>],
    mut question: impl FnMut(&mut (dyn Oracle + 'static)) -> Verdict,
) -> Result<(), Violation> {
    for oracle in oracles {
        let oracle = &mut **oracle;
        question(oracle).map_err(|what| Violation { oracle: oracle.name(), what })?;
    }
    Ok(())
}
