//! The manual page and the completions. Shells and formatters that aren't there check nothing.

#[path = "../packaging/pages.rs"]
mod pages;

use std::fs;
use std::process::Command;

use ftsh::cli::flags;

fn page(name: &str) -> String {
    let pages = pages::all().expect("pages");
    let (_, content) = pages.into_iter().find(|(known, _)| *known == name).expect("a page");
    String::from_utf8(content).expect("text")
}

/// What a program says of a file, on standard output and error; none if there is no such program.
fn checked_by(program: &str, arguments: &[&str], file: &str) -> Option<(bool, String)> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join(file);
    fs::write(&path, page(file)).expect("a file");
    let mut command = Command::new(program);
    command.args(arguments).arg(&path).env("MANWIDTH", "78").env("LC_ALL", "C.UTF-8");
    let output = match command.output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        output => output.expect("it runs"),
    };
    let text = [output.stdout, output.stderr].concat();
    Some((output.status.success(), String::from_utf8_lossy(&text).into_owned()))
}

#[test]
fn the_manual_page_has_everything() {
    let page = page("ftsh.1").replace("\\-", "-");
    for argument in flags::command().get_arguments().filter(|argument| !argument.is_hide_set()) {
        let short = argument.get_short().map(|short| format!("-{short}"));
        let long = argument.get_long().map(|long| format!("--{long}"));
        for name in short.into_iter().chain(long) {
            assert!(page.contains(&name), "{name} isn't in the manual page");
        }
    }
    for title in ["NAME", "SYNOPSIS", "DESCRIPTION", "ENVIRONMENT", "EXIT STATUS", "EXAMPLES"] {
        assert!(page.contains(&format!(".SH {title}")) || page.contains(&format!("\"{title}\"")));
    }
}

#[test]
fn formatters_find_nothing_wrong_with_the_manual_page() {
    if let Some((is_fine, text)) = checked_by("man", &["--warnings", "-l"], "ftsh.1") {
        assert!(is_fine && !text.contains("warning"), "{text}");
    }
    if let Some((_, text)) = checked_by("mandoc", &["-Tlint", "-Wwarning"], "ftsh.1") {
        let troubles: Vec<_> = text.lines().filter(|line| !line.contains("missing date")).collect();
        assert!(troubles.is_empty(), "{text}");
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
    let Ok(options) = complete(&["--lo"]) else { return };
    assert_eq!(options, "--log-format --lock --lock-wait --lock-busy");
    assert_eq!(complete(&["--log-format", ""]).ok().as_deref(), Some("text json"));
    assert_eq!(complete(&["--backoff", "fu"]).ok().as_deref(), Some("full"));
}
