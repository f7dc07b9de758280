//! The manual pages and the completions. Without a shell or a formatter, its test checks nothing.

#[path = "../packaging/notices.rs"]
mod notices;
#[path = "../packaging/pages.rs"]
mod pages;

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use ftsh::cli::options;
use ftsh::cli::options::flags::{self, HEADS};
use ftsh_syntax::clauses;

use crate::support::skipped::skipped;

fn page(name: &str) -> String {
    let pages = pages::all().expect("pages");
    let (_, content) = pages.into_iter().find(|(known, _)| *known == name).expect("a page");
    String::from_utf8(content).expect("text")
}

/// Returns the output of a program about a file, if the program exists.
fn checked_by(program: &str, arguments: &[&str], file: &str) -> Option<(bool, String)> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join(file);
    fs::write(&path, page(file)).expect("a file");
    let mut command = Command::new(program);
    command.args(arguments).arg(&path).env("MANWIDTH", "78").env("LC_ALL", "C.UTF-8");
    let output = match command.output() {
        // A folder of PATH that may not be searched could have the program.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => {
            skipped(program);
            return None;
        }
        output => output.expect("it runs"),
    };
    let text = [output.stdout, output.stderr].concat();
    Some((output.status.success(), String::from_utf8_lossy(&text).into_owned()))
}

/// Manual pages, each with the titles of sections that it must have.
const MANUAL: [(&str, &[&str]); 3] = [
    (
        "ftsh.1",
        &[
            "NAME",
            "SYNOPSIS",
            "OPTIONS",
            "A WORD BEFORE A COMMAND",
            "ENVIRONMENT",
            "EXIT STATUS",
            "SIGNALS",
            "FILES",
        ],
    ),
    ("ftsh-language.7", &["NAME", "WORDS AND VALUES", "TRYING", "VARIABLES", "KINDS AND STATUSES"]),
    ("ftsh-cookbook.7", &["NAME", "DOWNLOADS", "CONTAINERS"]),
];

#[test]
fn the_manual_has_every_section() {
    for (name, titles) in MANUAL {
        let page = page(name);
        for title in titles {
            let forms = [format!(".SH {title}\n"), format!(".SH \"{title}\"\n")];
            assert!(forms.iter().any(|form| page.contains(form)), "{name} lacks {title}");
        }
        assert!(!page.contains("](") && !page.contains("```"), "{name} has Markdown in it");
    }
}

/// Returns the heading of an option's section, and the paragraph below.
fn section_of(option: &clap::Arg) -> (String, String) {
    let names = options::names(option);
    let value = options::value_name(option).map(|it| format!(" {it}")).unwrap_or_default();
    let form = |name: &String| match value.strip_prefix(' ') {
        Some(value) if name == "--cron" => format!("`{name}={value}`"),
        _ => format!("`{name}`{value}"),
    };
    let mut heading: Vec<_> = names.iter().map(form).collect();
    if option.get_num_args().is_some_and(|number| number.min_values() == 0) {
        heading.insert(0, format!("`{}`", names[0]));
    }
    let help = option.get_help().expect("a description").to_string();
    let default = options::setting(&names[0]).map_or("", |setting| setting.default);
    let help = help.trim_end_matches(&format!(" [{default}]"));
    let end = if help.ends_with('…') { "" } else { "." };
    let mut text = format!("{help}{end}");
    if !default.is_empty() {
        text += &format!(" Default: `{default}`.");
    }
    if let Some(variable) = options::assignment(option) {
        text += &format!(" Environment: `{variable}`.");
    }
    (heading.join(", "), text)
}

#[test]
fn each_option_has_a_section_in_the_manual() {
    let document = fs::read_to_string("docs/reference/command-line.md").expect("a document");
    let manual = page("ftsh.1").replace("\\-", "-");
    let command = flags::command();
    let options: Vec<_> = command.get_arguments().filter(|it| !it.is_positional()).collect();
    for option in &options {
        let (heading, text) = section_of(option);
        let section = format!("\n#### {heading}\n\n{text}\n");
        assert!(document.contains(&section), "docs/reference/command-line.md lacks\n{section}");
        assert!(manual.contains(&heading.replace('`', "")), "no {heading}");
    }
    let sections = document.lines().filter(|line| line.starts_with("#### ")).count();
    assert_eq!(sections, options.len(), "sections of options that there are not");
}

