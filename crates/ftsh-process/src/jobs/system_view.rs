//! Implementation of the queries of scopes.

use std::collections::HashMap;
use std::io;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

use super::super::procs::features::needs_ps;
use super::super::procs::list::{self, ProcessEntry, TagLookup};
use super::super::procs::scanner::ProcessScanner;
use super::super::scopes::{OrphanList, ScopeQueries};
use super::super::tag::ScopeTag;
use super::super::tty::Terminal;
use super::{ActiveCommand, Children, CommandStage, Reactor};
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
        list::tag(pid, &self.scanner.tagger)
    }

    fn name(&mut self, pid: i32) -> String {
        list::name(pid)
    }

    fn group(&mut self, pid: i32) -> Option<i32> {
        sys::group_of(pid)
    }

    fn is_group_alive(&mut self, group: i32) -> bool {
        sys::is_group_alive(group)
    }

    fn children(&mut self, pid: i32) -> io::Result<Vec<i32>> {
        list::children(pid)
    }

    fn loading(&mut self, command: ProcessId) -> Vec<i32> {
        let Some(CommandStage::Working(handle)) = self.commands.get(&command).map(|it| &it.stage)
        else {
            return Vec::new();
        };
        let Some(thread) = handle.committed_thread() else { return Vec::new() };
        let mut loading =
            list::children_of_thread(self.children.parent, thread.id()).unwrap_or_default();
        loading.retain(|&pid| !self.children.is_command(pid));
        loading
    }

    fn process(&mut self, pid: i32) -> io::Result<Option<ProcessEntry>> {
        list::one(pid)
    }

    fn clock(&mut self) -> (Instant, Duration) {
        let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
        (Instant::now(), time.map_or(Duration::ZERO, Duration::from))
    }

    fn tagged(&mut self) -> Option<Vec<(ProcessEntry, Option<ScopeTag>)>> {
        if !needs_ps() {
            return Some(self.scanner.scan()).filter(|scan| scan.is_listed).map(|it| it.processes);
        }
        let running = list::from_ps().ok()?.into_iter().filter(|process| !process.ended);
        let tagged = running.map(|process| match list::tag(process.pid, &self.scanner.tagger) {
            TagLookup::Unreadable => None,
            tagged => Some((process, tagged.ours())),
        });
        tagged.collect()
    }

    fn is_own(&mut self, pid: i32) -> bool {
        pid == self.children.parent || self.children.preexisting.contains(&pid)
    }
}
