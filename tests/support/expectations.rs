//! Scripts with their expected results in comments; see `tests/scripts/README.md`.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use super::Ftsh;
use super::run::{self, Finished, Running};

/// Expected result of a script.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a directive")]
struct Expectations {
    arguments: Vec<String>,
    options: Vec<String>,
    environment: Vec<(String, String)>,
    given: Vec<(String, String)>,
    stdin: Option<String>,
    stdout: String,
    stderr: Vec<String>,
    files: Vec<(String, String)>,
    absent: Vec<String>,
    status: Option<i32>,
    takes: Option<(Duration, Duration)>,
    limit: Option<Duration>,
    leaves: Vec<String>,
    sorted: bool,
    quiet: bool,
    no_newline: bool,
    unprivileged: bool,
}

impl Expectations {
    fn parse(text: &str) -> Result<Self, String> {
        let mut all = Self::default();
        for (number, line) in text.lines().enumerate() {
            all.line(line.trim_start())
                .map_err(|trouble| format!("line {}: {trouble}: {line}", number + 1))?;
        }
        if all.no_newline {
            all.stdout.pop();
        }
        Ok(all)
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        let after = |mark: &str| {
            line.strip_prefix(mark).map(|rest| rest.strip_prefix(' ').unwrap_or(rest).to_owned())
        };
        if let Some(text) = after("#>") {
            self.stdout += &(text + "\n");
        } else if let Some(text) = after("#2>") {
            self.stderr.push(text);
        } else if let Some(text) = after("#<") {
            *self.stdin.get_or_insert_default() += &(text + "\n");
        } else if let Some(text) = after("#=") {
            let (name, content) = pair(&text)?;
            append(&mut self.files, name, content);
        } else if let Some(text) = after("#:") {
            let (word, rest) = text.split_once(' ').unwrap_or((&text, ""));
            self.directive(word, rest.trim())?;
        }
        Ok(())
    }

    fn directive(&mut self, word: &str, rest: &str) -> Result<(), String> {
        match word {
            "args" => self.arguments.extend(words(rest)),
            "options" => self.options.extend(words(rest)),
            "env" => {
                let (name, value) = rest.split_once('=').ok_or("NAME=value expected")?;
                self.environment.push((name.into(), value.into()));
            }
            "file" => {
                let (name, content) = pair(rest)?;
                append(&mut self.given, name, content);
            }
            "absent" => self.absent.push(rest.into()),
            "status" => self.status = Some(rest.parse().map_err(|_| "a number expected")?),
            "takes" => {
                let (low, high) = rest.split_once(" to ").ok_or("`A to B ms` expected")?;
                self.takes = Some((millis(low)?, millis(high)?));
            }
            "limit" => self.limit = Some(millis(rest)?),
            "leaves" => self.leaves.push(rest.into()),
            "sorted" => self.sorted = true,
            "quiet" => self.quiet = true,
            "no-newline" => self.no_newline = true,
            "unprivileged" => self.unprivileged = true,
            _ => return Err("unknown directive".into()),
        }
        Ok(())
    }

    fn check(&self, finished: &Finished) -> String {
        let mut troubles = String::new();
        let mut trouble = |text: &str| {
            let _ = writeln!(troubles, "  {text}");
        };
        match finished.status {
            None => trouble("hung, and was killed"),
            Some(status) => {
                let expected = self.status.unwrap_or(0);
                if status.code() != Some(expected) {
                    trouble(&format!("status {expected} expected: {status}"));
                }
            }
        }
        if let Some((low, high)) = self.takes
            && (finished.elapsed < low || !finished.within(high))
        {
            trouble(&format!("{low:?} to {high:?} expected: took {:?}", finished.elapsed));
        }
        for survivor in &finished.survivors {
            if !self.leaves.iter().any(|left| survivor.command.contains(left.as_str())) {
                trouble(&format!("left running: {survivor:?}"));
            }
        }
        let errors = finished.errors();
        if errors.contains("panicked at") {
            trouble("panicked");
        }
        if self.quiet && !errors.is_empty() {
            trouble("nothing expected on standard error");
        }
        let mut rest = errors.as_str();
        for expected in &self.stderr {
            match rest.find(expected.as_str()) {
                Some(at) => rest = &rest[at + expected.len()..],
                None => trouble(&format!("expected on standard error, in this order: {expected}")),
            }
        }
        let mut stdout = finished.text();
        if self.sorted {
            let mut lines: Vec<_> = stdout.lines().collect();
            lines.sort_unstable();
            stdout = lines.join("\n") + if lines.is_empty() { "" } else { "\n" };
        }
        if stdout != self.stdout {
            trouble(&format!("standard output:\n{}", difference(&self.stdout, &stdout)));
        }
        for (name, content) in &self.files {
            match std::fs::read(finished.directory.path().join(name)) {
                Err(error) => trouble(&format!("{name}: {error}")),
                Ok(found) if found == content.as_bytes() => {}
                Ok(found) => {
                    let found = String::from_utf8_lossy(&found);
                    trouble(&format!("{name}:\n{}", difference(content, &found)));
                }
            }
        }
        for name in &self.absent {
            if finished.directory.path().join(name).symlink_metadata().is_ok() {
                trouble(&format!("{name} should not be there"));
            }
        }
        if !troubles.is_empty() && !errors.is_empty() {
            let _ = writeln!(troubles, "  standard error was:");
            for line in errors.lines().take(20) {
                let _ = writeln!(troubles, "    {line}");
            }
        }
        troubles
    }
}