#[test]
fn formatters_find_nothing_wrong_with_the_manual() {
    for (name, _) in MANUAL {
        if let Some((is_fine, text)) = checked_by("man", &["--warnings", "-l"], name) {
            assert!(is_fine && !text.contains("warning:"), "{text}");
        }
        if let Some((_, text)) = checked_by("mandoc", &["-Tlint", "-Wwarning"], name) {
            let troubles: Vec<_> =
                text.lines().filter(|line| !line.contains("missing date")).collect();
            assert!(troubles.is_empty(), "{text}");
        }
    }
}

#[test]
fn shells_read_their_completions() {
    for (shell, file) in [("bash", "ftsh.bash"), ("zsh", "_ftsh"), ("fish", "ftsh.fish")] {
        if let Some((is_fine, text)) = checked_by(shell, &["-n"], file) {
            assert!(is_fine && text.is_empty(), "{shell}: {text}");
        }
    }
}

#[test]
fn bash_completes_options_and_values() {
    let script = "source \"$0\"; COMP_WORDS=(ftsh \"$@\"); COMP_CWORD=$#; \
                  _ftsh ftsh \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD-1]}\"; \
                  echo \"${COMPREPLY[@]}\"";
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("ftsh.bash");
    fs::write(&file, page("ftsh.bash")).expect("a file");
    let complete = |words: &[&str]| {
        let output = Command::new("bash").arg("-c").arg(script).arg(&file).args(words).output();
        output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Ok(options) = complete(&["--lo"]) else { return skipped("bash") };
    assert_eq!(options, "--log-format --lock --lock-wait --lock-busy");
    assert_eq!(complete(&["--log-format", ""]).ok().as_deref(), Some("text json"));
    assert_eq!(complete(&["--backoff", "fu"]).ok().as_deref(), Some("full"));
    assert_eq!(complete(&["--explain", "subs"]).ok().as_deref(), Some("subshell"));
}

/// Returns a shell with the completions in `file`, or none without the shell. The script prints
/// the candidates for the last argument.
fn completer(shell: &str, options: &[&str], script: &str, file: &str) -> Option<Completer> {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join(file), page(file)).expect("a file");
    fs::write(directory.path().join("script"), script).expect("a file");
    if Command::new(shell).args(options).args(["-c", "true"]).output().is_err() {
        skipped(shell);
        return None;
    }
    let options = options.iter().map(|option| (*option).to_owned()).collect();
    Some(Completer { shell: shell.to_owned(), options, directory })
}

/// A shell with the completions of ftsh.
struct Completer {
    shell: String,
    options: Vec<String>,
    /// Directory of the files `script` and of the completions.
    directory: tempfile::TempDir,
}

impl Completer {
    /// Returns the candidates for the last word, sorted.
    fn candidates(&self, words: &[&str]) -> Vec<String> {
        let mut command = Command::new(&self.shell);
        command.args(&self.options).arg("script").args(words).current_dir(&self.directory);
        command.env("HOME", self.directory.path());
        let output = command.output().expect("the shell runs");
        let text = String::from_utf8_lossy(&output.stdout);
        let mut lines: Vec<_> = text
            .lines()
            .map(|line| line.split('\t').next().unwrap_or_default().to_owned())
            .filter(|line| !line.is_empty())
            .collect();
        lines.sort();
        lines.dedup();
        lines
    }
}

/// Shells, each with options, a script for [`completer`], and the file of the completions.
const COMPLETING: [(&str, &[&str], &str, &str); 3] = [
    (
        "bash",
        &[],
        "source ./ftsh.bash\nCOMP_WORDS=(ftsh \"$@\"); COMP_CWORD=$#\n\
         _ftsh ftsh \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD-1]}\"\n\
         printf '%s\\n' \"${COMPREPLY[@]}\"\n",
        "ftsh.bash",
    ),
    (
        "zsh",
        &["-f"],
        "compdef() { :; }\n_arguments() { :; }\n_normal() { compadd -- $programs }\n\
         compadd() { shift; for word; do [[ $word == ${words[CURRENT]}* ]] && print -r -- $word; \
         done; true }\n\
         source ./_ftsh\nprograms=(cat echo)\nwords=(ftsh \"$@\"); CURRENT=${#words}\n_ftsh\n",
        "_ftsh",
    ),
    ("fish", &["--no-config"], "source ./ftsh.fish\ncomplete -C \"ftsh $argv\"\n", "ftsh.fish"),
];

