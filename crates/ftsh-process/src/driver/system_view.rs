//! Implementation of the queries of scopes.

use std::collections::HashMap;
use std::io;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

use crate::children::Children;
use crate::jobs::{ActiveCommand, CommandStage, Reactor};
use crate::procs::{ProcDir, ProcessEntry, ProcessScanner, TagLookup};
use crate::scopes::{OrphanList, ScopeQueries};
use crate::tag::ScopeTag;
use crate::tty::Terminal;
use ftsh_machine::effect::ProcessId;
use ftsh_sys as sys;

/// Parts of the driver that answer the queries.
pub(crate) struct SystemView<'a> {
    pub children: &'a mut Children,
    pub reactor: &'a mut Reactor,
    pub terminal: &'a mut Option<Terminal>,
    pub commands: &'a HashMap<ProcessId, ActiveCommand>,
    pub scanner: &'a mut ProcessScanner,
}

impl ScopeQueries for SystemView<'_> {
    fn orphans(&mut self) -> Option<OrphanList> {
        let others = self.children.others(|| self.reactor.started_pids()).ok()?;
        if let Some(terminal) = self.terminal {
            others.preexisting.iter().for_each(|&pid| terminal.helper_ended(pid));
        }
        Some(OrphanList { alive: others.orphans, ended: others.ended })
    }

    fn has_no_children(&mut self) -> bool {
        sys::has_no_children()
    }

    fn tag(&mut self, pid: i32) -> TagLookup {
        ProcDir(pid).tag(&self.scanner.tagger)
    }

    fn name(&mut self, pid: i32) -> String {
        ProcDir(pid).name()
    }

    fn group(&mut self, pid: i32) -> Option<i32> {
        sys::group_of(pid)
    }

    fn is_group_alive(&mut self, group: i32) -> bool {
        sys::is_group_alive(group)
    }

    fn children(&mut self, pid: i32) -> io::Result<Vec<i32>> {
        ProcDir(pid).children()
    }

    fn loading(&mut self, command: ProcessId) -> Vec<i32> {
        let Some(CommandStage::Working(handle)) = self.commands.get(&command).map(|it| &it.stage)
        else {
            return Vec::new();
        };
        let Some(thread) = handle.committed_thread() else { return Vec::new() };
        let mut loading =
            ProcDir(self.children.parent).children_of_thread(thread.id()).unwrap_or_default();
        loading.retain(|&pid| !self.children.is_command(pid));
        loading
    }

    fn process(&mut self, pid: i32) -> io::Result<Option<ProcessEntry>> {
        ProcDir(pid).entry()
    }

    fn clock(&mut self) -> (Instant, Duration) {
        let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
        (Instant::now(), time.map_or(Duration::ZERO, Duration::from))
    }

    fn tagged(&mut self) -> Option<Vec<(ProcessEntry, Option<ScopeTag>)>> {
        Some(self.scanner.scan()).filter(|scan| scan.is_listed).map(|it| it.processes)
    }

    fn is_own(&mut self, pid: i32) -> bool {
        pid == self.children.parent || self.children.preexisting.contains(&pid)
    }
}
