//! A bar for people who wait.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A progress bar on standard error, if that is a terminal and the work takes over a second.
pub struct Progress {
    bar: Option<ProgressBar>,
    started: Instant,
    shown: AtomicBool,
}

/// Nobody minds waiting for less.
const PATIENCE: Duration = Duration::from_secs(1);

impl Progress {
    /// The beginning of `steps` steps of work.
    pub fn new(steps: usize) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar =
                ProgressBar::with_draw_target(Some(steps as u64), ProgressDrawTarget::hidden());
            let style = ProgressStyle::with_template("{bar:40} {percent:>3} %, {eta} left");
            style.map_or_else(|_| bar.clone(), |style| bar.clone().with_style(style))
        });
        Self { bar, started: Instant::now(), shown: AtomicBool::new(false) }
    }

    /// One step is done.
    pub fn step(&self) {
        let Some(bar) = &self.bar else { return };
        bar.inc(1);
        if self.started.elapsed() > PATIENCE && !self.shown.swap(true, Ordering::Relaxed) {
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