#[test]
fn shells_complete_the_heads_before_a_command() {
    for (shell, options, script, file) in COMPLETING {
        let Some(completer) = completer(shell, options, script, file) else { continue };
        let complete = |words: &[&str]| completer.candidates(words);
        let has = |words: &[&str], wanted: &[&str]| {
            let found = complete(words);
            let all = wanted.iter().all(|word| found.iter().any(|it| it == word));
            assert!(all, "{shell}: {words:?}: {wanted:?} of {found:?}");
        };
        for head in HEADS {
            has(&["-l", "5", &head[..2]], &[head]);
            // Each clause begins with a word that the completions know.
            let rows = clauses::rows(if head == "on" { "forall" } else { head });
            for row in rows {
                let before = [head, "x", "x"];
                has(&[&before[..], &[""]].concat(), &["--", row.words[0]]);
                let unfinished = row.words.windows(2).filter(|pair| pair[0] != "in");
                for pair in unfinished {
                    has(&[&before[..], &[pair[0], ""]].concat(), &[pair[1]]);
                }
            }
        }
        assert_eq!(complete(&["forall", "in", "a", "at", ""]), ["least", "most"], "{shell}");
        assert_eq!(complete(&["forall", "in", "a", "on", ""]), ["slurm", "ssh"], "{shell}");
        assert_eq!(complete(&["on", "sl"]), ["slurm"], "{shell}");
        assert_eq!(complete(&["forany", "host", "from", ""]), ["input"], "{shell}");
        assert_eq!(complete(&["try", "3", "times", "backoff", "ful"]), ["full"], "{shell}");
        assert_eq!(complete(&["try", "3", "ti"]), ["times"], "{shell}");
        assert_eq!(
            complete(&["forall", "in", "a", "try", "3", "times", "ea"]),
            ["each"],
            "{shell}"
        );
        let none: [&str; 0] = [];
        assert_eq!(complete(&["try", "each", ""]), none, "{shell}: a length of time");
        has(&["try", "3", "times", "--", "ca"], &["cat"]);
        // Neither a script nor a text is a head.
        assert!(!complete(&["x.ftsh", "try", "3", "ti"]).contains(&"times".to_owned()), "{shell}");
        assert!(!complete(&["-c", "try", "3", "ti"]).contains(&"times".to_owned()), "{shell}");
    }
}

/// Directory of documents in Debian's package.
const DOCUMENTS: &str = "usr/share/doc/ftsh/";

/// Documents of Debian's package, each with its place in the package.
fn documents() -> Vec<(PathBuf, PathBuf)> {
    let manifest = fs::read_to_string("Cargo.toml").expect("a manifest");
    let assets = manifest.lines().filter_map(|line| {
        let mut strings = line.strip_prefix("    [\"")?.split('"').step_by(2);
        Some((strings.next()?, strings.next()?.strip_prefix(DOCUMENTS)?))
    });
    let mut documents = Vec::new();
    for (pattern, place) in assets {
        let Some((beginning, ending)) = pattern.split_once('*') else {
            let name = Path::new(pattern).file_name().unwrap_or_default();
            let place = if place.is_empty() || place.ends_with('/') {
                Path::new(place).join(name)
            } else {
                place.into()
            };
            documents.push((pattern.into(), place));
            continue;
        };
        let (folder, start) = beginning.split_at(beginning.rfind('/').map_or(0, |at| at + 1));
        // After `**/` the folders below count as well.
        let (is_deep, start, end) = match ending.strip_prefix("*/") {
            Some(name) => name.split_once('*').map_or((true, name, ""), |(a, b)| (true, a, b)),
            None => (false, start, ending),
        };
        let mut folders = vec![PathBuf::from(if folder.is_empty() { "." } else { folder })];
        while let Some(inside) = folders.pop() {
            for entry in fs::read_dir(inside).expect("a folder") {
                let path = entry.expect("a file").path();
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                if path.is_dir() && is_deep {
                    folders.push(path);
                } else if path.is_file()
                    && name.starts_with(start)
                    && name.contains(end.trim_end_matches('*'))
                {
                    let path = path.strip_prefix(".").unwrap_or(&path).to_owned();
                    let below = path.strip_prefix(folder).expect("a path below").to_owned();
                    documents.push((path, Path::new(place).join(below)));
                }
            }
        }
    }
    documents
}

