//! Options of every scenario.

use std::path::PathBuf;

use anyhow::{Context, Result};

use super::ClientCrowd;

/// Options of every scenario.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "Options of every scenario")]
pub struct CommonOptions {
    /// Repeats a run: the same seed gives the same output
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Number of trials of each case, with different random numbers
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub trials: Option<u32>,
    /// Prints rows for programs: one JSON object a line
    #[arg(long)]
    pub json: bool,
    /// Prints rows for programs: comma-separated values
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// Prints this table only; CSV prints the first one by default
    #[arg(long, value_name = "NAME")]
    pub table: Option<String>,
    /// Draws a picture, an SVG or a PNG by the name's ending
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// A policy to compare, such as `full from 100 ms to 20 s`; `A + B` alternates both; repeatable
    #[arg(long = "policy", value_name = "POLICY")]
    pub policies: Vec<ClientCrowd>,
    /// Number of threads, without influence on the output [default: one per processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
}

impl CommonOptions {
    /// Returns the crowds to compare, which are those of the options or else these policies.
    pub fn crowds(&self, defaults: &[&str]) -> Result<Vec<ClientCrowd>> {
        if !self.policies.is_empty() {
            return Ok(self.policies.clone());
        }
        let parse = |text: &&str| text.parse::<ClientCrowd>().map_err(anyhow::Error::msg);
        defaults.iter().map(parse).collect()
    }

    /// Returns the number of trials.
    pub fn trials(&self, default: u32) -> u32 {
        self.trials.unwrap_or(default)
    }

    /// Runs `work` in a pool with the number of threads of the options.
    pub fn in_parallel<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        let threads = self.threads.map_or(0, usize::from);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        Ok(pool.context("can't start threads")?.install(work))
    }
}
