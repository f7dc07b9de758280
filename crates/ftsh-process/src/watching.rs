//! Samples of watched scopes: their start, and the events that follow from them.

use std::time::Instant;

use super::watch::Report;
use super::{ProcessDriver, WATCHES};
use ftsh_machine::effect::{ScopeId, Watch};
use ftsh_machine::event::Event;
use ftsh_machine::record::{Level, LogEvent};

impl ProcessDriver {
    /// Begins to watch a scope.
    pub(super) fn watch_scope(&mut self, scope: ScopeId, watch: Watch) {
        self.watches.begin(scope, watch, Instant::now());
    }

    /// Stops watching a scope and the scopes inside, which end.
    pub(super) fn end_watches(&mut self, scope: ScopeId) {
        if !self.watches.is_empty() {
            self.watches.end(&self.scopes.inside(scope));
        }
    }

    /// Handles the result of the last sample.
    pub(super) fn take_samples(&mut self) {
        for report in self.watches.take_reports() {
            match report {
                Report::Stalled(scope) => self.ready.push_back(Event::Stalled { scope }),
                Report::OverMemory(scope, memory) => {
                    self.ready.push_back(Event::OverMemory { scope, memory });
                }
                Report::Unreadable(scope) => {
                    let note = format!(
                        "no process of scope {} can be read, so `stalled` counts it as progressing",
                        scope.0
                    );
                    self.log_at(Level::FAILURES, 0, LogEvent::Note(note));
                }
            }
        }
    }

    /// Requests a sample of the watched scopes if one is due.
    pub(super) fn sample_scopes(&mut self, now: Instant) {
        if self.watches.due().is_none_or(|due| due > now) {
            return;
        }
        self.take_samples();
        if !self.watches.is_sample_due(now) {
            return;
        }
        if self.scopes.adopts() {
            self.adopt_orphans();
        }
        let scopes = self.watches.scopes();
        let (tree, mut system) = self.scopes_and_system();
        let mut roots: Vec<(ScopeId, Vec<i32>)> = Vec::with_capacity(scopes.len());
        for scope in scopes {
            roots.push((scope, tree.roots(scope, &mut system)));
        }
        match self.watches.sample(now, roots.into_iter().collect()) {
            // Without this descriptor, news is taken when the next sample is due.
            Ok(Some(news)) => drop(self.poller.add(news, WATCHES)),
            Ok(None) => {}
            Err(error) => {
                let note = format!("cannot watch processes: {error}");
                self.log(0, LogEvent::Note(note));
            }
        }
    }
}