/// Normalizes a path with `..`.
fn straight(path: &Path) -> PathBuf {
    let mut straight = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => assert!(straight.pop(), "{}", path.display()),
            part => straight.push(part),
        }
    }
    straight
}

#[test]
fn every_library_has_a_notice() {
    let program = std::env::var_os("CARGO").unwrap_or("cargo".into());
    if Command::new(&program).arg("--version").output().is_err() {
        return skipped("cargo");
    }
    let cargo = |words: &[&str]| {
        let mut command = Command::new(&program);
        let output = command.args(words).output().expect("cargo runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    let metadata: serde_json::Value =
        serde_json::from_str(&cargo(&["metadata", "--locked", "--format-version", "1"]))
            .expect("JSON");
    let notices =
        notices::all(&cargo(&notices::TREE), metadata["packages"].as_array().expect("packages"));
    let notices = notices.expect("notices");
    for library in ["anyhow ", "pest ", "jaq-core ", "dlmalloc "] {
        assert!(notices.contains(library), "{library}");
    }
}

#[test]
fn the_package_has_each_program_with_its_page_and_completions() {
    let manifest = fs::read_to_string("Cargo.toml").expect("a manifest");
    for (folder, program) in [("", "ftsh"), ("lab/", "ftsh-lab")] {
        let own = fs::read_to_string(format!("{folder}Cargo.toml")).expect("a manifest");
        assert!(own.contains(&format!("\nname = \"{program}\"\n")), "{program}");
        for (file, place) in [
            (format!("target/release/{program}"), "usr/bin/".to_owned()),
            (
                format!("dist/{program}.bash"),
                format!("usr/share/bash-completion/completions/{program}"),
            ),
            (format!("dist/_{program}"), "usr/share/zsh/vendor-completions/".to_owned()),
            (format!("dist/{program}.fish"), "usr/share/fish/vendor_completions.d/".to_owned()),
        ] {
            assert!(manifest.contains(&format!("[\"{file}\", \"{place}\", ")), "no {file}");
        }
        for (page, _) in MANUAL {
            assert!(manifest.contains(&format!("[\"dist/{page}\", \"usr/share/man/")), "no {page}");
        }
        let pages = [format!("[\"dist/{program}.1\", "), format!("[\"dist/{program}*.1\", ")];
        assert!(pages.iter().any(|page| manifest.contains(page)), "no page of {program}");
    }
}

#[test]
fn links_of_packaged_documents_stay_in_the_package() {
    let documents = documents();
    let places: BTreeSet<&Path> = documents.iter().map(|(_, place)| place.as_path()).collect();
    let is_there = |place: &Path| places.iter().any(|known| known.starts_with(place));
    let mut links = 0;
    for (file, place) in
        documents.iter().filter(|(_, place)| place.extension().is_some_and(|it| it == "md"))
    {
        let text = fs::read_to_string(file).expect("a document");
        for link in text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
            if !link.is_empty() && !link.contains("://") {
                let to = straight(&place.with_file_name(link));
                assert!(
                    is_there(&to),
                    "{} leads to {link}, which the package lacks",
                    file.display()
                );
                links += 1;
            }
        }
    }
    assert!(links > 50, "links were looked for in the wrong way: {links}");
}

#[test]
fn the_package_has_what_editors_need() {
    let documents = documents();
    for folder in ["vim", "vscode", "tree-sitter"] {
        let mut folders = vec![Path::new("editors").join(folder)];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).expect("a folder") {
                let path = entry.expect("a file").path();
                if path.ends_with("node_modules") || path.ends_with(".gitignore") {
                    continue;
                }
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let is_it = |(file, place): &(PathBuf, PathBuf)| *file == path && *place == path;
                assert!(documents.iter().any(is_it), "the package lacks {}", path.display());
            }
        }
    }
}
