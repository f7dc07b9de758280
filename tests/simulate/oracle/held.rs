//! Buffered output of branches appears completely, once, branch by branch and in the promised
//! order. Output of a losing word never appears. No output bypasses the buffer.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ftsh_machine::effect::{Action, BufferId, FdChange, FdSource, IoId, ProcessId, Run, TaskId};
use ftsh_machine::event::CommandStatus;
use ftsh_machine::record::LogEvent;
use ftsh_machine::status::Doing;
use ftsh_machine::{Effect, Event, Time};

use super::branches::said;
use super::{Judged, Look, Oracle, Verdict};
use crate::program::Promises;

/// Target of a descriptor.
#[derive(Clone, Copy, PartialEq)]
enum Sink {
    /// The target of the same descriptor of the shell.
    Inherited(u8),
    Held(BufferId),
    /// A file, by the number of its opening.
    Other(usize),
}

type Table = BTreeMap<u8, Sink>;

/// A branch with buffered output.
struct Branch {
    parent: Option<TaskId>,
    buffers: [BufferId; 2],
    /// Target of its output without the buffer.
    outer: [Option<Sink>; 2],
    /// True for a word of a hedged `forany`.
    hedged: bool,
    begun: usize,
    /// Position in the list for an ended branch of a `forall`.
    place: Option<u64>,
    variable: String,
}

pub(super) struct Held {
    promises: Promises,
    tables: BTreeMap<IoId, Table>,
    branches: BTreeMap<TaskId, Branch>,
    parents: BTreeMap<TaskId, TaskId>,
    /// Branch that is beginning.
    begins: Option<(TaskId, bool, String)>,
    /// Ended branches of each task whose output will be flushed.
    ended: BTreeMap<TaskId, VecDeque<TaskId>>,
    /// Flush in progress of each task, and the next part.
    now: BTreeMap<TaskId, (ProcessId, BufferId)>,
    next: BTreeMap<TaskId, BufferId>,
    done: BTreeSet<BufferId>,
    /// Last flushed output of each task, with its branch.
    last: BTreeMap<TaskId, (usize, TaskId)>,
    /// Branches flushed since the last check.
    let_out: Vec<(TaskId, TaskId)>,
    /// Tasks of atomic attempts, which another oracle judges.
    of_attempts: BTreeSet<BufferId>,
    started: BTreeMap<ProcessId, [Option<Sink>; 2]>,
    /// Tasks with output that could not be flushed.
    refused: BTreeSet<TaskId>,
    /// Tasks whose branches were canceled from outside.
    cut: BTreeSet<TaskId>,
    /// Tasks that report a repeated flush.
    again: BTreeSet<TaskId>,
    count: usize,
    judged: Judged,
}

impl Held {
    pub(super) fn new(promises: &Promises) -> Self {
        Self {
            promises: promises.clone(),
            tables: BTreeMap::new(),
            branches: BTreeMap::new(),
            parents: BTreeMap::new(),
            begins: None,
            ended: BTreeMap::new(),
            now: BTreeMap::new(),
            next: BTreeMap::new(),
            done: BTreeSet::new(),
            last: BTreeMap::new(),
            let_out: Vec::new(),
            of_attempts: BTreeSet::new(),
            started: BTreeMap::new(),
            refused: BTreeSet::new(),
            cut: BTreeSet::new(),
            again: BTreeSet::new(),
            count: 0,
            judged: Judged::default(),
        }
    }

    fn table(&mut self, base: IoId, redirects: &[FdChange]) -> Table {
        let inherited = || [1, 2].map(|number| (number, Sink::Inherited(number))).into();
        let mut table: Table = self.tables.get(&base).cloned().unwrap_or_else(inherited);
        for FdChange { descriptor, source } in redirects {
            self.count += 1;
            let sink = match source {
                FdSource::Hold(buffer) => Some(Sink::Held(*buffer)),
                FdSource::Descriptor(other) => table.get(other).copied(),
                _ => Some(Sink::Other(self.count)),
            };
            match sink {
                Some(sink) => table.insert(*descriptor, sink),
                None => table.remove(descriptor),
            };
        }
        table
    }

