//! Scripts that an earlier version ran still end as they did.
//!
//! `tests/compatibility/outcomes.txt` has a line for each script of that version, recorded with its
//! binary. The scripts are those of `tests/scripts/`; where one of these has changed since, its
//! earlier text is in `tests/compatibility/scripts/`, beside scripts in the manner of 2003.
//! `tests/compatibility/intended.txt` names the scripts that are meant to end in another way.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

use crate::scripts::{root, scripts};
use crate::support::run::Finished;
use crate::support::side_by_side::none;
use crate::support::{FTSH, expectations};

/// Variable with a folder that has an earlier `ftsh` and its `scripts`, to record outcomes.
const RECORD: &str = "FTSH_TEST_BEFORE";

/// Runs of a script for a record. Parts that differ between these runs are not compared.
const RECORDED_RUNS: usize = 5;

/// Part of an outcome that differs from run to run.
const VARIES: &str = "-";

/// Size of the largest file whose content is compared.
const LARGEST: u64 = 1 << 20;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compatibility")
}

/// Parts of an outcome: exit status, standard output, lines of the script on standard error, and
/// files.
type Parts = [String; 4];

/// Names of the parts of an outcome, for messages.
const NAMES: [&str; 4] = ["status", "standard output", "lines on standard error", "files"];

/// Returns the FNV-1a hash of a text, in hexadecimal digits.
fn hash(bytes: &[u8]) -> String {
    let mix = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    format!("{:08x}", bytes.iter().fold(0x811c_9dc5, mix))
}

/// Replaces the paths that differ from run to run.
fn timeless(bytes: &[u8], directory: &Path, script: &Path) -> String {
    let text = String::from_utf8_lossy(bytes);
    let text = text.replace(&*script.to_string_lossy(), "SCRIPT");
    text.replace(&*directory.to_string_lossy(), "DIRECTORY")
}

/// Returns the numbers of the lines of a script that standard error names.
fn places(errors: &str) -> String {
    let place = Regex::new(r"(?m)(?:SCRIPT|script\.ftsh):(\d+)").expect("a pattern");
    let numbers: BTreeSet<u32> =
        place.captures_iter(errors).filter_map(|found| found[1].parse().ok()).collect();
    let numbers: Vec<_> = numbers.iter().map(u32::to_string).collect();
    format!("@{}", numbers.join(","))
}

/// Appends the names below a folder, sorted, each with the content of its file.
fn list(folder: &Path, read: &impl Fn(&Path) -> String, text: &mut String) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let Ok(metadata) = path.symlink_metadata() else { continue };
        *text += &format!("\n{}:", path.display());
        if metadata.is_dir() {
            list(&path, read, text);
        } else if metadata.is_file() && metadata.len() <= LARGEST {
            *text += &read(&path);
        }
    }
}

fn parts(finished: &Finished, script: &Path) -> Parts {
    let directory = finished.directory.path();
    let cleaned = |bytes: &[u8]| timeless(bytes, directory, script);
    let mut files = String::new();
    let read = |path: &Path| cleaned(&fs::read(path).unwrap_or_default());
    list(directory, &read, &mut files);
    let status = finished.status.map_or_else(
        || "hung".to_owned(),
        |status| status.code().map_or_else(|| "killed".to_owned(), |code| code.to_string()),
    );
    let mut output = cleaned(&finished.stdout);
    if fs::read_to_string(script).is_ok_and(|text| text.contains("#: sorted")) {
        let mut lines: Vec<_> = output.lines().collect();
        lines.sort_unstable();
        output = lines.join("\n");
    }
    let output = hash(output.as_bytes());
    let files = hash(cleaned(files.as_bytes()).as_bytes());
    [status, output, places(&cleaned(&finished.stderr)), files]
}

/// Returns the recorded outcomes: for each script the hash of its text, and the parts.
fn recorded() -> BTreeMap<String, (String, Parts)> {
    let text = fs::read_to_string(folder().join("outcomes.txt")).expect("the outcomes");
    let outcome = |line: &str| {
        let mut words = line.split(' ').map(str::to_owned);
        let mut word = || words.next().expect("a word of an outcome");
        let (script, text) = (word(), word());
        (script, (text, [word(), word(), word(), word()]))
    };
    text.lines().map(outcome).collect()
}

