//! Atomic attempts are all or nothing. Writes of a failed attempt are never seen. A commit happens
//! once, completely and in order, and no attempt follows. The same holds for the files of single
//! commands.

use std::collections::{BTreeMap, BTreeSet};

use ftsh_machine::effect::{
    self, Action, BufferId, FdChange, FdSource, IoId, OperationId, ProcessId, Query, Run,
    ScratchId, SpoolId, StagedFileId,
};
use ftsh_machine::event::{CommandStatus, Reply};
use ftsh_machine::{Effect, Event, Time};

use super::{Judged, Oracle, Verdict};

/// Target of a descriptor.
#[derive(Clone, Copy, PartialEq)]
enum Sink {
    /// The target of the same descriptor of the shell.
    Inherited(u8),
    Held(BufferId),
    /// A file, by the number of its opening.
    Other(usize),
}

/// An attempt, which begins with its descriptors.
struct Attempt {
    base: IoId,
    /// The attempt around.
    outer: Option<IoId>,
    buffers: Vec<BufferId>,
    /// Files of the attempt, after those of committed inner attempts.
    drafts: Vec<StagedFileId>,
    inner: Vec<StagedFileId>,
    kept: bool,
    failed: bool,
    /// Known targets of its output, and the amount already flushed.
    filled: Option<Vec<BufferId>>,
    let_out: usize,
    refused: bool,
}

/// Owner of staged files.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    Attempt(IoId),
    /// A structure, a call or a `catch`.
    Block(IoId),
    Command(ProcessId),
}

#[derive(Default)]
pub(super) struct Atomic {
    bases: BTreeMap<IoId, IoId>,
    sinks: BTreeMap<IoId, BTreeMap<u8, Sink>>,
    attempts: BTreeMap<IoId, Attempt>,
    /// Current reading attempt.
    present: BTreeMap<SpoolId, IoId>,
    /// True if no other attempt may read the input.
    over: BTreeSet<SpoolId>,
    replays: BTreeSet<SpoolId>,
    drafts: BTreeMap<StagedFileId, Owner>,
    dropped: BTreeSet<StagedFileId>,
    asked: BTreeSet<StagedFileId>,
    settled: BTreeSet<StagedFileId>,
    settling: BTreeMap<OperationId, Vec<StagedFileId>>,
    filling: BTreeMap<OperationId, IoId>,
    copying: BTreeMap<ProcessId, IoId>,
    scratches: BTreeSet<ScratchId>,
    /// Descriptors that commands start with.
    starts: BTreeMap<ProcessId, IoId>,
    succeeded: BTreeSet<ProcessId>,
    terminated: bool,
    count: usize,
    judged: Judged,
}

fn demand(truth: bool, what: &str) -> Verdict {
    if truth { Ok(()) } else { Err(what.into()) }
}

