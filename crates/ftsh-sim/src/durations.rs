//! Durations of earlier attempts, by the name of their record.

use std::collections::BTreeMap;

use bstr::BString;

use ftsh_machine::effect::DurationsOf;
use ftsh_machine::event::RecordedDurations;

/// Name of the record of the script that the run began with.
pub(crate) const SCRIPT: &str = "script";

/// Records of durations.
#[derive(Default)]
pub(crate) struct SimulatedDurations(BTreeMap<BString, BString>);

impl SimulatedDurations {
    /// Answers the query for the durations of a file.
    pub(crate) fn answer(
        &self,
        of: &DurationsOf,
        directory: Option<&BString>,
    ) -> RecordedDurations {
        let name: BString = match (of, directory) {
            (DurationsOf::Script, _) => SCRIPT.into(),
            (DurationsOf::Sourced(path), Some(directory)) if !path.starts_with(b"/") => {
                format!("{directory}/{path}").into()
            }
            (DurationsOf::Used(path) | DurationsOf::Sourced(path), _) => path.clone(),
        };
        let history = self.0.get(&name).cloned().unwrap_or_default();
        RecordedDurations { record: Some(name), history }
    }

    /// Appends lines to a record.
    pub(crate) fn append(&mut self, name: BString, lines: &[u8]) {
        self.0.entry(name).or_default().extend_from_slice(lines);
    }

    /// Returns the text of the record of the script.
    pub(crate) fn of_script(&self) -> String {
        self.0.get(&BString::from(SCRIPT)).map(ToString::to_string).unwrap_or_default()
    }
}