    fn open(&mut self, io: IoId, base: IoId, redirects: &[FdChange]) {
        let outer = self.table(base, &[]);
        let table = self.table(base, redirects);
        self.tables.insert(io, table);
        let held = redirects.iter().filter_map(|change| match change.source {
            FdSource::Hold(buffer) => Some((change.descriptor, buffer)),
            _ => None,
        });
        let held: Vec<_> = held.collect::<BTreeMap<_, _>>().into_values().collect();
        let is_attempt = redirects.iter().any(|it| matches!(it.source, FdSource::Spool(_)));
        if is_attempt || held.len() == 1 {
            self.of_attempts.extend(held);
            return;
        }
        if let [output, errors] = held[..]
            && let Some((task, hedged, variable)) = self.begins.take()
        {
            let branch = Branch {
                parent: None,
                buffers: [output, errors],
                outer: [1, 2].map(|number| outer.get(&number).copied()),
                hedged,
                begun: self.count,
                place: None,
                variable,
            };
            self.branches.insert(task, branch);
        }
    }

    fn run(&mut self, run: &Run) -> Verdict {
        let table = self.table(run.io, &run.redirects);
        self.started.insert(run.process, [1, 2].map(|number| table.get(&number).copied()));
        if let Action::Print(text) = &run.action
            && text.starts_with(b"ftsh: ")
        {
            let is_again = text.ends_with(b"part of it may be above:\n");
            if is_again {
                self.again.insert(run.task)
            } else {
                self.again.remove(&run.task)
            };
        }
        let source = run.redirects.first().map(|change| &change.source);
        match (&run.action, source) {
            (Action::Copy, Some(FdSource::BufferRead(buffer)))
                if !self.of_attempts.contains(buffer) =>
            {
                self.copy(run.task, run.process, *buffer)
            }
            _ => Ok(()),
        }
    }

    /// Handles the start of a flush.
    fn copy(&mut self, parent: TaskId, process: ProcessId, buffer: BufferId) -> Verdict {
        let of = self.branches.iter().find(|(_, branch)| branch.buffers.contains(&buffer));
        let Some((&task, branch)) = of else { return Err("of no branch".into()) };
        if !self.done.insert(buffer) && !self.again.contains(&parent) {
            return Err("a second time".into());
        }
        if self.now.contains_key(&parent) {
            return Err("beside another one".into());
        }
        let errors = buffer == branch.buffers[1];
        if self.next.remove(&parent) != errors.then_some(buffer) {
            return Err("between what another one has printed and its errors".into());
        }
        self.now.insert(parent, (process, buffer));
        if errors {
            return Ok(());
        }
        self.let_out.push((parent, task));
        if branch.hedged {
            let last = self.last.insert(parent, (self.count, task));
            return match last {
                Some((at, _)) if branch.begun < at => Err("of another word than the winner".into()),
                _ => Ok(()),
            };
        }
        if self.cut.contains(&parent) {
            self.judged.count("output of branches that were cut off");
            return Ok(());
        }
        let ended = self.ended.entry(parent).or_default();
        let Some(turn) = ended.iter().position(|ended| *ended == task) else {
            return Err("of a branch that has not ended".into());
        };
        ended.remove(turn);
        let site = self.promises.sites.get(&branch.variable);
        match site.and_then(|site| site.grouped) {
            Some(false) if turn > 0 => return Err("not in the order of ending".into()),
            Some(true) => {
                let of_last = self.last.get(&parent).and_then(|(_, last)| {
                    let last = self.branches.get(last)?;
                    (last.variable == branch.variable).then_some(last.place?)
                });
                let place = branch.place.unwrap_or_default();
                self.judged.count("output in order");
                if place > 0 && of_last != Some(place - 1) {
                    return Err(format!("of place {place} after {of_last:?}"));
                }
            }
            _ => {}
        }
        self.last.insert(parent, (self.count, task));
        Ok(())
    }

    fn log(&mut self, task: TaskId, event: &LogEvent) {
        match event {
            LogEvent::Iteration { kind: kind @ ("forall" | "forany"), name, .. } => {
                self.begins = Some((task, *kind == "forany", name.clone()));
            }
            LogEvent::BranchEnded { place, .. } => {
                if let Some(branch) = self.branches.get_mut(&task)
                    && let Some(parent) = branch.parent
                    && !branch.hedged
                {
                    branch.place = Some(*place);
                    self.ended.entry(parent).or_default().push_back(task);
                }
            }
            _ => {}
        }
    }