impl Atomic {
    fn table(&mut self, base: IoId, redirects: &[FdChange]) -> BTreeMap<u8, Sink> {
        let inherited = || [1, 2].map(|number| (number, Sink::Inherited(number))).into();
        let mut table = self.sinks.get(&base).cloned().unwrap_or_else(inherited);
        for FdChange { descriptor, source } in redirects {
            self.count += 1;
            let sink = match source {
                FdSource::Hold(_) if *descriptor > 2 && !table.contains_key(descriptor) => None,
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

    /// Returns a table and the tables that it derives from.
    fn up(&self, io: IoId) -> impl Iterator<Item = IoId> {
        std::iter::successors(Some(io), |io| self.bases.get(io).copied())
    }

    /// Returns the innermost attempt that owns descriptors.
    fn around(&self, io: IoId) -> Option<IoId> {
        self.up(io).find(|io| self.attempts.contains_key(io))
    }

    /// True if no other command owns the files. Files before a variable are opened before the
    /// command starts.
    fn are_of(&self, process: ProcessId, owners: &BTreeSet<Owner>) -> bool {
        owners.iter().all(|owner| match owner {
            Owner::Command(other) => *other == process,
            Owner::Block(io) => {
                self.starts.get(&process).is_some_and(|start| self.up(*start).any(|it| it == *io))
            }
            Owner::Attempt(_) => false,
        })
    }

    fn open(&mut self, io: IoId, base: IoId, redirects: &[FdChange]) -> Verdict {
        let outer = self.around(base);
        let table = self.table(base, redirects);
        self.sinks.insert(io, table);
        self.bases.insert(io, base);
        let replay = redirects.iter().find_map(|change| match change.source {
            FdSource::Spool(replay) => Some(replay),
            _ => None,
        });
        let holds = |change: &FdChange| matches!(change.source, FdSource::Hold(_));
        if let Some(replay) = replay.filter(|_| !redirects.iter().any(holds)) {
            // An attempt with `same input`, which holds nothing.
            self.present.insert(replay, io);
            self.replays.insert(replay);
            return Ok(());
        }
        let owner = replay.map_or(Owner::Block(io), |_| Owner::Attempt(io));
        let drafts = self.drafts_of(owner, redirects);
        let Some(replay) = replay else { return Ok(()) };
        demand(!self.over.contains(&replay), "another attempt after one that took place")?;
        if self.present.insert(replay, io).is_some() {
            self.judged.count("atomic retries");
        }
        self.replays.insert(replay);
        let buffers = redirects.iter().filter_map(|change| match change.source {
            FdSource::Hold(buffer) => Some(buffer),
            _ => None,
        });
        let attempt = Attempt {
            base,
            outer,
            buffers: buffers.collect(),
            drafts,
            inner: Vec::new(),
            kept: false,
            failed: false,
            filled: None,
            let_out: 0,
            refused: false,
        };
        self.attempts.insert(io, attempt);
        Ok(())
    }

    fn drafts_of(&mut self, owner: Owner, redirects: &[FdChange]) -> Vec<StagedFileId> {
        let drafts = redirects.iter().filter_map(|change| match change.source {
            FdSource::StagedFile { file: draft, .. } => Some(draft),
            _ => None,
        });
        let drafts: Vec<_> = drafts.collect();
        self.drafts.extend(drafts.iter().map(|draft| (*draft, owner)));
        drafts
    }

    fn run(&mut self, run: &Run) -> Verdict {
        self.drafts_of(Owner::Command(run.process), &run.redirects);
        self.starts.insert(run.process, run.io);
        let table = self.table(run.io, &run.redirects);
        let mut inside = self.around(run.io);
        while let Some(attempt) = inside.and_then(|io| self.attempts.get(&io)) {
            let past = self.sinks.get(&attempt.base);
            let is_past = |sink: &Sink| match past {
                Some(past) => past.values().any(|outer| outer == sink),
                None => matches!(sink, Sink::Inherited(_)),
            };
            demand(!table.values().any(is_past), "it prints past its attempt")?;
            inside = attempt.outer;
        }
        let source = run.redirects.first().map(|change| &change.source);
        if let (Action::Copy, Some(FdSource::BufferRead(buffer))) = (&run.action, source)
            && let Some(io) = self.owner(*buffer)
        {
            return self.let_out(io, *buffer, run);
        }
        Ok(())
    }

    /// Returns the attempt whose output a buffer holds.
    fn owner(&self, buffer: BufferId) -> Option<IoId> {
        let mut attempts = self.attempts.iter();
        attempts.find(|(_, attempt)| attempt.buffers.contains(&buffer)).map(|(io, _)| *io)
    }

    fn let_out(&mut self, io: IoId, buffer: BufferId, run: &Run) -> Verdict {
        let Some(attempt) = self.attempts.get_mut(&io) else { return Ok(()) };
        demand(attempt.kept && !attempt.failed, "what is let out hasn't succeeded")?;
        demand(attempt.base == run.io, "it is let out somewhere else")?;
        let next = attempt.filled.as_ref().and_then(|filled| filled.get(attempt.let_out));
        demand(next == Some(&buffer), "it isn't what comes next")?;
        demand(!self.copying.values().any(|other| *other == io), "beside another one")?;
        self.judged.count("output of attempts is let out");
        self.copying.insert(run.process, io);
        Ok(())
    }

    /// Handles an attempt that has consumed its input: its files are committed or belong to an
    /// outer attempt.
    fn keep(&mut self, replay: SpoolId) -> Verdict {
        let present = self.present.get(&replay).copied();
        let Some(io) = present else { return Err("no attempt reads that".into()) };
        let Some(attempt) = self.attempts.get_mut(&io) else { return Ok(()) };
        demand(!attempt.kept && !attempt.failed, "an attempt that can't be kept")?;
        attempt.kept = true;
        self.over.insert(replay);
        let mut drafts = std::mem::take(&mut attempt.inner);
        drafts.extend(&attempt.drafts);
        self.judged.count("attempts take place");
        let Some(outer) = attempt.outer else {
            let settled = drafts.iter().all(|draft| self.settled.contains(draft));
            return demand(settled, "it reads for good before its files are there");
        };
        self.judged.count("attempts take place in others");
        if let Some(outer) = self.attempts.get_mut(&outer) {
            outer.inner.extend(drafts);
        }
        Ok(())
    }

    fn settle(&mut self, drafts: &[StagedFileId]) -> Verdict {
        let mut owners = BTreeSet::new();
        for draft in drafts {
            demand(self.asked.insert(*draft), "a file is to take its place twice")?;
            demand(!self.dropped.contains(draft), "a file was dropped before")?;
            let Some(owner) = self.drafts.get(draft) else { return Err("no such file".into()) };
            owners.insert(*owner);
        }
        for owner in &owners {
            let of = |draft: &&StagedFileId| self.drafts.get(draft) == Some(owner);
            let (all, here) = (self.drafts.keys().filter(of), drafts.iter().filter(of));
            demand(all.eq(here), "not all files of a kind take their places, or in another order")?;
            match owner {
                Owner::Attempt(io) => {
                    // Failures after its files are of another kind.
                    let is_lost = |attempt: &Attempt| attempt.failed && !attempt.kept;
                    let failed = self.attempts.get(io).is_some_and(is_lost);
                    demand(!failed, "the file of an attempt that has failed")?;
                }
                Owner::Command(process) => {
                    self.judged.count("files of commands");
                    demand(self.are_of(*process, &owners), "a command's file among others")?;
                    let good = self.succeeded.contains(process);
                    demand(good, "the file of a command that hasn't succeeded")?;
                }
                Owner::Block(_) => self.judged.count("files of structures in attempts"),
            }
        }
        // The outermost attempt comes last and contains the files of inner ones.
        if let Some(Owner::Attempt(io)) = drafts.last().and_then(|draft| self.drafts.get(draft))
            && let Some(attempt) = self.attempts.get(io)
            && attempt.outer.is_none()
        {
            self.judged.count("files of attempts");
            let known =
                |draft: &&StagedFileId| matches!(self.drafts.get(draft), Some(Owner::Attempt(_)));
            let expected = attempt.inner.iter().chain(&attempt.drafts);
            demand(drafts.iter().filter(known).eq(expected), "not the files of an attempt")?;
        }
        Ok(())
    }

    /// Handles files that were committed or cannot be.
    fn settled(&mut self, drafts: Vec<StagedFileId>, reply: Option<&Reply>) {
        match reply {
            None | Some(Reply::Conflict(_)) => self.judged.count("files are refused"),
            Some(Reply::Incomplete(_)) => {
                self.judged.count("some files are refused");
                let owners = drafts.iter().filter_map(|draft| self.drafts.get(draft));
                for owner in owners {
                    let of = self.present.iter().find(|(_, io)| Owner::Attempt(**io) == *owner);
                    self.over.extend(of.map(|(replay, _)| *replay));
                }
            }
            Some(_) => self.settled.extend(drafts),
        }
    }

    /// Allows another attempt after a lost command that was writing the output of an attempt.
    fn lost(&mut self, process: ProcessId) {
        let Some(io) = self.copying.get(&process).copied() else { return };
        self.copied(process, false);
        self.over.retain(|replay| self.present.get(replay) != Some(&io));
    }

    fn copied(&mut self, process: ProcessId, good: bool) {
        let io = self.copying.remove(&process);
        if let Some(attempt) = io.and_then(|io| self.attempts.get_mut(&io)) {
            attempt.let_out += usize::from(good);
            attempt.refused |= !good;
        }
    }
}

impl Oracle for Atomic {
    fn name(&self) -> &'static str {
        "all or nothing"
    }

    fn effect(&mut self, _: Time, effect: &Effect) -> Verdict {
        match effect {
            Effect::Open { io, base, redirects, .. } => self.open(*io, *base, redirects)?,
            Effect::Run(run) | Effect::Exec(run) => {
                self.run(run).map_err(|what| format!("line {}: {what}", run.line))?;
            }
            Effect::Query { query: Query::Tail(sinks, _), .. } => {
                let buffers = sinks.iter().filter_map(|sink| match sink {
                    effect::Sink::Buffer(buffer) => self.owner(*buffer),
                    effect::Sink::StagedFile(_) => None, // buffered output always has other records
                });
                for io in buffers.collect::<Vec<_>>() {
                    self.judged.count("what failed attempts have printed");
                    if let Some(attempt) = self.attempts.get_mut(&io) {
                        attempt.failed = true;
                    }
                }
            }
            Effect::Query { operation, query: Query::Filled(buffers), .. } => {
                let io = buffers.first().and_then(|buffer| self.owner(*buffer));
                self.filling.extend(io.map(|io| (*operation, io)));
            }
            Effect::Query { query: Query::Scratch(scratch), .. } => {
                self.judged.count("directories of attempts");
                self.scratches.insert(*scratch);
            }
            // Those of an inner attempt wait for the outer one.
            Effect::Commit { operation, files: drafts }
            | Effect::CommitView { operation, files: drafts, is_inner: false, .. } => {
                self.settle(drafts)?;
                self.settling.insert(*operation, drafts.clone());
            }
            Effect::KeepInput(replay) => self.keep(*replay)?,
            Effect::DropStagedFile(draft) => {
                demand(self.dropped.insert(*draft), "a file is dropped twice")?;
            }
            Effect::DropSpool(replay) => {
                demand(self.replays.remove(replay), "what isn't read is dropped")?;
            }
            Effect::DropScratch(scratch) => _ = self.scratches.remove(scratch),
            Effect::Terminate(_) => self.terminated = true,
            _ => {}
        }
        Ok(())
    }

    fn event(&mut self, _: Time, event: &Event) -> Verdict {
        match event {
            Event::Done { operation, result } => {
                if let Some(drafts) = self.settling.remove(operation) {
                    self.settled(drafts, result.as_ref().ok());
                }
                if let Some(io) = self.filling.remove(operation)
                    && let (Some(attempt), Ok(Reply::Buffers(filled))) =
                        (self.attempts.get_mut(&io), result)
                {
                    let held = filled.iter().filter(|buffer| attempt.buffers.contains(buffer));
                    attempt.filled = Some(held.copied().collect());
                }
            }
            Event::Exited { process, status: CommandStatus::Lost, .. } => self.lost(*process),
            Event::Exited { process, status, .. } => {
                let good = *status == CommandStatus::Exited(0);
                self.succeeded.extend(Some(*process).filter(|_| good));
                self.copied(*process, good);
            }
            Event::SpawnFailed { process, .. } => self.copied(*process, false),
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self) -> Verdict {
        let left = self.drafts.keys().any(|draft| !self.dropped.contains(draft));
        demand(!left, "a file is left that isn't in its place")?;
        demand(self.replays.is_empty(), "input is kept at the end")?;
        demand(self.scratches.is_empty(), "a directory is left")?;
        for attempt in self.attempts.values().filter(|attempt| attempt.kept && !self.terminated) {
            let filled = attempt.filled.as_ref().map_or(0, Vec::len);
            demand(attempt.refused || attempt.let_out == filled, "not all of it is let out")?;
        }
        Ok(())
    }

    fn judged(&self) -> &Judged {
        &self.judged
    }
}
