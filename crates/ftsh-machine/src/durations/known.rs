//! Histories of the files of a run.

use std::sync::Arc;
use std::time::Duration;

use bstr::BString;

use super::{
    estimate::{Sample, usual_delay},
    history::{DurationHistory, line},
    learned::LimitKey,
};
use crate::event::RecordedDurations;
use ftsh_syntax::Source;

/// Histories of the files of a run.
#[derive(Debug, Default)]
pub(crate) struct KnownDurations {
    files: Vec<FileDurations>,
}

/// History of one file.
#[derive(Debug)]
struct FileDurations {
    source: Arc<Source>,
    /// Name of the driver's record; `None` if the driver keeps none.
    record: Option<BString>,
    history: DurationHistory,
}

impl KnownDurations {
    /// Adds the history of a file, from the driver's answer.
    pub(crate) fn add(&mut self, source: &Arc<Source>, recorded: &RecordedDurations) {
        // A file may be sourced again and again.
        self.files.retain(|file| Arc::strong_count(&file.source) > 1);
        let record = recorded.record.clone();
        let history = DurationHistory::parse(&recorded.history).unwrap_or_default();
        let source = Arc::clone(source);
        self.files.push(FileDurations { source, record, history });
    }

    /// Adds samples. Returns the name of the record and lines to append to the record.
    pub(crate) fn add_samples(
        &mut self,
        source: &Arc<Source>,
        key: LimitKey,
        samples: &[Sample],
    ) -> Option<(BString, String)> {
        let file = self.files.iter_mut().find(|file| Arc::ptr_eq(&file.source, source))?;
        for sample in samples {
            file.history.add(key, *sample);
        }
        let record = file.record.clone().filter(|_| !samples.is_empty())?;
        Some((record, samples.iter().map(|sample| line(key, *sample)).collect()))
    }

    fn file(&self, source: &Arc<Source>) -> Option<&FileDurations> {
        self.files.iter().find(|file| Arc::ptr_eq(&file.source, source))
    }

    /// Returns the samples of a limit.
    pub(crate) fn samples(&self, source: &Arc<Source>, key: LimitKey) -> Vec<Sample> {
        self.file(source).map(|file| file.history.samples(key)).unwrap_or_default()
    }

    /// Returns the delay of a hedge, which is at most `most`.
    pub(crate) fn delay(&self, source: &Arc<Source>, key: LimitKey, most: Duration) -> Duration {
        usual_delay(&self.samples(source, key), most)
    }
}