    /// Returns the enclosing branch of a task, if its output is buffered.
    fn around(&self, task: TaskId) -> Option<&Branch> {
        let up = |task: &TaskId| self.parents.get(task).copied();
        std::iter::successors(Some(task), up).find_map(|task| self.branches.get(&task))
    }
}

impl Oracle for Held {
    fn name(&self) -> &'static str {
        "held output"
    }

    fn effect(&mut self, _: Time, effect: &Effect) -> Verdict {
        match effect {
            Effect::Log(record) => {
                if let Some(task) = record.task {
                    self.log(task, &record.event);
                }
            }
            Effect::Open { io, base, redirects, .. } => self.open(*io, *base, redirects),
            Effect::Run(run) | Effect::Exec(run) => {
                self.run(run).map_err(|what| format!("line {}: let out {what}", run.line))?;
            }
            Effect::CloseIo(io) => _ = self.tables.remove(io),
            _ => {}
        }
        if let Some((run, words)) = said(effect)
            && let "done" | "failed" = words[0].as_str()
            && !self.refused.contains(&run.task)
            && self.promises.sites.get(&words[1]).is_some_and(|site| site.grouped.is_some())
        {
            self.judged.count("output of a forall is all out");
            let left = self.ended.get(&run.task).map_or(0, VecDeque::len);
            if left > 0 {
                return Err(format!("line {}: of {left} branches it is missing", run.line));
            }
        }
        Ok(())
    }

    fn event(&mut self, _: Time, event: &Event) -> Verdict {
        let (process, is_good) = match event {
            Event::Exited { process, status, .. } => (process, *status == CommandStatus::Exited(0)),
            Event::SpawnFailed { process, .. } => (process, false),
            _ => return Ok(()),
        };
        let parent = self.now.iter().find(|(_, now)| now.0 == *process).map(|(parent, _)| *parent);
        let Some(parent) = parent else { return Ok(()) };
        let Some((_, buffer)) = self.now.remove(&parent) else { return Ok(()) };
        if !is_good {
            self.refused.insert(parent);
            return Ok(());
        }
        let of = self.branches.values().find(|branch| branch.buffers[0] == buffer);
        self.next.extend(of.map(|branch| (parent, branch.buffers[1])));
        Ok(())
    }

    fn look(&mut self, look: &Look) -> Verdict {
        let tasks = &look.tasks;
        for (task, status) in tasks {
            if let Some(parent) = status.parent {
                self.parents.insert(*task, parent);
                if let Some(branch) = self.branches.get_mut(task) {
                    branch.parent = Some(parent);
                }
            }
        }
        for start in look.started {
            let Some(sinks) = self.started.remove(&start.process) else { continue };
            let Some(outer) = self.around(start.task).map(|branch| branch.outer) else { continue };
            self.judged.count("commands in branches whose output is held");
            for (sink, outer) in sinks.iter().zip(&outer) {
                if sink.is_some() && sink == outer {
                    return Err(format!("`{}` prints past what is held", start.text));
                }
            }
        }
        for (parent, task) in std::mem::take(&mut self.let_out) {
            let hedged = self.branches.get(&task).is_some_and(|branch| branch.hedged);
            self.judged.count(if hedged { "output of winners" } else { "output of branches" });
            let is_there = |other: &TaskId| {
                *other == task || hedged && self.parents.get(other) == Some(&parent)
            };
            if tasks.keys().any(is_there) {
                return Err(format!("of {task:?} comes out too early"));
            }
        }
        let waits = |task: &TaskId| {
            tasks.get(task).is_some_and(|task| matches!(task.doing, Doing::Branches(_)))
        };
        let parents: BTreeSet<TaskId> = self.branches.values().filter_map(|it| it.parent).collect();
        self.cut =
            parents.into_iter().filter(|task| tasks.contains_key(task) && !waits(task)).collect();
        self.ended.retain(|task, _| waits(task));
        let writes = |task: &TaskId| {
            waits(task) || tasks.get(task).is_some_and(|it| matches!(it.doing, Doing::Printing))
        };
        self.now.retain(|task, _| writes(task));
        self.next.retain(|task, _| writes(task));
        self.refused.retain(|task| tasks.contains_key(task));
        self.started.clear();
        Ok(())
    }

    fn judged(&self) -> &Judged {
        &self.judged
    }
}
