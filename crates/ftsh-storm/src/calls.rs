//! Models of commands, whose runs are counted across all processes and starts of a run.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bstr::BString;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

use crate::spec::RunSpec;
use ftsh_machine::Time;
use ftsh_models::{CommandModel, ModelState, PlannedRun};

/// Models of a run.
pub struct SharedModels {
    models: Vec<CountedModel>,
    seed: u64,
    /// Directory with a file for each model, which has a byte for each run.
    directory: PathBuf,
}

struct CountedModel {
    model: CommandModel,
    state: ModelState<ChaCha8Rng>,
    /// Number of runs that the state has planned.
    planned: u64,
}

/// End of a command that has a model.
pub struct ModelledEnd {
    /// Duration; none for a command without an end.
    pub takes: Option<Duration>,
    /// Exit status.
    pub status: i32,
    /// Standard output.
    pub prints: BString,
}

impl SharedModels {
    /// Returns the models of a run.
    pub fn new(spec: &RunSpec) -> Self {
        let models = spec.models.iter().enumerate().filter_map(|(number, text)| {
            let model: CommandModel = text.parse().ok()?;
            let state = ModelState::new(&model, random(spec.seed, number));
            Some(CountedModel { model, state, planned: 0 })
        });
        Self { models: models.collect(), seed: spec.seed, directory: spec.calls.clone() }
    }

    /// Returns the end of a command that begins now; `None` without a model.
    pub fn next_run(&mut self, words: &[BString], now: Time) -> Option<ModelledEnd> {
        let (number, counted) =
            self.models.iter_mut().enumerate().find(|(_, it)| it.model.applies_to(words))?;
        // A number that cannot be counted is that of a process alone.
        let run = count(&self.directory.join(number.to_string())).unwrap_or(counted.planned);
        if run < counted.planned {
            counted.state = ModelState::new(&counted.model, random(self.seed, number));
            counted.planned = 0;
        }
        let mut planned = PlannedRun { takes: None, fails: true };
        while counted.planned <= run {
            planned = counted.state.next_run(&counted.model, now);
            counted.planned += 1;
        }
        let model = &counted.model;
        let fails = planned.fails || planned.takes.is_none();
        let prints = model.prints.clone().filter(|_| !fails).unwrap_or_default();
        let status = if fails { model.status } else { 0 };
        Some(ModelledEnd { takes: planned.takes, status, prints })
    }
}

fn random(seed: u64, number: usize) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed.wrapping_add(number as u64 + 1))
}

/// Counts a run. Returns the number of earlier runs.
fn count(path: &Path) -> io::Result<u64> {
    let mut file = File::options().append(true).create(true).open(path)?;
    file.write_all(b".")?;
    // The position after an append is that of its own byte, whoever else appends.
    Ok(file.stream_position()?.saturating_sub(1))
}
