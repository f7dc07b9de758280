//! Interactive use: the prompt and the terminal belong to the process driver.

use std::io;

use super::ClusterDriver;
use ftsh_machine::driver::{Interactive, JobEvent};
use ftsh_machine::{Machine, Outcome, Time};
use ftsh_process::{BackgroundJob, Edited};

impl Interactive for ClusterDriver {
    type Job<T> = BackgroundJob<T>;

    fn begin<T: Send + 'static>(
        &mut self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<Self::Job<T>> {
        self.inner.begin(work)
    }

    fn wait_for_job<T>(&mut self, job: &mut Self::Job<T>, until: Time) -> JobEvent<T> {
        loop {
            match self.inner.wait_for_job(job, until) {
                JobEvent::Event(event) => {
                    if let Some(event) = self.filter_event(event) {
                        return JobEvent::Event(event);
                    }
                }
                attended => return attended,
            }
        }
    }

    fn interrupt<T>(&self, job: &Self::Job<T>) {
        self.inner.interrupt(job);
    }

    fn detach_job<T>(&mut self, job: &Self::Job<T>) {
        self.inner.detach_job(job);
    }

    fn await_cancelled(&mut self) {
        self.inner.await_cancelled();
    }

    fn flush_on_exit(&mut self, outcome: Outcome) -> Outcome {
        self.wait_for_engines();
        self.inner.flush_on_exit(outcome)
    }

    fn page(&self, machine: &Machine) -> String {
        self.inner.page(machine)
    }

    fn reset_terminal(&mut self) {
        self.inner.reset_terminal();
    }

    fn restore_terminal(&self) {
        self.inner.restore_terminal();
    }

    type Edited = Edited;

    fn edited(&self) -> Edited {
        self.inner.edited()
    }
}