/// Runs one script, and returns a description of the differences, or nothing.
pub(crate) fn run(path: &Path) -> String {
    run_with(path, None, |_| String::new())
}

/// Runs one script as [`run`], with a further check.
pub(crate) fn run_and(path: &Path, check: impl FnOnce(&Finished) -> String) -> String {
    run_with(path, None, check)
}

/// Runs one script as [`run`] while a journal records the run, with a longer time limit.
pub(crate) fn run_recorded(path: &Path, journal: &Path) -> String {
    run_with(path, Some(journal), |_| String::new())
}

/// Starts one script with another shell.
pub(crate) fn start_with(path: &Path, shell: &Path) -> Result<Running, String> {
    let bin = shell.parent().ok_or("a shell in a folder expected")?;
    let (ftsh, _) = prepare(path, None)?;
    // The first argument is the shell that the tests run.
    let wrapper = ["sh", "-c", "shift; exec \"$0\" \"$@\""].map(Path::new);
    let ftsh = ftsh.env("PATH", format!("{}:{}", bin.display(), run::PATH));
    Ok(ftsh.through(wrapper.into_iter().chain([shell])).start())
}

fn run_with(
    path: &Path,
    journal: Option<&Path>,
    check: impl FnOnce(&Finished) -> String,
) -> String {
    match prepare(path, journal) {
        Err(trouble) => format!("  {trouble}\n"),
        Ok((ftsh, expectations)) => {
            let finished = ftsh.start().wait();
            expectations.check(&finished) + &check(&finished)
        }
    }
}

/// Returns the run of a script, and its expected result.
fn prepare(path: &Path, journal: Option<&Path>) -> Result<(Ftsh, Expectations), String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let mut expectations = Expectations::parse(&text)?;
    let mut ftsh = Ftsh::new().args(&expectations.options);
    if expectations.unprivileged {
        ftsh = ftsh.file("script.ftsh", &text).arg("script.ftsh").unprivileged();
    } else {
        ftsh = ftsh.arg(path);
    }
    ftsh = ftsh.args(&expectations.arguments);
    for (name, value) in &expectations.environment {
        ftsh = ftsh.env(name, value);
    }
    if let Some(journal) = journal {
        ftsh = ftsh.env("FTSH_JOURNAL", journal);
        if let Some((_, most)) = &mut expectations.takes {
            *most = Duration::MAX;
        }
    }
    for (name, content) in &expectations.given {
        ftsh = ftsh.file(name, content);
    }
    if let Some(stdin) = &expectations.stdin {
        ftsh = ftsh.stdin(stdin);
    }
    if let Some(limit) = expectations.limit {
        ftsh = ftsh.limit(limit);
    }
    Ok((ftsh, expectations))
}

fn pair(text: &str) -> Result<(&str, &str), String> {
    text.split_once(':')
        .map(|(name, content)| (name.trim(), content.strip_prefix(' ').unwrap_or(content)))
        .ok_or_else(|| "`name: content` expected".into())
}

fn append(files: &mut Vec<(String, String)>, name: &str, content: &str) {
    let line = format!("{content}\n");
    match files.iter_mut().find(|(known, _)| known == name) {
        Some((_, text)) => *text += &line,
        None => files.push((name.into(), line)),
    }
}

fn millis(text: &str) -> Result<Duration, String> {
    let (number, scale) = if let Some(number) = text.strip_suffix(" ms") {
        (number, 1)
    } else if let Some(number) = text.strip_suffix(" s") {
        (number, 1000)
    } else {
        (text, 1)
    };
    let number: u64 = number.trim().parse().map_err(|_| format!("no time: {text}"))?;
    Ok(Duration::from_millis(number * scale))
}

/// Splits text into words at white space. `"…"` keeps white space, and `
/// ` in quotes is a newline.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quoted = false;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            '\\' if quoted => match characters.next() {
                Some('n') => word.get_or_insert_default().push('\n'),
                Some(other) => word.get_or_insert_default().push(other),
                None => {}
            },
            _ if character.is_whitespace() && !quoted => words.extend(word.take()),
            _ => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    words
}

/// Returns the differing lines: `-` was expected, `+` was found.
fn difference(expected: &str, found: &str) -> String {
    let (old, new): (Vec<_>, Vec<_>) =
        (expected.split('\n').collect(), found.split('\n').collect());
    let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let tail = old[same..].iter().rev().zip(new[same..].iter().rev()).take_while(|(a, b)| a == b);
    let tail = tail.count();
    let mut text = String::new();
    for line in &old[same.saturating_sub(1)..same] {
        let _ = writeln!(text, "      {line}");
    }
    for line in &old[same..old.len() - tail] {
        let _ = writeln!(text, "    - {line:?}");
    }
    for line in new[same..new.len() - tail].iter().take(30) {
        let _ = writeln!(text, "    + {line:?}");
    }
    text
}