/// Returns the scripts that are meant to end in another way than recorded, with the reasons.
fn intended() -> BTreeMap<String, String> {
    let text = fs::read_to_string(folder().join("intended.txt")).expect("the intended changes");
    let line = |line: &str| {
        let (script, reason) = line.split_once(": ").expect("`script: reason`");
        (script.to_owned(), reason.to_owned())
    };
    text.lines().map(line).collect()
}

/// Returns the names of the parts of an outcome that differ from the recorded ones.
fn differing(recorded: &Parts, found: &Parts) -> Vec<&'static str> {
    let differs = |part: &usize| recorded[*part] != VARIES && recorded[*part] != found[*part];
    (0..NAMES.len()).filter(differs).map(|part| NAMES[part]).collect()
}

/// Compares a run of a script in `tests/scripts/` with the recorded outcome of the same text.
pub(crate) fn difference(path: &Path, finished: &Finished) -> String {
    static RECORDED: LazyLock<BTreeMap<String, (String, Parts)>> = LazyLock::new(recorded);
    let script = path.strip_prefix(root()).expect("a script of the tests").to_string_lossy();
    let Some((text, expected)) = RECORDED.get(&*script) else { return String::new() };
    if fs::read(path).is_ok_and(|bytes| hash(&bytes) != *text) {
        return String::new();
    }
    let different = differing(expected, &parts(finished, path));
    if different.is_empty() {
        return String::new();
    }
    format!("  an earlier version had another {}\n", different.join(", another "))
}

/// The scripts of `tests/scripts/` with their earlier text are compared where they run, by
/// [`difference`].
#[test]
fn scripts_of_before_end_as_they_did() {
    let intended = intended();
    let outcomes = recorded();
    assert!(outcomes.len() > 550, "{} scripts", outcomes.len());
    for script in intended.keys() {
        assert!(outcomes.contains_key(script), "{script} is not recorded");
    }
    none(outcomes.into_iter().collect(), |(script, (text, expected))| {
        let has_text = |path: &Path| fs::read(path).is_ok_and(|bytes| hash(&bytes) == text);
        if has_text(&root().join(&script)) {
            return None;
        }
        let path = folder().join("scripts").join(&script);
        if !has_text(&path) {
            return Some(format!(
                "{script} has changed: copy its earlier text to tests/compatibility/scripts/"
            ));
        }
        let found = match expectations::start_with(&path, Path::new(FTSH)) {
            Ok(running) => parts(&running.wait(), &path),
            Err(trouble) => return Some(format!("{script}: {trouble}")),
        };
        let different = differing(&expected, &found);
        match (different.is_empty(), intended.contains_key(&script)) {
            (true, true) => Some(format!("{script} ends as before: no change is intended")),
            (false, false) => Some(format!("{script}: another {}", different.join(", another "))),
            _ => None,
        }
    });
}

/// Writes the outcomes of all scripts of an earlier version.
#[test]
fn outcomes_of_before_are_recorded() {
    let Some(before) = std::env::var_os(RECORD).map(PathBuf::from) else { return };
    let (shell, theirs, ours) =
        (before.join("ftsh"), before.join("scripts"), folder().join("scripts"));
    let mut paths = BTreeMap::new();
    for root in [&ours, &theirs] {
        for path in scripts(root) {
            let name = path.strip_prefix(root).expect("below").to_string_lossy().into_owned();
            paths.insert(name, path);
        }
    }
    let lines = std::sync::Mutex::new(BTreeMap::new());
    none(paths.into_iter().collect(), |(name, path)| {
        let run = |_| Some(parts(&expectations::start_with(&path, &shell).ok()?.wait(), &path));
        let mut runs = (0..RECORDED_RUNS).filter_map(run);
        let mut outcome = runs.next()?;
        for other in runs {
            for (part, other) in outcome.iter_mut().zip(other) {
                if *part != other {
                    VARIES.clone_into(part);
                }
            }
        }
        let text = hash(&fs::read(&path).expect("a script"));
        let line = format!("{name} {text} {}\n", outcome.join(" "));
        lines.lock().expect("nothing panics with it").insert(name, line);
        None
    });
    let lines = lines.into_inner().expect("nothing panics with it");
    let text: String = lines.into_values().collect();
    fs::write(folder().join("outcomes.txt"), text).expect("the outcomes to write");
}
