//! Two ways to find what commands left behind: [`Subreaper`] and [`Groups`].
//!
//! [`Subreaper`]: super::subreaper::Subreaper
//! [`Groups`]: super::groups::Groups

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use super::system::System;
use super::tree::Tree;
use ftsh_machine::effect::ScopeId;

/// A process of a scope that isn't a command's first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Other {
    /// Its id.
    pub pid: i32,
    /// How many nested shells it came through.
    pub depth: usize,
    /// Whether another one started it which still lives, a nested shell or one that was asked to end
    /// before: its own to end, as long as there is time.
    pub nested: bool,
}

/// How processes that lost their parents are found.
pub trait Containment {
    /// Whether they come to this process. Then what isn't seen isn't there, and their end is told.
    fn adopts(&self) -> bool;

    /// How often is looked at least for what doesn't end.
    fn slowest_look(&self) -> Duration;

    /// Takes note of the end of those that came to this process. The others of them; none if they can't
    /// be told at the moment.
    fn reap(&mut self, tree: &mut Tree, system: &mut dyn System) -> Option<Vec<i32>>;

    /// Takes note of all that came to this process. False if it can't be told yet of some whose they
    /// are, or whether there are more.
    fn adopt(&mut self, tree: &mut Tree, system: &mut dyn System, now: Instant) -> bool;

    /// Whether nothing can come of a scan now, for these scopes; then they say when to look again.
    fn put_off(
        &mut self,
        _tree: &mut Tree,
        _system: &mut dyn System,
        _scopes: &BTreeSet<ScopeId>,
        _now: Instant,
    ) -> bool {
        false
    }

    /// Finds out what has to be known to say what is left of these scopes. False if that can't be
    /// told yet.
    fn scan(
        &mut self,
        tree: &mut Tree,
        system: &mut dyn System,
        scopes: &BTreeSet<ScopeId>,
        now: Instant,
    ) -> bool;

    /// What the last scan found of a scope and those in it, besides commands.
    fn others(&self, tree: &Tree, system: &mut dyn System, scope: ScopeId) -> Vec<Other>;

    /// When each of these processes was started, if the last scan has looked at them.
    fn starts(&self, _pids: &[i32]) -> Option<HashMap<i32, u64>> {
        None
    }

    /// What belonged to one scope belongs to another one now.
    fn moved(&mut self, from: ScopeId, to: ScopeId);
}
