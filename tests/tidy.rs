//! Structure of the project: layers, purity, sizes, and documents that match the code.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::links::{OTHERS, prose};
use crate::support::documents;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Name of a file from the root, and its text.
pub(crate) type Text = (String, String);

/// Returns the text files below `folder`, except for files that git ignores.
pub(crate) fn texts(folder: &str) -> Vec<Text> {
    let mut texts = Vec::new();
    let mut folders: Vec<PathBuf> = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                let name = entry.file_name();
                if name != "target" && name != ".git" {
                    folders.push(path);
                }
            } else if let Ok(text) = fs::read_to_string(&path) {
                let name = path.strip_prefix(root()).expect("below the root").display().to_string();
                texts.push((name, text));
            }
        }
    }
    texts.sort();
    texts
}

fn sources(folder: &str) -> Vec<Text> {
    let mut sources = texts(folder);
    sources.retain(|(name, _)| Path::new(name).extension().is_some_and(|end| end == "rs"));
    sources
}

/// Returns the sources of all crates without their tests and examples.
pub(crate) fn code() -> Vec<Text> {
    let mut code = sources("src");
    code.extend(sources("crates"));
    let others = ["/tests.rs", "/tests/", "/examples/"];
    code.retain(|(name, _)| !others.iter().any(|it| name.contains(it)));
    for (_, text) in &mut code {
        if let Some(tests) = text.find("#[cfg(test)]\nmod tests {") {
            text.truncate(tests);
        }
    }
    code
}

/// Fails with a list of problems, one per line.
pub(crate) fn assert_none(problems: &[String]) {
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

#[test]
fn files_stay_readable() {
    const MOST_LINES: usize = 500;
    let counts = |line: &&str| !line.is_empty() && !line.starts_with("//");
    let mut problems = Vec::new();
    for (name, text) in code().into_iter().chain(sources("tests")) {
        let lines = text.lines().map(str::trim).filter(counts).count();
        if lines > MOST_LINES {
            problems.push(format!("{name} has {lines} lines of code: would two files be better?"));
        }
    }
    let limit = format!("at most {MOST_LINES} lines of code");
    assert!(read("CONTRIBUTING.md").contains(&limit), "CONTRIBUTING.md does not name the limit");
    assert_none(&problems);
}

/// The shell gets smaller: a feature replaces at least as many lines as it adds. Who raises the
/// number says why in the commit; who deletes lines lowers it.
#[test]
fn the_shell_does_not_grow() {
    const MAX_LINES: usize = 114_000;
    const SLACK: usize = 300;
    let lines: usize = code().iter().map(|(_, text)| text.lines().count()).sum();
    assert!(lines <= MAX_LINES, "{lines} lines of {MAX_LINES} without tests");
    assert!(lines + SLACK > MAX_LINES, "{lines} lines: lower the maximum of {MAX_LINES}");
}

#[test]
fn unsafe_code_stays_in_its_crate() {
    const CALLS: usize = 10;
    let mut calls = Vec::new();
    for (name, text) in code().into_iter().filter(|(name, _)| name.contains("ftsh-process/")) {
        let found = text.lines().filter(|line| line.contains("unsafe {"));
        calls.extend(found.map(|line| format!("{name} calls unsafe code: {}", line.trim())));
    }
    assert!(!calls.is_empty(), "the calls are not found");
    if calls.len() > CALLS {
        assert_none(&calls);
    }
}

#[test]
fn nothing_names_where_it_was_written() {
    let home = std::env::var("HOME").unwrap_or_default() + "/";
    let places = [home.as_str(), env!("CARGO_MANIFEST_DIR")];
    let mut problems = Vec::new();
    for (name, text) in texts("") {
        let found = places.iter().filter(|place| place.len() > 1 && text.contains(**place));
        problems.extend(found.map(|place| format!("{name} names {place}")));
    }
    assert_none(&problems);
}

/// Returns the words between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| line.split('`').skip(1).step_by(2))
}

#[test]
fn documents_name_files_that_exist() {
    let folders =
        ["crates/", "src/", "tests/", "examples/", "grammar/", ".ci/", "lab/", "fuzz/", "docs/"];
    let mut problems = Vec::new();
    for document in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = read(document);
        let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let links = links.filter(|link| !link.contains("://") && !link.starts_with('#'));
        let links = links.map(|link| link.split('#').next().unwrap_or(link));
        let paths = quoted(&text).filter(|word| {
            folders.iter().any(|folder| word.starts_with(folder)) && !word.contains([' ', '*', '…'])
        });
        for path in paths.chain(links) {
            if !root().join(path).exists() {
                problems.push(format!("{document} names {path}, which isn't there"));
            }
        }
    }
    assert_none(&problems);
}

