//! Two ways to find processes left by commands: [`Subreaper`] and [`Groups`].
//!
//! [`Subreaper`]: super::subreaper::Subreaper
//! [`Groups`]: super::groups::Groups

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use super::system::ScopeQueries;
use super::tree::Tree;
use ftsh_machine::effect::ScopeId;

/// Process of a scope other than the first process of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StrayProcess {
    /// Process id.
    pub pid: i32,
    /// Scope of the process.
    pub scope: ScopeId,
    /// Number of nested shells between this shell and the process.
    pub depth: usize,
    /// True if a living nested shell, or a living process that already received a signal, started
    /// the process. That parent ends the process, within the kill timeout.
    pub nested: bool,
}

/// Method to find orphans.
pub(super) trait Containment {
    /// True if orphans become children of this process. Then the list of orphans is complete, and
    /// their ends are reported.
    fn adopts(&self) -> bool;

    /// Returns the longest interval between two checks of a process that does not end.
    fn slowest_look(&self) -> Duration;

    /// Reaps ended orphans. Returns the living ones, or none if they cannot be listed now.
    fn reap(&mut self, tree: &mut Tree, system: &mut dyn ScopeQueries) -> Option<Vec<i32>>;

    /// Assigns all orphans to scopes. Returns false if some cannot be assigned yet, or if the list
    /// may be incomplete.
    fn adopt(&mut self, tree: &mut Tree, system: &mut dyn ScopeQueries, now: Instant) -> bool;

    /// Returns true if a scan cannot show anything new about these scopes now. Then sets the time
    /// of their next check.
    fn postpone(
        &mut self,
        _tree: &mut Tree,
        _system: &mut dyn ScopeQueries,
        _scopes: &BTreeSet<ScopeId>,
        _now: Instant,
    ) -> bool {
        false
    }

    /// Collects the data that `others` needs for these scopes. Returns false if the data may be
    /// incomplete.
    fn scan(
        &mut self,
        tree: &mut Tree,
        system: &mut dyn ScopeQueries,
        scopes: &BTreeSet<ScopeId>,
        now: Instant,
    ) -> bool;

    /// Returns the processes of a scope and its inner scopes found by the last scan, without
    /// commands.
    fn others(
        &self,
        tree: &Tree,
        system: &mut dyn ScopeQueries,
        scope: ScopeId,
    ) -> Vec<StrayProcess>;

    /// Returns the start times of these processes, where the last scan recorded them.
    fn starts(&self, _pids: &[i32]) -> Option<HashMap<i32, u64>> {
        None
    }

    /// Moves the processes of one scope to another.
    fn moved(&mut self, from: ScopeId, to: ScopeId);
}
