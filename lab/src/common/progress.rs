//! Progress bar for people.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A progress bar on standard error, shown on a terminal if the work takes more than a second.
pub struct TrialProgress {
    bar: Option<ProgressBar>,
    started: Instant,
    shown: AtomicBool,
}

/// Duration of work without a bar.
const SHOWN_AFTER: Duration = Duration::from_secs(1);

impl TrialProgress {
    /// Creates a bar for `steps` steps of work.
    pub fn new(steps: usize) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar =
                ProgressBar::with_draw_target(Some(steps as u64), ProgressDrawTarget::hidden());
            let style = ProgressStyle::with_template("{bar:40} {percent:>3} %, {eta} left");
            style.map_or_else(|_| bar.clone(), |style| bar.clone().with_style(style))
        });
        Self { bar, started: Instant::now(), shown: AtomicBool::new(false) }
    }

    /// Marks one more step as done.
    pub fn step(&self) {
        let Some(bar) = &self.bar else { return };
        bar.inc(1);
        if self.started.elapsed() > SHOWN_AFTER && !self.shown.swap(true, Ordering::Relaxed) {
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }
}

impl Drop for TrialProgress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
