//! Options of every scenario.

use std::path::PathBuf;

use anyhow::{Context, Result};

use super::Crowd;

/// Options of every scenario.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "Options of every scenario")]
pub struct Common {
    /// Repeats a run: the same seed gives the same output
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// How often each case is tried, with other random numbers
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub trials: Option<u32>,
    /// Prints rows for programs: one JSON object a line
    #[arg(long)]
    pub json: bool,
    /// Prints rows for programs: comma-separated values
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// Prints this table only; CSV is of the first one unless told
    #[arg(long, value_name = "NAME")]
    pub table: Option<String>,
    /// Draws a picture, an SVG or a PNG by the name's ending
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// A policy to compare, as in `full from 100 ms to 20 s`; `A + B` deals out both; repeatable
    #[arg(long = "policy", value_name = "POLICY")]
    pub policies: Vec<Crowd>,
    /// Works with so many threads; the output doesn't depend on it [default: one a processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
}

impl Common {
    /// The crowds to compare: those asked for, or else these policies.
    pub fn crowds(&self, defaults: &[&str]) -> Result<Vec<Crowd>> {
        if !self.policies.is_empty() {
            return Ok(self.policies.clone());
        }
        let parse = |text: &&str| text.parse::<Crowd>().map_err(anyhow::Error::msg);
        defaults.iter().map(parse).collect()
    }

    /// How many trials.
    pub fn trials(&self, default: u32) -> u32 {
        self.trials.unwrap_or(default)
    }

    /// Does something with as many threads as asked for.
    pub fn in_parallel<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        let threads = self.threads.map_or(0, usize::from);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        Ok(pool.context("can't start threads")?.install(work))
    }
}
