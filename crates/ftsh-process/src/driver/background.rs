//! Input of a person on a separate thread, while this thread handles processes and signals: ended
//! processes are reaped, and a signal ends the shell without a key. Also the final output of a run.

use std::io::{self, PipeReader, Read};
use std::os::fd::AsFd;
use std::os::unix::thread::JoinHandleExt;
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::pthread::{Pthread, pthread_kill};
use nix::sys::signal::{SigSet, Signal};

use super::ProcessDriver;
use super::tokens::BACKGROUND;
use crate::events::{Poller, editor_signals};
use crate::non_blocking_writer;
use crate::tty::{Edited, TerminalRestore};
use ftsh_machine::Machine;
use ftsh_machine::driver::{Driver, Interactive, JobEvent};
use ftsh_machine::event::Event;
use ftsh_machine::outcome::Outcome;
use ftsh_machine::time::Time;
use ftsh_sys as sys;

/// Time limit for a reader that does not read, after a signal has ended the run.
const READER_TIMEOUT: Duration = Duration::from_secs(1);

/// Interval of checks for the ends of canceled calls.
const PAUSE: Duration = Duration::from_millis(2);

/// Job on another thread.
pub struct BackgroundJob<T> {
    answer: Receiver<T>,
    /// At its end after the thread has answered.
    done: PipeReader,
    thread: JoinHandle<()>,
}

/// Stack size for parsing input, equal to that of the main thread.
const STACK_SIZE: usize = 8 * 1024 * 1024;

impl Interactive for ProcessDriver {
    type Job<T> = BackgroundJob<T>;

    fn begin<T: Send + 'static>(
        &mut self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<BackgroundJob<T>> {
        let (done, writer) = io::pipe()?;
        let done = PipeReader::from(sys::move_up(done.into())?);
        let writer = sys::move_up(writer.into())?;
        let (sender, answer) = mpsc::sync_channel(1);
        self.reactor.poller().add(done.as_fd(), BACKGROUND)?;
        // The thread inherits the blocked signals and unblocks them itself.
        let _ = editor_signals().thread_block();
        let thread = move || {
            let _ = editor_signals().thread_unblock();
            let _ = sender.send(work());
            drop(writer);
        };
        let builder = std::thread::Builder::new().name("background".into()).stack_size(STACK_SIZE);
        match builder.spawn(thread) {
            Ok(thread) => Ok(BackgroundJob { answer, done, thread }),
            Err(error) => {
                unwatch(self.reactor.poller(), &done);
                Err(error)
            }
        }
    }

    fn wait_for_job<T>(&mut self, job: &mut BackgroundJob<T>, until: Time) -> JobEvent<T> {
        loop {
            self.admit(until);
            self.advance_scopes();
            if let Some(event) = self.reactor.take_event() {
                return JobEvent::Event(event);
            }
            if let Ok(answer) = job.answer.try_recv() {
                // The thread closes its end of the pipe next, so no further wake-up is pending.
                let _ = job.done.read(&mut [0]);
                self.detach_job(job);
                return JobEvent::Answer(answer);
            }
            if self.console.line().take_page_request() {
                return JobEvent::StatusRequested;
            }
            if self.now() >= until {
                return JobEvent::Timeout;
            }
            self.poll(until);
        }
    }

    fn detach_job<T>(&mut self, job: &BackgroundJob<T>) {
        unwatch(self.reactor.poller(), &job.done);
    }

    fn reset_terminal(&mut self) {
        self.job_control.reset();
    }

    type Edited = Edited;

    fn edited(&self) -> Edited {
        self.job_control.restore().map(TerminalRestore::edited).unwrap_or_default()
    }

    fn restore_terminal(&self) {
        if let Some(restore) = self.job_control.restore() {
            restore.apply();
        }
    }

    fn await_cancelled(&mut self) {
        // A canceled call ends within microseconds, unless its file system hangs.
        while self.reactor.is_interrupting() {
            std::thread::sleep(PAUSE);
            self.report_hanging_calls(Instant::now());
        }
    }

    fn flush_on_exit(&mut self, mut outcome: Outcome) -> Outcome {
        // A signal during the last step takes precedence over the script's outcome.
        self.take_signals();
        // Reports about the run take time, in which no event is handled.
        if self.supervision.as_ref().is_some_and(|it| !sys::is_parent(it.supervisor())) {
            self.die_at_once();
        }
        if !matches!(outcome, Outcome::Interrupted(_))
            && let Some(Event::Interrupted(signal)) =
                self.reactor.events().iter().find(|event| matches!(event, Event::Interrupted(_)))
        {
            outcome = Outcome::Interrupted(*signal);
        }
        self.tables.io_mut().close_tables();
        self.await_cancelled();
        self.durations.finish();
        self.log_notes_of_workers();
        // Errors are ignored: without the process, a daemon ends at its next output.
        let _ = self.tables.start_reader();
        if non_blocking_writer::is_quiet() {
            return outcome;
        }
        let is_over = matches!(outcome, Outcome::Interrupted(_));
        // The controller waits for the last output and limits the wait itself.
        let is_brief = is_over && !self.remote_control.is_active();
        let until = if is_brief { self.now() + READER_TIMEOUT } else { Time::NEVER };
        let Ok(mut waiting) = self.begin(|| non_blocking_writer::wait(None)) else {
            return outcome;
        };
        loop {
            match self.wait_for_job(&mut waiting, until) {
                JobEvent::Event(Event::Interrupted(_)) if is_over => return outcome,
                JobEvent::Event(Event::Interrupted(signal)) => return Outcome::Interrupted(signal),
                JobEvent::Event(_) | JobEvent::StatusRequested => {}
                JobEvent::Answer(_) | JobEvent::Timeout => return outcome,
            }
        }
    }

    fn interrupt<T>(&self, job: &BackgroundJob<T>) {
        // The number in std is a pointer for some C libraries.
        let _ = pthread_kill(job.thread.as_pthread_t() as Pthread, Signal::SIGINT);
    }

    fn page(&self, machine: &Machine) -> String {
        self.status_page(machine)
    }
}

fn unwatch(poller: &mut Poller, done: &PipeReader) {
    poller.remove(done.as_fd());
    let _ = SigSet::from_iter([Signal::SIGINT]).thread_unblock();
}
