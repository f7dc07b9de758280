//! Metrics of a script, in a file for the textfile collector of `node_exporter`.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ftsh_process::replace_file;

/// Permission bits of the file, which another user reads.
const MODE: u32 = 0o644;
/// Maximum number of characters of a script's name in the name of the file.
const MAX_NAME: usize = 40;

const START: &str = "ftsh_last_start_timestamp_seconds";
const SUCCESS: &str = "ftsh_last_success_timestamp_seconds";
const DURATION: &str = "ftsh_last_duration_seconds";
const STATUS: &str = "ftsh_last_status";
const ATTEMPTS: &str = "ftsh_attempts_total";
const FAILURES: &str = "ftsh_failures_total";

/// Metrics with their types and meanings.
const FAMILIES: [(&str, &str, &str); 6] = [
    (START, "gauge", "Start of the last run, in seconds since 1970."),
    (SUCCESS, "gauge", "End of the last run that succeeded, in seconds since 1970, or 0."),
    (DURATION, "gauge", "Duration of the last run that has ended."),
    (STATUS, "gauge", "Exit status of the last run that has ended."),
    (ATTEMPTS, "counter", "Attempts in all runs."),
    (FAILURES, "counter", "Failures in all runs, by their kind."),
];

/// File with the metrics of one script.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    file: PathBuf,
    /// Name of the script, escaped.
    script: String,
}

/// Values by the names of their metrics, with the kind of a failure.
type Values = BTreeMap<(String, String), f64>;

impl Metrics {
    /// Creates the metrics of a script. `base` and `hash` make the name of the file.
    pub(crate) fn new(directory: &Path, script: &str, base: &str, hash: u64) -> Self {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
        let base = base.chars().take(MAX_NAME).map(|c| if is_plain(c) { c } else { '_' });
        let file = format!("ftsh_{}_{hash:016x}.prom", base.collect::<String>());
        let script = script.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        Self { file: directory.join(file), script }
    }

    /// Returns what fails with an error, for a message.
    pub(crate) fn action(&self) -> String {
        format!("write the metrics `{}`", self.file.display())
    }

    /// Notes the start of a run.
    pub(crate) fn begin(&self) -> io::Result<()> {
        self.change(|values| set(values, START, now()))
    }

    /// Adds the attempts and the failures of a run.
    pub(crate) fn add(&self, attempts: u64, failures: &BTreeMap<&str, u64>) -> io::Result<()> {
        self.change(|values| {
            let kinds = failures.iter().map(|(kind, count)| (FAILURES, *kind, *count));
            for (name, kind, count) in [(ATTEMPTS, "", attempts)].into_iter().chain(kinds) {
                *values.entry((name.into(), kind.into())).or_default() += count as f64;
            }
        })
    }

    /// Notes the end of a run.
    pub(crate) fn end(&self, status: i32, duration: Duration) -> io::Result<()> {
        self.change(|values| {
            set(values, STATUS, status.into());
            set(values, DURATION, duration.as_millis() as f64 / 1000.0);
            if status == 0 {
                set(values, SUCCESS, now());
            }
        })
    }

    fn change(&self, change: impl FnOnce(&mut Values)) -> io::Result<()> {
        let text = match std::fs::read_to_string(&self.file) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            text => text.unwrap_or_default(),
        };
        let mut values: Values = text.lines().filter_map(parse).collect();
        change(&mut values);
        replace_file(&self.file, MODE, self.render(&values).as_bytes())
    }

    fn render(&self, values: &Values) -> String {
        let mut text = String::new();
        for (name, kind, help) in FAMILIES {
            text += &format!("# HELP {name} {help}\n# TYPE {name} {kind}\n");
            let none = (name != FAILURES).then_some(("", 0.0));
            let mut found = values.iter().filter(|((of, _), _)| of == name).peekable();
            let none = none.filter(|_| found.peek().is_none());
            for (kind, value) in found.map(|((_, kind), value)| (kind.as_str(), *value)).chain(none)
            {
                let kind =
                    if kind.is_empty() { String::new() } else { format!("kind=\"{kind}\",") };
                text += &format!("{name}{{{kind}script=\"{}\"}} {value}\n", self.script);
            }
        }
        text
    }
}

/// Parses a line with a value.
fn parse(line: &str) -> Option<((String, String), f64)> {
    let (sample, value) = line.rsplit_once(' ').filter(|_| !line.starts_with('#'))?;
    let (name, labels) = sample.split_once('{')?;
    let kind = labels.strip_prefix("kind=\"").and_then(|it| it.split('"').next());
    Some(((name.into(), kind.unwrap_or_default().into()), value.parse().ok()?))
}

fn set(values: &mut Values, name: &str, value: f64) {
    values.insert((name.into(), String::new()), value);
}

fn now() -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_millis() as f64 / 1000.0
}
