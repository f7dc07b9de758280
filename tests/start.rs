//! The pages for newcomers: each step that they show is run, and its output compared.

use std::fs;
use std::path::Path;
use std::thread::{self, ScopedJoinHandle};

use crate::docs::{Example, examples};
use crate::generated::WRITE;
use crate::support::Ftsh;
use crate::support::documents::timeless;

/// Line before the output of each command of a walk.
const MARK: &str = "\u{1}";

/// Returns a line of sh with the log level of a command at a terminal: 5, unless the command hides
/// the status line.
fn level_at_terminal(command: &str) -> &'static str {
    let has_line = !command.contains('|') && !command.contains("--cron");
    if has_line { "export FTSH_LOG_LEVEL=5" } else { "unset FTSH_LOG_LEVEL" }
}

/// A block of a document with commands after `$ ` and their output.
struct Session {
    commands: Vec<String>,
    shown: String,
}

impl Session {
    fn read(text: &str) -> Self {
        let commands = text.lines().filter_map(|line| line.strip_prefix("$ ")).map(str::to_owned);
        Self { commands: commands.collect(), shown: text.to_owned() }
    }
}

fn sessions(text: &str) -> Vec<Session> {
    let blocks = text.split("```console\n").skip(1);
    blocks.filter_map(|rest| rest.split("```").next()).map(Session::read).collect()
}

fn is_script(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "ftsh")
}

/// Returns a run with the scripts of a document as files, each under the name in the line before it.
fn with_scripts(document: &str) -> Ftsh {
    let text = fs::read_to_string(document).expect("a document");
    let lines: Vec<_> = text.lines().collect();
    let mut run = Ftsh::new();
    for Example { line, text, .. } in examples(document) {
        let before = lines[..line - 1].iter().rev().take(4);
        let names = before.flat_map(|line| line.split('`').skip(1).step_by(2));
        let name = names.filter(|word| is_script(word)).last().expect("a name");
        run = run.file(name, text);
    }
    run
}

/// Runs the commands of sessions one after the other in the directory of `run`. Returns each session
/// as printed.
fn printed(sessions: &[Session], run: Ftsh) -> Vec<String> {
    // `$?` is the status of the command before, as in a terminal.
    let mut script = "exec 2>&1\nPATH=$PWD/bin:$PATH\nstatus=0\n".to_owned();
    for command in sessions.iter().flat_map(|session| &session.commands) {
        let level = level_at_terminal(command);
        script += &format!("echo '{MARK}'\n{level}\n(exit $status)\n{command}\nstatus=$?\n");
    }
    let finished = run.file("walk.sh", script).through(["sh", "walk.sh"]).success();
    finished.nothing_left();
    let text = finished.text();
    let mark = format!("{MARK}\n");
    let mut outputs = text.split(&mark).skip(1);
    let mut shown = |command: &String| {
        format!("$ {command}\n{}", outputs.next().expect("an output for each command"))
    };
    sessions.iter().map(|session| session.commands.iter().map(&mut shown).collect()).collect()
}

/// Runs all commands of a document, each section in a directory of its own, and compares their
/// output with the document. `just generate` writes the output into the document instead.
fn walk(document: &str, run: impl Fn() -> Ftsh + Sync) {
    let text = fs::read_to_string(document).expect("a document");
    let sections: Vec<_> = text.split("\n## ").map(sessions).filter(|it| !it.is_empty()).collect();
    assert!(!sections.is_empty(), "{document} has no sessions");
    let printed = thread::scope(|scope| {
        let mut threads = Vec::new();
        for section in &sections {
            threads.push(scope.spawn(|| printed(section, run())));
        }
        let join = |it: ScopedJoinHandle<_>| it.join().expect("a section that succeeds");
        threads.into_iter().flat_map(join).collect::<Vec<String>>()
    });
    let shown: Vec<_> = sections.iter().flatten().map(|session| &session.shown).collect();
    assert_eq!(printed.len(), shown.len());
    let mut written = text.clone();
    for (printed, shown) in printed.iter().zip(shown) {
        if std::env::var_os(WRITE).is_none() {
            assert_eq!(timeless(printed), timeless(shown), "{document}");
        } else if timeless(printed) != timeless(shown) {
            written = written.replace(shown, printed);
        }
    }
    if std::env::var_os(WRITE).is_some() {
        fs::write(document, written).expect("a document to write");
    }
}

#[test]
fn the_tutorial_shows_what_is_printed() {
    let document = "docs/start/tutorial.md";
    walk(document, || with_scripts(document));
}

#[test]
fn the_readme_shows_what_is_printed() {
    let document = "README.md";
    let curl = "#!/bin/sh\necho \"curl: (7) Failed to connect to localhost port 9 after 0 ms: \
                Couldn't connect to server\" >&2\nexit 7\n";
    walk(document, || with_scripts(document).program("bin/curl", curl));
}

/// Code of sh that ftsh does not refuse.
const NO_ERRORS: [&str; 8] = [
    "timeout 5m a",
    "x=$(a)",
    "basename x.gz .gz",
    "$RANDOM",
    "[ \"$n\" -lt 5 ]",
    "[ -z \"$a\" ]",
    "a{1..3}",
    "`",
];

/// Returns the pieces of code in a cell of a table.
fn code(cell: &str) -> Vec<String> {
    let cell = cell.replace("\\|", "|");
    let mut pieces = Vec::new();
    let mut rest = cell.as_str();
    while let Some(start) = rest.find('`') {
        let fence = if rest[start..].starts_with("``") { "``" } else { "`" };
        let body = &rest[start + fence.len()..];
        let Some(end) = body.find(fence) else { break };
        pieces.push(body[..end].trim().replace('…', "true"));
        rest = &body[end + fence.len()..];
    }
    pieces
}

#[test]
fn words_of_sh_are_refused_with_a_hint() {
    let text = fs::read_to_string("docs/start/from-sh.md").expect("a document");
    let mut tried = 0;
    let tables = text.split("| in sh | here |\n|---|---|\n").skip(1);
    for row in tables.flat_map(|table| table.lines().take_while(|line| line.starts_with('|'))) {
        let cells = row.replace("\\|", "\u{2}");
        let mut cells = cells.split('|').skip(1).map(|cell| cell.trim().replace('\u{2}', "|"));
        let (left, right) = (cells.next().expect("a cell"), cells.next().expect("a cell"));
        let same = right == "the same";
        for code in code(&left).into_iter().filter(|code| !NO_ERRORS.contains(&code.as_str())) {
            let here_document = if code.contains("<<END") { "\nEND" } else { "" };
            let run = Ftsh::command(&format!("{code}{here_document}")).options(["-n"]).run();
            let errors = run.errors();
            let is_refused = errors.starts_with("error[") && errors.contains("hint:");
            assert_eq!(is_refused, !same, "{row}: {code}: {errors}");
            tried += 1;
        }
    }
    assert!(tried > 40, "{tried} words");
}