#[test]
fn the_purpose_of_each_dependency_is_documented() {
    for (manifest, document) in
        [("Cargo.toml", "CONTRIBUTING.md"), ("lab/Cargo.toml", "lab/README.md")]
    {
        assert_dependencies_are_documented(manifest, document);
    }
}

fn assert_dependencies_are_documented(manifest: &str, document: &str) {
    let manifest = read(manifest);
    let mut listed = BTreeSet::new();
    let mut in_dependencies = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            in_dependencies = matches!(
                line,
                "[workspace.dependencies]" | "[dependencies]" | "[dev-dependencies]"
            );
        } else if in_dependencies && let Some((name, _)) = line.split_once(" = ") {
            listed.insert(name.to_owned());
        }
    }
    listed.retain(|name| !name.starts_with("ftsh") && !name.ends_with(".workspace"));
    let document = read(document);
    let section = document.split("## Dependencies").nth(1).expect("a section on dependencies");
    let section = section.split("\n## ").next().unwrap_or(section);
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let documented: BTreeSet<_> = rows
        .flat_map(|row| quoted(row.split('|').nth(1).unwrap_or_default()))
        .map(str::to_owned)
        .collect();
    assert_eq!(documented, listed);
}

#[test]
fn ci_runs_the_documented_commands() {
    for command in ["cargo run --release -- examples/hello.ftsh", "cargo test --workspace"] {
        for name in ["README.md", ".ci/run"] {
            let is_there = read(name).lines().any(|line| line == command);
            assert!(is_there, "{name} lacks {command}");
        }
    }
}

#[test]
fn the_readme_is_short() {
    const MAX_BYTES: usize = 7168;
    let length = read("README.md").len();
    assert!(length <= MAX_BYTES, "README.md has {length} bytes of {MAX_BYTES}");
}

/// Phrases that need a second reading, each with the words to write instead. The table in
/// CONTRIBUTING.md explains the rules.
const UNCLEAR: [(&str, &str); 14] = [
    (
        r"\b(page|section|table|guide|reference|chapter|cookbook|glossary|manual)s? (has|have)\b",
        "lists, describes, shows",
    ),
    (r"\]\([^)]*\) (has|have)\b", "lists, describes, shows"),
    (r"\bbeside\b", "next to, compared with, at the same time as"),
    (r"\bblanks?\b", "space"),
    (r"\b(go|goes|went) on\b", "continue, resume"),
    (r"\btakes? place\b|\bstands? (before|behind|in|at|there)\b", "happens, comes first"),
    (r"\bkeeps? (its|their) place\b", "counts, stays"),
    (r"\bends? (with|by) (status )?\d", "exits with"),
    (r"\bmakes? no\b|\bnone stay\b|\bneedn't\b", "a verb with `not`"),
    (
        r"\bbut for\b|\bwill do\b|\bin silence\b|\bas you like\b|\bsays? so\b|\bdo(es)? so too\b",
        "the usual phrase",
    ),
    (r"\bmend(s|ed|ing)?\b|\bnobody knows\b|\bmust bear\b|\bat the begin\b", "the usual phrase"),
    (
        r"\bto be had\b|\bsuch a one\b|\bby turns\b|\bfor good\b|\bbe it\b|\banew\b|\bis told\b",
        "the usual phrase",
    ),
    (
        r"\ball the same\b|\bother way round\b|\bcomes? to nothing\b|\bwhat else\b",
        "the usual phrase",
    ),
    (r"\bcancelled\b|\bcancelling\b|\bbehaviour\b", "American spelling"),
];

/// Documents use the phrases of the field. What a check cannot find is in CONTRIBUTING.md.
#[test]
fn documents_need_no_second_reading() {
    let code = regex::Regex::new("`[^`]*`").expect("a pattern");
    let anchor = regex::Regex::new(r"#[^)]*\)").expect("a pattern");
    let unclear = UNCLEAR.map(|(pattern, instead)| {
        (regex::Regex::new(&format!("(?i){pattern}")).expect("a pattern"), instead)
    });
    let mut problems = Vec::new();
    for document in documents::below("docs").into_iter().chain(OTHERS.map(str::to_owned)) {
        // A record of the past.
        if document == "CHANGELOG.md" {
            continue;
        }
        for line in prose(&read(&document)).filter(|line| !line.starts_with('#')) {
            let line = anchor.replace_all(line, "#)");
            let line = code.replace_all(&line, "code");
            for (pattern, instead) in &unclear {
                problems.extend(
                    pattern
                        .find(&line)
                        .map(|found| format!("{document}: `{}`: write: {instead}", found.as_str())),
                );
            }
        }
    }
    assert_none(&problems);
}

