//! Checks of the watched scopes of a shell.

use super::shell::{Due, Shell, SimulatedProcess, World};
use super::watches::ModelledActivity;
use ftsh_machine::effect::{ScopeId, Watch};

impl Shell {
    /// Begins to watch a scope.
    pub(crate) fn watch(&mut self, scope: ScopeId, watch: Watch, world: &mut impl World) {
        self.watches.begin(scope, watch, world.now());
        self.check_watch(scope, world);
    }

    /// Checks the watches around a scope after a command there has started or ended.
    pub(crate) fn check_watches(&mut self, scope: ScopeId, world: &mut impl World) {
        for watched in self.watches.scopes() {
            if self.is_inside(scope, watched) {
                self.watches.changed(watched, world.now());
                self.check_watch(watched, world);
            }
        }
    }

    /// Checks a watch.
    pub(crate) fn check_watch(&mut self, scope: ScopeId, world: &mut impl World) {
        let commands: Vec<ModelledActivity> = self.activities(scope);
        let (events, checks) = self.watches.check(scope, &commands, world.now());
        for event in events {
            world.note(format_args!("{event:?}"));
            if world.can_watch() {
                self.events.push_back(event);
            }
        }
        for at in checks {
            world.schedule(at, Due::Check(scope));
        }
    }

    /// Returns the activities of the programs of a scope.
    fn activities(&self, scope: ScopeId) -> Vec<ModelledActivity> {
        let processes = self.members(scope).into_iter().filter_map(|id| self.processes.get(&id));
        let of = |it: &SimulatedProcess| ModelledActivity::new(&it.name, it.started, &it.model);
        processes.filter(|it| it.is_program).map(of).collect()
    }
}
