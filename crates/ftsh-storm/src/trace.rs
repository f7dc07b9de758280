//! Trace of a run: a line of JSON for each command that began or ended.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::command::{CommandCounter, CommandId};

/// Entry of a trace.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum TraceEntry {
    /// A start of the shell began.
    Started,
    /// A command began.
    Begun {
        /// Number of the command in this start of the shell.
        number: u64,
        /// Line of the script, from 1.
        line: u32,
        /// Hash of the words.
        words: u64,
        /// Words for people.
        text: String,
        /// True for a program, false for a builtin that writes a file.
        is_program: bool,
        /// True if a model stands for the command.
        is_modelled: bool,
        /// True if a limit ends a hang.
        has_limit: bool,
    },
    /// A command ended.
    Ended {
        /// Number of the command.
        number: u64,
        /// Exit status, as a parent shell would report it.
        status: i32,
        /// Real duration.
        took: Duration,
        /// Paths that changed meanwhile, if observed.
        changed: Vec<PathBuf>,
    },
    /// The fault took place.
    Injected {
        /// Number of the command.
        number: u64,
    },
    /// The run was cut because it seems endless.
    Endless,
    /// The run ended.
    Finished {
        /// Line of the failure that ended the run.
        failed_line: Option<u32>,
    },
}

/// Writer of a trace.
pub(crate) struct TraceWriter(Option<File>);

impl TraceWriter {
    /// Opens a trace for appending. A trace that cannot be opened is lost, and the run is judged as
    /// one without commands.
    pub(crate) fn open(path: &Path) -> Self {
        let mut trace = Self(File::options().append(true).create(true).open(path).ok());
        trace.write(&TraceEntry::Started);
        trace
    }

    /// Appends an entry by one write.
    pub(crate) fn write(&mut self, entry: &TraceEntry) {
        if let (Some(file), Ok(mut line)) = (&mut self.0, serde_json::to_vec(entry)) {
            line.push(b'\n');
            let _ = file.write_all(&line);
        }
    }
}

/// A command of a trace.
#[derive(Clone, Debug)]
pub(crate) struct TracedCommand {
    /// Line of the script, from 1.
    pub line: u32,
    /// Hash of the words.
    pub words: u64,
    /// Words for people.
    pub text: String,
    pub is_program: bool,
    pub is_modelled: bool,
    pub has_limit: bool,
    /// Identities with and without the words.
    pub ids: [CommandId; 2],
    /// Exit status, if the command ended.
    pub status: Option<i32>,
    pub took: Duration,
    pub changed: BTreeSet<PathBuf>,
}

/// Commands of a run, in the order of their begin.
#[derive(Clone, Debug, Default)]
pub struct RunTrace {
    pub(crate) commands: Vec<TracedCommand>,
    /// Index of the command with the fault, if the fault took place.
    pub(crate) injected: Option<usize>,
    /// True if commands of one line ran at once, as in branches.
    pub(crate) has_branches: bool,
    /// True if the run was cut because it seems endless.
    pub(crate) is_endless: bool,
    /// Line of the failure that ended the run.
    pub(crate) failed_line: Option<u32>,
    /// Index of the command that ended last with a failure.
    pub(crate) last_failed: Option<usize>,
}

impl RunTrace {
    /// Reads a trace. A last line that is incomplete is left out.
    pub fn read(path: &Path) -> io::Result<Self> {
        let mut trace = Self::default();
        let mut counter = CommandCounter::default();
        let mut indexes = BTreeMap::new();
        for line in BufReader::new(File::open(path)?).split(b'\n') {
            let Ok(entry) = serde_json::from_slice(&line?) else { continue };
            trace.add(entry, &mut counter, &mut indexes);
        }
        Ok(trace)
    }

    fn add(
        &mut self,
        entry: TraceEntry,
        counter: &mut CommandCounter,
        indexes: &mut BTreeMap<u64, usize>,
    ) {
        match entry {
            TraceEntry::Started => indexes.clear(),
            TraceEntry::Begun { number, line, words, text, is_program, is_modelled, has_limit } => {
                let is_beside = |it: &usize| {
                    self.commands[*it].line == line && self.commands[*it].status.is_none()
                };
                self.has_branches |= indexes.values().any(is_beside);
                indexes.insert(number, self.commands.len());
                self.commands.push(TracedCommand {
                    line,
                    words,
                    text,
                    is_program,
                    is_modelled,
                    has_limit,
                    ids: counter.next(line, words),
                    status: None,
                    took: Duration::ZERO,
                    changed: BTreeSet::new(),
                });
            }
            TraceEntry::Ended { number, status, took, changed } => {
                let Some(&index) = indexes.get(&number) else { return };
                let command = &mut self.commands[index];
                command.status = Some(status);
                command.took = took;
                command.changed = changed.into_iter().collect();
                if status != 0 {
                    self.last_failed = Some(index);
                }
            }
            TraceEntry::Injected { number } => self.injected = indexes.get(&number).copied(),
            TraceEntry::Endless => self.is_endless = true,
            TraceEntry::Finished { failed_line } => self.failed_line = failed_line,
        }
    }

    /// Returns the line of the command that made a run fail.
    pub(crate) fn culprit_of_failure(&self) -> Option<u32> {
        self.last_failed.map(|index| self.commands[index].line).or(self.failed_line)
    }
}