/// Returns the blocks of a text between a line that `begins` and its closing line.
fn blocks(text: &str, begins: impl Fn(&str) -> bool) -> Vec<(&str, Vec<&str>)> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(head) = lines.next() {
        if begins(head) {
            blocks.push((head, lines.by_ref().take_while(|line| *line != "}").collect()));
        }
    }
    blocks
}

/// Returns the type of a line that begins an `impl` without a trait.
fn type_of_methods(head: &str) -> Option<&str> {
    let rest = head.strip_prefix("impl")?.strip_suffix(" {")?;
    let (_, name) = rest.split_once(' ')?;
    let is_trait = name.contains(" for ");
    (!is_trait).then(|| name.split('<').next().unwrap_or(name))
}

/// True for a line that begins a method of a type at the outermost level.
fn is_method(line: &str) -> bool {
    let Some(line) = line.strip_prefix("    ") else { return false };
    let line = ["pub ", "pub(crate) ", "pub(super) "]
        .iter()
        .find_map(|visibility| line.strip_prefix(visibility))
        .unwrap_or(line);
    line.starts_with("fn ") || line.starts_with("const fn ")
}

/// Returns the name of the struct whose definition begins in this line.
fn struct_name(line: &str) -> Option<&str> {
    let rest = ["pub ", "pub(crate) ", "pub(super) ", ""]
        .iter()
        .find_map(|visibility| line.strip_prefix(visibility)?.strip_prefix("struct "))?;
    rest.strip_suffix(" {")
}

#[test]
fn the_machine_is_made_of_parts_that_keep_their_state() {
    const MAX_METHODS: usize = 60;
    const PARTS: [&str; 10] = [
        "Machine",
        "Core",
        "Tasks",
        "Scheduler",
        "Requests",
        "Scopes",
        "Remote",
        "KnownDurations",
        "Definitions",
        "Random",
    ];
    assert_parts(
        "crates/ftsh-machine/src/",
        MAX_METHODS,
        &PARTS,
        &[("Machine", "machine/"), ("Core", "core/")],
    );
}

#[test]
fn the_process_driver_is_made_of_parts_that_keep_their_state() {
    const MAX_METHODS: usize = 60;
    const PARTS: [&str; 9] = [
        "ProcessDriver",
        "Reactor",
        "Tables",
        "Turns",
        "CommandEnvironment",
        "Processes",
        "PendingRequests",
        "JobControl",
        "Console",
    ];
    assert_parts("crates/ftsh-process/src/", MAX_METHODS, &PARTS, &[("ProcessDriver", "driver/")]);
}

/// Fails if a type below `folder` has too many methods, if a part shows its fields, or if a
/// whole has methods outside of its own folder.
fn assert_parts(folder: &str, max_methods: usize, parts: &[&str], wholes: &[(&str, &str)]) {
    let mut code = code();
    code.retain(|(name, _)| name.starts_with(folder));
    let mut methods: BTreeMap<&str, (usize, BTreeSet<&str>)> = BTreeMap::new();
    let mut private = BTreeSet::new();
    for (file, text) in &code {
        for (head, lines) in blocks(text, |line| type_of_methods(line).is_some()) {
            let (count, files) = methods.entry(type_of_methods(head).expect("a type")).or_default();
            *count += lines.iter().filter(|line| is_method(line)).count();
            files.insert(file);
        }
        for (head, fields) in blocks(text, |line| struct_name(line).is_some()) {
            let name = struct_name(head).expect("a name");
            if !fields.iter().any(|line| line.starts_with("    pub")) {
                private.insert(name);
            }
        }
    }
    let mut problems = Vec::new();
    for (name, (count, _)) in &methods {
        if *count > max_methods {
            problems.push(format!("{name} has {count} methods: a part of it is a type of its own"));
        }
    }
    for part in parts {
        if !private.contains(part) {
            problems.push(format!("{part} is no struct, or others can touch its fields"));
        }
    }
    // Fields are private, so only these files and the files below can use them.
    for (whole, home) in wholes {
        let home = format!("{folder}{home}");
        let strangers = methods[whole].1.iter().filter(|file| !file.starts_with(&home));
        problems.extend(strangers.map(|file| format!("{file} has methods of {whole}")));
    }
    assert_none(&problems);
}

#[test]
fn folders_stay_readable() {
    const MAX_FILES: usize = 15;
    let mut files: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for (name, _) in code() {
        let folder = Path::new(&name).parent().expect("a folder").to_owned();
        *files.entry(folder).or_default() += 1;
    }
    let problems: Vec<String> = files
        .iter()
        .filter(|(folder, count)| folder.starts_with("crates/ftsh-machine") && **count > MAX_FILES)
        .map(|(folder, count)| format!("{} has {count} files", folder.display()))
        .collect();
    assert_none(&problems);
}
